"""The wiring: log -> fold -> store -> relay, and the surfaces that read the state; embedded in one process, or over Kafka by many."""

from monitor.app.cluster import Service as Service
from monitor.app.embedded import Monitor as Monitor
from monitor.app.service import start_faults as start_faults

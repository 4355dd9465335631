"""What a worker counts of its own doing: unlike the other metrics it is not in the state, and begins anew with each start."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from monitor.serve.metrics import catalogue
from monitor.serve.metrics.catalogue import Metric


class Meters:
    """Counters, gauges and histograms of one process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.fold_seconds = self._histogram(catalogue.FOLD_SECONDS)
        self.commit_seconds = self._histogram(catalogue.COMMIT_SECONDS)
        self.chunk_records = self._histogram(catalogue.CHUNK_RECORDS)
        self.stale_commits = self._make(Counter, catalogue.STALE_COMMITS)
        self.store_up = self._make(Gauge, catalogue.STORE_UP)
        self.outbox = self._make(Gauge, catalogue.OUTBOX)
        self.relayed = self._make(Counter, catalogue.RELAYED)
        self.relay_failures = self._make(Counter, catalogue.RELAY_FAILURES)
        self.source_gap = self._make(Gauge, catalogue.SOURCE_GAP)

    def add_broker(self) -> Gauge:
        """Return the gauge that says whether the brokers answer; only a service has brokers."""
        return Gauge(catalogue.BROKER_UP.name, catalogue.BROKER_UP.help, registry=self.registry)

    def take(self, partition: int) -> None:
        """Begin the series of a partition."""
        self.outbox.labels(str(partition)).set(0)

    def let_go(self, partition: int) -> None:
        """End the series of a partition: they are another worker's now."""
        self.outbox.remove(str(partition))

    def _make(self, kind: Any, metric: Metric) -> Any:  # noqa: ANN401 - Counter and Gauge have no common base that says more
        return kind(metric.name, metric.help, metric.labels, registry=self.registry)

    def _histogram(self, metric: Metric) -> Histogram:
        return Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=self.registry)

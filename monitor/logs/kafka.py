"""Read and write Kafka as the Faust transport ``kafka://host:port[,host:port]/topic``; one message is one chunk of a partition.

The entry point ``kafka`` in the group ``faust.transports`` takes precedence over Faust's own transport, which stays available as
``aiokafka://``.
"""

from typing import TYPE_CHECKING, Final

from aiokafka import AIOKafkaProducer
from faust.transport.drivers import aiokafka as driver

from monitor.logs.kafka_consumer import Consumer

if TYPE_CHECKING:
    from monitor.logs.faust_app import FaustApp

MAX_REQUEST_BYTES: Final = 64 << 20


class Producer(driver.Producer):  # type: ignore[misc]
    """Writes with ``acks=all`` and without duplicates; awaited records are in the log."""

    app: "FaustApp"

    def _new_producer(self, transactional_id: str | None = None) -> AIOKafkaProducer:  # noqa: ARG002 - Faust's signature
        settings = self.app.kafka
        assert settings is not None, "make_app sets it for kafka://"
        return AIOKafkaProducer(
            **settings.client_options(), acks="all", enable_idempotence=True, max_request_size=MAX_REQUEST_BYTES
        )


class Transport(driver.Transport):  # type: ignore[misc]
    """Serves ``kafka://host:port[,host:port]/topic``, with the connection settings of `FaustApp.kafka`."""

    Consumer = Consumer
    Producer = Producer

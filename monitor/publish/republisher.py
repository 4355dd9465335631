"""Events that came to another partition than their benchmark's are published again, to the one that owns it."""

from collections.abc import Sequence
from typing import Final

from monitor.engine.chunk import Origin
from monitor.engine.ownership import owner
from monitor.engine.state.delta import Misrouted
from monitor.publish.kafka_producer import KafkaProducer, Message

ORIGIN: Final = "rankwatch-origin"
"""The header that says where a copy stood before: `monitor.engine.chunk.Origin`."""


class Republisher:
    """Publishes misrouted records to the partitions that own their benchmarks.

    Copies from one partition reach each owner in the order of their origins, and none behind a gap: the owner drops a copy whose origin is
    not beyond the last one it took, which is how it tells a second publication after a crash.

    Parameters
    ----------
    producer : KafkaProducer
    topic : str
        The topic of the events.
    partitions : int
        How many it has, as recorded with the state.
    """

    def __init__(self, producer: KafkaProducer, topic: str, partitions: int) -> None:
        self._producer, self._topic, self._partitions = producer, topic, partitions

    async def __call__(self, partition: int, misrouted: Sequence[Misrouted]) -> None:
        """Publish what was misrouted to `partition`; when this returns, all in-sync replicas have it."""
        messages = (
            Message(
                owner(record.benchmark, self._partitions),
                record.benchmark.encode(),
                record.payload,
                ((ORIGIN, Origin(partition, record.offset, record.place).encode()),),
            )
            for record in misrouted
        )
        await self._producer.deliver(self._topic, messages)

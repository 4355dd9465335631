"""Publish events again that came to another partition than their benchmark's."""

from collections.abc import Sequence

from monitor.engine.chunk import ORIGIN_HEADER, Origin
from monitor.engine.ownership import owner
from monitor.engine.state.delta import Misrouted
from monitor.publish.kafka_producer import KafkaProducer, Message


class Republisher:
    """Publishes misrouted records to the partitions that own their benchmarks.

    Copies from one partition reach each owner in the order of their origins, without gaps. The owner drops a copy whose origin is not after
    the last one it folded, and so recognizes copies that were published twice around a crash. `partitions` is the topic's recorded count.
    """

    def __init__(self, producer: KafkaProducer, topic: str, partitions: int) -> None:
        self._producer, self._topic, self._partitions = producer, topic, partitions

    async def __call__(self, partition: int, misrouted: Sequence[Misrouted]) -> None:
        """Deliver the misrouted records of `partition` to all in-sync replicas."""
        messages = (
            Message(
                owner(record.benchmark, self._partitions),
                record.benchmark.encode(),
                record.payload,
                ((ORIGIN_HEADER, Origin(partition, record.offset, record.place).encode()),),
            )
            for record in misrouted
        )
        await self._producer.deliver(self._topic, messages)

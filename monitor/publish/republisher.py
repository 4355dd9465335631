"""Publish events again that came to another partition than their benchmark's."""

from collections.abc import Sequence

from monitor.publish.kafka_producer import KafkaProducer, Message
from schemas.records.chunks import ORIGIN_HEADER, Misrouted, Origin
from schemas.records.origins import OriginKey
from schemas.records.ownership import owner


class Republisher:
    """Publishes misrouted records to the partitions that own their benchmarks."""

    # Copies from one partition reach each owner in the order of their origins, without gaps. The owner drops a copy whose origin is not
    # after the last one it folded, and so recognizes copies that were published twice around a crash. `partitions` is the topic's recorded
    # count, `key` signs the origins.

    def __init__(self, producer: KafkaProducer, topic: str, partitions: int, key: OriginKey) -> None:
        self._producer, self._topic, self._partitions, self._key = producer, topic, partitions, key

    async def __call__(self, partition: int, misrouted: Sequence[Misrouted]) -> None:
        """Deliver the misrouted records of `partition` to all in-sync replicas."""
        await self._producer.deliver(self._topic, (self._copy(partition, record) for record in misrouted))

    def _copy(self, partition: int, record: Misrouted) -> Message:
        target = owner(record.benchmark, self._partitions)
        origin = Origin(partition, record.offset, record.place)
        headers = [
            (ORIGIN_HEADER, self._key.sign(origin, target, record.payload)),
            *self._key.producer_headers(record.producer, target, record.payload),
        ]
        return Message(target, record.benchmark.encode(), record.payload, headers)

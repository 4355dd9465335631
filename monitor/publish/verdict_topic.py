"""Publish verdict changes to a topic as CloudEvents 1.0 in binary mode."""

from collections.abc import Sequence
from typing import Final

from monitor.publish.cloud_events import attributes
from monitor.publish.kafka_producer import KafkaProducer, Message
from schemas.records.ownership import owner
from schemas.results.changes import AnyChange

VERDICTS: Final = "rankwatch.verdicts"


class VerdictTopic:
    """Publishes the verdict changes of one partition of the log, each at least once."""

    # The key is the benchmark, so all changes of a benchmark are in one partition, in order. After a crash a change may be repeated with
    # the same ``ce_source``, ``ce_id`` and bytes. There is no ``ce_time``, because a change depends on the log only; Kafka's own timestamp
    # is the time of the write.
    name = "kafka"

    def __init__(self, producer: KafkaProducer, log: str, partition: int, topic: str = VERDICTS) -> None:
        self._producer, self._log, self._partition, self._topic = producer, log, partition, topic

    async def publish(self, changes: Sequence[AnyChange]) -> None:
        """Publish changes; return once all in-sync replicas have them."""
        partitions = await self._producer.partitions(self._topic)
        await self._producer.deliver(self._topic, [self._message(change, partitions) for change in changes])

    def _message(self, change: AnyChange, partitions: int) -> Message:
        partition = owner(change.benchmark, partitions)
        headers = cloud_event(change, self._log, self._partition)
        return Message(partition, change.benchmark.encode(), change.as_json(), headers)


def cloud_event(change: AnyChange, log: str, partition: int) -> list[tuple[str, bytes]]:
    """Return the headers of a change; they depend on the change and its position only."""
    # See the CloudEvents specification 1.0.2 and its Kafka protocol binding, section 3.2.
    headers = [(f"ce_{name}", value.encode()) for name, value in attributes(change, f"{log}/{partition}").items()]
    return [*headers, ("content-type", b"application/json")]

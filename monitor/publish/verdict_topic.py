"""The topic of verdict changes: CloudEvents 1.0, in binary mode."""

from collections.abc import Sequence
from typing import Final

from monitor.engine.ownership import owner
from monitor.publish.kafka_producer import KafkaProducer, Message
from schemas.changes import VerdictChange

VERDICTS: Final = "rankwatch.verdicts"
TYPE_PREFIX: Final = "io.rankwatch.verdict."


class VerdictTopic:
    """Publishes the verdict changes of one partition of the log, each at least once.

    The key is the benchmark, so that all changes of a benchmark stand in one partition, in their order. A change may come again after a
    crash: with the same ``ce_source`` and ``ce_id``, and the same bytes. That is also why there is no ``ce_time``: nothing about a change
    but the log it was found in may depend on when it was found; Kafka's own timestamp says when the message was written.

    Parameters
    ----------
    producer : KafkaProducer
    log : str
        The topic of the events.
    partition : int
        The partition of it that the changes come from: a change's own id counts within that.
    topic : str
        Where to publish; it must exist.
    """

    name = "kafka"

    def __init__(self, producer: KafkaProducer, log: str, partition: int, topic: str = VERDICTS) -> None:
        self._producer, self._log, self._partition, self._topic = producer, log, partition, topic

    async def publish(self, changes: Sequence[VerdictChange]) -> None:
        """Publish changes; when this returns, all in-sync replicas have them."""
        partitions = await self._producer.partitions(self._topic)
        await self._producer.deliver(self._topic, [self._message(change, partitions) for change in changes])

    def _message(self, change: VerdictChange, partitions: int) -> Message:
        partition = owner(change.benchmark, partitions)
        headers = cloud_event(change, self._log, self._partition)
        return Message(partition, change.benchmark.encode(), change.model_dump_json().encode(), headers)


def cloud_event(change: VerdictChange, log: str, partition: int) -> list[tuple[str, bytes]]:
    """Return the headers of a change: a function of the change and its place alone.

    See the CloudEvents specification 1.0.2 and its Kafka protocol binding, section 3.2.
    """
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", f"{log}/{partition}/{change.id}".encode()),
        ("ce_source", f"/rankwatch/{log}".encode()),
        ("ce_type", f"{TYPE_PREFIX}{change.kind}".encode()),
        ("content-type", b"application/json"),
    ]

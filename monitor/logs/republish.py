"""Records that stand in another partition than their benchmark's are published again, to the owner."""

import asyncio
from collections.abc import Sequence

from monitor.engine.chunk import Origin
from monitor.engine.delta import Misrouted
from monitor.logs.kafka import ORIGIN_HEADER
from monitor.logs.owner import owner
from monitor.logs.worker import WorkerApp


async def republish(app: WorkerApp, partitions: int, partition: int, misrouted: Sequence[Misrouted]) -> None:
    """Publish records of `partition` to the owners of their benchmarks; return when all of them are on all replicas in sync.

    They keep their order in each owner. If this fails, some may be there: publishing the whole again does no harm, since each
    tells its origin.

    Parameters
    ----------
    app
        A started application over Kafka; its topic is written to.
    partitions
        How many the topic has.
    partition, misrouted
        Where the records stand, and what they are, in the order of the log.

    Raises
    ------
    aiokafka.errors.KafkaError, faust.exceptions.ProducerSendError
        If the brokers do not take a record.
    """
    topic = app.chunks.get_topic_name()
    sent = [
        await app.producer.send(
            topic,
            record.benchmark.encode(),
            record.payload,
            owner(record.benchmark, partitions),
            None,
            [(ORIGIN_HEADER, Origin(partition, record.offset, record.place).encode())],
        )
        for record in misrouted
    ]
    await asyncio.gather(*sent)

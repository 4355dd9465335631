"""What the service has stored and published, against an offline fold of the topic that shares no code with it."""

import asyncio
import time
from typing import NamedTuple

from aiokafka import AIOKafkaConsumer, TopicPartition

from monitor.engine.chunk_fold import Partition
from monitor.store.layout import Keys
from monitor.store.redis_store import RedisStore
from tests.commands import PATIENCE
from tests.kafka.records import read_all
from tests.kafka.topic_oracle import PartitionFold, stored_state


class Judged(NamedTuple):
    """What was found to be equal, in numbers."""

    records: int
    events: int
    duplicates: int
    conflicts: int
    misrouted: int
    republished: int
    letters: int
    latches: int
    reversed: int
    published: int
    """Verdict changes in their topic; one may stand there more than once."""


async def caught_up(cluster, redis, topic, partitions, logs):
    """Wait until the stored offsets are the ends of the topic; return how many records that are.

    `logs` returns what the workers have logged, for the message if they do not get there.
    """
    tps = [TopicPartition(topic, p) for p in range(partitions)]
    end = time.monotonic() + 2 * PATIENCE
    with redis.client() as server:
        async with AIOKafkaConsumer(bootstrap_servers=cluster.addresses) as consumer:
            ends, offs = None, {}
            while offs != ends or ends != await consumer.end_offsets(tps):
                assert time.monotonic() < end, f"at {offs} of {ends}\n{logs()}"
                await asyncio.sleep(0.1)
                ends = await consumer.end_offsets(tps)
                offs = {tp: int(server.hget(Keys(topic, tp.partition).meta, "off") or 0) for tp in tps}
    return sum(ends.values())


async def stored(redis, topic, numbers):
    """The partitions as the service has left them, and how many changes still wait to be published."""
    async with await RedisStore.open(redis.url, topic) as store:
        partitions = [Partition.restore(await store.load(p)) for p in range(numbers)]
        return partitions, [await store.outbox_length(p) for p in range(numbers)]


def judge(cluster, redis, topic, verdict_topic, numbers):
    """Compare rows, pair counts, counters, latches with their ids, what is published, and the dead letters."""
    folds = [PartitionFold(p, numbers) for p in range(numbers)]
    for record in asyncio.run(read_all(cluster, topic)):
        folds[record.partition].record(record)
    partitions, waiting = asyncio.run(stored(redis, topic, numbers))
    assert waiting == [0] * numbers
    expected = {}
    for fold, partition in zip(folds, partitions, strict=True):
        assert partition.counters == fold.counted()
        assert partition.origins == fold.origins
        assert set(partition.benchmarks) == set(fold.benchmarks)
        for name, benchmark in partition.benchmarks.items():
            state, wanted = stored_state(benchmark), fold.state(name)
            for part, value in wanted.items():
                assert state[part] == value, f"{name}: {part}"
            for (_, _, kind), (identifier, *_) in wanted["latches"].items():
                expected[f"{topic}/{fold.number}/{identifier}"] = kind
    stored_changes = {
        f"{topic}/{partition.number}/{change.id}": change.as_json().decode()
        for partition in partitions
        for benchmark in partition.benchmarks.values()
        for change in benchmark.changes.values()
    }

    verdicts = asyncio.run(read_all(cluster, verdict_topic))
    published = [(dict(record.headers)["ce_id"].decode(), record.value.decode()) for record in verdicts]
    assert all(stored_changes[identifier] == value for identifier, value in published), (
        "one that comes again is the same"
    )
    assert {identifier for identifier, _ in published} == set(expected) == set(stored_changes)

    letters = asyncio.run(read_all(cluster, f"{topic}.dlq"))
    places = {tuple(int(dict(r.headers)[name]) for name in ("partition", "offset", "index")) for r in letters}
    assert places == {(fold.number, *place) for fold in folds for place in fold.letters}

    oracles = [oracle for fold in folds for oracle in fold.benchmarks.values()]
    return Judged(
        **{name: sum(fold.counters[name] for fold in folds) for name in ("records", "misrouted", "republished")},
        **{name: sum(getattr(o, name) for o in oracles) for name in ("events", "duplicates", "conflicts")},
        letters=sum(len(fold.letters) for fold in folds),
        latches=len(expected),
        reversed=sum(kind == "reversed" for kind in expected.values()),
        published=len(published),
    )

"""Workers that share a topic, and brokers that go away, against a real Apache Kafka."""

import asyncio
import itertools
import os
from collections import Counter
from contextlib import AsyncExitStack

import pytest

from tests.kafka.workers import Store, Worker, numbers, produce, producing, until

pytestmark = pytest.mark.kafka


async def test_workers_come_and_go_and_every_record_is_kept_once_and_in_order(kafka, topic):
    """No compare-and-set is ever refused: a partition moves on only when the chunk in hand is stored."""

    await kafka.create_topic(topic, 4)
    store = Store()
    async with AsyncExitStack() as first, AsyncExitStack() as rest, producing(kafka) as producer:
        written = 0

        async def write(count):
            nonlocal written
            for number in range(written, written + count):
                for partition in range(4):
                    await producer.send(topic, b"%d" % number, partition=partition)
            written += count

        workers = [Worker(kafka, topic, store, f"worker {n}", seconds=0.15) for n in range(3)]
        for worker in workers:
            worker.app.chunk_records = 50
        await first.enter_async_context(workers[0])
        await write(300)
        await until(lambda: len(store.chunks) > 3)
        for worker in workers[1:]:
            before = len(store.chunks)
            await rest.enter_async_context(worker)
            await write(300)
            await until(lambda before=before, worker=worker: worker.mine and len(store.chunks) > before + 5)
        await until(lambda: sum(len(worker.mine) for worker in workers) == 4)
        assert sorted(len(worker.mine) for worker in workers) == [1, 1, 2]
        await write(200)
        await first.aclose()  # one leaves, others take over
        await until(lambda: sum(len(worker.mine) for worker in workers[1:]) == 4)
        await write(200)
        await until(lambda: all(store.offsets.get(partition) == written for partition in range(4)))
    assert store.records == {partition: numbers(written) for partition in range(4)}
    assert store.rejected == 0
    assert set(Counter(name for name, _ in store.chunks)) == {worker.name for worker in workers}
    for worker in workers:
        assert worker.late == 0
        kinds = [kind for kind, _ in worker.story]
        assert kinds[0] == "assigned"
        assert all(one != other for one, other in itertools.pairwise(kinds))


async def test_a_chunk_that_takes_too_long_does_not_hold_the_group_up_for_ever(kafka, topic):
    await kafka.create_topic(topic, 2)
    await produce(kafka, topic, 20, partitions=2)
    store = Store()
    slow = Worker(kafka, topic, store, "slow", rebalance_seconds=2)
    stuck = asyncio.Event()
    slow.before_commit = lambda _: stuck.wait()
    app = slow.app
    await app.start()
    await until(lambda: not app.progress.free.is_set())
    async with Worker(kafka, topic, store, "other", rebalance_seconds=2) as other:
        await until(lambda: len(other.mine) == 1, 20)
        (theirs,) = other.mine
        await until(lambda: store.offsets.get(theirs) == 20)
        stuck.set()  # what it held is refused, or it still is its own
        await until(lambda: len(store.records.get(1 - theirs, ())) == 20)
        await app.stop()
    assert store.records == {0: numbers(20), 1: numbers(20)}


async def test_reading_goes_on_after_the_broker_was_killed(topic, own_kafka):
    await own_kafka.create_topic(topic, 2)
    await produce(own_kafka, topic, 100, partitions=2)
    store = Store()
    async with Worker(own_kafka, topic, store):
        await until(lambda: store.offsets == {0: 100, 1: 100})
        own_kafka.brokers[0].kill()
        await asyncio.to_thread(own_kafka.start)
        await produce(own_kafka, topic, 100, partitions=2, start=100)
        await until(lambda: store.offsets == {0: 200, 1: 200}, 60)
    assert store.records == {0: numbers(200), 1: numbers(200)}
    assert store.rejected == 0


@pytest.mark.slow
@pytest.mark.parametrize("own_kafka", [3], indirect=True, ids=["three nodes"])
async def test_a_cluster_of_three_loses_each_of_its_nodes_in_turn(topic, own_kafka):
    """Leaders and the group's coordinator move; nothing acknowledged is lost, and nothing is read twice.

    One of them only, unless RANKWATCH_SLOW is 1.
    """

    await own_kafka.create_topic(topic, 3, min_insync_replicas=2)
    store = Store()
    async with Worker(own_kafka, topic, store), producing(own_kafka, acks="all", enable_idempotence=True) as producer:

        async def write(start, count):
            for number in range(start, start + count):
                sent = [await producer.send(topic, b"%d" % number, partition=partition) for partition in range(3)]
                await asyncio.gather(*sent)

        await write(0, 50)
        written = 50
        for broker in own_kafka.brokers[: 3 if os.environ.get("RANKWATCH_SLOW") == "1" else 1]:
            broker.kill()
            await write(written, 50)
            written += 50
            await until(lambda written=written: list(store.offsets.values()) == [written] * 3, 90)
            await asyncio.to_thread(own_kafka.start, broker)
    assert store.records == {partition: numbers(written) for partition in range(3)}
    assert store.rejected == 0

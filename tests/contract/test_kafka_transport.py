"""What the Kafka transport does beyond the contract of every log, against a real Apache Kafka."""

import asyncio
import itertools
import os
import random
import uuid
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete
from faust.types import TP

from monitor.engine.chunk import Origin
from monitor.engine.delta import Misrouted
from monitor.logs.filelog import OffsetOutOfRange
from monitor.logs.kafka_settings import KafkaSettings
from monitor.logs.owner import owner
from monitor.logs.republish import republish
from monitor.logs.worker import make_app
from tests.kafka.broker import KafkaCluster

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic():
    return f"events-{uuid.uuid4().hex}"


class Store:
    """The state of every partition, as the workers of a group share it: compare-and-set on the offset."""

    def __init__(self):
        self.offsets = {}
        self.records = {}
        self.chunks = []
        self.rejected = 0

    def commit(self, worker, chunk):
        expected = self.offsets.get(chunk.partition, 0)
        if chunk.start != expected:
            self.rejected += 1
            return False
        self.offsets[chunk.partition] = chunk.end
        self.records.setdefault(chunk.partition, []).extend(chunk.records)
        self.chunks.append((worker, chunk))
        return True


class Worker:
    """An application that keeps what it reads in a `Store`, taking its time about it."""

    def __init__(self, cluster, topic, store, name="worker", seconds=0.0, **settings):
        settings = {"fetch_wait_seconds": 0.05, "session_seconds": 6, "rebalance_seconds": 10} | settings
        url = cluster.url(topic)
        self.app = make_app(url, topic, app_id=topic, kafka=KafkaSettings.from_url(url, **settings))
        self.app.chunk_records = 20
        self.name, self.topic, self.store, self.seconds = name, topic, store, seconds
        self.story = []
        self.mine = set()
        self.late = 0  # chunks finished after the revocation of their partition
        self.app.stored_offsets = self.stored_offsets
        self.app.on_assigned = self.on_assigned
        self.app.on_revoked = self.on_revoked
        self.app.agent(self.app.chunks, name="fold")(self.fold)

    async def stored_offsets(self, assigned):
        return {tp: self.store.offsets[tp.partition] for tp in assigned if tp.partition in self.store.offsets}

    async def on_assigned(self, partitions):
        await asyncio.sleep(self.seconds)  # loading takes its time, too
        self.mine = {tp.partition for tp in partitions}
        self.story.append(("assigned", frozenset(self.mine)))

    async def on_revoked(self, partitions):
        assert {tp.partition for tp in partitions} == self.mine
        self.mine = set()
        self.story.append(("revoked", frozenset(tp.partition for tp in partitions)))

    async def fold(self, stream):
        async for chunk in stream:
            assert chunk.partition in self.mine
            await asyncio.sleep(self.seconds)
            await self.before_commit(chunk)
            self.late += chunk.partition not in self.mine
            self.store.commit(self.name, chunk)

    async def before_commit(self, chunk):
        pass

    async def __aenter__(self):
        await self.app.start()
        return self

    async def __aexit__(self, *exception):
        self.app.flow_control.suspend()
        await self.app.settled()
        await self.app.stop()
        assert not self.app.crashed, self.app.crash_reason


async def until(reached, seconds=30):
    async with asyncio.timeout(seconds):
        while not reached():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@asynccontextmanager
async def producing(cluster, **settings):
    async with AIOKafkaProducer(bootstrap_servers=cluster.addresses, **settings) as producer:
        yield producer


async def produce(cluster, topic, count, partitions=1, start=0):
    """Write `count` numbers to each partition."""
    async with producing(cluster) as producer:
        for number in range(start, start + count):
            for partition in range(partitions):
                await producer.send(topic, b"%d" % number, partition=partition)


def numbers(count):
    return [b"%d" % number for number in range(count)]


def test_a_message_without_a_value_is_an_empty_record_and_a_copy_tells_its_origin(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic)
        async with producing(kafka) as producer:
            await producer.send_and_wait(topic, b"1", key=b"k", headers=[("trace", b"x")])
            await producer.send_and_wait(topic, None, key=b"k")
            await producer.send_and_wait(topic, b"3", headers=[("rankwatch-origin", Origin(7, 120, 2).encode())])
            await producer.send_and_wait(topic, b"4", headers=[("rankwatch-origin", b"nonsense")])
        store = Store()
        async with Worker(kafka, topic, store):
            await until(lambda: store.offsets.get(0) == 4)
        assert store.records[0] == [b"1", b"", b"3", b"4"]
        origins = [o for _, chunk in store.chunks for o in chunk.origins or [None] * len(chunk.records)]
        assert origins == [None, None, Origin(7, 120, 2), None]

    asyncio.run(scenario())


def test_offsets_without_records_leave_no_gap_between_chunks(kafka, topic):
    """Transactions put markers between the records; what was aborted is never seen."""

    async def scenario():
        await kafka.create_topic(topic)
        expected = []
        async with producing(kafka, transactional_id=topic) as producer:
            for number in range(12):
                await producer.begin_transaction()
                for part in range(7):
                    await producer.send(topic, b"%d-%d" % (number, part), partition=0)
                if number % 3:
                    await producer.commit_transaction()
                    expected += [b"%d-%d" % (number, part) for part in range(7)]
                else:
                    await producer.abort_transaction()
        store = Store()
        async with Worker(kafka, topic, store) as worker:
            await until(lambda: len(store.records.get(0, ())) == len(expected))
            end = (await worker.app.consumer.highwaters(TP(topic, 0)))[TP(topic, 0)]
        assert store.records[0] == expected
        assert store.rejected == 0
        chunks = [chunk for _, chunk in store.chunks]
        for chunk in chunks:
            assert chunk.start <= chunk.offsets[0]
            assert chunk.offsets[-1] < chunk.end
            assert list(chunk.offsets) == sorted(set(chunk.offsets))
        assert chunks[-1].end == end == 12 * 8
        assert len({offset for chunk in chunks for offset in chunk.offsets}) == len(expected)

        # From the middle, at an offset that holds no record.
        middle = Store()
        middle.offsets[0] = 15
        async with Worker(kafka, topic, middle):
            await until(lambda: middle.offsets[0] == end)
        assert middle.records[0] == expected[7:]
        assert middle.chunks[0][1].start == 15

    asyncio.run(scenario())


def test_a_chunk_keeps_its_bound_of_bytes_and_a_large_record_comes_alone(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic, max_message_bytes=20 << 20)
        sizes = [300, 400, 400, 100, 12_000_000, 10, 990, 1000, 1]
        async with producing(kafka, max_request_size=16 << 20) as producer:
            for size in sizes:
                await producer.send_and_wait(topic, b"x" * size)
        store = Store()
        worker = Worker(kafka, topic, store)
        worker.app.chunk_bytes = 1000
        async with worker:
            await until(lambda: store.offsets.get(0) == len(sizes))
        assert [len(record) for record in store.records[0]] == sizes
        assert store.rejected == 0
        assert all(sum(map(len, chunk.records)) <= 1000 or len(chunk.records) == 1 for _, chunk in store.chunks)

    asyncio.run(scenario())


def test_a_seek_in_one_partition_loses_and_repeats_nothing_in_the_others(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic, 4)
        await produce(kafka, topic, 400, partitions=4)
        choice = random.Random(4)
        seen = {partition: [] for partition in range(4)}
        store = Store()
        worker = Worker(kafka, topic, store)
        back = 30

        def commit(_, chunk):
            assert chunk.start == store.offsets.get(chunk.partition, 0)
            store.offsets[chunk.partition] = chunk.end
            seen[chunk.partition] += zip(chunk.offsets, chunk.records, strict=True)

        async def seek_now_and_then(chunk):
            nonlocal back
            if back and choice.random() < 0.3:
                back -= 1
                sought = choice.choice([other for other in range(4) if other != chunk.partition])
                store.offsets[sought] = choice.randrange(store.offsets.get(sought, 0) + 1)
                await worker.app.consumer.seek(TP(topic, sought), store.offsets[sought])

        store.commit = commit
        worker.before_commit = seek_now_and_then
        async with worker:
            await until(lambda: not back and all(store.offsets.get(partition) == 400 for partition in range(4)))
        for read in seen.values():
            assert all(record == b"%d" % offset for offset, record in read)
            assert {offset for offset, _ in read} == set(range(400))

    asyncio.run(scenario())


def test_what_is_paused_is_not_read_until_it_is_resumed(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic, 2)
        await produce(kafka, topic, 100, partitions=2)
        store = Store()
        worker = Worker(kafka, topic, store)

        async def pause_the_first(partitions):
            await worker.on_assigned(partitions)
            worker.app.consumer.pause_partitions({TP(topic, 0)})

        worker.app.on_assigned = pause_the_first
        async with worker:
            await until(lambda: store.offsets.get(1) == 100)
            await asyncio.sleep(0.3)
            assert 0 not in store.offsets
            worker.app.consumer.resume_partitions({TP(topic, 0)})
            await until(lambda: store.offsets.get(0) == 100)
        assert store.records == {0: numbers(100), 1: numbers(100)}

    asyncio.run(scenario())


def test_offsets_that_retention_has_passed_are_refused(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic)
        await produce(kafka, topic, 100)
        async with kafka.admin() as admin:
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=50)})
        store = Store()
        store.offsets[0] = 49
        app = Worker(kafka, topic, store).app
        await app.start()
        with pytest.raises(
            OffsetOutOfRange, match=rf"offset 49 is outside partition 0 of {topic}, which holds 50 to 100"
        ):
            await asyncio.wait_for(app.wait_failed(), 10)
        await app.stop()
        assert store.chunks == []

    asyncio.run(scenario())


def test_retention_that_overtakes_a_reader_ends_it(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic)
        await produce(kafka, topic, 100)
        store = Store()
        worker = Worker(kafka, topic, store, fetch_bytes=300)
        await worker.app.start()
        await until(lambda: bool(worker.mine))
        worker.app.consumer.pause_partitions({TP(topic, 0)})
        await asyncio.sleep(0.5)
        async with kafka.admin() as admin:
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=100)})
        await worker.app.consumer.seek(TP(topic, 0), 20)
        worker.app.consumer.resume_partitions({TP(topic, 0)})
        with pytest.raises(OffsetOutOfRange, match=r"offset 20 is outside partition 0 of .*, which no longer holds it"):
            await asyncio.wait_for(worker.app.wait_failed(), 10)
        await worker.app.stop()

    asyncio.run(scenario())


def test_what_is_misrouted_is_published_again_to_its_owner_in_order_and_tells_its_origin(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic, 3)
        names = [f"benchmark {number % 7}" for number in range(60)]
        async with producing(kafka) as producer:
            for name in names:
                await producer.send_and_wait(topic, name.encode(), partition=1)
        store = Store()
        worker = Worker(kafka, topic, store)
        worker.app.chunk_records = 7

        async def republish_then_commit(chunk):
            misrouted = [
                Misrouted(offset, 0, record.decode(), record)
                for offset, record in zip(chunk.offsets, chunk.records, strict=True)
                if owner(record.decode(), 3) != chunk.partition
            ]
            await republish(worker.app, 3, chunk.partition, misrouted)

        worker.before_commit = republish_then_commit
        theirs = sum(owner(name, 3) != 1 for name in names)
        async with worker:
            await until(lambda: sum(store.offsets.values()) == len(names) + theirs)
        assert 0 < theirs < len(names)
        for partition in (0, 2):
            copies = [copy for _, chunk in store.chunks if chunk.partition == partition for copy in chunk.origins]
            expected = [offset for offset, name in enumerate(names) if owner(name, 3) == partition]
            assert copies == [Origin(1, offset, 0) for offset in expected]
            assert store.records[partition] == [names[offset].encode() for offset in expected]
        async with AIOKafkaConsumer(topic, bootstrap_servers=kafka.addresses, auto_offset_reset="earliest") as reader:
            everything = []
            while len(everything) < len(names) + theirs:
                everything += itertools.chain.from_iterable((await reader.getmany(timeout_ms=200)).values())
        assert all(record.key == record.value for record in everything if record.partition != 1)

    asyncio.run(scenario())


def test_a_topic_that_does_not_exist_is_refused_and_not_made(kafka, topic):
    async def scenario():
        app = Worker(kafka, topic, Store()).app
        await app.start()
        with pytest.raises(ValueError, match=f"topic {topic} does not exist at .*: create it"):
            await asyncio.wait_for(app.wait_failed(), 10)
        await app.stop()
        async with kafka.admin() as admin:
            assert topic not in await admin.list_topics()

    asyncio.run(scenario())


def test_progress_is_told_to_the_broker_and_never_read_back(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic)
        await produce(kafka, topic, 100)
        first = Store()
        async with Worker(kafka, topic, first):
            await until(lambda: first.offsets.get(0) == 100)
        async with AIOKafkaConsumer(bootstrap_servers=kafka.addresses, group_id=topic) as watcher:
            assert await watcher.committed(TopicPartition(topic, 0)) == 100
        second = Store()
        second.offsets[0] = 30
        async with Worker(kafka, topic, second):
            await until(lambda: second.offsets[0] == 100)
        assert second.records[0] == numbers(100)[30:]

    asyncio.run(scenario())


def test_workers_come_and_go_and_every_record_is_kept_once_and_in_order(kafka, topic):
    """No compare-and-set is ever refused: a partition moves on only when the chunk in hand is stored."""

    async def scenario():
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

    asyncio.run(scenario())


def test_a_chunk_that_takes_too_long_does_not_hold_the_group_up_for_ever(kafka, topic):
    async def scenario():
        await kafka.create_topic(topic, 2)
        await produce(kafka, topic, 20, partitions=2)
        store = Store()
        slow = Worker(kafka, topic, store, "slow", rebalance_seconds=2)
        stuck = asyncio.Event()
        slow.before_commit = lambda _: stuck.wait()
        app = slow.app
        await app.start()
        await until(lambda: not app.in_hand.free.is_set())
        async with Worker(kafka, topic, store, "other", rebalance_seconds=2) as other:
            await until(lambda: len(other.mine) == 1, 20)
            (theirs,) = other.mine
            await until(lambda: store.offsets.get(theirs) == 20)
            stuck.set()  # what it held is refused, or it still is its own
            await until(lambda: len(store.records.get(1 - theirs, ())) == 20)
            await app.stop()
        assert store.records == {0: numbers(20), 1: numbers(20)}

    asyncio.run(scenario())


def test_reading_goes_on_after_the_broker_was_killed(tmp_path, topic, kafka):
    async def scenario(cluster):
        loop = asyncio.get_running_loop()
        await cluster.create_topic(topic, 2)
        await produce(cluster, topic, 100, partitions=2)
        store = Store()
        async with Worker(cluster, topic, store):
            await until(lambda: store.offsets == {0: 100, 1: 100})
            cluster.brokers[0].kill()
            await loop.run_in_executor(None, cluster.start)
            await produce(cluster, topic, 100, partitions=2, start=100)
            await until(lambda: store.offsets == {0: 200, 1: 200}, 60)
        assert store.records == {0: numbers(200), 1: numbers(200)}
        assert store.rejected == 0

    with KafkaCluster() as cluster:
        asyncio.run(scenario(cluster))


@pytest.mark.slow
def test_a_cluster_of_three_loses_each_of_its_nodes_in_turn(topic, kafka):
    """Leaders and the group's coordinator move; nothing acknowledged is lost, and nothing is read twice.

    One of them only, unless RANKWATCH_SLOW is 1.
    """

    async def scenario(cluster):
        loop = asyncio.get_running_loop()
        await cluster.create_topic(topic, 3, min_insync_replicas=2)
        store = Store()
        async with Worker(cluster, topic, store), producing(cluster, acks="all", enable_idempotence=True) as producer:

            async def write(start, count):
                for number in range(start, start + count):
                    sent = [await producer.send(topic, b"%d" % number, partition=partition) for partition in range(3)]
                    await asyncio.gather(*sent)

            await write(0, 50)
            written = 50
            for broker in cluster.brokers[: 3 if os.environ.get("RANKWATCH_SLOW") == "1" else 1]:
                broker.kill()
                await write(written, 50)
                written += 50
                await until(lambda written=written: list(store.offsets.values()) == [written] * 3, 90)
                await loop.run_in_executor(None, cluster.start, broker)
        assert store.records == {partition: numbers(written) for partition in range(3)}
        assert store.rejected == 0

    with KafkaCluster(3) as cluster:
        asyncio.run(scenario(cluster))

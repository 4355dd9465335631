"""Applications over Kafka, and the store that they share, for tests of the transport."""

import asyncio
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaProducer

from monitor.log.faust_app import make_app
from monitor.log.kafka.settings import KafkaSettings


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
        self.app.fold_by(self.fold)

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

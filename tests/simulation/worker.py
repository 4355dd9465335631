"""One worker: the real `ClusterWorker`, `PartitionWorker`, store client and publishers, with the transport replaced."""

import asyncio
import contextlib
from functools import partial
from math import isfinite
from unittest.mock import MagicMock, patch

import structlog
from faust.types import TP

from monitor import state_lock
from monitor.engine import chunk_fold
from monitor.engine.state import quarantine
from monitor.log.errors import OffsetOutOfRange
from monitor.log.kafka.records import chunks
from monitor.log.kafka.topic_identity import TopicIdentity, check_identity
from monitor.service import process, reader, source_topic
from monitor.service import worker as cluster_worker
from monitor.service.folded_partition import FoldedPartition
from monitor.service.process import end_tasks
from monitor.service.worker import ClusterWorker
from tests.simulation.judge import MOST
from tests.simulation.log import Producer, Topics
from tests.simulation.operations import CRASHING
from tests.simulation.reader import Follower, JudgedPartition

log = structlog.get_logger()


class Worker(ClusterWorker):
    """Without the web server; `loaded` is called with each partition after its load, and how often the server had started before.

    It is not called for a partition that a rebalance has left here: nothing of it is read from the store again.
    """

    def __init__(self, settings, kafka, loaded, server):
        super().__init__(settings, kafka)
        self._loaded, self._server = loaded, server

    async def _start_web(self):
        pass

    async def _load(self, partitions):
        starts = self._server.starts
        await super()._load(partitions)
        for tp in sorted(partitions):
            self._loaded(self.partitions[tp.partition], starts)


@contextlib.contextmanager
def replaced(world):
    """Replace what is outside of a worker: the transport, and the clients of the broker."""
    rng = world.rng("producer")

    async def read_record(_settings, topic, partition, offset):
        await world.broker.request()
        some, _ = world.broker.topics[topic][partition].read(offset, 1)
        return (some[0].value or b"") if some and some[0].offset == offset else None

    @contextlib.asynccontextmanager
    async def consumer(_settings):
        await world.broker.request()
        yield None

    async def partition_bounds(_consumer, topic, partitions):
        logs = world.broker.topics[topic]
        return {number: (logs[number].first, logs[number].end) for number in partitions}

    async def topic_identity(_kafka, topic):
        await world.broker.request()
        return TopicIdentity(world.broker.ids[topic], len(world.broker.topics[topic]))

    def make_app(_url, topic, **_):
        return Transport(world, topic)

    piece_bytes = 1 if isfinite(world.most_changes) else chunk_fold._PIECE_BYTES
    with (
        patch.object(quarantine, "MOST", MOST),
        patch.object(chunk_fold, "_PIECE_BYTES", piece_bytes),
        patch.object(state_lock, "in_background", partial(in_thread, world.rng("turn"), world.turn_seconds)),
        patch.object(FoldedPartition, "most_changes", world.most_changes),
        patch.object(FoldedPartition, "_fold", judged(world, FoldedPartition._fold)),
        patch.object(chunk_fold._Folding, "change_count", change_count),
        patch.object(chunk_fold, "fold_located", crashing(chunk_fold.fold_located)),
        patch.multiple(
            reader,
            KafkaFollower=partial(Follower, world),
            KafkaProducer=partial(Producer, world.broker, rng),
            PartitionReader=partial(JudgedPartition, world),
            monotonic=world.loop.time,
        ),
        patch.multiple(
            cluster_worker,
            make_app=make_app,
            KafkaProducer=partial(Producer, world.broker, rng),
            monotonic=world.loop.time,
        ),
        patch.object(process, "gc", MagicMock()),
        patch.multiple(
            source_topic,
            Topics=partial(Topics, world.broker),
            read_record=read_record,
            record_at=read_record,
            reader=consumer,
            partition_bounds=partition_bounds,
            topic_identity=topic_identity,
        ),
        structlog.testing.capture_logs() as logs,
    ):
        world.logs = logs
        yield


async def in_thread(rng, seconds, work):
    """Work in a thread: all of it at some moment of the time that it takes, in which others have their turns."""
    if seconds is not None:
        await asyncio.sleep(rng.uniform(0, seconds))
    result = work()
    if seconds is not None:
        await asyncio.sleep(rng.uniform(0, seconds))
    return result


def change_count(folding):
    """The verdict changes of a fold so far, and each benchmark that it has touched as one more: most records change no verdict here."""
    return sum(1 + len(delta.changes) for delta in folding.deltas.values())


def crashing(fold_located):
    """The fold of scores, with a bug: those of one model crash it."""

    def fold(benchmark, located, *rest):
        if any(event.model == CRASHING for event in located.batch.events):
            raise ZeroDivisionError
        return fold_located(benchmark, located, *rest)

    return fold


def judged(world, fold):
    """The fold of a chunk; what can be read once it has failed is judged, at once: a page may ask for it."""

    async def run(folded, chunk):
        try:
            return await fold(folded, chunk)
        except (Exception, asyncio.CancelledError):
            world.judged(world.judge.check_memory)(folded)
            raise

    return run


class Transport:
    """In place of Faust and its consumer: joins the group, reads ahead by a chunk, seeks, and feeds the agent.

    Its steps have the same order as in `monitor.log.kafka.transport.Consumer`; what was read before a seek or a rebalance is of an older
    generation, and dropped.
    """

    def __init__(self, world, topic):
        self._world, self._topic = world, topic
        self._broker, self._group, self._rng = world.broker, world.group, world.rng(f"transport {world.unique()}")
        self.chunks, self.consumer, self.flow_control = object(), self, self
        self.consumer_generation_id, self._position, self._next, self._paused = 0, {}, {}, set()
        self._buffer, self._room, self._filled = [], asyncio.Event(), asyncio.Event()
        self._readable, self._free = asyncio.Event(), asyncio.Event()
        self._free.set()
        self._suspended, self._lost = False, asyncio.Event()
        self._crashed, self._tasks = asyncio.get_running_loop().create_future(), []

    def _logs(self):
        return self._broker.topics[self._topic]

    # The application

    def fold_by(self, fold):
        self._fold = fold

    async def start(self):
        self._tasks = [
            asyncio.create_task(self._guarded(work))
            for work in (self._membership, self._heartbeats, self._read, self._agent)
        ]

    async def _guarded(self, work):
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - the process fails with it
            if not self._crashed.done():
                self._crashed.set_exception(error)

    async def stop(self):
        await end_tasks(self._tasks)  # a client library may swallow a cancellation
        self._group.leave(self)

    async def wait_failed(self):
        await asyncio.shield(self._crashed)

    async def settled(self):
        await self._free.wait()

    def suspend(self):
        self._suspended = True

    # Membership

    async def _membership(self):
        while True:
            await self._revoke()
            self._lost.clear()
            numbers = await self._group.join(self)
            await self._assign({TP(self._topic, number) for number in numbers})
            await self._lost.wait()

    async def _heartbeats(self):
        while True:
            await asyncio.sleep(0.5)
            if not self._group.heartbeat(self):
                self._lost.set()

    async def _revoke(self):
        revoked = set(self._position)
        self.consumer_generation_id += 1
        self._position.clear()
        self._next.clear()
        self._paused.clear()
        self._readable.clear()
        self._drop()
        if revoked:
            try:
                async with asyncio.timeout(self._group.rebalance / 2):
                    await self.settled()
                    await self.on_revoked(revoked)
            except TimeoutError:
                log.warning("a chunk was not finished in time")

    async def _assign(self, partitions):
        await self.on_assigned(partitions)
        if not partitions:
            return
        offsets = {**await self.earliest_offsets(*partitions), **await self.stored_offsets(partitions)}
        await self._broker.request()
        for tp, offset in sorted(offsets.items()):
            if not self._logs()[tp.partition].first <= offset <= self._logs()[tp.partition].end:
                raise OffsetOutOfRange(f"offset {offset} is outside partition {tp.partition}")
        self._continue_at(dict(sorted(offsets.items())))

    # The consumer

    async def earliest_offsets(self, *partitions):
        await self._broker.request()
        return {tp: self._logs()[tp.partition].first for tp in sorted(partitions)}

    async def highwaters(self, *partitions):
        await self._broker.request()
        return {tp: self._logs()[tp.partition].end for tp in sorted(partitions)}

    def topic_partitions(self, _topic):
        return len(self._logs())

    async def check_topic(self):
        await self._broker.request()
        check_identity(self._topic, self.topic_folded, TopicIdentity(self._broker.ids[self._topic], len(self._logs())))

    def highwater(self, tp):
        return self._logs()[tp.partition].end if tp in self._position else None

    def has_read_on(self, tp):
        return self._position.get(tp, 0) > self._next.get(tp, 0)

    async def seek_wait(self, partitions):
        known = {tp: offset for tp, offset in partitions.items() if tp in self._position}
        if known:
            self._continue_at(known)

    def pause_partitions(self, tps):
        self._paused |= tps

    def resume_partitions(self, tps):
        self._paused -= tps
        self._broker.wake()

    def _continue_at(self, offsets):
        self.consumer_generation_id += 1
        self._next.update(offsets)
        self._position.update(self._next)
        self._drop()
        self._readable.set()

    def _drop(self):
        self._buffer.clear()
        self._room.set()
        self._broker.wake()

    # From the log to the agent

    async def _read(self):
        """Fetch while the buffer has room for another chunk."""
        while True:
            await self._readable.wait()
            generation = self.consumer_generation_id
            reads = sorted((tp, position) for tp, position in self._position.items() if tp not in self._paused)
            tps = [tp for tp, position in reads if position < self._logs()[tp.partition].end]
            if not tps:
                await self._broker.changed()
                continue
            tp = self._rng.choice(tps)
            start, partition = self._position[tp], self._logs()[tp.partition]
            await self._broker.request()
            if generation != self.consumer_generation_id:
                continue
            if start < partition.first:
                raise OffsetOutOfRange(f"offset {start} is outside partition {tp.partition}")
            records, end = partition.read(start, self._rng.choice((1, 2, 3, 5, 10, 40)))
            await self.check_topic()
            if generation != self.consumer_generation_id:
                continue
            if not records:
                await self._broker.changed()
                continue
            self._position[tp] = end
            for chunk in chunks(
                records, tp.partition, start, end, self._rng.choice((200, 1000, 1 << 20)), self.origin_key
            ):
                while len(self._buffer) >= 2 and generation == self.consumer_generation_id:
                    self._room.clear()
                    await self._room.wait()
                if generation != self.consumer_generation_id:
                    break
                self._buffer.append((tp, chunk))
                self._filled.set()

    async def _agent(self):
        await self._fold(self._stream())

    async def _stream(self):
        while True:
            while not self._buffer or self._suspended:
                self._filled.clear()
                await self._filled.wait()
            tp, chunk = self._buffer.pop(0)
            self._room.set()
            self._next[tp] = chunk.end
            self._free.clear()
            yield chunk
            self._free.set()

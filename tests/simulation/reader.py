"""One reader: the real `Reader`, with what fetches from the topic replaced, and every partition judged."""

import asyncio
from types import SimpleNamespace

from monitor.log.errors import OffsetOutOfRange
from monitor.log.kafka.records import chunks
from monitor.log.kafka.topic_identity import TopicIdentity, check_identity
from monitor.service import reader
from monitor.service.followed_partition import PartitionReader


class Reader(reader.Reader):
    """Without the web server."""

    async def _start_web(self):
        self._writes = SimpleNamespace(key=None)  # nobody posts here

    @property
    def is_current(self):
        """Whether it shows the whole log, and knows that it is stored."""
        ends = self._log_ends()
        return self.refusal() is None and all(
            folded.partition.off == folded.committed == ends.get(folded.number) for folded in self._folded()
        )


class JudgedPartition(PartitionReader):
    """Judged after each load, fold of a chunk or of a part of it, and comparison with the store."""

    def __init__(self, world, *arguments, **options):
        super().__init__(*arguments, **options)
        self._world = world

    async def load(self):
        starts = self._world.server.starts
        await super().load()
        self._world.judged(self._world.judge.check_loaded)(self, starts)

    def _keep(self, chunk, delta):
        agrees = super()._keep(chunk, delta)
        if agrees:
            self._world.judged(self._world.judge.check_memory)(self)
        return agrees

    def compare(self, stored):
        reason = super().compare(stored)
        self._world.judged(self._world.judge.check_confirmed)(self)
        return reason


class Follower:
    """In place of `KafkaFollower`: reads all partitions from offsets of its own."""

    def __init__(self, world, _settings, topic, partitions, folded, key, compare):
        self._loop, self._broker, self._rng = world.loop, world.broker, world.rng(f"follower {world.unique()}")
        self._topic, self._folded, self._key, self._compare = topic, folded, key, compare
        self._positions, self._ends, self._sought = {}, {}, set()

    async def __aenter__(self):
        await self._broker.request()
        return self

    async def __aexit__(self, *_):
        pass

    def _logs(self):
        return self._broker.topics[self._topic]

    async def first_offsets(self):
        await self._broker.request()
        return {number: log.first for number, log in enumerate(self._logs())}

    async def check_topic(self):
        await self._broker.request()
        check_identity(self._topic, self._folded, TopicIdentity(self._broker.ids[self._topic], len(self._logs())))

    def begin(self, offsets):
        self._positions = dict(offsets)

    def seek(self, partition, offset):
        self._positions[partition] = offset
        self._sought.add(partition)

    def end(self, partition):
        end, at = self._ends.get(partition, (None, 0))
        return None if end is None else (end, self._loop.time() - at)

    async def read(self, partitions):
        self._sought.clear()
        number = self._rng.choice(sorted(partitions))
        await self._broker.request()
        start, log = self._positions[number], self._logs()[number]
        if not log.first <= start <= log.end:
            raise OffsetOutOfRange(f"offset {start} is outside partition {number}", number)
        records, end = log.read(start, self._rng.choice((1, 2, 3, 5, 10, 40)))
        await self.check_topic()
        self._ends |= {each: (log.end, self._loop.time()) for each, log in enumerate(self._logs())}
        if not records:
            await asyncio.sleep(self._rng.uniform(0, 0.2))
            return []
        if self._rng.random() < 0.1:  # as after a reconnect
            await self._compare(number)
            if number in self._sought:
                return []
        self._positions[number] = end
        return list(chunks(records, number, start, end, self._rng.choice((200, 1000, 1 << 20)), self._key))

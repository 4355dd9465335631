"""A broker: topics with partitions and retention, a consumer group, and what producers and administrators see of them."""

import asyncio
from typing import NamedTuple

from monitor.publish.topics import Topic as Description


class Record(NamedTuple):
    offset: int
    value: bytes | None
    headers: tuple
    key: bytes | None = None


class PartitionLog:
    """The records of one partition, from `first` to before `end`."""

    def __init__(self):
        self.records, self.first, self.end = [], 0, 0

    def append(self, value, headers=(), gap=0):
        """Add a record, after offsets that hold none (markers of transactions)."""
        record = Record(self.end + gap, value, tuple(headers))
        self.records.append(record)
        self.end = record.offset + 1
        return record

    def read(self, start, count):
        """Some records from an offset on, and where the next read begins."""
        at = next((k for k, record in enumerate(self.records) if record.offset >= start), len(self.records))
        some = self.records[at : at + count]
        end = self.end if at + count >= len(self.records) else self.records[at + count].offset
        return some, end

    def expire(self, first):
        """Delete the records before an offset."""
        self.first = max(self.first, min(first, self.end))
        self.records = [record for record in self.records if record.offset >= self.first]


class Broker:
    """All topics; `on_append` is called with each (topic, partition, record).

    Attributes
    ----------
    lost_acks : int
        So many batches are still acknowledged too late: their producer sends them again, and they are in the log twice.
    kills : list of (str, callable)
        Called, one for each batch of that topic, ahead of its arrival.
    """

    def __init__(self, rng, on_append):
        self._rng, self._on_append, self._waiting = rng, on_append, []
        self.topics, self.ids = {}, {}
        self.lost_acks, self.kills, self.slow, self.ready = 0, [], 1.0, asyncio.Event()
        self.ready.set()

    def create(self, name, partitions):
        """Create a topic; one of the same name is deleted."""
        self.topics[name] = [PartitionLog() for _ in range(partitions)]
        self.ids[name] = f"{name}-{len(self.ids)}-{self.ids.get(name, '')}"
        self.wake()

    def append(self, topic, partition, value, headers=(), gap=0):
        record = self.topics[topic][partition].append(value, headers, gap)
        self._on_append(topic, partition, record)
        self.wake()

    def wake(self):
        """Let waiting fetches look again."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    def changed(self):
        """A future that is done when a record has come."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        return future

    async def request(self):
        """Take the time of a request; wait while the broker is down."""
        await asyncio.sleep(self._rng.uniform(0.0005, 0.008) * self.slow)
        await self.ready.wait()

    async def produce(self, topic, partition, messages):
        """Append a batch, in order."""
        if self.kills and self.kills[0][0] == topic:
            self.kills.pop(0)[1]()
        await self.request()
        again = self.lost_acks > 0 and topic != ""
        for _ in range(2 if again else 1):
            for message in messages:
                self.append(topic, partition, message.value, message.headers)
        if again:
            self.lost_acks -= 1
        await self.request()


class Producer:
    """In place of `KafkaProducer`: batches of a partition one after the other, each acknowledged."""

    def __init__(self, broker, rng, options, **_):
        self._broker, self._rng, self.addresses = broker, rng, options["bootstrap_servers"]

    async def __aenter__(self):
        await self._broker.request()
        return self

    async def __aexit__(self, *_):
        pass

    async def partitions(self, topic):
        return len(self._broker.topics[topic])

    async def answers(self, seconds=2.0):
        return self._broker.ready.is_set()

    async def deliver(self, topic, messages):
        by_partition = {}
        for message in messages:
            by_partition.setdefault(message.partition, []).append(message)
        await asyncio.gather(*(self._deliver(topic, *item) for item in by_partition.items()))

    async def _deliver(self, topic, partition, messages):
        while messages:
            size = self._rng.choice((1, 2, 5, 50))
            await self._broker.produce(topic, partition, messages[:size])
            messages = messages[size:]


class Topics:
    """In place of the administrator's client."""

    def __init__(self, broker, options):
        self._broker = broker

    async def __aenter__(self):
        await self._broker.request()
        return self

    async def __aexit__(self, *_):
        pass

    async def find(self, name):
        await self._broker.request()
        logs = self._broker.topics.get(name)
        return None if logs is None else Description(name, len(logs), 1, (), {})

    require = find

    async def provide(self, name, like, **_):
        if name not in self._broker.topics:
            self._broker.create(name, like.partitions)
        return await self.find(name)

    async def brokers(self):
        return 1

    async def cluster(self):
        return "simulated"


class Group:
    """The consumer group: members that keep silent for too long lose their partitions."""

    TICK = 0.25

    def __init__(self, loop, rng, partitions, session=6.0, rebalance=12.0):
        self._loop, self._rng, self._partitions = loop, rng, partitions
        self.session, self.rebalance = session, rebalance
        self._heard, self._joining, self._since = {}, {}, None
        loop.call_later(self.TICK, self._tick)

    def join(self, member):
        """Ask for partitions: a future of them, which is done when all members have asked."""
        self._heard[member] = self._loop.time()
        future = self._joining[member] = self._loop.create_future()
        self.begin()
        return future

    def begin(self):
        """Let all members join again."""
        if self._since is None:
            self._since = self._loop.time()

    def heartbeat(self, member):
        """Whether the member still has its partitions."""
        if member not in self._heard:
            return False
        self._heard[member] = self._loop.time()
        return self._since is None or member in self._joining

    def leave(self, member):
        """End a membership."""
        self._heard.pop(member, None)
        self._joining.pop(member, None)
        self.begin()

    def _tick(self):
        self._loop.call_later(self.TICK, self._tick)
        now = self._loop.time()
        for member, heard in list(self._heard.items()):
            late = self._since is not None and now - self._since > self.rebalance and member not in self._joining
            if late or now - heard > self.session:
                self.leave(member)
        if self._since is not None and self._joining and self._joining.keys() == self._heard.keys():
            self._assign()

    def _assign(self):
        members, self._joining, self._since = list(self._joining.items()), {}, None
        self._rng.shuffle(members)
        for place, (_, future) in enumerate(members):
            if not future.done():
                future.set_result(list(range(self._partitions))[place :: len(members)])

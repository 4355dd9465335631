"""A reader that loads a partition again while it checks what it has just fetched: these records do not follow the loaded state."""

from types import SimpleNamespace

from monitor.log.kafka.follower import KafkaFollower


class Consumer:
    """Has fetched the records of two partitions; a seek moves the position, as in aiokafka."""

    def __init__(self):
        self.positions = {}

    def assign(self, tps):
        self.tps = tps

    def seek(self, tp, offset):
        self.positions[tp] = offset

    async def getmany(self, *tps, **_):
        fetched = {}
        for tp in tps:
            at = self.positions[tp]
            fetched[tp] = [
                [SimpleNamespace(offset=k, value=b"%d" % k, headers=(), key=None) for k in range(at, at + 3)]
            ]
            self.positions[tp] = at + 3
        return fetched

    async def position(self, tp):
        return self.positions[tp]


async def test_records_that_were_fetched_before_a_seek_are_dropped():
    follower = KafkaFollower(None, "events", 2, None, None, None)
    follower._kafka = Consumer()
    follower.begin({0: 10, 1: 20})

    async def confirm(*_):
        follower.seek(0, 4)

    follower._senders = SimpleNamespace(confirm=confirm)
    chunks = await follower.read([0, 1])
    assert [(chunk.partition, chunk.start, chunk.end, chunk.records) for chunk in chunks] == [
        (1, 20, 23, [b"20", b"21", b"22"])
    ]

    async def agree(*_):
        pass

    follower._senders = SimpleNamespace(confirm=agree)
    chunks = await follower.read([0])
    assert [(chunk.start, chunk.end, chunk.records) for chunk in chunks] == [(4, 7, [b"4", b"5", b"6"])]

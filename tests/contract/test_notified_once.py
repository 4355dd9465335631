"""Nobody is notified twice of what a running worker has sent, also where the server of the state was emptied meanwhile."""

import asyncio
import uuid
from types import SimpleNamespace

import pytest

from monitor.notify.states import Due
from monitor.service.owned_partition import LogSpan, Outlets, PartitionWorker
from monitor.service.state_notices import StateNotices
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded import EmbeddedValkey
from schemas.records.chunks import Chunk
from tests.unit.service.test_partition_reader import LOG


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for the module."""
    valkey = EmbeddedValkey(tmp_path_factory.mktemp("valkey"))
    asyncio.run(valkey.start())
    yield valkey
    asyncio.run(valkey.stop())


@pytest.fixture
async def store(server):
    async with await RedisStore.open(server.options, f"topic-{uuid.uuid4().hex}") as store:
        yield store


class Receiver:
    """A publisher, or a notifier, that keeps what it gets."""

    def __init__(self, name):
        self.name, self.got = name, []
        self.target = self

    async def publish(self, changes):
        self.got += [change.id for change in changes]

    async def announce(self, notifications):
        self.got += notifications


async def fold(worker, end):
    start = worker.partition.off
    assert await worker.fold(Chunk(0, start, end, range(start, end), LOG[start:end]))
    for relay in worker._relays:
        await relay.drain()


async def keep(_partition, letters):
    return len(letters)


@pytest.mark.fault(
    "readers", "`FLUSHALL` after verdicts were sent", "people are notified once; subscribers get the same ids again"
)
async def test_of_a_verdict_that_is_folded_again_after_a_loss(store):
    topic, people = Receiver("kafka"), Receiver("slack")
    worker = PartitionWorker(0, store, Outlets([topic], [people]), keep, LogSpan(end=350))
    await worker.load()
    await fold(worker, 350)
    assert (len(topic.got) > 0, people.got) == (True, []), "what the log has at the start is no news"
    await fold(worker, 700)
    sent = list(people.got)
    assert sent
    await store._connection.client.flushall()
    assert await worker.load_if_lost()
    assert worker.partition.off == 0
    await fold(worker, 700)
    assert people.got == sent
    assert sorted(topic.got) == sorted(2 * list(dict.fromkeys(topic.got))), "subscribers drop ids that they have"
    assert await store.outbox_length(0) == 0
    await fold(worker, len(LOG))
    assert people.got[: len(sent)] == sent
    assert len(set(people.got)) == len(people.got) > len(sent), "what is new is sent"


@pytest.mark.fault("readers", "`FLUSHALL` while a benchmark has no verdict", "people are notified once")
async def test_of_a_state_that_lasts(store):
    people = Receiver("slack")

    def look(_origin, _boards, noted):
        return [] if noted.get("held:b") == "7" else [Due("held:b", "7", "b is held")]

    folded = PartitionWorker(0, store, Outlets([], [people]), keep, LogSpan())
    await folded.load()
    notices = StateNotices(people, SimpleNamespace(look=look), store, lambda: [folded])
    for _ in range(2):
        await notices._send(folded)
        await notices._send(folded)
        await store._connection.client.flushall()
    await notices._send(folded)
    assert people.got == [Due("held:b", "7", "b is held").notification]
    assert await store.notes(0, "slack") == {"held:b": "7"}, "another process is to know it, too"

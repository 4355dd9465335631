"""A reader of the stored state writes nothing, and loads a state that changes all the time."""

import asyncio
import copy
import itertools
import uuid

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.log.kafka.settings import KafkaSettings
from monitor.service import reader as service_reader
from monitor.service.reader import Reader
from monitor.settings import Settings
from monitor.store import state_reader
from monitor.store.errors import StateRefused, StoreError
from monitor.store.layout import origin_secret_key
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded import EmbeddedValkey
from monitor.store.state_reader import StateReader
from schemas.records.chunks import Chunk
from tests.unit.service.test_partition_reader import LOG, shown

READER = ("on", ">secret", "~*", "+@read", "+@connection", "+@transaction", "+info")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """One server for the module."""
    valkey = EmbeddedValkey(tmp_path_factory.mktemp("valkey"))
    asyncio.run(valkey.start())
    yield valkey
    asyncio.run(valkey.stop())


@pytest.fixture
async def stores(server):
    """A writer, and a reader whose user may only read."""
    topic = f"topic-{uuid.uuid4().hex}"
    async with await RedisStore.open(server.options, topic) as writer:
        await writer._connection.client.execute_command("ACL", "SETUSER", "reader", *READER)
        login = {"username": "reader", "password": "secret"}
        async with await StateReader.open(server.options | login, topic) as reader:
            yield writer, reader


async def commit(writer, partition, size):
    start = partition.off
    end = min(len(LOG), start + size)
    await writer.commit(partition.fold(Chunk(0, start, end, range(start, end), LOG[start:end])), at=7.0)


async def test_a_user_who_may_only_read_loads_what_was_written(stores):
    writer, reader = stores
    partition = Partition()
    assert (await reader.load(0)).off == 0
    assert await reader.find_origin_secret() is None
    (position,) = await reader.positions([0])
    assert position == (0, None, (), None)
    await writer.bind_log(0, "this log")
    secret = (await writer.origin_key("this log")).secret
    for _ in range(3):
        await commit(writer, partition, 250)
    stored = await reader.load(0)
    assert shown(Partition.restore(stored)) == shown(partition)
    assert await reader.find_origin_secret() == secret
    first, other = await reader.positions([0, 1])
    assert (first.off, first.last, first.log) == (750, stored.last, "this log")
    assert other.off == 0
    changes = partition.benchmarks["b"].changes
    assert changes
    assert set((await reader.commit_times(0, ["b"]))["b"].changes) == set(changes)
    await reader.check_log(0, "this log")
    with pytest.raises(StateRefused, match="belongs to another log"):
        await reader.check_log(0, "that log")
    with pytest.raises(StoreError, match="forbids"):
        await reader._connection.fetch([("SET", "x", "y")])


async def test_a_state_that_every_attempt_finds_changed_is_loaded_in_one_transaction(stores, monkeypatch):
    writer, reader = stores
    partition, folds = Partition(), {}
    fetch = reader._connection.fetch

    async def write():
        await commit(writer, partition, 20)
        folds[partition.off] = shown(copy.deepcopy(partition))

    async def fetch_while_it_is_written(calls):
        await write()
        return await fetch(calls)

    await commit(writer, partition, 100)
    monkeypatch.setattr(reader._connection, "fetch", fetch_while_it_is_written)
    stored = await reader.load(0)
    assert stored.off > 100 + 20 * 5, "it was written between any two of its commands"
    assert shown(Partition.restore(stored)) == folds[stored.off]


async def test_new_models_before_the_transaction_are_loaded_by_the_next_attempt(stores, monkeypatch):
    writer, reader = stores
    partition = Partition()
    transact, growth = reader._connection.transact, itertools.count()

    async def transact_after_a_model_came(calls):
        if next(growth) < 2:
            start = partition.off
            record = b'{"benchmark":"b","item_id":"1","model":"new %d","score":1}' % start
            await writer.commit(partition.fold(Chunk(0, start, start + 1, [start], [record])))
        return await transact(calls)

    monkeypatch.setattr(state_reader, "_ATTEMPTS_IN_PARTS", 0)
    await commit(writer, partition, 100)
    monkeypatch.setattr(reader._connection, "transact", transact_after_a_model_came)
    assert shown(Partition.restore(await reader.load(0))) == shown(partition)
    assert next(growth) == 3


async def test_a_lost_signing_key_is_written_back_and_one_that_another_worker_has_drawn_is_taken(stores):
    writer, reader = stores
    key = await writer.origin_key("this log")
    drawn = key.secret
    place = origin_secret_key(writer.topic)
    await writer._connection.client.delete(place)
    await writer.keep_origin_key()
    assert await reader.find_origin_secret() == key.secret == drawn
    await writer._connection.client.set(place, "another")
    await writer.load(0)
    assert key.secret == b"another", "everybody who signs or verifies shares this object"


async def test_a_reader_that_starts_without_a_signing_key_says_so(stores, monkeypatch):
    """It said that no worker had ever used this Redis, which a flush made false."""
    writer, store = stores
    reader = Reader(Settings(topic=writer.topic), KafkaSettings(addresses="nobody:1"))
    reader.store, find, seen = store, store.find_origin_secret, []

    async def look():
        seen.append((reader.refusal(), reader._key_missing._value.get()))
        if len(seen) == 2:
            await writer.origin_key("this log")
        return await find()

    monkeypatch.setattr(store, "find_origin_secret", look)
    monkeypatch.setattr(service_reader, "_WAIT_SECONDS", 0)
    assert await reader._wait_for_secret() == await find()
    assert seen[0][1] == reader._key_missing._value.get() == 0
    assert seen[1] == (f"This reader is not ready: waiting for a worker: {store.no_origin_secret}", 1)


async def test_a_state_that_begins_again_after_a_loss_is_bound_to_its_log(stores):
    """A topic that was created again would have been folded over it, where its last record was the same."""
    writer, reader = stores
    await writer.bind_log(0, "this log")
    await commit(writer, Partition(), 250)
    await writer._connection.client.flushall()
    await writer.load(0)
    (position,) = await reader.positions([0])
    assert (position.off, position.log) == (0, "this log")
    with pytest.raises(StateRefused, match="belongs to another log"):
        await writer.bind_log(0, "that log")

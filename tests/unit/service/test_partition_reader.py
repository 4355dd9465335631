"""A reader comes to the state of the worker from any stored offset, and notices whatever the store does not confirm."""

import asyncio
import copy
import json
import random

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.changes import record_digest
from monitor.serve.report_cache import ReportCache
from monitor.service import followed_partition
from monitor.service.followed_partition import PartitionReader
from monitor.service.freshness import Freshness
from monitor.store.layout import CommitTimes
from monitor.store.state_reader import StoredPosition
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import Chunk
from schemas.records.operations import encode_release
from tests.memory_store import MemoryStore


class Store(MemoryStore):
    """A store for readers, with what a worker has committed."""

    def __init__(self):
        super().__init__()
        self.times = {}

    async def load(self, _partition):
        return copy.deepcopy(self.state)

    async def commit_times(self, _partition, names=None):
        return {name: self.times.get(name, CommitTimes()) for name in (self.times if names is None else names)}

    def position(self):
        return StoredPosition(self.state.off, self.state.last, tuple(map(tuple, self.state.gaps)), None)


def records(count, seed=5, models=5):
    """A log: a declaration, then events with repeats, conflicts and records that cannot be read."""
    rng = random.Random(seed)
    log = [json.dumps({"declare": "b", "order": {"policy": "trusted"}}).encode()]
    for k in range(count):
        model = rng.randrange(models)
        score = int(rng.random() < 0.2 + 0.15 * model)
        text = json.dumps(
            {"benchmark": "bc"[k % 7 == 0], "item_id": str(rng.randrange(99)), "model": f"m{model}", "score": score}
        )
        log.append(b"{" if rng.random() < 0.01 else text.encode())
    return log


LOG = records(900)


def chunk(start, end, log=LOG):
    return Chunk(0, start, end, range(start, end), log[start:end])


def folded(end, log=LOG):
    """The fold of a prefix of the log."""
    partition = Partition()
    partition.fold(chunk(0, end, log))
    return partition


def shown(partition):
    """Everything that a reader shows of a partition."""
    cache = ReportCache(lambda: [PartitionView(partition)])
    changes = {name: {k: v.as_dict() for k, v in b.changes.items()} for name, b in partition.benchmarks.items()}
    return cache.report("all").as_json().decode(), changes, partition.counters


def worker(store, start, end, log=LOG, size=100):
    """Fold and commit the log from the stored offset on, as a worker does."""
    partition = Partition.restore(copy.deepcopy(store.state)) if store.state.off else Partition()
    assert partition.off == start
    for begin in range(start, end, size):
        store.commit(partition.fold(chunk(begin, min(end, begin + size), log)))


async def reader_at(store):
    reader = PartitionReader(0, store)
    await reader.load()
    return reader


@pytest.mark.parametrize("seed", range(6))
async def test_a_reader_shows_the_fold_of_a_prefix_wherever_it_begins_and_however_it_reads(seed):
    rng, store = random.Random(seed), Store()
    at = rng.randrange(1, 600)
    worker(store, 0, at, size=rng.choice([1, 37, 600]))
    reader = await reader_at(store)
    while reader.partition.off < len(LOG):
        start = reader.partition.off
        assert await reader.fold(chunk(start, min(len(LOG), start + rng.randint(1, 120))))
        if rng.random() < 0.3:
            assert shown(reader.partition) == shown(folded(reader.partition.off))
        if store.state.off < len(LOG) and rng.random() < 0.7:  # the worker is now ahead, now behind
            worker(
                store, store.state.off, min(len(LOG), store.state.off + rng.randint(1, 150)), size=rng.randint(1, 150)
            )
            assert reader.compare(store.position()) is None
            assert reader.committed == min(reader.partition.off, store.state.off)
    assert shown(reader.partition) == shown(folded(len(LOG)))


async def test_what_the_store_lost_is_unconfirmed_and_is_loaded_again_once_it_is_back():
    store = Store()
    worker(store, 0, 300)
    before = copy.deepcopy(store.state)
    worker(store, 300, 500)
    reader = await reader_at(store)
    assert await reader.fold(chunk(500, 600))
    assert reader.compare(store.position()) is None
    assert (reader.committed, reader.partition.off) == (500, 600)
    store.state = before
    assert reader.compare(store.position()) is None
    assert (reader.committed, reader.partition.off) == (300, 600)
    assert shown(reader.partition) == shown(folded(600)), "the log is the truth"
    worker(store, 300, 450)
    assert reader.compare(store.position()) is None
    worker(store, 450, 500)
    assert "the store has written again what it had lost" in reader.compare(store.position())
    await reader.load()
    assert reader.compare(store.position()) is None
    assert shown(reader.partition) == shown(folded(500))


OTHER = [*LOG[:520], *records(400, seed=6)]
"""The log after the brokers lost its end, and got other records in its place."""


async def test_records_that_the_brokers_lost_are_noticed_when_the_worker_is_past_them():
    store = Store()
    worker(store, 0, 500)
    reader = await reader_at(store)
    assert await reader.fold(chunk(500, 560))
    worker(store, 500, 520)
    assert reader.compare(store.position()) is None
    worker(store, 520, 540, OTHER)
    assert "the log lost records that this reader has folded" in reader.compare(store.position())


async def test_a_worker_that_is_ahead_on_another_log_is_noticed_at_its_last_record():
    store = Store()
    worker(store, 0, 500)
    reader = await reader_at(store)
    worker(store, 500, 540, OTHER)
    assert reader.compare(store.position()) is None, "its last record is not read yet"
    assert await reader.fold(chunk(500, 530))
    assert not await reader.fold(chunk(530, 560))


async def test_a_gap_that_the_worker_accepted_is_loaded():
    store = Store()
    worker(store, 0, 500)
    reader = await reader_at(store)
    partition = Partition.restore(copy.deepcopy(store.state))
    store.commit(partition.skip(550))
    assert "a gap" in reader.compare(store.position())
    await reader.load()
    assert reader.compare(store.position()) is None
    assert reader.partition.benchmarks["b"].gaps


async def test_a_benchmark_that_only_the_worker_has_set_aside_is_loaded():
    store = Store()
    worker(store, 0, 500)
    reader = await reader_at(store)
    assert await reader.fold(chunk(500, 700))
    partition = Partition.restore(copy.deepcopy(store.state))
    assert partition.set_aside(chunk(500, 501), ZeroDivisionError())
    store.commit(partition.fold(chunk(500, 600)))
    (suspect,) = partition.quarantine
    known = [(suspect.benchmark, suspect.since)]
    assert shown(reader.partition) != shown(partition)
    assert reader.compare(store.position()) is None, "the offsets show nothing of it"
    assert "has set b aside" in reader.compare_set_aside(known)
    await reader.load()
    assert reader.compare_set_aside(known) is None
    assert await reader.fold(chunk(600, 700))
    assert "records from offset 500 on are set aside" in shown(reader.partition)[0]
    # It is known after its release too, and a later one is read ahead of its first record.
    release = [*LOG[:700], encode_release("b")]
    assert await reader.fold(chunk(700, 701, release))
    assert not list(reader.partition.quarantine)
    assert reader.compare_set_aside([*known, ("b", 701)]) is None


async def test_only_so_much_is_kept_for_comparison_and_the_rest_is_loaded_again(monkeypatch):
    monkeypatch.setattr(followed_partition, "KEPT_BYTES", sum(map(len, LOG[:100])))
    store = Store()
    worker(store, 0, 300)
    reader = await reader_at(store)
    for start in range(300, 800, 50):
        assert await reader.fold(chunk(start, start + 50))
    assert sum(len(kept.records) for kept in reader._unconfirmed) <= 150
    worker(store, 300, 400)
    assert reader.compare(store.position()) is None
    worker(store, 400, 800)
    assert "far ahead" in reader.compare(store.position())


async def test_a_reader_that_catches_up_with_a_store_keeps_its_state(monkeypatch):
    """It folded more than it keeps between two comparisons, and took itself for far ahead of a store that it was far behind."""
    monkeypatch.setattr(followed_partition, "KEPT_BYTES", sum(map(len, LOG[:100])))
    store = Store()
    worker(store, 0, 300)
    reader = await reader_at(store)
    worker(store, 300, 900)
    assert reader.compare(store.position()) is None
    for start in range(300, 800, 50):
        assert await reader.fold(chunk(start, start + 50))
    assert reader.compare(store.position()) is None


async def test_commit_times_are_those_of_the_store_once_it_has_them():
    store = Store()
    worker(store, 0, 100)
    reader = await reader_at(store)
    assert await reader.fold(chunk(100, 900))
    changes = set(reader.partition.benchmarks["b"].changes)
    assert changes
    assert changes <= set(reader.commit_times["b"].changes)
    store.times = {"b": CommitTimes(7.0, dict.fromkeys(changes, 6.0))}
    worker(store, 100, 899)
    assert reader.compare(store.position()) is None
    await reader.load_times()
    assert 6.0 not in reader.commit_times["b"].changes.values(), "the store has not got there"
    worker(store, 899, 900)
    assert reader.compare(store.position()) is None
    await reader.load_times()
    assert {reader.commit_times["b"].changes[change] for change in changes} == {6.0}


async def test_nobody_reads_a_state_between_two_offsets():
    store = Store()
    worker(store, 0, 100)
    reader = await reader_at(store)
    cache = ReportCache(lambda: [PartitionView(reader.partition)], state=reader._state)
    expected = {off: shown(folded(off))[0] for off in (100, 500, 900)}
    seen = set()

    async def read():
        while reader.partition.off < 900:
            off, text = await cache.read(lambda: (reader.partition.off, shown(reader.partition)[0]))
            assert text == expected[off]
            seen.add(off)
            await asyncio.sleep(0)

    reading = asyncio.create_task(read())
    await asyncio.sleep(0)
    for start in (100, 500):
        await reader.fold(chunk(start, start + 400))
        await asyncio.sleep(0)
    await reading
    assert {100, 500} <= seen


def test_the_digest_of_the_last_record_is_that_of_the_store():
    assert folded(10).off == 10
    store = Store()
    worker(store, 0, 10)
    assert store.position().last == (9, record_digest(LOG[9]))


def test_a_state_is_as_old_as_the_last_end_that_every_partition_has_reached():
    freshness = Freshness([0, 1])
    freshness.see(0, 10, at=100.0)
    freshness.see(1, 20, at=100.0)
    freshness.fold({0: 10, 1: 19})
    assert freshness.age(101.0) == float("inf")
    freshness.fold({1: 25})
    assert freshness.age(101.0) == 1.0
    for k in range(10_000):
        freshness.see(0, 11 + k, at=101.0 + k)
    freshness.see(1, 25, at=11_100.0)
    freshness.fold({0: 200, 1: 25})
    assert freshness.age(11_100.0) == 11_100.0 - 290.0

"""A chunk is folded while what the one before changed is on its way into the store: never more, and never out of order."""

import asyncio
import copy
import json
import random
import threading

import pytest
from structlog.testing import capture_logs

from monitor.engine import chunk_fold, decoder
from monitor.notices import Notices
from monitor.service import owned_partition
from monitor.service.owned_partition import OUTBOX_CHANGES, Outlets, PartitionWorker
from monitor.state_lock import StateLock, StateTorn
from monitor.store.errors import StaleState, StateRefused, StoreUnavailable
from schemas.records.chunks import Chunk
from schemas.records.operations import encode_release
from tests.commands import PATIENCE
from tests.memory_store import MemoryStore


class SlowStore(MemoryStore):
    """Commits take a few turns of the loop, or until they are let through; some find that the state has moved, some find nobody."""

    def __init__(self, choice=None, stale=0.0):
        super().__init__()
        self.choice, self.stale = choice or random.Random(1), stale
        self.open = asyncio.Event()
        self.open.set()
        self.begun, self.running, self.first = [], 0, asyncio.Event()
        self.fault = None
        self.snapshots, self.asked = [], 0

    async def load(self, _partition):
        assert not self.running, "a state is not loaded while a commit of this worker may still change it"
        await asyncio.sleep(0)
        return copy.deepcopy(self.state)

    async def commit_times(self, _partition):
        return {}

    async def commit(self, delta, _at):
        self.begun.append((delta.expected, delta.off))
        self.first.set()
        self.running += 1
        assert self.running == 1
        try:
            await self.open.wait()
            for _ in range(self.choice.randrange(6)):
                await asyncio.sleep(0)
            if self.fault is not None:
                raise self.fault
            if self.choice.random() < self.stale:
                raise StaleState(0, delta.expected, self.state.off, "another")
            assert delta.expected == self.state.off
            super().commit(delta)
        finally:
            self.running -= 1

    async def save_pairs(self, _partition, _key, snapshot):
        self.snapshots.append((snapshot.off, self.state.off))
        return True

    async def relayed(self, _partition, _publisher):
        self.asked += 1
        return "0-0"

    async def read_outbox(self, *_):
        return []

    async def outbox_length(self, _partition):
        return 0


class Nobody:
    name = "nobody"

    async def publish(self, _changes):
        pass

    async def keep(self, _partition, letters):
        return len(letters)


def event(number, model="a"):
    return json.dumps({"benchmark": "b", "item_id": str(number // 2), "model": model + str(number % 2), "score": 1})


def chunk(start, size):
    return Chunk(
        0, start, start + size, range(start, start + size), [event(k).encode() for k in range(start, start + size)]
    )


async def loaded(store, most=OUTBOX_CHANGES, **options):
    owned = PartitionWorker(0, store, Outlets([Nobody()], most=most), Nobody().keep, **options)
    await owned.load()
    return owned


def always():
    return True


async def full(_partition):
    return 10**9


async def test_the_next_chunk_is_folded_while_a_commit_is_under_way_and_stored_after_it():
    store = SlowStore()
    owned = await loaded(store)
    store.open.clear()
    assert await owned.fold(chunk(0, 10), always)
    assert (owned.partition.off, owned.committed, store.begun) == (10, 0, [(0, 10)])
    second = asyncio.create_task(owned.fold(chunk(10, 10), always))
    async with asyncio.timeout(60):
        while owned.partition.off < 20:  # noqa: ASYNC110 - nothing announces a fold that is not stored
            await asyncio.sleep(0.001)
    assert owned.partition.off == 20
    assert store.begun == [(0, 10)], "what a chunk changed waits until the one before is acknowledged"
    store.open.set()
    assert await second
    await owned.moved_beyond(20)
    assert store.begun == [(0, 10), (10, 20)]


class Growing(SlowStore):
    """A store that announces the changes of a commit once it has ended."""

    announced = 0

    async def commit(self, delta, at):
        await super().commit(delta, at)
        self.announced += delta.change_count

    async def outbox_length(self, _partition):
        return self.announced


def decided(board, start):
    """A chunk that decides a board's pair."""
    scores = [
        {"benchmark": board, "item_id": str(k), "model": m, "score": int(m == "a")} for k in range(60) for m in "ab"
    ]
    records = [json.dumps(each).encode() for each in ({"declare": board, "order": "trusted"}, *scores)]
    return Chunk(0, start, start + 121, range(start, start + 121), records)


async def test_the_publishers_of_a_filling_outbox_are_asked_once_a_minute():
    now, store = [0.0], Growing()
    owned = await loaded(store, most=3, notices=Notices(clock=lambda: now[0]))
    asked = []
    with capture_logs() as lines:
        for number in range(4):
            await owned.fold(decided(f"b{number}", 121 * number))
            asked.append(store.asked)
            now[0] += 31.0
    assert asked == [asked[0], asked[0] + 1, asked[0] + 1, asked[0] + 2]
    fills, waits, again = (line for line in lines if "publishers" in line)
    assert (fills["event"], fills["changes"], fills["publishers"]) == ("the outbox fills", 2, ["nobody"])
    assert (waits["event"], waits["omitted"], again["omitted"]) == ("the fold waits for publishers", 0, 1)


async def test_an_outbox_is_full_though_the_commit_that_fills_it_is_under_way():
    store = Growing()
    owned = await loaded(store, most=1)
    store.open.clear()
    assert await owned.fold(decided("b", 0), always)
    assert (store.announced, owned.is_full) == (0, True)
    store.open.set()
    await owned.moved_beyond(121)
    assert store.announced == 2
    assert not await owned.has_room()
    store.announced = 1
    assert await owned.has_room()
    assert not owned.is_full


async def test_without_a_next_chunk_a_fold_ends_with_its_commit():
    store = SlowStore()
    owned = await loaded(store)
    for start in range(0, 50, 10):
        assert await owned.fold(chunk(start, 10))
        assert owned.committed == store.state.off == start + 10
    assert owned.commit_times["b"].last > 0
    store.fault = StoreUnavailable("away")
    with pytest.raises(StoreUnavailable):
        await owned.fold(chunk(50, 10))


async def test_what_a_commit_meets_is_raised_by_the_next_fold():
    store = SlowStore()
    owned = await loaded(store)
    store.fault = StoreUnavailable("away")
    assert await owned.fold(chunk(0, 10), always)
    with pytest.raises(StoreUnavailable):
        await owned.fold(chunk(10, 10), always)
    assert (owned.committed, store.begun) == (0, [(0, 10)])


async def test_letting_go_waits_for_the_commit_and_saves_what_is_stored():
    store = SlowStore()
    owned = await loaded(store)
    store.open.clear()
    assert await owned.fold(chunk(0, 10), always)
    gone = asyncio.create_task(owned.release())
    await asyncio.sleep(0.01)
    assert not gone.done()
    store.open.set()
    await gone
    assert owned.committed == 10
    assert store.snapshots == [(10, 10)]


async def test_letting_go_of_a_state_that_another_has_moved_leaves_it_as_it_is():
    store = SlowStore(stale=1.0)
    owned = await loaded(store)
    assert await owned.fold(chunk(0, 10), always)
    await owned.release()
    assert store.state.off == 0


@pytest.mark.parametrize("seed", range(8))
async def test_however_commits_and_chunks_meet_the_stored_state_is_the_same(seed):
    choice = random.Random(seed)
    store = SlowStore(choice, stale=0.15)
    owned = await loaded(store)
    end, lost = 1_000, 0
    while owned.committed < end:
        start = owned.partition.off
        size = min(choice.randrange(1, 40), end - start)
        follows = start + size < end and choice.random() < 0.7
        if not await owned.fold(chunk(start, size), lambda follows=follows: follows):
            lost += 1
            assert owned.partition.off == owned.committed == store.state.off
        if choice.random() < 0.2:
            await owned.save_pairs()
    straight = await loaded(SlowStore())
    assert await straight.fold(chunk(0, end))
    for field in ("n", "b", "c"):
        mine, other = (getattr(o.partition.benchmarks["b"], field) for o in (owned, straight))
        assert mine.tolist() == other.tolist()
    assert store.state.counters == straight._store.state.counters
    assert lost


def board(models):
    """A chunk of one record: the scores of so many models on two items."""
    scores = [
        {"benchmark": "b", "item_id": str(k // models), "model": str(k % models), "score": 1} for k in range(2 * models)
    ]
    record = json.dumps({"events": scores}).encode()
    return Chunk(0, 0, 1, [0], [record])


def held_up(monkeypatch):
    """Let the fold of scores wait in its thread once it has changed the state; return what is set then, and what lets it go on."""
    folded, go_on, fold_located = threading.Event(), threading.Event(), chunk_fold.fold_located

    def fold(*arguments):
        fold_located(*arguments)
        folded.set()
        assert go_on.wait(PATIENCE)

    monkeypatch.setattr(chunk_fold, "fold_located", fold)
    return folded, go_on


async def until_set(event):
    """Let the event loop go on until a thread has set an event."""
    assert await asyncio.to_thread(event.wait, PATIENCE)


async def test_a_chunk_is_folded_in_a_thread_and_nobody_reads_the_state_meanwhile(monkeypatch):
    folded, go_on = held_up(monkeypatch)
    lock = StateLock()
    owned = await loaded(SlowStore(), state=lock)
    folding = asyncio.create_task(owned.fold(board(40)))
    await until_set(folded)
    rested = asyncio.create_task(lock.at_rest())
    for _ in range(20):
        await asyncio.sleep(0)
    assert not rested.done()
    with pytest.raises(RuntimeError, match="while a thread changes it"):
        _ = owned.readable
    assert owned.off == 0
    go_on.set()
    await rested
    assert owned.readable.benchmarks["b"].n.sum() == 2 * 40 * 39 // 2
    assert await folding


async def test_who_waits_for_rest_reads_the_state_between_two_pieces(monkeypatch):
    monkeypatch.setattr(chunk_fold, "PIECE_RECORDS", 1)
    lock, seen = StateLock(), []
    owned = await loaded(SlowStore(), state=lock)

    async def look():
        while True:
            await lock.at_rest()
            board = owned.readable.benchmarks.get("b")
            seen.append((owned.off, board.counters["events"] if board else 0))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    assert await owned.fold(chunk(0, 20))
    looking.cancel()
    assert {(0, k) for k in range(1, 20)} <= set(seen)


async def test_who_waits_for_rest_never_sees_what_a_crashed_piece_leaves(monkeypatch):
    lock, store, seen = StateLock(), SlowStore(), set()
    owned = await loaded(store, state=lock)
    assert await owned.fold(chunk(0, 20))
    load, whole, crashed = store.load, chunk_fold.ChunkFold.step, []

    def step(folding):
        if crashed:
            return whole(folding)
        crashed.append(True)
        owned.partition.counters["records"] += 7
        raise ZeroDivisionError

    async def load_late(*arguments):
        for _ in range(20):
            await asyncio.sleep(0)
        return await load(*arguments)

    async def look():
        while True:
            await lock.at_rest()
            seen.add(owned.readable.counters["records"])
            await asyncio.sleep(0)

    monkeypatch.setattr(chunk_fold.ChunkFold, "step", step)
    monkeypatch.setattr(store, "load", load_late)
    looking = asyncio.create_task(look())
    await asyncio.sleep(0)
    assert await owned.fold(chunk(20, 2))
    assert not looking.done()
    looking.cancel()
    assert crashed
    assert {20, 22} <= seen <= {20, 21, 22}


@pytest.mark.parametrize("reason", ["stop", "rebalance", "outbox"])
async def test_a_chunk_with_many_changes_is_stored_in_parts_and_may_end_between_them(reason, monkeypatch):
    monkeypatch.setattr(PartitionWorker, "most_changes", 2)
    monkeypatch.setattr(chunk_fold, "_PIECE_BYTES", 1)
    models = [f"m{k}" for k in range(6)]
    scores = [
        {"benchmark": "b", "item_id": str(k), "model": model, "score": int(model < "m3")}
        for k in range(30)
        for model in models
    ]
    declared = {"declare": "b", "items": 30, "order": {"policy": "completion"}}
    records = [json.dumps(record).encode() for record in (declared, *scores)]
    whole = Chunk(0, 0, len(records), range(len(records)), records)
    store, plain, revoked = SlowStore(), SlowStore(), []
    owned, other = await loaded(store), await loaded(plain)
    store.open.clear()
    folding = asyncio.create_task(owned.fold(whole, is_revoked=lambda: bool(revoked)))
    await asyncio.wait_for(store.first.wait(), PATIENCE)
    if reason == "stop":
        owned.ending = True
    elif reason == "rebalance":
        revoked.append(True)
    else:
        store.outbox_length = full
    store.open.set()
    assert not await folding
    assert owned.committed == store.state.off == owned.partition.off == store.begun[0][1] < len(records)
    vars(store).pop("outbox_length", None)
    owned = await loaded(store)
    assert await owned.fold(whole.cut(store.state.off)[1])
    assert len(store.begun) > 3
    assert [after for after, _ in store.begun[1:]] == [off for _, off in store.begun[:-1]]
    monkeypatch.undo()
    assert await other.fold(whole)
    assert len(plain.begun) == 1
    assert plain.state.counters == store.state.counters
    (mine,), (straight,) = store.state.benchmarks, plain.state.benchmarks
    assert (mine.off, mine.counters, mine.changes) == (straight.off, straight.counters, straight.changes)
    assert len(mine.changes) > 9


@pytest.mark.parametrize(("seconds", "all_parts"), [(1e9, False), (-1.0, True)])
async def test_changes_of_a_chunk_wait_for_its_last_part_or_some_seconds(seconds, all_parts, monkeypatch):
    monkeypatch.setattr(chunk_fold, "PIECE_RECORDS", 1)
    monkeypatch.setattr(PartitionWorker, "fold_seconds", 0.0)
    monkeypatch.setattr(owned_partition, "_RELAY_SECONDS", seconds)
    store, woken = SlowStore(), []
    owned = await loaded(store)
    stored = owned._store_delta

    async def noted(delta, *, wake):
        woken.append(wake)
        await stored(delta, wake=wake)

    monkeypatch.setattr(owned, "_store_delta", noted)
    assert await owned.fold(Chunk(0, 0, 5, range(5), [event(k).encode() for k in range(5)]))
    assert len(store.begun) == 5
    assert woken == [all_parts] * 4 + [True]


async def test_the_metrics_count_each_record_once_however_it_is_stored(monkeypatch):
    monkeypatch.setattr(chunk_fold, "PIECE_RECORDS", 2)
    monkeypatch.setattr(PartitionWorker, "fold_seconds", 0.0)
    owned = await loaded(SlowStore())
    assert await owned.fold(chunk(0, 5))
    histogram = owned._process_metrics.chunk_records
    assert histogram._sum.get() == 5


async def test_a_chunk_that_was_folded_in_part_is_never_stored(monkeypatch):
    folded, go_on = held_up(monkeypatch)
    store = SlowStore()
    owned = await loaded(store)
    folding = asyncio.create_task(owned.fold(board(40)))
    await until_set(folded)
    folding.cancel()
    await asyncio.wait({folding})
    assert folding.cancelled()
    with pytest.raises(StateTorn):
        _ = owned.readable
    await owned.save_pairs()
    await owned.release()
    go_on.set()
    for thread in threading.enumerate():  # nobody waits for it but this test
        if thread.name == "background":
            await asyncio.to_thread(thread.join, PATIENCE)
            assert not thread.is_alive()
    assert (store.begun, store.snapshots) == ([], [])


async def test_saving_does_not_hold_up_a_release(monkeypatch):
    """Thousands of benchmarks take longer to save than a stop may take; what is not saved is computed again."""
    store = SlowStore()
    owned = await loaded(store)
    records = [json.dumps({"benchmark": f"b{k}", "item_id": "1", "model": "a", "score": 1}).encode() for k in range(20)]
    assert await owned.fold(Chunk(0, 0, 20, range(20), records))
    monkeypatch.setattr(owned_partition, "_SAVE_SECONDS", 0.0)
    await owned.release()
    assert store.snapshots == []
    await owned.save_pairs()
    assert len(store.snapshots) == 20


def poisonous(monkeypatch, name="poison"):
    """Let the fold of a benchmark crash."""
    fold_located = chunk_fold.fold_located

    def crash(benchmark, *others):
        if benchmark.name == name:
            benchmark.counters["events"] += 1_000  # whatever it leaves behind
            raise ZeroDivisionError
        return fold_located(benchmark, *others)

    monkeypatch.setattr(chunk_fold, "fold_located", crash)


def with_poison(size, *places):
    whole = chunk(0, size)
    records = [e.replace(b'"b"', b'"poison"') if k in places else e for k, e in enumerate(whole.records)]
    return whole._replace(records=records)


@pytest.mark.fault(
    "benchmarks",
    "a benchmark whose record crashes the fold",
    "it is quarantined from that record on; all other events count",
)
async def test_a_benchmark_that_crashes_the_fold_is_set_aside_and_the_others_go_on(monkeypatch):
    poisonous(monkeypatch)
    store = SlowStore()
    owned = await loaded(store)
    assert await owned.fold(with_poison(100, 37, 60))
    assert owned.committed == store.state.off == 100
    (suspect,) = owned.partition.quarantine
    assert (suspect.benchmark, suspect.since, suspect.records) == ("poison", 37, 2)
    assert "offset 37 causes an error of rankwatch itself (ZeroDivisionError)" in suspect.reason
    plain = await loaded(SlowStore())
    await plain.fold(chunk(0, 100))
    (good,) = (b for b in store.state.benchmarks if b.name == "b")
    assert good.counters["events"] == 98
    # The next worker takes the decision over, and one without the error can release it.
    owned = await loaded(store)
    assert [each.benchmark for each in owned.partition.quarantine] == ["poison"]
    monkeypatch.undo()
    released = chunk(100, 2)._replace(records=[encode_release("poison"), with_poison(1, 0).records[0]])
    assert await owned.fold(released)
    assert not owned.partition.quarantine
    assert owned.partition.benchmarks["poison"].counters["events"] == 1


@pytest.mark.fault("benchmarks", "a fold that crashes within a chunk", "no reader sees what it leaves")
async def test_what_a_crash_leaves_is_read_by_nobody(monkeypatch):
    poisonous(monkeypatch)
    lock, seen = StateLock(), set()
    owned = await loaded(SlowStore(), state=lock)

    async def look():
        while True:
            if not lock.changing:  # what is read at once
                state = owned.partition
                seen.add((state.off, sum(each.counters["events"] for each in state.benchmarks.values())))
            await asyncio.sleep(0)

    looking = asyncio.create_task(look())
    assert await owned.fold(with_poison(100, 37, 60))
    looking.cancel()
    assert len(seen) > 1
    assert all(events == off - (off > 37) - (off > 60) for off, events in seen)


@pytest.mark.fault(
    "readers",
    "a fold that crashes, or is cancelled by a stop, and a state that is refused",
    "readers show nothing until a state is loaded",
)
@pytest.mark.parametrize("interrupted", [False, True], ids=["refused", "cancelled"])
async def test_what_a_fold_leaves_is_shown_to_nobody_until_the_state_is_loaded(monkeypatch, interrupted):
    store = SlowStore()
    owned = await loaded(store)
    assert await owned.fold(chunk(0, 20))

    async def fails(*_):
        owned.partition.counters["records"] += 7
        raise asyncio.CancelledError if interrupted else ZeroDivisionError

    async def refuse(_partition):
        raise StateRefused("the state is damaged")

    monkeypatch.setattr(StateLock, "in_thread", fails)
    monkeypatch.setattr(store, "load", refuse)
    with pytest.raises(asyncio.CancelledError if interrupted else StateRefused):
        await owned.fold(chunk(20, 20))
    with pytest.raises(StateTorn):
        _ = owned.readable
    monkeypatch.undo()
    await owned.load()
    assert owned.readable.counters["records"] == owned.readable.off == 20


@pytest.mark.fault("benchmarks", "a crash while the store has lost writes", "no record is skipped")
async def test_a_crash_while_the_store_has_lost_writes_passes_over_nothing(monkeypatch):
    poisonous(monkeypatch)
    store = SlowStore()
    owned = await loaded(store)
    assert await owned.fold(chunk(0, 20))
    older = copy.deepcopy(store.state)
    assert await owned.fold(chunk(20, 20))
    store.state = older
    crashing = with_poison(50, 40)._replace(start=40, offsets=range(40, 50))
    assert not await owned.fold(crashing._replace(records=with_poison(50, 40).records[40:]))
    assert (owned.partition.off, store.state.off) == (20, 20)  # the log is read again from there
    assert not owned.partition.quarantine


@pytest.mark.fault(
    "benchmarks", "a record that crashes everything that reads it", "it is a dead letter; all other events count"
)
async def test_a_record_that_crashes_whatever_reads_it_is_passed_over(monkeypatch):
    batches = decoder.Decoder.batches

    def crash(decoder, events, *others):
        if any(each.benchmark == "poison" for each in events):
            raise ZeroDivisionError
        return batches(decoder, events, *others)

    monkeypatch.setattr(decoder.Decoder, "batches", crash)
    store = SlowStore(stale=0.2)
    owned = await loaded(store)
    while owned.committed < 50:
        start = owned.partition.off
        whole = with_poison(50, 20)
        await owned.fold(whole._replace(start=start, offsets=whole.offsets[start:], records=whole.records[start:]))
    assert store.state.off == 50
    assert store.state.counters["rejected"] == 1
    assert store.state.benchmarks[0].counters["events"] == 49


async def test_rejects_and_slow_chunks_are_logged_once_a_minute(monkeypatch):
    now = [0.0]
    owned = await loaded(SlowStore(), notices=Notices(clock=lambda: now[0]))
    monkeypatch.setattr(owned_partition, "_SLOW_SECONDS", -1.0)
    bad = json.dumps({"benchmark": "b", "item_id": "a question", "model": "m", "score": "an answer"}).encode()
    with capture_logs() as lines:
        for start in range(0, 9, 3):
            await owned.fold(Chunk(0, start, start + 3, range(start, start + 3), [event(start).encode(), bad, bad]))
            now[0] += 29 + start
    rejected, again = (line for line in lines if line["event"] == "records rejected")
    assert (rejected["benchmark"], rejected["offset"], rejected["field"], rejected["records"]) == ("b", 1, "score", 2)
    assert (rejected["omitted"], again["offset"], again["omitted"]) == (0, 7, 1)
    slow, _ = (line for line in lines if line["event"] == "a chunk was slow")
    assert (slow["offset"], slow["records"], slow["benchmarks"]) == (0, 3, ["b"])
    assert "question" not in str(lines), "of a record only the wrong field is shown"


@pytest.mark.fault("processes", "no memory for a fold", "the worker ends; no benchmark is quarantined")
async def test_a_lack_of_memory_is_no_fault_of_a_benchmark(monkeypatch):
    def crash(*_):
        raise MemoryError

    monkeypatch.setattr(chunk_fold, "fold_located", crash)
    owned = await loaded(SlowStore())
    with pytest.raises(MemoryError):
        await owned.fold(chunk(0, 10))

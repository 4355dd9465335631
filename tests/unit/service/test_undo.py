"""An undo: what it leaves is the fold of the log without the withdrawn events, after an interruption too; what it cannot do is refused."""

import asyncio
import json
import random

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.log.file.log import FileLog
from monitor.log.file.salvage import salvage
from monitor.serve.api.writing.request import Submission
from monitor.service.intake import FileIntake
from monitor.service.operations.record_logs import FileRecords
from monitor.service.operations.undo import BoardError, Undoing, marks_of, view_of
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.assumptions import TEXTS
from schemas.records.declaration import Declaration
from schemas.records.events import BattleFields, Ended, EventFields
from schemas.records.operations import BoardChange
from tests.report_factory import without

PRODUCERS = ("ci", "bad", None)


class Board:
    """A board in a file log, folded whenever it is looked at."""

    def __init__(self, path):
        self.log = FileLog.open(path)
        self.partition = Partition()
        self.partition.off = self.log.first_offset
        self.changes = []

    def fold(self):
        while (chunk := self.log.read(self.partition.off, 7)) is not None:
            delta = self.partition.fold(chunk)
            for brought in (*delta.deleted, *delta.benchmarks):
                self.changes += brought.changes.values()
        return self.partition

    async def look(self):
        return view_of(self.fold(), "m")

    async def post(self, producer=None, events=(), declarations=(), ended=(), board=None):
        intake = FileIntake(self.log, lambda name: name in self.partition.benchmarks, lambda: self.partition.off)
        parts = Submission.empty()._replace(events=list(events), declarations=list(declarations), ended=list(ended))
        await intake.append(parts._replace(producer=producer, board=board))

    def undoing(self, **fields):
        return Undoing(FileRecords(self.log), self.look, BoardChange("undo", "m", **fields), 0.3)

    async def undo(self, **fields):
        undoing = self.undoing(**fields)
        begun = await undoing.begin()
        await undoing.copy()
        assert await undoing.ended()
        return begun

    def report(self):
        """What the board shows, without what depends on offsets and generations."""
        report = benchmark_report(board_view(self.fold().benchmarks["m"]), pairs="all")
        report = without(report, "board", "rejected", "assumption", "assumptions")
        for each in report["pairs"]:
            del each["reason"], each["facts"]
        return report


@pytest.fixture
def boards(tmp_path):
    """Return boards in logs of their own."""
    opened = []

    def board():
        opened.append(Board(tmp_path / f"log{len(opened)}"))
        return opened[-1]

    yield board
    for each in opened:
        asyncio.run(each.log.close())


def score(model, item, value):
    return EventFields("m", str(item), model, value)


def posts(rng):
    """Requests of three producers, who contradict each other: producer, events, and the ends of runs."""
    rights = {"ash": 0.9, "birch": 0.2, "cedar": 0.5}
    for k in range(30):
        items = range(k, k + rng.randint(1, 12))
        model = rng.choice(list(rights))
        yield rng.choice(PRODUCERS), [score(model, item, rng.random() < rights[model]) for item in items], ()
    yield "bad", [], [Ended(ended="m", model="ash")]


async def posted(board, requests):
    await board.post("bad", declarations=[Declaration(declare="m", items=45)])
    for producer, events, ended in requests:
        await board.post(producer, events, ended=ended)


@pytest.mark.fault(
    "benchmarks",
    "the events of one producer withdrawn, among duplicates, conflicts, battles and aliases",
    "the report of a log without these events",
)
@pytest.mark.parametrize("seed", range(2))
async def test_an_undo_leaves_what_the_other_events_would_have(boards, seed):
    requests = list(posts(random.Random(seed)))
    undone, without = boards(), boards()
    await posted(undone, requests)
    await posted(without, [each for each in requests if each[0] != "bad"])
    before = len(undone.changes) if undone.fold() else 0
    begun = await undone.undo(producer="bad")
    assert begun[:2] == tuple(
        sum(len(events) for who, events, _ in requests if (who == "bad") == bad) for bad in (True, False)
    )
    assert undone.report() == without.report()
    entry = undone.partition.boards.of("m")
    assert entry.note.startswith("generation 2: the events of producer bad were withdrawn at offset ")
    assert "its alpha was spent" in entry.note
    sentences = [each.sentence for each in undone.changes[before:] if each.procedure == "anytime_family"]
    assert all((TEXTS["begun_again"] in each) != ("no longer counts" in each) for each in sentences)
    assert len({each.id for each in undone.changes}) == len(undone.changes)
    again = boards()
    again.log, log = undone.log, again.log
    again.partition.off = undone.log.first_offset
    assert again.report() == undone.report(), "a fold of the whole log does the same"
    again.log = log


@pytest.mark.fault(
    "benchmarks",
    "an undo over a damaged part of the log",
    "refused while the state has more scores than the log; otherwise partial",
)
async def test_an_undo_over_a_damaged_part_of_the_log_loses_nothing_in_silence(boards):
    """A state that was kept has scores that the log has lost: a board that begins again would lack them, and not report it."""
    board = boards()
    for producer, item in (("ci", 1), ("bad", 2), ("ci", 3)):
        await board.post(producer, [score("ash", item, 1)])
    kept = board.fold()
    second = board.log.read(board.log.first_offset, 2).offsets[1]
    path, end = board.log.path, board.log.durable_end
    await board.log.close()
    data = bytearray(path.read_bytes())
    data[board.log.first_offset + 60] ^= 1
    path.write_bytes(data)
    assert salvage(path).lost == [(board.log.first_offset, second)]
    board.log = FileLog.open(path)
    with pytest.raises(BoardError, match="the log lacks what was damaged and has 2 of the 3 scores of m"):
        await board.undo(producer="bad")
    assert (board.partition, board.log.durable_end) == (kept, end)
    board.partition = Partition()
    board.partition.off = board.log.first_offset
    assert (await board.undo(producer="bad"))[:2] == (1, 1)
    assert board.report()["partial"] is not None


async def test_an_undo_since_a_time_can_be_followed_by_another_one(boards, monkeypatch):
    clock = iter(range(1_000, 2_000))
    monkeypatch.setattr("monitor.service.intake.time", lambda: next(clock))
    requests = list(posts(random.Random(5)))
    undone, without = boards(), boards()
    await posted(undone, requests)
    times = [marks_of(record)[0] for record in undone.log.read(undone.log.first_offset).records[1:]]
    since = {"bad": next(filter(None, times[10:])), "ci": next(filter(None, times[20:]))}
    stays = [
        request
        for request, at in zip(requests, times, strict=True)
        if request[0] not in since or at is None or at < since[request[0]]
    ]
    await posted(without, stays)
    await undone.undo(producer="bad", since=since["bad"])
    await undone.undo(producer="ci", since=since["ci"])
    assert undone.report() == without.report()
    assert undone.partition.boards.of("m").generation == 3


async def test_a_model_is_deleted_with_its_battles_and_its_aliases(boards):
    declared = Declaration(declare="m", aliases={"ash-2": "ash"})
    undone, without = boards(), boards()
    for board, models in ((undone, ("ash", "ash-2", "birch", "cedar")), (without, ("birch", "cedar"))):
        await board.post(declarations=[declared])
        await board.post(events=[score(model, k, model == "birch") for k in range(20) for model in models])
    assert (await undone.undo(model="ash-2"))[:2] == (40, 40)
    assert undone.report() == without.report()
    assert "the events of model ash-2 were withdrawn" in undone.partition.boards.of("m").note


def battle(one, other, item):
    return BattleFields("m", str(item), model_a=one, model_b=other, winner="a")


async def test_the_battles_of_a_deleted_model_go_with_it(boards):
    undone, without = boards(), boards()
    await undone.post(events=[battle(one, "birch", f"{one}{k}") for k in range(20) for one in ("ash", "cedar")])
    await without.post(events=[battle("cedar", "birch", f"cedar{k}") for k in range(20)])
    assert (await undone.undo(model="ash"))[:2] == (20, 20)
    assert undone.report() == without.report()


@pytest.mark.fault("benchmarks", "an undo interrupted", "the board is partial until the same command finishes it")
async def test_an_interrupted_undo_is_partial_until_the_same_command_goes_on(boards, monkeypatch):
    monkeypatch.setattr("monitor.service.operations.undo.COPY_EVENTS", 5)
    monkeypatch.setattr("monitor.service.operations.undo._AT_ONCE", 1)
    requests = [*posts(random.Random(1)), ("ci", [score("dune", k, 1) for k in range(45)], ())]
    undone, without = boards(), boards()
    await posted(undone, requests)
    await posted(without, [each for each in requests if each[0] != "bad"])
    undoing = undone.undoing(producer="bad")
    await undoing.begin()
    append, left = undone.log.append, iter([True] * 3)

    async def interrupted(records):
        if not next(left, False):
            raise OSError("the disk is full")
        return await append(records)

    monkeypatch.setattr(undone.log, "append", interrupted)
    with pytest.raises(OSError, match="full"):
        await undoing.copy()
    monkeypatch.setattr(undone.log, "append", append)
    entry = undone.fold().boards.of("m")
    assert "so it is partial; `rankwatch board undo` continues that" in entry.note
    with pytest.raises(BoardError, match="still being copied without the events of producer bad"):
        await undone.undo(producer="ci")
    await undone.post("ci", [score("dune", 44, 1)])
    other = {"benchmark": "another", "item_id": "x", "model": "ash", "score": 1}
    copy_of_another = {"copied": [undone.log.durable_end, None], "events": [other]}
    await undone.log.append([json.dumps(copy_of_another, separators=(",", ":")).encode()])
    size = undone.log.durable_end
    assert (await undone.undo(producer="bad"))[:2] == (None, None)
    names = {"events", "duplicates", "duplicates_by_model"}  # a copy that came twice is a duplicate
    same, shown = without.report(), undone.report()
    assert {k: v for k, v in shown.items() if k not in names} == {k: v for k, v in same.items() if k not in names}
    assert undone.log.durable_end - size < size, "it does not begin from the start"
    assert "partial" not in undone.partition.boards.of("m").note


async def test_records_that_an_archived_board_refused_do_not_count_after_an_undo(boards):
    board = boards()
    await board.post("ci", [score(model, k, 1) for k in range(10) for model in ("ash", "birch")])
    await board.post("bad", [score("ash", "x", 1)])
    await board.post(board=BoardChange("archive", "m"))
    await board.post("ci", [score("ash", "late", 1)])
    with pytest.raises(BoardError, match="restore it first"):
        await board.undo(producer="bad")
    await board.post(board=BoardChange("restore", "m"))
    await board.undo(producer="bad")
    assert board.report()["items"] == 10


async def test_what_cannot_be_undone_is_refused_and_changes_nothing(boards):
    board = boards()
    await board.post("ci", [score("ash", 1, 1)])
    await board.post(None, [score("ash", 2, 1)])
    end = board.log.durable_end
    for fields, reason in (
        (
            {"producer": "nobody"},
            r"m has none of the events of producer nobody.* its events are of: ci \(1\), no name \(1\)",
        ),
        ({"model": "elm"}, "m has no model elm"),
        ({}, "names a producer, or a model"),
        ({"producer": "ci", "since": 253_402_300_799_000}, "none of the events of producer ci since 9999"),
    ):
        with pytest.raises(BoardError, match=reason):
            await board.undo(**fields)
    await board.log.append(
        [
            json.dumps(
                {"producer": "ci", "events": [{"benchmark": "m", "item_id": "3", "model": "ash", "score": 1}]},
                separators=(",", ":"),
            ).encode()
        ]
    )
    with pytest.raises(BoardError, match="1 events of ci have no time"):
        await board.undo(producer="ci", since=0)
    assert board.fold().boards.of("m") is None
    assert board.log.durable_end > end


async def test_a_log_that_has_lost_records_of_the_board_is_refused(boards, monkeypatch):
    board = boards()
    await board.post("ci", [score("ash", 1, 1)])
    await board.post("bad", [score("ash", 2, 1)])
    second = board.log.read(board.log.first_offset).offsets[1]

    async def bounds(_):
        return second, board.log.durable_end

    monkeypatch.setattr(FileRecords, "bounds", bounds)
    with pytest.raises(BoardError, match="has 1 of the 2 scores of m"):
        await board.undo(producer="bad")

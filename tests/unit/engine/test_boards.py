"""Boards are archived, restored, deleted, begun again and renamed by records of the log, and chunks change nothing."""

import json
import random

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.assumptions import TEXTS
from schemas.records.boards import BoardEntry
from schemas.records.chunks import Chunk
from schemas.records.operations import BOARD_ACTIONS, BoardChange, encode_board_change
from tests.memory_store import MemoryStore

DECLARED = b'{"declare": "m", "items": 40}'


def change(action, benchmark="m", title=None):
    return encode_board_change(BoardChange(action, benchmark, title))


def event(item, model, score, benchmark="m"):
    return json.dumps({"benchmark": benchmark, "item_id": str(item), "model": model, "score": score}).encode()


def decisive(benchmark="m", items=40):
    """Scores by which one model is decided over the other."""
    return [event(k, model, model == "a", benchmark) for k in range(items) for model in "ab"]


def folded(records, size=10_000):
    """The partition after the fold in chunks of a size, restored from what is stored after each; all letters and changes."""
    store, letters, changes = MemoryStore(), [], []
    partition = Partition.restore(store.state)
    for start in range(0, len(records), size):
        end = min(start + size, len(records))
        delta = partition.fold(Chunk(0, start, end, range(start, end), records[start:end]))
        letters += delta.dead_letters
        for brought in (*delta.deleted, *delta.benchmarks):
            changes += brought.changes.values()
        store.commit(delta)
        partition = Partition.restore(store.state)
    return partition, letters, sorted(changes, key=lambda each: tuple(map(int, each.id.split("-"))))


def test_an_archived_board_keeps_its_report_and_refuses_records():
    records = [DECLARED, *decisive()]
    before = benchmark_report(board_view(folded(records)[0].benchmarks["m"]), pairs="all")
    late = [event(99, "a", 1), b'{"declare": "m", "items": 50, "version": 2}', b'{"ended": "m"}']
    partition, letters, _ = folded([*records, change("archive"), *late])
    report = benchmark_report(board_view(partition.benchmarks["m"]), pairs="all")
    assert (report.pairs, report.models, report.result) == (before.pairs, before.models, before.result)
    assert report.pairs[0].status == "decided"
    assert report.board.state == "archived"
    assert report.board.note == "archived: no record from offset 81 on counts"
    assert report.rejected == len(letters) == 3
    assert {letter.reason for letter in letters} == {
        "m is archived from offset 81 on, so it takes no records; `rankwatch board restore m` opens it again"
    }
    assert before.board is None


def test_a_restored_board_goes_on_as_if_it_had_never_been_archived():
    records = [DECLARED, *decisive(items=20)]
    more = [event(k, model, model == "a") for k in range(20, 40) for model in "ab"]
    straight, _, changes = folded([*records, *more])
    partition, letters, same = folded([*records, change("archive"), change("restore"), *more])
    assert (letters, list(partition.boards)) == ([], [])
    assert partition.benchmarks["m"].board is None
    assert [each.sentence for each in same] == [each.sentence for each in changes]
    assert benchmark_report(board_view(partition.benchmarks["m"])) == benchmark_report(
        board_view(straight.benchmarks["m"])
    )


def test_a_board_does_not_remember_that_it_was_archived():
    """An entry with nothing to remember is forgotten; whether that happened in between must not show."""
    records = [DECLARED, *decisive(items=20)]
    title = change("rename", title="A title")
    orders = [title], [change("archive"), change("restore"), title], [title, change("archive"), change("restore")]
    plain, forgotten, kept = ([*folded([*records, *each])[0].boards] for each in orders)
    assert plain == forgotten == kept == [BoardEntry("m", title="A title")]
    assert BoardEntry.parse(b'["m", "open", 42, 1, 0, "A title", null, 0, null, {}]') == plain[0], (
        "as earlier versions stored"
    )


def test_a_deleted_board_is_gone_and_its_verdicts_are_withdrawn():
    records = [DECLARED, *decisive(), event(0, "a", 1, "other"), change("delete")]
    partition, letters, changes = folded([*records, event(0, "a", 1), event(1, "a", 1, "other")])
    assert set(partition.benchmarks) == {"other"}
    assert partition.benchmarks["other"].counters["events"] == 2
    assert [letter.reason for letter in letters] == [
        "m was deleted at offset 82, so it takes no records; `rankwatch board reopen m` begins it again, as generation 2"
    ]
    assert partition.counters["rejected"] == 1
    begun = [each for each in changes if each.kind != "invalidated"]
    assert {each.kind for each in begun} == {"decided", "settled"}
    ended = changes[len(begun) :]
    assert {(each.kind, each.procedure) for each in ended} == {("invalidated", each.procedure) for each in begun}
    assert changes[-1].sentence.endswith("no longer counts: the board was deleted.")


def test_a_board_that_is_begun_again_reports_its_generation_and_assumes_what_that_takes():
    records = [DECLARED, *decisive(), change("delete"), change("reopen"), DECLARED, *decisive()]
    partition, letters, changes = folded(records)
    assert letters == []
    benchmark = partition.benchmarks["m"]
    assert benchmark.counters["events"] == 80
    report = benchmark_report(board_view(benchmark))
    assert (report.board.generation, report.board.state) == (2, "open")
    assert report.board.note == (
        "generation 2: an earlier board of this name was deleted at offset 81, and 1 family-wise decision was withdrawn; its alpha "
        "was spent"
    )
    assert len({each.id for each in changes}) == len(changes)
    first, last = changes[0], changes[-1]
    assert TEXTS["begun_again"] not in first.sentence
    assert TEXTS["begun_again"] in next(
        each.sentence for each in reversed(changes) if each.procedure == "anytime_family"
    )
    assert last.kind != "invalidated"
    assert TEXTS["begun_again"] in report.pairs[0].reason


def test_a_title_is_shown_and_the_name_stays():
    partition, _, _ = folded([event(0, "a", 1), change("rename", title="Müller's suite"), event(1, "a", 1)])
    benchmark = partition.benchmarks["m"]
    assert benchmark.counters["events"] == 2
    assert benchmark_report(board_view(benchmark)).board.title == "Müller's suite"
    partition, _, _ = folded([event(0, "a", 1), change("rename", title="x"), change("rename")])
    assert benchmark_report(board_view(partition.benchmarks["m"])).board is None


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        ([change("archive")], "m has no board; `rankwatch board list` lists them"),
        ([change("reopen")], "m is not deleted; only a deleted board is begun again"),
        ([event(0, "a", 1), change("restore")], "m is not archived; only an archived board is restored"),
        ([event(0, "a", 1), change("archive"), change("archive")], "m is archived already, from offset 1 on"),
        ([event(0, "a", 1), change("delete"), change("delete")], "m has no board; `rankwatch board list` lists them"),
    ],
)
def test_a_change_that_the_state_does_not_allow_is_a_dead_letter(records, reason):
    _, letters, _ = folded(records)
    assert [letter.reason for letter in letters] == [reason]
    assert letters[0].raw == records[-1].decode()


@pytest.mark.parametrize(
    "record",
    [
        b'{"board": "burn", "benchmark": "m"}',
        b'{"board": "delete"}',
        b'{"board": "delete", "benchmark": "m", "force": true}',
        b'{"board": "rename", "benchmark": "m", "title": "a\\u202eb"}',
        b'{"board": ["delete"], "benchmark": "m"}',
    ],
)
def test_an_unknown_change_is_a_dead_letter(record):
    partition, letters, _ = folded([event(0, "a", 1), record])
    assert len(letters) == 1
    assert partition.benchmarks["m"].counters["events"] == 1


def test_unreadable_records_of_a_closed_board_do_not_set_it_aside():
    bad = b'{"benchmark": "m", "item_id": "1", "model": "a", "score": Infinity}'
    partition, letters, _ = folded([event(0, "a", 1), change("archive"), *[bad] * 600, change("restore")], 250)
    assert not partition.quarantine
    assert len(letters) == 600


def test_a_deletion_ends_a_quarantine():
    bad = b'{"benchmark": "m", "item_id": "1", "model": "a", "score": Infinity}'
    partition, _, _ = folded([event(0, "a", 1), *[bad] * 600, change("delete"), change("reopen"), event(0, "a", 1)])
    assert not partition.quarantine
    assert partition.benchmarks["m"].quarantine is None


def test_the_budget_of_a_deleted_board_is_free_again():
    partition, _, _ = folded([*decisive(), change("delete")])
    assert partition.usage == Partition().usage


def random_log(choice):
    records = []
    for _ in range(30):
        name = choice.choice("mn")
        kind = choice.randrange(6)
        if kind == 0:
            records.append(change(choice.choice(BOARD_ACTIONS), name, choice.choice([None, "title"])))
        elif kind == 1:
            records.append(json.dumps({"declare": name, "items": 30, "version": choice.randint(1, 2)}).encode())
        elif kind == 2:
            records.append(json.dumps({"ended": name}).encode())
        elif kind == 3:
            records.append(b'{"benchmark": "%s", "item_id": "1", "model": "a", "score": 7}' % name.encode())
        else:
            first = choice.randrange(25)
            records += [event(k, model, model == "a", name) for k in range(first, first + 12) for model in "abc"]
    return records


@pytest.mark.fault(
    "benchmarks",
    "boards archived, restored, deleted, reopened and renamed between events, in chunks of different sizes",
    "the same state, verdict ids and dead letters",
)
@pytest.mark.parametrize("seed", range(3))
def test_boards_do_not_depend_on_the_chunks(seed):
    records = random_log(random.Random(seed))
    whole, letters, changes = folded(records)

    def reports(partition):
        return {name: benchmark_report(board_view(each), pairs="all") for name, each in partition.benchmarks.items()}

    assert letters
    for size in (29, 101):
        parts, same_letters, same_changes = folded(records, size)
        assert same_letters == letters
        assert [each.as_json() for each in same_changes] == [each.as_json() for each in changes]
        assert sorted(parts.boards) == sorted(whole.boards)
        assert reports(parts) == reports(whole)
        assert parts.counters == whole.counters

"""What verdicts assume of their declaration and of their scores: the place of the seed, what came late, and which score counts."""

import itertools
import json

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from schemas.records.chunks import Chunk
from schemas.records.operations import BoardChange, encode_board_change
from stats import committed_order
from tests.fold_log import FoldLog, event, packed, paired
from tests.memory_store import MemoryStore

IDS = [f"q{k}" for k in range(40)]
COMMITTED = {"declare": "bench", "order": {"policy": "committed", "seed": "one"}, "item_ids": IDS}
GROUND = COMMITTED | {"order": {"policy": "committed", "seed": "ground"}}
ORDER = [IDS[k] for k in committed_order("one", IDS)]


def board(action):
    return encode_board_change(BoardChange(action, "bench"))


def facts(log, kind="decided"):
    """The facts of each verdict change of a kind, by procedure."""
    found = {}
    for change in log.bench.changes.values():
        if change.kind == kind:
            found[change.procedure] = {
                each["code"]: {name: value for name, value in each.items() if name != "code"}
                for each in change.assumptions
            }
    return found


def along(order, models="ab"):
    return [event(item, model, int(model == "a")) for item in order for model in models]


def test_the_first_seed_decides_and_the_verdict_has_its_place():
    log = FoldLog(packed([[1]], ["x"], benchmark="other"), COMMITTED, GROUND, GROUND | {"version": 2})
    assert [letter.field for letter in log.letters] == ["order", "order"]
    log.restart()
    log.send(GROUND)
    log.restart()
    log.send(COMMITTED, *along(ORDER))
    assert log.bench.spec.order.seed == "one"
    assert facts(log)["anytime"]["committed"] == {"offset": 10}
    assert facts(log, "settled")["settled"]["ordered"] == {"offset": 10}
    report = benchmark_report(board_view(log.bench))
    assert {"code": "committed", "offset": 10} in report.assumptions
    assert "(offset 10 of the log)" in report.pairs[0].reason


def test_a_seed_may_not_be_left_for_another_policy_and_back():
    log = FoldLog(COMMITTED, {"declare": "bench", "items": 40}, {"declare": "bench"}, GROUND)
    assert len(log.letters) == 3
    log.send(COMMITTED | {"alpha": 0.01}, *along(ORDER))  # before the first score the rest may change
    assert (log.bench.spec.order.seed, log.bench.spec.alpha) == ("one", 0.01)


def test_a_board_that_begins_again_commits_again_and_says_that_scores_were_known():
    log = FoldLog(COMMITTED, *along(ORDER[:5]), board("delete"), board("reopen"))
    log.restart()
    log.send(GROUND, *along([IDS[k] for k in committed_order("ground", IDS)]))
    assert not log.letters
    found = facts(log)["anytime"]
    assert found["committed"] == {"offset": 130}
    assert "begun_again" in found
    assert found["declared_late"] == {"parts": ["order", "item_ids"]}


def test_a_board_that_was_deleted_without_scores_declares_nothing_late():
    log = FoldLog(
        {"declare": "bench", "items": 40}, board("delete"), board("reopen"), {"declare": "bench", "items": 40}
    )
    log.send(*along(IDS))
    assert "declared_late" not in facts(log)["anytime"]
    assert "begun_again" in facts(log)["anytime"]


@pytest.mark.parametrize(
    ("second", "parts", "of_pair"),
    [
        ({"family": {"models": ["a", "b"]}}, ["family"], None),
        ({"alpha": 0.2}, ["alpha"], ["alpha"]),
        ({"missing": "ignorable"}, ["missing"], ["missing"]),
        ({"mixture": "grid98", "margin": 0.1}, ["mixture"], ["mixture"]),
        ({"item_ids": IDS}, ["item_ids"], ["item_ids"]),
    ],
)
def test_what_is_declared_after_the_first_score_is_named_by_the_verdicts_that_rest_on_it(second, parts, of_pair):
    first = {"declare": "bench", "items": 40}
    log = FoldLog(first, *along(IDS[:30]))
    log.send(
        (first | second | {"version": 2}) if "item_ids" not in second else {"declare": "bench", **second, "version": 2}
    )
    log.restart()
    log.send(*along(IDS[30:]))
    last = [change for change in log.bench.changes.values() if change.kind == "decided" and "40" in change.sentence]
    assert last or log.bench.changes
    named = facts(log)
    assert named["anytime_family"]["declared_late"] == {"parts": parts}
    assert named["anytime"].get("declared_late") == (of_pair and {"parts": of_pair})


def test_a_margin_that_came_late_is_named_where_a_pair_is_equivalent():
    scores = paired(2, 2, 396)
    log = FoldLog({"declare": "bench", "items": 400}, packed(scores[:10], "ab"))
    log.send({"declare": "bench", "items": 400, "margin": 0.1})
    log.send(packed(scores[10:], "ab", items=range(10, 400)))
    report = benchmark_report(board_view(log.bench))
    assert report.pairs[0].status == "equivalent"
    assert "the equivalence margin, declared after the first score, was chosen" in report.pairs[0].reason


def test_a_repeated_declaration_forgets_nothing():
    declared = {"declare": "bench", "items": 40}
    log = FoldLog(
        declared, *along(IDS[:5]), declared | {"alpha": 0.2, "version": 2}, declared | {"alpha": 0.2, "version": 2}
    )
    log.restart()
    log.send(declared | {"alpha": 0.2}, *along(IDS[5:]))
    assert facts(log)["anytime"]["declared_late"] == {"parts": ["alpha"]}


def test_an_undo_forgets_nothing():
    declared = {"declare": "bench", "items": 40}
    again = declared | {"alpha": 0.2, "version": 2}
    undo = encode_board_change(BoardChange("undo", "bench", model="c", kept=80))
    log = FoldLog(event("q0", "c", 1), {**again, "version": 2}, *along(IDS), undo)
    log.send({**again, "version": 2}, *along(IDS), encode_board_change(BoardChange("undone", "bench")))
    assert facts(log)["anytime"]["declared_late"] == {"parts": ["items", "alpha"]}


# --- which score counts ---


def every_chunking(records):
    """The verdict changes of a log in chunks of several sizes, restored after each chunk."""
    for size in (1, 3, 7, len(records)):
        store = MemoryStore()
        partition = Partition.restore(store.state)
        for start in range(0, len(records), size):
            raw = [json.dumps(each).encode() for each in records[start : start + size]]
            end = start + len(raw)
            store.commit(partition.fold(Chunk(0, start, end, range(start, end), raw)))
            partition = Partition.restore(store.state)
        yield partition.benchmarks["bench"]


@pytest.mark.parametrize(
    "choice",
    [[event("q0", "c", 1), event("q0", "c", 0)], [event("q0", "c", None), event("q0", "c", 1)]],
    ids=["conflict", "filled"],
)
@pytest.mark.parametrize("place", [0, 9, 40, 79])
def test_a_choice_among_scores_is_named_from_its_event_on(choice, place):
    events = along(IDS)
    records = [{"declare": "bench", "order": "trusted"}, *events[:place], *choice, *events[place:]]
    found = [
        {field: change.as_dict() for field, change in benchmark.changes.items()}
        for benchmark in every_chunking(records)
    ]
    assert all(each == found[0] for each in found)
    for change in found[0].values():
        at = int(change["id"].partition("-")[0])
        named = any(each["code"] == "score_choice" for each in change["assumptions"])
        assert named == (at > place + 1), change["id"]


def test_aliases_are_a_choice_and_duplicates_are_none():
    declared = {"declare": "bench", "items": 40}
    log = FoldLog(declared, *along(IDS), *along(IDS))
    assert "score_choice" not in facts(log)["anytime"]
    log = FoldLog(declared | {"aliases": {"x": "a"}}, *along(IDS))
    assert "score_choice" in facts(log)["anytime"]
    assert {"code": "score_choice"} in benchmark_report(board_view(log.bench)).assumptions


def test_a_null_may_be_declared_final():
    declared = {"declare": "bench", "items": 40}
    nulls = [event(IDS[0], "a", None), event(IDS[0], "a", 1)]
    filled, final = (FoldLog(declared | more, *nulls) for more in ({}, {"nulls": "final"}))
    assert (filled.bench.counters["filled"], filled.bench.counters["conflicts"]) == (1, 0)
    assert (final.bench.counters["filled"], final.bench.counters["conflicts"]) == (0, 1)
    for log, score in ((filled, 1), (final, 0)):
        log.restart()
        log.send(*along(IDS[1:]), event(IDS[0], "b", 0))
        report = benchmark_report(board_view(log.bench))
        assert (report.filled, report.pairs[0].b) == (log.bench.counters["filled"], 39 + score)
        assert {"code": "score_choice"} in report.assumptions
    assert final.bench.spec.nulls == "final"


def test_settled_pairs_name_what_they_rest_on():
    declared = {"declare": "bench", "items": 50}
    log = FoldLog(declared, *along(IDS[:5]), {"declare": "bench", "items": 40, "alpha": 0.2, "version": 2})
    log.send(*along(IDS[5:]))
    assert facts(log, "settled")["settled"]["declared_late"] == {"parts": ["items"]}


def test_chunks_do_not_matter_along_a_committed_order():
    records = [COMMITTED, GROUND, *along(ORDER), GROUND, *(event(ORDER[0], "a", 0) for _ in range(2))]
    found = [list(benchmark.changes.items()) for benchmark in every_chunking(records)]
    assert all(first == second for first, second in itertools.pairwise(found))

"""Boards as facts: nothing is written through them, and they keep what was counted when they were made."""

from dataclasses import FrozenInstanceError, fields, is_dataclass

import numpy as np
import pytest

from monitor.view.board import BoardView
from monitor.view.build import report_view
from monitor.view.from_state import board_view, current_view
from monitor.view.partition_view import PartitionView, board_views
from monitor.view.ranking.suite import suite_board
from schemas.records.suites import Member, Suite
from tests.fold_log import FoldLog

SCORES = [
    {"benchmark": "b", "item_id": str(k), "model": model, "score": score}
    for k in range(12)
    for model, score in (("a", 1), ("c", k % 2))
]
BATTLES = [
    {"benchmark": "b", "item_id": str(k), "model_a": "a", "model_b": "c", "winner": "a" if k % 3 else "b"}
    for k in range(12)
]
LOGS = {
    "order": [{"declare": "b", "items": 12, "order": "trusted"}, *SCORES],
    "graded": [{"declare": "b", "items": 12, "scores": "graded"}, *SCORES],
    "committed": [
        {"declare": "b", "order": {"policy": "committed", "seed": "s" * 20}, "item_ids": [str(k) for k in range(12)]},
        *SCORES,
    ],
    "battles": BATTLES,
    "undeclared": [*SCORES, {**SCORES[0], "repeat": 1, "score": 0}],
}


def arrays(value, seen=()):
    """Yield every array that a view leads to; what it computes itself may be written to."""
    if isinstance(value, np.ndarray):
        yield value
    elif callable(value) and not isinstance(value, type):
        try:
            yield from arrays(value(), seen)
        except TypeError:
            return  # it takes arguments
    elif is_dataclass(value) and not isinstance(value, BoardView):
        for each in fields(value):
            yield from arrays(getattr(value, each.name), seen)
    elif isinstance(value, dict):
        for each in value.values():
            yield from arrays(each, seen)


@pytest.mark.parametrize("kind", LOGS)
def test_nothing_is_written_to_the_state_through_a_board(kind):
    benchmark = FoldLog(*LOGS[kind]).partition.benchmarks["b"]
    board = board_view(benchmark)
    of_state = [
        array
        for each in fields(board)
        if each.name not in {"origin", "settling", "weighting", "by_item"}
        for array in arrays(getattr(board, each.name))
    ]
    assert len(of_state) > 10
    written = [array for array in of_state if array.flags.writeable and _is_shared(array, benchmark)]
    assert written == []
    with pytest.raises(FrozenInstanceError):
        board.items = 0


def _is_shared(array, benchmark):
    held = [x for x in vars(benchmark).values() if isinstance(x, np.ndarray)]
    held += [claim.side for claim in benchmark.claims.values()] + [claim.peak for claim in benchmark.claims.values()]
    return any(np.shares_memory(array, other) for other in held)


def test_a_board_keeps_its_facts_when_the_log_goes_on():
    log = FoldLog(*LOGS["order"])
    before = board_view(log.partition.benchmarks["b"])
    log.send({"benchmark": "b", "item_id": "12", "model": "d", "score": 1})
    after = board_view(log.partition.benchmarks["b"])
    assert [len(each.contestants) for each in (before, after)] == [2, 3]
    assert [each.counters["events"] for each in (before, after)] == [24, 25]
    assert [each.scored.tolist() for each in (before, after)] == [[12, 12], [12, 12, 1]]
    assert [each.too_many_items for each in (before, after)] == [False, True]


def test_a_board_is_made_again_only_when_its_state_has_changed():
    log = FoldLog(*LOGS["order"])
    partition, state = PartitionView(log.partition), log.partition.benchmarks["b"]
    before = partition.board("b")
    assert before is partition.board("b") is current_view(state)
    log.send(SCORES[0])
    assert partition.board("b") is not before
    state.quarantine = before.quarantine
    before = partition.board("b")
    log.partition.assume_ends({"b": "results.jsonl breaks off"})
    assert partition.board("b").incomplete, "also what is known of the files"


def test_a_suite_is_a_board_like_any_other():
    log = FoldLog(*LOGS["order"], *({**each, "benchmark": "other"} for each in SCORES))
    boards = board_views([log.partition])
    union = suite_board(Suite("all", dict.fromkeys(boards, Member())), boards, assert_complete=True)
    assert isinstance(union, BoardView)
    assert union.items == sum(each.items for each in boards.values())
    report = report_view(union, assert_complete=True).report
    assert [model.model for model in report.models] == ["a", "c"]

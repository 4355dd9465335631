"""Graded scores and declared repeats through the fold."""

import json

import numpy as np
import pytest

from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from monitor.engine.state.codes import SCORE_UNIT
from monitor.engine.state.graded import capital_gained
from schemas.records.events import Spec
from stats.evidence.graded import graded_log_e_halves
from tests.fold_log import FoldLog, event


def test_the_capital_of_the_reference_differences():
    d = [0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1]
    capital, most = capital_gained(np.rint(np.array([d]) * SCORE_UNIT).astype(np.int64))
    plus, minus = graded_log_e_halves(capital[..., 3:])
    assert (np.exp(plus[0]), np.exp(minus[0])) == pytest.approx((1.1791990443, 0.3589772720), abs=1e-9)
    assert (most >= capital).all()


def test_a_conflicting_graded_score_stops_nothing():
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(event(1, "a", 1), event(1, "b", 0), event(1, "a", 0.5))
    assert log.bench.can_decide
    assert log.bench.binary
    log.send(event(2, "a", 0.5))
    assert not log.bench.can_decide
    assert log.bench.assumption_holds


def test_what_cannot_be_declared_of_graded_scores():
    with pytest.raises(ValueError, match="needs 0/1 scores and one repeat"):
        Spec.model_validate({"scores": "graded", "order": {"policy": "committed", "seed": "s"}, "item_ids": ["1"]})
    with pytest.raises(ValueError, match="use at most 2,097,151"):
        Spec.model_validate({"repeats": 2, "items": 2**21})


@pytest.mark.parametrize(
    "spec",
    [
        {"items": 40, "scores": "graded"},
        {"items": 40, "repeats": 2},
        {"order": {"policy": "committed", "seed": "s"}, "item_ids": [str(k) for k in range(40)]},
    ],
    ids=["graded", "repeats", "committed"],
)
def test_the_same_declaration_after_scores_changes_no_evidence(spec):
    declaration = {"declare": "bench", **spec}
    events = [
        event(item, model, float(item % 5 < most), repeat=repeat)
        for item in range(40)
        for repeat in range(spec.get("repeats", 1))
        for model, most in (("a", 5), ("b", 1))
    ]
    once, again = FoldLog(declaration), FoldLog(declaration)
    once.send(*events)
    again.send(*events[:50], declaration, *events[50:])
    assert once.changes, "some verdict is given"
    assert {key: change.evidence for key, change in again.changes.items()} == {
        key: change.evidence for key, change in once.changes.items()
    }
    assert not again.letters


THIRDS = [{"x": 2 / 3, "y": 0}] * 3 + [{"x": 0, "y": 1}] * 2
"""Three rounded differences of 2/3 add up to 10**-12 more than 2."""


@pytest.mark.parametrize("items", [3, 5])
def test_rounding_settles_no_pair(items):
    """Before, x was settled after three of five items, which the other two can undo, and after five, which are a tie."""
    declared = {"declare": "b", "items": 5, "order": "trusted", "scores": "graded"}
    scores = [
        {"benchmark": "b", "item_id": str(k), "model": model, "score": score}
        for k, row in enumerate(THIRDS[:items])
        for model, score in row.items()
    ]
    records = [json.dumps(each).encode() for each in (declared, *scores)]
    partition = Partition()
    partition.fold(Chunk(0, 0, len(records), range(len(records)), records))
    settled = [change for change in partition.benchmarks["b"].changes.values() if change.kind == "settled"]
    assert [change.after for change in settled] == (["tie"] if items == 5 else [])

"""Graded scores and declared repeats through the fold."""

import json

import numpy as np
import pytest

from monitor.engine.chunk_fold import Partition
from monitor.engine.state.graded import capital_gained
from schemas.records.chunks import Chunk
from schemas.records.declaration import Spec
from schemas.records.scores import SCORE_UNIT
from stats.evidence.graded import graded_log_e_halves
from tests.fold_log import FoldLog, event


def test_the_capital_of_the_reference_differences():
    d = [0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1]
    capital = capital_gained(np.rint(np.array([d]) * SCORE_UNIT).astype(np.int64))
    plus, minus = graded_log_e_halves(capital[..., 3:])
    assert (np.exp(plus[0]), np.exp(minus[0])) == pytest.approx((1.1791990443, 0.3589772720), abs=1e-9)


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
    with pytest.raises(ValueError, match="use at most 2,097,151"):
        Spec.model_validate({"weights": "equal-clusters", "clusters": {"a": 2**20, "b": 2**20}})


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


def changes_of(declared, rows):
    """Fold rows of one score a model (a list: of its repeats), and return (kind, side) of each verdict change."""
    scores = [
        {"benchmark": "b", "item_id": str(k), "model": model, "score": score, "repeat": repeat}
        | ({"cluster": row["cluster"]} if "cluster" in row else {})
        for k, row in enumerate(rows)
        for model in "xy"
        for repeat, score in enumerate(row[model] if isinstance(row[model], list) else [row[model]])
    ]
    records = [json.dumps(each).encode() for each in ({"declare": "b", **declared}, *scores)]
    partition = Partition()
    partition.fold(Chunk(0, 0, len(records), range(len(records)), records))
    return [(change.kind, change.after) for change in partition.benchmarks["b"].changes.values()]


GRADED = {"items": 5, "scores": "graded"}
THIRDS = [{"x": 2 / 3, "y": 0}] * 3 + [{"x": 0, "y": 1}] * 2
"""Three rounded differences of 2/3 add up to 10**-12 more than 2."""
REPEATS = [{"x": [2 / 3, 1], "y": [1 / 3, 0]}] * 3 + [{"x": [0, 0], "y": [1, 1]}] * 2
"""The same differences as means of two repeats, which are rounded again."""
CLUSTERS = {"weights": "equal-clusters", "clusters": {"A": 1, "C": 19}}
SIZES = [{"x": 1, "y": 0, "cluster": "A"}] + [{"x": 0, "y": 1, "cluster": "C"}] * 19
"""The rounded weights of 19 items add up to less than that of the first, which counts as much as all of them."""
LIGHT = {"weights": {"A": 1e6, "C": 1e-7}, "clusters": {"A": 1, "C": 2}}
NOTHING = [{"x": 1, "y": 1, "cluster": "A"}] + [{"x": 0, "y": 1, "cluster": "C"}] * 2
"""Two items whose weights are less than a unit of the first one's."""


@pytest.mark.parametrize("order", ["trusted", "completion"])
@pytest.mark.parametrize(
    ("declared", "rows", "open_until"),
    [
        (GRADED, THIRDS, 3),
        (GRADED | {"repeats": 2}, REPEATS, 3),
        (CLUSTERS, SIZES, 1),
        (LIGHT, NOTHING, 1),
    ],
    ids=["graded", "repeats", "sizes", "light"],
)
def test_rounding_settles_no_pair(declared, rows, open_until, order):
    """Before, x was settled where the missing items can still make a tie, which all of the items are."""
    declared = declared | {"order": order}
    assert changes_of(declared, rows[:open_until]) == []
    assert changes_of(declared, rows) == [("settled", "tie")]


@pytest.mark.parametrize(
    ("declared", "won", "lost", "most"),
    [
        ({"scores": "graded"}, {"x": 1 / 3, "y": 0}, {"x": 0, "y": 1}, 24),
        ({"repeats": 3}, {"x": [1, 0, 0], "y": [0, 0, 0]}, {"x": [0, 0, 0], "y": [1, 1, 1]}, 24),
        (
            {"weights": "equal-clusters", "clusters": {"A": 20, "C": 60}},
            {"x": 1, "y": 0, "cluster": "C"},
            {"x": 0, "y": 1, "cluster": "A"},
            60,
        ),
    ],
    ids=["graded", "repeats", "weights"],
)
def test_rounding_reverses_no_decision(declared, won, lost, most):
    """The lead returns to 0, and in rounded units a little beyond it."""
    changes = changes_of(declared | {"order": "trusted"}, [won] * most + [lost] * (most // 3))
    assert ("decided", "a") in changes
    assert "reversed" not in {kind for kind, _ in changes}

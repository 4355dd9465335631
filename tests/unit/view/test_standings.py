"""What follows from decisions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.ranking import standings
from stats.families.transitivity import transitive_closure
from tests.fold_log import FoldLog, packed


def reachable(decided):
    """Warshall's algorithm, one loop at a time."""
    closure = decided.copy()
    for k in range(len(closure)):
        for i in range(len(closure)):
            for j in range(len(closure)):
                closure[i, j] |= closure[i, k] and closure[k, j]
    return closure


@given(st.integers(0, 12), st.integers(0, 2**32), st.floats(0, 0.6))
def test_the_closure_is_what_can_be_reached(size, seed, share):
    rng = np.random.default_rng(seed)
    decided = np.triu(rng.random((size, size)) < share, 1)
    mixed = rng.permutation(size)
    decided = decided[mixed][:, mixed]
    assert (transitive_closure(decided) == reachable(decided)).all()


def test_a_chain_of_any_length_is_closed():
    chain = np.eye(70, k=1, dtype=bool)
    assert (transitive_closure(chain) == np.triu(np.ones((70, 70), bool), 1)).all()


@given(st.integers(3, 9), st.integers(0, 2**32))
def test_decisions_that_contradict_each_other_are_left_alone(size, seed):
    rng = np.random.default_rng(seed)
    decided = np.triu(rng.random((size, size)) < 0.5, 1)
    decided[0, 1] = decided[1, 2] = decided[2, 0] = True
    decided[0, 2] = False
    assert (transitive_closure(decided) == decided).all()


def test_a_large_field_of_models_is_not_closed(monkeypatch):
    log = chain(slice(None), slice(None), slice(None), order="trusted", family={"pairs": [["a", "b"], ["b", "c"]]})
    assert intervals(log) == [(1, 1), (2, 2), (3, 3)]
    monkeypatch.setattr(standings, "CLOSURE_MODELS", 2)
    assert intervals(log) == [(1, 2), (2, 2), (2, 3)]


def chain(a, b, c, **spec):
    """120 items of which a has all right, b the first half and c none; each model has only some of them."""
    log = FoldLog({"declare": "bench", **spec})
    scores = np.repeat([[1, 1, 0], [1, 0, 0]], 60, axis=0).astype(float)
    kept = np.full(scores.shape, np.nan)
    for k, items in enumerate((a, b, c)):
        kept[items, k] = scores[items, k]
    log.send(packed(kept, "abc"), *({"ended": "bench", "model": model} for model in "abc"))
    return log


def intervals(log):
    return [(m.rank_low, m.rank_high) for m in benchmark_report(board_view(log.bench)).models]


FIRST, LAST, ALL = slice(0, 60), slice(60, 120), slice(None)


@pytest.mark.parametrize(
    ("spec", "items", "closed"),
    [
        # a and b are compared on the last 60 items, b and c on the first 60, a and c on none.
        ({"order": "trusted"}, (LAST, ALL, FIRST), False),
        ({"items": 120, "missing": "ignorable"}, (LAST, ALL, FIRST), False),
        ({"order": "trusted", "family": {"pairs": [["a", "b"], ["b", "c"]]}}, (ALL, ALL, ALL), True),
        ({"items": 120, "missing": "ignorable", "family": {"pairs": [["a", "b"], ["b", "c"]]}}, (ALL, ALL, ALL), True),
        # c lacks 5 items that count against b: the decision is about all 120.
        ({"items": 120, "family": {"pairs": [["a", "b"], ["b", "c"]]}}, (ALL, ALL, slice(0, 115)), True),
    ],
)
def test_only_decisions_on_the_same_items_are_closed(spec, items, closed):
    log = chain(*items, **spec)
    decided = {
        (pair.model_a, pair.model_b)
        for pair in benchmark_report(board_view(log.bench), pairs="all").pairs
        if pair.decided.anytime_family == "a"
    }
    assert decided == {("a", "b"), ("b", "c")}
    assert intervals(log) == ([(1, 1), (2, 2), (3, 3)] if closed else [(1, 2), (2, 2), (2, 3)])

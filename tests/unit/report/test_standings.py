"""What follows from decisions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from monitor.report import standings
from monitor.report.build import benchmark_report
from monitor.report.standings import transitive_closure
from tests.fold_log import FoldLog, packed, paired


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
    log = FoldLog({"declare": "bench", "order": "trusted"})
    log.send(packed(paired(60, 0, 60), "ab", items=range(120)), packed(paired(60, 0), "bc", items=range(120, 180)))

    def intervals():
        return [(m.rank_low, m.rank_high) for m in benchmark_report(log.bench).models]

    assert intervals() == [(1, 1), (2, 2), (3, 3)]
    monkeypatch.setattr(standings, "CLOSURE_MODELS", 2)
    assert intervals() == [(1, 2), (2, 2), (2, 3)]

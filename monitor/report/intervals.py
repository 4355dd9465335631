"""Intervals of the gap of graded scores, for the pairs that are listed."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.pairs import Index
from monitor.report.pair_table import Floats, PairTable

MOST_PAIRS: Final = 100_000
"""Listed pairs up to which intervals are computed: each takes a walk over its items."""

_SLAB_CELLS: Final = 100_000


def graded_intervals(table: PairTable, listed: Index, threshold: NDArray[np.float64]) -> dict[str, Floats]:
    """Return the empirical Bernstein bounds of the gap, anytime-valid, at alpha and at alpha_j; nan where there are none.

    The items are taken in the order in which the benchmark saw them first.

    Parameters
    ----------
    table : PairTable
    listed : array of int64, shape (pairs,)
    threshold : array of float64, shape (pairs,)
        ln 1/alpha_j; infinite for a pair without a place in the family.
    """
    names = ("gap_low", "gap_high", "gap_family_low", "gap_family_high")
    columns = {name: np.full(listed.size, np.nan) for name in names}
    if listed.size > MOST_PAIRS:
        return columns
    levels = {"gap": np.full(listed.size, table.benchmark.spec.alpha), "gap_family": np.exp(-threshold)}
    x, scored = (np.ascontiguousarray(values.T) for values in table.scores)
    present = scored > 0
    shared = table.n[listed] > 0
    step = max(1, _SLAB_CELLS // max(1, x.shape[1]))
    for start in range(0, listed.size, step):
        at = start + np.flatnonzero(shared[start : start + step])
        if at.size == 0:
            continue
        a, b = table.a[listed[at]], table.b[listed[at]]
        half, items = _packed((x[a] - x[b] + 1) / 2, present[a] & present[b])
        for name, alpha in levels.items():
            some = np.flatnonzero(alpha[at] > 0)
            low, high = _bounds(half[some], items[some], alpha[at[some]])
            columns[f"{name}_low"][at[some]], columns[f"{name}_high"][at[some]] = low, high
    return columns


def _packed(values: Floats, there: NDArray[np.bool_]) -> tuple[Floats, Index]:
    """Move what is there to the front of each row, in order; return that, and how much there is in each row."""
    items = there.sum(axis=1)
    packed = np.full((items.size, int(items.max())), 0.5)
    packed[np.arange(packed.shape[1]) < items[:, None]] = values[there]
    return packed, items


def _bounds(half: Floats, items: Index, alpha: Floats) -> tuple[Floats, Floats]:
    """Return the bounds of the gap behind the last item of each pair, from (D + 1) / 2."""
    if items.size == 0:
        return np.empty(0), np.empty(0)
    from stats.sequences import empirical_bernstein

    low, high = empirical_bernstein(half, alpha[:, None])
    last = (np.arange(items.size), items - 1)
    return 2 * low[last] - 1, 2 * high[last] - 1

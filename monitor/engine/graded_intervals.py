"""Intervals of the gap of graded scores, for the pairs that are listed."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.pair_table import Floats, PairTable
from monitor.engine.pairs import Index

MOST_PAIRS: Final = 5_000
"""Listed pairs up to which intervals are computed: each takes a walk over its items."""


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
    from stats.sequences import empirical_bernstein

    names = ("gap_low", "gap_high", "gap_family_low", "gap_family_high")
    columns = {name: np.full(listed.size, np.nan) for name in names}
    if listed.size > MOST_PAIRS:
        return columns
    x, scored = table.scores
    for r, q in enumerate(listed.tolist()):
        a, b = table.a[q], table.b[q]
        shared = (scored[:, a] > 0) & (scored[:, b] > 0)
        if not shared.any():
            continue
        half = (x[shared, a] - x[shared, b] + 1) / 2
        for name, alpha in (("gap", table.benchmark.spec.alpha), ("gap_family", float(np.exp(-threshold[r])))):
            if alpha > 0:
                low, high = empirical_bernstein(half, alpha)
                columns[f"{name}_low"][r], columns[f"{name}_high"][r] = 2 * low[-1] - 1, 2 * high[-1] - 1
    return columns

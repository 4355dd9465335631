"""Pairs of graded scores: the log capital of every bet, in fixed point.

Each bet has one whole number, so that no chunking, order or restart changes it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import SCORE_UNIT, ZERO, Codes
from monitor.engine.state.pairs import Index, pair_count
from stats.graded import LAMBDAS, initial_capital, log_increments

BETS: Final = 2 * len(LAMBDAS)
GRADED_MIXTURE: Final = "graded grid"
"""Name of these bets in reports and verdict changes, instead of the declared mixture of 0/1 scores."""

_SLAB_CELLS: Final = 2_000_000

Capital = NDArray[np.int64]
Differences = NDArray[np.int64]
"""D in units of `SCORE_UNIT`, shape (pairs, items)."""


class GradedPairs:
    """Capital and lead of each pair, in the order of pair indices."""

    def __init__(self) -> None:
        self.capital = initial_capital((0,))  # shape (pairs, 2, L), see `stats.graded`: 832 bytes a pair
        self.lead = np.zeros(0, np.int64)  # sum of D in units of `SCORE_UNIT`

    def grow(self, contestants: int) -> None:
        """Make room for the pairs of all contestants."""
        pairs = pair_count(contestants)
        if self.lead.size < pairs:
            self.capital = np.concatenate([self.capital, initial_capital((pairs - self.lead.size,))])
            self.lead = np.concatenate([self.lead, np.zeros(pairs - self.lead.size, np.int64)])


def capital_gained(differences: Differences) -> tuple[Capital, Capital]:
    """Add up the log increments of items by pair: all of them, and the positive ones. No bet is higher anywhere on the trajectory.

    Both sums have shape (pairs, 2, L). Where a pair does not share an item its difference is 0, as is its increment.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - only graded scores need it

    pair, item = np.nonzero(differences)
    distinct, index = np.unique(differences[pair, item], return_inverse=True)
    steps = log_increments(distinct / SCORE_UNIT).reshape(distinct.size, BETS)
    counts = csr_array(
        (np.ones(pair.size, np.int64), (pair, index)), shape=(differences.shape[0], max(distinct.size, 1))
    )
    if distinct.size == 0:
        steps = np.zeros((1, BETS), np.int64)
    shape = (differences.shape[0], 2, len(LAMBDAS))
    return np.asarray(counts @ steps).reshape(shape), np.asarray(counts @ np.maximum(steps, 0)).reshape(shape)


def capital_of(codes: Codes, values: NDArray[np.int64], i: Index, j: Index) -> tuple[Capital, Differences]:
    """Return capital and lead of pairs from a whole matrix of items."""
    capital, lead = initial_capital((i.size,)), np.zeros(i.size, np.int64)
    step = max(1, _SLAB_CELLS // max(1, codes.shape[0]))
    for start in range(0, i.size, step):
        some = slice(start, start + step)
        differences = differences_of(codes[:, i[some]].T, codes[:, j[some]].T, values)
        capital[some], _ = capital_gained(differences)
        lead[some] = differences.sum(axis=1)
    return capital, lead


def differences_of(first: Codes, second: Codes, values: NDArray[np.int64]) -> Differences:
    """Return D of shared items and 0 elsewhere, shape (pairs, items), from codes of that shape."""
    return np.where((first >= ZERO) & (second >= ZERO), values[first] - values[second], 0)

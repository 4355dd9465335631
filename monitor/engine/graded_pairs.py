"""Pairs of graded scores: the log capital of every bet, in fixed point, and the latches it closes.

Each pair has its own row of `stats.graded`: one whole number a bet, so that no chunking, order or restart changes a bit of it.
"""

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.counts import ZERO, Codes, Gains
from monitor.engine.pairs import Index, chosen, pair_count, pair_index, pair_members
from stats.graded import (
    LAMBDAS,
    graded_completion_bound,
    graded_log_e,
    initial_capital,
    log_increments,
)

if TYPE_CHECKING:
    from monitor.engine.benchmark import Benchmark
    from monitor.engine.latches import Chunk, Crossing

BETS: Final = 2 * len(LAMBDAS)
GRADED_MIXTURE: Final = "graded grid"
"""How reports and verdict changes call these bets, where 0/1 scores have the declared mixture."""

_SLAB_CELLS: Final = 2_000_000
_SLACK: Final = 1e-9

Capital = NDArray[np.int64]
Differences = NDArray[np.int64]
"""D in units of the benchmark, shape (pairs, items)."""


class GradedPairs:
    """What is kept of each pair, in the order of pair indices.

    Attributes
    ----------
    capital : array of int64, shape (pairs, 2, L)
        See `stats.graded`: 832 bytes a pair.
    lead : array of int64, shape (pairs,)
        Sum of D in the units of the benchmark.
    """

    def __init__(self) -> None:
        self.capital = initial_capital((0,))
        self.lead = np.zeros(0, np.int64)

    def grow(self, contestants: int) -> None:
        """Make room for the pairs of all contestants."""
        pairs = pair_count(contestants)
        if self.lead.size < pairs:
            self.capital = np.concatenate([self.capital, initial_capital((pairs - self.lead.size,))])
            self.lead = np.concatenate([self.lead, np.zeros(pairs - self.lead.size, np.int64)])


def capital_gained(differences: Differences, unit: int) -> tuple[Capital, Capital]:
    """Add up what items bring to the capital of each pair.

    Parameters
    ----------
    differences : array of int64, shape (pairs, items)
        0 where a pair does not share an item: that brings nothing.
    unit : int
        What stands for a difference of 1.

    Returns
    -------
    gained, most : arrays of int64, shape (pairs, 2, L)
        What all of them bring, and what those bring that raise a bet: no bet stands higher anywhere on the way.
    """
    from scipy.sparse import csr_array

    pair, item = np.nonzero(differences)
    distinct, index = np.unique(differences[pair, item], return_inverse=True)
    steps = log_increments(distinct / unit).reshape(distinct.size, BETS)
    counts = csr_array(
        (np.ones(pair.size, np.int64), (pair, index)), shape=(differences.shape[0], max(distinct.size, 1))
    )
    if distinct.size == 0:
        steps = np.zeros((1, BETS), np.int64)
    shape = (differences.shape[0], 2, len(LAMBDAS))
    return np.asarray(counts @ steps).reshape(shape), np.asarray(counts @ np.maximum(steps, 0)).reshape(shape)


def capital_of(codes: Codes, values: NDArray[np.int64], unit: int, i: Index, j: Index) -> tuple[Capital, Differences]:
    """Return capital and lead of pairs from a whole matrix of items."""
    capital, lead = initial_capital((i.size,)), np.zeros(i.size, np.int64)
    step = max(1, _SLAB_CELLS // max(1, codes.shape[0]))
    for start in range(0, i.size, step):
        some = slice(start, start + step)
        differences = differences_of(codes[:, i[some]].T, codes[:, j[some]].T, values)
        capital[some], _ = capital_gained(differences, unit)
        lead[some] = differences.sum(axis=1)
    return capital, lead


def differences_of(first: Codes, second: Codes, values: NDArray[np.int64]) -> Differences:
    """Return D of shared items and 0 elsewhere, shape (pairs, items), from codes of that shape."""
    return np.where((first >= ZERO) & (second >= ZERO), values[first] - values[second], 0)


def enter_graded(benchmark: "Benchmark", chunk: "Chunk", gains: Gains, *, betting: bool) -> "list[Crossing]":
    """Add the items that a chunk lets pairs share to their capital, and close the latches they reach.

    Parameters
    ----------
    benchmark : Benchmark
        With the counts of the chunk already added, and its new pairs registered.
    chunk : Chunk
    gains : Gains
        What the chunk added.
    betting : bool
        Whether latches may close.
    """
    assert benchmark.graded_pairs is not None
    changed = np.flatnonzero(gains.n)
    pair = chosen(gains.pair, changed)
    i, j = pair_members(pair)
    start = benchmark.n[pair] - gains.n[changed]
    found: list[Crossing] = []
    step = max(1, _SLAB_CELLS // max(1, chunk.rows))
    for low in range(0, i.size, step):
        some = slice(low, low + step)
        found += _enter_some(benchmark, chunk, i[some], j[some], start[some], betting=betting)
    return sorted(found, key=lambda x: (x.position, x.pair))


def _enter_some(
    benchmark: "Benchmark", chunk: "Chunk", i: Index, j: Index, start: NDArray[np.int32], *, betting: bool
) -> "list[Crossing]":
    from monitor.engine.latches import NEVER, log_thresholds, open_limits

    sums = benchmark.graded_pairs
    assert sums is not None
    times = chunk.shared(i, j)
    joined = (times >= 0) & (times < NEVER)
    differences = np.where(joined, differences_of(chunk.after[i], chunk.after[j], benchmark.item_values), 0)
    gained, most = capital_gained(differences, benchmark.unit)
    pair = pair_index(i, j)
    capital, lead = sums.capital[pair], sums.lead[pair]
    sums.capital[pair] += gained
    sums.lead[pair] += differences.sum(axis=1)
    if not betting:
        return []
    threshold = log_thresholds(benchmark, pair)
    limit = open_limits(benchmark, pair, threshold)
    if benchmark.spec.order.policy == "completion":
        # The bound never falls, so its largest value is the last one; and a decision that cannot be undone cannot reverse.
        left = benchmark.missing(benchmark.n[pair])
        reach = np.maximum(*graded_completion_bound(sums.capital[pair], left)) >= limit - _SLACK
    else:
        reach = graded_log_e(capital + most) >= limit - _SLACK
        reach |= _turned(benchmark, pair, lead, differences)
    candidates = np.flatnonzero(reach)
    found: list[Crossing] = []
    step = max(1, _SLAB_CELLS // (BETS * max(1, int(joined.sum(axis=1).max(initial=1)))))
    for low in range(0, candidates.size, step):
        some = candidates[low : low + step]
        limits = {procedure: values[some] for procedure, values in threshold.items()}
        before = (start[some], capital[some], lead[some])
        found += _replay(benchmark, (i[some], j[some]), before, (times[some], differences[some]), limits)
    return found


def _turned(
    benchmark: "Benchmark", pair: Index, lead: NDArray[np.int64], differences: Differences
) -> NDArray[np.bool_]:
    """Say which decided pairs may have come to lean the other way somewhere on their way."""
    lowest = lead + np.minimum(differences, 0).sum(axis=1)
    highest = lead + np.maximum(differences, 0).sum(axis=1)
    reach = np.zeros(pair.shape, bool)
    for latch in benchmark.latched.values():
        side = latch[pair]
        # A pair that is decided inside the chunk is replayed anyway.
        reach |= ((side == 1) & (lowest < 0)) | ((side == -1) & (highest > 0))
    return reach


def _replay(
    benchmark: "Benchmark",
    members: tuple[Index, Index],
    before: tuple[NDArray[np.int32], Capital, NDArray[np.int64]],
    way: tuple[NDArray[np.int16], Differences],
    threshold: dict[str, NDArray[np.float64]],
) -> "list[Crossing]":
    """Follow pairs event by event through a chunk."""
    from monitor.engine.latches import NEVER, Path, close

    (n0, capital0, lead0), (times, differences) = before, way
    joined = (times >= 0) & (times < NEVER)
    length = int(joined.sum(axis=1).max(initial=0))
    order = np.argsort(np.where(joined, times, NEVER), axis=1, kind="stable")[:, :length]
    along = np.take_along_axis(differences, order, axis=1)
    happened = np.take_along_axis(joined, order, axis=1)
    distinct, index = np.unique(along, return_inverse=True)
    steps = log_increments(distinct / benchmark.unit)[index.reshape(along.shape)]
    capital = capital0[:, None] + np.cumsum(steps, axis=1)
    n = n0[:, None] + np.cumsum(happened, axis=1, dtype=np.int32)
    lead = lead0[:, None] + np.cumsum(along, axis=1)
    if benchmark.spec.order.policy == "completion":
        missing = benchmark.missing(n)
        for_first, for_second = graded_completion_bound(capital, missing)
        evidence, side = np.maximum(for_first, for_second), np.where(for_first >= for_second, 1, -1)
    else:
        missing, evidence, side = np.zeros_like(n), graded_log_e(capital), np.sign(lead)
    when = np.take_along_axis(times, order, axis=1)
    at = np.nonzero(happened)
    none = np.zeros(at[0].size, np.int32)
    path = Path(at[0], when[at], n[at], none, none, lead[at], missing[at], evidence[at], side[at])
    return close(benchmark, members, path, threshold)

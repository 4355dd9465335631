"""Close the latches of graded scores: ruled out by the most a chunk can bring, then replayed event by event."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import NEVER, Chunk, Crossing, Path, close, log_thresholds, open_limits
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.counts import Gains
from monitor.engine.state.graded import BETS, Capital, Differences, capital_gained, differences_of
from monitor.engine.state.pairs import Index, chosen, pair_index, pair_members
from stats.graded import graded_completion_bound, graded_log_e, log_increments

_SLAB_CELLS: Final = 2_000_000
_SLACK: Final = 1e-9


def enter_graded(benchmark: Benchmark, chunk: Chunk, gains: Gains, *, betting: bool) -> list[Crossing]:
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
    benchmark: Benchmark, chunk: Chunk, i: Index, j: Index, start: NDArray[np.int32], *, betting: bool
) -> list[Crossing]:
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


def _turned(benchmark: Benchmark, pair: Index, lead: NDArray[np.int64], differences: Differences) -> NDArray[np.bool_]:
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
    benchmark: Benchmark,
    members: tuple[Index, Index],
    before: tuple[NDArray[np.int32], Capital, NDArray[np.int64]],
    way: tuple[NDArray[np.int16], Differences],
    threshold: dict[str, NDArray[np.float64]],
) -> list[Crossing]:
    """Follow pairs event by event through a chunk."""
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

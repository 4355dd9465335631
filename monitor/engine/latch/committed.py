"""Latches along a committed order: the evidence at every item of a prefix counts, in the order of the permutation.

For the first model a skipped item bets the lowest difference it allows, for the second one the highest. So the evidence is the sum of two
parts: e+ at (b, c_worst) and e- at (b_best, c), each with its weight in the mixture. With nothing skipped it is e(b, c).
"""

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import SLACK, Crossing, Trajectory, close, in_log_order, may_reach
from monitor.engine.state.codes import ONE, SKIPPED, ZERO, Codes
from monitor.engine.state.committed import Advance, Committed
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index, pair_index
from stats.eprocess import log_completion_bound, log_e_value

_SLAB_CELLS: Final = 2_000_000
_LN2: Final = log(2.0)

Counts = NDArray[np.int32] | NDArray[np.int64]


def prefix_evidence(
    b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ln of the two parts of the evidence, for the first model and for the second; their sum is the e-value."""
    for_first, for_second = log_completion_bound(b, c, 0, mixture)
    some = np.nonzero((c_worst != c) | (b_best != b))
    if some[0].size:
        for_first[some] = log_completion_bound(b[some], c_worst[some], 0, mixture)[0]
        for_second[some] = log_completion_bound(b_best[some], c[some], 0, mixture)[1]
    return for_first, for_second


def prefix_log_e(b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str) -> NDArray[np.float64]:
    """Return ln of the two-sided evidence."""
    log_e = log_e_value(b, c, mixture)
    skipped = np.nonzero((c_worst != c) | (b_best != b))
    if skipped[0].size:
        log_e[skipped] = np.logaddexp(
            *prefix_evidence(b[skipped], c[skipped], c_worst[skipped], b_best[skipped], mixture)
        )
    return log_e


def crossings_along(pairs: PairState, committed: Committed, advance: Advance) -> list[Crossing]:
    """Close the latches that prefixes reach; return them in the order of the log."""
    pair = pair_index(advance.i, advance.j)
    threshold = pairs.log_thresholds(pair)
    limit = pairs.open_limits(pair, threshold)
    candidates = np.flatnonzero(_reach(pairs, committed, advance, pair, limit))
    length = advance.stop - advance.start
    closed: list[Crossing] = []
    step = max(1, _SLAB_CELLS // max(1, int(length[candidates].max(initial=0))))
    for start in range(0, candidates.size, step):
        some = candidates[start : start + step]
        limits = {procedure: values[some] for procedure, values in threshold.items()}
        trajectory = _trajectory(pairs.spec.mixture, committed, advance, some, limit[some])
        closed += close(pairs.latched, (advance.i[some], advance.j[some]), trajectory, limits)
    return in_log_order(closed)


def _reach(
    pairs: PairState, committed: Committed, advance: Advance, pair: Index, limit: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return which pairs may close a latch: each part of the evidence is largest at a corner of its counts."""
    mixture, before = pairs.spec.mixture, advance.before
    b1, c1 = (committed.sums[name][pair] for name in ("b", "c"))
    reach = _may_reach(b1, before["c_worst"], before["b_best"], c1, limit)
    some = np.flatnonzero(reach)
    for_first = log_completion_bound(b1[some], before["c_worst"][some], 0, mixture)[0]
    for_second = log_completion_bound(before["b_best"][some], c1[some], 0, mixture)[1]
    reach[some] = np.logaddexp(for_first, for_second) >= limit[some] - SLACK
    return reach | pairs.may_reverse(pair, before["b"] - c1, b1 - before["c"])


def _may_reach(
    b: NDArray[np.int32],
    c_worst: NDArray[np.int32],
    b_best: NDArray[np.int32],
    c: NDArray[np.int32],
    limit: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Rule out most evidence that is below a limit: the sum of two parts reaches it only if the larger one reaches half of it."""
    return may_reach(b, c_worst, limit - _LN2) | may_reach(b_best, c, limit - _LN2)


def _trajectory(
    mixture: str, committed: Committed, advance: Advance, some: Index, limit: NDArray[np.float64]
) -> Trajectory:
    """Return the steps of some pairs along the permutation at which they may reach a limit or reverse."""
    i, j, start = advance.i[some], advance.j[some], advance.start[some]
    length = advance.stop[some] - start
    index = start[:, None] + np.arange(int(length.max()))
    happened = index < (start + length)[:, None]
    index = np.minimum(index, advance.ranks.size - 1)
    contestants = np.unique(np.concatenate([i, j]))
    times = advance.times(contestants)
    first, second = np.searchsorted(contestants, i)[:, None], np.searchsorted(contestants, j)[:, None]
    x, y = advance.codes[index, i[:, None]], advance.codes[index, j[:, None]]
    sums = {
        name: advance.before[name][some][:, None] + np.cumsum(happened & steps, axis=1, dtype=np.int32)
        for name, steps in item_steps(x, y).items()
    }
    b, c, c_worst, b_best = (sums[name] for name in ("b", "c", "c_worst", "b_best"))
    near = _may_reach(b, c_worst, b_best, c, limit[:, None])
    near |= np.abs(b - c) == 1  # the lead moves by one item: it reverses nowhere else
    near[:, 0] = True
    at = np.nonzero(happened & near)
    walked = committed.prefix(i, j) - length
    n, b, c, c_worst, b_best = (sums[name][at] for name in ("n", "b", "c", "c_worst", "b_best"))
    for_first, for_second = prefix_evidence(b, c, c_worst, b_best, mixture)
    return Trajectory(
        of=at[0],
        when=np.maximum(times[index, first][at], times[index, second][at]),
        n=n,
        b=b,
        c=c,
        lead=b - c,
        missing=(walked[at[0]] + at[1] + 1 - n).astype(np.int32),
        evidence=prefix_log_e(b, c, c_worst, b_best, mixture),
        side=np.where(for_first >= for_second, 1, -1),
    )


def item_steps(x: Codes, y: Codes) -> dict[str, NDArray[np.bool_]]:
    """Return which sums each item of each pair adds to; every score is present or skipped."""
    maybe_right, maybe_wrong = (x == ONE) | (x == SKIPPED), (x == ZERO) | (x == SKIPPED)
    return {
        "n": (x >= ZERO) & (y >= ZERO),
        "b": (x == ONE) & (y == ZERO),
        "c": (x == ZERO) & (y == ONE),
        "c_worst": maybe_wrong & ((y == ONE) | (y == SKIPPED)),
        "b_best": maybe_right & ((y == ZERO) | (y == SKIPPED)),
    }

"""Latches along a committed order: the evidence at every item of a prefix counts, in the order of the permutation.

For the first model a skipped item bets the lowest difference it allows, for the second one the highest. So the evidence is the sum of two
parts: e+ at (b, c_worst) and e- at (b_best, c), each with its weight in the mixture. With nothing skipped it is e(b, c).
"""

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Crossing, Path, close, log_thresholds, may_reach, open_limits, turned
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.committed import SUMS, Advance
from monitor.engine.state.counts import ONE, SKIPPED, ZERO, Codes
from monitor.engine.state.pairs import pair_index
from stats.eprocess import log_completion_bound, log_e_value

_SLAB_CELLS: Final = 2_000_000
_SLACK: Final = 1e-9
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


def crossings_along(benchmark: Benchmark, advance: Advance) -> list[Crossing]:
    """Close the latches that prefixes reach; the result is in the order of the log."""
    pair = pair_index(advance.i, advance.j)
    threshold = log_thresholds(benchmark, pair)
    candidates = np.flatnonzero(_reach(benchmark, advance, pair, threshold))
    length = advance.stop - advance.start
    found: list[Crossing] = []
    step = max(1, _SLAB_CELLS // max(1, int(length[candidates].max(initial=0))))
    for start in range(0, candidates.size, step):
        some = candidates[start : start + step]
        limits = {procedure: values[some] for procedure, values in threshold.items()}
        path = _path(benchmark, advance, some, open_limits(benchmark, pair[some], limits))
        found += close(benchmark, (advance.i[some], advance.j[some]), path, limits)
    return sorted(found, key=lambda x: (x.position, x.pair))


def _reach(
    benchmark: Benchmark, advance: Advance, pair: NDArray[np.int64], threshold: dict[str, NDArray[np.float64]]
) -> NDArray[np.bool_]:
    """Say which pairs may close a latch on their way: each part is largest at a corner of its counts."""
    mixture = benchmark.spec.mixture
    before, limit = advance.before, open_limits(benchmark, pair, threshold)
    assert benchmark.committed is not None
    b1, c1 = (benchmark.committed.sums[name][pair] for name in ("b", "c"))
    reach = _may_reach(b1, before["c_worst"], before["b_best"], c1, limit)
    some = np.flatnonzero(reach)
    for_first = log_completion_bound(b1[some], before["c_worst"][some], 0, mixture)[0]
    for_second = log_completion_bound(before["b_best"][some], c1[some], 0, mixture)[1]
    reach[some] = np.logaddexp(for_first, for_second) >= limit[some] - _SLACK
    return reach | turned(benchmark, pair, (before["b"], before["c"]), (b1, c1))


def _may_reach(
    b: NDArray[np.int32],
    c_worst: NDArray[np.int32],
    b_best: NDArray[np.int32],
    c: NDArray[np.int32],
    limit: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Rule out most evidence that is below a limit: the sum of two parts reaches it only if the larger one reaches half of it."""
    return may_reach(b, c_worst, limit - _LN2) | may_reach(b_best, c, limit - _LN2)


def _path(benchmark: Benchmark, advance: Advance, some: NDArray[np.int64], limit: NDArray[np.float64]) -> Path:
    """Lay out the way of some pairs along the permutation, item by item, as far as it may come to a limit or turn."""
    i, j, start = advance.i[some], advance.j[some], advance.start[some]
    length = advance.stop[some] - start
    index = start[:, None] + np.arange(int(length.max()))
    happened = index < (start + length)[:, None]
    index = np.minimum(index, advance.ranks.size - 1)
    contestants = np.unique(np.concatenate([i, j]))
    times = advance.times(contestants)
    first, second = np.searchsorted(contestants, i)[:, None], np.searchsorted(contestants, j)[:, None]
    x, y = advance.codes[index, i[:, None]], advance.codes[index, j[:, None]]
    standing = {name: advance.before[name][some] for name in SUMS}
    sums = {
        name: standing[name][:, None] + np.cumsum(happened & steps, axis=1, dtype=np.int32)
        for name, steps in item_steps(x, y).items()
    }
    b, c, c_worst, b_best = (sums[name] for name in ("b", "c", "c_worst", "b_best"))
    near = _may_reach(b, c_worst, b_best, c, limit[:, None])
    near |= np.abs(b - c) == 1  # the lead goes by one: it changes hands nowhere else
    near[:, 0] = True
    at = np.nonzero(happened & near)
    assert benchmark.committed is not None
    walked = benchmark.committed.prefix(i, j) - length
    n, b, c, c_worst, b_best = (sums[name][at] for name in ("n", "b", "c", "c_worst", "b_best"))
    for_first, for_second = prefix_evidence(b, c, c_worst, b_best, benchmark.spec.mixture)
    return Path(
        of=at[0],
        when=np.maximum(times[index, first][at], times[index, second][at]),
        n=n,
        b=b,
        c=c,
        lead=b - c,
        missing=(walked[at[0]] + at[1] + 1 - n).astype(np.int32),
        evidence=prefix_log_e(b, c, c_worst, b_best, benchmark.spec.mixture),
        side=np.where(for_first >= for_second, 1, -1),
    )


def item_steps(x: Codes, y: Codes) -> dict[str, NDArray[np.bool_]]:
    """Say for each item of each pair which of the sums it adds to; all scores are there, or skipped."""
    maybe_right, maybe_wrong = (x == ONE) | (x == SKIPPED), (x == ZERO) | (x == SKIPPED)
    return {
        "n": (x >= ZERO) & (y >= ZERO),
        "b": (x == ONE) & (y == ZERO),
        "c": (x == ZERO) & (y == ONE),
        "c_worst": maybe_wrong & ((y == ONE) | (y == SKIPPED)),
        "b_best": maybe_right & ((y == ZERO) | (y == SKIPPED)),
    }

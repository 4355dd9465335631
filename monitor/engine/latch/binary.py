"""Latches of binary scores: ruled out by whole numbers, then by the corners of a chunk, then of a stretch, then event by event.

Sums do not care about the order inside a chunk, latches do. ln e is convex in (b, c), so its largest value over the rectangle that a way
through (b, c) lies in is at a corner; the completion bound never falls along a way. So most pairs need no look at their way through a
chunk, and of the way of the others only the stretches need one where the corners do not rule a latch out.
"""

from collections.abc import Iterator
from math import isqrt, log
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import (
    NEVER,
    Chunk,
    Counts,
    Crossing,
    Path,
    Times,
    close,
    log_thresholds,
    may_reach,
    open_limits,
    turned,
)
from monitor.engine.state.benchmark import PROCEDURES, Benchmark
from monitor.engine.state.counts import ONE, ZERO, Gains
from monitor.engine.state.pairs import Index, chosen, pair_members
from stats.eprocess import log_e_value, log_leader_bound

_SLAB_CELLS: Final = 500_000
_SLAB_PAIRS: Final = 32_768
_LN2: Final = log(2.0)
_SLACK: Final = 1e-9
"""A corner this close below its threshold is replayed too: rounding must not decide what is looked at."""


class _Sums(NamedTuple):
    """The counts of pairs at one point of their way; arrays of one shape."""

    n: Counts
    b: Counts
    c: Counts


def crossings(benchmark: Benchmark, chunk: Chunk, gains: Gains) -> list[Crossing]:
    """Close the latches that a chunk reaches.

    Parameters
    ----------
    benchmark : Benchmark
        With the sums of the chunk already added, and its new pairs registered.
    chunk : Chunk
        The new cells.
    gains : Gains
        What the chunk added.

    Returns
    -------
    list of Crossing
        In the order of the log. The latches of `benchmark` are set.
    """
    found: list[Crossing] = []
    step = max(1, _SLAB_CELLS // max(1, chunk.rows))
    for near in _near(benchmark, gains):
        pair = chosen(gains.pair, near)
        after = _Sums(benchmark.n[pair], benchmark.b[pair], benchmark.c[pair])
        before = _Sums(*(x - gain[near] for x, gain in zip(after, gains[1:], strict=True)))
        threshold = log_thresholds(benchmark, pair)
        limit = open_limits(benchmark, pair, threshold)
        reach = _most(benchmark, before, after, limit) >= limit - _SLACK
        if benchmark.spec.order.policy != "completion":
            reach |= turned(benchmark, pair, before[1:], after[1:])
        candidates = np.flatnonzero(reach)
        for start in range(0, candidates.size, step):
            some = candidates[start : start + step]
            limits = {procedure: values[some] for procedure, values in threshold.items()}
            found += _replay(benchmark, chunk, pair[some], _Sums(*(x[some] for x in before)), limits)
    return sorted(found, key=lambda x: (x.position, x.pair))


def _near(benchmark: Benchmark, gains: Gains) -> Iterator[Index]:
    """Yield where among the pairs those stand that may close a latch, some at a time: the others are ruled out by whole numbers.

    No threshold is below ln 1/alpha, so what does not come near that needs none computed. See `may_reach`.
    """
    size = gains.n.size
    ratio = np.float32(-log(benchmark.spec.alpha) / _LN2 * (1 - 1e-5))
    for start in range(0, size, _SLAB_PAIRS):
        part = slice(start, min(start + _SLAB_PAIRS, size))
        pair = part if isinstance(gains.pair, slice) else gains.pair[part]
        b1, c1 = benchmark.b[pair], benchmark.c[pair]
        b0, c0 = b1 - gains.b[part], c1 - gains.c[part]
        undecided = np.logical_or.reduce([benchmark.latched[procedure][pair] == 0 for procedure in PROCEDURES])
        if benchmark.spec.order.policy == "completion":
            near = undecided & (np.abs(b1 - c1) > benchmark.missing(benchmark.n[pair]))
        else:
            near = undecided & (_far_apart(b1, c0, ratio) | _far_apart(b0, c1, ratio))
            near |= turned(benchmark, pair, (b0, c0), (b1, c1))
        some = np.flatnonzero(near & (gains.n[part] > 0))
        if some.size:
            yield some + start


def _far_apart(b: Counts, c: Counts, ratio: np.float32) -> NDArray[np.bool_]:
    """`may_reach` in half the bits, with room for their rounding."""
    difference = (b - c).astype(np.float32)
    difference *= difference
    return np.asarray(difference > ratio * (b + c).astype(np.float32))


def _evidence(benchmark: Benchmark, at: _Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ln e, or its bound, at points; minus infinity where it is below a limit for certain."""
    found = np.full(limit.shape, -np.inf)
    mixture = benchmark.spec.mixture
    if benchmark.spec.order.policy == "completion":
        missing = benchmark.missing(at.n)
        lead, trail = np.maximum(at.b, at.c), np.minimum(at.b, at.c) + missing
        some = np.nonzero((lead > trail) & may_reach(lead, trail, limit))
        found[some] = log_leader_bound(at.b[some], at.c[some], missing[some], mixture)
    else:
        some = np.nonzero(may_reach(at.b, at.c, limit))
        found[some] = log_e_value(at.b[some], at.c[some], mixture)
    return found


def _most(benchmark: Benchmark, low: _Sums, high: _Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the most that the evidence may be between two points of a way; minus infinity where that is below a limit for certain."""
    if benchmark.spec.order.policy == "completion":
        return _evidence(benchmark, high, limit)  # the bound never falls
    corners = _Sums(*(np.stack(x) for x in ((high.n, high.n), (high.b, low.b), (low.c, high.c))))
    return np.asarray(_evidence(benchmark, corners, np.stack([limit, limit])).max(axis=0))


def _replay(
    benchmark: Benchmark, chunk: Chunk, pair: Index, before: _Sums, threshold: dict[str, NDArray[np.float64]]
) -> list[Crossing]:
    """Follow pairs through a chunk, closely where it matters; see `crossings`."""
    members = pair_members(pair)
    when, sums, steps = _way(chunk, members, before)
    length = when.shape[1]
    ends = np.arange(0, length + isqrt(length), isqrt(length)).clip(max=length)
    closely = np.repeat(_near_stretches(benchmark, pair, sums, ends, threshold), np.diff(ends), axis=1)
    of, step = np.nonzero(closely & (np.arange(length) < steps[:, None]))
    n, b, c = (x[of, step + 1] for x in sums)
    missing = np.zeros_like(n)
    if benchmark.spec.order.policy == "completion":
        missing = benchmark.missing(n)
        evidence = log_leader_bound(b, c, missing, benchmark.spec.mixture)
    else:
        evidence = log_e_value(b, c, benchmark.spec.mixture)
    lead = b - c
    path = Path(of, when[of, step], n, b, c, lead, missing, evidence, np.sign(lead))
    return close(benchmark, members, path, threshold)


def _near_stretches(
    benchmark: Benchmark, pair: Index, sums: _Sums, ends: Index, threshold: dict[str, NDArray[np.float64]]
) -> NDArray[np.bool_]:
    """Say in which stretches, between which ends of their way, pairs may close a latch; shape (pairs, stretches)."""
    final = benchmark.spec.order.policy == "completion"
    edges = _Sums(*(x[:, ends] for x in sums))
    low, high = (_Sums(*(x[:, part] for x in edges)) for part in (slice(-1), slice(1, None)))
    limit = np.repeat(open_limits(benchmark, pair, threshold)[:, None], ends.size, axis=1)
    at_edges = _evidence(benchmark, edges, limit)
    most = at_edges[:, 1:] if final else _most(benchmark, low, high, limit[:, 1:])
    # What had closed for certain in a stretch before does not close again; what was open when the way began is not taken as closed.
    had = np.maximum.accumulate(np.where(ends[:-1] > 0, at_edges[:, :-1], -np.inf), axis=1)
    near = np.zeros(most.shape, bool)
    level = (low.b <= high.c) & (low.c <= high.b)
    for procedure in PROCEDURES:
        undecided, need = benchmark.latched[procedure][pair][:, None] == 0, threshold[procedure][:, None]
        # What is decided on the way may come to lean the other way on the rest of it; not what cannot be undone.
        near |= undecided & ((most >= need - _SLACK) & (had < need + _SLACK) | (level & (not final)))
    return near if final else near | turned(benchmark, pair[:, None], low[1:], high[1:])


def _way(chunk: Chunk, members: tuple[Index, Index], before: _Sums) -> tuple[Times, _Sums, NDArray[np.int64]]:
    """Put the events of pairs in their order.

    Returns
    -------
    when : array of int16, shape (pairs, most steps)
        Positions in the chunk.
    sums : _Sums of shape (pairs, most steps + 1)
        Before the first step and after each one; behind the end of a pair's own way they stay what they are.
    steps : array of int64, shape (pairs,)
        How many steps each pair takes.
    """
    i, j = members
    times = chunk.shared(i, j)
    joined = (times >= 0) & (times < NEVER)
    first, second = chunk.after[i], chunk.after[j]
    # Two bits beside the time say what it brings, so that one sort of small numbers does all.
    times *= 4
    times += (first == ONE) & (second == ZERO)
    times += np.multiply((first == ZERO) & (second == ONE), 2, dtype=np.int16)
    times[~joined] = NEVER
    times.sort(axis=1)
    steps = np.count_nonzero(joined, axis=1)
    times = times[:, : int(steps.max(initial=1))]
    kind = times & 3
    happened = times != NEVER
    wins, losses = happened & (kind == 1), happened & (kind == 2)
    sums = []
    for start, gain in zip(before, (happened, wins, losses), strict=True):
        along = np.empty((i.size, times.shape[1] + 1), np.int32)
        along[:, 0] = start
        np.cumsum(gain, axis=1, out=along[:, 1:])
        along[:, 1:] += start[:, None]
        sums.append(along)
    return times >> 2, _Sums(*sums), steps

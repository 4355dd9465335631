"""Latches of 0/1 scores.

Sums do not depend on the order inside a chunk; latches do. Whole numbers rule most pairs out. Then the corners do: ln e is convex in
(b, c), so over the rectangle that contains a trajectory it is largest at a corner. The trajectories of the remaining pairs are cut into
stretches, and only the stretches whose corners do not rule a latch out are computed event by event.
"""

from collections.abc import Iterator
from math import isqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import (
    NEVER,
    SLACK,
    Crossing,
    Evidence,
    NewScores,
    Sums,
    Times,
    Trajectory,
    close,
    in_log_order,
)
from monitor.engine.state.codes import ONE, ZERO
from monitor.engine.state.counts import Gains
from monitor.engine.state.pair_state import PROCEDURES, PairState, Thresholds
from monitor.engine.state.pairs import Index, chosen, pair_members

_SLAB_CELLS: Final = 500_000
_SLAB_PAIRS: Final = 32_768


def crossings(pairs: PairState, evidence: Evidence, new: NewScores, gains: Gains) -> list[Crossing]:
    """Close the latches that a chunk reaches, and return them in the order of the log.

    The sums of the chunk are already added to `pairs`, and its new pairs registered.
    """
    closed: list[Crossing] = []
    step = max(1, _SLAB_CELLS // max(1, new.rows))
    for near in _near(pairs, evidence, gains):
        pair = chosen(gains.pair, near)
        after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
        before = Sums(*(x - gain[near] for x, gain in zip(after, gains[1:], strict=True)))
        threshold = pairs.log_thresholds(pair)
        limit = pairs.open_limits(pair, threshold)
        reach = _highest(evidence, before, after, limit) >= limit - SLACK
        if not evidence.final:
            reach |= pairs.may_reverse(pair, before.b - after.c, after.b - before.c)
        candidates = np.flatnonzero(reach)
        for start in range(0, candidates.size, step):
            some = candidates[start : start + step]
            limits = {procedure: values[some] for procedure, values in threshold.items()}
            closed += _replay(pairs, evidence, new, pair[some], Sums(*(x[some] for x in before)), limits)
    return in_log_order(closed)


def _near(pairs: PairState, evidence: Evidence, gains: Gains) -> Iterator[Index]:
    """Yield places among the gains of pairs that whole numbers do not rule out, some at a time."""
    size = gains.n.size
    for start in range(0, size, _SLAB_PAIRS):
        part = slice(start, min(start + _SLAB_PAIRS, size))
        pair = part if isinstance(gains.pair, slice) else gains.pair[part]
        after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
        before = Sums(*(x - gain[part] for x, gain in zip(after, gains[1:], strict=True)))
        undecided = np.logical_or.reduce([pairs.latched[procedure][pair] == 0 for procedure in PROCEDURES])
        near = undecided & evidence.may_decide(before, after)
        if not evidence.final:
            near |= pairs.may_reverse(pair, before.b - after.c, after.b - before.c)
        some = np.flatnonzero(near & (gains.n[part] > 0))
        if some.size:
            yield some + start


def _highest(evidence: Evidence, low: Sums, high: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the highest evidence possible between two points; minus infinity where it is certainly below a limit."""
    if evidence.final:
        return evidence.at(high, limit)
    corners = Sums(*(np.stack(x) for x in ((high.n, high.n), (high.b, low.b), (low.c, high.c))))
    return np.asarray(evidence.at(corners, np.stack([limit, limit])).max(axis=0))


def _replay(
    pairs: PairState, evidence: Evidence, new: NewScores, pair: Index, before: Sums, threshold: Thresholds
) -> list[Crossing]:
    """Close the latches of some pairs event by event, on the stretches that matter."""
    members = pair_members(pair)
    when, sums, steps = _sums_along(new, members, before)
    length = when.shape[1]
    ends = np.arange(0, length + isqrt(length), isqrt(length)).clip(max=length)
    near = np.repeat(_near_stretches(pairs, evidence, pair, sums, ends, threshold), np.diff(ends), axis=1)
    of, step = np.nonzero(near & (np.arange(length) < steps[:, None]))
    at = Sums(*(x[of, step + 1] for x in sums))
    log_e, missing = evidence.exact(at)
    lead = at.b - at.c
    trajectory = Trajectory(of, when[of, step], *at, lead, missing, log_e, np.sign(lead))
    return close(pairs.latched, members, trajectory, threshold)


def _near_stretches(
    pairs: PairState, evidence: Evidence, pair: Index, sums: Sums, ends: Index, threshold: Thresholds
) -> NDArray[np.bool_]:
    """Return in which stretches between ends a latch may close, shape (pairs, stretches)."""
    edges = Sums(*(x[:, ends] for x in sums))
    low, high = (Sums(*(x[:, part] for x in edges)) for part in (slice(-1), slice(1, None)))
    limit = np.repeat(pairs.open_limits(pair, threshold)[:, None], ends.size, axis=1)
    at_edges = evidence.at(edges, limit)
    highest = at_edges[:, 1:] if evidence.final else _highest(evidence, low, high, limit[:, 1:])
    # A latch that certainly closed in an earlier stretch does not close again; one that was open at the start is not taken as closed.
    had = np.maximum.accumulate(np.where(ends[:-1] > 0, at_edges[:, :-1], -np.inf), axis=1)
    near = np.zeros(highest.shape, bool)
    # A pair decided on the trajectory may reverse on the rest of it, unless decisions are final.
    level = (low.b <= high.c) & (low.c <= high.b) & (not evidence.final)
    for procedure in PROCEDURES:
        undecided, need = pairs.latched[procedure][pair][:, None] == 0, threshold[procedure][:, None]
        near |= undecided & ((highest >= need - SLACK) & (had < need + SLACK) | level)
    if not evidence.final:
        near |= pairs.may_reverse(pair[:, None], low.b - high.c, high.b - low.c)
    return near


def _sums_along(new: NewScores, members: tuple[Index, Index], before: Sums) -> tuple[Times, Sums, NDArray[np.int64]]:
    """Put the events of pairs in their order; return their positions, sums and number.

    Positions have shape (pairs, most steps). Sums have one column more, the sums before the first step, and stay constant after the last.
    """
    i, j = members
    times = new.shared(i, j)
    joined = (times >= 0) & (times < NEVER)
    first, second = new.after[i], new.after[j]
    # The two lowest bits hold the outcome, so that one sort of small numbers orders times and outcomes.
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
    return times >> 2, Sums(*sums), steps

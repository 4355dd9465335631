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

from monitor.engine.latch.base import BEFORE, NEVER, SLACK, Evidence, NewScores, Sums, Times, Trajectory
from monitor.engine.state.counts import Gains
from monitor.engine.state.pair_state import PROCEDURES, PairState
from monitor.engine.state.pairs import Index, chosen, pair_members

_SLAB_CELLS: Final = 500_000
_SLAB_PAIRS: Final = 32_768


class BinaryWalk:
    """The trajectories of 0/1 scores through a chunk; its sums are already added to `pairs`, and its new pairs registered."""

    def __init__(self, pairs: PairState, evidence: Evidence, new: NewScores, gains: Gains) -> None:
        self._pairs, self._evidence, self._new, self._gains = pairs, evidence, new, gains

    def near(self) -> Iterator[Trajectory]:
        """Yield the steps of the stretches that matter."""
        pairs, evidence = self._pairs, self._evidence
        step = max(1, _SLAB_CELLS // max(1, 2 * int(self._new.count.max())))
        for near in _near(pairs, evidence, self._gains):
            pair = chosen(self._gains.pair, near)
            after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
            before = Sums(*(x - gain[near] for x, gain in zip(after, self._gains[1:], strict=True)))
            limit = pairs.limits(pair)
            reach = _highest(evidence, before, after, limit) >= limit - SLACK
            if not evidence.final:
                reach |= pairs.may_reverse(pair, before.b - after.c, after.b - before.c)
            candidates = np.flatnonzero(reach)
            for start in range(0, candidates.size, step):
                some = candidates[start : start + step]
                yield self._near_steps(pair[some], Sums(*(x[some] for x in before)))

    def whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs."""
        pairs = self._pairs
        after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
        before = Sums(*(x - gain for x, gain in zip(after, self._gains.of(pair), strict=True)))
        when, sums, steps = _sums_along(self._new, pair_members(pair), before)
        when = np.concatenate([np.full((pair.size, 1), BEFORE, np.int64), when], axis=1)
        of, step = np.nonzero(np.arange(when.shape[1]) <= steps[:, None])
        return self._steps(pair[of], when[of, step], Sums(*(x[of, step] for x in sums)))

    def _near_steps(self, pair: Index, before: Sums) -> Trajectory:
        when, sums, steps = _sums_along(self._new, pair_members(pair), before)
        length = when.shape[1]
        ends = np.arange(0, length + isqrt(length), isqrt(length)).clip(max=length)
        near = np.repeat(_near_stretches(self._pairs, self._evidence, pair, sums, ends), np.diff(ends), axis=1)
        of, step = np.nonzero(near & (np.arange(length) < steps[:, None]))
        return self._steps(pair[of], when[of, step], Sums(*(x[of, step + 1] for x in sums)))

    def _steps(self, pair: Index, when: Index | Times, sums: Sums) -> Trajectory:
        evidence, missing = self._evidence.exact(sums)
        lead = sums.b - sums.c
        return Trajectory(pair, when, *sums, lead, missing, evidence, np.sign(lead))


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


def _near_stretches(pairs: PairState, evidence: Evidence, pair: Index, sums: Sums, ends: Index) -> NDArray[np.bool_]:
    """Return in which stretches between ends a latch may close, shape (pairs, stretches)."""
    edges = Sums(*(x[:, ends] for x in sums))
    low, high = (Sums(*(x[:, part] for x in edges)) for part in (slice(-1), slice(1, None)))
    limit = np.repeat(pairs.limits(pair)[:, None], ends.size - 1, axis=1)
    near: NDArray[np.bool_] = _highest(evidence, low, high, limit) >= limit - SLACK
    if not evidence.final:
        near |= pairs.may_reverse(pair[:, None], low.b - high.c, high.b - low.c)
    return near


def _sums_along(new: NewScores, members: tuple[Index, Index], before: Sums) -> tuple[Times, Sums, NDArray[np.int64]]:
    """Put the events of pairs in their order; return their positions, sums and number.

    Positions have shape (pairs, most steps). Sums have one column more, the sums before the first step, and stay constant after the last.
    """
    times = new.meetings(*members)
    times.sort(axis=1)
    steps = np.count_nonzero(times != NEVER, axis=1)
    times = times[:, : int(steps.max(initial=1))]
    kind = np.where(times == NEVER, np.int16(0), times & 3)
    n = before.n[:, None] + np.minimum(np.arange(times.shape[1] + 1, dtype=np.int32), steps[:, None].astype(np.int32))
    sums = [n]
    for start, outcome in ((before.b, 1), (before.c, 2)):
        along = np.empty_like(n)
        along[:, 0] = 0
        np.cumsum(kind == outcome, axis=1, out=along[:, 1:])
        along += start[:, None]
        sums.append(along)
    return times >> 2, Sums(*sums), steps

"""Latches of 0/1 scores.

Sums do not depend on the order inside a chunk; latches do. Whole numbers rule most pairs out. Then the corners do: ln e is convex in
(b, c), so over the rectangle that contains a trajectory it is largest at a corner. The trajectories of the remaining pairs are cut into
stretches, and only the stretches whose corners do not rule a latch out are computed event by event.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, NEVER, SLACK, Evidence, NewScores, Peaks, Sums, Times, Trajectory
from monitor.engine.state.counts import Gains
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index, chosen, pair_members
from schemas.results.changes import PROCEDURES

_SLAB_CELLS: Final = 500_000
_SLAB_PAIRS: Final = 32_768


class BinaryWalk:
    """The trajectories of 0/1 scores through a chunk; its sums are already added to `pairs`, and its new pairs registered."""

    def __init__(self, pairs: PairState, evidence: Evidence, new: NewScores, gains: Gains) -> None:
        self._pairs, self._evidence, self._new, self._gains = pairs, evidence, new, gains

    def near(self) -> Iterator[Peaks]:
        """Yield the pairs of which a latch may close."""
        pairs, evidence = self._pairs, self._evidence
        step = max(1, _SLAB_CELLS // max(1, 2 * int(self._new.count.max())))
        for near, turns in _near(pairs, evidence, self._gains):
            yield Peaks.turning(turns)
            pair = chosen(self._gains.pair, near)
            after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
            limit = pairs.limits(pair)
            if evidence.final:
                yield Peaks(pair, evidence.at(after, limit), np.sign(after.b - after.c), np.zeros(pair.size, bool))
                continue
            before = Sums(*(x - gain[near] for x, gain in zip(after, self._gains[1:], strict=True)))
            candidates = np.flatnonzero(_highest(evidence, before, after, limit) >= limit - SLACK)
            for start in range(0, candidates.size, step):
                some = candidates[start : start + step]
                yield self._peaks(pair[some], Sums(*(x[some] for x in before)), limit[some])

    def whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs, with its evidence from ln 1/alpha on."""
        steps = self.counts(pair)
        limit = np.full(steps.n.shape, self._pairs.limit - SLACK)
        return steps._replace(evidence=self._evidence.at(Sums(steps.n, steps.b, steps.c), limit))

    def exact(self, steps: Trajectory) -> Trajectory:
        """Return some of these steps with their evidence."""
        return steps._replace(evidence=self._evidence.exact(Sums(steps.n, steps.b, steps.c)))

    def counts(self, pair: Index) -> Trajectory:
        """Return every step of some pairs, without evidence."""
        pairs = self._pairs
        after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
        before = Sums(*(x - gain for x, gain in zip(after, self._gains.of(pair), strict=True)))
        when, sums, steps = _sums_along(self._new, pair_members(pair), before)
        when = np.concatenate([np.full((pair.size, 1), BEFORE, np.int64), when], axis=1)
        of, step = np.nonzero(np.arange(when.shape[1]) <= steps[:, None])
        n, b, c = (x[of, step] for x in sums)
        lead = b - c
        nothing = np.full(of.size, -np.inf)
        return Trajectory(pair[of], when[of, step], n, b, c, lead, self._evidence.missing(n), nothing, np.sign(lead))

    def _peaks(self, pair: Index, before: Sums, limit: NDArray[np.float64]) -> Peaks:
        """Return the largest evidence of some pairs: at the first event, or where the next event or none brings the lead back."""
        _, sums, _ = _sums_along(self._new, pair_members(pair), before)
        lead = np.abs(sums.b - sums.c)
        turns = np.zeros(lead.shape, bool)
        turns[:, 1] = turns[:, -1] = True
        turns[:, 1:-1] |= (lead[:, 1:-1] > lead[:, 2:]) | (not self._evidence.symmetric)
        of, step = np.nonzero(turns)
        points = Sums(*(x[of, step] for x in sums))
        evidence = self._evidence.at(points, limit[of])
        return Peaks.of(pair[of], evidence, np.sign(points.b - points.c))


def _near(pairs: PairState, evidence: Evidence, gains: Gains) -> Iterator[tuple[Index, Index]]:
    """Yield places among the gains of pairs that whole numbers do not rule out, some at a time, and the pairs that may reverse."""
    size = gains.n.size
    for start in range(0, size, _SLAB_PAIRS):
        part = slice(start, min(start + _SLAB_PAIRS, size))
        pair = part if isinstance(gains.pair, slice) else gains.pair[part]
        after = Sums(pairs.n[pair], pairs.b[pair], pairs.c[pair])
        before = Sums(*(x - gain[part] for x, gain in zip(after, gains[1:], strict=True)))
        undecided = np.logical_or.reduce([pairs.latched[procedure][pair] == 0 for procedure in PROCEDURES])
        some = np.flatnonzero(undecided & evidence.may_decide(before, after) & (gains.n[part] > 0)) + start
        turns = np.zeros(0, np.int64)
        if not evidence.final:
            turns = np.flatnonzero(pairs.may_reverse(pair, before.b - after.c, after.b - before.c)) + start
        if some.size or turns.size:
            yield some, chosen(gains.pair, turns)


def _highest(evidence: Evidence, low: Sums, high: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the highest evidence possible between two points; minus infinity where it is certainly below a limit."""
    corners = Sums(*(np.stack(x) for x in ((high.n, high.n), (high.b, low.b), (low.c, high.c))))
    return np.asarray(evidence.at(corners, np.stack([limit, limit])).max(axis=0))


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

"""Evidence in the order of arrival (policy trusted): the e-process of a mixture at every event."""

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import log_e_from
from monitor.engine.latch.paths import Paths, Points, Sums
from monitor.engine.state.codes import Counts
from stats.evidence.eprocess import log_e_value
from stats.evidence.lookup import ROUGH, rough_log_e
from stats.numerics.pairs import Index

_LN2: Final = log(2.0)


class ArrivalEvidence:
    """The e-value of the discordant pairs so far."""

    final = False
    cells = 2_000_000  # 125,000 stretches: their evidence stays in the processor's cache

    def __init__(self, alpha: float, mixture: str) -> None:
        self._mixture = mixture
        # See `may_reach`, in half the bits and with room for their rounding: no threshold is below ln 1/alpha.
        self._ratio = np.float32(-log(alpha) / _LN2 * (1 - 1e-5))

    def may_decide(self, before: Sums, after: Sums) -> NDArray[np.bool_]:
        """Rule out most pairs at the corners of the rectangle of (b, c): ln e is convex, so it is largest there."""
        return self._far_apart(after.b, before.c) | self._far_apart(before.b, after.c)

    def _far_apart(self, b: Counts, c: Counts) -> NDArray[np.bool_]:
        difference = (b - c).astype(np.float32)
        difference *= difference
        return np.asarray(difference > self._ratio * (b + c).astype(np.float32))

    def at(self, sums: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln e at points; minus infinity where it is certainly below a limit."""
        return log_e_from(sums.b, sums.c, limit, self._mixture)

    def highest(self, paths: Paths, limit: NDArray[np.float64], reach: NDArray[np.float64]) -> tuple[Points, Points]:
        """Return few points of each pair, its highest among them, and its points around `reach` up to the first from there on."""
        ends, most = self._stretches(paths, limit)
        least = np.maximum(limit, ends.max(axis=1, initial=-np.inf)) - 2 * ROUGH
        of, step, b, c = paths.moved(most >= least[:, None] - ROUGH)
        rough = self._rough(b, c, limit[of])
        np.maximum.at(least, of, rough - 2 * ROUGH)
        highest = np.flatnonzero(rough >= np.maximum(least, limit - ROUGH)[of])
        reached = np.flatnonzero(least >= reach - 3 * ROUGH)
        crossing = self._between(paths, (ends, most), reached, reach[reached], reach[reached])
        return (of[highest], step[highest]), crossing

    def reaching(self, paths: Paths, low: NDArray[np.float64], high: NDArray[np.float64]) -> Points:
        """Return the points with evidence from `low` on that change it, up to the first from `high` on; a few below may be among them."""
        return self._between(paths, self._stretches(paths, low), np.arange(low.size), low, high)

    def _stretches(self, paths: Paths, limit: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return ln e at the ends of stretches and a bound of it inside, up to `ROUGH`, shape (pairs, stretches).

        It is convex in (b, c), so largest at a corner of the rectangle around the steps of a stretch. Minus infinity without a step.
        """
        limit, (b, c), there = limit[:, None], (paths.b, paths.c), paths.there()
        if there.shape[1] == 1:  # its steps are looked at anyway
            return np.full(there.shape, -np.inf), np.where(there, np.inf, -np.inf)
        ends = self._rough(b, c, limit)
        most = np.maximum(self._rough(b[:, 1:], c[:, :-1], limit), self._rough(b[:, :-1], c[:, 1:], limit))
        np.maximum(most, ends[:, 1:], out=most)
        np.maximum(most, ends[:, :-1], out=most)
        ends = ends[:, 1:]
        if not there.all():
            most[~there] = ends[~there] = -np.inf
        return ends, most

    def _rough(self, b: Counts, c: Counts, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln e up to `ROUGH`; without tables minus infinity where it is certainly below a limit."""
        rough = rough_log_e(b, c, self._mixture)
        return log_e_from(b, c, np.broadcast_to(limit, b.shape), self._mixture) if rough is None else rough

    def exact(self, sums: Sums) -> NDArray[np.float64]:
        """Return ln e at points."""
        return log_e_value(sums.b, sums.c, self._mixture)

    def missing(self, n: Counts) -> Counts:
        """Return that no items count against the leader."""
        return np.zeros_like(n)

    def _between(
        self,
        paths: Paths,
        stretches: tuple[NDArray[np.float64], NDArray[np.float64]],
        some: Index,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
    ) -> Points:
        """Return the points of some pairs that change b or c and may be from `low` on, up to the first that is certainly from `high` on."""
        if some.size < paths.steps.size:
            paths, stretches = paths.rows(some), (stretches[0][some], stretches[1][some])
        ends, most = stretches
        over = np.logical_or.accumulate(ends >= (high + ROUGH)[:, None], axis=1)
        may = most >= (low - 2 * ROUGH)[:, None]
        may[:, 1:] &= ~over[:, :-1]
        of, step, b, c = paths.moved(may)
        rough = self._rough(b, c, low[of])
        over = np.flatnonzero(rough >= (high + ROUGH)[of])
        first = over[np.flatnonzero(np.diff(of[over], prepend=-1))]
        last = np.full(some.size, np.iinfo(np.int64).max)
        last[of[first]] = step[first]
        above = np.flatnonzero((rough >= (low - ROUGH)[of]) & (step <= last[of]))
        return some[of[above]], step[above]

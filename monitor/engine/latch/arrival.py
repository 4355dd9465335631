"""Evidence in the order of arrival (policy trusted): the e-process of a mixture at every event."""

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import log_e_from
from monitor.engine.latch.paths import Paths, Points, Sums, points_of
from monitor.engine.state.codes import Counts
from monitor.engine.state.pairs.index import Index
from stats.evidence.eprocess import log_e_value
from stats.evidence.lookup import ROUGH, rough_log_e

_LN2: Final = log(2.0)


class ArrivalEvidence:
    """The e-value of the discordant pairs so far."""

    final = False
    cells = 262_144  # tables of evidence stay in the processor's cache

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
        rough = self._roughly(paths, limit)
        most = rough.max(axis=1)
        least = np.where(most >= limit - ROUGH, most - 2 * ROUGH, np.inf)
        highest = points_of((rough >= least[:, None]) & (rough > -np.inf))
        reached = np.flatnonzero(most >= reach - ROUGH)
        return highest, _between(rough, reached, reach[reached], reach[reached])

    def reaching(self, paths: Paths, low: NDArray[np.float64], high: NDArray[np.float64]) -> Points:
        """Return the points with evidence from `low` on, up to the first from `high` on; a few below may be among them."""
        return _between(self._roughly(paths, low), np.arange(low.size), low, high)

    def _roughly(self, paths: Paths, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln e up to `ROUGH`, shape (pairs, 1 + steps); minus infinity before the first step.

        Without tables it is that too where no item has moved it, and where it is certainly below the limit.
        """
        rough = rough_log_e(paths.b, paths.c, self._mixture)
        if rough is None:
            moved = (paths.b[:, 1:] != paths.b[:, :-1]) | (paths.c[:, 1:] != paths.c[:, :-1])
            moved[:, :1] = True
            of, step = np.nonzero(moved)
            rough = np.full(paths.b.shape, -np.inf)
            rough[of, step + 1] = log_e_from(paths.b[of, step + 1], paths.c[of, step + 1], limit[of], self._mixture)
        if not paths.whole:
            rough[~paths.there()] = -np.inf
        rough[:, 0] = -np.inf
        return rough

    def exact(self, sums: Sums) -> NDArray[np.float64]:
        """Return ln e at points."""
        return log_e_value(sums.b, sums.c, self._mixture)

    def missing(self, n: Counts) -> Counts:
        """Return that no items count against the leader."""
        return np.zeros_like(n)


def _between(rough: NDArray[np.float64], some: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Points:
    """Return the points of some rows that may be from `low` on, up to the first that is certainly from `high` on."""
    if some.size < len(rough):
        rough = rough[some]
    ends = rough >= (high + ROUGH)[:, None]
    last = ends.argmax(axis=1)
    last[~ends[np.arange(last.size), last]] = rough.shape[1]
    above = rough >= (low - ROUGH)[:, None]
    above &= np.arange(rough.shape[1]) <= last[:, None]
    of, step = points_of(above)
    return some[of], step

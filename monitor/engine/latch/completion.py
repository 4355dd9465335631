"""Evidence under policy completion: -ln p of the exact test at N, even if every missing item goes against the leader."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import SLACK
from monitor.engine.latch.paths import Paths, Points, Sums
from monitor.engine.state.codes import Counts
from stats.evidence.curtailed import curtailed_leader_log_p, curtailed_may_decide
from stats.numerics.pairs import Index

_LOOKS: Final = 512
"""Points at which the evidence of few pairs is computed together, to find a step in fewer rounds."""


class CompletionEvidence:
    """The weakest evidence that the declared benchmark can end with; it never falls along a trajectory."""

    final = True
    cells = 1_000_000  # few of them are looked at

    def __init__(self, items: int) -> None:
        self._items = items

    def missing(self, n: Counts) -> Counts:
        """Return the items that are still missing."""
        return np.asarray(self._items - n, np.int32)

    def may_decide(self, before: Sums, after: Sums) -> NDArray[np.bool_]:  # noqa: ARG002 - the evidence never falls
        """Rule out the pairs whose missing items can undo the lead."""
        return np.asarray(np.abs(after.b - after.c) > self.missing(after.n))

    def at(self, sums: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return -ln p at points; minus infinity where it is certainly below a limit."""
        evidence = np.full(limit.shape, -np.inf)
        missing = self.missing(sums.n)
        some = np.nonzero(curtailed_may_decide(sums.b, sums.c, missing, limit))
        evidence[some] = -curtailed_leader_log_p(sums.b[some], sums.c[some], missing[some])
        return evidence

    def highest(self, paths: Paths, limit: NDArray[np.float64], reach: NDArray[np.float64]) -> tuple[Points, Points]:  # noqa: ARG002 - all have one
        """Return the last point of each pair, and its first from `reach` on."""
        return (np.arange(paths.steps.size), paths.steps), self.reaching(paths, reach, reach)

    def reaching(self, paths: Paths, low: NDArray[np.float64], high: NDArray[np.float64]) -> Points:
        """Return the points with evidence from `low` on, up to the first from `high` on; a few below may be among them."""
        every = np.arange(paths.steps.size)
        if np.array_equal(low, high):
            first = last = self._first(paths, every, low)
        else:
            first, last = self._first(paths, np.tile(every, 2), np.concatenate([low, high])).reshape(2, -1)
        last = np.minimum(last, paths.steps)
        size = np.maximum(last - first + 1, 0)
        of = np.repeat(every, size)
        return of, np.arange(of.size) - np.repeat(np.cumsum(size) - size - first, size)

    def _first(self, paths: Paths, of: Index, limit: NDArray[np.float64]) -> Index:
        """Return the first step of some pairs from a limit each on, one more than they have if there is none: evidence never falls."""
        low, high = np.ones_like(of), paths.steps[of] + 1
        while (some := np.flatnonzero(low < high)).size:
            parts = np.arange(1, 1 + max(1, _LOOKS // some.size))
            at = low[some, None] + (high - low)[some, None] * parts // (parts.size + 1)
            look = np.repeat(some, parts.size)
            below = self.exact(paths.sums(of[look], at.ravel())) < limit[look] - SLACK
            below_limit = below.reshape(at.shape).sum(axis=1)
            place = np.arange(some.size)
            ends = np.minimum(below_limit, parts.size - 1)
            high[some] = np.where(below_limit < parts.size, at[place, ends], high[some])
            begins = np.maximum(below_limit - 1, 0)
            low[some] = np.where(below_limit > 0, at[place, begins] + 1, low[some])
        return low

    def exact(self, sums: Sums) -> NDArray[np.float64]:
        """Return -ln p at points."""
        return -curtailed_leader_log_p(sums.b, sums.c, self.missing(sums.n))

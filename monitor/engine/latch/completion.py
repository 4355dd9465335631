"""Evidence under policy completion: a bound that holds even if every missing item goes against the leader."""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Sums, may_reach
from monitor.engine.state.codes import Counts
from stats.eprocess import log_leader_bound


class CompletionEvidence:
    """The lowest e-value that the declared benchmark can end with; it never falls along a trajectory."""

    final = True

    def __init__(self, items: int, mixture: str) -> None:
        self._items, self._mixture = items, mixture

    def _missing(self, sums: Sums) -> Counts:
        return np.asarray(self._items - sums.n, np.int32)

    def may_decide(self, before: Sums, after: Sums) -> NDArray[np.bool_]:  # noqa: ARG002 - the bound never falls
        """Rule out the pairs whose missing items can undo the lead."""
        return np.asarray(np.abs(after.b - after.c) > self._missing(after))

    def at(self, sums: Sums, limit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return ln of the bound at points; minus infinity where it is certainly below a limit."""
        bound = np.full(limit.shape, -np.inf)
        missing = self._missing(sums)
        lead, trail = np.maximum(sums.b, sums.c), np.minimum(sums.b, sums.c) + missing
        some = np.nonzero((lead > trail) & may_reach(lead, trail, limit))
        bound[some] = log_leader_bound(sums.b[some], sums.c[some], missing[some], self._mixture)
        return bound

    def exact(self, sums: Sums) -> tuple[NDArray[np.float64], Counts]:
        """Return ln of the bound at points, and the missing items."""
        missing = self._missing(sums)
        return log_leader_bound(sums.b, sums.c, missing, self._mixture), missing

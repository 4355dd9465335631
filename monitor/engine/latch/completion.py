"""Evidence under policy completion: -ln p of the exact test at N, even if every missing item goes against the leader."""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Sums
from monitor.engine.state.codes import Counts
from stats.evidence.curtailed import curtailed_leader_log_p, curtailed_may_decide


class CompletionEvidence:
    """The weakest evidence that the declared benchmark can end with; it never falls along a trajectory."""

    final = symmetric = True

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

    def exact(self, sums: Sums) -> NDArray[np.float64]:
        """Return -ln p at points."""
        return -curtailed_leader_log_p(sums.b, sums.c, self.missing(sums.n))

"""Evidence in the order of arrival (policy trusted): the e-process of a mixture at every event."""

from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Sums, log_e_from
from monitor.engine.state.codes import Counts
from stats.evidence.eprocess import log_e_value
from stats.evidence.mixtures import parse_mixture

_LN2: Final = log(2.0)


class ArrivalEvidence:
    """The e-value of the discordant pairs so far."""

    final = False

    def __init__(self, alpha: float, mixture: str) -> None:
        self._mixture, self.symmetric = mixture, parse_mixture(mixture).symmetric
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

    def exact(self, sums: Sums) -> NDArray[np.float64]:
        """Return ln e at points."""
        return log_e_value(sums.b, sums.c, self._mixture)

    def missing(self, n: Counts) -> Counts:
        """Return that no items count against the leader."""
        return np.zeros_like(n)

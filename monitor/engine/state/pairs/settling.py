"""The bets of pairs on who leads on all items of a benchmark, along its committed order; see `stats.evidence.settled`.

Bets are a function of the items in their order: a restart computes them again from the scores.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Counts, grown
from stats.evidence.settled import SettledState, settled_start, settled_steps
from stats.numerics.pairs import Index


class Settling:
    """The bets of all pairs, in the order of pair indices."""

    def __init__(self) -> None:
        self._capital = settled_start(0).capital

    def grown(self, pairs: int) -> NDArray[np.float64]:
        """Return the capital of so many pairs or more, shape (pairs, 2, bets); each bet of a new pair has 1."""
        known = len(self._capital)
        if known < pairs:
            self._capital = grown(self._capital, pairs, *self._capital.shape[1:])
            self._capital[known:] = 1
        return self._capital

    def log_e(self, pair: Index, left: Index, sums: Mapping[str, Counts]) -> NDArray[np.float64]:
        """Return ln e of pairs with some items of the order left, given the sums over all prefixes."""
        b, c, c_worst, b_best = (sums[name][pair].astype(np.int64) for name in ("b", "c", "c_worst", "b_best"))
        lead = np.stack([b - c_worst, b_best - c], axis=1)
        none = np.zeros((pair.size, 0), np.int8)
        return settled_steps(
            SettledState(self.grown(int(pair.max(initial=-1)) + 1)[pair], lead), none, none, left
        ).log_e

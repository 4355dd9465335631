"""One claim about the pairs of families whose thresholds fall with every pair that it holds of: what is latched, and what may follow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stats.stepwise import WHOLE

Index = NDArray[np.int64]


class StepDown:
    """The state of a claim, in the order of pair indices; see `stats.stepwise`."""

    def __init__(self) -> None:
        self.side = np.zeros(0, np.int8)
        """1: for contestant i; -1: for contestant j; 0: not latched; 2 and -2 have a meaning of their own in each claim."""
        self.peak = np.zeros(0)
        """Largest evidence of open pairs from ln 1/alpha on, negative if it is for contestant j; else 0."""
        self._new_peaks: list[Index] = []
        self._open_weight: dict[int, int] = {}

    def open_weight(self, family: int) -> int:
        """Return the weight of the open hypotheses of a family, those to come included."""
        return self._open_weight.get(family, WHOLE)

    def waiting(self) -> Index:
        """Return the open pairs that another pair may latch."""
        return np.flatnonzero((self.peak != 0) & (self.side == 0))

    def latch(self, pair: Index, side: NDArray[np.integer[Any]], families: Index, weights: Index) -> None:
        """Latch pairs; the thresholds of the others in their families fall."""
        self.side[pair] = side
        for family, weight in zip(families.tolist(), weights.tolist(), strict=True):
            self._open_weight[family] = self.open_weight(family) - weight

    def keep_peaks(self, pair: Index, peak: NDArray[np.float64]) -> None:
        """Keep the largest evidence of pairs so far."""
        self.peak[pair] = peak
        if pair.size:
            self._new_peaks.append(pair)

    def changed_peaks(self) -> tuple[Index, NDArray[np.float64]] | None:
        """Return the pairs whose largest evidence has changed since the last call, ascending, and the evidence."""
        if not self._new_peaks:
            return None
        pair = np.unique(np.concatenate(self._new_peaks))
        self._new_peaks.clear()
        return pair, self.peak[pair]

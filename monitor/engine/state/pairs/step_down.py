"""One claim about the pairs of families whose thresholds fall with every pair that it holds of: what is latched, and what may follow."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import grown
from stats.families.error_control import WHOLE

Index = NDArray[np.int64]


class StepDown:
    """The state of a claim, in the order of pair indices; see `stats.families.error_control`."""

    def __init__(self) -> None:
        self.side = np.zeros(0, np.int8)
        """1: for contestant i; -1: for contestant j; 0: not latched; 2 and -2 have a meaning of their own in each claim."""
        self.peak: NDArray[np.float64] = np.zeros(0)
        """Largest evidence of open pairs from ln 1/alpha on, negative if it is for contestant j; else 0. Read-only: see `own_peak`.

        Until the first pair gets there this is one 0 that looks like many: the peaks would take a fifth of the memory of a pair.
        """
        self._new_peaks: list[Index] = []
        self._open_weight: dict[int, int] = {}

    def grow(self, pairs: int) -> None:
        """Make room for pairs."""
        self.side = grown(self.side, pairs)
        if self.peak.size < pairs:
            if self.peak.flags.writeable and self.peak.size > 0:
                self.peak = grown(self.peak, pairs)
            else:
                self.peak = np.broadcast_to(np.float64(0), self.side.shape)

    def open_weight(self, family: int) -> int:
        """Return the weight of the open hypotheses of a family, those to come included."""
        return self._open_weight.get(family, WHOLE)

    def latch(self, pair: Index, side: NDArray[np.integer[Any]], families: Index, weights: Index) -> None:
        """Latch pairs; the thresholds of the others in their families fall."""
        self.side[pair] = side
        if not weights.any():
            return
        for family in np.unique(families).tolist():
            self._open_weight[family] = self.open_weight(family) - int(weights[families == family].sum())

    def own_peak(self) -> NDArray[np.float64]:
        """Return the peaks as an array to write to; see `note_peaks`."""
        if not self.peak.flags.writeable:
            self.peak = np.zeros(self.side.size)
        return self.peak

    def note_peaks(self, pair: Index) -> None:
        """Note that the peaks of pairs have changed."""
        if pair.size:
            self._new_peaks.append(pair)

    def leave_open(self, family: int, weight: int) -> None:
        """Set the weight of the open hypotheses of a family."""
        if weight != WHOLE:
            self._open_weight[family] = weight

    def load_peaks(self, peaks: NDArray[np.float64]) -> None:
        """Take over the stored peaks of the first pairs."""
        if peaks.any():
            self.own_peak()[: peaks.size] = peaks

    def changed_peaks(self) -> tuple[Index, NDArray[np.float64]] | None:
        """Return the pairs whose largest evidence has changed since the last call, ascending, and the evidence."""
        if not self._new_peaks:
            return None
        pair = np.unique(np.concatenate(self._new_peaks))
        self._new_peaks.clear()
        return pair, self.peak[pair]

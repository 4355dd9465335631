"""One claim about the pairs of families whose thresholds fall with every pair that it holds of: what is latched, and what may follow."""

from collections.abc import Generator, Iterator, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stats.families.stepwise import WHOLE

Index = NDArray[np.int64]


_SPARE: Final = 1 / 16
_COPIED: Final = 1 << 20
"""Pairs that are copied at a time: a few milliseconds."""


def grown(array: NDArray[Any], *shape: int) -> NDArray[Any]:
    """Return an array of at least this shape that starts with the given one, with a sixteenth of spare room."""
    result = _roomy(array, shape, _SPARE)
    if result is not array:
        result[tuple(slice(0, have) for have in array.shape)] = array
    return result


def grown_in_slices(array: NDArray[Any], size: int, spare: float = _SPARE) -> Generator[None, None, NDArray[Any]]:
    """Return what `grown` returns of an array with a row for each pair; yield while it is copied."""
    result = _roomy(array, (size, *array.shape[1:]), spare)
    if result is not array:
        step = max(1, _COPIED // prod(array.shape[1:]))
        for start in range(0, len(array), step):
            result[start : min(start + step, len(array))] = array[start : start + step]
            yield
    return result


def _roomy(array: NDArray[Any], shape: Sequence[int], spare: float) -> NDArray[Any]:
    """Return an array of zeros with room for this shape, or the given array if it has the room."""
    if all(have >= need for have, need in zip(array.shape, shape, strict=True)):
        return array
    target = [
        have if have >= need else max(need, int(have * (1 + spare)) + 2)
        for have, need in zip(array.shape, shape, strict=True)
    ]
    return np.zeros(target, array.dtype)


class StepDown:
    """The state of a claim, in the order of pair indices; see `stats.families.stepwise`."""

    def __init__(self) -> None:
        self.side = np.zeros(0, np.int8)
        """1: for contestant i; -1: for contestant j; 0: not latched; 2 and -2 have a meaning of their own in each claim."""
        self.peak: NDArray[np.float64] = np.zeros(0)
        """Largest evidence of open pairs from ln 1/alpha on, negative if it is for contestant j; else 0. Read-only: see `own_peak`.

        Until the first pair gets there this is one 0 that looks like many: the peaks would take a fifth of the memory of a pair.
        """
        self._new_peaks: list[Index] = []
        self._open_weight: dict[int, int] = {}

    def grow_in_slices(self, pairs: int) -> Iterator[None]:
        """Make room for pairs."""
        self.side = yield from grown_in_slices(self.side, pairs)
        if self.peak.size < pairs:
            if self.peak.flags.writeable and self.peak.size > 0:
                self.peak = yield from grown_in_slices(self.peak, pairs)
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

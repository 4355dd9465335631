"""Numbers of 64-bit keys, without an object for each key."""

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]

_Run = tuple[Index, NDArray[np.int32]]  # keys, ascending, and the number of each


class KeyIndex:
    """The numbers of distinct keys, in sorted runs. Each run has at least twice the keys of the next, so there are few.

    >>> index = KeyIndex()
    >>> index.numbers(np.array([70, 50, 70])).tolist(), index.find(np.array([50, 60, 70])).tolist()
    ([1, 0, 1], [0, -1, 1])
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self.size = 0

    def find(self, keys: Index) -> Index:
        """Return the number of each key, -1 for an unknown one."""
        places = np.full(keys.size, -1, np.int64)
        if not keys.size:
            return places
        lowest, highest = keys.min(), keys.max()
        for known, number in self._runs:
            if lowest > known[-1] or highest < known[0]:
                continue
            place = np.minimum(np.searchsorted(known, keys), known.size - 1)
            hit = known[place] == keys
            places[hit] = number[place[hit]]
        return places

    def between(self, low: Index, high: Index) -> tuple[Index, Index]:
        """Return the numbers of the keys in some ranges, from `low` and below `high`, and the place of each one's range."""
        numbers, ranges = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for known, number in self._runs:
            begin, end = np.searchsorted(known, low), np.searchsorted(known, high)
            count = end - begin
            inside = np.repeat(begin - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
            numbers.append(number[inside].astype(np.int64))
            ranges.append(np.repeat(np.arange(low.size), count))
        return np.concatenate(numbers), np.concatenate(ranges)

    def add(self, keys: Index) -> None:
        """Add keys, which are distinct and new; they get the next numbers in their order."""
        if not keys.size:
            return
        number = np.arange(self.size, self.size + keys.size, dtype=np.int32)
        self.size += keys.size
        while self._runs and self._runs[-1][0].size < 2 * keys.size:
            known, numbers = self._runs.pop()
            keys, number = np.concatenate([known, keys]), np.concatenate([numbers, number])
        order = np.argsort(keys, kind="stable")
        self._runs.append((keys[order], number[order]))

    def numbers(self, keys: Index) -> Index:
        """Return the number of each key; add those that are new."""
        distinct, inverse = np.unique(keys, return_inverse=True)
        places = self.find(distinct)
        fresh = places < 0
        places[fresh] = self.size + np.arange(np.count_nonzero(fresh))
        self.add(distinct[fresh])
        return np.asarray(places[inverse])

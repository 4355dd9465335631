"""Pairs of contestants as one flat axis: pair (i, j), i < j, has index j (j - 1) / 2 + i, so that a new contestant only appends."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Places = Index | slice
"""Indices of some pairs, or `slice(0, pairs)` for all of them, which avoids copies."""


def chosen(pair: Places, some: Index) -> Index:
    """Return the indices of some of the pairs, given their places among them."""
    return some if isinstance(pair, slice) else pair[some]


def among(pair: Index, others: Index) -> tuple[Index, Index]:
    """Return the places of those of some others that are among the pairs (ascending), and where they are there.

    Examples
    --------
    >>> [x.tolist() for x in among(np.array([2, 5, 7]), np.array([7, 3, 2]))]
    [[0, 2], [2, 0]]
    """
    place = np.searchsorted(pair, others).clip(max=pair.size - 1)
    some = np.flatnonzero(pair[place] == others) if pair.size else place[:0]
    return some, place[some]


def pair_count(contestants: int) -> int:
    """Return the number of pairs of contestants."""
    return contestants * (contestants - 1) // 2


def pair_index(i: Index, j: Index) -> Index:
    """Return the index of pairs (i, j), where i < j.

    Examples
    --------
    >>> pair_index(np.array([0, 0, 1]), np.array([1, 2, 2])).tolist()
    [0, 1, 2]
    """
    return j * (j - 1) // 2 + i


def pair_members(pairs: Index) -> tuple[Index, Index]:
    """Return (i, j) of pair indices.

    Examples
    --------
    >>> i, j = pair_members(np.arange(6))
    >>> list(zip(i.tolist(), j.tolist()))
    [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)]
    """
    pairs = np.asarray(pairs, dtype=np.int64)
    j = ((1 + np.sqrt(8.0 * pairs + 1)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > pairs  # the square root may round up
    return pairs - j * (j - 1) // 2, j


@lru_cache(maxsize=4)
def all_pairs(contestants: int) -> tuple[Index, Index]:
    """Return (i, j) of every pair, in the order of their indices; the arrays are shared, so read-only."""
    j, i = np.tril_indices(contestants, -1)
    i.flags.writeable = j.flags.writeable = False
    return i, j


def ranked_pairs(models: int) -> tuple[Index, Index]:
    """Return the ranks, from 0, of every pair of models, the better one first: as `np.triu_indices(models, 1)`.

    That function holds the interpreter's lock for 0.2 s with 5,000 models, so that a report in the background stops the event loop.

    Examples
    --------
    >>> first, second = ranked_pairs(4)
    >>> list(zip(first.tolist(), second.tolist()))
    [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    """
    first, second = np.empty((2, pair_count(models)), np.int64)
    ranks, start = np.arange(models), 0
    for rank in range(models - 1):
        end = start + models - 1 - rank
        first[start:end] = rank
        second[start:end] = ranks[rank + 1 :]
        start = end
    return first, second


def pairs_of(touched: NDArray[np.int64], contestants: int) -> tuple[Index, Index]:
    """Return (i, j) of every pair that has a touched contestant, each pair once; `touched` is distinct."""
    if 2 * touched.size >= contestants:
        return all_pairs(contestants)
    among = np.zeros(contestants, bool)
    among[touched] = True
    one = np.repeat(touched, contestants)
    other = np.tile(np.arange(contestants), touched.size)
    keep = (other != one) & ~(among[other] & (other < one))
    one, other = one[keep], other[keep]
    return np.minimum(one, other), np.maximum(one, other)

"""Pair sums of a chunk by matrix products: how many shared items, and how many discordant ones, each pair gained."""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.pairs import Index, all_pairs, pair_count, pairs_of

ABSENT, SKIPPED, ZERO, ONE = 0, 1, 2, 3
"""Codes of a cell of the score matrix; code 2 + k stands for entry k of the score table, which starts with 0 and 1."""

CHUNK_CELLS = 4_000
"""Most cells of one product: two counts of a chunk share a float32, which is exact below 2**24."""

_SHIFT = 12
_SLAB_ROWS = 8_192
# A dense product spends about this many times less on a multiplication than a sparse one.
_DENSE_ADVANTAGE = 40

Codes = NDArray[np.uint8] | NDArray[np.uint32]


def _packed(block: Codes) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Per cell: is it scored, and (2**12 beside it) is it wrong, respectively right."""
    scored = (block >= ZERO).astype(np.float32)
    packed = []
    for kind in (ZERO, ONE):
        cells = (block == kind).astype(np.float32)
        cells *= 1 << _SHIFT
        cells += scored
        packed.append(cells)
    return packed[0], packed[1]


def chunk_counts(
    before: Codes, after: Codes, row: NDArray[np.int64], contestant: NDArray[np.int64], code: NDArray[np.uint32]
) -> tuple[Index, Index, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Count what a chunk of new cells adds to every pair it touches.

    Parameters
    ----------
    before, after : array of codes, shape (rows, contestants)
        The rows that the chunk touches, without and with the new cells.
    row, contestant, code : arrays, shape (cells,)
        The new, scored cells; at most 4,000 of them.

    Returns
    -------
    i, j : arrays of int64, shape (pairs,)
        The pairs that have a touched contestant, i < j.
    n, b, c : arrays of int32, shape (pairs,)
        Items newly shared; those of them that only i has right; only j.

    Notes
    -----
    A new cell of contestant k meets every partner that is there *after* the chunk, and, transposed, every partner that was there
    *before* it: so two new cells of one row meet exactly once.
    """
    contestants = before.shape[1]
    among = np.zeros(contestants, bool)
    among[contestant] = True
    touched = np.flatnonzero(among)
    place = np.cumsum(among) - 1
    group = place[contestant]
    full = code >= ZERO
    right, wrong = code == ONE, code == ZERO
    graded = full & ~right & ~wrong

    after_wrong, after_right = _packed(after)
    before_wrong, before_right = _packed(before)
    sums = _Sums(row, group, touched.size, before.shape[0])
    new_right, old_right = sums(right, after_wrong), sums(right, before_wrong)
    new_wrong, old_wrong = sums(wrong, after_right), sums(wrong, before_right)

    i, j = pairs_of(touched, contestants)
    where = np.where(among, place, touched.size)
    at_i, at_j = where[i], where[j]
    low = (1 << _SHIFT) - 1
    n = (
        (new_right & low)[at_i, j]
        + (new_wrong & low)[at_i, j]
        + (old_right & low)[at_j, i]
        + (old_wrong & low)[at_j, i]
    )
    b = (new_right >> _SHIFT)[at_i, j] + (old_wrong >> _SHIFT)[at_j, i]
    c = (new_wrong >> _SHIFT)[at_i, j] + (old_right >> _SHIFT)[at_j, i]
    if graded.any():
        n = n + (sums(graded, after_wrong) & low)[at_i, j] + (sums(graded, before_wrong) & low)[at_j, i]
    return i, j, n, b, c


class _Sums:
    """Sums rows of a matrix by group, as a product with the indicator of the groups; one more row of zeros stands for `no group`."""

    def __init__(self, row: NDArray[np.int64], group: NDArray[np.int64], groups: int, rows: int) -> None:
        self.row, self.group, self.groups, self.rows = row, group, groups, rows
        self.dense = groups * rows < _DENSE_ADVANTAGE * max(row.size, 1)

    def __call__(self, mask: NDArray[np.bool_], matrix: NDArray[np.float32]) -> NDArray[np.int32]:
        row, group = self.row[mask], self.group[mask]
        result = np.zeros((self.groups + 1, matrix.shape[1]), np.int32)
        if row.size == 0:
            return result
        if self.dense:
            indicator = np.zeros((self.groups, self.rows), np.float32)
            indicator[group, row] = 1
            result[:-1] = indicator @ matrix
        else:
            from scipy.sparse import csr_array

            ones = np.ones(row.size, np.float32)
            result[:-1] = csr_array((ones, (group, row)), shape=(self.groups, self.rows)) @ matrix
        return result


def matrix_counts(scores: Codes) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Count every pair from the whole score matrix: two matrix products.

    Parameters
    ----------
    scores : array of codes, shape (rows, contestants)

    Returns
    -------
    n, b, c : arrays of int32, shape (contestants (contestants - 1) / 2,)
        In the order of pair indices.
    """
    contestants = scores.shape[1]
    shared = np.zeros((contestants, contestants), np.int64)
    wins = np.zeros((contestants, contestants), np.int64)
    for start in range(0, scores.shape[0], _SLAB_ROWS):
        slab = scores[start : start + _SLAB_ROWS]
        scored = (slab >= ZERO).astype(np.float32)
        right = (slab == ONE).astype(np.float32)
        wrong = (slab == ZERO).astype(np.float32)
        shared += (scored.T @ scored).astype(np.int64)
        wins += (right.T @ wrong).astype(np.int64)
    i, j = all_pairs(contestants)
    assert i.size == pair_count(contestants)
    return shared[i, j].astype(np.int32), wins[i, j].astype(np.int32), wins[j, i].astype(np.int32)

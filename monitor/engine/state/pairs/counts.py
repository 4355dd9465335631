"""Pair sums by matrix products: the shared and discordant items that each pair gains in a chunk."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes, Counts
from schemas.records.scores import ONE, SKIPPED, ZERO
from stats.numerics.pairs import Index, Places, all_pairs, pair_count, pair_index

CHUNK_CELLS = 8_000  # most cells of one product: three counts of a chunk share a float64, which is exact below 2**53

_SLAB_ROWS = 8_192
_BLOCK_CELLS = 1 << 15
# A dense product spends about this many times less on a multiplication than a sparse one.
_DENSE_ADVANTAGE = 40
# From so large a share of the contestants on, adding to all pairs in place is cheaper than selecting pairs, unless they are few.
_MANY, _FEW = 1 / 6, 16

Floats = NDArray[np.floating[Any]]


class Gains(NamedTuple):
    """Gains of pairs in a chunk, each pair once; arrays of shape (pairs,)."""

    pair: Places
    n: Counts  # items newly shared by pair (i, j)
    b: Counts  # those that only i has right
    c: Counts  # those that only j has right

    def of(self, pair: NDArray[np.int64]) -> tuple[Counts, Counts, Counts]:
        """Return the gains of some pairs, 0 for those that gain nothing."""
        pairs = self.pair
        if isinstance(pairs, slice):  # of all pairs
            return self.n[pair], self.b[pair], self.c[pair]
        if not pairs.size:
            return (np.zeros(pair.size, np.int32),) * 3
        order = np.argsort(pairs)
        place = order[np.searchsorted(pairs, pair, sorter=order).clip(max=pairs.size - 1)]
        gained = pairs[place] == pair
        return tuple(np.where(gained, x[place], 0) for x in self[1:])  # type: ignore[return-value]


def chunk_counts(
    before: Codes, after: Codes, row: NDArray[np.int64], contestant: NDArray[np.int64], code: NDArray[np.uint32]
) -> Gains:
    """Count the items that each pair gains from new, scored cells: at most `CHUNK_CELLS`."""
    # `before` and `after` are the rows with new cells, without and with these, shape (rows, contestants). A new cell of contestant k meets
    # every partner p present *before* the chunk, and every new cell of p meets each k present *after* it: two new cells of one row meet
    # exactly once. The three counts of a pair are digits of one number: shared items, items that only p has right, items that only k has
    # right.
    rows, contestants = before.shape
    cells = np.bincount(contestant, minlength=contestants)
    members = np.flatnonzero(cells)
    everyone = members.size >= max(_MANY * contestants, _FEW)
    if everyone:
        members = np.arange(contestants)
    place = np.searchsorted(members, np.arange(contestants))[contestant], row
    # A pair gains no more items than are new of its two members.
    few = min(rows, 2 * int(cells.max())) < 1 << 8
    kind, shift = (np.float32, 8) if few else (np.float64, 13)

    graded = bool(after.max() > ONE)
    shape = (members.size, rows)
    of_k = _meetings(code, place, shape, kind, (1 << shift, 1 << 2 * shift), graded=graded)
    old = _kinds(before, kind, graded=graded)
    if members.size == 1:
        gained = of_k @ old  # all its partners were there before
    else:
        of_p = _meetings(code, place, shape, kind, (1 << 2 * shift, 1 << shift), graded=graded)
        now = _kinds(after if everyone else after[:, members], kind, graded=graded)
        if everyone and isinstance(of_p, np.ndarray):
            left, right = np.hstack([of_k, now.T]), np.vstack([old, of_p.T])
            return _triangle(lambda low, high: left[low:high] @ right[:, :high], contestants, shift)
        gained = of_k @ old
        gained[:, members] += (of_p @ now).T
    if everyone:
        return _triangle(lambda low, high: gained[low:high], contestants, shift)
    # Two contestants with new cells met in both of their rows: the later one has the sum.
    k, p = np.nonzero((gained > 0) & ((cells == 0) | (np.arange(contestants) < members[:, None])))
    n, p_alone, k_alone = _digits(gained[k, p], shift)
    k = members[k]
    first = p < k
    pair = pair_index(np.minimum(k, p), np.maximum(k, p))
    return Gains(pair, n, np.where(first, p_alone, k_alone), np.where(first, k_alone, p_alone))


def _kinds(block: Codes, kind: type[np.floating[Any]], *, graded: bool) -> Floats:
    """Return whether each cell is right, below it whether it is wrong, then whether it is graded; shape (2 or 3 rows, contestants)."""
    rows, contestants = block.shape
    kinds = np.empty((2 + graded, rows, contestants), kind)
    for compare, code, found in zip((np.equal, np.equal, np.greater), (ONE, ZERO, ONE), kinds, strict=False):
        compare(block, code, out=found)
    return kinds.reshape((2 + graded) * rows, contestants)


def _meetings(
    code: NDArray[np.uint32],
    place: tuple[Index, Index],
    shape: tuple[int, int],
    kind: type[np.floating[Any]],
    digits: tuple[int, int],
    *,
    graded: bool,
) -> Any:  # noqa: ANN401
    """Return the digits that each new cell adds when it meets each kind of cell, shape (groups, 2 or 3 rows)."""
    # The first digit counts a wrong cell that meets a right one, the second a right cell that meets a wrong one. The matrix is dense or
    # sparse, depending on which is faster.
    (group, row), (groups, rows) = place, shape
    worth = [1 + digits[0] * (code == ZERO), 1 + digits[1] * (code == ONE)] + [np.ones(code.size)] * graded
    kinds = len(worth)
    at = group * (kinds * rows) + row
    if groups * rows >= _DENSE_ADVANTAGE * code.size:
        from scipy.sparse import csr_array  # noqa: PLC0415 - only large chunks need it

        inner = np.concatenate([row + k * rows for k in range(kinds)])
        weights = np.concatenate(worth).astype(kind)
        return csr_array((weights, (np.tile(group, kinds), inner)), shape=(groups, kinds * rows))
    dense = np.zeros(groups * kinds * rows, kind)
    for k, weights in enumerate(worth):
        dense[at + k * rows] = weights
    return dense.reshape(groups, kinds * rows)


def _triangle(rows: Callable[[int, int], Floats], contestants: int, shift: int) -> Gains:
    """Return the digits of a whole table of pairs, computed in blocks that fit the cache."""
    # Row j of its lower triangle holds the pairs (., j): this is the order of pair indices.
    gains = [np.empty(pair_count(contestants), np.int32) for _ in range(3)]
    step = max(1, _BLOCK_CELLS // contestants)
    for low in range(0, contestants, step):
        high = min(low + step, contestants)
        block = rows(low, high)
        packed = np.concatenate([block[j - low, :j] for j in range(low, high)])
        for each, digit in zip(gains, _digits(packed, shift), strict=True):
            each[pair_count(low) : pair_count(high)] = digit
    return Gains(slice(0, pair_count(contestants)), *gains)


def _digits(packed: Floats, shift: int) -> list[Counts]:
    whole: NDArray[Any] = packed.astype(np.int32 if shift == 8 else np.int64)
    last = (1 << shift) - 1
    return [np.asarray(x, np.int32) for x in (whole & last, whole >> shift & last, whole >> 2 * shift)]


def matrix_counts(scores: Codes) -> tuple[Counts, Counts, Counts]:
    """Return n, b and c of every pair, in the order of pair indices, from a whole score matrix: two matrix products."""
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
    return shared[i, j].astype(np.int32), wins[i, j].astype(np.int32), wins[j, i].astype(np.int32)


def sums_of_items(codes: Codes, values: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Return the sums of pairs and contestants from the scores of items, and the score of each code."""
    n, b, c = matrix_counts(codes)
    return {
        "n": n,
        "b": b,
        "c": c,
        "scored": (codes >= ZERO).sum(axis=0),
        "skipped": (codes == SKIPPED).sum(axis=0),
        "total": np.array([values[codes[:, k]].sum() for k in range(codes.shape[1])], np.int64),
    }

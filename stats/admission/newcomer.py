"""Where the total of a newcomer lies among the totals of a frozen board, from the first items of a random order.

The board is known: each opponent's total S_B, and the difficulty d_t of each item in thousandths, the mean score of the board. The newcomer
runs the N items in a uniformly random order that was committed before its first score. So one number is unknown, its own total, and a
test for each total s is a test against every opponent at once. With S the sum before item t, R = N - t + 1 items left, dbar_t the mean of
d over these and beta_t the slope of the earlier scores on d,

    h_t(s) = (s - S) / R + beta_t (d_t - dbar_t)
    H_t(s) = (s - S) / R + max(beta_t (1000 - dbar_t), -beta_t dbar_t)
    e+_s   = mean over lambda of prod_t (1 + min(lambda, 1 / H_t) (x_t - h_t)),    lambda = .01 x 2^k, k = 0..6

and e-_s the same for 1 - x. Under S_A = s the next item is any of the R left, so x_t - h_t has mean 0 at every beta_t that earlier items
determine, and e+ and e- are test martingales at the true total. The cap 1/H is known before the item; one at h_t would see d_t. As e+_s
falls in s and e-_s rises, every statement at 2/alpha is right at every moment with probability 1 - alpha: no correction for the number of
opponents, and the newcomer may stop by any rule. The claim is about these N items.

A skipped score may be any score: e+ takes the lowest, e- the highest, each with a sum of its own, and beta stays.

References
----------
Waudby-Smith & Ramdas, "Confidence sequences for sampling without replacement", NeurIPS 2020; the difficulty of an item
controls its score as in a regression estimator with a predictable coefficient.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stats.evidence.settled import LAMBDAS
from stats.numerics.checks import TOLERANCE, BoolArray, FloatArray, IntArray, level

ABOVE, BELOW = 0, 1
"""Rows of the evidence: that the newcomer's total is larger than the opponent's, and that it is smaller."""

_BETS = np.array(LAMBDAS)[:, None]
_SHRINKAGE = 32  # items that the slope 1/1000 weighs
_GRID = 1024  # scores enter the slope in this part of 1
_LARGE = 1e250  # a capital stays there: it only lowers e
_CELLS = 131_072


class Admission:
    """The evidence about a newcomer's total against each model of a frozen board.

    Parameters
    ----------
    difficulty : array_like of int, shape (N,)
        Mean score of the board on each item, in thousandths, along the committed order.
    low : array_like of int, shape (K,)
        Total of each opponent over the N items, in units; the lowest one where scores are missing.
    high : array_like of int, shape (K,), optional
        The highest total; ``low`` by default.
    alpha : float
        Probability, at most, that any statement about the newcomer is wrong at any time.
    unit : int
        The integer that is a score of 1: 1 for 0/1 scores.

    Examples
    --------
    >>> difficulty = [1000, 250, 500, 750, 0, 1000, 500, 250, 750, 500, 0, 1000]
    >>> newcomer = Admission(difficulty, [3, 5, 9], alpha=0.3)
    >>> newcomer.add([1, 0, 1, 1])
    >>> newcomer.log_e.round(8).tolist()
    [[0.35892892, 0.19606019, -0.09115957], [-0.2995955, -0.1911093, 0.07572699]]
    >>> newcomer.add([0, 1, 0, 1])
    >>> round(1000 * newcomer.slope_before(7), 9), newcomer.log_e.round(8).tolist()[0]
    (1.026130236, [inf, 0.50411427, -0.2689979])
    >>> newcomer.add([1, 1, 0, 1])
    >>> newcomer.log_e.round(8).tolist()[1]
    [-1.07623844, -0.8204984, inf]
    >>> newcomer.ranks, newcomer.interval(), newcomer.settled_at.tolist()
    ((2, 2), (8, 8), [6, 9, 11])

    A skipped item, after which the slope stays:

    >>> newcomer = Admission(difficulty, [3, 5, 9])
    >>> newcomer.add([1, 0, 1, 1], [1, 1, 1, 1])
    >>> round(1000 * newcomer.slope, 9), newcomer.log_e.round(8).tolist()[1]
    (0.969283276, [-0.43672082, -0.35329331, -0.1399532])
    """

    def __init__(
        self,
        difficulty: npt.ArrayLike,
        low: npt.ArrayLike,
        high: npt.ArrayLike | None = None,
        *,
        alpha: float = 0.05,
        unit: int = 1,
    ) -> None:
        self._d = _whole("difficulty", difficulty)
        lowest = _whole("low", low)
        highest = lowest if high is None else _whole("high", high)
        self.items, self.unit = self._d.size, unit
        level(alpha=alpha)
        if unit < 1 or not self.items or (self._d < 0).any() or (self._d > 1000).any():
            raise ValueError("difficulty must be in 0 to 1000, of one item at least, and unit at least 1")
        if self.items * unit >= 2**62:
            raise ValueError("items times unit must stay below 2^62; use a smaller unit")
        if lowest.shape != highest.shape or (lowest < 0).any() or (lowest > highest).any():
            raise ValueError("low and high must be totals of the same opponents, 0 <= low <= high")
        if (highest > self.items * unit).any():
            raise ValueError(f"high must be at most {self.items * unit}, the total of full scores")
        self._rejected = 2 / alpha * (1 - TOLERANCE)
        # Equal totals share one row.
        self._totals, row = np.unique(np.stack([highest, lowest]), axis=1, return_inverse=True)
        self._row = row.reshape(-1)
        rows = self._totals.shape[1]
        self._capital = np.ones((2, len(LAMBDAS), rows))
        self._e, self._largest = np.ones((2, rows)), np.ones((2, rows))
        self._at = np.zeros((2, rows), np.int64)
        self.done = 0
        # The path so far: what a test of any other total needs.
        self._x = np.zeros((2, self.items), np.int64)
        self._sum = np.zeros((2, self.items + 1), np.int64)
        self._slope, self._mean = np.zeros(self.items), np.zeros(self.items)
        left = np.cumsum(self._d[::-1])[::-1]
        self._mean[:] = left / (self.items - np.arange(self.items))
        total = int(left[0])
        self._spread = self.items * int((self._d**2).sum()) - total**2  # N^2 times the variance
        self._n = self._q = self._sd = self._dd = self._qd = 0

    @property
    def slope(self) -> float:
        """Slope of the scores on the difficulty, for the next item: shrunk to 1/1000, one division of exact integers."""
        if not self._spread:
            return 0.0
        n, square = max(self._n, 1), self.items**2
        shrunk = _SHRINKAGE * n * self._spread
        above = (n * self._qd - self._q * self._sd) * square * 1000 + shrunk * _GRID
        return above / (_GRID * 1000 * ((n * self._dd - self._sd**2) * square + shrunk))

    def slope_before(self, item: int) -> float:
        """Return the slope that was used for an item of the order, from 0."""
        return float(self._slope[item])

    def add(self, low: npt.ArrayLike, high: npt.ArrayLike | None = None) -> None:
        """Add the newcomer's scores on the next items of the order.

        Parameters
        ----------
        low : array_like of int, shape () or (T,)
            Scores in units; the lowest possible one where the score is skipped.
        high : array_like of int, optional
            The highest possible ones; ``low`` by default.
        """
        lowest = np.atleast_1d(_whole("low", low))
        highest = lowest if high is None else np.atleast_1d(_whole("high", high))
        if lowest.shape != highest.shape or lowest.ndim != 1 or lowest.size > self.items - self.done:
            raise ValueError(f"low and high must be scores of the same items, at most {self.items - self.done}")
        if (lowest < 0).any() or (lowest > highest).any() or (highest > self.unit).any():
            raise ValueError(f"scores must lie in 0 to {self.unit}, low at most high")
        first, last = self.done, self.done + lowest.size
        for side, x in enumerate((lowest, highest)):
            self._x[side, first:last] = x
            self._sum[side, first + 1 : last + 1] = self._sum[side, first] + np.cumsum(x)
        for item in range(first, last):
            self._slope[item] = self.slope
            self._learn(item)
        size = max(1, _CELLS // max(1, self._capital.size))
        for start in range(first, last, size):
            self._bet(start, min(start + size, last))
        self.done = last

    def _learn(self, item: int) -> None:
        low, high, d = int(self._x[0, item]), int(self._x[1, item]), int(self._d[item])
        if low == high:
            q = (2 * _GRID * low + self.unit) // (2 * self.unit)
            self._n, self._q, self._sd = self._n + 1, self._q + q, self._sd + d
            self._dd, self._qd = self._dd + d * d, self._qd + q * d

    def _factors(self, side: int, totals: IntArray, start: int, stop: int) -> FloatArray:
        """Return by what each bet on some totals multiplies at each item, shape (T, L, totals)."""
        some = slice(start, stop)
        left = (self.items - np.arange(start, stop)) * float(self.unit)
        share = (totals - self._sum[side, some, None]) / left[:, None]
        x = self._x[side, some] / self.unit
        slope, mean = self._slope[some], self._mean[some]
        tilt, easiest, hardest = slope * (self._d[some] - mean), slope * (1000 - mean), -slope * mean
        if side == BELOW:
            share, x, tilt, easiest, hardest = 1 - share, 1 - x, -tilt, -easiest, -hardest
        most = share + np.maximum(easiest, hardest)[:, None]
        cap = np.divide(1, most, out=np.full_like(most, np.inf), where=most > 0)
        factors: FloatArray = np.minimum(_BETS, cap[:, None])
        factors *= (x[:, None] - share - tilt[:, None])[:, None]
        factors += 1
        np.maximum(factors, 0, out=factors)  # 1 - 1, rounded
        return factors

    def _bet(self, start: int, stop: int) -> None:
        """Follow the totals of the board over some items; each result is a function of the items alone, not of the calls."""
        for side, totals in enumerate(self._totals):
            path, capital = self._factors(side, totals, start, stop), self._capital[side]
            for factors in path:
                capital *= factors
                np.minimum(capital, _LARGE, out=capital)
                factors[:] = capital
            e: FloatArray = path.sum(axis=1) / len(LAMBDAS)
            # The evidence has what was certain before its last item; a statement has what is certain after it.
            self._e[side] = np.where(
                self._certain(side, totals, stop if stop == self.items else stop - 1), np.inf, e[-1]
            )
            for item in range(start, stop):
                e[item - start, self._certain(side, totals, item + 1)] = np.inf
            np.maximum(self._largest[side], e.max(axis=0), out=self._largest[side])
            reached = e >= self._rejected
            fresh = reached.any(axis=0) & (self._at[side] == 0)
            self._at[side, fresh] = start + 1 + reached.argmax(axis=0)[fresh]

    def _certain(self, side: int, totals: IntArray, done: int) -> BoolArray:
        """Return which totals the scores on so many items rule out."""
        reached = self._sum[side, done]
        most = reached + (self.items - done) * self.unit
        return np.asarray(reached > totals if side == ABOVE else most < totals)

    @property
    def log_e(self) -> FloatArray:
        """Natural logarithms of e+ and e- against each opponent after the last item, shape (2, K)."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._e[:, self._row]))

    @property
    def p(self) -> FloatArray:
        """p-value against each opponent, over all items so far, shape (K,)."""
        return np.asarray(np.minimum(1, 2 / self._largest.max(axis=0))[self._row])

    @property
    def above(self) -> BoolArray:
        """Which opponents the newcomer is above, shape (K,)."""
        return np.asarray(self._at[ABOVE, self._row] > 0)

    @property
    def below(self) -> BoolArray:
        """Which opponents the newcomer is below, shape (K,)."""
        return np.asarray(self._at[BELOW, self._row] > 0)

    @property
    def settled_at(self) -> IntArray:
        """How many items it took to be above or below each opponent; 0 where that is open, shape (K,)."""
        at = np.where(self._at > 0, self._at, self.items + 1).min(axis=0)
        return np.asarray(np.where(at > self.items, 0, at)[self._row])

    @property
    def ranks(self) -> tuple[int, int]:
        """The first and the last rank that the newcomer may have; equal totals share the better one."""
        return 1 + int(self.below.sum()), 1 + self._row.size - int(self.above.sum())

    def interval(self, after: int | None = None) -> tuple[int, int]:
        """Return the lowest and the highest total that is not rejected, in units; the first is larger if none is left.

        Parameters
        ----------
        after : int, optional
            How many of the items count; all so far by default.

        Returns
        -------
        low, high : int
            {s : e+_s and e-_s have stayed below 2/alpha}; it only shrinks from item to item.
        """
        done = self.done if after is None else after
        if not 0 <= done <= self.done:
            raise ValueError(f"after must lie in 0 to {self.done}, the items so far")
        least = int(self._sum[0, done])
        most = int(self._sum[1, done]) + (self.items - done) * self.unit
        # e+ falls in the total, and e- rises: each side has one turn.
        low = _first(least, self.items * self.unit + 1, lambda s: not self._rejects(ABOVE, s, done))
        return low, _first(0, most + 1, lambda s: self._rejects(BELOW, s, done)) - 1

    def _rejects(self, side: int, total: int, done: int) -> bool:
        """Return whether the path over some items has rejected a total that is possible."""
        path = self._factors(side, np.array([total]), 0, done)[:, :, 0]
        with np.errstate(over="ignore", invalid="ignore"):  # far beyond the threshold, which was reached before
            np.multiply.accumulate(path, axis=0, out=path)
            return bool((path.sum(axis=1) / len(LAMBDAS) >= self._rejected).any())


def thousandths(total: npt.ArrayLike, models: npt.ArrayLike, unit: int = 1) -> IntArray:
    """Return the difficulty of items: the mean score of the models that have one, in thousandths; 500 where none has.

    Examples
    --------
    >>> thousandths([1, 2, 0], [3, 3, 0]).tolist()
    [333, 667, 500]
    """
    sums, counts = _whole("total", total), _whole("models", models)
    mean = np.divide(sums, counts * float(unit), out=np.full(sums.shape, 0.5), where=counts > 0)
    return np.asarray(np.rint(1000 * mean), np.int64)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """Return the first of low .. high - 1 from which on something holds; high without one."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _whole(name: str, value: npt.ArrayLike) -> IntArray:
    """Return whole numbers as int64."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" and array.size:
        raise ValueError(f"{name} must be whole numbers, got {array.dtype}")
    return array.astype(np.int64)

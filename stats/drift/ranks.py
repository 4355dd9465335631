"""Where a new run ranks among the runs before it: a p-value without a baseline.

If nothing changes, the runs of a model on the same items are exchangeable. Then the rank of the newest run among all runs so far, itself
included, is uniform, and the ranks of successive runs are independent: each score is a symmetric function of the bag of runs, and given
the bag the newest run is equally likely to be any of them. Ties are split by a uniform number that a seed fixes in advance.

A bag is an array of shape (runs, items) of scores in [0, 1], NaN where a run lacks an item, the newest run last.

References
----------
Vovk, Nouretdinov & Gammerman, "Testing exchangeability on-line", ICML 2003.
"""

from hashlib import sha256
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray

DRAWS = 9_999
"""Draws from the conditional law of a run's total in `p_items`."""

_DECIMALS = 9  # scores that differ by less are ties
_CELLS = 4_000_000  # drawn cells at a time: 32 MB


class ItemSums(NamedTuple):
    """Sums over the runs of a bag, by item.

    Attributes
    ----------
    runs : ndarray of int64, shape (I,)
        Runs that have the item.
    total, squares : ndarray, shape (I,)
        Sums of their scores and of the squares.
    """

    runs: IntArray
    total: FloatArray
    squares: FloatArray

    def with_run(self, run: npt.ArrayLike) -> "ItemSums":
        """Return the sums with one more run, shape (I,)."""
        row = np.asarray(run, float)
        here = ~np.isnan(row)
        scores = np.where(here, row, 0.0)
        return ItemSums(self.runs + here, self.total + scores, self.squares + scores**2)

    def law(self) -> tuple[FloatArray, FloatArray]:
        """Return the mean of each item, and the weight 1/sqrt(v) of its deviations, v = (sum (x - mean)^2 + 1/2) / (runs + 1)."""
        mean = np.divide(self.total, self.runs, out=np.zeros(self.total.size), where=self.runs > 0)
        spread = np.maximum(self.squares - self.total * mean, 0.0)
        return mean, 1 / np.sqrt((spread + 0.5) / (self.runs + 1))


def uniform(seed: str, monitor: str, run: str) -> float:
    """Return the number in (0, 1) that splits the ties of a run, from the first 53 bits of a SHA-256.

    The three names, a line each, are hashed.

    Examples
    --------
    >>> uniform("s", "m", "r1"), uniform("s", "m", "r2")
    (0.7086811813969662, 0.3886586921208785)
    """
    first = int.from_bytes(_digest(seed, monitor, run)[:8], "big")
    return ((first >> 11) + 0.5) / 2**53


def generator(seed: str, monitor: str, run: str) -> "np.random.Generator":
    """Return the generator of the draws of a run: the same for the same three names."""
    return np.random.Generator(np.random.PCG64(int.from_bytes(_digest(seed, monitor, run), "big")))


def _digest(seed: str, monitor: str, run: str) -> bytes:
    return sha256(f"{seed}\n{monitor}\n{run}".encode()).digest()


def item_sums(bag: npt.ArrayLike) -> ItemSums:
    """Return the sums of a bag, shape (T, I)."""
    rows = _checked(bag)
    here = ~np.isnan(rows)
    scores = np.where(here, rows, 0.0)
    return ItemSums(here.sum(0), scores.sum(0), (scores**2).sum(0))


def run_scores(bag: npt.ArrayLike, sums: ItemSums | None = None) -> FloatArray:
    """Return the score of each run: the mean deviation of its items from their means, in spreads of the item, times sqrt(items).

    Parameters
    ----------
    bag : array_like, shape (T, I)
    sums : ItemSums, optional
        Of the whole bag, if they are known.

    Returns
    -------
    ndarray, shape (T,)
        Rounded to nine decimals; 0 for a run without items.

    Examples
    --------
    Of twelve runs of six items:

    >>> bag = [[((7919 * (6 * t + i) + 13) % 1009) / 1009 < .5 + .08 * i for i in range(6)] for t in range(12)]
    >>> bag = np.array(bag, float)
    >>> bag[3, 2], bag[11] = np.nan, [0, 0, 1, 0, 1, 1]
    >>> run_scores(bag)[[0, 3, 11]].round(8)
    array([-0.13642411,  0.42810133, -0.94726972])
    """
    rows = _checked(bag)
    mean, weight = (item_sums(rows) if sums is None else sums).law()
    here = ~np.isnan(rows)
    items = here.sum(1)
    whole = items == rows.shape[1]
    expected = np.full(rows.shape[0], mean @ weight)
    expected[~whole] = here[~whole] @ (mean * weight)
    # Each row is a product of its own: equal runs have equal scores wherever they are in the bag.
    total = np.where(here, rows, 0.0) @ weight
    return np.asarray(np.round((total - expected) / np.sqrt(np.maximum(items, 1)), _DECIMALS))


def p_runs(bag: npt.ArrayLike, u: float, sums: ItemSums | None = None, stratum: npt.ArrayLike | None = None) -> float:
    """Return the p-value of the newest run by its rank: small where it is worse than the runs before it.

    Uniform and independent of the p-values before it where runs are exchangeable, with any scores, ties and missing items.

    Parameters
    ----------
    bag : array_like, shape (T, I)
    u : float
        In (0, 1), splits the ties; see `uniform`.
    sums : ItemSums, optional
        Of the whole bag, if they are known.
    stratum : array_like of bool, shape (T,), optional
        The runs among which it is ranked (of its weekday, for example); all of them by default. The newest run is one of them.

    Examples
    --------
    >>> p_runs([[1, 1, 0], [1, 0, 1], [1, 1, 1], [0, 1, 0]], 0.5)
    0.125
    """
    scores = run_scores(bag, sums)
    if stratum is not None:
        scores = scores[np.asarray(stratum, bool)]
    newest = scores[-1]
    return float((np.count_nonzero(scores < newest) + u * np.count_nonzero(scores == newest)) / scores.size)


def p_items(
    bag: npt.ArrayLike, u: float, rng: "np.random.Generator", draws: int = DRAWS, sums: ItemSums | None = None
) -> float:
    """Return the p-value of the newest run where items are independent: against runs whose items are drawn from the bag one by one.

    Assumes more than `p_runs`: items are independent within a run. Use it for short histories and for items that change.

    Parameters
    ----------
    bag : array_like, shape (T, I)
    u : float
        In (0, 1), splits the ties; see `uniform`.
    rng : numpy.random.Generator
        See `generator`.
    draws : int
    sums : ItemSums, optional
        Of the whole bag, if they are known.
    """
    rows = _checked(bag)
    _, weight = (item_sums(rows) if sums is None else sums).law()
    items = np.flatnonzero(~np.isnan(rows[-1]))
    drawn, newest = np.zeros(draws), 0.0
    step = max(1, _CELLS // draws)
    for start in range(0, items.size, step):
        some = items[start : start + step]
        columns = rows[:, some]
        present = ~np.isnan(columns)
        # Present scores first in each column, so that a number below their count names one of them.
        packed = np.take_along_axis(columns, np.argsort(~present, axis=0, kind="stable"), 0)
        places = rng.integers(0, present.sum(0), size=(draws, some.size))
        drawn += np.take_along_axis(packed, places, 0) @ weight[some]
        newest += float(rows[-1, some] @ weight[some])
    drawn, newest = np.round(drawn, _DECIMALS), round(newest, _DECIMALS)
    less, equal = np.count_nonzero(drawn < newest), np.count_nonzero(drawn == newest)
    return float((less + u * (1 + equal)) / (draws + 1))


def p_dispersion(bag: npt.ArrayLike, rng: "np.random.Generator", permutations: int = 999) -> float:
    """Return the p-value of the claim that runs differ by more than independent items explain: a guard of `p_items`.

    The variance of the run means, against the same with the scores of each item permuted over the runs that have it.

    Parameters
    ----------
    bag : array_like, shape (T, I)
    rng : numpy.random.Generator
    permutations : int
    """
    rows = _checked(bag)
    here = ~np.isnan(rows)
    mean, _ = item_sums(rows).law()
    deviation = np.where(here, rows - mean, 0.0)
    items = np.sqrt(np.maximum(here.sum(1), 1))

    def dispersion(of: FloatArray) -> float:
        return float(np.round(((of.sum(1) / items) ** 2).sum(), _DECIMALS))

    observed, least = dispersion(deviation), 1
    for _ in range(permutations):
        keys = np.where(here, rng.random(rows.shape), np.inf)
        # The k-th present cell of a column takes the score of the present cell with the k-th smallest key.
        order, place = np.argsort(keys, axis=0), np.argsort(~here, axis=0, kind="stable")
        permuted = np.zeros_like(deviation)
        np.put_along_axis(permuted, place, np.take_along_axis(deviation, order, 0), 0)
        least += dispersion(permuted) >= observed
    return least / (permutations + 1)


def _checked(bag: npt.ArrayLike) -> FloatArray:
    rows = np.asarray(bag, float)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"bag must have shape (runs, items) with at least one of each, not {rows.shape}")
    if np.nanmin(rows, initial=0.0) < 0 or np.nanmax(rows, initial=1.0) > 1 or np.isinf(rows).any():
        raise ValueError("scores of a bag must be in [0, 1], or NaN where an item is missing")
    return rows

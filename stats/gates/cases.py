"""Each case against a floor: bounds on the chance that one case is answered right, and on k answers in a row.

An item is one unit in every other test of a gate. Here each case is a claim of its own, from its repeats alone.
"""

from math import ceil, comb, log

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, level, non_negative
from stats.numerics.special import betainc, betaincinv

_ROUNDING = 1e-9


def pass_k(right: npt.ArrayLike, of: npt.ArrayLike, k: int) -> FloatArray:
    """Return the unbiased estimate of the chance that k answers are all right: C(right, k) / C(of, k).

    Parameters
    ----------
    right, of : array_like
        Right answers, and answers, of each case; nan where a case has fewer than k.
    k : int

    Examples
    --------
    >>> pass_k([20, 16, 2, 1], [20, 20, 3, 2], 3).round(4).tolist()
    [1.0, 0.4912, 0.0, nan]
    """
    c, r = _counts(right, of, k)
    steps = np.arange(min(k, int(r.max(initial=0))))[:, None]
    rates = np.maximum(c.ravel() - steps, 0) / np.maximum(r.ravel() - steps, 1)
    return np.where(r >= k, np.prod(rates, axis=0).reshape(c.shape), np.nan)


def case_bounds(
    right: npt.ArrayLike, of: npt.ArrayLike, k: int = 1, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper bound of the chance that k answers of a case are all right, each one-sided at `alpha`.

    Notes
    -----
    Clopper-Pearson for one answer, to the k-th power.

    Examples
    --------
    >>> repeats = [3, 5, 8, 10, 14, 20, 29]
    >>> case_bounds(repeats, repeats)[0].round(3).tolist()
    [0.368, 0.549, 0.688, 0.741, 0.807, 0.861, 0.902]
    >>> [bound.round(2).tolist() for bound in case_bounds([8, 16, 18], 20)]
    [[0.22, 0.6, 0.72], [0.61, 0.93, 0.98]]
    """
    c, r = _counts(right, of, k)
    (a,) = level(alpha=alpha)
    low = np.where(c > 0, betaincinv(np.maximum(c, 1), r - c + 1, a), 0.0)
    high = np.where(c < r, betaincinv(c + 1, np.maximum(r - c, 1), 1 - a), 1.0)
    return low**k, high**k


def repeats_for_floor(floor: float, k: int = 1, alpha: float = 0.05) -> int:
    """Return the repeats below which no case can reach a floor, even with every answer right.

    Examples
    --------
    >>> repeats_for_floor(0.8), repeats_for_floor(0.8, k=3), repeats_for_floor(0.9)
    (14, 41, 29)
    """
    _check(floor, k)
    level(alpha=alpha)
    return ceil(k * log(alpha) / log(floor) - _ROUNDING)


def below_p(right: npt.ArrayLike, of: npt.ArrayLike, floor: float, k: int = 1) -> FloatArray:
    """Return the p-value of the claim that a case is below its floor: at most alpha where its upper bound is.

    Examples
    --------
    >>> below_p([8, 16, 20, 0], [20, 20, 20, 0], 0.8).round(5).tolist()
    [0.0001, 0.58855, 1.0, 1.0]
    """
    _check(floor, k)
    c, r = _counts(right, of, k)
    return np.where(c < r, 1 - betainc(c + 1, np.maximum(r - c, 1), floor ** (1 / k)), 1.0)


def lost_p(right: int, of: int, old_right: int, old_of: int) -> float:
    """Return the p-value of the claim that a case is answered right less often than before: Fisher's exact test, one-sided.

    Examples
    --------
    >>> round(lost_p(8, 20, 18, 20), 6), lost_p(0, 1, 1, 1), lost_p(3, 3, 0, 3)
    (0.0011, 0.5, 1.0)
    """
    _counts([right, old_right], [of, old_of], 1)
    total = right + old_right
    ways = sum(comb(of, i) * comb(old_of, total - i) for i in range(max(0, total - old_of), right + 1))
    return ways / comb(of + old_of, total)


def _counts(right: npt.ArrayLike, of: npt.ArrayLike, k: int) -> tuple[FloatArray, FloatArray]:
    aligned(right=right, of=of)
    c, r = np.broadcast_arrays(*non_negative(right=right, of=of))
    if (c > r).any():
        raise ValueError("right must not exceed of: a case has no more right answers than answers")
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")
    return c, r


def _check(floor: float, k: int) -> None:
    if not (0 < floor < 1 and k >= 1):
        raise ValueError(f"a floor must lie strictly between 0 and 1, with k of at least 1; got {floor} and {k}")

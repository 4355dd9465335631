"""Moments of the paired difference D = x_A - x_B from the counts of a 2x2 table.

Per pair: ``n`` shared items, ``b`` = A right and B wrong, ``c`` = A wrong and B right, ``n11`` both right, ``n00`` both
wrong. Every argument broadcasts; pairs sit on the leading axis.
"""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, between, finite, non_negative, paired_counts
from stats.numerics.slabs import slabbed

# Sums of graded differences carry rounding: a variance below this share of the mean square is none at all.
_ROUNDING = 1e-12


@slabbed
def moments(n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the gap and standard deviation of the paired difference.

    Returns
    -------
    gap, sd : ndarray
        ``(b - c) / n`` and ``sqrt((b + c) / n - gap^2)``, in score units; both 0 where ``n = 0``.

    Examples
    --------
    >>> gap, sd = moments(12032, 1680, 1454)
    >>> round(float(gap), 6), round(float(sd), 6)
    (0.018783, 0.510019)
    """
    items, wins, losses = paired_counts(n, b, c)
    items = np.maximum(items, 1)
    gap = (wins - losses) / items
    return gap, np.sqrt(np.maximum((wins + losses) / items - gap**2, 0))


@slabbed
def moments_from_sums(n: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the gap and standard deviation of graded differences in [-1, 1] from ``s1 = sum D`` and ``s2 = sum D^2``.

    The variance divides by n, as for counts: with 0/1 scores ``s1 = b - c`` and ``s2 = b + c`` give `moments`.

    Examples
    --------
    >>> gap, sd = moments_from_sums(4, 1.0, 0.5)
    >>> (float(gap), round(float(sd), 4))
    (0.25, 0.25)
    """
    items, total, squares = finite(n=n, s1=s1, s2=s2)
    if (items < 0).any():
        raise ValueError(f"n must be non-negative, got {items.min()}")
    if (np.abs(total) > items).any() or (squares > items).any() or (squares < 0).any():
        raise ValueError("s1 and s2 must be sums of n differences in [-1, 1]: |s1| <= n and 0 <= s2 <= n")
    items = np.maximum(items, 1)
    gap, square = total / items, squares / items
    variance = square - gap**2
    return gap, np.sqrt(np.where(variance > _ROUNDING * square, variance, 0))


def difference_variance(p_a: npt.ArrayLike, p_b: npt.ArrayLike, rho: npt.ArrayLike) -> FloatArray:
    """Return the variance of D for 0/1 scores with accuracies ``p_a``, ``p_b`` and correlation ``rho`` (paper, eq. vardiff).

    Examples
    --------
    >>> round(float(difference_variance(0.65, 0.60, 0.30)), 6)
    0.3273
    """
    aligned(p_a=p_a, p_b=p_b, rho=rho)
    a, b = between(0, 1, p_a=p_a, p_b=p_b)
    (r,) = admissible_rho(a, b, rho)
    variance_a, variance_b = a * (1 - a), b * (1 - b)
    return np.maximum(variance_a + variance_b - 2 * r * np.sqrt(variance_a * variance_b), 0)


def phi_correlation(n11: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, n00: npt.ArrayLike) -> FloatArray:
    """Return the phi coefficient, the correlation of the two 0/1 scores over the shared items.

    Returns NaN where one model is right on all items or on none: the correlation is then undefined.

    Examples
    --------
    >>> round(float(phi_correlation(5, 1, 1, 3)), 6)
    0.583333
    """
    both, wins, losses, neither = non_negative(n11=n11, b=b, c=c, n00=n00)
    scale = np.sqrt((both + wins) * (losses + neither)) * np.sqrt((both + losses) * (wins + neither))
    with np.errstate(invalid="ignore"):
        return np.divide(both * neither - wins * losses, np.where(scale > 0, scale, np.nan))


def correlation(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, right_a: npt.ArrayLike, right_b: npt.ArrayLike
) -> FloatArray:
    """Return the phi coefficient from margins: ``right_a``, ``right_b`` count each model's right answers on the shared items.

    Examples
    --------
    >>> round(float(correlation(10, 1, 1, 6, 6)), 6)
    0.583333
    """
    items, wins, losses, first, second = non_negative(n=n, b=b, c=c, right_a=right_a, right_b=right_b)
    paired_counts(items, wins, losses)
    both = first - wins
    if (np.abs(second - losses - both) > 1e-6).any():
        raise ValueError("right_a - b must equal right_b - c: both count the items that the two models got right")
    return phi_correlation(both, wins, losses, items - both - wins - losses)


def hoeffding_bounds(p_a: npt.ArrayLike, p_b: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest correlation that two 0/1 variables with these means can have (paper, admissible correlations).

    Both bounds are 0 where a mean is 0 or 1: a constant has no correlation to speak of.

    Examples
    --------
    >>> low, high = hoeffding_bounds(0.65, 0.60)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.5991, 0.8987)
    """
    a, b = between(0, 1, p_a=p_a, p_b=p_b)

    def bound(x: FloatArray, y: FloatArray) -> FloatArray:
        largest = np.maximum(x, y)
        degenerate = (a <= 0) | (a >= 1) | (b <= 0) | (b >= 1)
        return np.where(degenerate, 0.0, np.sqrt(np.minimum(x, y) / np.where(largest > 0, largest, 1)))

    return -bound(a * b, (1 - a) * (1 - b)), bound(a * (1 - b), (1 - a) * b)


def admissible_rho(p_a: npt.ArrayLike, p_b: npt.ArrayLike, rho: npt.ArrayLike) -> list[FloatArray]:
    """Return ``rho`` as an array, or raise ValueError where it lies outside its Hoeffding bounds."""
    (r,) = finite(rho=rho)
    low, high = hoeffding_bounds(p_a, p_b)
    slack = 1e-9  # an empirical rho may sit on its bound up to rounding
    outside = (r < low - slack) | (r > high + slack)
    if outside.any():
        r_bad, low_bad, high_bad = (np.broadcast_to(x, outside.shape)[outside].flat[0] for x in (r, low, high))
        raise ValueError(f"rho must lie within its Hoeffding bounds [{low_bad:.4f}, {high_bad:.4f}], got {r_bad}")
    return [r]

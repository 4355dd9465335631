"""Resolution of a benchmark: how many items a gap of this size needs, and whether there are enough.

Write K = (z_{1-alpha/2} + z_power)^2. The required number of paired items is N* = K sd^2 / gap^2 (paper, eq. nstar),
the minimum detectable effect MDE = sqrt(K) sd / sqrt(n) (eq. mde), the resolution ratio q = n / N*: a gap is
*resolved* when q >= 1. That is a statement about size, not evidence about which model is better.
"""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, between, finite, level, non_negative, paired_counts, slabbed
from stats.numerics.special import ndtri

# Moments of the paired difference D = x_A - x_B from the counts of a 2x2 table.
#
# Per pair: ``n`` shared items, ``b`` = A right and B wrong, ``c`` = A wrong and B right, ``n11`` both right, ``n00`` both
# wrong. Every argument broadcasts; pairs sit on the leading axis.

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


def z_sum(alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8) -> FloatArray:
    """Return z_{1-alpha/2} + z_power, the distance in standard errors at which a two-sided test has that power.

    Examples
    --------
    >>> round(float(z_sum() ** 2), 6)
    7.84888
    """
    (a,), (target,) = level(alpha=alpha), level(power=power)
    return np.asarray(ndtri(target) - ndtri(a / 2))


@slabbed
def required_n(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8
) -> FloatArray:
    """Return the items needed to detect the observed gap at (alpha, power): N* = K [n (b + c) / (b - c)^2 - 1].

    Parameters
    ----------
    alpha, power : array_like
        Two-sided level and power, in (0, 1).

    Returns
    -------
    ndarray
        N*, unrounded; infinite where ``b = c``.

    Notes
    -----
    Paper, eq. reqn_exact, with sd^2 = (b + c)/n - gap^2: the -1 is the -gap^2 term.

    Examples
    --------
    >>> round(float(required_n(12032, 787, 684)), 2)
    13086.49
    """
    aligned(n=n, b=b, c=c, alpha=alpha, power=power)
    items, wins, losses = paired_counts(n, b, c)
    difference = wins - losses
    ratio = items * (wins + losses) / np.where(difference == 0, np.nan, difference) ** 2
    ratio = np.where(difference == 0, np.inf, ratio)
    return np.asarray(z_sum(alpha, power) ** 2 * np.maximum(ratio - 1, 0))


@slabbed
def resolution_ratio(n: npt.ArrayLike, n_star: npt.ArrayLike) -> FloatArray:
    """Return q = n / N*: at least 1 where a planned test of n items has the power; 0 where N* is infinite or n = 0.

    Examples
    --------
    >>> round(float(resolution_ratio(12032, required_n(12032, 1680, 1454))), 3)
    2.079
    """
    aligned(n=n, n_star=n_star)
    (items,) = non_negative(n=n)
    try:
        needed = np.asarray(n_star, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"n_star must be numeric, got {n_star!r}") from error
    if not (needed >= 0).all():
        raise ValueError("n_star must be non-negative and not NaN (infinite is allowed)")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(items > 0, items / needed, 0.0)


@slabbed
def mde(n: npt.ArrayLike, sd: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8) -> FloatArray:
    """Return the smallest gap that n items detect at (alpha, power), in score units; infinite where n = 0 (paper, eq. mde).

    Examples
    --------
    >>> round(float(mde(12032, 0.5)), 5)
    0.01277
    """
    aligned(n=n, sd=sd, alpha=alpha, power=power)
    items, spread = non_negative(n=n, sd=sd)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(items > 0, z_sum(alpha, power) * spread / np.sqrt(items), np.inf)


def required_n_paired(
    gap: npt.ArrayLike, sd: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8
) -> FloatArray:
    """Return N* = K sd^2 / gap^2 for any scores, from gap and standard deviation of D; infinite where the gap is 0.

    Paper, eq. nstar. For graded scores take the moments from `moments_from_sums`.

    Examples
    --------
    >>> round(float(required_n_paired(0.05, 0.5)), 2)
    784.89
    """
    aligned(gap=gap, sd=sd, alpha=alpha, power=power)
    (difference,), (spread,) = finite(gap=gap), non_negative(sd=sd)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(difference == 0, np.inf, spread**2 / difference**2)
    return np.asarray(z_sum(alpha, power) ** 2 * ratio)


def inflation(
    m: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8, method: str = "bonferroni"
) -> FloatArray:
    """Return the factor by which testing m hypotheses multiplies N*: (z_{1-alpha_m/2} + z_power)^2 / K.

    Parameters
    ----------
    m : array_like
        Number of hypotheses, at least 1.
    alpha, power : array_like
        Family-wise level and power per hypothesis.
    method : {"bonferroni", "sidak"}
        alpha_m = alpha / m, or 1 - (1 - alpha)^(1/m).

    Examples
    --------
    >>> [round(float(inflation(m)), 4) for m in (9, 40, 45)]
    [1.6646, 2.1093, 2.1442]
    >>> round(float(inflation(40, method="sidak")), 4)
    2.1019
    """
    aligned(m=m, alpha=alpha, power=power)
    (count,), (a,) = between(1, np.inf, m=m), level(alpha=alpha)
    if method not in {"bonferroni", "sidak"}:
        raise ValueError(f"method must be 'bonferroni' or 'sidak', got {method!r}")
    each = a / count if method == "bonferroni" else -np.expm1(np.log1p(-a) / count)
    return np.asarray((z_sum(each, power) / z_sum(a, power)) ** 2)


def rho_sensitivity(
    p_a: npt.ArrayLike,
    p_b: npt.ArrayLike,
    rho: npt.ArrayLike,
    *,
    width: float = 0.1,
    alpha: npt.ArrayLike = 0.05,
    power: npt.ArrayLike = 0.8,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return N* of 0/1 scores at rho - width, rho and rho + width, each clamped to the Hoeffding bounds.

    N* falls as the correlation grows, so the first value is the largest.

    Examples
    --------
    >>> [round(float(n)) for n in rho_sensitivity(0.65, 0.60, 0.30)]
    [1174, 1028, 881]
    """
    aligned(p_a=p_a, p_b=p_b, rho=rho, alpha=alpha, power=power)
    (r,) = admissible_rho(p_a, p_b, rho)
    (margin,) = non_negative(width=width)
    low, high = hoeffding_bounds(p_a, p_b)
    gap = np.subtract(p_a, p_b)

    def needed(at: FloatArray) -> FloatArray:
        return required_n_paired(gap, np.sqrt(difference_variance(p_a, p_b, np.clip(at, low, high))), alpha, power)

    return needed(r - margin), needed(r), needed(r + margin)

"""Power of the fixed-n tests."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stats.checks import FloatArray, aligned, finite, level, non_negative
from stats.mcnemar import chi2_p, corrected_p, exact_p, mid_p
from stats.special import betainc, gammaln, ndtr, ndtri, xlogy

_TESTS: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], FloatArray]] = {
    "exact": exact_p,
    "mid": mid_p,
    "chi2": chi2_p,
    "corrected": corrected_p,
}


def wald_power(n: npt.ArrayLike, gap: npt.ArrayLike, sd: npt.ArrayLike, alpha: npt.ArrayLike = 0.05) -> FloatArray:
    """Return the two-sided power of the Wald test of a mean difference (paper, eq. power, with both tails).

    Parameters
    ----------
    n, gap, sd : array_like
        Items, true gap and true standard deviation of D (score units).
    alpha : array_like
        Two-sided level.

    Returns
    -------
    ndarray
        Probability of rejection; alpha where the gap or n is 0.

    Examples
    --------
    >>> round(float(wald_power(784.888, 0.05, 0.5)), 4)
    0.8

    """
    aligned(n=n, gap=gap, sd=sd, alpha=alpha)
    items, spread = non_negative(n=n, sd=sd)
    (difference,), (a,) = finite(gap=gap), level(alpha=alpha)
    signal = np.abs(difference) * np.sqrt(items)
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(signal == 0, 0.0, signal / spread)
    return np.asarray(ndtr(ndtri(a / 2) - shift) + ndtr(ndtri(a / 2) + shift))


def exact_power(n: int, rate_b: float, rate_c: float, alpha: float = 0.05, test: str = "exact") -> float:
    """Return the probability that a McNemar test rejects, by summing over all outcomes.

    Parameters
    ----------
    n : int
        Shared items.
    rate_b, rate_c : float
        Probabilities that an item is won by A and by B, ``rate_b + rate_c <= 1``; equal rates give the test's size.
    alpha : float
        Two-sided level.
    test : {"exact", "mid", "chi2", "corrected"}
        Which McNemar test.

    Notes
    -----
    The number m of discordant items is Binomial(n, rate_b + rate_c); given m, the wins of A are Binomial(m, theta). Each
    test rejects on two symmetric tails of the latter, found by bisection. Outcomes of m beyond 9 standard deviations
    are omitted.

    Examples
    --------
    >>> round(exact_power(10, 0.5, 0.5), 6)
    0.021484

    """
    (items,) = non_negative(n=n)
    first, second = non_negative(rate_b=rate_b, rate_c=rate_c)
    discordance = float(first + second)
    if discordance > 1:
        raise ValueError(f"rate_b + rate_c must not exceed 1, got {discordance}")
    level(alpha=alpha)
    if test not in _TESTS:
        raise ValueError(f"test must be one of {', '.join(_TESTS)}, got {test!r}")
    if discordance == 0 or items == 0:
        return 0.0
    total = float(items)
    mean, reach = total * discordance, 9 * np.sqrt(total * discordance * (1 - discordance)) + 9
    m = np.arange(max(0, np.floor(mean - reach)), min(total, np.ceil(mean + reach)) + 1)
    tail = _critical_count(m, alpha, _TESTS[test])
    theta = float(first) / discordance
    rejects = tail >= 0
    k = np.maximum(tail, 0)
    both_tails = betainc(np.maximum(m - k, 0.5), k + 1, 1 - theta) + betainc(np.maximum(m - k, 0.5), k + 1, theta)
    log_choose = gammaln(total + 1) - gammaln(m + 1) - gammaln(total - m + 1)
    weight = np.exp(log_choose + xlogy(m, discordance) + xlogy(total - m, 1 - discordance))
    return float(np.sum(weight * np.where(rejects, both_tails, 0.0)))


def _critical_count(
    m: FloatArray, alpha: float, p_value: Callable[[npt.ArrayLike, npt.ArrayLike], FloatArray]
) -> FloatArray:
    """Return the largest k <= m/2 at which (k, m - k) is rejected, -1 where none is; p-values grow with k."""
    low, high = np.full(m.shape, -1.0), np.floor(m / 2) + 1
    while (high - low > 1).any():
        middle = np.floor((low + high) / 2)
        open_at = high - low > 1
        at = np.where(open_at, middle, 0)
        rejected = p_value(at, m - at) <= alpha
        low = np.where(open_at & rejected, middle, low)
        high = np.where(open_at & ~rejected, middle, high)
    # A p-value at k = m/2 is 1, so the tails never meet.
    return low

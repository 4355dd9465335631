"""Power of the fixed-n tests, and the items that give a power."""

from collections.abc import Callable
from functools import lru_cache
from itertools import cycle
from math import ceil, floor, inf, isinf, log2, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from stats.fixed_n.mcnemar import chi2_p, corrected_p, exact_p, mid_p
from stats.fixed_n.resolution import required_n_paired
from stats.numerics.checks import FloatArray, aligned, finite, level, non_negative
from stats.numerics.special import betainc, gammaln, ndtr, ndtri, xlogy

_TESTS: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], FloatArray]] = {
    "exact": exact_p,
    "mid": mid_p,
    "chi2": chi2_p,
    "corrected": corrected_p,
}

REACH: Final = 7.0
"""Standard deviations beyond which outcomes are omitted: their probability is below 1e-11."""

MOST_ITEMS: Final = 1e12
"""Items beyond which no number is given."""

_NODES = 100  # counts a standard deviation, beyond which not every count is visited
_TABLE = 65_535  # critical counts up to this many discordant items are kept
_ROUNDING = 1e-12  # p this close above alpha is alpha, as in `stats.evidence.curtailed`
_SMOOTH = 0.4  # with a smaller share of discordant items than this, their number smooths the steps of a discrete test
_STEPPED = 25.0  # ... from this variance of their number on
_NEAR = 100_000  # items among which a step is looked for


def wald_power(n: npt.ArrayLike, gap: npt.ArrayLike, sd: npt.ArrayLike, alpha: npt.ArrayLike = 0.05) -> FloatArray:
    """Return the two-sided power of the Wald test of a mean difference (paper, eq. power, with both tails).

    Parameters
    ----------
    n, gap, sd : array_like
        Items, true gap and true standard deviation of D (score units).

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


def exact_power(n: float, rate_b: float, rate_c: float, alpha: float = 0.05, test: str = "exact") -> float:
    """Return the probability that a McNemar test rejects, by summing over all outcomes.

    Parameters
    ----------
    rate_b, rate_c : float
        Probabilities that an item is won by A and by B, ``rate_b + rate_c <= 1``; equal rates give the test's size.
    test : {"exact", "mid", "chi2", "corrected"}
        Which McNemar test.

    Notes
    -----
    The number m of discordant items is Binomial(n, rate_b + rate_c); given m, the wins of A are Binomial(m, theta). Each
    test rejects on two symmetric tails of the latter, found by bisection. Outcomes of m beyond 7 standard deviations
    are omitted. Where the standard deviation exceeds 200, every h-th outcome is visited, about 100 a standard deviation.

    Examples
    --------
    >>> round(exact_power(10, 0.5, 0.5), 6)
    0.021484
    """
    return leader_power(n, rate_b, rate_c, alpha, test) + leader_power(n, rate_c, rate_b, alpha, test)


def leader_power(n: float, rate_b: float, rate_c: float, alpha: float = 0.05, test: str = "exact") -> float:
    """Return the probability that a two-sided McNemar test decides for A: one of the two tails of `exact_power`.

    Examples
    --------
    >>> round(leader_power(164, 0.11, 0.03), 3)
    0.75
    """
    first, second = rate_pair(rate_b, rate_c)
    theta = np.array([first / max(first + second, 1e-300)])
    return float(power_by_theta(n, min(first + second, 1.0), theta, alpha, test)[0])


def power_by_theta(
    n: float, discordance: float, theta: FloatArray, alpha: float = 0.05, test: str = "exact"
) -> FloatArray:
    """Return `leader_power` for several probabilities that a discordant item is won by A, at one discordance."""
    (items,), (a,) = non_negative(n=n), level(alpha=alpha)
    m, weight = binomial_outcomes(float(items), discordance)
    k = critical_count(m, float(a), test)
    decided = np.where(k >= 0, upper_tail(m - np.maximum(k, 0), m, theta[:, None]), 0.0)
    return np.asarray(decided @ weight)


def items_for_power(
    rate_b: float, rate_c: float, alpha: float = 0.05, power: float = 0.8, test: str = "exact"
) -> float:
    """Return the fewest items from which on a McNemar test decides for A with a probability of at least ``power``.

    Infinite where A is not better, and beyond 10^12 items.

    Notes
    -----
    The power of a discrete test is a saw: it falls where an item is added without another rejection. So the items are those after the
    last one whose power is too low, within as many items as the saw takes to repeat. Where most items are ties their number varies so
    much that nothing is left of the saw.

    Examples
    --------
    >>> items_for_power(0.11, 0.09), items_for_power(1, 0)
    (4016.0, 6.0)
    """
    first, second = rate_pair(rate_b, rate_c)
    (a,), (target,) = level(alpha=alpha), level(power=power)
    if first <= second:
        return inf
    discordance = first + second
    formula = required_n_paired(first - second, np.sqrt(np.maximum(discordance - (first - second) ** 2, 0)), a, target)
    high = first_items(lambda n: leader_power(n, first, second, float(a), test), float(target), float(formula))
    if isinf(high):
        return inf
    around = ceil((4 * sqrt(high * discordance) + 10) / discordance)
    if around > _NEAR or (discordance < _SMOOTH and high * discordance * (1 - discordance) > _STEPPED):
        return high
    near = np.arange(max(0, high - around), high + around + 1)
    outcomes = [binomial_outcomes(n, discordance) for n in near.tolist()]
    least = outcomes[0][0][0]
    rejects = _rejects(np.arange(least, outcomes[-1][0][-1] + 1), first / discordance, float(a), test)
    short = near[[weight @ rejects[(m - least).astype(np.intp)] < target for m, weight in outcomes]]
    return float(short[-1] + 1) if short.size else high


def first_items(power_of: Callable[[float], float], power: float, guess: float, precision: float = 0.0) -> float:
    """Return the fewest items that give a power; infinite beyond 10^12.

    Parameters
    ----------
    power_of : callable
        The power with a number of items; it grows with them.
    power : float
    guess : float
        About so many items.
    precision : float
        Relative width at which the search ends; 0 for the exact number.

    Notes
    -----
    The normal quantile of a power is nearly linear in the root of the items. A step to either side of the root of its chord brackets it
    closely, and a bisection follows in case it does not.
    """
    low, high = 0.0, max(float(ceil(guess)), 1.0)
    values = {0.0: 0.0}
    while high <= MOST_ITEMS and values.setdefault(high, power_of(high)) < power:
        low, high = high, float(ceil(high * 1.3))
    if high > MOST_ITEMS:
        return inf
    for turn in cycle((-1, 1, 0)):
        if high - low <= max(1.0, precision * low):
            break
        z_low, z_high, z = (float(ndtri(min(max(x, 1e-9), 1 - 1e-9))) for x in (values[low], values[high], power))
        root = sqrt(low) + (z - z_low) / max(z_high - z_low, 1e-9) * (sqrt(high) - sqrt(low))
        chord = root**2 + turn * ceil(0.02 * (high - low))
        middle = float(floor(min(max(chord if turn else (low + high) / 2, low + 1), high - 1)))
        values[middle] = power_of(middle)
        low, high = (low, middle) if values[middle] >= power else (middle, high)
    return high


def rate_pair(rate_b: float, rate_c: float) -> tuple[float, float]:
    """Return the probabilities that an item is won by A and by B, or raise ValueError."""
    first, second = (float(x) for x in non_negative(rate_b=rate_b, rate_c=rate_c))
    if first + second > 1 + _ROUNDING:
        raise ValueError(f"rate_b + rate_c must not exceed 1, got {first + second}")
    return first, min(second, 1 - first) if first + second > 1 else second


def binomial_outcomes(n: float, p: float) -> tuple[FloatArray, FloatArray]:
    """Return the outcomes of a binomial variable and their probabilities: every h-th outcome with h times its own where there are many."""
    mean, spread = n * p, sqrt(max(n * p * (1 - p), 0))
    if spread == 0:
        return np.array([float(round(mean))]), np.ones(1)
    stride = floor(spread / _NODES) if spread > 2 * _NODES else 1
    stride += 1 - stride % 2  # odd: tests on an even and on an odd number differ
    reach = REACH * spread + REACH
    m = np.arange(max(0, floor(mean - reach)), min(n, ceil(mean + reach)) + 1, stride)
    if spread > 1e4:  # the logarithms of the factorials have no digits left
        weight = np.exp(-0.5 * ((m - mean) / spread) ** 2)
    else:
        weight = np.exp(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1) + xlogy(m, p) + xlogy(n - m, 1 - p))
    return m, weight / weight.sum()


def upper_tail(least: FloatArray, n: FloatArray, p: float | FloatArray) -> FloatArray:
    """Return P(X >= least), X ~ Binomial(n, p)."""
    inside = (least > 0) & (least <= n)
    k = np.where(inside, least, 1.0)
    tail = betainc(k, np.where(inside, n, 1.0) - k + 1, p)
    return np.where(inside, tail, np.where(least <= 0, 1.0, 0.0))


def critical_count(m: FloatArray, alpha: float, test: str = "exact") -> FloatArray:
    """Return the largest k <= m/2 at which (k, m - k) is rejected, -1 where none is."""
    if test not in _TESTS:
        raise ValueError(f"test must be one of {', '.join(_TESTS)}, got {test!r}")
    most = float(m.max(initial=0))
    if most > _TABLE:
        return _search_critical(m, alpha, test)
    return _critical_table(alpha, test, 2 ** ceil(log2(max(most, 1_023) + 1)))[m.astype(np.intp)]


@lru_cache(maxsize=32)
def _critical_table(alpha: float, test: str, size: int) -> FloatArray:
    return _search_critical(np.arange(size, dtype=np.float64), alpha, test)


def _search_critical(m: FloatArray, alpha: float, test: str) -> FloatArray:
    """Search the critical counts: p-values grow with k, and are 1 at k = m/2."""
    limit, z = alpha * (1 + _ROUNDING), ndtri(alpha / 2)
    low, high = np.full(m.shape, -1.0), np.floor(m / 2) + 1
    # A normal quantile with the kurtosis of the fair binomial is nearly always the count itself; a bisection follows where it is not.
    normal = np.floor(m / 2 + z * np.sqrt(m) / 2 * (1 - (z**2 - 3) / (12 * np.maximum(m, 1))) - 0.5)
    for near in (normal, normal + 1, normal - 3, normal + 4):
        _narrow(low, high, near, m, limit, test)
    while (high - low > 1).any():
        _narrow(low, high, np.floor((low + high) / 2), m, limit, test)
    return low


def _narrow(low: FloatArray, high: FloatArray, count: FloatArray, m: FloatArray, limit: float, test: str) -> None:
    """Test the counts that are between the bounds, and move the bounds there."""
    at = np.flatnonzero((low < count) & (count < high))
    k = count[at]
    rejected = _TESTS[test](k, m[at] - k) <= limit
    low[at[rejected]], high[at[~rejected]] = k[rejected], k[~rejected]


def _rejects(m: FloatArray, theta: float, alpha: float, test: str) -> FloatArray:
    """Return the probability that A is decided, for each number of discordant items."""
    k = critical_count(m, alpha, test)
    return np.where(k >= 0, upper_tail(m - np.maximum(k, 0), m, theta), 0.0)

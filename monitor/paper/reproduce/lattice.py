"""The paired bootstrap of 0/1 scores, computed exactly instead of by resampling."""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, gammaln, xlogy

Floats = NDArray[np.float64]


def bootstrap_tails(n: int, b: ArrayLike, c: ArrayLike) -> tuple[Floats, Floats]:
    """Return P(Dbar* <= 0) and P(Dbar* < 0) of the paired bootstrap with infinitely many resamples."""
    # A resample has Binomial(n, (b + c) / n) discordant items; Binomial(., b / (b + c)) of them go to A. At least one discordant item is
    # required.
    wins, losses = (np.asarray(x, dtype=np.float64)[..., None] for x in np.broadcast_arrays(b, c))
    rate, share = (wins + losses) / n, wins / (wins + losses)
    spread = 9 * np.sqrt(n * float(rate.max())) + 9
    m = np.clip(np.floor(wins + losses - spread) + np.arange(2 * spread), -1, n)
    weight = np.exp(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1) + xlogy(m, rate) + xlogy(n - m, 1 - rate))
    weight[(m < 0) | (np.diff(m, prepend=-1.0, axis=-1) == 0)] = 0.0

    def at_most(k: Floats) -> Floats:
        """Return P(Binomial(m, share) <= k)."""
        inside = (k >= 0) & (k < m)
        tail = betainc(np.where(inside, m - k, 1), np.where(inside, k + 1, 1), 1 - share)
        return np.asarray((weight * np.where(inside, tail, k >= 0)).sum(-1))

    return at_most(np.floor(m / 2)), at_most(np.ceil(m / 2) - 1)


def bootstrap_rejects(n: int, b: ArrayLike, c: ArrayLike, alpha: float = 0.05) -> NDArray[np.bool_]:
    """Test whether the closed percentile interval of the mean gap excludes 0 (the paper's definition of the test)."""
    at_most, below = bootstrap_tails(n, b, c)
    return (at_most < alpha / 2) | (1 - below < alpha / 2)


@lru_cache(maxsize=4)
def _critical_counts(n: int, alpha: float) -> NDArray[np.int64]:
    """Return the largest smaller count that is rejected at 0, 1, ..., n discordant items; -1 where none is."""
    m = np.arange(1, n + 1)
    low, high = np.full(m.shape, -1), m // 2 + 1
    while (high - low > 1).any():  # rejection is monotone in the smaller count
        middle = (low + high) // 2
        rejected = bootstrap_rejects(n, m - middle, middle, alpha)
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return np.concatenate([[-1], low])


def bootstrap_power(n: int, rate_b: float, rate_c: float, alpha: float = 0.05) -> float:
    """Return the probability of rejection, summed over all outcomes of n items."""
    rate, share = rate_b + rate_c, rate_b / (rate_b + rate_c)
    m, tail = np.arange(n + 1), _critical_counts(n, alpha)
    log_choose = gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    weight = np.exp(log_choose + xlogy(m, rate) + xlogy(n - m, 1 - rate))
    k = np.maximum(tail, 0)
    tails = betainc(np.maximum(m - k, 1), k + 1, 1 - share) + betainc(np.maximum(m - k, 1), k + 1, share)
    return float((weight * np.where(tail >= 0, tails, 0.0)).sum())

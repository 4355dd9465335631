"""Paired bootstrap over items: intervals for the gap, empirical power, an interval for N*.

Resampling n items with replacement draws multinomial counts of the distinct values of D, so scores with few values
(0/1 above all) cost one multinomial draw per resample instead of n look-ups; the distribution is the same.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.fixed_n.mcnemar import chi2_p
from stats.fixed_n.resolution import required_n
from stats.fixed_n.ttest import paired_t_from_moments
from stats.numerics.checks import FloatArray, between, level, paired_counts, vector

_FEW_VALUES = 64
_CELLS = 2_000_000  # random numbers held at a time


class BootstrapInterval(NamedTuple):
    """Mean difference with its bootstrap interval."""

    delta: float
    low: float
    high: float


def paired_bootstrap_delta(
    scores_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    resamples: int = 2000,
    method: str = "percentile",
    seed: int = 0,
) -> BootstrapInterval:
    """Return the bootstrap interval for the mean of D = scores_a - scores_b (paper, def. bpow).

    Parameters
    ----------
    scores_a, scores_b : array_like, shape (n,)
        Scores of the two models on the same items, in [0, 1].
    alpha : float
        1 - coverage.
    resamples : int
        Number of bootstrap resamples.
    method : {"percentile", "studentised"}
        Percentiles of the resampled means, or of their t statistics (more accurate in small samples).
    seed : int
        Seed of the generator: the same seed gives the same interval.

    Examples
    --------
    >>> result = paired_bootstrap_delta([1, 1, 0, 1], [0, 1, 0, 0])
    >>> result.delta, result.low, result.high
    (0.5, 0.0, 1.0)
    """
    d = _differences(scores_a, scores_b)
    level(alpha=alpha)
    if method not in {"percentile", "studentised"}:
        raise ValueError(f"method must be 'percentile' or 'studentised', got {method!r}")
    means, sds = _resample(d, d.size, _positive(resamples=resamples), np.random.default_rng(seed))
    mean = float(d.mean())
    tails = [alpha / 2, 1 - alpha / 2]
    if method == "percentile":
        low, high = np.quantile(means, tails)
        return BootstrapInterval(mean, float(low), float(high))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(means == mean, 0.0, (means - mean) / sds)
    # A resample without variation has an infinite t: quantiles must then pick an order statistic, not interpolate.
    lower, upper = np.quantile(t, tails, method="inverted_cdf")
    spread = float(d.std())
    scaled = (0.0, 0.0) if spread == 0 else (upper * spread, lower * spread)
    return BootstrapInterval(mean, float(mean - scaled[0]), float(mean - scaled[1]))


def bootstrap_power(
    scores_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    n: int,
    *,
    alpha: float = 0.05,
    trials: int = 1000,
    resamples: int = 500,
    test: str = "bootstrap",
    seed: int = 0,
) -> float:
    """Return the share of samples of n items, drawn with replacement from reference scores, on which a test rejects.

    Parameters
    ----------
    scores_a, scores_b : array_like, shape (N,)
        Reference scores of the two models on the same items, in [0, 1].
    n : int
        Sample size whose power is asked for; it may exceed N.
    trials : int
        Number of samples; the standard error of the result is at most 1 / (2 sqrt(trials)).
    resamples : int
        Bootstrap resamples per sample (``test="bootstrap"`` only).
    test : {"bootstrap", "chi2", "t"}
        Percentile bootstrap, McNemar's chi-squared (0/1 scores only), paired t.

    Examples
    --------
    >>> bootstrap_power([1, 1, 0, 1], [0, 1, 0, 0], 40, trials=200, test="chi2") > 0.9
    True
    """
    d = _differences(scores_a, scores_b)
    level(alpha=alpha)
    size, count = _positive(n=n), _positive(trials=trials)
    rng = np.random.default_rng(seed)
    if test == "t":
        means, sds = _resample(d, size, count, rng)
        _, p = paired_t_from_moments(size, means, sds)
        return float((p <= alpha).mean())
    if test == "chi2":
        if not np.isin(d, (-1.0, 0.0, 1.0)).all():
            raise ValueError("test 'chi2' needs 0/1 scores; use 'bootstrap' or 't' for graded ones")
        drawn = rng.multinomial(size, [(d > 0).mean(), (d < 0).mean(), (d == 0).mean()], size=count)
        return float((chi2_p(drawn[:, 0], drawn[:, 1]) <= alpha).mean())
    if test != "bootstrap":
        raise ValueError(f"test must be 'bootstrap', 'chi2' or 't', got {test!r}")
    rejected = 0
    inner = _positive(resamples=resamples)
    for _ in range(count):
        sample = d[rng.integers(0, d.size, size)]
        low, high = np.quantile(_resample(sample, size, inner, rng)[0], [alpha / 2, 1 - alpha / 2])
        rejected += int(low > 0 or high < 0)
    return rejected / count


def required_n_interval(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    coverage: float = 0.95,
    resamples: int = 500,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Return the percentile bootstrap interval for N*, of all pairs at once.

    Parameters
    ----------
    alpha, power : float
        As in `required_n`.
    coverage : float
        Nominal coverage of the interval.
    resamples : int
        B, the number of resamples of the n items.

    Returns
    -------
    low, high : ndarray
        ``high`` is infinite where the percentile interval of the gap includes 0: no number of items is then ruled out.

    Examples
    --------
    >>> low, high = required_n_interval(12032, 1871, 1076)
    >>> bool(low < 433 < high)
    True
    """
    items, wins, losses = np.broadcast_arrays(*paired_counts(n, b, c))
    level(coverage=coverage)
    _positive(resamples=resamples)
    if (items < 1).any() or any((x != np.floor(x)).any() for x in (items, wins, losses)):
        raise ValueError("n, b and c must be whole numbers with n >= 1: the items are what is resampled")
    rates = np.stack([wins, losses, items - wins - losses], axis=-1) / items[..., None]
    drawn = np.random.default_rng(seed).multinomial(items.astype(np.int64), rates, size=(resamples, *items.shape))
    needed = required_n(items, drawn[..., 0], drawn[..., 1], alpha, power)
    ends = [(1 - coverage) / 2, (1 + coverage) / 2]
    low, high = np.quantile(needed, ends, axis=0, method="inverted_cdf")
    least, most = np.quantile(drawn[..., 0] - drawn[..., 1], ends, axis=0, method="inverted_cdf")
    return low, np.where((least <= 0) & (most >= 0), np.inf, high)


def _resample(d: FloatArray, size: int, resamples: int, rng: "np.random.Generator") -> tuple[FloatArray, FloatArray]:
    """Return the means and standard deviations of samples of ``size`` values of ``d`` drawn with replacement."""
    values, counts = np.unique(d, return_counts=True)
    if values.size <= _FEW_VALUES:
        weights = rng.multinomial(size, counts / d.size, size=resamples) / size
        means = weights @ values
        return means, np.sqrt(np.maximum(weights @ values**2 - means**2, 0))
    means, sds = np.empty(resamples), np.empty(resamples)
    rows = max(1, _CELLS // size)
    for start in range(0, resamples, rows):
        block = d[rng.integers(0, d.size, (min(rows, resamples - start), size))]
        means[start : start + rows], sds[start : start + rows] = block.mean(axis=1), block.std(axis=1)
    return means, sds


def _differences(scores_a: npt.ArrayLike, scores_b: npt.ArrayLike) -> FloatArray:
    a, b = vector(scores_a=scores_a), vector(scores_b=scores_b)
    between(0, 1, scores_a=a, scores_b=b)
    if a.size != b.size:
        raise ValueError(
            f"scores_a and scores_b must be of equal length, got {a.size} and {b.size}: one score per item"
        )
    if a.size == 0:
        raise ValueError("scores_a must not be empty: nothing can be resampled")
    return a - b


def _positive(**named: int) -> int:
    ((name, value),) = named.items()
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)

"""Simultaneous intervals for all pairwise gaps at a planned n, by the maximum of correlated t statistics."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray, finite, level


class SimultaneousIntervals(NamedTuple):
    """Gaps of all pairs with intervals that hold together.

    Attributes
    ----------
    first, second : ndarray of int, shape (P,)
        Models of each pair, ``first < second``; P = K (K - 1) / 2.
    gap, low, high : ndarray, shape (P,)
        Mean difference first - second and its bounds, in score units.
    critical : float
        The common multiple of the standard error.
    """

    first: IntArray
    second: IntArray
    gap: FloatArray
    low: FloatArray
    high: FloatArray
    critical: float


def max_t_intervals(
    scores: npt.ArrayLike, alpha: float = 0.05, *, draws: int = 10_000, seed: int = 0
) -> SimultaneousIntervals:
    """Return max-T intervals for all pairs of models scored on the same items; valid at a planned n only.

    The pairwise t statistics are jointly normal for large n, with a covariance given by that of the scores. The
    critical value is the 1 - alpha quantile of the largest of them in absolute value, drawn from that distribution:
    pairs sharing models or items cost less than Bonferroni charges.

    Parameters
    ----------
    scores : array_like, shape (K, n)
        K >= 2 models, n >= 2 items, no missing values.
    alpha : float
        1 - simultaneous coverage.
    draws : int
        Monte Carlo draws of the maximum.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> result = max_t_intervals(rng.random((3, 500)) < 0.6)
    >>> bool(2.2 < result.critical < 2.45)  # one pair needs 1.96, Bonferroni over three 2.39
    True
    """
    (table,) = finite(scores=scores)
    level(alpha=alpha)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise ValueError(f"scores must hold at least 2 models (rows) and 2 items (columns), got shape {table.shape}")
    if draws < 1 / alpha:
        raise ValueError(f"draws must be at least 1/alpha = {1 / alpha:.0f}, got {draws}")
    models, items = table.shape
    first, second = np.triu_indices(models, 1)
    gap = table.mean(axis=1)[first] - table.mean(axis=1)[second]
    covariance = np.cov(table)
    variance = covariance[first, first] + covariance[second, second] - 2 * covariance[first, second]
    # Two identical models leave rounding errors; their gap is known to be 0 and takes no part in the maximum.
    spread = np.sqrt(np.where(variance > 1e-12 * np.trace(covariance), variance, 0.0))
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0))
    rng = np.random.default_rng(seed)
    largest = np.zeros(draws)
    varying = spread > 0
    rows = max(1, 4_000_000 // first.size)
    for start in range(0, draws, rows):
        z = rng.standard_normal((min(rows, draws - start), models)) @ root.T
        t = np.abs(z[:, first[varying]] - z[:, second[varying]]) / spread[varying]
        largest[start : start + rows] = t.max(axis=1, initial=0.0)
    critical = float(np.quantile(largest, 1 - alpha, method="higher"))
    half = critical * spread / np.sqrt(items)
    return SimultaneousIntervals(first, second, gap, gap - half, gap + half, critical)

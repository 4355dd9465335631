"""An interval for a model's own mean score."""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, level, non_negative
from stats.numerics.special import ndtri


def mean_interval(
    total: npt.ArrayLike, scored: npt.ArrayLike, alpha: npt.ArrayLike = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the Wilson score interval for the mean of scores in [0, 1]; valid for one look at a fixed number of items.

    Parameters
    ----------
    total : array_like
        Sum of the scores, ``0 <= total <= scored``; for 0/1 scores the number right.
    scored : array_like
        Number of items scored.

    Returns
    -------
    low, high : ndarray
        Bounds in [0, 1]; (0, 1) where nothing is scored.

    Notes
    -----
    Wilson (1927). A score in [0, 1] with mean p has variance at most p (1 - p), so for graded scores the interval
    errs on the wide side. It describes one model; whether two models differ is a question for their paired items.

    Examples
    --------
    >>> low, high = mean_interval(80, 100)
    >>> round(float(low), 4), round(float(high), 4)
    (0.7112, 0.8666)
    """
    aligned(total=total, scored=scored, alpha=alpha)
    successes, items = non_negative(total=total, scored=scored)
    if (successes > items * (1 + 1e-12)).any():
        raise ValueError("total must not exceed scored: scores lie in [0, 1]")
    (a,) = level(alpha=alpha)
    count = np.maximum(items, 1)
    mean = np.minimum(successes / count, 1)
    z2 = ndtri(a / 2) ** 2
    centre = (mean + z2 / (2 * count)) / (1 + z2 / count)
    half = np.sqrt(z2 * (mean * (1 - mean) + z2 / (4 * count)) / count) / (1 + z2 / count)
    low = np.where(items > 0, np.clip(centre - half, 0, mean), 0.0)
    high = np.where(items > 0, np.clip(centre + half, mean, 1), 1.0)
    return low, high

"""How large a change is, over every start that it may have had."""

from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.special import ndtri


class DriftSize(NamedTuple):
    """What a change has done to the mean of runs; positive where it fell.

    Attributes
    ----------
    before, after : float
        Mean of the runs before and from the most likely start on.
    low, high : float
        The hull of the intervals over all starts of the set.
    runs : int
        Runs from the most likely start on.
    """

    before: float
    after: float
    low: float
    high: float
    runs: int


def drift_size(means: npt.ArrayLike, start: int, starts: npt.ArrayLike, level: float = 0.95) -> DriftSize:
    """Return by how much the mean fell: descriptive, and too large by about a tenth at the alarm; renew it with later runs.

    Parameters
    ----------
    means : array_like, shape (T,)
        Mean score of each run of the segment, in order.
    start : int
        The most likely first run after the change, counted from 1.
    starts : array_like of int
        All starts of the set, `ChangePoint.starts`.
    level : float
        Of the interval at each start: mean difference -+ z s sqrt(1/n1 + 1/n2), s the standard deviation of the runs before the set; where
        that is a single run, of all runs around the means of the two sides of `start`.

    Examples
    --------
    >>> fell = drift_size([.70, .72, .71, .73, .71, .66, .67, .66], 6, [6, 7])
    >>> round(fell.before, 4), round(fell.after, 4), round(fell.low, 4), round(fell.high, 4), fell.runs
    (0.714, 0.6633, 0.0218, 0.067, 3)
    """
    runs, first = np.asarray(means, float), np.asarray(starts, int)
    if first.size == 0 or min(first.min(), start) < 2 or max(first.max(), start) > runs.size:
        raise ValueError(f"a start must be a run from 2 to {runs.size}, so that runs are left before and after it")
    old, new = runs[: start - 1], runs[start - 1 :]
    steady, degrees = runs[: first.min() - 1], first.min() - 2
    if degrees == 0:
        steady, degrees = np.concatenate([old - old.mean(), new - new.mean()]), max(1, runs.size - 2)
    spread = sqrt(float(((steady - steady.mean()) ** 2).sum()) / degrees)
    z = float(ndtri((1 + level) / 2))
    bounds = []
    for nu in {*first.tolist(), start}:
        reach = z * spread * sqrt(1 / (nu - 1) + 1 / (runs.size - nu + 1))
        drop = float(runs[: nu - 1].mean() - runs[nu - 1 :].mean())
        bounds += [drop - reach, drop + reach]
    return DriftSize(float(old.mean()), float(new.mean()), min(bounds), max(bounds), new.size)

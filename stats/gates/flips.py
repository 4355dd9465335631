"""How often a gate flips on identical input: the chance that an unchanged model is red, and the cases that carry that noise.

A gate that compares means, "red if the new mean is more than ``margin`` below the old one", flips by the noise of its cases alone. With V
the mean over cases of the variance of one answer around the case's own rate, n cases and R repeats, the difference of two runs of one model
has the standard deviation sqrt(2 V / (n R)).
"""

from math import ceil, floor, inf, sqrt

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray
from stats.numerics.special import ndtr, ndtri

_ROUNDING = 1e-9
_MOST = 1e12


def case_variances(scores: npt.ArrayLike) -> FloatArray:
    """Return the variance of one answer of each case, with the divisor R - 1.

    Parameters
    ----------
    scores : array_like, shape (cases, repeats)
        nan where there is no answer.

    Returns
    -------
    ndarray, shape (cases,)
        nan for a case with fewer than two answers.

    Examples
    --------
    >>> case_variances([[1, 0, 1, 0], [1, 1, 1, 1], [1, np.nan, np.nan, np.nan]]).round(4).tolist()
    [0.3333, 0.0, nan]
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"scores must be of shape (cases, repeats), got shape {values.shape}")
    count = (~np.isnan(values)).sum(axis=1)
    mean = np.nansum(values, axis=1) / np.maximum(count, 1)
    squares = np.nansum((values - mean[:, None]) ** 2, axis=1)
    return np.where(count > 1, squares / np.maximum(count - 1, 1), np.nan)


def flip(items: float, repeats: float, margin: float, variance: float, *, whole: bool = True) -> float:
    """Return the chance that an unchanged model is red where a gate compares means; two runs then disagree with 2 P (1 - P).

    Parameters
    ----------
    items, repeats : float
        Cases, and repeats of each.
    margin : float
        Loss that is accepted, in [0, 1).
    variance : float
        Mean variance of one answer; see `case_variances`.
    whole : bool
        Whether answers are right or wrong, so that means move in whole steps.

    Notes
    -----
    Phi(-(floor(margin n R) + 1/2) / sqrt(2 V n R)), by the normal approximation; with graded scores no step, so margin n R. Both models are
    run. Where the old answers are kept, one half of that variance is the luck of the old run, which stays for as long as they are kept.

    Examples
    --------
    >>> cases = (50, 1, 0.01), (50, 1, 0.03), (200, 1, 0.01), (200, 4, 0.01), (1319, 1, 0.01), (1319, 1, 0.03)
    >>> [round(flip(*case, 0.042), 6) for case in cases[:5]]
    [0.403625, 0.232107, 0.270952, 0.149893, 0.099826]
    >>> [round(flip(*case, 0.14), 6) for case in cases]
    [0.446847, 0.34425, 0.369161, 0.285041, 0.241191, 0.01992]
    """
    if not (items > 0 and repeats > 0 and 0 <= margin < 1 and variance >= 0):
        raise ValueError("a flip takes items > 0, repeats > 0, a margin in [0, 1) and a variance >= 0")
    if variance == 0:
        return 0.0
    answers = items * repeats
    allowed = floor(margin * answers + _ROUNDING) + 0.5 if whole else margin * answers
    return float(ndtr(-allowed / sqrt(2 * variance * answers)))


def answers_for_flip(
    margin: float, variance: float, level: float = 0.05, *, each: int = 1, whole: bool = True
) -> float:
    """Return from how many answers on, cases times repeats, an unchanged model is red with a chance of `level` at most.

    Parameters
    ----------
    level : float
        In (0, 1/2).
    each : int
        Answers come in steps of so many: of n for whole repeats of n cases.

    Returns
    -------
    float
        Infinite where no number suffices: without a margin, or beyond 10^12.

    Notes
    -----
    P falls from one allowed loss to the next, and rises in between, so the last number that is too few comes just before a loss more is
    allowed.

    Examples
    --------
    >>> [answers_for_flip(margin, 0.042) for margin in (0.01, 0.02, 0.03)], answers_for_flip(0.02, 0.042, each=60)
    ([2300.0, 600.0, 267.0], 600.0)
    >>> answers_for_flip(0.0, 0.14)
    inf
    """
    if not (0 < level < 0.5 and each >= 1 and 0 <= margin < 1 and variance >= 0):
        raise ValueError("a flip takes a level in (0, 1/2), a margin in [0, 1), a variance >= 0 and steps of 1 or more")
    if variance == 0:
        return float(each)
    reach = 2 * variance * float(ndtri(1 - level)) ** 2
    if margin == 0 or reach / margin**2 > _MOST:
        return inf
    answers = reach / margin**2
    if whole:
        # (j + 1/2)^2 = reach (j + 1) / margin: at the last answer at which j losses are allowed
        slope = reach / margin - 1
        losses = max(0, ceil((slope + sqrt(max(slope**2 + 4 * (reach / margin - 0.25), 0.0))) / 2))
        while losses and flip(max(1, ceil(losses / margin - _ROUNDING) - 1), 1, margin, variance) <= level:
            losses -= 1
        answers = losses / margin
    return float(max(1, ceil(answers / each - _ROUNDING)) * each)

"""Paired t test from sums, for graded scores at a planned n."""

import numpy as np
import numpy.typing as npt

from stats.fixed_n.resolution import moments_from_sums
from stats.numerics.checks import FloatArray, aligned, finite, non_negative
from stats.numerics.special import stdtr


def paired_t(n: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the t statistic and two-sided p-value of the mean difference.

    Parameters
    ----------
    s1, s2 : array_like
        Sums of D and of D^2, D in [-1, 1].

    Returns
    -------
    t, p : ndarray
        With n - 1 degrees of freedom. n < 2, or differences that are all 0: t = 0, p = 1. All differences equal and
        not 0: t is infinite, and p that of the sign test, 2^(1 - n): without spread there is no standard error.

    Examples
    --------
    >>> t, p = paired_t(4, 1.0, 0.5)
    >>> round(float(t), 4), round(float(p), 4)
    (1.7321, 0.1817)
    """
    return paired_t_from_moments(n, *moments_from_sums(n, s1, s2))


def paired_t_from_moments(n: npt.ArrayLike, gap: npt.ArrayLike, sd: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return the t statistic and two-sided p-value from the mean and standard deviation of D; see `paired_t`.

    Parameters
    ----------
    gap, sd : array_like
        Mean of D, and its standard deviation with divisor n.

    Examples
    --------
    >>> t, p = paired_t_from_moments(4, 0.25, 0.25)
    >>> round(float(t), 4), round(float(p), 4)
    (1.7321, 0.1817)
    """
    aligned(n=n, gap=gap, sd=sd)
    (gap,), (items, sd) = finite(gap=gap), non_negative(n=n, sd=sd)
    degrees = np.maximum(items - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap == 0, 0.0, gap * np.sqrt(degrees) / sd)
    t = np.where(items < 2, 0.0, t)
    return t, np.where(np.isinf(t), np.exp2(-degrees), 2 * stdtr(degrees, -np.abs(t)))

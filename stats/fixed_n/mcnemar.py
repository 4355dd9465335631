"""The four McNemar tests of a pair, two-sided: each is valid for one look at a sample size planned in advance.

Arguments are the discordant counts ``b`` (A right, B wrong) and ``c``; they broadcast. ``b + c = 0`` gives p = 1.
"""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, non_negative, slabbed
from stats.numerics.mixtures import half_beta_tail
from stats.numerics.special import erfc


@slabbed
def chi2_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """Return the p-value of the McNemar test by chi-squared without continuity correction (McNemar, 1947).

    Examples
    --------
    >>> round(float(chi2_p(295, 249)), 7)
    0.0485829
    """
    wins, losses = non_negative(b=b, c=c)
    return _normal_p(np.abs(wins - losses), wins + losses)


@slabbed
def corrected_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """Return the p-value of the continuity-corrected chi-squared test, |b - c| reduced by 1 (never below 0).

    Examples
    --------
    >>> round(float(corrected_p(295, 249)), 7)
    0.0536863
    """
    wins, losses = non_negative(b=b, c=c)
    return _normal_p(np.maximum(np.abs(wins - losses) - 1, 0), wins + losses)


@slabbed
def exact_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """Return the p-value of the exact conditional binomial test: the smaller count is Binomial(b + c, 1/2).

    The lower tail is a regularised incomplete beta function, P(X <= k) = I_1/2(m - k, k + 1).

    Examples
    --------
    >>> round(float(exact_p(295, 249)), 7)
    0.0535864
    """
    more, fewer = _ordered(b, c)
    # A tie is certain to be in the tail; it also lacks the order that the tail function asks for.
    return np.where(more > fewer, np.minimum(2 * half_beta_tail(np.maximum(more, fewer + 1), fewer + 1), 1), 1.0)


@slabbed
def mid_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """Return the mid-p value: the exact p-value less the probability of the observed count (Liddell, 1983).

    It equals 2 I_1/2(m - k + 1, k + 1): twice the mass that a uniform prior leaves on the trailing side of 1/2.

    Examples
    --------
    >>> round(float(mid_p(295, 249)), 5)
    0.04869
    """
    more, fewer = _ordered(b, c)
    return np.minimum(2 * half_beta_tail(more + 1, fewer + 1), 1)


def _ordered(b: npt.ArrayLike, c: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    wins, losses = np.broadcast_arrays(*non_negative(b=b, c=c))
    return np.maximum(wins, losses), np.minimum(wins, losses)


def _normal_p(distance: FloatArray, total: FloatArray) -> FloatArray:
    return np.asarray(erfc(distance / np.sqrt(2 * np.maximum(total, 1))))

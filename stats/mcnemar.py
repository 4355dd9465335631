"""The four McNemar tests of a pair, two-sided: each is valid at a sample size planned beforehand, read once.

Arguments are the discordant counts ``b`` (A right, B wrong) and ``c``; they broadcast. ``b + c = 0`` gives p = 1.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, erfc, gammaln

from stats.checks import FloatArray, non_negative


def chi2_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """P-value of the chi-squared test without continuity correction (McNemar, 1947).

    Examples
    --------
    >>> round(float(chi2_p(295, 249)), 7)
    0.0485829

    """
    wins, losses = non_negative(b=b, c=c)
    return _normal_p(np.abs(wins - losses), wins + losses)


def corrected_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """P-value of the continuity-corrected chi-squared test, |b - c| reduced by 1 (never below 0)."""
    wins, losses = non_negative(b=b, c=c)
    return _normal_p(np.maximum(np.abs(wins - losses) - 1, 0), wins + losses)


def exact_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """P-value of the exact conditional binomial test: the smaller count is Binomial(b + c, 1/2).

    The lower tail is the regularised incomplete beta function, exact to about 1e-15 at any size.

    Examples
    --------
    >>> round(float(exact_p(295, 249)), 7)
    0.0535864

    """
    return np.minimum(2 * _lower_tail(*non_negative(b=b, c=c)), 1.0)


def mid_p(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    """Mid-p value: the exact p-value less the probability of the observed count (Liddell, 1983).

    Examples
    --------
    >>> round(float(mid_p(295, 249)), 5)
    0.04869

    """
    wins, losses = non_negative(b=b, c=c)
    total = wins + losses
    log_pmf = gammaln(total + 1) - gammaln(wins + 1) - gammaln(losses + 1) - total * np.log(2)
    return np.asarray(np.clip(2 * _lower_tail(wins, losses) - np.exp(log_pmf), 0, 1))


def _normal_p(distance: FloatArray, total: FloatArray) -> FloatArray:
    return np.asarray(erfc(distance / np.sqrt(2 * np.maximum(total, 1))))


def _lower_tail(wins: FloatArray, losses: FloatArray) -> FloatArray:
    """P(X <= min(b, c)) for X ~ Binomial(b + c, 1/2)."""
    more, fewer = np.maximum(wins, losses), np.minimum(wins, losses)
    return np.where(more > 0, betainc(np.maximum(more, 1), fewer + 1, 0.5), 1.0)

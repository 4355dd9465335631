"""Beta integrals over the whole range and up to 1/2, in logarithms, at any number of items.

They are the two-sided and the losing directional evidence of a Beta mixture, and the tails of a fair binomial. All
carry the factor 2^(p + q), which keeps them near 1 where the evidence is.
"""

import numpy as np

from stats.numerics.checks import FloatArray
from stats.numerics.mills import LEAST, half_sech
from stats.numerics.slabs import by_slab
from stats.numerics.special import betainc, gammaln

_HALF_LOG_8PI = float(np.log(8 * np.pi) / 2)
_LARGE = 32  # from where on three terms of Stirling's series give 14 digits


def log_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the logarithm of 2^(p + q) B(p, q), elementwise, for p, q > 0 of one shape.

    The difference of log-gammas loses seven digits at 1e7 items; the same value as a Kullback-Leibler divergence plus
    Stirling corrections keeps them, and costs no more.
    """
    return by_slab(_log_beta, p, q)


def log_half_and_whole(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of 2^(p + q) times the integral of t^(p-1) (1-t)^(q-1) over (0, 1/2), and `log_beta`, of vectors p >= q > 0.

    With t = (1 - tanh u) / 2 it is 2 times the integral of exp(-(p-q) u) sech(u)^(p+q) over u > 0, which `stats.numerics.mills` looks up
    to 13 digits, however small the result: it neither cancels nor underflows.
    """
    whole = _log_beta(p, q)
    return _log_half(p, q, whole), whole


def log_upper_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the logarithm of 2^(p + q) times the integral of t^(p-1) (1-t)^(q-1) over (1/2, 1), elementwise, for p, q > 0.

    For p < q it is the half of `log_half_and_whole`; otherwise the whole less the other half.
    """
    return by_slab(_log_upper, p, q)


def log_less(log_whole: FloatArray, log_part: FloatArray) -> FloatArray:
    """Return ln(whole - part) from the logarithms of a whole and of a part that is at most about half of it."""
    return log_whole + np.log1p(-np.exp(np.minimum(log_part - log_whole, 0)))


def half_beta_tail(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the regularised incomplete beta function I_1/2(p, q), elementwise, for p >= q > 0 of one shape.

    For whole numbers it is P(X <= q - 1), X ~ Binomial(p + q - 1, 1/2). Relative error below 1e-12 up to 1e7 items.
    """

    def tail(x: FloatArray, y: FloatArray) -> FloatArray:
        half, whole = log_half_and_whole(x, y)
        return np.exp(half - whole)

    return by_slab(tail, p, q)


def _log_half(p: FloatArray, q: FloatArray, whole: FloatArray | None = None) -> FloatArray:
    few = np.flatnonzero(p + q < LEAST)
    out = np.empty(p.shape) if few.size == p.size else np.log(2 * half_sech(p - q, p + q))
    if few.size:
        x, y = p[few], q[few]
        out[few] = np.log(betainc(x, y, 0.5)) + (_log_beta(x, y) if whole is None else whole[few])
    return np.asarray(out)


def _log_upper(p: FloatArray, q: FloatArray) -> FloatArray:
    out = _log_half(np.maximum(p, q), np.minimum(p, q))
    ahead = np.flatnonzero(p >= q)
    out[ahead] = log_less(_log_beta(p[ahead], q[ahead]), out[ahead])
    return out


def _log_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    s = p + q
    d = p - q
    d /= s
    value = np.log1p(d)
    value *= p - 0.5
    other = np.log1p(np.negative(d, out=d), out=d)
    other *= q - 0.5
    value += other
    np.log(s, out=other)
    other *= 0.5
    other -= _HALF_LOG_8PI
    value -= other
    small = np.flatnonzero(np.minimum(p, q) < _LARGE)
    correction = _large_stirling(p)
    correction += _large_stirling(q)
    correction -= _large_stirling(s)
    if small.size:
        of_p, of_q, of_s = _stirling_error(np.stack((p[small], q[small], s[small])))
        correction[small] = of_p + of_q - of_s
    value += correction
    return value


def _large_stirling(x: FloatArray) -> FloatArray:
    """Return `_stirling_error` from 32 on: the next term is below 2e-14."""
    y = 1 / x
    y2 = y * y
    error = y2 * (1 / 1260)
    error -= 1 / 360
    error *= y2
    error += 1 / 12
    error *= y
    return np.asarray(error)


def _stirling_error(x: FloatArray) -> FloatArray:
    """Return the error of Stirling's formula: ln Gamma(x) - [(x - 1/2) ln x - x + ln(2 pi) / 2], for x > 0."""
    y = 1 / x
    y2 = y * y
    error = y * (1 / 12 - y2 * (1 / 360 - y2 * (1 / 1260 - y2 * (1 / 1680 - y2 / 1188))))
    small = x < 10
    if small.any():
        s = x[small]
        error[small] = gammaln(s) - ((s - 0.5) * np.log(s) - s + 0.5 * np.log(2 * np.pi))
    return np.asarray(error)

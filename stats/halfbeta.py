"""Beta integrals over the whole range and up to 1/2, in logarithms, at any number of items.

They are the two-sided and the losing directional evidence of a Beta mixture, and the tails of a fair binomial. All
carry the factor 2^(p + q), which keeps them near 1 where the evidence is.
"""

import numpy as np

from stats.checks import FloatArray
from stats.mills import LEAST, half_sech
from stats.slabs import by_slab
from stats.special import betainc, gammaln

_DEPTH = 36.0  # nats: exp(-36) = 2e-16


def log_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Logarithm of 2^(p + q) B(p, q), elementwise, for p, q > 0 of one shape.

    The difference of log-gammas loses seven digits at 1e7 items; the same value as a Kullback-Leibler divergence plus
    Stirling corrections keeps them, and costs no more.
    """
    return by_slab(_log_beta, p, q)


def log_half_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Logarithm of 2^(p + q) times the integral of t^(p-1) (1-t)^(q-1) over (0, 1/2), elementwise, for p >= q > 0.

    With t = (1 - tanh u) / 2 it is 2 times the integral of exp(-(p-q) u) sech(u)^(p+q) over u > 0, which `stats.mills` looks up to 13
    digits, however small the result: it neither cancels nor underflows.
    """
    return by_slab(_log_half, p, q)


def log_upper_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Logarithm of 2^(p + q) times the integral of t^(p-1) (1-t)^(q-1) over (1/2, 1), elementwise, for any p, q > 0.

    Computes no more than it needs: ahead of 1/2 the whole, less the other half where that can be seen in it; behind,
    the half alone.
    """
    return by_slab(_log_upper, p, q)


def log_less(log_whole: FloatArray, log_part: FloatArray) -> FloatArray:
    """ln(whole - part) from the logarithms of a whole and of a part that is at most about half of it."""
    return log_whole + np.log1p(-np.exp(np.minimum(log_part - log_whole, 0)))


def half_beta_tail(p: FloatArray, q: FloatArray) -> FloatArray:
    """Regularised incomplete beta function I_1/2(p, q), elementwise, for p >= q > 0 of one shape.

    For whole numbers it is P(X <= q - 1), X ~ Binomial(p + q - 1, 1/2). Relative error below 1e-12 up to 1e7 items.
    """

    def tail(x: FloatArray, y: FloatArray) -> FloatArray:
        return np.exp(_log_half(x, y) - _log_beta(x, y))

    return by_slab(tail, p, q)


def _log_half(p: FloatArray, q: FloatArray) -> FloatArray:
    few = p + q < LEAST
    if not few.any():
        return _many(p, q)
    out = np.empty(p.shape)
    out[~few] = _many(p[~few], q[~few])
    x, y = p[few], q[few]
    out[few] = np.log(betainc(x, y, 0.5)) + _log_beta(x, y)
    return out


def _many(p: FloatArray, q: FloatArray) -> FloatArray:
    return np.asarray(np.log(2 * half_sech(p - q, p + q)))


def _log_upper(p: FloatArray, q: FloatArray) -> FloatArray:
    out = np.empty(p.shape)
    ahead = p >= q
    behind = ~ahead
    out[behind] = _log_half(q[behind], p[behind])
    p, q = p[ahead], q[ahead]
    whole = _log_beta(p, q)
    near = (p - q) ** 2 <= 2 * _DEPTH * (p + q)  # Chernoff: the other half is at most exp(-z^2/2) of the whole
    whole[near] = log_less(whole[near], _log_half(p[near], q[near]))
    out[ahead] = whole
    return out


def _log_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    s = p + q
    d = (p - q) / s
    value = p * np.log1p(d) + q * np.log1p(-d)
    value += 0.5 * np.log(2 * np.pi * s / (p * q))
    value += _stirling_error(p) + _stirling_error(q) - _stirling_error(s)
    return np.asarray(value)


def _stirling_error(x: FloatArray) -> FloatArray:
    """Error of Stirling's formula: ln Gamma(x) - [(x - 1/2) ln x - x + ln(2 pi) / 2], for x > 0."""
    y = 1 / x
    y2 = y * y
    error = y * (1 / 12 - y2 * (1 / 360 - y2 * (1 / 1260 - y2 * (1 / 1680 - y2 / 1188))))
    small = x < 10
    if small.any():
        s = x[small]
        error[small] = gammaln(s) - ((s - 0.5) * np.log(s) - s + 0.5 * np.log(2 * np.pi))
    return np.asarray(error)

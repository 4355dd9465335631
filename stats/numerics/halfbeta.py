"""Beta integrals over the whole range and up to 1/2, in logarithms, at any number of items.

They are the two-sided and the losing directional evidence of a Beta mixture, and the tails of a fair binomial. All
carry the factor 2^(p + q), which keeps them near 1 where the evidence is.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, by_slab
from stats.numerics.special import betainc, gammaln

# Mills' ratio of a fair binomial: the integral of exp(-a t) sech(t)^M over t > 0, from a table.
#
# With t = u / sqrt(M) and x = a / sqrt(M), sqrt(M) times the integral is
#
#     sum over k of F_k(x) / M^k,    F_k(x) = integral of P_k(u^2) exp(-x u - u^2 / 2) over u > 0,
#
# where the sum over k of P_k(u^2) / M^k is exp(u^2 / 2) sech(u / sqrt(M))^M. F_0 is Mills' ratio of the normal distribution, P_1
# = u^4 / 12. The error has the size of the first omitted term, for every x: the integrand is largest at the end u = 0, not at a point
# that moves with x. From M = 100 on six terms give 13 digits; and each is a function of x alone, kept as polynomials on intervals.

LEAST = 100  # the M from which on six terms suffice
_LOG_SECH = (1 / 12, -1 / 45, 17 / 2520, -31 / 14175, 691 / 935550)  # ln sech t = -t^2 / 2 + t^4 / 12 - ...
_DEGREES = (3, 3, 2, 1, 1, 0)  # of the polynomials for F_0, ..., F_5: what is divided by M^k needs fewer digits
_INTERVALS = 1024  # of y = 2 / (2 + x), equally long; one more begins at x = 0
_SCALE = 2.0
_DEPTH = 42.0  # nats after which an integrand counts for nothing: exp(-42) = 6e-19


def half_sech(a: FloatArray, m: FloatArray) -> FloatArray:
    """Return the integral of exp(-a t) sech(t)^m over t > 0, elementwise, for 0 <= a <= m and m >= 100: relative error below 1e-13."""
    width = 1 / np.sqrt(m)
    y = a * width
    y += _SCALE
    np.divide(_SCALE, y, out=y)
    place = y * _INTERVALS
    interval = place.astype(np.intp)
    place -= interval
    place -= 0.5
    step = width * width
    total, value, coefficient = np.zeros(m.shape), np.empty(m.shape), np.empty(m.shape)
    for highest, *others in _table():
        highest.take(interval, out=value, mode="clip")  # "clip" checks least: nothing lies outside
        for column in others:
            value *= place
            value += column.take(interval, out=coefficient, mode="clip")
        total *= step
        total += value
    total *= y
    total *= width
    return total


@cache
def _table() -> tuple[npt.NDArray[np.float64], ...]:
    """Return the coefficients of F_k(x) / y about the middle of every interval of y, highest power first; F_5 first, F_0 last."""
    nodes = np.cos(np.pi * (np.arange(4) + 0.5) / 4) / 2
    y = (np.arange(_INTERVALS + 1)[:, None] + 0.5 + nodes) / _INTERVALS
    values = (_terms(_SCALE / y.ravel() - _SCALE) / y.reshape(-1, 1)).T.reshape(-1, *y.shape)
    fits = (np.linalg.pinv(np.vander(nodes, degree + 1)) for degree in _DEGREES)
    return tuple(fit @ term.T for fit, term in zip(fits, values, strict=True))[::-1]


def _terms(x: FloatArray) -> FloatArray:
    """Return F_0, ..., F_5 at every x, shape (x, 6), by Gauss-Legendre quadrature up to where the integrand is negligible."""
    nodes, weights = np.polynomial.legendre.leggauss(26)
    nodes, weights = (nodes + 1) / 2, weights / 2
    reach = 2 * _DEPTH / (x + np.sqrt(x**2 + 2 * _DEPTH))[:, None]
    powers = 2 * np.arange(2 * len(_LOG_SECH) + 1)
    u = reach * nodes
    moments = np.exp(-u * (x[:, None] + u / 2)) @ (weights[:, None] * nodes[:, None] ** powers)
    return np.asarray((moments * reach ** (powers + 1)) @ _polynomials().T)


def _polynomials() -> FloatArray:
    """Return the coefficients of P_0, ..., P_5 by powers of u^2: the exponential of a power series in 1 / M."""
    size = len(_LOG_SECH) + 1
    coefficients = np.zeros((size, 2 * size - 1))
    coefficients[0, 0] = 1
    for k in range(1, size):
        for j, coefficient in enumerate(_LOG_SECH[:k], start=1):
            coefficients[k, j + 1 :] += j / k * coefficient * coefficients[k - j, : -j - 1]
    return coefficients


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

    With t = (1 - tanh u) / 2 it is 2 times the integral of exp(-(p-q) u) sech(u)^(p+q) over u > 0, which `stats.numerics.halfbeta` looks up
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

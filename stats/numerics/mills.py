"""Mills' ratio of a fair binomial: the integral of exp(-a t) sech(t)^M over t > 0, from a table.

With t = u / sqrt(M) and x = a / sqrt(M), sqrt(M) times the integral is

    sum over k of F_k(x) / M^k,    F_k(x) = integral of P_k(u^2) exp(-x u - u^2 / 2) over u > 0,

where the sum over k of P_k(u^2) / M^k is exp(u^2 / 2) sech(u / sqrt(M))^M. F_0 is Mills' ratio of the normal distribution, P_1 = u^4 / 12.
The error has the size of the first omitted term, for every x: the integrand is largest at the end u = 0, not at a point
that moves with x. From M = 100 on six terms give 13 digits; and each is a function of x alone, kept as polynomials on intervals.
"""

from functools import cache

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray

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

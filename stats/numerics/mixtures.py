"""Mixtures over the probability theta that a discordant item goes to model A; under the null theta = 1/2.

Accepted names: ``beta(a,b)`` (a Beta prior; ``beta(1,1)`` is the default), ``grid98`` (the paper's: equal weights on
.01, ..., .49, .51, ..., .99) and ``two_point(p,q)`` (equal weights on p < 1/2 < q).

``beta(a,a)``, for any a > 0, bets on smaller gaps the larger a is. For 1,680 wins and 1,454 losses ln e is 4.35, 4.75, 5.56, 6.26 with
a = 1, 2, 10, 100; for 352 and 242 it is 7.26, 7.63, 8.20, 6.96.
"""

import re
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, by_slab
from stats.numerics.special import betainc, betaln, gammaln

# Beta integrals over the whole range and up to 1/2, in logarithms, at any number of items.
#
# They are the two-sided and the losing directional evidence of a Beta mixture, and the tails of a fair binomial. All
# carry the factor 2^(p + q), which keeps them near 1 where the evidence is.

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
_STIRLING = 32  # from where on three terms of Stirling's series give 14 digits


def log_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the logarithm of 2^(p + q) B(p, q), elementwise, for p, q > 0 of one shape.

    The difference of log-gammas loses seven digits at 1e7 items; the same value as a Kullback-Leibler divergence plus
    Stirling corrections keeps them, and costs no more.
    """
    return by_slab(_log_beta, p, q)


def log_half_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the logarithm of 2^(p + q) times the integral of t^(p-1) (1-t)^(q-1) over (0, 1/2), elementwise, for p >= q > 0.

    With t = (1 - tanh u) / 2 it is 2 times the integral of exp(-(p-q) u) sech(u)^(p+q) over u > 0, which `stats.numerics.mixtures` looks up
    to 13 digits, however small the result: it neither cancels nor underflows.
    """
    return by_slab(_log_half, p, q)


def log_half_and_whole(p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return `log_half_beta` and `log_beta` of vectors p >= q > 0, faster than in separate calls."""
    whole = _log_beta(p, q)
    return _log_half(p, q, whole), whole


def log_upper_beta(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return the logarithm of 2^(p + q) times the integral of t^(p-1) (1-t)^(q-1) over (1/2, 1), elementwise, for p, q > 0.

    For p < q it is the half of `log_half_beta`; otherwise the whole less the other half.
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
    small = np.flatnonzero(np.minimum(p, q) < _STIRLING)
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


_FORM = re.compile(r"(beta|two_point)\(([^,()]+),([^,()]+)\)")
_LARGE = 32  # from here on the difference of log-gammas loses digits
_ACCEPTED = "use 'beta(a,b)' with a, b > 0, 'grid98', 'two_point(p,q)' with 0 < p < 1/2 < q < 1"


@dataclass(frozen=True)
class Mixture:
    """A prior over theta: a Beta density, or equal weights on ``atoms``.

    Attributes
    ----------
    name : str
        Canonical name, which `parse_mixture` parses back.
    beta : tuple of float, or None
        The two parameters of the Beta density.
    atoms : tuple of float
        Support of a discrete mixture, in (0, 1) without 1/2; empty for a Beta density.
    """

    name: str
    beta: tuple[float, float] | None = None
    atoms: tuple[float, ...] = ()

    @property
    def weight_a(self) -> float:
        """Return the prior probability of theta > 1/2; 1/2 for every symmetric mixture."""
        if self.beta is None:
            return float(np.mean([theta > 0.5 for theta in self.atoms]))
        a, b = self.beta
        return 0.5 if a == b else float(betainc(b, a, 0.5))

    @property
    def symmetric(self) -> bool:
        """Whether theta and 1 - theta weigh the same, so that the evidence is for the model with more wins."""
        if self.beta is not None:
            return self.beta[0] == self.beta[1]
        return bool(np.allclose(np.sort(self.atoms), np.sort(1 - np.array(self.atoms)), rtol=0, atol=1e-12))

    @property
    def log_norm(self) -> float:
        """Return the logarithm of the Beta function of the prior's parameters."""
        if self.beta is None:
            raise ValueError(f"{self.name} has no Beta density")
        return float(betaln(*self.beta))

    @property
    def log_scaled_norm(self) -> float:
        """Return ln of 2^(a + b) B(a, b), which stays near 1 where B underflows: to 12 digits for parameters up to 1e8."""
        if self.beta is None:
            raise ValueError(f"{self.name} has no Beta density")
        a, b = self.beta
        if min(a, b) < _LARGE:
            return (a + b) * float(np.log(2)) + self.log_norm
        return float(log_beta(np.array([a]), np.array([b]))[0])

    @property
    def theta(self) -> FloatArray:
        """Return the atoms as an array."""
        return np.array(self.atoms)

    @property
    def above(self) -> FloatArray:
        """Return the atoms above 1/2: evidence that A is better."""
        return self.theta[self.theta > 0.5]

    @property
    def below(self) -> FloatArray:
        """Return the atoms below 1/2: evidence that B is better."""
        return self.theta[self.theta < 0.5]


def parse_mixture(name: str | Mixture) -> Mixture:
    """Parse the name of a mixture; a `Mixture` passes through.

    Examples
    --------
    >>> parse_mixture("beta(1, 1)").name
    'beta(1,1)'
    >>> len(parse_mixture("grid98").atoms)
    98
    """
    return name if isinstance(name, Mixture) else _parse(name)


@lru_cache(maxsize=64)
def _parse(name: str) -> Mixture:
    text = name.replace(" ", "").lower()
    if text == "grid98":
        return Mixture("grid98", atoms=tuple(k / 100 for k in range(1, 100) if k != 50))
    match = _FORM.fullmatch(text)
    try:
        kind, first, second = match.groups() if match else ("", "nan", "nan")
        low, high = float(first), float(second)
    except ValueError:
        low = high = float("nan")
    if kind == "beta" and 0 < low < float("inf") and 0 < high < float("inf"):
        return Mixture(f"beta({low:.12g},{high:.12g})", beta=(low, high))
    if kind == "two_point" and 0 < low < 0.5 < high < 1:
        return Mixture(f"two_point({low:.12g},{high:.12g})", atoms=(low, high))
    raise ValueError(f"mixture {name!r} is unknown; {_ACCEPTED}")

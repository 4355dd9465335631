"""Mixture e-processes for a pair: evidence that stays valid however often one looks.

With b items won by A, c won by B and ties contributing nothing,

    e(b, c) = integral of (2 theta)^b (2 (1 - theta))^c over the mixture,

a test martingale whenever each discordant item is a fair coin given the past, so that P(sup e >= 1/alpha) <= alpha
(Ville). The part of the mixture above 1/2 alone, renormalised, is ``e+`` (evidence that A is better), the part below is
``e-``; a symmetric mixture gives ``e = (e+ + e-) / 2``. Everything is computed in logarithms.

Values depend on a pair's own counts alone, never on which other pairs share the call: a threshold crossed in a batch
is crossed in the stream.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, gammaln, ndtri

from stats.checks import FloatArray, level, non_negative
from stats.mixtures import Mixture, parse_mixture
from stats.resolution import required_n, z_sum
from stats.rootfind import bracketed_root

_SLAB = 8192  # pairs at a time: 98 atoms x 8192 pairs of float64 are 6 MB, which stays in cache
_LOG2 = float(np.log(2))
_DEEP = 1e-290  # below this a regularised incomplete beta function is about to underflow


def log_e_value(b: npt.ArrayLike, c: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)") -> FloatArray:
    """Logarithm of the two-sided mixture e-value.

    Parameters
    ----------
    b, c : array_like
        Discordant counts, non-negative; integers or real numbers.
    mixture : str or Mixture
        See `stats.mixtures`.

    Returns
    -------
    ndarray
        ln e, in nats, of the broadcast shape of ``b`` and ``c``.

    Notes
    -----
    Paper, eq. eprocess. For ``beta(1,1)``: ln B(1 + b, 1 + c) + (b + c) ln 2.

    Examples
    --------
    >>> round(float(log_e_value(1680, 1454)), 10)
    4.3536820118
    >>> round(float(log_e_value(1680, 1454, "grid98")), 10)
    4.3737559114

    """
    wins, losses = np.broadcast_arrays(*non_negative(b=b, c=c))
    prior = parse_mixture(mixture)
    if prior.beta is not None:
        return _log_beta_total(wins, losses, prior)
    return _by_slab(lambda w, x: _log_mean_exp(w, x, prior.theta), wins, losses)


def log_e_halves(
    b: npt.ArrayLike, c: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)"
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of the directional e-values ``(e+, e-)``: A is better, B is better.

    Each is an e-process for the one-sided null "the running mean gap is <= 0 (>= 0) at every time". Symmetric
    mixtures satisfy e = (e+ + e-) / 2; others weigh the halves by their prior masses, ``Mixture.weight_a``.

    The losing half of a Beta mixture is its total times a regularised incomplete beta function, itself accurate
    to machine precision; where that underflows, its continued fraction gives the half directly. Nothing cancels.

    Examples
    --------
    >>> plus, minus = log_e_halves(10, 2)
    >>> round(float(np.log((np.exp(plus) + np.exp(minus)) / 2)), 10)
    1.5631620672

    """
    wins, losses = np.broadcast_arrays(*non_negative(b=b, c=c))
    prior = parse_mixture(mixture)
    if prior.beta is not None:
        return _log_beta_halves(wins, losses, prior)
    above, below = prior.theta[prior.theta > 0.5], prior.theta[prior.theta < 0.5]
    return (
        _by_slab(lambda w, x: _log_mean_exp(w, x, above), wins, losses),
        _by_slab(lambda w, x: _log_mean_exp(w, x, below), wins, losses),
    )


def log_completion_bound(
    b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)"
) -> tuple[FloatArray, FloatArray]:
    """Lower bounds ``(for_a, for_b)`` on the final ln e, every missing item counted against the model in question.

    ``for_a = ln e+(b, c + missing) - ln 2`` (the prior mass of theta > 1/2 takes the place of 1/2 for an asymmetric
    mixture). As e+ grows with b and shrinks with c, the final e of the completed benchmark is at least this,
    whatever order the rest arrives in: once it reaches 1/alpha the verdict cannot be undone.
    """
    wins, losses, rest = non_negative(b=b, c=c, missing=missing)
    prior = parse_mixture(mixture)
    for_a, _ = log_e_halves(wins, losses + rest, prior)
    _, for_b = log_e_halves(wins + rest, losses, prior)
    return for_a + np.log(prior.weight_a), for_b + np.log1p(-prior.weight_a)


def boundary_u(m: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, mixture: str | Mixture = "beta(1,1)") -> FloatArray:
    """Standardised boundary u(m) = d / sqrt(m): at m discordant items, e reaches 1/alpha when b - c = d.

    ``d`` is the real root of e((m + d)/2, (m - d)/2) = 1/alpha. Infinite where even d = m does not reach it.

    Examples
    --------
    >>> round(float(boundary_u(3134, 0.05, "grid98")), 3)
    3.68

    """
    (total,), (a,) = non_negative(m=m), level(alpha=alpha)
    # Counts repeat a lot among pairs: solve each distinct (m, alpha) once.
    cases, index = np.unique(total + 1j * a, return_inverse=True)
    distinct, threshold = cases.real, -np.log(cases.imag)
    prior = parse_mixture(mixture)

    def excess(square: FloatArray) -> FloatArray:  # ln e is nearly linear in d^2, which the search likes
        d = np.minimum(np.sqrt(square), distinct)
        return np.asarray(log_e_value((distinct + d) / 2, (distinct - d) / 2, prior) - threshold)

    largest = distinct**2
    near = np.minimum(largest, distinct * (2 * threshold + np.log1p(distinct) + 2))
    high = np.where(excess(near) >= 0, near, largest)
    root = bracketed_root(excess, np.zeros_like(high), high, tolerance=1e-12)
    u = np.sqrt(root / np.maximum(distinct, 1e-300))
    return np.asarray(np.where(excess(largest) >= 0, u, np.inf)[index])


def anytime_inflation(
    m: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8, mixture: str | Mixture = "beta(1,1)"
) -> FloatArray:
    """Factor by which watching continuously multiplies N*: (u(m) + z_power)^2 / (z_{1-alpha/2} + z_power)^2.

    Examples
    --------
    >>> round(float(anytime_inflation(3134, 0.05, 0.8, "grid98")), 3)
    2.605

    """
    u = boundary_u(m, alpha, mixture)
    (target,) = level(power=power)
    return np.asarray((u + ndtri(target)) ** 2 / z_sum(alpha, power) ** 2)


def anytime_required_n(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
    power: npt.ArrayLike = 0.8,
    mixture: str | Mixture = "beta(1,1)",
) -> FloatArray:
    """Items needed to detect the observed gap under continuous monitoring: N* times `anytime_inflation`.

    Infinite where ``b = c`` or where ``b + c`` discordant items cannot reach 1/alpha at all.
    """
    wins, losses = non_negative(b=b, c=c)
    fixed = required_n(n, wins, losses, alpha, power)
    # N* is 0 when every item is discordant in one direction: 0 x inf is still "cannot be reached".
    factor = anytime_inflation(wins + losses, alpha, power, mixture)
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(factor), np.inf, fixed * factor)


def _by_slab(
    function: Callable[[FloatArray, FloatArray], FloatArray], wins: FloatArray, losses: FloatArray
) -> FloatArray:
    """Apply ``function`` to slabs of the flattened counts, so that a grid never multiplies the memory."""
    flat_wins, flat_losses = wins.ravel(), losses.ravel()
    out = np.empty(flat_wins.shape)
    for start in range(0, out.size, _SLAB):
        slab = slice(start, start + _SLAB)
        out[slab] = function(flat_wins[slab], flat_losses[slab])
    return out.reshape(wins.shape)


def _log_mean_exp(wins: FloatArray, losses: FloatArray, theta: FloatArray) -> FloatArray:
    """Logarithm of the mean over atoms of (2 theta)^b (2 (1 - theta))^c, for one slab."""
    terms = np.multiply.outer(wins, np.log(2 * theta))
    terms += np.multiply.outer(losses, np.log(2 * (1 - theta)))
    peak = terms.max(axis=1)
    terms -= peak[:, None]
    np.exp(terms, out=terms)
    return np.asarray(peak + np.log(terms.sum(axis=1) / theta.size))


def _stirling_error(x: FloatArray) -> FloatArray:
    """Error of Stirling's formula: ln Gamma(x) - [(x - 1/2) ln x - x + ln(2 pi) / 2], for x > 0."""
    y = 1 / x
    y2 = y * y
    error = y * (1 / 12 - y2 * (1 / 360 - y2 * (1 / 1260 - y2 * (1 / 1680 - y2 / 1188))))
    small = x < 10
    if small.any():
        s = x[small]
        error[small] = gammaln(s) - ((s - 0.5) * np.log(s) - s + 0.5 * np.log(2 * np.pi))
    return error


def _log_beta_total(wins: FloatArray, losses: FloatArray, prior: Mixture) -> FloatArray:
    """Two-sided ln B(a + b, b' + c) - ln B(a, b') + (b + c) ln 2.

    The difference of log-gammas loses seven digits at 1e7 items; the same value as a Kullback-Leibler divergence plus
    Stirling corrections keeps them, and costs no more.
    """
    return _by_slab(lambda w, x: _log_beta_slab(w, x, prior), wins, losses)


def _log_beta_slab(wins: FloatArray, losses: FloatArray, prior: Mixture) -> FloatArray:
    a, b = _beta_parameters(prior)
    p, q = wins + a, losses + b
    s = p + q
    d = (p - q) / s
    value = p * np.log1p(d) + q * np.log1p(-d)
    value += 0.5 * np.log(2 * np.pi * s / (p * q))
    value += _stirling_error(p) + _stirling_error(q) - _stirling_error(s)
    return np.asarray(value - ((a + b) * _LOG2 + prior.log_norm))


def _beta_parameters(prior: Mixture) -> tuple[float, float]:
    if prior.beta is None:
        raise ValueError(f"{prior.name} has no Beta density")
    return prior.beta


def _log_beta_halves(wins: FloatArray, losses: FloatArray, prior: Mixture) -> tuple[FloatArray, FloatArray]:
    a, b = _beta_parameters(prior)
    p, q = np.asarray(wins + a), np.asarray(losses + b)
    total = _log_beta_total(wins, losses, prior)
    leader, trailer = np.maximum(p, q), np.minimum(p, q)
    tail = np.asarray(betainc(leader, trailer, 0.5))  # posterior mass on the trailing side of 1/2
    deep = tail < _DEEP
    losing = np.asarray(total + np.log(np.maximum(tail, _DEEP)))
    if deep.any():
        fraction = _beta_fraction(leader[deep], trailer[deep])
        losing[deep] = np.log(fraction / leader[deep]) - (a + b) * _LOG2 - prior.log_norm
    winning = total + np.log1p(-tail)
    weight = prior.weight_a
    plus = np.where(p >= q, winning, losing) - np.log(weight)
    minus = np.where(p >= q, losing, winning) - np.log1p(-weight)
    return plus, minus


def _beta_fraction(p: FloatArray, q: FloatArray) -> FloatArray:
    """Continued fraction F with B(1/2; p, q) = 2^-(p+q) F / p, by the modified Lentz method (DLMF 8.17.22).

    Called far in the tail (p well above q), where a few dozen terms suffice.
    """
    x, tiny = 0.5, 1e-300
    d = 1 / (1 - (p + q) * x / (p + 1))
    c = np.ones_like(p)
    value = d.copy()
    for k in range(1, 10_000):
        for term in (
            k * (q - k) * x / ((p + 2 * k - 1) * (p + 2 * k)),
            -(p + k) * (p + q + k) * x / ((p + 2 * k) * (p + 2 * k + 1)),
        ):
            d = 1 + term * d
            c = 1 + term / c
            d = 1 / np.where(np.abs(d) < tiny, tiny, d)
            c = np.where(np.abs(c) < tiny, tiny, c)
            value *= d * c
        if (np.abs(d * c - 1) < 1e-15).all():
            break
    return value

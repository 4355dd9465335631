"""Anytime-valid interval for the gap of a pair scored 0/1, by inverting the mixture e-process.

For a hypothesised gap g the fair bets on D - g have lambda in (-1/(1-g), 1/(1+g)). Mapping the mixture's theta linearly
onto that range, lambda = -1/(1-g) + 2 theta/(1-g^2), gives

    e_g = integral of (2 theta/(1+g))^b (2(1-theta)/(1-g))^c ((1 + g(1 - 2 theta))/(1-g^2))^(n-b-c),

a test martingale when the gap is g, and exactly `stats.log_e_value` at g = 0. The interval {g: e_g < 1/alpha} covers
the gap at every n at once with probability at least 1 - alpha.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stats.evidence.eprocess import log_e_value
from stats.numerics.checks import FloatArray, IntArray, aligned, level, paired_counts
from stats.numerics.mixtures import Mixture, parse_mixture
from stats.numerics.rootfind import bracketed_root

_STEP = 1 / 6
_NODES = _STEP * np.arange(-29, 30)
_STRETCH = np.sinh(_NODES)[:, None]
_LOG_WEIGHTS = np.log(_STEP * np.cosh(_NODES))[:, None]
_EDGE = 1 - 1e-12
_SLAB = 256  # pairs at a time: the nodes of both their bounds are 240 KB of float64
_NOTHING = -600.0  # next to a term of 1; a lower exponent would underflow, which takes ten times as long


def gap_interval(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
    mixture: str | Mixture = "beta(1,1)",
) -> tuple[FloatArray, FloatArray]:
    """Return the confidence sequence for the gap: {g: e_g < 1/alpha}.

    It excludes 0 (low > 0 or high < 0) exactly when ``log_e_value(b, c) >= ln(1/alpha)``: an interval never contradicts
    its verdict.

    Parameters
    ----------
    n, b, c : array_like
        Shared items and discordant counts; any shape broadcastable with ``alpha``.
    alpha : array_like
        1 - coverage, uniformly over time.

    Returns
    -------
    low, high : ndarray
        Bounds in [-1, 1], in score units; (-1, 1) where n = 0.

    Examples
    --------
    >>> low, high = gap_interval(12032, 1680, 1454)
    >>> round(float(low), 6), round(float(high), 6)
    (0.001637, 0.035946)
    """
    aligned(n=n, b=b, c=c, alpha=alpha)
    items, wins, losses = paired_counts(n, b, c)
    (a,) = level(alpha=alpha)
    items, wins, losses, a = np.broadcast_arrays(items, wins, losses, a)
    shape = items.shape
    items, wins, losses = (x.ravel() for x in (items, wins, losses))
    threshold = -np.log(a.ravel())
    prior = parse_mixture(mixture)
    chosen, place = _distinct(items, wins, losses, threshold)  # after few items many pairs have the same counts
    low, high = np.empty((2, chosen.size))
    for start in range(0, chosen.size, _SLAB):
        at = chosen[start : start + _SLAB]
        part = slice(start, start + _SLAB)
        low[part], high[part] = _bounds(items[at], wins[at], losses[at], threshold[at], prior)
    low, high = low[place], high[place]
    decided = log_e_value(wins, losses, prior) >= threshold
    above, below = decided & (wins > losses), decided & (wins < losses)
    nothing = float(np.finfo(np.float64).tiny)  # the verdict is read off the e-value; rounding must not undo it
    low = np.where(above, np.maximum(low, nothing), np.minimum(low, np.where(below, high, 0.0)))
    high = np.where(below, np.minimum(high, -nothing), np.maximum(high, np.where(above, low, 0.0)))
    return low.reshape(shape), high.reshape(shape)


def _distinct(*columns: FloatArray) -> tuple[IntArray, IntArray]:
    """Return a place of each distinct row of some columns, and the distinct row of each row."""
    order = np.lexsort(columns)
    begins = np.ones(order.size, bool)
    begins[1:] = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
    place = np.empty(order.size, np.int64)
    place[order] = np.cumsum(begins) - 1
    return order[begins], place


def _bounds(
    items: FloatArray, wins: FloatArray, losses: FloatArray, threshold: FloatArray, prior: Mixture
) -> tuple[FloatArray, FloatArray]:
    """Return where e_g reaches the threshold on each side of the observed gap, at which e_g <= 1 by Jensen's inequality.

    Both sides are searched at once: of a hundred pairs most of the time goes into calls.
    """
    side = np.repeat([-1.0, 1.0], items.size)
    items, wins, losses, threshold = (np.tile(column, 2) for column in (items, wins, losses, threshold))
    log_e = _process(items, wins, losses, prior)
    seen = np.maximum(items, 1)
    gap = np.clip((wins - losses) / seen, -_EDGE, _EDGE)
    least = log_e(gap)
    climb = np.sqrt(threshold - least)

    def excess(z: FloatArray) -> FloatArray:
        # ln e_g is nearly a parabola with its least value at the gap; of a nearly straight line the root is found in few steps. After a few
        # items it is one in artanh g: at +-1 it is infinite.
        return np.sqrt(np.maximum(log_e(np.tanh(z)) - least, 0)) - climb

    spread = np.sqrt(np.maximum((wins + losses) / seen - gap**2, 1 / seen) / seen)
    end = np.clip(gap + side * spread * np.sqrt(2 * threshold + np.log(seen) + 1), -_EDGE, _EDGE)
    beyond = excess(np.arctanh(end))
    while (short := (beyond < 0) & (np.abs(end) < _EDGE)).any():
        # Halve the remaining distance to the end of the range, so that a bound close to +-1 is still bracketed.
        end = np.where(short, np.clip(side - (side - end) / 4, -_EDGE, _EDGE), end)
        beyond = excess(np.arctanh(end))
    root = np.tanh(bracketed_root(excess, np.arctanh(gap), np.arctanh(end), tolerance=1e-10, ends=(-climb, beyond)))
    low, high = np.where(beyond < 0, side, root).reshape(2, -1)
    return low, high


def _process(
    items: FloatArray, wins: FloatArray, losses: FloatArray, prior: Mixture
) -> Callable[[FloatArray], FloatArray]:
    """Return ln e_g of each pair as a function of its g."""
    ties = items - wins - losses
    theta = prior.theta[:, None]
    fixed = wins * np.log(theta) + losses * np.log1p(-theta)  # of an atom; what does not depend on g is computed once
    slope = 1 - 2 * theta

    def log_e(g: FloatArray) -> FloatArray:
        constant = (wins + losses) * np.log(2) - (wins + ties) * np.log1p(g) - (losses + ties) * np.log1p(-g)
        if prior.beta is not None:
            integral = _log_beta_integral(wins + prior.beta[0], losses + prior.beta[1], ties, g)
            return np.asarray(constant + integral - prior.log_norm)
        terms = np.log1p(slope * g)
        terms *= ties
        terms += fixed
        peak = terms.max(axis=0)
        terms -= peak
        return np.asarray(constant + peak + np.log(np.exp(terms, out=terms).mean(axis=0)))

    return log_e


def _log_beta_integral(p: FloatArray, q: FloatArray, ties: FloatArray, g: FloatArray) -> FloatArray:
    """Return the logarithm of the integral of t^(p-1) (1-t)^(q-1) (1 + g(1-2t))^ties over (0, 1).

    In x = logit t the integrand is unimodal (the stationary condition is a quadratic with one root in (0, 1)) with
    exponential tails; the trapezoidal rule after x = mode + sd sinh(u) converges geometrically.
    """
    # (p - (p+q) t)(1+g-2gt) - 2 g ties t (1-t) = 0, written as quad t^2 + lin t + const
    total = p + q + ties
    quad, lin, const = 2 * g * total, -(2 * g * p + (p + q) * (1 + g) + 2 * g * ties), p * (1 + g)
    mode = 2 * const / (-lin + np.sqrt(np.maximum(lin**2 - 4 * quad * const, 0)))
    slope = 1 + g - 2 * g * mode
    variance = mode * (1 - mode)
    curvature = variance * ((p + q) + 2 * g * ties * ((1 - 2 * mode) / slope + 2 * g * variance / slope**2))
    sd = 1 / np.sqrt(curvature)
    terms = sd * _STRETCH
    terms += np.log(mode / (1 - mode))  # x
    odds = np.exp(terms)
    terms *= p
    terms += _LOG_WEIGHTS
    part = np.log1p(odds)
    part *= total
    terms -= part
    odds *= 1 - g
    odds += 1 + g
    np.log(odds, out=odds)
    odds *= ties
    terms += odds
    peak = terms.max(axis=0)
    terms -= peak
    np.maximum(terms, _NOTHING, out=terms)
    return np.asarray(peak + np.log(sd * np.exp(terms, out=terms).sum(axis=0)))

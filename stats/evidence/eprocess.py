"""Mixture e-processes for a pair: evidence that is valid at every look.

With b items won by A, c won by B and ties contributing nothing,

    e(b, c) = integral of (2 theta)^b (2 (1 - theta))^c over the mixture,

a test martingale whenever each discordant item is a fair coin given the past, so that P(sup e >= 1/alpha) <= alpha
(Ville). The part of the mixture above 1/2 alone, renormalised, is ``e+`` (evidence that A is better), the part below is
``e-``; a symmetric mixture gives ``e = (e+ + e-) / 2``. Everything is computed in logarithms.

Values depend only on the counts of the pair, never on the other pairs of the call: a threshold crossed in a batch
is crossed in the stream.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from stats.fixed_n.resolution import required_n, z_sum
from stats.numerics.checks import FloatArray, aligned, by_distinct, by_slab, level, non_negative, slabbed
from stats.numerics.mixtures import Mixture, log_beta, log_half_and_whole, log_less, log_upper_beta, parse_mixture
from stats.numerics.rootfind import bracketed_root
from stats.numerics.special import ndtri

_SLAB = 1024  # pairs at a time: 98 atoms x 1024 pairs of float64 are 0.8 MB, which stays in cache
_KEPT = 1 << 16  # discordant items up to which boundaries are kept
_NOTHING = -600.0  # next to a term of 1; a lower exponent would underflow, which takes ten times as long


@slabbed
def log_e_value(b: npt.ArrayLike, c: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)") -> FloatArray:
    """Return the logarithm of the two-sided mixture e-value.

    Parameters
    ----------
    b, c : array_like
        Discordant counts, non-negative; integers or real numbers.

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
    return log_e_of_counts(wins, losses, parse_mixture(mixture))


def log_e_of_counts(wins: FloatArray, losses: FloatArray, prior: Mixture) -> FloatArray:
    """Return `log_e_value` of checked arrays of one shape."""
    if prior.beta is not None:
        a, b, norm = _prior(prior)
        value = log_beta(wins + a, losses + b)
        value -= norm
        return value
    return _mean_over(prior.theta, wins, losses)


@slabbed
def log_e_halves(
    b: npt.ArrayLike, c: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)"
) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the directional e-values ``(e+, e-)``: A is better, B is better.

    Each is an e-process for the one-sided null "the running mean gap is <= 0 (>= 0) at every time". Symmetric
    mixtures satisfy e = (e+ + e-) / 2; others weigh the halves by their prior masses, ``Mixture.weight_a``.

    The losing half of a Beta mixture is an integral of its own (`stats.numerics.mixtures`), so nothing cancels for any
    deficit.

    Examples
    --------
    >>> plus, minus = log_e_halves(10, 2)
    >>> round(float(np.log((np.exp(plus) + np.exp(minus)) / 2)), 10)
    1.5631620672
    """
    wins, losses = np.broadcast_arrays(*non_negative(b=b, c=c))
    prior = parse_mixture(mixture)
    if prior.beta is not None:
        return _beta_halves(wins, losses, prior)
    return _mean_over(prior.above, wins, losses), _mean_over(prior.below, wins, losses)


@slabbed
def log_completion_bound(
    b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)"
) -> tuple[FloatArray, FloatArray]:
    """Return lower bounds ``(for_a, for_b)`` on the final ln e, with every missing item counted against the model in question.

    ``for_a = ln e+(b, c + missing) - ln 2`` (the prior mass of theta > 1/2 takes the place of 1/2 for an asymmetric
    mixture). As e+ grows with b and shrinks with c, the final e of the completed benchmark is at least this,
    in any order of arrival: once it reaches 1/alpha the verdict cannot be undone.

    Examples
    --------
    >>> for_a, for_b = log_completion_bound(1680, 1454, [0, 18, 19])
    >>> (for_a >= np.log(20)).tolist()
    [True, True, False]
    """
    wins, losses, rest = np.broadcast_arrays(*non_negative(b=b, c=c, missing=missing))
    prior = parse_mixture(mixture)
    if prior.beta is not None:
        p, q, norm = _prior(prior)
        return log_upper_beta(wins + p, losses + rest + q) - norm, log_upper_beta(losses + q, wins + rest + p) - norm
    for_a, for_b = _mean_over(prior.above, wins, losses + rest), _mean_over(prior.below, wins + rest, losses)
    return for_a + np.log(prior.weight_a), for_b + np.log1p(-prior.weight_a)


@slabbed
def log_leader_bound(
    b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)"
) -> FloatArray:
    """Return the lower bound on the final ln e for the leader: the bound of `log_completion_bound` that can be above 0.

    It is ``for_a`` where b >= c and ``for_b`` elsewhere, for half the work. The other one is at most 0, as every
    theta on the losing side of 1/2 explains the counts less well than a fair coin.

    Examples
    --------
    >>> float(log_leader_bound(1454, 1680, 18)) == float(log_completion_bound(1454, 1680, 18)[1])
    True
    """
    wins, losses, rest = np.broadcast_arrays(*non_negative(b=b, c=c, missing=missing))
    prior = parse_mixture(mixture)
    for_a = wins >= losses
    lead, trail = np.maximum(wins, losses), np.minimum(wins, losses) + rest
    if prior.beta is not None:
        p, q, norm = _prior(prior)
        of_lead, of_trail = (p, q) if p == q else (np.where(for_a, p, q), np.where(for_a, q, p))
        return log_upper_beta(lead + of_lead, trail + of_trail) - norm
    bound = np.empty(lead.shape)
    bound[for_a] = _mean_over(prior.above, lead[for_a], trail[for_a]) + np.log(prior.weight_a)
    bound[~for_a] = _mean_over(prior.below, trail[~for_a], lead[~for_a]) + np.log1p(-prior.weight_a)
    return bound


def boundary_u(m: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, mixture: str | Mixture = "beta(1,1)") -> FloatArray:
    """Return the standardised boundary u(m) = d / sqrt(m): at m discordant items, e reaches 1/alpha when b - c = d.

    ``d`` is the real root of e((m + d)/2, (m - d)/2) = 1/alpha. Infinite where even d = m does not reach it.

    Examples
    --------
    >>> round(float(boundary_u(3134, 0.05, "grid98")), 3)
    3.68
    """
    aligned(m=m, alpha=alpha)
    (total,), (a,) = non_negative(m=m), level(alpha=alpha)
    prior = parse_mixture(mixture)
    if a.ndim == 0:
        return by_distinct(lambda x: _kept_boundary(x, float(a), prior), total)
    total, a = np.broadcast_arrays(total, a)
    return _boundary(total, -np.log(a), prior)


def _kept_boundary(m: FloatArray, alpha: float, prior: Mixture) -> FloatArray:
    """Return `_boundary` of distinct numbers; of whole ones it is searched once, for reports ask for the same counts again."""
    whole = m.astype(np.intp)
    if m.size == 0 or m.max() >= _KEPT or not np.array_equal(whole, m):
        return _boundary(m, np.full(m.shape, -np.log(alpha)), prior)
    kept = _boundaries(alpha, prior)
    u = kept[whole]
    new = np.isnan(u)
    if new.any():
        u[new] = kept[whole[new]] = _boundary(m[new], np.full(int(new.sum()), -np.log(alpha)), prior)
    return u


@lru_cache(maxsize=4)
def _boundaries(alpha: float, prior: Mixture) -> FloatArray:  # noqa: ARG001 - the key
    """Return the boundaries that were searched so far, by m; nan for others."""
    return np.full(_KEPT, np.nan)


def _boundary(m: FloatArray, threshold: FloatArray, prior: Mixture) -> FloatArray:
    def excess(square: FloatArray) -> FloatArray:  # ln e is nearly linear in d^2, which the search likes
        d = np.minimum(np.sqrt(square), m)
        return log_e_of_counts((m + d) / 2, (m - d) / 2, prior) - threshold

    largest = m**2
    near = np.minimum(largest, m * (2 * threshold + np.log1p(m) + 2))
    high = np.where(excess(near) >= 0, near, largest)
    root = bracketed_root(excess, np.zeros_like(high), high, tolerance=1e-12)
    u = np.sqrt(root / np.maximum(m, 1e-300))
    return np.where(excess(largest) >= 0, u, np.inf)


def anytime_inflation(
    m: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8, mixture: str | Mixture = "beta(1,1)"
) -> FloatArray:
    """Return the factor by which watching multiplies N*: (u(m) + z_power)^2 / (z_{1-alpha/2} + z_power)^2.

    Examples
    --------
    >>> round(float(anytime_inflation(3134, 0.05, 0.8, "grid98")), 3)
    2.605
    """
    aligned(m=m, alpha=alpha, power=power)
    (total,) = non_negative(m=m)
    if np.ndim(alpha) == np.ndim(power) == 0:
        return by_distinct(lambda x: _inflation(x, alpha, power, mixture), total)
    return _inflation(total, alpha, power, mixture)


def _inflation(m: FloatArray, alpha: npt.ArrayLike, power: npt.ArrayLike, mixture: str | Mixture) -> FloatArray:
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
    """Return the items needed to detect the observed gap under continuous monitoring: N* times `anytime_inflation`.

    Infinite where ``b = c`` or where ``b + c`` discordant items cannot reach 1/alpha at all.

    Examples
    --------
    >>> round(float(anytime_required_n(12032, 1680, 1454)))
    15112
    """
    aligned(n=n, b=b, c=c, alpha=alpha, power=power)
    factor = anytime_inflation(_discordant(b, c), alpha, power, mixture)
    return _inflated_n(n, b, c, factor, alpha, power)


@slabbed
def _discordant(b: npt.ArrayLike, c: npt.ArrayLike) -> FloatArray:
    wins, losses = non_negative(b=b, c=c)
    return np.asarray(wins + losses)


@slabbed
def _inflated_n(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, factor: FloatArray, alpha: npt.ArrayLike, power: npt.ArrayLike
) -> FloatArray:
    with np.errstate(invalid="ignore"):
        needed = np.asarray(required_n(n, b, c, alpha, power) * factor)
    # N* is 0 when every item is discordant in one direction: 0 x inf is still "cannot be reached".
    np.copyto(needed, np.inf, where=np.isnan(needed))
    return needed


def _mean_over(theta: FloatArray, wins: FloatArray, losses: FloatArray) -> FloatArray:
    """Return the logarithm of the mean over atoms of (2 theta)^b (2 (1 - theta))^c."""

    def log_mean_exp(w: FloatArray, x: FloatArray) -> FloatArray:
        terms = np.multiply.outer(w, np.log(2 * theta))
        terms += np.multiply.outer(x, np.log(2 * (1 - theta)))
        peak = terms.max(axis=1)
        terms -= peak[:, None]
        np.maximum(terms, _NOTHING, out=terms)
        np.exp(terms, out=terms)
        return np.asarray(peak + np.log(terms.sum(axis=1) / theta.size))

    return by_slab(log_mean_exp, wins, losses, _SLAB)


def _prior(prior: Mixture) -> tuple[float, float, float]:
    """Return the parameters of a Beta mixture, and the logarithm of 2^(a + b) B(a, b) that normalises it."""
    if prior.beta is None:
        raise ValueError(f"{prior.name} has no Beta density")
    a, b = prior.beta
    return a, b, prior.log_scaled_norm


def _beta_halves(wins: FloatArray, losses: FloatArray, prior: Mixture) -> tuple[FloatArray, FloatArray]:
    a, b, norm = _prior(prior)
    p, q = wins + a, losses + b
    more, fewer = np.maximum(p, q), np.minimum(p, q)
    losing, whole = log_half_and_whole(more.ravel(), fewer.ravel())
    losing, whole = losing.reshape(p.shape) - norm, whole.reshape(p.shape) - norm
    winning = log_less(whole, losing)
    weight = prior.weight_a
    plus = np.where(p >= q, winning, losing) - np.log(weight)
    minus = np.where(p >= q, losing, winning) - np.log1p(-weight)
    return plus, minus


# The evidence along a committed order.
#
# For the first model a skipped item bets the lowest difference it allows, for the second one the highest. So the evidence is the sum of
# two
# parts: e+ at (b, c_worst) and e- at (b_best, c), each with its weight in the mixture. With nothing skipped it is e(b, c).

Counts = NDArray[np.int32] | NDArray[np.int64]


def prefix_log_e(b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str) -> NDArray[np.float64]:
    """Return ln of the two-sided evidence."""
    log_e = log_e_value(b, c, mixture)
    skipped = np.nonzero((c_worst != c) | (b_best != b))
    if skipped[0].size:
        log_e[skipped] = np.logaddexp(*_halves(b[skipped], c[skipped], c_worst[skipped], b_best[skipped], mixture))
    return log_e


def _halves(
    b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ln of the two parts of the evidence, for the first model and for the second; their sum is the e-value."""
    return log_completion_bound(b, c_worst, 0, mixture)[0], log_completion_bound(b_best, c, 0, mixture)[1]

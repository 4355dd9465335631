"""Evidence that a gap exceeds a given value: not worse by more than a margin, or worse by more than one.

"A is not worse than B by more than delta" is the claim that the gap A - B exceeds ``-delta``. Against a gap of at most g the bets

    1 + s (D - g) / (1 + g),    0 < s < 1,

have mean at most 1, and at g = 0 they are the positive half of `stats.evidence.eprocess` and `stats.evidence.graded`. So their average
over s is an e-process for one direction, and the claim holds from the moment at which it reaches 1/alpha: under a trusted or a committed
order.

With a known number of items and any order of arrival the claim rests on the exact unconditional test at that number, every missing item
counted against A (`excess_p`); for scores between 0 and 1, on the same bets, whose product has no order.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stats.evidence.graded import LAMBDAS
from stats.fixed_n.tango import likeliest_loss_rate
from stats.fixed_n.unconditional import unconditional_p
from stats.numerics.checks import FloatArray, aligned, between, finite, level, non_negative, paired_counts
from stats.numerics.mixtures import Mixture, parse_mixture
from stats.numerics.rootfind import bracketed_root
from stats.numerics.special import ndtri

_STEP = 1 / 6
_NODES = _STEP * np.arange(-29, 30)
_STRETCH = np.sinh(_NODES)[:, None]
_LOG_WEIGHTS = np.log(_STEP * np.cosh(_NODES))[:, None]
_SLAB = 2_048
_CELLS = 1_000_000
_EDGE = 1e-9
_MOST = 1e7  # items: a forecast beyond is "no number of items"


def excess_log_e(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, bound: npt.ArrayLike, mixture: str | Mixture = "beta(1,1)"
) -> FloatArray:
    """Return ln of the e-value against "the gap is at most `bound`", for scores 0 and 1.

    Parameters
    ----------
    n, b, c : array_like
        Shared items and discordant counts; a skipped item counts in c.
    bound : array_like
        In (-1, 1): ``-delta`` for "A is not worse by more than delta". For "A is worse by more than delta" exchange b and c, and give
        ``delta``.
    mixture : str or Mixture
        See `stats.numerics.mixtures`; its part above 1/2 weighs the bets, s = 2 theta - 1.

    Returns
    -------
    ndarray
        ln e, in nats; the claim holds from the first item at which it reaches ln(1/alpha).

    Examples
    --------
    >>> round(float(excess_log_e(300, 6, 6, -0.03)), 4)
    2.0208
    >>> round(float(excess_log_e(12, 10, 2, 0.0)), 6) == round(float(__import__("stats").log_e_halves(10, 2)[0]), 6)
    True
    """
    aligned(n=n, b=b, c=c, bound=bound)
    items, wins, losses = paired_counts(n, b, c)
    (gap,) = _inside(bound=bound)
    items, wins, losses, gap = np.broadcast_arrays(items, wins, losses, gap)
    prior = parse_mixture(mixture)
    n_, b_, c_, g_ = (x.ravel() for x in (items, wins, losses, gap))
    out = np.empty(n_.shape)
    for start in range(0, out.size, _SLAB):
        part = slice(start, start + _SLAB)
        out[part] = _log_e(n_[part], b_[part], c_[part], g_[part], prior)
    return out.reshape(items.shape)


def _log_e(items: FloatArray, wins: FloatArray, losses: FloatArray, gap: FloatArray, prior: Mixture) -> FloatArray:
    up, tie = (1 - gap) / (1 + gap), -gap / (1 + gap)
    ties = items - wins - losses
    if prior.beta is None:
        s = (2 * prior.above - 1)[:, None]
        return _log_mean_exp(wins * np.log1p(s * up) + losses * np.log1p(-s) + ties * np.log1p(s * tie))
    return _log_integral(wins, losses, ties, up, tie, *prior.beta) - _log_norm(*prior.beta)


@lru_cache(maxsize=64)
def _log_norm(p: float, q: float) -> float:
    nothing = np.zeros(1)
    return float(_log_integral(nothing, nothing, nothing, np.ones(1), nothing, p, q)[0])


def _log_integral(
    wins: FloatArray, losses: FloatArray, ties: FloatArray, up: FloatArray, tie: FloatArray, p: float, q: float
) -> FloatArray:
    """Return the logarithm of the integral of (1 + up s)^b (1 - s)^(c + q - 1) (1 + tie s)^ties (1 + s)^(p - 1) over 0 < s < 1.

    In x = logit s the integrand has one peak and exponential tails; the trapezoidal rule after x = mode + sd sinh(u) converges
    geometrically.
    """
    lost = losses + (q - 1)

    def slope(s: FloatArray) -> FloatArray:
        room = s * (1 - s)
        terms = wins * up / (1 + up * s) + ties * tie / (1 + tie * s) + (p - 1) / (1 + s)
        return np.asarray(room * terms - lost * s + 1 - 2 * s)

    mode = bracketed_root(slope, np.full(wins.shape, 1e-12), np.full(wins.shape, 1 - 1e-12), tolerance=1e-4)

    def bend(rate: FloatArray | float) -> FloatArray:
        return np.asarray(rate * (1 - 2 * mode - rate * mode**2) / (1 + rate * mode) ** 2)

    curvature = mode * (1 - mode) * (lost + 2 - wins * bend(up) - ties * bend(tie) - (p - 1) * bend(1.0))
    x = np.log(mode / (1 - mode)) + _STRETCH / np.sqrt(np.maximum(curvature, 1e-12))
    log_s, log_rest = -np.logaddexp(0, -x), -np.logaddexp(0, x)
    s = np.exp(log_s)
    terms = wins * np.log1p(up * s) + ties * np.log1p(tie * s) + (lost + 1) * log_rest + log_s + _LOG_WEIGHTS
    terms += (p - 1) * np.log1p(s) - np.log(np.maximum(curvature, 1e-12)) / 2
    peak = terms.max(axis=0)
    return np.asarray(peak + np.log(np.exp(terms - peak).sum(axis=0)))


def graded_excess_log_e(
    differences: npt.ArrayLike,
    bound: float,
    missing: int = 0,
    lambdas: npt.ArrayLike = LAMBDAS,
    *,
    worst: float = -1.0,
    path: bool = False,
) -> FloatArray:
    """Return ln of the e-value against "the mean difference is at most `bound`", for differences in [-1, 1].

    Parameters
    ----------
    differences : array_like, shape (T,)
        D of each item, in order.
    bound : float
        In (-1, 1); see `excess_log_e`.
    missing : int
        Items still to come, each counted at `worst`.
    lambdas : array_like
        Bets s in (0, 1), equally weighted.
    worst : float
        The lowest difference of an item that is missing.
    path : bool
        Whether to return the value after each item, shape (T,), and not the last one only.

    Examples
    --------
    >>> round(float(graded_excess_log_e([0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1], 0.0, lambdas=[k / 50 for k in range(1, 50)])), 6)
    0.164835
    """
    (values,) = between(-1, 1, differences=differences)
    (gap,) = _inside(bound=bound)
    (bets,) = finite(lambdas=lambdas)
    rest = missing * np.log1p(bets * (worst - gap) / (1 + gap))
    if not path:
        distinct, counts = np.unique(values, return_counts=True)
        capital = counts @ np.log1p(np.multiply.outer((distinct - gap) / (1 + gap), bets)) + rest
        return np.asarray(_log_mean_exp(capital[:, None])[0])
    out, capital = np.empty(values.size), rest
    step = max(1, _CELLS // bets.size)
    for start in range(0, values.size, step):
        part = slice(start, start + step)
        along = capital + np.cumsum(np.log1p(np.multiply.outer((values[part] - gap) / (1 + gap), bets)), axis=0)
        out[part], capital = _log_mean_exp(along.T), along[-1]
    return out


def excess_p(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, bound: npt.ArrayLike, missing: npt.ArrayLike = 0
) -> FloatArray:
    """Return the exact one-sided p-value against "the gap is at most `bound`" for scores 0 and 1 at one look, missing items at worst.

    Parameters
    ----------
    bound : array_like
        In (-1, 1); see `excess_log_e`.
    missing : array_like
        Items of the benchmark that are not shared yet: each counts as lost. p only falls as they come, so it may be looked at at any
        time, in any order of arrival; the error is that of one look at all items.

    Notes
    -----
    See `stats.fixed_n.unconditional`: never below the exact p, and above it by at most .01 % with 2,000 items, .1 % with 20,000, 1 % with
    200,000 and 25 % with a million. One p takes 5 ms with 1,000 items and .1 to .2 s with 12,000.

    Examples
    --------
    >>> excess_p(25, 0, 0, -0.1).round(4).item(), excess_p(1294, 26, 26, -0.03, [24, 25, 26]).round(4).tolist()
    (0.0718, [0.0436, 0.0564, 0.0686])
    """
    aligned(n=n, b=b, c=c, bound=bound, missing=missing)
    items, wins, losses = paired_counts(n, b, c)
    (rest,) = non_negative(missing=missing)
    (gap,) = _inside(bound=bound)
    for name, counts in {"n": items, "b": wins, "c": losses, "missing": rest}.items():
        if (counts % 1 != 0).any():
            raise ValueError(f"{name} must be whole numbers")
    columns = np.broadcast_arrays(items + rest, wins, losses + rest, gap)
    cases = zip(*(column.ravel().tolist() for column in columns), strict=True)
    return np.array([unconditional_p(int(n), int(b), int(c), g) for n, b, c, g in cases]).reshape(columns[0].shape)


def excess_low_anytime(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
    mixture: str | Mixture = "beta(1,1)",
) -> FloatArray:
    """Return the lower bound of the gap that `excess_log_e` gives at these counts, one-sided and anytime-valid.

    Examples
    --------
    >>> round(float(excess_low_anytime(300, 6, 6)), 5)
    -0.03617
    """
    aligned(n=n, b=b, c=c, alpha=alpha)
    items, wins, losses = paired_counts(n, b, c)
    (a,) = level(alpha=alpha)
    items, wins, losses, a = np.broadcast_arrays(items, wins, losses, a)
    return _lowest(lambda gap: excess_log_e(items, wins, losses, gap, mixture) + np.log(a), items, wins - losses)


def graded_excess_low(
    differences: npt.ArrayLike, alpha: float = 0.05, missing: int = 0, lambdas: npt.ArrayLike = LAMBDAS
) -> float:
    """Return the lower bound of the mean difference that `graded_excess_log_e` gives at the last item, one-sided.

    Examples
    --------
    >>> round(graded_excess_low([0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1] * 20), 3)
    0.046
    """
    (values,) = between(-1, 1, differences=differences)
    total = np.array(float(values.size + missing))

    def excess(gap: FloatArray) -> FloatArray:
        return np.array(graded_excess_log_e(values, float(gap), missing, lambdas) + np.log(alpha))

    return float(_lowest(excess, total, np.array(values.sum() - missing)))


def _lowest(excess: Callable[[FloatArray], FloatArray], items: FloatArray, lead: FloatArray) -> FloatArray:
    """Return where falling evidence leaves its threshold, between -1 and the mean, at which no bet has gained."""
    end = np.clip(lead / np.maximum(items, 1), -1 + 2 * _EDGE, 1 - _EDGE)
    start = np.full(end.shape, -1 + _EDGE)
    return np.where(excess(start) > 0, bracketed_root(excess, start, end, tolerance=1e-9), -1.0)


def items_to_excess(evidence: Callable[[float], float], n: int, threshold_log: float) -> float:
    """Return how many items evidence needs in all, if the items to come are like those so far; infinite where it never does.

    Parameters
    ----------
    evidence : callable
        Maps a factor by which all counts grow to ln e.
    n : int
        Items so far.
    threshold_log : float
        ln(1/alpha).

    Examples
    --------
    >>> round(items_to_excess(lambda grown: excess_log_e(200 * grown, 4 * grown, 4 * grown, -0.03), 200, np.log(20)))
    420
    """
    most = _MOST / max(n, 1)
    if n == 0 or most <= 1 or evidence(most) < threshold_log:
        return float("inf")
    if evidence(1.0) >= threshold_log:
        return float(n)
    root = bracketed_root(
        lambda x: np.array([evidence(float(np.exp(each))) - threshold_log for each in x]),
        np.zeros(1),
        np.log(np.array([most])),
        tolerance=1e-7,
    )
    return float(n * np.exp(root[0]))


def excess_required_n(gap: float, variance: float, bound: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """Return the items with which `excess_p` finds this gap above `bound`; infinite where the gap is not above it.

    Parameters
    ----------
    gap, variance : float
        Of one item's difference of scores 0 and 1.
    bound : float
        See `excess_log_e`.
    alpha, power : float
        Level, one-sided, and power.

    Notes
    -----
    By the normal approximation, with the variance that the score test divides by and half an item for whole counts. The exact test then
    has a power of .80 to .87, by enumeration of ten cases from 105 to 1,007 items; 1 where no item is lost.

    Examples
    --------
    >>> round(excess_required_n(0.0, 0.04, -0.03))
    356
    """
    if gap <= bound:
        return float("inf")
    discordant = min(max(variance + gap**2, abs(gap)), 1.0)
    rates = (np.array(x) for x in (1.0, (discordant + gap) / 2, (discordant - gap) / 2, bound))
    divided = 2 * float(likeliest_loss_rate(*rates)) + bound * (1 - bound)
    distance = gap - bound
    deviations = float(ndtri(1 - alpha)) * np.sqrt(divided) + float(ndtri(power)) * np.sqrt(variance)
    return float((deviations / distance) ** 2 + 0.5 / distance)


def _inside(**named: npt.ArrayLike) -> list[FloatArray]:
    arrays = finite(**named)
    for name, array in zip(named, arrays, strict=True):
        if (np.abs(array) >= 1).any():
            raise ValueError(f"{name} must lie strictly between -1 and 1, got {array[np.abs(array) >= 1].flat[0]}")
    return arrays


def _log_mean_exp(terms: FloatArray) -> FloatArray:
    peak = terms.max(axis=0)
    return np.asarray(peak + np.log(np.exp(terms - peak).mean(axis=0)))

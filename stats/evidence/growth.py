"""How many more items a decision is likely to take, at the gap observed so far."""

import numpy as np
import numpy.typing as npt

from stats.evidence.eprocess import log_e_of_counts
from stats.numerics.checks import FloatArray, aligned, finite, level, paired_counts, slabbed
from stats.numerics.mixtures import Mixture, parse_mixture
from stats.numerics.special import ndtri

_HORIZON = 1e4  # times the items seen: beyond this, "never" is the honest answer


def items_to_decision(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    mixture: str | Mixture = "beta(1,1)",
    confidence: float = 0.8,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how many more items ln e needs to reach a threshold, if the future is like the past.

    The counts are extrapolated along their expected path: k more items add k p_b wins and k p_c losses. ``mid`` takes
    the observed rates; ``low`` and ``high`` move the gap by its standard error times the normal quantile of
    ``confidence``, at the observed discordance: the range speaks of the unknown gap, not of the luck of the draw.

    Parameters
    ----------
    threshold_log : array_like
        ln(1/alpha) of the pair, in nats.
    confidence : float
        Two-sided coverage of the range for the gap.

    Returns
    -------
    low, mid, high : ndarray
        Items; 0 where the threshold is already reached, infinite where the gap in question is 0, where the range of
        gaps includes 0 (``high``), or beyond 10,000 times the items seen.

    Examples
    --------
    >>> low, mid, high = items_to_decision(1000, 60, 40, np.log(20))
    >>> round(float(low)), round(float(mid)), round(float(high))
    (673, 1785, 20735)
    """
    (mass,) = level(confidence=confidence)
    quantile = float(-ndtri((1 - mass) / 2))
    low, mid, high = _forecast(n, b, c, threshold_log, mixture, (quantile, 0.0, -quantile))
    return low, mid, high


def expected_items_to_decision(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    mixture: str | Mixture = "beta(1,1)",
) -> FloatArray:
    """Return how many more items ln e needs to reach a threshold at the observed rates: only ``mid`` of `items_to_decision`.

    Examples
    --------
    >>> round(float(expected_items_to_decision(1000, 60, 40, np.log(20))))
    1785
    """
    return _forecast(n, b, c, threshold_log, mixture, (0.0,))[0]


@slabbed
def _forecast(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    mixture: str | Mixture,
    moves: tuple[float, ...],
) -> tuple[FloatArray, ...]:
    """Return the items at gaps moved away from 0 by these many standard errors; one array a move."""
    aligned(n=n, b=b, c=c, threshold_log=threshold_log)
    items, wins, losses = paired_counts(n, b, c)
    (threshold,) = finite(threshold_log=threshold_log)
    prior = parse_mixture(mixture)
    shape = np.broadcast_shapes(items.shape, wins.shape, losses.shape, threshold.shape)
    items, wins, losses, threshold = (np.broadcast_to(x, shape).ravel() for x in (items, wins, losses, threshold))
    out = np.zeros((len(moves), items.size))
    need = threshold - log_e_of_counts(wins, losses, prior)
    undecided = np.flatnonzero(need > 0)
    need, threshold, wins, losses, items = (x[undecided] for x in (need, threshold, wins, losses, items))
    seen = np.maximum(items, 1)
    gap, discordance = (wins - losses) / seen, (wins + losses) / seen
    size = np.abs(gap)
    for row, move in zip(out, moves, strict=True):
        towards = size
        if move:
            error = np.sqrt(np.maximum(discordance - gap**2, 0) / seen)
            towards = np.clip(size + move * error, 0, discordance)
        towards = np.copysign(towards, gap)
        rate_b, rate_c = (discordance + towards) / 2, (discordance - towards) / 2
        row[undecided] = _crossing(seen, wins, losses, rate_b, rate_c, need, threshold, prior)
    return tuple(out.reshape(len(moves), *shape))


def _crossing(
    items: FloatArray,
    wins: FloatArray,
    losses: FloatArray,
    rate_b: FloatArray,
    rate_c: FloatArray,
    need: FloatArray,
    threshold: FloatArray,
    prior: Mixture,
) -> FloatArray:
    """Return the smallest k at which ln e(b + k rate_b, c + k rate_c) has grown by ``need`` > 0 to ``threshold``."""
    growth = _growth_rate(rate_b, rate_c, prior)
    growing = growth > 0
    rate = np.where(growing, growth, 1.0)
    # A smooth prior loses ln(1 + k/n)/2 to the growing precision: a contraction solves that approximation from below,
    # and one Newton step settles on the e-process itself (to better than 1 %).
    loss = 0.0 if prior.beta is None else 0.5
    k = need / rate
    for _ in range(2):
        k = (need + loss * np.log1p(k / items)) / rate
    k = np.minimum(k, 2 * _HORIZON * items)
    missing = threshold - log_e_of_counts(wins + k * rate_b, losses + k * rate_c, prior)
    k = np.maximum(k + missing / np.maximum(rate - loss / (items + k), rate / 2), 0)
    return np.where(growing & (k <= _HORIZON * items), k, np.inf)


def _growth_rate(rate_b: FloatArray, rate_c: FloatArray, prior: Mixture) -> FloatArray:
    """Return the nats per item in the long run: the largest of rate_b ln 2 theta + rate_c ln 2(1 - theta) over the support."""
    if prior.beta is None:
        best = np.full(rate_b.shape, -np.inf)
        for theta in prior.atoms:
            np.maximum(best, rate_b * np.log(2 * theta) + rate_c * np.log(2 * (1 - theta)), out=best)
        return best
    tiny = float(np.finfo(np.float64).tiny)  # 0 ln 0 = 0
    total = np.maximum(rate_b + rate_c, tiny)
    return np.asarray(
        rate_b * np.log(np.maximum(2 * rate_b / total, tiny)) + rate_c * np.log(np.maximum(2 * rate_c / total, tiny))
    )

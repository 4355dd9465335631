"""The probability that a pair is decided by the last item of its benchmark, given its counts so far.

The share of discordant items is taken at its estimate. The share of those that A wins is uncertain: its distribution is Beta(1 + b, 1 + c),
approximated by nine points on the logit scale. Given it, the lead after the items that are left is normal. So the forecast includes both
what is not known and the luck of the draw.
"""

import numpy as np
import numpy.typing as npt

from stats.evidence.eprocess import boundary_u
from stats.numerics.checks import FloatArray, aligned, non_negative, paired_counts
from stats.numerics.mixtures import Mixture
from stats.numerics.special import ndtr, ndtri

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


def completion_decision_probability(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    left: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    lost: npt.ArrayLike = 0,
) -> FloatArray:
    """Return the probability that the exact test decides with all items in.

    Parameters
    ----------
    left : array_like
        Items that are still to come.
    threshold_log : array_like
        ln(1/alpha), or ln(1/alpha_j) in a family; infinite for a pair that cannot be decided.
    lost : array_like
        Items that will not come, counted against the leader.

    Examples
    --------
    >>> completion_decision_probability(1000, [60, 60, 60], [40, 50, 20], 1000, np.log(20)).round(2).tolist()
    [0.78, 0.24, 1.0]
    """
    lead, spread, discordant, gone = _future(n, b, c, left, threshold_log, lost)
    with np.errstate(invalid="ignore"):
        z = -ndtri(np.exp(-np.asarray(threshold_log, np.float64)) / 2)
    critical = (z * np.sqrt(discordant + gone) + 1 + gone)[..., None]
    return _mean(ndtr((lead - critical) / spread) + ndtr((-lead - critical) / spread))


def anytime_decision_probability(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    left: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    mixture: str | Mixture = "beta(1,1)",
) -> FloatArray:
    """Return the probability that the e-process reaches its threshold by the last item.

    The boundary rises less and less: the probability is the mean of those for a line from the present boundary to the last one, and for the
    last one throughout.

    Examples
    --------
    >>> anytime_decision_probability(1000, [60, 60, 60], [40, 50, 20], 1000, np.log(20)).round(2).tolist()
    [0.39, 0.03, 1.0]
    """
    lead, spread, discordant, _ = _future(n, b, c, left, threshold_log, 0)
    start = np.broadcast_to(np.subtract(b, c), discordant.shape).astype(np.float64)
    seen = np.broadcast_to(np.add(b, c), discordant.shape).astype(np.float64)
    threshold = np.broadcast_to(np.asarray(threshold_log, np.float64), discordant.shape)
    last = _boundary(discordant, threshold, mixture)
    now = np.minimum(_boundary(seen, threshold, mixture), last)
    chance = np.zeros(lead.shape)
    for side in (1, -1):
        gain = side * (lead - start[..., None])
        for first in (now, last):
            rise = np.where(np.isfinite(last), last, 0.0) - np.where(np.isfinite(first), first, 0.0)
            chance += _crossing((first - side * start)[..., None], rise[..., None], gain, spread) / 2
    return _mean(np.minimum(chance, 1))


def _boundary(discordant: FloatArray, threshold: FloatArray, mixture: str | Mixture) -> FloatArray:
    """Return the lead at which the e-process reaches its threshold; infinite where none does."""
    possible = np.isfinite(threshold) & (discordant > 0)
    m, alpha = np.where(possible, discordant, 1.0), np.exp(-np.where(possible, threshold, 1.0))
    return np.where(possible, boundary_u(m, alpha, mixture) * np.sqrt(m), np.inf)


def _crossing(ahead: FloatArray, rise: FloatArray, gain: FloatArray, spread: FloatArray) -> FloatArray:
    """Return the probability that a walk, whose end has mean `gain` and `spread`, reaches a line that is `ahead` and rises by `rise`."""
    possible = np.isfinite(ahead)
    ahead = np.where(possible, ahead, 1.0)
    drift = gain - rise
    with np.errstate(over="ignore"):
        reflected = np.exp(np.minimum(2 * drift * ahead / spread**2, 700)) * ndtr((-ahead - drift) / spread)
    crossed = np.where(ahead <= 0, 1.0, np.minimum(ndtr((drift - ahead) / spread) + reflected, 1.0))
    return np.where(possible, crossed, 0.0)


def _future(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    left: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    lost: npt.ArrayLike,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean and standard deviation of the final lead at each point, the final discordant items, and the lost ones."""
    aligned(n=n, b=b, c=c, left=left, threshold_log=threshold_log, lost=lost)
    items, wins, losses = paired_counts(n, b, c)
    rest, gone = non_negative(left=left, lost=lost)
    items, wins, losses, rest, gone, _ = np.broadcast_arrays(items, wins, losses, rest, gone, np.asarray(threshold_log))
    share = (wins + losses + 0.5) / (items + 1)
    ahead, behind = wins + 1, losses + 1
    logit = np.log(ahead / behind)[..., None] + np.sqrt(1 / ahead + 1 / behind)[..., None] * _NODES
    gap = share[..., None] * np.tanh(logit / 2)
    lead = (wins - losses)[..., None] + rest[..., None] * gap
    spread = np.sqrt(np.maximum(rest[..., None] * (share[..., None] - gap**2), 1e-9))
    return lead, spread, wins + losses + rest * share, gone


def _mean(probability: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(probability @ _WEIGHTS, 1))

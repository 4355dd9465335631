"""Prospective planning: how many items to collect to detect a target gap."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.checks import FloatArray, aligned, between
from stats.eprocess import anytime_inflation, log_e_value
from stats.mixtures import Mixture
from stats.paired import difference_variance
from stats.resolution import inflation, required_n_paired

_ITERATIONS = 12


class Plan(NamedTuple):
    """Items to collect for one look at the end (``fixed``), or for looks throughout (``anytime``)."""

    fixed: FloatArray
    anytime: FloatArray


def plan(
    gap: npt.ArrayLike,
    accuracy: npt.ArrayLike,
    rho: npt.ArrayLike,
    *,
    hypotheses: npt.ArrayLike = 1,
    alpha: npt.ArrayLike = 0.05,
    power: npt.ArrayLike = 0.8,
    mixture: str | Mixture = "beta(1,1)",
) -> Plan:
    """Return the items needed to detect a target gap between two models of a given mean accuracy and correlation.

    Parameters
    ----------
    gap : array_like
        Target gap, in score units.
    accuracy : array_like
        Mean accuracy of the two models, which then score ``accuracy +- gap / 2``.
    rho : array_like
        Correlation of their 0/1 scores, within its Hoeffding bounds.
    hypotheses : array_like
        Size m of the family; each pair is tested at alpha / m.
    alpha, power, mixture
        As in `required_n` and `log_e_value`.

    Returns
    -------
    Plan
        Unrounded; infinite where the gap is 0.

    Notes
    -----
    The anytime boundary depends on the number of discordant items, which depends on N: a fixed point, reached by
    iteration (the boundary grows like the square root of the logarithm of N, which makes it a strong contraction). No
    gap is found before the smallest number of discordant items that can reach the boundary at all.

    Examples
    --------
    >>> result = plan(0.02, 0.6, 0.5)
    >>> round(float(result.fixed)), round(float(result.anytime))
    (4708, 12247)

    """
    aligned(gap=gap, accuracy=accuracy, rho=rho, hypotheses=hypotheses, alpha=alpha, power=power)
    target, centre = between(-1, 1, gap=gap, accuracy=accuracy)
    (family_size,) = between(1, np.inf, hypotheses=hypotheses)
    p_a, p_b = centre + target / 2, centre - target / 2
    if ((np.maximum(p_a, p_b) > 1) | (np.minimum(p_a, p_b) < 0)).any():
        raise ValueError("accuracy +- gap / 2 must lie in [0, 1]: choose a smaller gap or another accuracy")
    variance = difference_variance(p_a, p_b, rho)
    single = required_n_paired(target, np.sqrt(variance), alpha, power)
    fixed = single * inflation(family_size, alpha, power)
    each = np.divide(alpha, family_size)
    discordance = variance + target**2
    least = np.searchsorted(log_e_value(np.arange(1000), 0, mixture), -np.log(each)).astype(np.float64)
    family = required_n_paired(target, np.sqrt(variance), each, power)
    anytime = np.where(np.isinf(single), 0.0, fixed)
    for _ in range(_ITERATIONS):
        discordant = np.maximum(anytime * discordance, least)
        anytime = np.where(np.isinf(single), 0.0, family * anytime_inflation(discordant, each, power, mixture))
    with np.errstate(divide="ignore"):
        anytime = np.where(np.isinf(single), np.inf, np.maximum(anytime, least / discordance))
    return Plan(fixed, anytime)

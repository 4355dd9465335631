"""Step-down over a family of pairs: thresholds relax as pairs are decided, and verdicts latch.

Each hypothesis has a weight; the weights of a family, hypotheses to come included, add up to at most 1. Pair j is decided when its
anytime p-value meets

    p_j <= alpha w_j / (1 - sum of the weights of the decided pairs),

repeated until nothing changes. This is Holm's procedure with weights: closed testing with weighted Bonferroni tests, so it bounds the
probability of calling any two equal models different by alpha, under any dependence. Anytime p-values (1 / the largest e so far, or the
p-value of `stats.evidence.curtailed`) never rise, so a decision at any event stays one.

Evidence is ``-ln p``: ln of the largest e so far, or -ln of the p-value. Weights are whole multiples of 2^-62, rounded down: sums of
integers do not depend on their order, so neither do verdicts.
"""

from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.families.error_control import registration, spent
from stats.numerics.checks import TOLERANCE, FloatArray, IntArray, level

WHOLE = 2**62
"""The weight of a whole family; weights are integers out of this many."""

Index = npt.NDArray[np.intp]


class StepDown(NamedTuple):
    """Pairs that a step-down decides.

    Attributes
    ----------
    pair : ndarray of int
        Places of the newly decided pairs among the arguments, ascending.
    threshold_log : ndarray
        The threshold that each of them met, ln(1/alpha_j), in nats.
    open_weight : int
        Weight of the family that is still undecided, out of `WHOLE`.
    """

    pair: Index
    threshold_log: FloatArray
    open_weight: int


def family_weights(j: npt.ArrayLike, capacity: int | None = None) -> IntArray:
    """Return the weight of the j-th hypothesis of a family, out of `WHOLE`; all weights add up to at most `WHOLE`.

    Parameters
    ----------
    j : array_like of int
        Order of registration, from 1.
    capacity : int, optional
        Declared number of hypotheses: 1/capacity each, and 0 beyond it. Without it, the sequence of `spending_alpha`.

    Examples
    --------
    >>> (family_weights([1, 9, 10], 9) / WHOLE).round(6).tolist()
    [0.111111, 0.111111, 0.0]
    """
    if capacity is not None and capacity < 1:
        raise ValueError(f"capacity must be at least 1, got {capacity}: it is the number of hypotheses declared")
    return place_weights(registration(j), capacity)


def place_weights(place: IntArray | FloatArray | npt.NDArray[np.int32], capacity: int | None = None) -> IntArray:
    """Return `family_weights` of places in a family, from 1; not checked."""
    if capacity is None:
        return np.floor(spent(place.astype(np.float64), 0.5) * (2.0 * WHOLE)).astype(np.int64)
    return np.where(place <= capacity, WHOLE // capacity, 0).astype(np.int64)


def step_thresholds(weights: npt.ArrayLike, open_weight: int = WHOLE, alpha: float = 0.05) -> FloatArray:
    """Return the evidence ln(1/alpha_j) that decides each pair now; infinity for a pair without weight.

    Parameters
    ----------
    weights : array_like of int
        Weight of each pair, out of `WHOLE`.
    open_weight : int
        `WHOLE` less the weights of the decided pairs.

    Examples
    --------
    >>> np.exp(step_thresholds(family_weights(1, 9), WHOLE - 3 * (WHOLE // 9))).round(6).item()
    120.0
    """
    level(alpha=alpha)
    return np.asarray(log(max(open_weight, 1)) - _log_shares(_weights(weights), alpha))


def step_down(
    evidence: npt.ArrayLike, weights: npt.ArrayLike, open_weight: int = WHOLE, alpha: float = 0.05
) -> StepDown:
    """Decide undecided pairs of one family by their evidence at one moment, until nothing changes.

    Only pairs whose evidence reaches ln(1/alpha) take part: below it no threshold of the step-down is met. Nothing is sorted.

    Parameters
    ----------
    evidence : array_like, shape (P,)
        -ln p of undecided pairs of the family; the others may be left out.
    weights : array_like of int, shape (P,)
        Their weights, out of `WHOLE`; 0 for a pair beyond the capacity.
    open_weight : int
        `WHOLE` less the weights of the pairs decided before.

    Examples
    --------
    >>> log_e = [25.66, 61.08, -0.39, 104.79, 4.35, -4.27, 5.05, 0.2, -3.91]
    >>> found = step_down(log_e, family_weights(range(1, 10), 9))
    >>> found.pair.tolist(), np.exp(found.threshold_log).round().tolist()
    ([0, 1, 3, 6], [180.0, 180.0, 180.0, 120.0])
    """
    values, units = _family(evidence, weights, alpha)
    place = np.flatnonzero(values >= -log(alpha) - TOLERANCE)
    place = place[units[place] > 0]
    units = units[place]
    shares = _log_shares(units, alpha)
    score = values[place] + shares
    pairs: list[Index] = []
    thresholds: list[FloatArray] = []
    while True:
        need = log(max(open_weight, 1))
        met = score >= need - TOLERANCE
        if not met.any():
            break
        pairs.append(place[met])
        thresholds.append(need - shares[met])
        open_weight -= int(units[met].sum())
        rest = ~met
        place, units, shares, score = place[rest], units[rest], shares[rest], score[rest]
    if not pairs:
        return StepDown(np.zeros(0, np.intp), np.zeros(0), open_weight)
    pair, threshold = np.concatenate(pairs), np.concatenate(thresholds)
    order = np.argsort(pair)
    return StepDown(pair[order], threshold[order], open_weight)


def _family(evidence: npt.ArrayLike, weights: npt.ArrayLike, alpha: float) -> tuple[FloatArray, IntArray]:
    """Return checked evidence (infinite if certain) and weights, as vectors of one length."""
    level(alpha=alpha)
    values, units = np.asarray(evidence, np.float64), _weights(weights)
    if values.ndim != 1 or values.shape != units.shape:
        raise ValueError(
            f"evidence and weights must be lists of one length, got shapes {values.shape} and {units.shape}"
        )
    if np.isnan(values).any():
        raise ValueError("evidence must not be NaN; use 0 for a pair without evidence")
    return values, units


def _weights(weights: npt.ArrayLike) -> IntArray:
    units = np.asarray(weights)
    if units.size and units.dtype.kind not in "iu":
        raise ValueError(f"weights must be integers out of 2^62, got {units.dtype}; see family_weights")
    units = units.astype(np.int64, copy=False)
    if units.size and units.min() < 0:
        raise ValueError(f"weights must be non-negative, got {units.min()}")
    return units


def _log_shares(units: IntArray, alpha: float) -> FloatArray:
    """Return ln(alpha w) with w out of `WHOLE`; minus infinity without weight."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(units.astype(np.float64)) + log(alpha))

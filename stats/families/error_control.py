"""Many pairs at once: error control over a family of hypotheses.

P-value procedures are valid at a planned n only. E-value procedures come in two kinds. Fixed thresholds 1/alpha_j
(Bonferroni, `spending_alpha`, `capacity_alpha`) hold under any dependence and for running suprema, so verdicts may
latch. E-BH, closed averaging and e-LOND compare e-values with each other; on running suprema they lose control
(arXiv 2501.19360), so they describe current e-values and may be revoked.
"""

from math import log
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import TOLERANCE, BoolArray, FloatArray, IntArray, aligned, between, level, slabbed, vector


def bonferroni(p: npt.ArrayLike, m: int | None = None) -> FloatArray:
    """Return Bonferroni-adjusted p-values, min(1, m p); ``m`` defaults to the number of p-values.

    Examples
    --------
    >>> bonferroni([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.12, 0.09]
    """
    values = _p_values(p)
    return np.minimum(values * _declared(values, m), 1)


def sidak(p: npt.ArrayLike, m: int | None = None) -> FloatArray:
    """Return Sidak-adjusted p-values, 1 - (1 - p)^m; family-wise valid for independent (or positively dependent) tests.

    Examples
    --------
    >>> sidak([0.01, 0.04, 0.03]).round(4).tolist()
    [0.0297, 0.1153, 0.0873]
    """
    values = _p_values(p)
    with np.errstate(divide="ignore"):
        return np.asarray(-np.expm1(_declared(values, m) * np.log1p(-values)))


def holm(p: npt.ArrayLike, m: int | None = None) -> FloatArray:
    """Return Holm's step-down adjusted p-values: family-wise error under any dependence.

    Parameters
    ----------
    p : array_like
        The p-values, or the smallest ones of `m` hypotheses.
    m : int, optional
        Hypotheses; default: as many as p-values.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    >>> holm([0.01], m=3).tolist()
    [0.03]
    """
    values = _p_values(p)
    order, size = np.argsort(values), _declared(values, m)
    steps = np.maximum.accumulate(values[order] * np.arange(size, size - values.size, -1))
    return _in_place(order, np.minimum(steps, 1))


def benjamini_hochberg(p: npt.ArrayLike, m: int | None = None) -> FloatArray:
    """Return Benjamini-Hochberg adjusted p-values: false discovery rate for independent or PRDS tests.

    Parameters
    ----------
    p : array_like
        The p-values, or the smallest ones of `m` hypotheses: those up to a level are rejected as if all were given.
    m : int, optional
        Hypotheses; default: as many as p-values.

    Examples
    --------
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    >>> benjamini_hochberg([0.01], m=3).tolist()
    [0.03]
    """
    values = _p_values(p)
    return _step_up(values, 1.0, _declared(values, m))


def benjamini_yekutieli(p: npt.ArrayLike) -> FloatArray:
    """Return Benjamini-Yekutieli adjusted p-values: false discovery rate under any dependence.

    Examples
    --------
    >>> benjamini_yekutieli([0.01, 0.04, 0.03]).round(4).tolist()
    [0.055, 0.0733, 0.0733]
    """
    values = _p_values(p)
    return _step_up(values, float(np.sum(1 / np.arange(1, values.size + 1))), values.size)


def e_bonferroni(log_e: npt.ArrayLike, alpha: float = 0.05, m: int | None = None) -> BoolArray:
    """Reject where e >= m / alpha: family-wise at every time, also on running suprema, under any dependence.

    Examples
    --------
    >>> e_bonferroni(np.log([100.0, 45.0, 1.0]), 0.05).tolist()
    [True, False, False]
    """
    values = vector(log_e=log_e)
    return np.asarray(values >= np.log(_declared(values, m)) - _log_level(alpha))


def e_holm(log_e: npt.ArrayLike, alpha: float = 0.05) -> BoolArray:
    """Reject by Holm's procedure on the p-values min(1, 1/e); with running suprema as e, family-wise at every time (Ville).

    Examples
    --------
    >>> e_holm(np.log([100.0, 45.0, 1.0]), 0.05).tolist()
    [True, True, False]
    """
    return holm(np.exp(-np.maximum(vector(log_e=log_e), 0))) <= level(alpha=alpha)[0]


def e_bh(log_e: npt.ArrayLike, alpha: float = 0.05) -> BoolArray:
    """Reject by e-BH: the k largest e-values, for the largest k with e_(k) >= K / (alpha k).

    False discovery rate at most alpha under any dependence (Wang and Ramdas, 2022), for current e-values.

    Examples
    --------
    >>> e_bh(np.log([500.0, 45.0, 1.0]), 0.05).tolist()
    [True, True, False]
    """
    values = vector(log_e=log_e)
    least = -_log_level(alpha)  # the threshold at rank K, the lowest: of millions of pairs few reach it
    ordered = np.sort(values[values >= least])[::-1]
    passing = np.flatnonzero(ordered >= np.log(max(values.size, 1)) - np.log(np.arange(1, ordered.size + 1)) + least)
    return values >= ordered[passing[-1]] if passing.size else np.zeros(values.size, dtype=np.bool_)


def closed_averaging(log_e: npt.ArrayLike, alpha: float = 0.05) -> BoolArray:
    """Reject by closed testing with averaged e-values: family-wise, under any dependence, for current e-values.

    A hypothesis is rejected when every set that contains it has an average e-value of at least 1/alpha. The worst set
    adds exactly the e-values below 1/alpha, so the condition is alpha e >= 1 + sum of (1 - alpha e_j)+ : linear time.

    Examples
    --------
    >>> closed_averaging(np.log([100.0, 25.0, 1.0]), 0.05).tolist()
    [True, False, False]
    """
    scaled = vector(log_e=log_e) + _log_level(alpha)
    return np.asarray(scaled >= np.log1p(-np.expm1(np.minimum(scaled, 0)).sum()))


def e_lond(log_e: npt.ArrayLike, alpha: float = 0.05) -> BoolArray:
    """Reject by e-LOND along the given order: false discovery rate online, under any dependence (Xu and Ramdas, 2024).

    Hypothesis t is rejected at e >= 1/alpha_t, alpha_t = alpha gamma_t (R + 1) with gamma_t = 1/(t (t + 1)) and R the
    number rejected before it.

    Examples
    --------
    >>> e_lond(np.log([50.0, 70.0, 1.0]), 0.05).tolist()
    [True, True, False]
    """
    values = vector(log_e=log_e)
    rejected = np.zeros(values.size, dtype=np.bool_)
    found = 0
    for t, value in enumerate(values, start=1):
        hit = value >= np.log(t * (t + 1)) - np.log(found + 1) - _log_level(alpha)
        rejected[t - 1] = hit
        found += int(hit)
    return rejected


_SHIFT = 20.0
_SUMMED = 10**6


@slabbed
def spending_alpha(j: npt.ArrayLike, alpha: float = 0.05) -> FloatArray:
    """Return the level of the j-th hypothesis of a family without a declared size; all levels sum to at most alpha.

    Half of alpha goes to a sequence with its weight on the first few models, half to one that falls slowly. With k the number of
    models that have j pairs between them, (k - 1)(k - 2)/2 < j <= k (k - 1)/2, and a = 20,

        alpha_j = alpha/2 [1 / (k (k - 1)^2) + ln(a + 1/2) / ((j + a) ln^2(j + a))],    j = 1, 2, ...

    Proof of the sum. The first term is 1 / (k (k - 1)), split over the k - 1 places of k; over k = 2, 3, ... these add up to 1. For the
    second, f(x) = 1 / (x ln^2 x) is convex and decreasing for x > 1, so by the midpoint (Hermite-Hadamard) inequality f(j + a) is at
    most its integral over [j + a - 1/2, j + a + 1/2]. These intervals tile [a + 1/2, infinity), over which the integral of f is
    1 / ln(a + 1/2), since f is the derivative of -1 / ln x. Hence the sum over all j of alpha_j is at most alpha.

    j is the order of registration, which must not depend on scores or ranks. Only the place counts: pairs may register in any order,
    also where those of one model do not come together. Not declaring the size in advance costs, against alpha / m for each of the
    m = K (K - 1) / 2 pairs of K models, this much evidence (nats of ln e, at alpha = .05) for the pair that registers last:

    ====  =====  ==================  ==================  ============
    K     m      ln(m/alpha)         ln(1/alpha_m)       difference
    ====  =====  ==================  ==================  ============
    2     1      3.00                4.35                1.36
    3     3      4.09                6.03                1.93
    10    45     6.80                9.24                2.43
    30    435    9.07                12.13               3.05
    100   4950   11.50               15.26               3.76
    ====  =====  ==================  ==================  ============

    Parameters
    ----------
    j : array_like of int
        Registration index, from 1.
    alpha : float
        Level of the whole family.

    Examples
    --------
    >>> np.log(1 / spending_alpha([1, 45])).round(2).tolist()
    [4.35, 9.24]
    """
    aligned(j=j, alpha=alpha)
    (total,) = level(alpha=alpha)
    return spent(registration(j), total)


def spent(j: FloatArray, total: FloatArray | float) -> FloatArray:
    """Return `spending_alpha` of checked numbers."""
    models, index = _models_of(j), j + _SHIFT
    first = 1 / models / (models - 1) / (models - 1)
    slow = np.log(_SHIFT + 0.5) / (index * np.log(index) ** 2)
    return np.asarray(total * 0.5 * (first + slow))


def spent_before(j: int) -> float:
    """Return which part of alpha `spending_alpha` gives to the first j - 1 hypotheses, at any j.

    Examples
    --------
    >>> round(spent_before(46), 4), round(float(spending_alpha(np.arange(1, 46), 0.05).sum() / 0.05), 4)
    (0.5889, 0.5889)
    """
    others = j - 1
    models = float(_models_of(np.array([others + 1.0]))[0]) - 1  # of whose pairs all are among the others
    first = 1 - 1 / models + (others - models * (models - 1) / 2) / ((models + 1) * models**2)
    summed = min(others, _SUMMED)
    index = np.arange(1, summed + 1) + _SHIFT
    slow = np.log(_SHIFT + 0.5) * float((1 / (index * np.log(index) ** 2)).sum())
    if others > summed:  # weights far out are those of an integral, to within their own size
        slow += np.log(_SHIFT + 0.5) * (1 / np.log(summed + _SHIFT + 0.5) - 1 / np.log(others + _SHIFT + 0.5))
    return float(first + slow) / 2


def _models_of(j: FloatArray) -> FloatArray:
    """Return how few models have at least j pairs."""
    return np.asarray(np.ceil((1 + np.sqrt(1 + 8 * j)) / 2))


def capacity_alpha(j: npt.ArrayLike, alpha: float = 0.05, m: int = 1) -> FloatArray:
    """Return the level of the j-th hypothesis of a family declared to hold m: alpha / m, and 0 (no family verdict) beyond.

    Examples
    --------
    >>> capacity_alpha([1, 9, 10], 0.09, 9).tolist()
    [0.01, 0.01, 0.0]
    """
    aligned(j=j, alpha=alpha)
    if m < 1:
        raise ValueError(f"m must be at least 1, got {m}: it is the number of hypotheses declared")
    (total,) = level(alpha=alpha)
    return np.where(registration(j) <= m, total / m, 0.0)


def registration(j: npt.ArrayLike) -> FloatArray:
    """Return places in the order of registration, checked."""
    (index,) = between(1, np.inf, j=j)
    if (index != np.floor(index)).any():
        raise ValueError("j must be whole: it is the 1-based order of registration")
    return index


def _p_values(p: npt.ArrayLike) -> FloatArray:
    values = vector(p=p)
    between(0, 1, p=values)
    return values


def _declared(values: FloatArray, m: int | None) -> int:
    if m is None:
        return max(values.size, 1)
    if values.size > m:
        raise ValueError(f"m declares {m} hypotheses but {values.size} are given: declare at least as many as tested")
    return m


def _log_level(alpha: float) -> float:
    return float(np.log(level(alpha=alpha)[0]))


def _in_place(order: npt.NDArray[np.intp], sorted_values: FloatArray) -> FloatArray:
    out = np.empty_like(sorted_values)
    out[order] = sorted_values
    return out


def _step_up(values: FloatArray, factor: float, size: int) -> FloatArray:
    order = np.argsort(values)[::-1]
    steps = np.minimum.accumulate(values[order] * (factor * size / np.arange(values.size, 0, -1)))
    return _in_place(order, np.minimum(steps, 1))


# Step-down over a family of pairs: thresholds relax as pairs are decided, and verdicts latch.
#
# Each hypothesis has a weight; the weights of a family, hypotheses to come included, add up to at most 1. Pair j is decided when its
# anytime p-value meets
#
#     p_j <= alpha w_j / (1 - sum of the weights of the decided pairs),
#
# repeated until nothing changes. This is Holm's procedure with weights: closed testing with weighted Bonferroni tests, so it bounds the
# probability of calling any two equal models different by alpha, under any dependence. Anytime p-values (1 / the largest e so far, or the
# p-value of `stats.evidence.curtailed`) never rise, so a decision at any event stays one.
#
# Evidence is ``-ln p``: ln of the largest e so far, or -ln of the p-value. Weights are whole multiples of 2^-62, rounded down: sums of
# integers do not depend on their order, so neither do verdicts.

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

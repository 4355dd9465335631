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

from heapq import heapify, heappop, heappush
from itertools import groupby
from math import log
from operator import itemgetter
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


class Decisions(NamedTuple):
    """Decisions of a step-down over events, by event, those of one event by pair.

    Attributes
    ----------
    pair : ndarray of int
        Places of the pairs among the arguments.
    when : ndarray of int
        The event of each decision.
    threshold_log : ndarray
        The threshold that each of them met, ln(1/alpha_j), in nats.
    open_weight : int
        Weight of the family that is still undecided, out of `WHOLE`.
    """

    pair: Index
    when: IntArray
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


def step_down_events(
    before: npt.ArrayLike,
    weights: npt.ArrayLike,
    rows: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    open_weight: int = WHOLE,
    alpha: float = 0.05,
) -> Decisions:
    """Decide undecided pairs of one family at the first event at which each meets its threshold.

    The result is that of `step_down` after every single event, with the largest evidence so far; it does not depend on how events are
    divided into calls. A decision of one pair may decide others at the same event.

    Parameters
    ----------
    before : array_like, shape (P,)
        Largest evidence -ln p of each pair before these events; 0 or -inf where there is none.
    weights : array_like of int, shape (P,)
        Their weights, out of `WHOLE`.
    rows : tuple of array_like (pair, when, evidence), each of shape (R,)
        Evidence at events, in any order: the place of the pair among ``before``, the event and -ln p there. Evidence below
        ``before`` or below ln(1/alpha) may be left out.
    open_weight : int
        `WHOLE` less the weights of the pairs decided before.

    Notes
    -----
    As evidence counts by its maximum so far, the pairs decided in the end are those that `step_down` decides on the largest evidence of all
    events. Only their rows are then followed event by event.

    Examples
    --------
    >>> rows = ([0, 1, 0, 1], [0, 1, 2, 3], [3.2, 3.7, 3.8, 9.0])
    >>> found = step_down_events([0.0, 0.0], family_weights([1, 2], 2), rows)
    >>> found.pair.tolist(), found.when.tolist(), np.exp(found.threshold_log).round().tolist()
    ([0, 1], [1, 1], [20.0, 40.0])
    """
    best, units = _family(before, weights, alpha)
    of, when, evidence = np.asarray(rows[0], np.intp), np.asarray(rows[1], np.int64), np.asarray(rows[2], np.float64)
    largest = best.copy()
    np.maximum.at(largest, of, evidence)
    final = step_down(largest, units, open_weight, alpha)
    if not final.pair.size:
        return Decisions(final.pair, np.zeros(0, np.int64), final.threshold_log, open_weight)
    place = np.full(best.size, -1)
    place[final.pair] = np.arange(final.pair.size)
    units = units[final.pair]
    shares = _log_shares(units, alpha)
    score = best[final.pair] + shares
    # A row below the lowest threshold of all decides nothing.
    of, evidence = place[of], evidence + shares[place[of]]
    some = np.flatnonzero((of >= 0) & (evidence >= log(max(final.open_weight, 1)) - TOLERANCE))
    of, when, evidence = of[some], when[some], evidence[some]
    some = _rising(of, when, evidence, score)
    of, when, evidence = of[some], when[some], evidence[some]
    # Thresholds never rise: a pair is decided at the latest when it reaches the present one, and its later rows are idle.
    reaching = np.flatnonzero(evidence >= log(max(open_weight, 1)) - TOLERANCE)
    latest = np.full(score.size, np.iinfo(np.int64).max)
    pair, first = np.unique(of[reaching], return_index=True)
    latest[pair] = when[reaching[first]]
    kept = np.flatnonzero(when <= latest[of])
    kept = kept[np.argsort(when[kept], kind="stable")]
    of, when, evidence = of[kept], when[kept], evidence[kept]
    need = log(max(open_weight, 1))
    # A heap; a pair counts by the first of its entries.
    highest = [(-value, k) for k, value in enumerate(score.tolist())]
    heapify(highest)
    waiting = set(range(score.size))
    weight, share = units.tolist(), shares.tolist()
    decided: list[tuple[int, int, float]] = []
    rows_in_time = zip(when.tolist(), of.tolist(), evidence.tolist(), strict=True)
    for event, group in groupby(rows_in_time, key=itemgetter(0)):
        for _, k, value in group:
            heappush(highest, (-value, k))
        while highest and -highest[0][0] >= need - TOLERANCE:
            met = set()
            while highest and -highest[0][0] >= need - TOLERANCE:
                met.add(heappop(highest)[1])
            met &= waiting
            waiting -= met
            decided += [(event, k, need - share[k]) for k in met]
            open_weight -= sum([weight[k] for k in met])
            need = log(max(open_weight, 1))
    at, places, thresholds = zip(*sorted(decided), strict=True)
    return Decisions(final.pair[list(places)], np.array(at, np.int64), np.array(thresholds), open_weight)


def _rising(of: Index, when: IntArray, evidence: FloatArray, before: FloatArray) -> Index:
    """Return the largest row of each pair and event that exceeds what the pair had before it, by pair, then by time.

    `before` is the evidence of each pair before all rows.
    """
    order = np.lexsort((when, of))
    pair, so_far = of[order], evidence[order]
    longest = int(np.bincount(pair).max(initial=1))
    step = 1
    while step < longest:  # a running maximum of each pair, over twice as many rows each time
        earlier = np.where(pair[step:] == pair[:-step], so_far[:-step], -np.inf)
        so_far[step:] = np.maximum(so_far[step:], earlier)
        step *= 2
    known = before[pair]
    known[1:] = np.where(pair[1:] == pair[:-1], np.maximum(known[1:], so_far[:-1]), known[1:])
    rising = order[evidence[order] > known]
    last = np.ones(rising.size, bool)
    last[:-1] = (of[rising[1:]] != of[rising[:-1]]) | (when[rising[1:]] != when[rising[:-1]])
    return rising[last]


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

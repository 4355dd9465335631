"""Statistics that the product does not use: references for those that it uses, and what may replace them."""

from heapq import heapify, heappop, heappush
from itertools import groupby
from math import log
from operator import itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.clusters.eprocess import cluster_e_process
from stats.evidence.graded import LAMBDAS, MAX_ITEMS, graded_completion_bound, histogram_capital
from stats.evidence.settled import TIE
from stats.families.error_control import WHOLE, Index, _family, _log_shares, step_down
from stats.intervals.graded_interval import _NOTHING, _low
from stats.numerics.checks import (
    TOLERANCE,
    BoolArray,
    FloatArray,
    IntArray,
    aligned,
    between,
    finite,
    level,
    non_negative,
)
from stats.numerics.mixtures import Mixture


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


def step_down_events(
    before: npt.ArrayLike,
    weights: npt.ArrayLike,
    rows: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    open_weight: int = WHOLE,
    alpha: float = 0.05,
) -> Decisions:
    """Decide undecided pairs of one family at the first event at which each meets its threshold.

    The result equals `step_down` after every single event, with the largest evidence so far; it does not depend on how events are
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


_CELLS = 4_000_000


def partition_bound(
    weights: npt.ArrayLike, undecided: npt.ArrayLike, pairs: tuple[npt.ArrayLike, npt.ArrayLike]
) -> FloatArray:
    """Return an upper bound on the weight within the groups of any partition of the models into cliques with a given pair inside one.

    It is at most the weight of all undecided pairs, and never rises as pairs are decided.

    Parameters
    ----------
    weights : array_like, shape (K, K)
        Weight of each pair of models, symmetric; the diagonal is ignored.
    undecided : array_like of bool, shape (K, K)
        The undecided pairs, symmetric.
    pairs : tuple of array_like of int (i, j), each of shape (P,)
        Undecided pairs whose bound is asked for.

    Notes
    -----
    The weight is half the sum over models of what each has with its own group. A model's group has at most r other members, r the largest
    number such that the model has r undecided pairs of which each lies in r - 1 triangles; so its part is at most the sum of its r largest
    weights. The two models of the pair share a group with common neighbours only, and no other model has them in its group.
    Time and memory grow as P K^2.

    Examples
    --------
    >>> chain = np.abs(np.subtract.outer(range(6), range(6))) == 1
    >>> partition_bound(np.ones((6, 6)), chain, ([0, 2], [1, 3])).tolist()
    [3.0, 3.0]
    """
    value, graph = _graph(weights, undecided)
    first, second = (np.asarray(x, np.intp).ravel() for x in pairs)
    if first.size and not graph[first, second].all():
        raise ValueError("pairs must be undecided: the bound assumes that the pair lies within one group")
    value = np.where(graph, value, 0.0)
    common = graph.astype(np.int64) @ graph
    triangles = -np.sort(-np.where(graph, common, -1), axis=1)
    reach = (triangles >= np.arange(graph.shape[0])).sum(axis=1)
    out = np.empty(first.size)
    models = np.arange(graph.shape[0])
    step = max(1, _CELLS // max(graph.size, 1))
    for start in range(0, first.size, step):
        i, j = first[start : start + step, None], second[start : start + step, None]
        shared = graph[i[:, 0]] & graph[j[:, 0]]
        own = (models == i) | (models == j)
        # Who may be in a group with whom: the pair with its common neighbours, everybody else without the pair.
        inside, outside = own | shared, ~own
        may = (inside[:, :, None] & inside[:, None, :]) | (outside[:, :, None] & outside[:, None, :])
        largest = -np.sort(-np.where(may, value, 0.0), axis=2)
        most = np.where(own, np.minimum(reach, shared.sum(axis=1)[:, None] + 1), reach)
        part = np.where(np.arange(largest.shape[2]) < most[:, :, None], largest, 0.0).sum(axis=(1, 2))
        out[start : start + step] = part / 2
    return np.asarray(np.minimum(out, value.sum() / 2))


def transitive_step_down(
    evidence: npt.ArrayLike,
    weights: npt.ArrayLike,
    decided: npt.ArrayLike,
    later: float = 0.0,
    alpha: float = 0.05,
) -> BoolArray:
    """Decide undecided pairs of a family by their evidence at one moment, until nothing changes, with the bound of `partition_bound`.

    It decides every pair that Holm's procedure decides, and keeps the same error: at the first wrong decision some pair of equal models has
    a p-value of at most alpha times its share of the weight within the true groups.

    Parameters
    ----------
    evidence : array_like, shape (K, K)
        -ln p of each pair, symmetric: ln of the largest e so far, or -ln of the p-value; the diagonal is ignored.
    weights : array_like, shape (K, K)
        Weights of the pairs, symmetric; with ``later`` they add up to at most 1.
    decided : array_like of bool, shape (K, K)
        The pairs decided before, symmetric.
    later : float
        Weight of hypotheses to come, all of which may be true.

    Returns
    -------
    ndarray of bool, shape (K, K)
        The pairs decided before or now.

    Examples
    --------
    >>> evidence = [[0, 9, 9], [9, 0, 3.2], [9, 3.2, 0]]
    >>> transitive_step_down(evidence, np.full((3, 3), 1 / 3), np.zeros((3, 3), bool)).astype(int).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    before = np.asarray(decided, np.bool_)
    value, graph = _graph(weights, ~before)
    level(alpha=alpha)
    between(0, 1, later=later)
    given = np.asarray(evidence, np.float64)
    if given.shape != value.shape or not np.array_equal(given, given.T):
        raise ValueError(f"evidence must be a symmetric matrix like weights, got shape {given.shape}")
    first, second = np.nonzero(np.triu(graph & (given >= -np.log(alpha) - TOLERANCE) & (value > 0), 1))
    while first.size:
        limit = np.log(partition_bound(value, graph, (first, second)) + later) - np.log(alpha * value[first, second])
        met = given[first, second] >= limit - TOLERANCE
        if not met.any():
            break
        graph[first[met], second[met]] = graph[second[met], first[met]] = False
        first, second = first[~met], second[~met]
    return np.asarray(~graph & ~np.eye(graph.shape[0], dtype=np.bool_))


def _graph(weights: npt.ArrayLike, undecided: npt.ArrayLike) -> tuple[FloatArray, BoolArray]:
    """Return checked weights and the graph of undecided pairs, without its diagonal."""
    (value,) = finite(weights=weights)
    graph = np.asarray(undecided, np.bool_)
    if value.ndim != 2 or value.shape[0] != value.shape[1] or graph.shape != value.shape:
        raise ValueError(f"weights and pairs must be square matrices of one size, got {value.shape} and {graph.shape}")
    if not np.array_equal(value, value.T) or not np.array_equal(graph, graph.T):
        raise ValueError("weights and pairs must be symmetric: a pair has one weight and one verdict")
    if (value < 0).any():
        raise ValueError(f"weights must be non-negative, got {value.min()}")
    return value, graph & ~np.eye(graph.shape[0], dtype=np.bool_)


def graded_completion_interval(
    values: npt.ArrayLike,
    counts: npt.ArrayLike,
    missing: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
    lambdas: npt.ArrayLike = LAMBDAS,
) -> tuple[FloatArray, FloatArray]:
    """Return the interval for the gap of graded scores on a benchmark of known size, some items of which may be missing.

    It leaves out 0 exactly when `stats.evidence.graded.graded_completion_bound` reaches ln(1/alpha).

    Parameters
    ----------
    values : array_like, shape (V,)
        The distinct differences D, in [-1, 1].
    counts : array_like of int, shape (*P, V)
        Items of each pair with each difference.
    missing : array_like of int, shape P
        Items of the benchmark that a pair does not share yet.
    alpha : array_like
        1 - coverage, of shape P or a number.
    lambdas : array_like, shape (L,)
        Bets in (0, 1), equally weighted.

    Returns
    -------
    low, high : ndarray, shape P
        Bounds in [-1, 1].

    Examples
    --------
    >>> low, high = graded_completion_interval([-1, 0, 0.5, 1], [[40, 100, 60, 100]], [[0], [20]])
    >>> low.round(3).ravel().tolist(), high.round(3).ravel().tolist()
    ([0.173, 0.085], [0.422, 0.462])
    """
    (number,) = non_negative(counts=counts)
    (rest,) = non_negative(missing=missing)
    (a,) = level(alpha=alpha)
    aligned(counts=number[..., 0], missing=rest, alpha=a)
    shape = np.broadcast_shapes(number.shape[:-1], rest.shape, a.shape)
    bound = graded_completion_bound(histogram_capital(values, number, lambdas), rest, lambdas)
    held = number.sum(axis=-1) + rest <= MAX_ITEMS  # more than the sum of bets can hold decides nothing
    for_a, for_b = (np.broadcast_to(held & (x >= -np.log(a) - TOLERANCE), shape) for x in bound)
    difference, bets = np.asarray(values, np.float64), np.asarray(lambdas, np.float64)
    number = np.broadcast_to(number, (*shape, number.shape[-1])).reshape(-1, number.shape[-1])
    rest, a = np.broadcast_to(rest, shape).ravel(), np.broadcast_to(a, shape).ravel()
    low = _low(difference, number, rest, a, bets).reshape(shape)
    high = -_low(-difference, number, rest, a, bets).reshape(shape)
    # The verdict is read off the evidence; the rounding of a root must not undo it.
    low = np.where(for_a, np.maximum(low, _NOTHING), np.minimum(low, 0))
    high = np.where(for_b, np.minimum(high, -_NOTHING), np.maximum(high, 0))
    return low, high


def certain_side(
    low: npt.ArrayLike, high: npt.ArrayLike, missing: npt.ArrayLike, unit: int = 1
) -> npt.NDArray[np.int8]:
    """Return which model certainly leads on all N items: 1 for A, -1 for B, `TIE` if they are all in and sum to 0, and 0 if it is open.

    Parameters
    ----------
    low, high : array_like of int
        The lowest and the highest sum of D that the items so far allow, in units; b - c twice if none is skipped.
    missing : array_like of int
        Items still to come. Count a skipped item either here or in ``low`` and ``high``.
    unit : int
        The integer that is a score of 1.

    Examples
    --------
    >>> certain_side([3, 3, -4, 0], [3, 3, -4, 0], [2, 3, 3, 0]).tolist()
    [1, 0, -1, 2]
    """
    lowest, highest, rest = (np.asarray(x, np.int64) for x in (low, high, missing))
    non_negative(missing=rest)
    room = rest * unit
    side = np.where(lowest > room, 1, np.where(-highest > room, -1, 0))
    return np.where((lowest == 0) & (highest == 0) & (rest == 0), TIE, side).astype(np.int8)


def cluster_e_max(clusters: int, mixture: str | Mixture = "grid98") -> float:
    """Return the largest e-value that many clusters can reach, when one model wins every item of every cluster.

    Examples
    --------
    >>> round(cluster_e_max(14), 1), round(cluster_e_max(14, "beta(1,1)"), 1)
    (1032.9, 1092.3)
    """
    if clusters < 0:
        raise ValueError(f"clusters must be >= 0: got {clusters}")
    ones = np.ones(max(clusters, 1))
    return float(np.exp(cluster_e_process(ones * (clusters > 0), ones * (clusters > 0), mixture=mixture)[0]))

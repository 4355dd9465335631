"""What transitivity adds to a step-down: equality of models is transitive where all pairs share their items (Shaffer, 1986).

Models that are equal form groups, and the true hypotheses are the pairs within groups. As long as no error has been made, none of them is
decided: the groups are cliques of the graph of undecided pairs. Pair j may then be decided at

    p_j <= alpha w_j / W_j,    W_j = max of the weight within groups, over partitions of the models into cliques with j inside one,

where Holm's procedure divides by the weight of all undecided pairs. An upper bound of W_j will do in its place. Nothing here holds
for pairs on different items: their equality is not transitive.
"""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import TOLERANCE, BoolArray, FloatArray, between, finite, level

CLOSURE_MODELS = 500
"""Models up to which decisions are closed transitively; above it the matrix products cost too much."""

_CELLS = 4_000_000


def transitive_closure(decided: BoolArray) -> BoolArray:
    """Add to decisions what follows from them: A over B and B over C make A over C.

    With probability 1 - alpha no family-wise decision is false, and then nothing that follows from them is: the closure adds no error. This
    holds among models that are compared on the same items only.
    Decisions that contradict each other (a cycle) cannot all be true; they are returned unchanged.

    Parameters
    ----------
    decided : array of bool, shape (models, models)
        ``decided[i, j]``: model i is decided to be better than model j.

    Examples
    --------
    >>> transitive_closure(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool))[0].tolist()
    [False, True, True]
    """
    closed = decided
    while True:
        steps = closed.astype(np.float32)
        grown = closed | (steps @ steps > 0)
        if (grown == closed).all():
            break
        closed = grown
    return decided if closed.diagonal().any() else closed


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
    evidence: npt.ArrayLike, weights: npt.ArrayLike, decided: npt.ArrayLike, later: float = 0.0, alpha: float = 0.05
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

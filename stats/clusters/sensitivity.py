"""Show how far a cluster-aware verdict depends on the given clusters: resample them, drop one, define others.

``n``, ``s1``, ``s2`` are the sums per pair and cluster of `stats.clusters.robust`.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from stats.clusters.robust import Anova, check_sums, design_effect, iid_required_n
from stats.numerics.checks import FloatArray, IntArray

# Pairs are taken in slabs of about this many (pair, replicate) cells, so that memory does not grow with the pairs.
_CELLS = 2_000_000


class CategoryBootstrap(NamedTuple):
    """Percentile intervals from resampled clusters, for each pair and for the number of unresolved pairs."""

    icc: FloatArray
    """(P, 2) percentile interval of the intra-cluster correlation."""
    design_effect: FloatArray
    """(P, 2) percentile interval of the design effect."""
    required_n: FloatArray
    """(P, 2) percentile interval of the cluster N*, in items."""
    unresolved: FloatArray
    """(P,) share of the replicates in which the cluster N* exceeds N."""
    unresolved_count: FloatArray
    """(P + 1,) share of the replicates with 0, 1, ..., P unresolved pairs."""


class LeaveOneOut(NamedTuple):
    """Every pair without cluster g, in column g."""

    icc: FloatArray
    """(P, G) intra-cluster correlation."""
    design_effect: FloatArray
    """(P, G) design effect."""
    required_n: FloatArray
    """(P, G) cluster N*, in items."""
    resolution_ratio: FloatArray
    """(P, G) items left over the cluster N*."""
    unresolved_count: IntArray
    """(G,) pairs with a resolution ratio below 1."""


def _terms(n: FloatArray, s1: FloatArray, s2: FloatArray) -> Anova:
    """Return the terms per cluster whose (weighted) sums are an `Anova`."""
    return Anova((n > 0).astype(np.float64), n, n**2, s1, s2, s1**2 / np.maximum(n, 1))


def _rows(n: ArrayLike, s1: ArrayLike, s2: ArrayLike) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the checked sums as matrices of at least two clusters."""
    size, d1, d2 = (np.atleast_2d(array) for array in check_sums(n, s1, s2))
    if size.shape[1] < 2:
        raise ValueError(f"n must hold at least two clusters to resample or drop: got {size.shape[1]}")
    return size, d1, d2


def category_bootstrap(
    n: ArrayLike,
    s1: ArrayLike,
    s2: ArrayLike,
    *,
    replicates: int = 1000,
    seed: int = 42,
    interval: tuple[float, float] = (0.05, 0.95),
    alpha: float = 0.05,
    power: float = 0.8,
) -> CategoryBootstrap:
    """Resample whole clusters with replacement and recompute ICC, design effect and cluster N*.

    One draw of G clusters serves all pairs, so the count of unresolved pairs keeps their dependence. The N* for
    independent items stays at its full-data value (the paper's protocol): the intervals show the uncertainty of the
    cluster structure alone, and a full bootstrap would give wider ones.

    Parameters
    ----------
    replicates, seed
        number of resamples, and the seed of the generator they come from.
    interval
        the two percentile levels.
    alpha, power
        operating point of N*.

    References
    ----------
    The paper, "Cluster-bootstrap CIs for MMLU-Pro ICC".

    Examples
    --------
    >>> result = category_bootstrap([[50, 50, 50]], [[10, 10, 10]], [[20, 20, 20]], replicates=20)
    >>> result.design_effect.tolist(), result.unresolved_count.tolist()
    ([[1.0, 1.0]], [1.0, 0.0])
    """
    size, d1, d2 = _rows(n, s1, s2)
    if replicates < 1:
        raise ValueError(f"replicates must be at least 1: got {replicates}")
    if not 0 <= interval[0] <= interval[1] <= 1:
        raise ValueError(f"interval must be two levels 0 <= low <= high <= 1: got {interval}")
    pairs, clusters = size.shape
    draws = np.random.default_rng(seed).integers(clusters, size=(replicates, clusters))
    weights = np.zeros((clusters, replicates))
    np.add.at(weights, (draws, np.arange(replicates)[:, None]), 1.0)

    bounds = np.empty((3, pairs, 2))
    unresolved = np.empty(pairs)
    count = np.zeros(replicates, dtype=np.int64)
    step = max(1, _CELLS // replicates)
    for start in range(0, pairs, step):
        slab = slice(start, start + step)
        terms = _terms(size[slab], d1[slab], d2[slab])
        required = iid_required_n(Anova(*(term.sum(-1) for term in terms)), alpha, power)[:, None]
        drawn = Anova(*(term @ weights for term in terms))
        icc = drawn.icc()
        effect = design_effect(icc, np.fmax(drawn.mean_size(), 1.0))
        with np.errstate(invalid="ignore"):  # interpolating between infinite N* of a pair with gap 0
            bounds[:, slab] = [np.quantile(x, interval, axis=1).T for x in (icc, effect, required * effect)]
        bounds[2, slab] = np.where(np.isinf(required), np.inf, bounds[2, slab])
        beyond = ~(required * effect <= size[slab].sum(-1)[:, None])
        unresolved[slab] = beyond.mean(1)
        count += beyond.sum(0)
    share = np.bincount(count, minlength=pairs + 1) / replicates
    return CategoryBootstrap(bounds[0], bounds[1], bounds[2], unresolved, share)


def leave_one_out(
    n: ArrayLike, s1: ArrayLike, s2: ArrayLike, *, alpha: float = 0.05, power: float = 0.8
) -> LeaveOneOut:
    """Drop each cluster in turn and recompute gap, ICC, design effect, cluster N* and resolution on the remaining items.

    Parameters
    ----------
    alpha, power
        operating point of N*.

    References
    ----------
    The paper, "Leave-one-subject-out cluster robustness".

    Examples
    --------
    >>> result = leave_one_out([[50, 50, 50]], [[10, 10, 30]], [[20, 20, 30]])
    >>> result.icc.argmin(), result.unresolved_count.tolist()  # the third cluster is the one that differs
    (np.int64(2), [1, 1, 0])
    """
    terms = _terms(*_rows(n, s1, s2))
    left = Anova(*(term.sum(-1, keepdims=True) - term for term in terms))
    icc = left.icc()
    effect = design_effect(icc, np.fmax(left.mean_size(), 1.0))
    required = iid_required_n(left, alpha, power) * effect
    with np.errstate(divide="ignore"):
        ratio = left.items / required
    return LeaveOneOut(icc, effect, required, ratio, (~(ratio >= 1)).sum(0))


def random_clusters(items: int, clusters: int, rng: "np.random.Generator") -> IntArray:
    """Draw cluster labels at random, of sizes that differ by at most one: the null check, with an ICC near 0.

    Examples
    --------
    >>> np.bincount(random_clusters(7, 3, np.random.default_rng(0))).tolist()
    [3, 2, 2]
    """
    if not 1 <= clusters <= items:
        raise ValueError(f"clusters must be between 1 and the number of items {items}: got {clusters}")
    return rng.permutation(np.arange(items) % clusters)


def difficulty_clusters(mean_scores: ArrayLike, clusters: int = 4) -> IntArray:
    """Return cluster labels by difficulty: quantile bins of each item's mean score over the models, hardest first.

    Equal means never straddle two bins, so bins may be unequal and some may stay empty. The bins are made from the
    scores under test, which pushes the ICC of D up: a sensitivity check and no basis for a claim.

    Parameters
    ----------
    mean_scores
        shape (I,), each item's mean score.
    clusters
        number of bins; 4 gives the paper's quartiles.

    Examples
    --------
    >>> difficulty_clusters([0.0, 0.2, 0.9, 1.0, 0.2], 2).tolist()
    [0, 0, 1, 1, 0]
    """
    means = np.asarray(mean_scores, dtype=np.float64)
    if clusters < 1:
        raise ValueError(f"clusters must be at least 1: got {clusters}")
    if not np.all(np.isfinite(means)):
        raise ValueError("mean_scores must be finite: leave out items that no model has answered")
    edges = np.quantile(means, np.arange(1, clusters) / clusters)
    return np.searchsorted(edges, means, side="left").astype(np.int64)


def split_halves(labels: ArrayLike) -> IntArray:
    """Split every cluster in two by the parity of the item's place in it: label 2 g for even places, 2 g + 1 for odd.

    Examples
    --------
    >>> split_halves([0, 0, 1, 0, 1]).tolist()
    [0, 1, 2, 0, 3]
    """
    label = np.asarray(labels, dtype=np.int64)
    order = np.argsort(label, kind="stable")
    ordered = label[order]
    place = np.arange(label.size) - np.searchsorted(ordered, ordered)
    halves = np.empty_like(label)
    halves[order] = 2 * ordered + place % 2
    return halves

"""The pairs of a leaderboard under one-way clustering of their items."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.pairs import Index
from monitor.report.pair_table import Floats, PairTable, Sides, on_shared_squares

CELL_BUDGET: Final = 20_000_000
"""Pairs times clusters up to which cluster sums are computed for every pair; beyond it for the listed pairs alone."""


@dataclass(frozen=True)
class ClusterColumns:
    """Cluster statistics, shape (pairs,) each; nan where a pair has too few clusters for them, or was not computed.

    Only `p` and `decided` are of every pair: those that are not listed are in the family too.
    """

    clusters: NDArray[np.int64]
    icc: Floats
    design_effect: Floats
    required_n: Floats
    p: Floats
    decided: Sides


@dataclass(frozen=True)
class ClusterSums:
    """Sums of some pairs by cluster, shape (pairs, clusters) each; `s2` may be of fewer of them."""

    names: list[str]
    label: NDArray[np.int64]
    """Cluster of each row that bets."""
    n: Floats
    s1: Floats
    s2: Floats


def cluster_sums(table: PairTable, at: Index, squared: Index | slice = slice(None)) -> ClusterSums | None:
    """Return the sums of the pairs `at` over each cluster, those of squares only of the places `squared` in `at`.

    None unless every item carries a cluster, there are at least two of them, and they fit the budget.
    """
    benchmark = table.benchmark
    found = benchmark.item_clusters()
    if None in found:
        return None
    names, label = np.unique(np.array(found, dtype=object).astype(str), return_inverse=True)
    groups = names.size
    if groups < 2 or groups * at.size > CELL_BUDGET:
        return None
    x, scored = table.scores
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(groups + 1))
    a, b = table.a[at], table.b[at]
    c, d = a[squared], b[squared]
    n, s1, s2 = (np.zeros((pairs, groups)) for pairs in (a.size, a.size, c.size))
    for g in range(groups):
        rows = order[bounds[g] : bounds[g + 1]]
        values, present = x[rows], scored[rows]
        n[:, g] = (present.T @ present)[a, b]
        on_shared = values.T @ present
        squares = on_shared if benchmark.binary else on_shared_squares(values, present)
        s1[:, g] = on_shared[a, b] - on_shared[b, a]
        s2[:, g] = squares[c, d] + squares[d, c] - 2 * (values.T @ values)[c, d]
    return ClusterSums(names.tolist(), label, n, s1, np.maximum(s2, 0))


def cluster_columns(table: PairTable, listed: Index) -> ClusterColumns | None:
    """Return the cluster statistics: of every pair, or of the listed ones where all of them exceed the budget."""
    from stats.clusters import cluster_icc, cluster_required_n, clustered_p, design_effect
    from stats.families import holm

    pairs = table.pair.size
    at = np.arange(pairs)
    shown: Index | slice = listed
    sums = cluster_sums(table, at, shown)
    if sums is None:
        at, shown = listed, slice(None)
        sums = cluster_sums(table, at)
    if sums is None:
        return None
    spec = table.benchmark.spec
    n_star, p, icc, effect = (np.full(pairs, np.nan) for _ in range(4))
    p[at] = clustered_p(sums.n, sums.s1)
    n, s1, s2 = sums.n[shown], sums.s1[shown], sums.s2
    clusters = np.zeros(pairs, np.int64)
    clusters[listed] = (n > 0).sum(axis=1)
    n_star[listed] = cluster_required_n(n, s1, s2, spec.alpha, spec.power)
    icc[listed] = cluster_icc(n, s1, s2)
    effect[listed] = design_effect(icc[listed], np.maximum(table.n[listed] / np.maximum(clusters[listed], 1), 1.0))
    # A pair without a p-value stays in the family as p = 1: Holm's adjustment of the others can only grow by it.
    adjusted = np.ones(pairs)
    inside = table.in_family
    adjusted[inside] = holm(np.where(np.isfinite(p), p, 1.0)[inside]) if inside.any() else 1.0
    decided = np.where(adjusted <= spec.alpha, table.direction(), 0).astype(np.int8)
    return ClusterColumns(clusters, icc, effect, n_star, p, decided)

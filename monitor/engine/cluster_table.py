"""The pairs of a leaderboard under one-way clustering of their items."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.pair_table import Floats, PairTable, Sides, on_shared_squares

CELL_BUDGET: Final = 20_000_000
"""Pairs times clusters up to which cluster sums are kept for every pair; beyond it clustering is not computed for all pairs."""


@dataclass(frozen=True)
class ClusterColumns:
    """Cluster statistics of every pair, shape (pairs,) each; nan where a pair has too few clusters for them."""

    clusters: NDArray[np.int64]
    icc: Floats
    design_effect: Floats
    required_n: Floats
    p: Floats
    decided: Sides


def cluster_columns(table: PairTable) -> ClusterColumns | None:
    """Return the cluster statistics, or None when items carry no clusters (or too many for the number of pairs).

    Every item has to carry a cluster, and there have to be at least two of them.
    """
    from stats.clusters import cluster_icc, cluster_required_n, clustered_p, design_effect
    from stats.families import holm

    benchmark = table.benchmark
    names = [row.cluster for row, counts in zip(benchmark.rows, benchmark.counts_row, strict=False) if counts]
    if None in names:
        return None
    labels, label = np.unique(np.array(names, dtype=object).astype(str), return_inverse=True)
    groups = labels.size
    if groups < 2 or groups * table.pair.size > CELL_BUDGET:
        return None

    x, scored = table._scores()  # noqa: SLF001 - the same rows
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(groups + 1))
    n, s1, s2 = (np.zeros((table.pair.size, groups)) for _ in range(3))
    a, b = table.a, table.b
    for g in range(groups):
        rows = order[bounds[g] : bounds[g + 1]]
        values, present = x[rows], scored[rows]
        n[:, g] = (present.T @ present)[a, b]
        on_shared = values.T @ present
        squares = on_shared if benchmark.binary else on_shared_squares(values, present)
        s1[:, g] = on_shared[a, b] - on_shared[b, a]
        s2[:, g] = squares[a, b] + squares[b, a] - 2 * (values.T @ values)[a, b]
    s2 = np.maximum(s2, 0)

    spec = benchmark.spec
    clusters = (n > 0).sum(axis=1)
    n_star = cluster_required_n(n, s1, s2, spec.alpha, spec.power)
    p = clustered_p(n, s1)
    icc = cluster_icc(n, s1, s2)
    effect = design_effect(icc, np.maximum(table.n / np.maximum(clusters, 1), 1.0))
    adjusted = np.ones(p.size)
    inside = table.in_family & np.isfinite(p)
    adjusted[inside] = holm(p[inside]) if inside.any() else 1.0
    decided = np.where(adjusted <= spec.alpha, table.direction(), 0).astype(np.int8)
    return ClusterColumns(clusters, icc, effect, n_star, p, decided)

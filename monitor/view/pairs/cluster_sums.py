"""Sums of pairs over clusters of items, and the cluster-robust test of every pair."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np

from monitor.view.board import BoardView
from monitor.view.kinds.kind import FEW, SLAB_CELLS, Kind
from monitor.view.pairs.counts import Floats
from stats.clusters.robust import clustered_t
from stats.numerics.pairs import Index

CELL_BUDGET: Final = 20_000_000
"""Pairs times clusters up to which cluster sums are computed for every pair; above it only for the displayed pairs."""

_BLOCK_PAIRS: Final = 12_288
"""Pairs whose sums of all clusters are computed at a time: they stay in the processor's cache."""


class ClusterSums(NamedTuple):
    """Sums of some pairs by cluster, shape (pairs, clusters) each."""

    names: list[str]
    label: Index  # cluster of each row that bets; -1 for one without a cluster
    n: Floats
    s1: Floats
    s2: Floats


def labels(benchmark: BoardView) -> tuple[list[str], Index]:
    """Return the clusters by name, and the place of each item's cluster among them: -1 for an item without one."""
    of_item = benchmark.item_clusters()
    names = sorted({name for name in of_item if name is not None})
    place: dict[str | None, int] = {name: g for g, name in enumerate(names)} | {None: -1}
    return names, np.array([place[name] for name in of_item], np.int64)


def cluster_sums(kind: Kind, at: Index) -> ClusterSums | None:
    """Return the sums of the pairs `at` over each cluster."""
    # Items without a cluster are omitted. None unless there are at least two clusters, and the sums fit the budget.
    names, label = labels(kind.benchmark)
    groups = len(names)
    if groups < 2 or groups * at.size > CELL_BUDGET:
        return None
    few = at.size <= FEW * kind.pairs.size
    n, s1, s2 = np.zeros((3, groups, at.size))
    a, b = kind.pairs.a[at], kind.pairs.b[at]
    for g, (x, scored) in enumerate(_by_cluster(kind, label, groups)):
        for start in range(0, x.shape[0] if few else 0, max(1, SLAB_CELLS // max(1, at.size))):
            # Sums over all pairs are products of matrices of all models.
            slab = slice(start, start + max(1, SLAB_CELLS // max(1, at.size)))
            values, present = x[slab], scored[slab]
            shared = present[:, a] * present[:, b]
            difference = (values[:, a] - values[:, b]) * shared
            for sums, each in ((n, shared), (s1, difference), (s2, difference * difference)):
                sums[g] += each.sum(axis=0)
        if not few:
            on_shared = x.T @ scored
            squares = kind.squares(x, scored)
            n[g], s1[g] = (scored.T @ scored)[a, b], on_shared[a, b] - on_shared[b, a]
            s2[g] = squares[a, b] + squares[b, a] - 2 * (x.T @ x)[a, b]
    constant = kind.constant()
    if constant is not None:
        same, gap = (each[at] for each in constant)
        s1[:, same] = gap[same] * n[:, same]
        s2[:, same] = gap[same] ** 2 * n[:, same]
    # Statistics run over pairs, which lie side by side.
    return ClusterSums(names, label, n.T, s1.T, np.maximum(s2, 0).T)


def _by_cluster(kind: Kind, label: Index, groups: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield scores and presence in the rows of each cluster."""
    x, scored = kind.scores
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(groups + 1))
    for start, end in pairwise(bounds.tolist()):
        rows = order[start:end]
        yield x[rows], scored[rows]


def pair_t(kind: Kind) -> tuple[Floats, Floats] | None:
    """Return t of the cluster-robust test of every pair and its degrees of freedom; None without clusters, or beyond the budget."""
    names, label = labels(kind.benchmark)
    groups, ranking = len(names), kind.pairs.ranking
    if groups < 2 or groups * kind.pairs.size > CELL_BUDGET:
        return None
    parts = [_Cluster.of(x[:, ranking], scored[:, ranking]) for x, scored in _by_cluster(kind, label, groups)]
    constant = kind.constant()
    t, df = np.zeros((2, kind.pairs.size))
    models, start = ranking.size, 0
    step = max(1, _BLOCK_PAIRS // models)
    for first in range(0, models - 1, step):
        better = slice(first, min(first + step, models - 1))
        n, s1 = np.zeros((2, groups, better.stop - first, models - first))
        for g, part in enumerate(parts):
            part.add(better, n[g], s1[g])
        upper = np.arange(first, models) > np.arange(better.start, better.stop)[:, None]
        some = slice(start, start := start + int(np.count_nonzero(upper)))
        if constant is not None:
            same, gap = np.zeros(upper.shape, bool), np.zeros(upper.shape)
            same[upper], gap[upper] = (each[some] for each in constant)
            s1 = np.where(same, gap * n, s1)  # as in `cluster_sums`
        t[some], df[some] = (each[upper] for each in clustered_t(*(np.moveaxis(each, 0, -1) for each in (n, s1))))
    return t, df


class _Cluster(NamedTuple):
    """The scores of a cluster by rank: sums over the items that every model has, and the rows of the others."""

    items: int
    scores: Floats
    values: Floats
    present: Floats

    @classmethod
    def of(cls, values: Floats, present: Floats) -> Self:
        """Split the rows."""
        whole = present.all(axis=1)
        return cls(int(np.count_nonzero(whole)), values[whole].sum(axis=0), values[~whole], present[~whole])

    def add(self, better: slice, n: Floats, s1: Floats) -> None:
        """Add shared items and sums of D: of the ranks `better` with each from the first of them on."""
        later = slice(better.start, None)
        n += self.items
        s1 += self.scores[better, None] - self.scores[later]
        if len(self.values):
            values, present = self.values[:, later], self.present[:, later]
            n += self.present[:, better].T @ present
            s1 += self.values[:, better].T @ present - self.present[:, better].T @ values

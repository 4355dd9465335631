"""The pairs of a leaderboard when items come in clusters, and every procedure by name, the cluster-aware one included."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np

from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs.index import Index
from monitor.report.pairs.counts import FEW, SLAB_CELLS, Floats, on_shared_squares
from monitor.report.pairs.evidence import Sides, resolution_ratio
from monitor.report.pairs.table import PairTable
from monitor.report.sentences import ClusterFacts, cluster_warning
from schemas.results.report import DECISION_PROCEDURES, ClustersReport

CELL_BUDGET: Final = 20_000_000
"""Pairs times clusters up to which cluster sums are computed for every pair; above it only for the displayed pairs."""

_BLOCK_PAIRS: Final = 12_288
"""Pairs whose sums of all clusters are computed at a time: they stay in the processor's cache."""

NEIGHBOURS: Final = "bonferroni_adjacent"
"""The procedure that is computed for adjacent pairs only: Bonferroni over the neighbours in rank."""


@dataclass(frozen=True)
class ClusterColumns:
    """Cluster statistics, shape (pairs,) each; nan where a pair has too few clusters, or is not displayed.

    Only `decided` is of every pair, since all pairs are in the family.
    """

    clusters: Index
    effective: Floats
    unlabelled: Index
    icc: Floats
    design_effect: Floats
    required_n: Floats
    p: Floats
    decided: Sides


class ClusterSums(NamedTuple):
    """Sums of some pairs by cluster, shape (pairs, clusters) each."""

    names: list[str]
    label: Index
    """Cluster of each row that bets; -1 for one without a cluster."""
    n: Floats
    s1: Floats
    s2: Floats


def labels(benchmark: Benchmark) -> tuple[list[str], Index]:
    """Return the clusters by name, and the place of each item's cluster among them: -1 for an item without one."""
    of_item = benchmark.item_clusters()
    names = sorted({name for name in of_item if name is not None})
    place: dict[str | None, int] = {name: g for g, name in enumerate(names)} | {None: -1}
    return names, np.array([place[name] for name in of_item], np.int64)


def clusters_report(table: PairTable, displayed: Index) -> ClustersReport | None:
    """Report the clusters of a benchmark, and why to read clustered results with care; None where no item carries a cluster."""
    names, label = labels(table.benchmark)
    if not names:
        return None
    # Most reports have no clusters: this module is not loaded for them.
    from stats.clusters.robust import FEW_CLUSTERS, effective_clusters  # noqa: PLC0415

    sizes = np.bincount(label[label >= 0])
    largest = int(sizes.argmax())
    facts = ClusterFacts(
        clusters=len(names),
        effective=float(effective_clusters(sizes)),
        few=FEW_CLUSTERS,
        largest=names[largest],
        share=float(sizes[largest] / sizes.sum()),
        items=label.size,
        unlabelled=int(np.count_nonzero(label < 0)),
        fits=len(names) * displayed.size <= CELL_BUDGET,
    )
    return ClustersReport(
        clusters=facts.clusters,
        effective_clusters=facts.effective,
        largest_share=facts.share,
        unlabelled=facts.unlabelled,
        warning=cluster_warning(facts),
    )


def cluster_sums(table: PairTable, at: Index) -> ClusterSums | None:
    """Return the sums of the pairs `at` over each cluster.

    Items without a cluster are omitted. None unless there are at least two clusters, and the sums fit the budget.
    """
    names, label = labels(table.benchmark)
    groups = len(names)
    if groups < 2 or groups * at.size > CELL_BUDGET:
        return None
    few = at.size <= FEW * table.size
    n, s1, s2 = np.zeros((3, groups, at.size))
    a, b = table.a[at], table.b[at]
    for g, (x, scored) in enumerate(_by_cluster(table, label, groups)):
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
            squares = on_shared if table.benchmark.binary else on_shared_squares(x, scored)
            n[g], s1[g] = (scored.T @ scored)[a, b], on_shared[a, b] - on_shared[b, a]
            s2[g] = squares[a, b] + squares[b, a] - 2 * (x.T @ x)[a, b]
    if not table.benchmark.binary:
        # Where D is the same on every item, the sums follow from it; as differences of sums of scores they carry rounding noise.
        gap, sd = (moment[at] for moment in table.moments)
        same = sd == 0
        s1[:, same] = gap[same] * n[:, same]
        s2[:, same] = gap[same] ** 2 * n[:, same]
    # Statistics run over pairs, which lie side by side.
    return ClusterSums(names, label, n.T, s1.T, np.maximum(s2, 0).T)


def _by_cluster(table: PairTable, label: Index, groups: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield scores and presence in the rows of each cluster."""
    x, scored = table.scores
    order = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[order], np.arange(groups + 1))
    for start, end in pairwise(bounds.tolist()):
        rows = order[start:end]
        yield x[rows], scored[rows]


def clustered_sides(table: PairTable) -> Sides | None:
    """Return the side that the cluster-robust test decides for each pair; None where there is none, or it exceeds the budget."""
    # Most reports have no clusters: this module is not loaded for them.
    from stats.clusters.robust import clustered_t, holm_rejects  # noqa: PLC0415

    names, label = labels(table.benchmark)
    groups, ranking = len(names), table.ranking
    if groups < 2 or groups * table.size > CELL_BUDGET or not table.in_family.any():
        return None
    parts = [_Cluster.of(x[:, ranking], scored[:, ranking]) for x, scored in _by_cluster(table, label, groups)]
    t, df = np.zeros((2, table.size))
    models, start = ranking.size, 0
    step = max(1, _BLOCK_PAIRS // models)
    for first in range(0, models - 1, step):
        better = slice(first, min(first + step, models - 1))
        n, s1 = np.zeros((2, groups, better.stop - first, models - first))
        for g, part in enumerate(parts):
            part.add(better, n[g], s1[g])
        upper = np.arange(first, models) > np.arange(better.start, better.stop)[:, None]
        some = slice(start, start := start + int(np.count_nonzero(upper)))
        if not table.benchmark.binary:
            same = np.zeros(upper.shape, bool)
            same[upper] = table.moments[1][some] == 0
            gap = np.zeros(upper.shape)
            gap[upper] = table.moments[0][some]
            s1 = np.where(same, gap * n, s1)  # as in `cluster_sums`
        t[some], df[some] = (each[upper] for each in clustered_t(*(np.moveaxis(each, 0, -1) for each in (n, s1))))
    rejected = np.zeros(table.size, bool)
    members = table.in_family
    rejected[members] = holm_rejects(t[members], df[members], table.family_size, table.benchmark.spec.alpha)
    return table.towards_lead(rejected)


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


def cluster_columns(table: PairTable, displayed: Index) -> ClusterColumns | None:
    """Return the cluster statistics of the displayed pairs, and the decisions; without `clustered_sides`, only theirs."""
    # Most reports have no clusters: this module is not loaded for them.
    from stats.clusters.robust import (  # noqa: PLC0415
        cluster_icc,
        cluster_required_n,
        clustered_p,
        design_effect,
        effective_clusters,
    )

    if table.weighted is not None:
        return _weighted_columns(table, displayed)
    sums = cluster_sums(table, displayed)
    if sums is None:
        return None
    spec, (_, _, n, s1, s2) = table.benchmark.spec, sums
    n_star, p, icc, effect, effective = np.full((5, table.size), np.nan)
    clusters, unlabelled = np.zeros((2, table.size), np.int64)
    clusters[displayed] = occupied = (n > 0).sum(axis=1)
    p[displayed] = np.where(occupied > 1, clustered_p(n, s1), np.nan)
    labelled = n.sum(axis=1)
    unlabelled[displayed] = table.n[displayed] - labelled
    effective[displayed] = effective_clusters(n)
    # Of the items to come the same share carries a cluster, so q compares like with like.
    n_star[displayed] = (
        cluster_required_n(n, s1, s2, spec.alpha, spec.power) * table.n[displayed] / labelled.clip(min=1)
    )
    icc[displayed] = cluster_icc(n, s1, s2)
    mean_size = labelled / np.maximum(occupied, 1)
    effect[displayed] = design_effect(icc[displayed], np.maximum(mean_size, 1.0))
    decided = _step_down(table, p) if table.clustered is None else table.clustered
    return ClusterColumns(clusters, effective, unlabelled, icc, effect, n_star, p, decided)


def _step_down(table: PairTable, p: Floats) -> Sides:
    """Return what Holm's procedure decides. A pair without a p-value stays in the family as p = 1: the adjustment of others only grows."""
    from stats.families.error_control import holm  # noqa: PLC0415 - only reports with clusters load it

    adjusted = np.ones(table.size)
    if table.in_family.any():
        adjusted[table.in_family] = holm(np.where(np.isfinite(p), p, 1.0)[table.in_family])
    return table.towards_lead(adjusted <= table.benchmark.spec.alpha)


def _weighted_columns(table: PairTable, displayed: Index) -> ClusterColumns | None:
    """Return the test of the weighted gap over its clusters: each enters with its weight. N* and the correlation are not computed.

    A pair that lacks a cluster has no weighted gap.
    """
    from stats.clusters.robust import clustered_p  # noqa: PLC0415 - only reports with clusters load it

    assert table.weighted is not None
    at = np.arange(table.size)
    sums = cluster_sums(table, at)
    if sums is None:
        at, sums = displayed, cluster_sums(table, displayed)
    if sums is None:
        return None
    weights, known = table.weighted.weighting.weight, (sums.n > 0).all(axis=1)
    blank, none = np.full(table.size, np.nan), np.zeros(table.size, np.int64)
    p = blank.copy()
    if known.any() and weights.size == sums.n.shape[1] > 1:
        n = np.broadcast_to(weights, sums.n[known].shape)
        p[at[known]] = clustered_p(n, n * sums.s1[known] / sums.n[known])
    return ClusterColumns(none, blank, none, blank, blank, blank, p, _step_down(table, p))


def cluster_resolution_ratio(n: Index, icc: Floats, n_star: Floats) -> Floats:
    """Return q of clustered items; nan where clusters give neither a correlation nor a finite N*."""
    return np.where(np.isfinite(icc) & np.isfinite(n_star), resolution_ratio(n, n_star), np.nan)


# --- procedures by name -----------------------------------------------------------------------------------------------------------------


def decisions(table: PairTable, clusters: ClusterColumns | None) -> dict[str, Sides | None]:
    """Return the side that each procedure decides for each pair; None where it is not computed, or its decisions do not count."""
    clustered = None if clusters is None else clusters.decided
    return {
        name: clustered if name == "clustered" else table.decided(name) for name in (*DECISION_PROCEDURES, NEIGHBOURS)
    }


def required_n_by_procedure(table: PairTable, clusters: ClusterColumns | None, at: Index) -> dict[str, Floats]:
    """Return N* of some pairs under each procedure that has one here; nan where D has no spread to estimate it from."""
    alpha = table.benchmark.spec.alpha
    needed = {"fixed_n": table.required_n(alpha, at), "bonferroni": table.required_n(alpha / table.family_size, at)}
    if table.benchmark.binary:
        needed["anytime"] = table.anytime_required_n(at)
    if clusters is not None:
        needed["clustered"] = clusters.required_n[at]
    needed[NEIGHBOURS] = table.required_n(alpha / table.neighbours, at)
    unknown = needed["fixed_n"] == 0
    return {name: np.where(unknown, np.nan, n_star) for name, n_star in needed.items()}

"""The pairs of a leaderboard when items come in clusters, and every procedure by name, the cluster-aware one included."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from monitor.view.board import Flags, Floats, Sides
from monitor.view.kinds.kind import is_resolved, resolution_ratio
from monitor.view.pairs.table import CELL_BUDGET, PairTable, cluster_sums, labels
from monitor.words.clusters import warning
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import DECISION_PROCEDURES, ClustersReport
from stats.clusters.robust import (
    FEW_CLUSTERS,
    cluster_icc,
    cluster_required_n,
    clustered_p,
    design_effect,
    effective_clusters,
)
from stats.families.error_control import holm
from stats.numerics.pairs import Index


def _count(closed: dict[str, Flags | None], table: PairTable, at: Index) -> dict[str, int]:
    """Count the pairs at which a flag is not set, only the adjacent ones for the procedure of neighbours; nothing without pairs."""
    if not at.size:
        return {}
    among = {NEIGHBOURS: table.pairs.adjacent[at]}
    everywhere = np.ones(at.size, bool)
    return {
        name: int(
            np.count_nonzero(among.get(name, everywhere) & ~(np.zeros(at.size, bool) if flags is None else flags))
        )
        for name, flags in closed.items()
    }


NEIGHBOURS: Final = "bonferroni_adjacent"
"""The procedure that is computed for adjacent pairs only: Bonferroni over the neighbours in rank."""


@dataclass(frozen=True)
class ClusterColumns:
    """Cluster statistics, shape (pairs,) each; nan where a pair has too few clusters, or is not displayed."""

    # Only `decided` is of every pair, since all pairs are in the family.
    clusters: Index
    effective: Floats
    unlabelled: Index
    icc: Floats
    design_effect: Floats
    required_n: Floats
    p: Floats
    decided: Sides


def clusters_report(table: PairTable, displayed: Index) -> ClustersReport | None:
    """Report the clusters of a benchmark, and why to read clustered results with care; None where no item carries a cluster."""
    names, label = labels(table.benchmark)
    if not names:
        return None
    sizes = np.bincount(label[label >= 0])
    largest = int(sizes.argmax())
    effective, share = float(effective_clusters(sizes)), float(sizes[largest] / sizes.sum())
    unlabelled = int(np.count_nonzero(label < 0))
    facts: list[Fact] = []
    if len(names) < 2:
        facts.append(fact(Reason.ONE_CLUSTER, cluster=names[largest]))
    elif len(names) * displayed.size > CELL_BUDGET:
        facts.append(fact(Reason.TOO_MANY_CLUSTERS, clusters=len(names)))
    elif effective < FEW_CLUSTERS:
        of_largest = {"largest": names[largest], "share": share}
        facts.append(
            fact(Reason.FEW_CLUSTERS, effective=effective, clusters=len(names), few=FEW_CLUSTERS, **of_largest)
        )
    if unlabelled:
        facts.append(fact(Reason.UNLABELLED, unlabelled=unlabelled, items=label.size))
    return ClustersReport(
        clusters=len(names),
        effective_clusters=effective,
        largest_share=share,
        unlabelled=unlabelled,
        warning=warning(facts),
        facts=facts,
    )


def cluster_columns(table: PairTable, displayed: Index) -> ClusterColumns | None:
    """Return the cluster statistics of the displayed pairs, and the decisions; without `PairTable.clustered`, only theirs."""
    weights = table.kind.cluster_weights
    if weights is not None:
        return _weighted_columns(table, weights, displayed)
    sums = cluster_sums(table.kind, displayed)
    if sums is None:
        return None
    spec, (_, _, n, s1, s2) = table.benchmark.spec, sums
    n_star, p, icc, effect, effective = np.full((5, table.pairs.size), np.nan)
    clusters, unlabelled = np.zeros((2, table.pairs.size), np.int64)
    clusters[displayed] = occupied = (n > 0).sum(axis=1)
    p[displayed] = np.where(occupied > 1, clustered_p(n, s1), np.nan)
    labelled = n.sum(axis=1)
    unlabelled[displayed] = table.pairs.n[displayed] - labelled
    effective[displayed] = effective_clusters(n)
    # Of the items to come the same share carries a cluster, so q compares like with like.
    n_star[displayed] = (
        cluster_required_n(n, s1, s2, spec.alpha, spec.power) * table.pairs.n[displayed] / labelled.clip(min=1)
    )
    icc[displayed] = cluster_icc(n, s1, s2)
    mean_size = labelled / np.maximum(occupied, 1)
    effect[displayed] = design_effect(icc[displayed], np.maximum(mean_size, 1.0))
    decided = _step_down(table, p) if table.clustered is None else table.clustered
    return ClusterColumns(clusters, effective, unlabelled, icc, effect, n_star, p, decided)


def _step_down(table: PairTable, p: Floats) -> Sides:
    """Return what Holm's procedure decides. A pair without a p-value stays in the family as p = 1: the adjustment of others only grows."""
    adjusted = np.ones(table.pairs.size)
    if table.in_family.any():
        adjusted[table.in_family] = holm(np.where(np.isfinite(p), p, 1.0)[table.in_family])
    return table.towards_lead(adjusted <= table.benchmark.spec.alpha)


def _weighted_columns(table: PairTable, weights: Floats, displayed: Index) -> ClusterColumns | None:
    """Return the test of the weighted gap over its clusters: each enters with its weight. N* and the correlation are not computed."""
    # A pair that lacks a cluster has no weighted gap.
    at = np.arange(table.pairs.size)
    sums = cluster_sums(table.kind, at)
    if sums is None:
        at, sums = displayed, cluster_sums(table.kind, displayed)
    if sums is None:
        return None
    known = (sums.n > 0).all(axis=1)
    blank, none = np.full(table.pairs.size, np.nan), np.zeros(table.pairs.size, np.int64)
    p = blank.copy()
    if known.any() and weights.size == sums.n.shape[1] > 1:
        n, gaps = np.broadcast_to(weights, sums.n[known].shape), sums.s1[known] / sums.n[known]
        # A member of a suite with a baseline may have a gap above 1. The test does not depend on the scale.
        gaps /= np.maximum(1, np.abs(gaps).max(axis=1, keepdims=True))
        p[at[known]] = clustered_p(n, n * gaps)
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
    needed = {
        "fixed_n": table.kind.required_n(alpha, at),
        "bonferroni": table.kind.required_n(alpha / table.family_size, at),
    }
    anytime = table.kind.anytime_required_n(at)
    if anytime is not None:
        needed["anytime"] = anytime
    if clusters is not None:
        needed["clustered"] = clusters.required_n[at]
    needed[NEIGHBOURS] = table.kind.required_n(alpha / table.neighbours, at)
    unknown = needed["fixed_n"] == 0
    return {name: np.where(unknown, np.nan, n_star) for name, n_star in needed.items()}


def count_undecided(table: PairTable, clusters: ClusterColumns | None, at: Index) -> dict[str, int]:
    """Count the pairs that each procedure leaves undecided; a procedure that is not computed is omitted."""
    computed = set(DECISION_PROCEDURES) | {NEIGHBOURS}
    if not table.kind.bets or (table.benchmark.spec.order.policy == "none" and not table.asserted):
        computed.remove("e_bh")
    if clusters is None or not np.isfinite(clusters.p[at]).any():
        computed.remove("clustered")
    sides = decisions(table, clusters)
    return _count(
        {name: None if side is None else side[at] != 0 for name, side in sides.items() if name in computed}, table, at
    )


def count_unresolved(table: PairTable, needed: Mapping[str, Floats], at: Index) -> dict[str, int]:
    """Count the pairs that are not resolved under each procedure that has an N* here; pairs whose N* is unknown do not count."""
    # Where clusters give an N* of no pair, as weighted ones do, `clustered` is omitted. `needed` is what `required_n_by_procedure` returns
    # of these pairs.
    closed: dict[str, Flags | None] = {
        name: is_resolved(table.pairs.n[at], n_star) | np.isnan(n_star)
        for name, n_star in needed.items()
        if name != "clustered" or not np.isnan(n_star).all()
    }
    return _count(closed, table, at)

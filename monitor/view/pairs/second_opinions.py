"""Second opinions on the neighbouring pairs: other families, other intervals, other clusters."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from monitor.view.board import Flags, Floats, json_numbers
from monitor.view.kinds.kind import resolution_ratio
from monitor.view.pairs.rows import side_names
from monitor.view.pairs.table import ClusterSums, PairTable, cluster_sums
from schemas.results.detail import (
    AdjustedP,
    BenchmarkDetail,
    ClusterDefinition,
    ClusterDetail,
    Definition,
    DetailedBenchmarkReport,
    ModelDetail,
    PairDetail,
)
from schemas.results.report import BenchmarkReport
from stats.clusters import eprocess as cluster_eprocess
from stats.clusters import robust as clusters
from stats.clusters import sensitivity as cluster_sensitivity
from stats.families import error_control as families
from stats.fixed_n import bootstrap
from stats.numerics.pairs import Index
from stats.order import committed_order
from stats.paper import ANYTIME_INFLATION

_SEED: Final = 0
_ORDER_SEED: Final = "second opinions"
_RESAMPLES: Final = 2_000


def with_detail(report: BenchmarkReport, table: PairTable) -> DetailedBenchmarkReport:
    """Add the second opinions to a report, from the table it was made from."""
    fields = {name: getattr(report, name) for name in type(report).__struct_fields__}
    return DetailedBenchmarkReport(**fields, detail=benchmark_detail(table))


def benchmark_detail(table: PairTable) -> BenchmarkDetail:
    """Compute the second opinions on the adjacent pairs."""
    names = [c.model for c in table.benchmark.contestants]
    skipped = table.benchmark.skipped
    return BenchmarkDetail(
        models=[ModelDetail(model=names[k], skipped=int(skipped[k])) for k in table.ranking.tolist()],
        pairs=_pairs(table, np.flatnonzero(table.pairs.adjacent), names),
    )


def _pairs(table: PairTable, at: Index, names: list[str]) -> list[PairDetail]:
    shared = table.pairs.n[at] > 0
    columns = {name: np.full(at.size, np.nan) for name in _NUMBERS}
    for name, values in _numbers(table, at[shared]).items():
        columns[name][shared] = values
    numbers: dict[str, Any] = {name: json_numbers(values) for name, values in columns.items()}
    sides: dict[str, Any] = {
        "e_holm": side_names(table.e_decisions(families.e_holm), at),
        "e_bh": side_names(table.decided("e_bh"), at),
    }
    adjacent, everything = _adjusted(table, table.pairs.adjacent, at), _adjusted(table, table.in_family, at)
    cluster_rows = _clusters(table, at)
    return [
        PairDetail(
            model_a=names[table.pairs.a[q]],
            model_b=names[table.pairs.b[q]],
            adjacent_family=adjacent[r],
            all_family=everything[r],
            **{name: values[r] for name, values in sides.items()},
            **{name: values[r] for name, values in numbers.items()},
            cluster=cluster_rows[r],
        )
        for r, q in enumerate(at.tolist())
    ]


_NUMBERS: Final = (
    "rho_low",
    "rho_high",
    "p_corrected",
    "bootstrap_low",
    "bootstrap_high",
    "required_n_low",
    "required_n_high",
    "anytime_required_n",
    "paper_anytime_required_n",
    "paper_anytime_resolution_ratio",
)


def _numbers(table: PairTable, at: Index) -> dict[str, Floats]:
    """Compute the further numbers of pairs that share items; tests and N* of counts only for 0/1 scores."""
    if at.size == 0 or not table.kind.drawn_again():
        return {}  # these numbers are about the unweighted gap of scores, and battles have none
    n = table.pairs.n[at]
    n_star = table.kind.n_star(at)
    known = np.where(n_star == 0, np.nan, 1.0)  # no spread, no N*
    paper_n_star = ANYTIME_INFLATION * n_star * known
    order = _order(table)
    low, high = np.array([_bootstrap(table, q, order) for q in at.tolist()], np.float64).T
    return {
        "bootstrap_low": low,
        "bootstrap_high": high,
        "paper_anytime_required_n": paper_n_star,
        "paper_anytime_resolution_ratio": resolution_ratio(n, paper_n_star),
    } | table.kind.opinions(at, _SEED)


def _bootstrap(table: PairTable, q: int, order: Index) -> tuple[float, float]:
    x, scored = table.kind.scores
    a, b = table.pairs.a[q], table.pairs.b[q]
    rows = order[(scored[order, a] > 0) & (scored[order, b] > 0)]
    result = bootstrap.paired_bootstrap_delta(
        x[rows, a], x[rows, b], alpha=table.benchmark.spec.alpha, resamples=_RESAMPLES, seed=_SEED
    )
    return result.low, result.high


def _adjusted(table: PairTable, family: Flags, at: Index) -> list[AdjustedP | None]:
    """Adjust the p-values of a family by every fixed-n procedure."""
    members = np.flatnonzero(family)
    if members.size == 0:
        return [None] * at.size
    p = table.kind.p_fixed[members]
    adjusts: dict[str, Callable[[Floats], Floats]] = {
        name: getattr(families, name)
        for name in ("bonferroni", "sidak", "holm", "benjamini_hochberg", "benjamini_yekutieli")
    }
    values = {name: adjust(p).tolist() for name, adjust in adjusts.items()}
    place = {q: k for k, q in enumerate(members.tolist())}
    return [
        AdjustedP(pairs=members.size, **{name: column[place[q]] for name, column in values.items()})
        if q in place and table.pairs.n[q]
        else None
        for q in at.tolist()
    ]


def _order(table: PairTable) -> Index:
    """Return the items in an order that depends on their ids only, so that nothing here depends on the order of the files."""
    return committed_order(_ORDER_SEED, [key.item for key in table.benchmark.item_keys])


# --- clusters ---------------------------------------------------------------------------------------------------------------------------


def _clusters(table: PairTable, at: Index) -> list[ClusterDetail | None]:
    sums = cluster_sums(table.kind, at) if at.size and table.kind.drawn_again() else None
    if sums is None:
        return [None] * at.size
    spec = table.benchmark.spec
    resampled = cluster_sensitivity.category_bootstrap(sums.n, sums.s1, sums.s2, alpha=spec.alpha, power=spec.power)
    left = cluster_sensitivity.leave_one_out(sums.n, sums.s1, sums.s2, alpha=spec.alpha, power=spec.power)
    log_e, _, _ = cluster_eprocess.cluster_e_process(sums.n, sums.s1)
    occupied = np.maximum((sums.n > 0).sum(axis=1), 1)
    means = np.divide(sums.s1, sums.n, out=np.zeros_like(sums.s1), where=sums.n > 0).sum(axis=1) / occupied
    definitions = _definitions(table, at, sums)
    rows: list[ClusterDetail | None] = []
    for r in range(at.size):
        if not table.pairs.n[at[r]]:
            rows.append(None)
            continue
        ratios = left.resolution_ratio[r]
        known = np.isfinite(ratios)
        worst = int(np.argmin(np.where(known, ratios, np.inf)))
        rows.append(
            ClusterDetail(
                bootstrap_icc=_interval(resampled.icc[r]),
                bootstrap_design_effect=_interval(resampled.design_effect[r]),
                bootstrap_required_n=_interval(resampled.required_n[r]),
                bootstrap_unresolved=float(resampled.unresolved[r]),
                leave_one_out_low=float(ratios[known].min()) if known.any() else None,
                leave_one_out_high=float(ratios[known].max()) if known.any() else None,
                leave_one_out_cluster=sums.names[worst] if known.any() else None,
                definitions=definitions[r],
                log_e=float(log_e[r]),
                clusters_needed=_needed(float(means[r]), spec.alpha),
            )
        )
    return rows


def _interval(bounds: Floats) -> tuple[float | None, float | None]:
    low, high = json_numbers(bounds)
    return low, high


_SMALLEST_GAP: Final = 1e-3


def _needed(mean_gap: float, alpha: float) -> int | None:
    """Return the clusters that a claim about new categories needs; None for a gap too small for thousands of them."""
    if abs(mean_gap) < _SMALLEST_GAP:
        return None
    return cluster_eprocess.clusters_needed(mean_gap, alpha)


def _definitions(table: PairTable, at: Index, sums: ClusterSums) -> list[list[ClusterDefinition]]:
    order = _order(table)
    order = order[sums.label[order] >= 0]  # the same items as under the given clusters
    x, scored = (scores[order] for scores in table.kind.scores)
    a, b = table.pairs.a[at], table.pairs.b[at]
    differences = np.where((scored[:, a] > 0) & (scored[:, b] > 0), x[:, a] - x[:, b], np.nan).T
    answered = scored.sum(axis=1)
    difficulty = np.divide(x.sum(axis=1), answered, out=np.zeros(x.shape[0]), where=answered > 0)
    difficulty = np.round(difficulty, 9)  # sums of scores differ in their last digit by the order of the models
    labels: dict[Definition, Index] = {
        "random": cluster_sensitivity.random_clusters(x.shape[0], len(sums.names), np.random.default_rng(_SEED)),
        "difficulty quartiles": cluster_sensitivity.difficulty_clusters(difficulty),
        "split halves": cluster_sensitivity.split_halves(sums.label[order]),
    }
    spec = table.benchmark.spec
    rows: list[list[ClusterDefinition]] = [[] for _ in range(at.size)]
    for definition, label in labels.items():
        n, s1, s2 = clusters.cluster_sums(differences, label, int(label.max()) + 1)
        occupied = (n > 0).sum(axis=1)
        icc = clusters.cluster_icc(n, s1, s2)
        effect = clusters.design_effect(icc, np.maximum(n.sum(axis=1) / np.maximum(occupied, 1), 1.0))
        needed = clusters.cluster_required_n(n, s1, s2, spec.alpha, spec.power)
        ratio = resolution_ratio(table.pairs.n[at], np.where(np.isfinite(needed), needed, np.nan))
        columns = zip(occupied.tolist(), *map(json_numbers, (icc, effect, needed, ratio)), strict=True)
        for row, (count, *numbers) in zip(rows, columns, strict=True):
            fields = zip(("icc", "design_effect", "required_n", "resolution_ratio"), numbers, strict=True)
            row.append(ClusterDefinition(definition=definition, clusters=count, **dict(fields)))
    return rows

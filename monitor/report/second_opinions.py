"""Second opinions on the neighbouring pairs: other families, other intervals, other clusters."""

from collections.abc import Callable
from math import isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.pairs import Index
from monitor.report.build import ReportView
from monitor.report.clusters import ClusterSums, cluster_sums
from monitor.report.columns import number
from monitor.report.pair_table import Floats, PairTable
from schemas.detail import (
    AdjustedP,
    BenchmarkDetail,
    ClusterDefinition,
    ClusterDetail,
    DetailedBenchmarkReport,
    ModelDetail,
    PairDetail,
)
from schemas.report import Side
from stats import bootstrap, cluster_eprocess, cluster_sensitivity, clusters, families
from stats.eprocess import anytime_required_n
from stats.mcnemar import corrected_p
from stats.paired import hoeffding_bounds
from stats.paper import ANYTIME_INFLATION

_SEED: Final = 0
_RESAMPLES: Final = 2_000
_SIDES: Final[dict[int, Side]] = {1: "a", -1: "b"}


def with_detail(view: ReportView) -> DetailedBenchmarkReport:
    """Add the detail to a report."""
    table = view.table
    at = np.flatnonzero(table.adjacent)
    models = zip(view.report.models, table.benchmark.skipped[table.ranking].tolist(), strict=True)
    detail = BenchmarkDetail(
        models=[ModelDetail(model=m.model, skipped=skipped) for m, skipped in models],
        pairs=_pairs(table, at, held=view.hold_reason is not None),
    )
    fields = {name: getattr(view.report, name) for name in type(view.report).model_fields}
    return DetailedBenchmarkReport(**fields, detail=detail)


def _pairs(table: PairTable, at: Index, *, held: bool) -> list[PairDetail]:
    shared = table.n[at] > 0
    names = [c.model for c in table.benchmark.contestants]
    blank = np.full(at.size, np.nan)
    mean_a, mean_b, _, _ = table.sums
    rho = (blank.copy(), blank.copy())
    if shared.any():
        rho[0][shared], rho[1][shared] = hoeffding_bounds(mean_a[at][shared], mean_b[at][shared])
    columns: dict[str, Floats] = dict.fromkeys(_COUNTED, blank)
    columns |= {"rho_low": rho[0], "rho_high": rho[1]} if table.benchmark.binary else {}
    columns |= _intervals(table, at, shared)
    adjacent = _adjusted(table, table.adjacent, at)
    everything = _adjusted(table, table.in_family, at)
    sides = {name: np.zeros(at.size, np.int8) for name in ("e_holm", "e_bh")}
    if table.bets and not held:
        inside = table.in_family
        rejected = np.zeros(inside.size, bool)
        if inside.any():
            rejected[inside] = families.e_holm(table.log_e[inside], table.benchmark.spec.alpha)
        sides = {"e_holm": np.where(rejected, table.direction(), 0)[at], "e_bh": table.decided_e_bh[at]}
    cluster_rows = _clusters(table, at)
    return [
        PairDetail(
            model_a=names[table.a[q]],
            model_b=names[table.b[q]],
            adjacent_family=adjacent[r],
            all_family=everything[r],
            **{name: _SIDES.get(int(values[r])) for name, values in sides.items()},
            **{name: number(values[r]) for name, values in columns.items()},
            cluster=cluster_rows[r],
        )
        for r, q in enumerate(at.tolist())
    ]


_COUNTED: Final = (
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


def _intervals(table: PairTable, at: Index, shared: NDArray[np.bool_]) -> dict[str, Floats]:
    """Compute what the scores of each pair tell besides the report; nan where a pair shares nothing."""
    some = at[shared]
    if some.size == 0:
        return {}
    spec = table.benchmark.spec
    n, n_star = table.n[some], table.n_star[some]
    found: dict[str, Any] = {}
    intervals = [_bootstrap(table, q) for q in some.tolist()]
    found["bootstrap_low"], found["bootstrap_high"] = np.array(intervals, np.float64).T
    found["paper_anytime_required_n"] = ANYTIME_INFLATION * n_star
    with np.errstate(divide="ignore"):
        found["paper_anytime_resolution_ratio"] = n / (ANYTIME_INFLATION * n_star)
    if table.benchmark.binary:
        wins, losses = table.wins[some], table.losses[some]
        found["p_corrected"] = corrected_p(wins, losses)
        found["required_n_low"], found["required_n_high"] = bootstrap.required_n_interval(
            n, wins, losses, alpha=spec.alpha, power=spec.power, seed=_SEED
        )
        found["anytime_required_n"] = anytime_required_n(n, wins, losses, spec.alpha, spec.power, spec.mixture)
    columns = {}
    for name, values in found.items():
        columns[name] = np.full(at.size, np.nan)
        columns[name][shared] = values
    return columns


def _bootstrap(table: PairTable, q: int) -> tuple[float, float]:
    x, scored = table.scores
    a, b = table.a[q], table.b[q]
    rows = (scored[:, a] > 0) & (scored[:, b] > 0)
    result = bootstrap.paired_bootstrap_delta(
        x[rows, a], x[rows, b], alpha=table.benchmark.spec.alpha, resamples=_RESAMPLES, seed=_SEED
    )
    return result.low, result.high


def _adjusted(table: PairTable, family: NDArray[np.bool_], at: Index) -> list[AdjustedP | None]:
    """Adjust the p-values of a family by every fixed-n procedure."""
    members = np.flatnonzero(family)
    if members.size == 0:
        return [None] * at.size
    p = table.p_fixed[members]
    adjusts: dict[str, Callable[[Floats], Floats]] = {
        name: getattr(families, name)
        for name in ("bonferroni", "sidak", "holm", "benjamini_hochberg", "benjamini_yekutieli")
    }
    values = {name: adjust(p).tolist() for name, adjust in adjusts.items()}
    place = {q: k for k, q in enumerate(members.tolist())}
    return [
        AdjustedP(pairs=members.size, **{name: column[place[q]] for name, column in values.items()})
        if q in place and table.n[q]
        else None
        for q in at.tolist()
    ]


# --- clusters ---------------------------------------------------------------------------------------------------------------------------


def _clusters(table: PairTable, at: Index) -> list[ClusterDetail | None]:
    sums = cluster_sums(table, at) if at.size else None
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
        if not table.n[at[r]]:
            rows.append(None)
            continue
        ratios = left.resolution_ratio[r]
        known = np.isfinite(ratios)
        worst = int(np.argmin(np.where(known, ratios, np.inf)))
        rows.append(
            ClusterDetail(
                bootstrap_icc=_pair_of(resampled.icc[r]),
                bootstrap_design_effect=_pair_of(resampled.design_effect[r]),
                bootstrap_required_n=_pair_of(resampled.required_n[r]),
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


def _pair_of(bounds: Floats) -> tuple[float | None, float | None]:
    return number(bounds[0]), number(bounds[1])


_SMALLEST_GAP: Final = 1e-3


def _needed(mean_gap: float, alpha: float) -> int | None:
    """Clusters that a claim about new categories would take; a gap too small for thousands of them has no useful answer."""
    if abs(mean_gap) < _SMALLEST_GAP:
        return None
    return cluster_eprocess.clusters_needed(mean_gap, alpha)


def _definitions(table: PairTable, at: Index, sums: ClusterSums) -> list[list[ClusterDefinition]]:
    x, scored = table.scores
    a, b = table.a[at], table.b[at]
    differences = np.where((scored[:, a] > 0) & (scored[:, b] > 0), x[:, a] - x[:, b], np.nan).T
    answered = scored.sum(axis=1)
    difficulty = np.divide(x.sum(axis=1), answered, out=np.zeros(x.shape[0]), where=answered > 0)
    labels = {
        "random": cluster_sensitivity.random_clusters(x.shape[0], len(sums.names), np.random.default_rng(_SEED)),
        "difficulty quartiles": cluster_sensitivity.difficulty_clusters(difficulty),
        "split halves": cluster_sensitivity.split_halves(sums.label),
    }
    spec = table.benchmark.spec
    found: list[list[ClusterDefinition]] = [[] for _ in range(at.size)]
    for definition, label in labels.items():
        n, s1, s2 = clusters.cluster_sums(differences, label, int(label.max()) + 1)
        occupied = (n > 0).sum(axis=1)
        icc = clusters.cluster_icc(n, s1, s2)
        effect = clusters.design_effect(icc, np.maximum(n.sum(axis=1) / np.maximum(occupied, 1), 1.0))
        needed = clusters.cluster_required_n(n, s1, s2, spec.alpha, spec.power)
        for r in range(at.size):
            q = float(table.n[at[r]] / needed[r]) if isfinite(needed[r]) and needed[r] > 0 else None
            found[r].append(
                ClusterDefinition(
                    definition=definition,
                    clusters=int(occupied[r]),
                    icc=number(icc[r]),
                    design_effect=number(effect[r]),
                    required_n=number(needed[r]),
                    resolution_ratio=q,
                )
            )
    return found

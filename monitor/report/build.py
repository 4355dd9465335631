"""From the state of a benchmark to its report."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from monitor.engine.partition import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs import Index, pair_members
from monitor.report.clusters import ClusterColumns, cluster_columns
from monitor.report.columns import Column, number
from monitor.report.intervals import graded_intervals
from monitor.report.pair_rows import verdicts
from monitor.report.pair_table import Floats, PairTable, Sides
from monitor.report.sentences import NO_ORDER
from monitor.report.standings import model_reports, ranking_of
from monitor.report.summary import summary
from schemas.report import (
    ASSERTED,
    BenchmarkReport,
    ClusterReport,
    Decided,
    FamilyReport,
    OrderReport,
    PairReport,
    Report,
    Resolved,
)
from stats.completion import items_to_completion_decision
from stats.confidence import gap_interval
from stats.growth import expected_items_to_decision
from stats.mcnemar import chi2_p
from stats.paired import correlation

Which = Literal["adjacent", "all"]
Select = Callable[[PairTable], Index]
"""Returns the places in the table of the pairs to list."""


def build_report(
    partitions: Iterable[Partition], *, pairs: Which = "adjacent", assert_complete: bool = False
) -> Report:
    """Report every benchmark that has been read.

    Parameters
    ----------
    partitions : iterable of Partition
    pairs : "adjacent" or "all"
        Which pairs are listed.
    assert_complete : bool
        Whether a benchmark without a declared order is taken as complete as it stands: N is then the number of items found and the
        family all pairs of the models found. True for files, which are what they are; never for a live stream.
    """
    return Report(
        benchmarks=[view.report for view in report_views(partitions, pairs=pairs, assert_complete=assert_complete)]
    )


def report_views(partitions: Iterable[Partition], *, pairs: Which, assert_complete: bool) -> "Iterator[ReportView]":
    """Report every benchmark by name, beside its columns; see `build_report`."""
    benchmarks = [b for p in partitions for b in p.benchmarks.values()]
    for benchmark in sorted(benchmarks, key=lambda b: b.name):
        yield report_view(benchmark, pairs=pairs, assert_complete=assert_complete)


def benchmark_report(
    benchmark: Benchmark, *, pairs: Which = "adjacent", assert_complete: bool = False
) -> BenchmarkReport:
    """Report one benchmark; see `build_report`."""
    return report_view(benchmark, pairs=pairs, assert_complete=assert_complete).report


@dataclass(frozen=True)
class ReportView:
    """A report beside the columns it was made from, for the formats that show more than the report holds."""

    report: BenchmarkReport
    table: PairTable
    listed: Index
    """Where the pairs of the report, but the superseded ones, stand in the table."""
    hold_reason: str | None
    """Why no further anytime verdict is given, or None."""
    void: bool
    """Whether those that were given do not count."""


def report_view(
    benchmark: Benchmark, *, pairs: Which | Select = "adjacent", assert_complete: bool = False
) -> ReportView:
    """Report one benchmark, and keep the columns; see `build_report`. `pairs` may also be a function that chooses from the table."""
    asserted = assert_complete and benchmark.spec.order.policy == "none"
    ranking = ranking_of(benchmark)
    table = PairTable(benchmark, ranking, benchmark.items if asserted else None)
    held = hold_reason(benchmark, asserted=asserted)
    void = held is not None and not benchmark.standing
    listed = pairs(table) if callable(pairs) else _listed(table, pairs)
    clusters = cluster_columns(table, listed)
    rows = pair_rows(table, clusters, listed, held)
    report = BenchmarkReport(
        benchmark=benchmark.name,
        items=benchmark.items,
        **benchmark.counters,
        order=order_report(benchmark, held, asserted=asserted),
        alpha=benchmark.spec.alpha,
        power=benchmark.spec.power,
        mixture=table.mixture,
        family=_family(benchmark, table, asserted=asserted),
        models=model_reports(table, held=void),
        summary=summary(table, rows, listed),
        pairs=rows + (superseded_rows(benchmark, ranking, held) if pairs == "all" else []),
    )
    return ReportView(report, table, listed, held, void)


def superseded_rows(benchmark: Benchmark, ranking: Index, held: str | None) -> list[PairReport]:
    """List the pairs of an older epoch that were decided: a verdict is kept, whatever is scored again."""
    decided = np.zeros(benchmark.pairs, bool)
    for latch in benchmark.latched.values():
        decided |= latch[: benchmark.pairs] != 0
    pairs = np.flatnonzero(decided)
    pairs = pairs[benchmark.comparable(pairs)]
    i, j = pair_members(pairs)
    current = benchmark.current()
    old = ~(current[i] & current[j]) if pairs.size else np.zeros(0, bool)
    if not old.any():
        return []
    place = {benchmark.contestants[k].model: rank for rank, k in enumerate(ranking.tolist())}
    ranks = np.array([place[c.model] for c in benchmark.contestants], np.int64)
    i, j = i[old], j[old]
    first = ranks[i] < ranks[j]
    table = PairTable(benchmark, ranking, None, (np.where(first, i, j), np.where(first, j, i)))
    return pair_rows(table, None, np.arange(i.size), held)


def order_report(benchmark: Benchmark, held: str | None, *, asserted: bool = False) -> OrderReport:
    """Say which order policy is in force, and what keeps it from giving verdicts."""
    return OrderReport(
        policy="completion" if asserted else benchmark.spec.order.policy,
        suspect=benchmark.suspicion is not None,
        reason=_order_reason(benchmark, held, asserted=asserted),
    )


def _listed(table: PairTable, pairs: Which) -> Index:
    return np.arange(table.pair.size) if pairs == "all" else np.flatnonzero(table.adjacent)


def hold_reason(benchmark: Benchmark, *, asserted: bool = False) -> str | None:
    """Why no anytime verdict is given on the benchmark, or None."""
    spec = benchmark.spec
    if asserted:
        return None
    if spec.order.policy == "none":
        return NO_ORDER
    if benchmark.refuted:
        return f"{benchmark.suspicion}, and the order was trusted"
    if benchmark.overfull:
        return f"{benchmark.items:,} items have come where {spec.items:,} were declared, so the declared item count was wrong"
    if benchmark.mixed:
        return (
            "some scores are neither 0 nor 1, so nothing further is decided, as pairs had bet on 0/1 scores: declare scores graded "
            "before the first score, under another name"
        )
    return None


def _order_reason(benchmark: Benchmark, held: str | None, *, asserted: bool) -> str | None:
    """Why verdicts are held, what is asserted, and what looks wrong with the arrival order; None if there is nothing to say."""
    stated = f"{ASSERTED}the {benchmark.items:,} items found are the whole benchmark" if asserted else held
    if benchmark.suspicion is None or benchmark.refuted:
        return stated
    harmless = asserted or benchmark.spec.order.policy in {"completion", "committed"}
    warning = benchmark.suspicion + (", which this order policy does not rest on" if harmless else "")
    return warning if stated is None else f"{stated}; {warning}"


def _family(benchmark: Benchmark, table: PairTable, *, asserted: bool) -> FamilyReport:
    family = benchmark.spec.family
    if asserted:
        return FamilyReport(policy="capacity", size=table.anytime_family_size)
    return FamilyReport(policy=family.policy, size=table.anytime_family_size)


def pair_rows(
    table: PairTable, clusters: ClusterColumns | None, listed: NDArray[np.int64], held: str | None
) -> list[PairReport]:
    """List pairs. Statistics that only the listed pairs need are computed for those alone."""
    benchmark = table.benchmark
    binary = benchmark.binary
    column = Column(listed)
    n, wins, losses = table.n[listed], table.wins[listed], table.losses[listed]
    mean_a, mean_b, _, _ = table.sums
    columns: dict[str, list[Any]] = {
        "n": column.counts(table.n),
        "b": column.counts(table.wins) if binary else [None] * listed.size,
        "c": column.counts(table.losses) if binary else [None] * listed.size,
        "gap": column.numbers(np.where(table.n > 0, table.moments[0], np.nan)),
        "sd": column.numbers(np.where(table.n > 0, table.moments[1], np.nan)),
        "p_a": column.numbers(mean_a),
        "p_b": column.numbers(mean_b),
        "required_n": column.numbers(table.n_star),
        "mde": column.numbers(table.mde),
        "p_clustered": column.numbers(clusters.p if clusters else None),
    }
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(table.n_star > 0, table.n / table.n_star, np.nan)
    columns["resolution_ratio"] = column.numbers(np.where(table.n > 0, ratio, np.nan))
    columns |= {name: [None] * listed.size for name in ("rho", "p_chi2", "p_exact", "p_mid")}
    everywhere = Column(np.arange(listed.size))
    computed = live_columns(table, listed)
    if binary:
        shared = n > 0
        right = np.rint(np.nan_to_num(np.stack([mean_a[listed], mean_b[listed]])) * n)
        rho = np.full(listed.size, np.nan)
        rho[shared] = correlation(n[shared], wins[shared], losses[shared], right[0][shared], right[1][shared])
        exact = {"p_chi2": chi2_p(wins, losses), "p_exact": table.p_exact[listed], "p_mid": table.p_mid(listed)}
        computed |= {"rho": rho} | {name: np.where(shared, values, np.nan) for name, values in exact.items()}
    columns |= {name: everywhere.numbers(values) for name, values in computed.items()}

    decided = {name: column.sides(sides) for name, sides in decided_sides(table, clusters, held).items()}
    resolved = _resolved(table, clusters, column)
    cluster_rows = _cluster_rows(table, clusters, listed)
    names = [c.model for c in benchmark.contestants]
    statuses, reasons, decided_at = verdicts(table, listed, columns, held, names)
    return [
        PairReport(
            model_a=names[table.a[q]],
            model_b=names[table.b[q]],
            adjacent=bool(table.adjacent[q]),
            status=statuses[r],
            reason=reasons[r],
            decided_at_n=decided_at[r],
            decided=Decided(**{name: values[r] for name, values in decided.items() if name != "bonferroni_adjacent"}),
            resolved=Resolved(
                **{name: values[r] for name, values in resolved.items() if name != "bonferroni_adjacent"}
            ),
            cluster=cluster_rows[r],
            **{name: values[r] for name, values in columns.items() if name != "items_to_decision"},
            items_to_decision=None if statuses[r] == "decided" else columns["items_to_decision"][r],
        )
        for r, q in enumerate(listed.tolist())
    ]


def live_columns(table: PairTable, listed: Index) -> dict[str, Floats]:
    """Return what may be looked at while results come in, of the listed pairs; nan where there is none, shape (listed,) each.

    These are ``log_e``, ``log_e_a``, ``log_e_b``, ``gap_low``, ``gap_high``, ``gap_family_low``, ``gap_family_high`` (at alpha and at
    alpha_j) and ``items_to_decision``.
    """
    names = ("gap_low", "gap_high", "gap_family_low", "gap_family_high", "items_to_decision")
    threshold = table.log_family_threshold[listed]
    columns = {name: np.full(listed.size, np.nan) for name in ("log_e", "log_e_a", "log_e_b", *names)}
    if not table.bets:
        return columns
    columns["log_e"] = table.log_e[listed]
    columns["log_e_a"], columns["log_e_b"] = (half[listed] for half in table.log_e_halves)
    if table.benchmark.binary:
        alpha = np.full(listed.size, table.benchmark.spec.alpha)
        columns["gap_low"], columns["gap_high"] = gap_bounds(table, listed, alpha)
        placed = np.isfinite(threshold)
        columns["gap_family_low"][placed], columns["gap_family_high"][placed] = gap_bounds(
            table, listed[placed], np.exp(-threshold[placed])
        )
        columns["items_to_decision"][placed] = _items_to_decision(table, listed[placed])
    else:
        columns |= graded_intervals(table, listed, threshold)
    return {name: np.where(table.n[listed] > 0, values, np.nan) for name, values in columns.items()}


def gap_bounds(
    table: PairTable, listed: NDArray[np.int64], alpha: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Interval of the gap, from what the verdict rests on; a skipped item of a committed order counts against either end."""
    n, b, c, c_worst, b_best = (column[listed] for column in table.evidence)
    mixture = table.benchmark.spec.mixture
    low, high = gap_interval(n, b, c_worst, alpha, mixture)
    skipped = (c_worst != c) | (b_best != b)
    if skipped.any():
        high[skipped] = gap_interval(n[skipped], b_best[skipped], c[skipped], alpha[skipped], mixture)[1]
    return low, high


def _items_to_decision(table: PairTable, listed: NDArray[np.int64]) -> NDArray[np.float64]:
    """Further items until the family-wise decision at the present estimate; beyond what is left of the benchmark it is an extrapolation."""
    mixture = table.benchmark.spec.mixture
    n, wins, losses, _, _ = (column[listed] for column in table.evidence)
    threshold = table.log_family_threshold[listed]
    more = expected_items_to_decision(n, wins, losses, threshold, mixture)
    if table.missing is None or table.benchmark.spec.order.policy in {"committed", "trusted"}:
        return more
    left = table.missing[listed]
    within = items_to_completion_decision(n, wins, losses, left, threshold, mixture)
    return np.where(np.isfinite(within), within, np.maximum(more, left + 1))


def decided_sides(table: PairTable, clusters: ClusterColumns | None, held: str | None) -> dict[str, Sides | None]:
    """Return by procedure what is decided of every pair of the table; None where nothing is computed, or counts."""
    fixed = table.decided_fixed if table.superseded is None else {}
    # An invalidated decision no longer counts: its status tells of it, the columns do not.
    anytime = table.decided_anytime if held is None or table.benchmark.standing else {}
    names = ("fixed_n", "bonferroni", "holm", "benjamini_hochberg", "bonferroni_adjacent")
    sides: dict[str, Sides | None] = {name: fixed.get(name) for name in names}
    sides["clustered"] = clusters.decided if clusters else None
    sides |= {name: anytime.get(name) for name in ("anytime", "anytime_family")}
    current = table.bets and held is None and table.superseded is None
    sides["e_bh"] = table.decided_e_bh if current else None
    return sides


def _resolved(table: PairTable, clusters: ClusterColumns | None, column: Column) -> dict[str, list[bool | None]]:
    spec = table.benchmark.spec
    neighbours = max(int(table.adjacent.sum()), 1)
    return {
        "fixed_n": column.flags(table.resolved(table.n_star)),
        "bonferroni": column.flags(table.resolved(table.required_n(spec.alpha / table.family_size))),
        "bonferroni_adjacent": column.flags(table.resolved(table.required_n(spec.alpha / neighbours))),
        "anytime": column.flags(table.resolved(table.anytime_n_star) if table.benchmark.binary else None),
        "clustered": column.flags(table.resolved(clusters.required_n) if clusters else None),
    }


def _cluster_rows(
    table: PairTable, clusters: ClusterColumns | None, listed: NDArray[np.int64]
) -> list[ClusterReport | None]:
    if clusters is None:
        return [None] * listed.size
    rows: list[ClusterReport | None] = []
    for q in listed.tolist():
        if not isfinite(clusters.icc[q]):
            rows.append(None)
            continue
        n_star = float(clusters.required_n[q])
        rows.append(
            ClusterReport(
                clusters=int(clusters.clusters[q]),
                icc=float(clusters.icc[q]),
                design_effect=float(clusters.design_effect[q]),
                required_n=number(n_star),
                resolution_ratio=float(table.n[q] / n_star) if isfinite(n_star) and n_star > 0 else None,
            )
        )
    return rows

"""From the state of a benchmark to its report."""

from collections.abc import Iterable
from math import isfinite
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from monitor.engine.benchmark import Benchmark
from monitor.engine.cluster_table import ClusterColumns, cluster_columns
from monitor.engine.pair_table import PairTable, Sides
from monitor.engine.partition import Partition
from monitor.engine.reasons import NO_ORDER, PairFacts, reason
from monitor.engine.standings import model_reports, ranking_of
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
    Status,
    Summary,
)
from stats.completion import items_to_completion_decision
from stats.confidence import gap_interval
from stats.growth import items_to_decision
from stats.mcnemar import chi2_p, mid_p
from stats.paired import correlation

Which = Literal["adjacent", "all"]
_SIDE: Final = {1: "a", -1: "b", 0: None}


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
    benchmarks = [b for p in partitions for b in p.benchmarks.values()]
    return Report(
        benchmarks=[
            benchmark_report(b, pairs=pairs, assert_complete=assert_complete)
            for b in sorted(benchmarks, key=lambda b: b.name)
        ]
    )


def benchmark_report(
    benchmark: Benchmark, *, pairs: Which = "adjacent", assert_complete: bool = False
) -> BenchmarkReport:
    """Report one benchmark; see `build_report`."""
    asserted = assert_complete and benchmark.spec.order.policy == "none"
    ranking = ranking_of(benchmark)
    table = PairTable(benchmark, ranking, benchmark.items if asserted else None)
    clusters = cluster_columns(table)
    held = held_reason(benchmark, asserted=asserted)
    listed = np.arange(table.pair.size) if pairs == "all" else np.flatnonzero(table.adjacent)
    rows = pair_rows(table, clusters, listed, held)
    return BenchmarkReport(
        benchmark=benchmark.name,
        items=benchmark.items,
        **benchmark.counters,
        order=order_report(benchmark, held, asserted=asserted),
        alpha=benchmark.spec.alpha,
        power=benchmark.spec.power,
        mixture=benchmark.spec.mixture,
        family=_family(benchmark, table, asserted=asserted),
        models=model_reports(table, held=held is not None),
        summary=_summary(table, rows, listed),
        pairs=rows,
    )


def order_report(benchmark: Benchmark, held: str | None, *, asserted: bool = False) -> OrderReport:
    """Say which order policy is in force, and what keeps it from giving verdicts."""
    return OrderReport(
        policy="completion" if asserted else benchmark.spec.order.policy,
        suspect=False,
        reason=f"{ASSERTED}the {benchmark.items:,} items found are the whole benchmark" if asserted else held,
    )


def held_reason(benchmark: Benchmark, *, asserted: bool = False) -> str | None:
    """Why no anytime verdict is given on the benchmark, or None."""
    spec = benchmark.spec
    if not benchmark.binary:
        return "some scores are neither 0 nor 1, and anytime verdicts on graded scores are not computed yet"
    if asserted:
        return None
    if spec.order.policy == "none":
        return NO_ORDER
    if spec.order.policy == "committed":
        return "verdicts along a committed order are not computed yet: declare the item count (completion) or trusted instead"
    if benchmark.overfull:
        return f"{benchmark.items:,} items have come where {spec.items:,} were declared, so the declared item count was wrong"
    return None


_ASSUMPTIONS: Final = {
    "completion": "the declared number of items is the whole benchmark",
    "trusted": "the arrival order does not depend on outcomes or clusters, as declared",
}


def _family(benchmark: Benchmark, table: PairTable, *, asserted: bool) -> FamilyReport:
    family = benchmark.spec.family
    if asserted:
        return FamilyReport(policy="capacity", size=table.anytime_family_size)
    return FamilyReport(policy=family.policy, size=table.anytime_family_size)


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None


class _Column:
    """A column of the pair table at the listed pairs, as JSON values: null where there is no finite number."""

    def __init__(self, listed: NDArray[np.int64]) -> None:
        self.listed = listed

    def numbers(self, values: NDArray[Any] | None) -> list[float | None]:
        if values is None:
            return [None] * self.listed.size
        return [x if isfinite(x) else None for x in np.asarray(values, np.float64)[self.listed].tolist()]

    def counts(self, values: NDArray[Any]) -> list[int]:
        return np.asarray(values)[self.listed].astype(np.int64).tolist()  # type: ignore[no-any-return]

    def sides(self, values: Sides | None) -> list[Any]:
        if values is None:
            return [None] * self.listed.size
        return [_SIDE[x] for x in values[self.listed].tolist()]

    def flags(self, values: NDArray[np.bool_] | None) -> list[bool | None]:
        if values is None:
            return [None] * self.listed.size
        return values[self.listed].tolist()  # type: ignore[no-any-return]


def pair_rows(
    table: PairTable, clusters: ClusterColumns | None, listed: NDArray[np.int64], held: str | None
) -> list[PairReport]:
    """List pairs. Statistics that only the listed pairs need are computed for those alone."""
    benchmark, spec = table.benchmark, table.benchmark.spec
    binary = benchmark.binary
    column = _Column(listed)
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
    evidence = (
        "rho",
        "p_chi2",
        "p_exact",
        "p_mid",
        "log_e",
        "log_e_a",
        "log_e_b",
        "gap_low",
        "gap_high",
        "gap_family_low",
        "gap_family_high",
    )
    columns |= {name: [None] * listed.size for name in (*evidence, "items_to_decision")}
    threshold = table.log_family_threshold[listed]
    if binary:
        shared = n > 0
        everywhere = _Column(np.arange(listed.size))
        right = np.rint(np.nan_to_num(np.stack([mean_a[listed], mean_b[listed]])) * n)
        rho = np.full(listed.size, np.nan)
        rho[shared] = correlation(n[shared], wins[shared], losses[shared], right[0][shared], right[1][shared])
        low, high = gap_interval(n, wins, losses, spec.alpha, spec.mixture)
        placed = np.isfinite(threshold)
        family_low, family_high = np.full(listed.size, np.nan), np.full(listed.size, np.nan)
        family_low[placed], family_high[placed] = gap_interval(
            n[placed], wins[placed], losses[placed], np.exp(-threshold[placed]), spec.mixture
        )
        more = np.full(listed.size, np.nan)
        more[placed] = _items_to_decision(table, listed[placed])
        computed = {
            "rho": rho,
            "p_chi2": chi2_p(wins, losses),
            "p_exact": table.p_exact[listed],
            "p_mid": mid_p(wins, losses),
            "log_e": table.log_e[listed],
            "log_e_a": table.log_e_halves[0][listed],
            "log_e_b": table.log_e_halves[1][listed],
            "gap_low": low,
            "gap_high": high,
            "gap_family_low": family_low,
            "gap_family_high": family_high,
            "items_to_decision": more,
        }
        columns |= {name: everywhere.numbers(np.where(shared, values, np.nan)) for name, values in computed.items()}

    decided = _decided(table, clusters, column, held)
    resolved = _resolved(table, clusters, column)
    cluster_rows = _cluster_rows(table, clusters, listed)
    names = [c.model for c in benchmark.contestants]
    statuses, reasons, decided_at = _verdicts(table, listed, columns, held, names)
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


def _items_to_decision(table: PairTable, listed: NDArray[np.int64]) -> NDArray[np.float64]:
    """Further items until the family-wise decision at the present estimate; beyond what is left of the benchmark it is an extrapolation."""
    mixture = table.benchmark.spec.mixture
    n, wins, losses, threshold = (x[listed] for x in (table.n, table.wins, table.losses, table.log_family_threshold))
    more = items_to_decision(n, wins, losses, threshold, mixture)[1]
    if table.missing is None or table.benchmark.spec.order.policy == "trusted":
        return more
    left = table.missing[listed]
    within = items_to_completion_decision(n, wins, losses, left, threshold, mixture)
    return np.where(np.isfinite(within), within, np.maximum(more, left + 1))


def _decided(
    table: PairTable, clusters: ClusterColumns | None, column: _Column, held: str | None
) -> dict[str, list[Any]]:
    binary = table.benchmark.binary
    fixed = table.decided_fixed if binary else {}
    # An invalidated decision no longer counts: its status tells of it, the columns do not.
    anytime = table.decided_anytime if held is None else {}
    names = ("fixed_n", "bonferroni", "holm", "benjamini_hochberg", "bonferroni_adjacent")
    decided = {name: column.sides(fixed.get(name)) for name in names}
    decided["clustered"] = column.sides(clusters.decided if clusters else None)
    for name in ("anytime", "anytime_family"):
        decided[name] = column.sides(anytime.get(name))
    decided["e_bh"] = column.sides(table.decided_e_bh if binary and held is None else None)
    return decided


def _resolved(table: PairTable, clusters: ClusterColumns | None, column: _Column) -> dict[str, list[bool | None]]:
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
                required_n=_number(n_star),
                resolution_ratio=float(table.n[q] / n_star) if isfinite(n_star) and n_star > 0 else None,
            )
        )
    return rows


def _verdicts(
    table: PairTable,
    listed: NDArray[np.int64],
    columns: dict[str, list[Any]],
    held: str | None,
    names: list[str],
) -> tuple[list[Status], list[str], list[int | None]]:
    """Status, sentence and place of decision of each listed pair."""
    benchmark = table.benchmark
    margin = benchmark.spec.margin
    missing = table.missing
    policy = "completion" if table.assumed_items is not None else benchmark.spec.order.policy
    assumption = (
        f"the {table.assumed_items:,} items found are the whole benchmark"
        if table.assumed_items is not None
        else _ASSUMPTIONS.get(policy)
    )
    latched = {name: _Column(listed).sides(sides) for name, sides in table.decided_anytime.items()}
    outside = _outside(table, listed)
    statuses: list[Status] = []
    reasons: list[str] = []
    decided_at: list[int | None] = []
    for r, q in enumerate(listed.tolist()):
        side = latched["anytime_family"][r]
        left = None if missing is None else int(missing[q])
        inside = (
            margin is not None
            and columns["gap_family_low"][r] is not None
            and -margin < columns["gap_family_low"][r]
            and columns["gap_family_high"][r] < margin
            and (policy == "trusted" or left == 0)
        )
        status: Status
        if side is not None:
            status = "invalidated" if held is not None else "decided"
        elif held is not None:
            status = "held"
        elif inside:
            status = "equivalent"
        else:
            status = "exhausted" if left == 0 else "collecting"
        statuses.append(status)
        reasons.append(
            reason(
                PairFacts(
                    model_a=names[table.a[q]],
                    model_b=names[table.b[q]],
                    status=status,
                    side=side,
                    n=columns["n"][r],
                    discordant=None if columns["b"][r] is None else columns["b"][r] + columns["c"][r],
                    low=columns["gap_family_low"][r],
                    high=columns["gap_family_high"][r],
                    pair_side=latched["anytime"][r],
                    missing=left,
                    items_to_decision=columns["items_to_decision"][r],
                    held=held,
                    gap=columns["gap"][r],
                    assumption=assumption,
                    no_family=outside[r],
                )
            )
        )
        decided_at.append(None if side is None else _decided_at(table, q))
    return statuses, reasons, decided_at


def _outside(table: PairTable, listed: NDArray[np.int64]) -> list[str | None]:
    """Why a pair has no family verdict, or None where it may get one."""
    full = f"pairs that came before it have filled the declared family ({table.benchmark.spec.family.capacity or 0:,})"
    placed = np.isfinite(table.log_family_threshold)
    return [
        (full if table.in_family[q] else "it is not in the declared family") if table.n[q] and not placed[q] else None
        for q in listed.tolist()
    ]


def _decided_at(table: PairTable, q: int) -> int:
    """Shared items at which the pair was decided: of the latch, or of the moment when completeness was asserted."""
    latch = table.benchmark.changes.get(f"{table.pair[q]}:anytime_family:decided")
    return int(table.n[q]) if latch is None else latch.evidence.n


def _summary(table: PairTable, rows: list[PairReport], listed: NDArray[np.int64]) -> Summary:
    """Count what each procedure leaves open among the listed pairs; a procedure that was not computed is left out."""
    column = _Column(listed)
    undecided: dict[str, int] = {}
    unresolved: dict[str, int] = {}
    computed = _computed(table, rows)
    for name in Decided.model_fields:
        if name in computed:
            undecided[name] = sum(getattr(row.decided, name) is None for row in rows)
    for name in Resolved.model_fields:
        values = [getattr(row.resolved, name) for row in rows]
        if rows and None not in values:
            unresolved[name] = sum(not value for value in values)
    if table.benchmark.binary and rows:
        undecided["bonferroni_adjacent"] = sum(
            side is None and row.adjacent
            for side, row in zip(column.sides(table.decided_fixed["bonferroni_adjacent"]), rows, strict=True)
        )
    if rows:
        flags = table.resolved(table.required_n(table.benchmark.spec.alpha / max(int(table.adjacent.sum()), 1)))
        unresolved["bonferroni_adjacent"] = sum(
            not flag and row.adjacent for flag, row in zip(column.flags(flags), rows, strict=True)
        )
    return Summary(pairs=len(rows), undecided=undecided, unresolved=unresolved)


def _computed(table: PairTable, rows: list[PairReport]) -> set[str]:
    if not rows:
        return set()
    names = {"anytime", "anytime_family"}
    if table.benchmark.binary:
        names |= {"fixed_n", "bonferroni", "holm", "benjamini_hochberg"}
        if table.benchmark.spec.order.policy != "none" or table.assumed_items is not None:
            names.add("e_bh")
    if any(row.p_clustered is not None for row in rows):
        names.add("clustered")
    return names

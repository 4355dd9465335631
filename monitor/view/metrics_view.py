"""What the metrics show of a benchmark: some pairs one by one, and counts over all."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np

from monitor.view.board import BoardView, Floats, Sides
from monitor.view.kinds.kind import resolution_ratio
from monitor.view.pairs.clusters import (
    NEIGHBOURS,
    ClusterColumns,
    cluster_columns,
    cluster_resolution_ratio,
    clusters_report,
    count_undecided,
    count_unresolved,
    decisions,
    required_n_by_procedure,
)
from monitor.view.pairs.intervals import evidence_columns
from monitor.view.pairs.rows import STATUSES, status_codes
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.goal import goal_report
from monitor.view.ranking.standings import model_reports
from schemas.results.changes import CLAIMS, DRIFT_KINDS, PROCEDURES, Claim, Kind
from schemas.results.report import DECISION_PROCEDURES, ClustersReport, GoalReport, ModelReport, Status
from stats.numerics.pairs import Index

PAIR_CAP: Final = 300  # pairs of a benchmark that have series of their own, at most


_EXHAUSTED: Final = STATUSES.index("exhausted")
_ENDS: Final[tuple[Kind, ...]] = ("invalidated", "superseded")
_KINDS_OF: Final[dict[Claim, tuple[Kind, ...]]] = {  # the verdict changes that each claim may have
    "anytime": ("decided", "reversed", *_ENDS),
    "anytime_family": ("decided", "reversed", *_ENDS),
    "settled": ("settled", *_ENDS),
}


@dataclass(frozen=True)
class BoardCounts:
    """What the metrics show of every benchmark: counts over all pairs of its current models."""

    model_count: int
    items_least: int | None
    pairs: int
    decided: dict[str, int]
    settled: int
    changes: dict[tuple[str, str], int]
    exhausted: int
    beyond_capacity: int
    neighbours_undecided: int | None
    followed: int
    clusters: ClustersReport | None
    goal: GoalReport | None


@dataclass(frozen=True)
class MetricsView(BoardCounts):
    """A benchmark as the metrics show it, with models, procedures and pairs; "displayed" pairs have series of their own."""

    models: list[ModelReport]
    adjacent_undecided: dict[str, int]
    adjacent_unresolved: dict[str, int]
    pair: Index
    names: list[tuple[str, str]]
    n: Index
    statuses: list[Status]
    columns: dict[str, Floats]
    sides: dict[str, Sides]
    latched: dict[str, Sides]
    log_threshold: dict[str, Floats]
    resolution: dict[str, Floats]


def _counted(benchmark: BoardView) -> list[tuple[str, str]]:
    """Return the procedures and kinds of verdict changes that are counted, of a sentinel what its monitors report."""
    if benchmark.drift is not None:
        return [("drift", kind) for kind in DRIFT_KINDS]
    return [(procedure, kind) for procedure in CLAIMS for kind in _KINDS_OF[procedure]]


def board_counts(table: PairTable) -> BoardCounts:
    """Return what the metrics show of every benchmark, from its current table."""
    benchmark = table.described_from
    decided = {name: table.decided(name) for name in PROCEDURES}
    exhausted = (status_codes(table, np.arange(table.pairs.size)) == _EXHAUSTED) & (table.pairs.n > 0)
    family, capacity = decided["anytime_family"], benchmark.spec.family.capacity
    open_neighbours = table.pairs.adjacent if family is None else table.pairs.adjacent & (family == 0)
    items = table.benchmark.scored[table.ranking]
    return BoardCounts(
        model_count=table.ranking.size,
        items_least=int(items.min()) if items.size else None,
        pairs=table.pairs.size,
        decided={name: 0 if sides is None else int(np.count_nonzero(sides)) for name, sides in decided.items()},
        settled=int(np.count_nonzero(table.settled)),
        changes={key: benchmark.change_counts[key] for key in _counted(benchmark)},
        exhausted=int(np.count_nonzero(exhausted)),
        beyond_capacity=0 if capacity is None else int((benchmark.family_index()[table.pairs.pair] > capacity).sum()),
        followed=_candidates(table).size,
        neighbours_undecided=int(np.count_nonzero(open_neighbours)) if table.pairs.size else None,
        clusters=clusters_report(table, np.flatnonzero(table.pairs.adjacent)),
        goal=goal_report(table),
    )


def metrics_view(benchmark: BoardView, cap: int = PAIR_CAP, table: PairTable | None = None) -> MetricsView:
    """Select the pairs to display, and compute their series and the counts over all pairs; `table` is its current table."""
    table = PairTable(benchmark) if table is None else table
    candidates = _candidates(table)
    displayed = candidates[:cap]
    adjacent = np.flatnonzero(table.pairs.adjacent)  # all of them are counted, beyond the cap too
    near = candidates[: max(cap, adjacent.size)]  # the adjacent ones come first
    clusters = cluster_columns(table, near)
    needed = required_n_by_procedure(table, clusters, near)
    of_adjacent, of_displayed = (
        {name: n[:size] for name, n in needed.items()} for size in (adjacent.size, displayed.size)
    )
    statuses = [STATUSES[code] for code in status_codes(table, displayed).tolist()]
    n = table.pairs.n[displayed]
    columns = evidence_columns(table, displayed)
    columns["items_to_decision"][[status == "decided" for status in statuses]] = np.nan
    columns["gap"] = np.where(n > 0, table.kind.moments[0][displayed], np.nan)
    sides = decisions(table, clusters)
    names = [contestant.model for contestant in benchmark.contestants]
    none = np.zeros(table.pairs.size, np.int8)
    counted = {name: none if (side := sides[name]) is None else side for name in DECISION_PROCEDURES}
    return MetricsView(
        **vars(board_counts(table)),
        models=model_reports(table),
        adjacent_undecided=count_undecided(table, clusters, adjacent),
        adjacent_unresolved=count_unresolved(table, of_adjacent, adjacent),
        pair=table.pairs.pair[displayed],
        names=[(names[a], names[b]) for a, b in zip(table.pairs.a[displayed], table.pairs.b[displayed], strict=True)],
        n=n,
        statuses=statuses,
        columns=columns,
        sides={name: side[displayed] for name, side in counted.items()},
        latched={name: benchmark.latched[name][table.pairs.pair[displayed]] for name in PROCEDURES},
        log_threshold={
            "anytime": table.kind.log_e_threshold(np.full(displayed.size, -log(benchmark.spec.alpha))),
            "anytime_family": table.kind.log_e_threshold(table.log_family_threshold(displayed)),
        },
        resolution=_resolution(table, clusters, of_displayed, displayed),
    )


def _candidates(table: PairTable) -> Index:
    """Return adjacent pairs, then declared ones, then latched ones; by rank within each."""
    benchmark = table.benchmark
    declared = table.in_family if benchmark.spec.family.pairs is not None else np.zeros(table.pairs.size, bool)
    latched = np.logical_or.reduce([benchmark.latched[name][table.pairs.pair] != 0 for name in PROCEDURES])
    order = np.full(table.pairs.size, 3, np.int8)
    for place, some in ((2, latched), (1, declared), (0, table.pairs.adjacent)):
        order[some] = place
    candidates = np.flatnonzero(order < 3)
    return np.asarray(candidates[np.argsort(order[candidates], kind="stable")], np.int64)


def _resolution(
    table: PairTable, clusters: ClusterColumns | None, needed: Mapping[str, Floats], at: Index
) -> dict[str, Floats]:
    ratios = {
        name: resolution_ratio(table.pairs.n[at], n_star) for name, n_star in needed.items() if name != NEIGHBOURS
    }
    if clusters is not None:
        ratios["clustered"] = cluster_resolution_ratio(table.pairs.n[at], clusters.icc[at], needed["clustered"])
    return ratios

"""The pairs of a benchmark that are followed one by one, with what their series need; and counts over all pairs."""

from dataclasses import dataclass
from math import log
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.benchmark import PROCEDURES, Benchmark
from monitor.engine.state.pairs import Index
from monitor.report.build import decided_sides, hold_reason, live_columns
from monitor.report.clusters import ClusterColumns, cluster_columns
from monitor.report.pair_table import Floats, PairTable, Sides
from monitor.report.standings import model_reports, ranking_of
from monitor.report.statuses import STATUSES, status_codes
from schemas.changes import Kind
from schemas.report import DECISION_PROCEDURES, ModelReport, Status
from stats.eprocess import anytime_required_n

PAIR_CAP: Final = 300
"""Most pairs of a benchmark with series of their own."""


@dataclass(frozen=True)
class MetricsView:
    """A benchmark as the metrics tell of it.

    Attributes
    ----------
    models : list of ModelReport
        By rank.
    pairs : int
        Pairs of current models.
    decided : dict of str to int
        Pairs with a latched decision, by procedure.
    changes : dict of (str, str) to int
        Verdict changes by procedure and kind: all kinds, from 0 on, for an increase has to begin somewhere.
    exhausted : int
        Pairs that share every item and are not decided family-wise.
    beyond_capacity : int
        Pairs that came when the declared family was full.
    adjacent_undecided, adjacent_unresolved : dict of str to int
        What is open among the adjacent pairs, by procedure; a procedure that is not computed is left out.
    omitted : int
        Pairs that should be followed, and are not for the cap.
    pair : array of int64, shape (followed,)
        Index of each pair that is followed in the state.
    names : list of tuple of two str
        The better-ranked model of each, and the other.
    n : array of int64, shape (followed,)
        Shared items.
    statuses : list of str
    columns : dict of str to array, shape (followed,)
        ``gap`` and what `monitor.report.build.live_columns` returns.
    sides : dict of str to array of int8, shape (followed,)
        What is decided by procedure; all 0 where it is not computed.
    latched : dict of str to array of int8, shape (followed,)
        The latches of the anytime procedures, as `monitor.engine.state.benchmark.Benchmark` has them.
    log_threshold : dict of str to array, shape (followed,)
        What log e is compared with, by procedure; infinite for a pair without a place in the family.
    resolution : dict of str to array, shape (followed,)
        q by procedure; not finite where it is not defined.
    """

    models: list[ModelReport]
    pairs: int
    decided: dict[str, int]
    changes: dict[tuple[str, str], int]
    exhausted: int
    beyond_capacity: int
    adjacent_undecided: dict[str, int]
    adjacent_unresolved: dict[str, int]
    omitted: int
    pair: Index
    names: list[tuple[str, str]]
    n: NDArray[np.int64]
    statuses: list[Status]
    columns: dict[str, Floats]
    sides: dict[str, Sides]
    latched: dict[str, Sides]
    log_threshold: dict[str, Floats]
    resolution: dict[str, Floats]


def metrics_view(benchmark: Benchmark, cap: int = PAIR_CAP) -> MetricsView:
    """Choose the pairs to follow, and compute what is told of them and of all pairs."""
    table = PairTable(benchmark, ranking_of(benchmark))
    held = hold_reason(benchmark)
    worth = _worth_following(table)
    looked_at = worth[: max(cap, int(np.count_nonzero(table.adjacent)))]  # all of them, and they come first
    listed = worth[:cap]
    clusters = cluster_columns(table, looked_at)
    columns = live_columns(table, listed)
    statuses = status_codes(table, listed, held, columns["gap_family_low"], columns["gap_family_high"])
    decided = statuses == STATUSES.index("decided")
    columns["items_to_decision"][decided] = np.nan
    columns["gap"] = np.where(table.n[listed] > 0, table.moments[0][listed], np.nan)
    sides = decided_sides(table, clusters, held)
    needed = _required_n(table, clusters, looked_at)
    names = [contestant.model for contestant in benchmark.contestants]
    n = table.n[listed]
    latched = {name: benchmark.latched[name][table.pair] != 0 for name in PROCEDURES}
    missing = table.missing
    capacity = benchmark.spec.family.capacity
    single = np.full(listed.size, -log(benchmark.spec.alpha))
    return MetricsView(
        models=model_reports(table, held=held is not None and not benchmark.standing),
        pairs=int(table.pair.size),
        decided={name: int(np.count_nonzero(pairs)) for name, pairs in latched.items()},
        changes=_changes(benchmark),
        exhausted=0
        if missing is None
        else int(np.count_nonzero(~latched["anytime_family"] & (missing == 0) & (table.n > 0))),
        beyond_capacity=0 if capacity is None else max(0, benchmark.registered - capacity),
        adjacent_undecided=_undecided(table, clusters, sides, looked_at),
        adjacent_unresolved=_unresolved(table, needed, looked_at),
        omitted=max(0, worth.size - cap),
        pair=table.pair[listed],
        names=[(names[a], names[b]) for a, b in zip(table.a[listed].tolist(), table.b[listed].tolist(), strict=True)],
        n=n,
        statuses=[STATUSES[code] for code in statuses.tolist()],
        columns=columns,
        sides={name: _listed(sides[name], listed) for name in DECISION_PROCEDURES},
        latched={name: benchmark.latched[name][table.pair[listed]] for name in PROCEDURES},
        log_threshold={"anytime": single, "anytime_family": table.log_family_threshold[listed]},
        resolution=_resolution(n, {name: x[: listed.size] for name, x in needed.items()}, clusters, listed),
    )


def _changes(benchmark: Benchmark) -> dict[tuple[str, str], int]:
    """Count the verdict changes by what they leave behind, for there may be a million of them."""
    counts = {(procedure, kind): 0 for procedure in PROCEDURES for kind in get_args(Kind)}
    for procedure in PROCEDURES:
        latch = benchmark.latched[procedure]
        counts[procedure, "decided"] = int(np.count_nonzero(latch))
        counts[procedure, "reversed"] = int(np.count_nonzero(np.abs(latch) > 1))
    if len(benchmark.changes) > sum(counts.values()):
        # All that was decided is taken back at once, and nothing is decided after that.
        for procedure in PROCEDURES:
            counts[procedure, "invalidated"] = counts[procedure, "decided"]
    return counts


def _worth_following(table: PairTable) -> Index:
    """Return adjacent pairs, then declared ones, then latched ones; by rank within each."""
    benchmark = table.benchmark
    declared = table.in_family if benchmark.spec.family.pairs is not None else np.zeros(table.pair.size, bool)
    latched = np.zeros(table.pair.size, bool)
    for name in PROCEDURES:
        latched |= benchmark.latched[name][table.pair] != 0
    order = np.select([table.adjacent, declared, latched], [0, 1, 2], 3)
    worth = np.flatnonzero(order < 3)
    return np.asarray(worth[np.argsort(order[worth], kind="stable")], np.int64)


def _listed(sides: Sides | None, listed: Index) -> Sides:
    return np.zeros(listed.size, np.int8) if sides is None else sides[listed]


def _undecided(
    table: PairTable, clusters: ClusterColumns | None, sides: dict[str, Sides | None], listed: Index
) -> dict[str, int]:
    """Count the adjacent pairs that a procedure leaves undecided."""
    computed = {name for name in sides if name not in {"clustered", "e_bh"}} if listed.size else set()
    if table.bets and table.benchmark.spec.order.policy != "none" and listed.size:
        computed.add("e_bh")
    if clusters is not None and np.isfinite(clusters.p[listed]).any():
        computed.add("clustered")
    adjacent = listed[table.adjacent[listed]]
    return {
        name: adjacent.size if side is None else int(np.count_nonzero(side[adjacent] == 0))
        for name, side in sides.items()
        if name in computed
    }


def _required_n(table: PairTable, clusters: ClusterColumns | None, listed: Index) -> dict[str, Floats]:
    """N* of some pairs by procedure, where it is computed."""
    benchmark, alpha = table.benchmark, table.benchmark.spec.alpha
    neighbours = max(int(table.adjacent.sum()), 1)
    needed = {
        "fixed_n": table.required_n(alpha, listed),
        "bonferroni": table.required_n(alpha / table.family_size, listed),
        "bonferroni_adjacent": table.required_n(alpha / neighbours, listed),
    }
    if benchmark.binary:
        spec = benchmark.spec
        counts = (table.n[listed], table.wins[listed], table.losses[listed])
        needed["anytime"] = anytime_required_n(*counts, alpha, spec.power, spec.mixture)
    if clusters is not None:
        needed["clustered"] = clusters.required_n[listed]
    return needed


def _unresolved(table: PairTable, needed: dict[str, Floats], listed: Index) -> dict[str, int]:
    """Count the adjacent pairs that are too few items for their gap, by procedure."""
    if not listed.size:
        return {}
    adjacent, n = table.adjacent[listed], table.n[listed]
    return {name: int(np.count_nonzero(adjacent & ~((n >= n_star) & (n_star > 0)))) for name, n_star in needed.items()}


def _resolution(
    n: NDArray[np.int64], needed: dict[str, Floats], clusters: ClusterColumns | None, listed: Index
) -> dict[str, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        q = {name: n / n_star for name, n_star in needed.items() if name != "bonferroni_adjacent"}
    if clusters is not None:
        known = np.isfinite(clusters.icc[listed]) & np.isfinite(needed["clustered"])
        q["clustered"] = np.where(known, q["clustered"], np.nan)
    return q

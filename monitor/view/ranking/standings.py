"""The ranking of the models, the ranks that decisions leave open, and the pairs that each procedure leaves open."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from monitor.view.kinds.kind import is_resolved
from monitor.view.pairs.clusters import NEIGHBOURS, ClusterColumns, decisions
from monitor.view.pairs.counts import Flags, Floats, Sides, json_numbers
from monitor.view.pairs.table import PairTable
from schemas.records.scores import SCORE_UNIT, ZERO
from schemas.results.report import DECISION_PROCEDURES, ModelReport
from stats.families.ranks import rank_intervals, tie_groups
from stats.families.transitivity import CLOSURE_MODELS, transitive_closure
from stats.numerics.pairs import Index

Decisions = NDArray[np.bool_]


def decisions_by_rank(table: PairTable, undone: Sequence[int] = ()) -> Decisions:
    """Return the family-wise decisions in force over ranks, closed among models that are compared on the same items."""
    # The decisions of the pairs at the positions `undone` are omitted.
    sides = table.decided("anytime_family")
    if sides is None:
        return np.zeros((table.ranking.size, table.ranking.size), bool)
    if undone:
        sides = sides.copy()
        sides[list(undone)] = 0
    return closed_by_rank(table, sides)


def closed_by_rank(table: PairTable, sides: Sides) -> Decisions:
    """Return decisions of the pairs over ranks, closed among models that are compared on the same items."""
    better = table.pairs.matrix(sides, -sides) > 0
    if table.ranking.size > CLOSURE_MODELS or not better.any():
        return better
    compared = _items_compared(table)
    return better | transitive_closure(better & (compared[:, None] == compared))


def _items_compared(table: PairTable) -> Index:
    """Return a number for each model by rank: models with the same number are compared on the same items."""
    # A over B on some items and B over C on others leave open who is better of A and C. Decisions are about all items of the benchmark
    # where missing ones count at their worst, and in a committed order; elsewhere about the items that a pair shares.
    about_all = table.pairs.completes or table.benchmark.committed is not None
    return kinds_of_rows(table.kind.compared_on(table.ranking, about_all=about_all))


def kinds_of_rows(flags: NDArray[np.bool_]) -> Index:
    """Return a number for each row: equal rows have the same, in the order of the rows.

    `np.unique` of rows compares them field by field, for seconds with thousands of them, in which no other thread runs.

    >>> kinds_of_rows(np.array([[1, 0], [0, 1], [1, 0]], bool)).tolist()
    [1, 0, 1]
    """
    rows = [row.tobytes() for row in np.packbits(flags, axis=1)]
    numbers = {row: number for number, row in enumerate(sorted(set(rows)))}
    return np.array([numbers[row] for row in rows], np.int64)


@dataclass(frozen=True)
class SharedMeans:
    """The models on the items that all of them share, by rank on their own items."""

    items: int
    means: list[float | None]
    ranks: list[int | None]


def shared_means(table: PairTable) -> SharedMeans | None:
    """Return the means over the items that every model with a score has; None where all of them have the same items."""
    benchmark, ranking = table.benchmark, table.ranking
    codes = benchmark.item_codes()
    scored = codes[:, ranking] >= ZERO
    ranked = scored.any(axis=0)
    shared = scored[:, ranked].all(axis=1)
    if not ranked.any() or (scored[:, ranked].any(axis=1) == shared).all():
        return None
    items = int(shared.sum())
    if not items:
        return SharedMeans(0, [None] * ranking.size, [None] * ranking.size)
    sums = table.kind.sums_on(np.asarray(shared), ranking)
    if not np.isfinite(sums).all():
        return SharedMeans(items, [None] * ranking.size, [None] * ranking.size)
    names = [benchmark.contestants[k].model for k in ranking.tolist()]
    ranks: list[int | None] = [None] * ranking.size
    for place, r in enumerate(sorted(np.flatnonzero(ranked).tolist(), key=lambda r: (-sums[r], names[r])), 1):
        ranks[r] = place
    means = (sums / (items * SCORE_UNIT)).tolist()
    return SharedMeans(items, [None if ranks[r] is None else mean for r, mean in enumerate(means)], ranks)


def model_reports(table: PairTable, shared: SharedMeans | None = None) -> list[ModelReport]:
    """Report the models by rank, with the ranks that the decisions leave open, and what they have on shared items if that is given."""
    benchmark, ranking = table.benchmark, table.ranking
    size = ranking.size
    better = decisions_by_rank(table)
    low, high = rank_intervals(better)
    groups = tie_groups(np.arange(size), better)
    scored = benchmark.scored[ranking]
    means, *bounds = table.kind.means_of(ranking)
    unweighted = table.kind.unweighted(ranking)
    mean, mean_low, mean_high = (json_numbers(each) for each in (means, *bounds))
    items = table.assumed_items or benchmark.spec.items or benchmark.items
    coverage = table.kind.coverage(scored, items)
    titles = benchmark.shown_titles()
    contestants = [benchmark.contestants[k] for k in ranking.tolist()]
    counts, shares = scored.tolist(), coverage.tolist()
    lowest, highest, group = low.tolist(), high.tolist(), np.asarray(groups).tolist()
    return [
        ModelReport(
            model=contestants[r].model,
            title=titles.get(contestants[r].model),
            aliases=benchmark.aliases_of(contestants[r].model),
            epoch=contestants[r].epoch,
            items=counts[r],
            coverage=shares[r],
            mean=mean[r],
            mean_low=mean_low[r],
            mean_high=mean_high[r],
            shared_mean=None if shared is None else shared.means[r],
            shared_rank=None if shared is None else shared.ranks[r],
            unweighted_mean=unweighted[0][r],
            unweighted_rank=unweighted[1][r],
            rank=r + 1,
            rank_low=lowest[r],
            rank_high=highest[r],
            tie_group=group[r],
            repeats=table.kind.repeats(k),
            run_ended=table.asserted or k in benchmark.ended,
        )
        for r, k in enumerate(ranking.tolist())
    ]


# --- what each procedure leaves open ----------------------------------------------------------------------------------------------------


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

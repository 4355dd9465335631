"""The ranking of the models, the ranks and the bands of ties that decisions leave open."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import Flags, Sides, json_numbers
from monitor.view.pairs.table import PairTable
from monitor.view.values import TieBand, TieBands
from schemas.records.scores import SCORE_UNIT, ZERO
from schemas.results.report import ModelReport
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


# --- bands of ties ----------------------------------------------------------------------------------------------------------------------


MAX_LANES: Final = 8  # bands side by side at most; where more overlap, only the ranges of ranks are drawn

MAX_BANDS: Final = 2_000

MAX_TIED: Final = 50_000
"""Ties of models that lack items, at most: while the first of a thousand models is ahead of all others, they have a million."""

_MAX_WORK: Final = 500_000  # ties looked at in the search for bands, about .2 s


def tie_bands(table: PairTable, low_coverage: float) -> TieBands:
    """Return the ties of a benchmark by the family-wise decisions, and what follows from them, as the ranges of ranks do."""
    # A model with less than the share `low_coverage` of the items of the model that has most is `lacking`: it is undecided against nearly
    # all others, and would be in every band.
    return bands_of(decisions_by_rank(table), table.kind.lacking(table.ranking, low_coverage))


def tied_with(table: PairTable) -> list[tuple[int, ...]]:
    """Return for each model by rank the positions of all models that it is not decided against, also of those that lack items."""
    return tied_models(decisions_by_rank(table))


def tied_models(better: Flags) -> list[tuple[int, ...]]:
    """Return for each model by rank the positions of those it is not decided against; `better` as in `bands_of`."""
    tied = ~(better | better.T)
    np.fill_diagonal(tied, val=False)
    return [_positions(row) for row in tied]


def bands_of(better: Flags, lacking: Flags) -> TieBands:
    """Return the ties of a ranking.

    >>> better = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], bool)
    >>> ties = bands_of(better, np.zeros(4, bool))
    >>> [(band.members, band.lane) for band in ties.bands], ties.rules
    ([((0, 1), 0), ((1, 2), 1), ((3,), 0)], (2,))
    """
    tied = ~(better | better.T)
    np.fill_diagonal(tied, val=False)
    ranked = np.flatnonzero(~lacking)
    lists = int(np.count_nonzero(tied[lacking])) <= MAX_TIED
    sets = _largest_sets(tied[np.ix_(ranked, ranked)]) if lists else None
    bands, lanes = None, 0
    if sets is not None:
        placed = [tuple(ranked[list(members)].tolist()) for members in sets]
        bands, lanes = _in_lanes(sorted(placed, key=lambda members: (members[0], -len(members), members)))
    others = {k: _positions(tied[k]) if lists else () for k in np.flatnonzero(lacking).tolist()}
    return TieBands(bands, lanes, _rules(better, ranked), others)


def _rules(better: Flags, ranked: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the positions after which all models above are decided over all below."""
    among = better[np.ix_(ranked, ranked)]
    # How far up from the last model each one is decided to be better than all, and how far that goes for every model down to this one.
    reach = np.minimum.accumulate(among[:, ::-1].argmin(axis=1)) if ranked.size else ranked
    below = ranked.size - 1 - np.arange(ranked.size)
    return tuple(ranked[(reach >= below) & (below > 0)].tolist())


def _positions(flags: Flags) -> tuple[int, ...]:
    return tuple(np.flatnonzero(flags).tolist())


def _in_lanes(sets: Sequence[tuple[int, ...]]) -> tuple[tuple[TieBand, ...], int]:
    """Place each band in the first lane that is free from its first to its last member."""
    last: list[int] = []
    bands = []
    for members in sets:
        lane = next((lane for lane, end in enumerate(last) if end < members[0]), len(last))
        last[lane : lane + 1] = [members[-1]]
        bands.append(TieBand(members, lane))
    return tuple(bands), len(last)


def _largest_sets(tied: Flags) -> list[tuple[int, ...]] | None:
    """Return the largest sets of models that are all tied; None where they are too many, or more than `MAX_LANES` overlap."""
    # Models tied with each other and with the same others are in the same sets: one of them is enough.
    kind = kinds_of_rows(tied | np.eye(tied.shape[0], dtype=bool))
    alike = [_positions(kind == k) for k in range(int(kind.max(initial=-1)) + 1)]
    chosen = [members[0] for members in alike]
    neighbours = [
        int("0" + "".join("01"[bit] for bit in row[::-1]), 2) for row in tied[np.ix_(chosen, chosen)].tolist()
    ]
    sets: list[tuple[int, ...]] = []
    side_by_side = np.zeros(tied.shape[0], np.int64)
    for found in _cliques(neighbours):
        if found is None or len(sets) == MAX_BANDS:
            return None
        members = tuple(sorted(k for place in found for k in alike[place]))
        across = side_by_side[members[0] : members[-1] + 1]
        across += 1
        if across.max() > MAX_LANES:
            return None  # a large board gives up after a few dozen of its sets
        sets.append(members)
    return sets


def _cliques(neighbours: Sequence[int]) -> Iterator[tuple[int, ...] | None]:
    """Search the maximal cliques of a graph (Bron and Kerbosch, with pivots); give up with None after too much work."""
    # `neighbours` has one number a vertex, with a bit for each neighbour.
    work = 0
    stack: list[tuple[tuple[int, ...], int, int]] = [((), (1 << len(neighbours)) - 1, 0)] if neighbours else []
    while stack:
        clique, candidates, excluded = stack.pop()
        if not candidates:
            if not excluded:
                yield clique
            continue
        both = candidates | excluded
        work += both.bit_count()
        if work > _MAX_WORK:
            yield None
            return
        pivot = max(_bits(both), key=lambda v: (candidates & neighbours[v]).bit_count())
        for v in _bits(candidates & ~neighbours[pivot]):
            stack.append(((*clique, v), candidates & neighbours[v], excluded & neighbours[v]))
            candidates &= ~(1 << v)
            excluded |= 1 << v


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low

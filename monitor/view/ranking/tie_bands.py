"""Tie bands: the largest sets of models none of which is decided against another, and where no tie crosses."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.view.pairs.table import PairTable
from monitor.view.ranking.standings import decisions_by_rank, kinds_of_rows

Flags = NDArray[np.bool_]

MAX_LANES: Final = 8  # bands side by side at most; where more overlap, only the ranges of ranks are drawn

MAX_BANDS: Final = 2_000

MAX_TIED: Final = 50_000
"""Ties of models that lack items, at most: while the first of a thousand models is ahead of all others, they have a million."""

_MAX_WORK: Final = 500_000  # ties looked at in the search for bands, about .2 s


@dataclass(frozen=True)
class TieBand:
    """A largest set of models none of which is decided against another, as positions in the ranking from 0, and its lane from the left."""

    members: tuple[int, ...]
    lane: int


@dataclass(frozen=True)
class TieBands:
    """The ties of a ranking."""

    bands: tuple[TieBand, ...] | None
    lanes: int
    rules: tuple[int, ...]
    lacking: dict[int, tuple[int, ...]]


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

"""Ratings of models from battles: Bradley-Terry strengths over all units, the islands they leave apart, and the ranking."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.battles import Units
from monitor.view.board import BoardView
from schemas.records.scores import SCORE_UNIT
from stats.battles.bradley_terry import ELO, BradleyTerry, Groups, bradley_terry, groups_of
from stats.numerics.pairs import Index, pair_members

CENTRE: Final = 1_000.0  # the mean rating of each island, or the rating of the anchor

SMALLEST_ERROR: Final = 1e-6
"""Rating points. A smaller standard error is unknown: the sandwich is 0 where every vote is what the ratings expect, as with ties only."""


@dataclass(frozen=True)
class Ratings:
    """The ratings of one benchmark; arrays of shape (contestants,) unless a shape is given."""

    names: list[str]
    units: Units
    first: Index
    second: Index
    groups: Groups
    fit: BradleyTerry
    anchor: int | None

    @cached_property
    def points(self) -> NDArray[np.float64]:
        """Points of the first model of each unit, in [0, 1]."""
        return (1 + self.units.difference / SCORE_UNIT) / 2

    @cached_property
    def rated(self) -> NDArray[np.bool_]:
        """Whether a model has a finite rating: it is in the largest group of its island, with another model."""
        size = np.bincount(self.groups.group, minlength=1)[self.groups.group]
        rated = np.zeros(size.size, bool)
        for island in np.unique(self.groups.island):
            members = np.flatnonzero(self.groups.island == island)
            largest = self.groups.group[members[np.argmax(size[members])]]
            rated[members] = self.groups.group[members] == largest
        return rated & (size > 1)

    @cached_property
    def order(self) -> Index:
        """Contestants from the best to the worst: by island, then by whom they lost to, then by strength, ties by name."""
        keys = zip(
            self.groups.island, self.groups.level, -self.fit.strength, self.names, range(len(self.names)), strict=True
        )
        return np.array([k for *_, k in sorted(keys)], np.int64)

    def anchor_of(self, island: int) -> int | None:
        """Return the anchor, if it is rated and in an island."""
        anchor = self.anchor
        found = anchor is not None and self.rated[anchor] and self.groups.island[anchor] == island
        return anchor if found else None

    @cached_property
    def ratings(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rating of each model and its standard error; NaN for one without a finite rating."""
        rating, error = np.full((2, len(self.names)), np.nan)
        for island in np.unique(self.groups.island):
            members = np.flatnonzero(self.rated & (self.groups.island == island))
            anchor = self.anchor_of(int(island))
            zero = 0.0 if anchor is None else self.fit.strength[anchor]
            rating[members] = CENTRE + ELO * (self.fit.strength[members] - zero)
            error[members] = ELO * self.fit.error(anchor)[members]
            others = members[members != (-1 if anchor is None else anchor)]
            error[others[error[others] < SMALLEST_ERROR]] = np.nan
        return rating, error


def ratings_of(benchmark: BoardView) -> Ratings:
    """Return the ratings of a benchmark that holds battles; they are kept with it."""
    return benchmark.once(_ratings)


def _ratings(benchmark: BoardView) -> Ratings:
    assert benchmark.battles is not None
    units = benchmark.battles.units()
    first, second = pair_members(units.pair)
    points = (1 + units.difference / SCORE_UNIT) / 2
    size = len(benchmark.contestants)
    fit = bradley_terry(first, second, points, size, shown=units.order, cluster=units.prompt)
    groups = groups_of(first, second, points, size)
    names = [contestant.model for contestant in benchmark.contestants]
    anchor = names.index(benchmark.spec.anchor) if benchmark.spec.anchor in names else None
    return Ratings(names, units, first, second, groups, fit, anchor)

"""Battles: pairs bet on the prompts on which both were voted on, and are ranked by their ratings. `kind_of` chooses among all kinds."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.battles import Units
from monitor.engine.state.graded import GradedPairs
from monitor.view.board import BoardView, Flags, Floats
from monitor.view.kinds.binary import Binary
from monitor.view.kinds.graded import Graded, Members, Weighted, last_bounds
from monitor.view.kinds.kind import MOST_PAIRS, Bounds, Kind, Sums, counted
from monitor.view.pairs.ratings import ratings_of
from monitor.view.pairs.weights import weighted_scores
from schemas.records.scores import SCORE_UNIT
from schemas.results.assumptions import BATTLES
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import RepeatsReport
from stats.fixed_n.mcnemar import chi2_p
from stats.numerics.pairs import Index


class Battles(Kind):
    """Pairs of models between which votes choose; the other half of the class is how they bet."""

    unit: ClassVar = "prompt"
    member_state: ClassVar = "battles"
    marginless: ClassVar = "battles"
    has_end: ClassVar = False

    @classmethod
    def ranking(cls, drawn: BoardView) -> Index:
        return ratings_of(drawn).order

    @classmethod
    def repeats_of(cls, benchmark: BoardView, contestants: Any) -> RepeatsReport | None:  # noqa: ANN401 - an index of any kind
        assert benchmark.battles is not None
        return counted(benchmark.battles.counts)

    def repeats(self, contestant: int) -> None:
        """Return None: votes are of pairs."""

    def means_of(self, models: Index) -> tuple[Floats, Floats, Floats]:
        unknown = np.full(models.size, np.nan)
        return self.plain_means(models)[0], unknown, unknown

    def rated(self, ranking: Index) -> Fact:
        ratings, best = ratings_of(self.pairs.drawn), int(ranking[0])
        rating = float(ratings.ratings[0][best]) if ratings.rated[best] else None
        return fact(
            Reason.RATED, model=ratings.names[best], rating=rating, islands=int(ratings.groups.island.max()) + 1
        )

    def unmet(self, *, ended: bool, waits: bool) -> Fact:
        return fact(Reason.NOT_MET, waits=waits)

    def coverage(self, scored: Index, items: int) -> Floats:
        return np.ones(scored.size)

    def compared_on(self, models: Index, *, about_all: bool) -> Flags:
        return np.eye(models.size, dtype=bool)

    def lacking(self, models: Index, share: float) -> Flags:
        return np.zeros(models.size, bool)

    def right(self, models: Index) -> None:
        """Return None: no model is right or wrong here, only better or worse."""

    @cached_property
    def units(self) -> Units:
        """The units of battles that pairs bet on."""
        return self.benchmark.betting_units()

    @cached_property
    def _by_pair(self) -> tuple[Index, Index]:
        """The units by pair, each in the order of their prompts, and their pairs."""
        order = np.argsort(self.units.pair, kind="stable")
        return order, self.units.pair[order]

    def differences(self, q: int) -> Floats:
        """Return D of each unit of a pair, in the order in which the benchmark saw the prompts first."""
        order, pairs = self._by_pair
        low, high = np.searchsorted(pairs, [self.pairs.pair[q], self.pairs.pair[q] + 1])
        d = self.units.difference[order[low:high]] / SCORE_UNIT
        return -d if self.pairs.flip[q] else d

    def add_up(self) -> Sums:
        d = self.units.difference / SCORE_UNIT
        size, pairs = self.benchmark.pairs, self.pairs
        s1, s2 = (np.bincount(self.units.pair, values, size).astype(np.float64)[pairs.pair] for values in (d, d * d))
        s1 = np.where(pairs.flip, -s1, s1)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (1 + s1 / pairs.n) / 2
        return mean, 1 - mean, s1, s2

    def means(self, at: Index) -> tuple[Floats, Floats]:
        return self.sums[0][at], self.sums[1][at]

    def win_matrices(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the prompts on which models met, and those that the model of the row won, by rank."""
        # As for the ratings, all votes count, also those of prompts that wait for more.
        units, pairs = ratings_of(self.pairs.drawn).units, self.pairs
        met, first, second = (
            np.bincount(units.pair[some], minlength=self.benchmark.pairs)[pairs.pair]
            for some in (slice(None), units.difference > 0, units.difference < 0)
        )
        won = (np.where(pairs.flip, x, y) for x, y in ((second, first), (first, second)))
        return pairs.matrix(met, met), pairs.matrix(*won)

    def drawn_again(self) -> bool:
        return False

    @property
    def policy(self) -> str:
        policy = super().policy
        return BATTLES if policy == "trusted" else policy


class BinaryBattles(Battles, Binary):
    """Battles of one vote each without ties."""

    right_or_wrong: ClassVar = False

    def tests(self, at: Index, means: tuple[Floats, Floats]) -> dict[str, Floats]:
        wins, losses = self.pairs.wins[at], self.pairs.losses[at]
        unknown = np.full(at.size, np.nan)
        return {"p_chi2": chi2_p(wins, losses), "p_exact": self.p_exact[at], "p_mid": self.p_mid(at), "rho": unknown}


class GradedBattles(Battles, Graded):
    """Battles with ties, or several votes a unit."""

    def sharpen(self, gap: Floats, sd: Floats) -> None:
        """Change nothing: sums of points are exact."""

    def summed(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        graded = GradedPairs()
        graded.grow(len(self.benchmark.contestants))
        graded.add(self.units.pair, self.units.difference)
        return graded.capital[self.pairs.pair], graded.lead[self.pairs.pair]

    def bounds_now(self, at: Index, *levels: Floats) -> list[Bounds]:
        bounds = [(np.full(at.size, np.nan), np.full(at.size, np.nan)) for _ in levels]
        if max(at.size, self.pairs.listed) > MOST_PAIRS:
            return bounds
        for row in np.flatnonzero(self.pairs.n[at] > 0).tolist():
            half = (self.differences(int(at[row]))[None] + 1) / 2
            for (low, high), alpha in zip(bounds, levels, strict=True):
                if alpha[row] > 0:
                    ends = last_bounds(half, np.array([half.size]), alpha[row : row + 1])
                    low[row], high[row] = ends[0][0], ends[1][0]
        return bounds


def kind_of(benchmark: BoardView) -> type[Kind]:
    """Return the kind of the scores that a board is described with."""
    described = benchmark.described()
    if described.battles is not None:
        return BinaryBattles if described.binary else GradedBattles
    if described.suite is not None:
        return Members
    if described.once(weighted_scores) is not None:
        return Weighted
    return Binary if described.binary else Graded

"""The pairs of a leaderboard and what their scores add up to."""

from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.battles import Units
from monitor.view.board import BoardView
from monitor.view.pairs.ratings import ratings_of
from monitor.view.pairs.weights import WeightedScores, weighting_of
from schemas.records.scores import ONE, SCORE_UNIT, ZERO
from stats.clusters.weighted import Stratified
from stats.fixed_n.paired import moments, moments_from_sums
from stats.numerics.pairs import Index, pair_index, ranked_pairs

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_SLAB_ROWS: Final = 8_192

SLAB_CELLS: Final = 4_000_000  # scores of pairs that are compared at a time

FEW: Final = 0.01  # share of the pairs up to which their sums are computed one by one

_SMALL_SPREAD: Final = 1e-4
"""Below it the standard deviation of D is computed from the rows: as a difference of sums of squares it has an error of about 1e-8."""


@dataclass
class PairCounts:
    """Counts and sums of every pair of the current models; a is the better-ranked of the two."""

    benchmark: BoardView
    assumed_items: int | None = None
    one_look: bool = False
    superseded: tuple[Index, Index] | None = None
    a: Index = field(init=False)
    b: Index = field(init=False)
    adjacent: Flags = field(init=False)

    def __post_init__(self) -> None:
        self.described_from = self.benchmark
        self.benchmark = self.benchmark.described()
        if self.superseded is not None:
            self.a, self.b = self.superseded
            self.adjacent = np.zeros(self.a.size, bool)
            return
        first, second = ranked_pairs(self.ranking.size)
        self.a, self.b = self.ranking[first], self.ranking[second]
        self.adjacent = second == first + 1

    @cached_property
    def ranking(self) -> Index:
        """Current contestants from the best mean to the worst, ties by name; one without a score comes last."""
        benchmark = self.benchmark
        if benchmark.battles is not None:
            return ratings_of(self.described_from).order
        current = np.flatnonzero(benchmark.current()) if benchmark.contestants else np.empty(0, np.int64)
        total, scored, weighted = benchmark.total, benchmark.scored, self.weighted
        if weighted is not None:
            means = weighted.means
            return np.array(
                sorted(
                    current.tolist(),
                    key=lambda k: (-means[k] if isfinite(means[k]) else inf, benchmark.contestants[k].model),
                ),
                np.int64,
            )

        def place(k: int) -> tuple[float, str]:
            return (-total[k] / scored[k] if scored[k] else 1.0, benchmark.contestants[k].model)

        return np.array(sorted(current.tolist(), key=place), np.int64)

    @cached_property
    def weighted(self) -> WeightedScores | None:
        """The scores by cluster, where clusters are weighted."""
        weighting = weighting_of(self.benchmark)
        return None if weighting is None else WeightedScores(self.benchmark, weighting)

    @cached_property
    def stratified(self) -> tuple[Stratified, Floats, Floats] | None:
        """Moments of the weighted gap, and weighted means on the shared items; None where clusters are not weighted."""
        return None if self.weighted is None else self.weighted.of_pairs(self.a, self.b)

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return self.a.size

    @property
    def asserted(self) -> bool:
        """Whether the items read are taken as the whole benchmark."""
        return self.assumed_items is not None

    @cached_property
    def pair(self) -> Index:
        """Index of each pair in the state."""
        return pair_index(np.minimum(self.a, self.b), np.maximum(self.a, self.b))

    @cached_property
    def flip(self) -> Flags:
        """Whether a is the second contestant of the pair in the state."""
        return np.asarray(self.a > self.b)

    @cached_property
    def n(self) -> Index:
        """Shared items."""
        return self.benchmark.sums().n[self.pair].astype(np.int64)

    @cached_property
    def wins(self) -> Index:
        """Items that only a has right."""
        return np.where(self.flip, self.benchmark.sums().c[self.pair], self.benchmark.sums().b[self.pair]).astype(
            np.int64
        )

    @cached_property
    def losses(self) -> Index:
        """Items that only b has right."""
        return np.where(self.flip, self.benchmark.sums().b[self.pair], self.benchmark.sums().c[self.pair]).astype(
            np.int64
        )

    @cached_property
    def sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean score of a and of b on the shared items (weighted, if clusters are), and the sums of D and of D^2 over them."""
        if self.benchmark.battles is not None:
            return self._battle_sums
        x, scored = self.scores
        contestants = x.shape[1]
        on_shared, squares, products = np.zeros((3, contestants, contestants))
        for start in range(0, x.shape[0], _SLAB_ROWS):
            values, present = x[start : start + _SLAB_ROWS], scored[start : start + _SLAB_ROWS]
            on_shared += values.T @ present
            products += values.T @ values
            squares += on_shared_squares(values, present) if not self.benchmark.binary else 0
        if self.benchmark.binary:
            squares = on_shared
        a, b = self.a, self.b
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_a, mean_b = on_shared[a, b] / self.n, on_shared[b, a] / self.n
        if self.stratified is not None:
            _, mean_a, mean_b = self.stratified
        return mean_a, mean_b, on_shared[a, b] - on_shared[b, a], squares[a, b] + squares[b, a] - 2 * products[a, b]

    def means(self, at: Index) -> tuple[Floats, Floats]:
        """Return the mean score of a and of b on the items that they share, of some pairs; see `sums`."""
        benchmark = self.benchmark
        one_by_one = benchmark.binary and benchmark.battles is None and self.weighted is None
        if not one_by_one or at.size > FEW * self.size:
            return self.sums[0][at], self.sums[1][at]
        # Sums over all pairs are products of matrices of all models.
        codes, n = benchmark.item_codes(), self.n[at]
        sums = np.zeros((2, at.size))
        step = max(1, SLAB_CELLS // max(1, codes.shape[0]))
        for start in range(0, at.size, step):
            some = slice(start, start + step)
            a, b = codes[:, self.a[at[some]]], codes[:, self.b[at[some]]]
            shared = (a >= ZERO) & (b >= ZERO)
            sums[:, some] = [np.count_nonzero(shared & (each == ONE), axis=0) for each in (a, b)]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean_a, mean_b = sums / n
        return mean_a, mean_b

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
        low, high = np.searchsorted(pairs, [self.pair[q], self.pair[q] + 1])
        d = self.units.difference[order[low:high]] / SCORE_UNIT
        return -d if self.flip[q] else d

    @cached_property
    def _battle_sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """`sums` of battles: mean points of a and of b, and the sums of D and of D^2."""
        d = self.units.difference / SCORE_UNIT
        size = self.benchmark.pairs
        s1, s2 = (np.bincount(self.units.pair, values, size).astype(np.float64)[self.pair] for values in (d, d * d))
        s1 = np.where(self.flip, -s1, s1)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = (1 + s1 / self.n) / 2
        return mean, 1 - mean, s1, s2

    @cached_property
    def scores(self) -> tuple[Floats, Floats]:
        """Scores in [0, 1] (0 where there is none) and presence, of the rows that bet, shape (rows, contestants)."""
        benchmark = self.benchmark
        codes = benchmark.item_codes()
        if benchmark.binary:
            return (codes == ONE).astype(np.float64), (codes >= ZERO).astype(np.float64)
        return benchmark.item_values[codes] / SCORE_UNIT, (codes >= ZERO).astype(np.float64)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Gap and standard deviation of D; a standard deviation of 0 is exact: D is the same on every shared item.

        Where clusters are weighted: the weighted gap, and the deviation that makes its variance that of a mean over the shared items. Both
        are nan without a shared item of some cluster, the deviation also with a single one.
        """
        if self.stratified is not None:
            gap, variance, *_ = self.stratified[0]
            return gap, np.sqrt(self.n * variance)
        if self.benchmark.binary:
            return moments(self.n, self.wins, self.losses)
        _, _, s1, s2 = self.sums
        gap, sd = moments_from_sums(self.n, s1, np.maximum(s2, 0))
        small = np.flatnonzero((sd < _SMALL_SPREAD) & (self.benchmark.battles is None))
        sd[small] = self._exact_spread(small, gap[small])
        return gap, sd

    def _exact_spread(self, at: Index, gap: Floats) -> Floats:
        """Return the standard deviation of D of some pairs from their rows: sums of squares of scores cancel to rounding noise."""
        codes, values = self.benchmark.item_codes(), self.benchmark.item_values
        centre = np.rint(gap * SCORE_UNIT).astype(np.int64)
        first, second = np.zeros((2, at.size))
        for start in range(0, codes.shape[0] if at.size else 0, _SLAB_ROWS):
            slab = codes[start : start + _SLAB_ROWS]
            scores = values[slab]
            for model in np.unique(self.a[at]):
                members = np.flatnonzero(self.a[at] == model)
                others = self.b[at[members]]
                shared = (slab[:, [model]] >= ZERO) & (slab[:, others] >= ZERO)
                deviation = np.where(shared, scores[:, [model]] - scores[:, others] - centre[members], 0) / SCORE_UNIT
                first[members] += deviation.sum(axis=0)
                second[members] += (deviation * deviation).sum(axis=0)
        n = np.maximum(self.n[at], 1)
        return np.sqrt(np.maximum(second / n - (first / n) ** 2, 0))

    @cached_property
    def missing(self) -> Index | None:
        """Items that a pair does not share yet; of a committed order, items after its prefix. None where their number is not known."""
        if self.benchmark.committed is not None:
            return self.benchmark.committed.size - self.benchmark.committed.prefix(self.a, self.b)
        items = self.assumed_items if self.assumed_items is not None else self.benchmark.spec.items
        if not self.asserted and self.benchmark.order_trusted and self.benchmark.too_many_items:
            return None
        return None if items is None else np.maximum(items - self.n, 0)

    @cached_property
    def ended(self) -> Flags:
        """Whether the runs of both models have ended; files that are taken as complete hold whole runs."""
        if self.asserted:
            return np.ones(self.size, bool)
        flags = self.benchmark.ended_flags()
        return flags[self.a] & flags[self.b]

    @cached_property
    def ignored(self) -> Index:
        """Missing items of pairs of ended runs that the declaration ignores; 0 elsewhere."""
        spec = self.benchmark.spec
        if self.missing is None or spec.missing == "worst" or (spec.order.policy == "trusted" and not self.asserted):
            return np.zeros(self.size, np.int64)
        lacking = self.missing if spec.items is None else np.maximum(spec.items - self.n, 0)
        return np.where(self.ended, lacking, 0)

    @cached_property
    def counted_missing(self) -> Index | None:
        """Missing items that verdicts count against the leader."""
        return None if self.missing is None else np.where(self.ignored > 0, 0, self.missing)

    @cached_property
    def left(self) -> Index | None:
        """Items that may still come."""
        return None if self.missing is None else np.where(self.ended, 0, self.missing)

    @cached_property
    def complete(self) -> Flags:
        """Whether no item is missing."""
        return np.zeros(self.size, bool) if self.missing is None else self.missing == 0

    def matrix(self, upper: NDArray[Any], lower: NDArray[Any]) -> NDArray[Any]:
        """Arrange values of the pairs by rank, shape (models, models): `upper` at (a, b), `lower` at (b, a), 0 on the diagonal."""
        models, start = self.ranking.size, 0
        matrix = np.zeros((models, models), upper.dtype)
        for rank in range(models - 1):
            end = start + models - 1 - rank
            matrix[rank, rank + 1 :] = upper[start:end]
            matrix[rank + 1 :, rank] = lower[start:end]
            start = end
        return matrix

    def win_matrices(self) -> tuple[NDArray[Any], NDArray[Any]] | None:
        """Return the prompts on which models met, and those that the model of the row won, by rank; None for scores of items.

        As for the ratings, all votes count, also those of prompts that wait for more.
        """
        if self.benchmark.battles is None:
            return None
        units = ratings_of(self.described_from).units
        met, first, second = (
            np.bincount(units.pair[some], minlength=self.benchmark.pairs)[self.pair]
            for some in (slice(None), units.difference > 0, units.difference < 0)
        )
        return self.matrix(met, met), self.matrix(
            *(np.where(self.flip, x, y) for x, y in ((second, first), (first, second)))
        )


def on_shared_squares(values: Floats, present: Floats) -> Floats:
    """Sum of squared scores of one model over the items it shares with another, shape (contestants, contestants)."""
    return np.asarray((values * values).T @ present)


def json_numbers(values: NDArray[Any]) -> list[float | None]:
    """Return numbers as JSON has them: None where there is no finite number."""
    finite = np.isfinite(values)
    listed: list[float | None] = values.tolist()
    for place in np.flatnonzero(~finite).tolist():
        listed[place] = None
    return listed

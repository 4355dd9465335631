"""Clusters that have weights: each item counts what its cluster gives it. A suite weighs its members so."""

from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.graded import WeightedPairs
from monitor.view.board import BoardView
from monitor.view.kinds.graded import Graded, grid_ends, on_grid
from monitor.view.kinds.kind import Bounds, Sums, current
from monitor.view.pairs.counts import ALL, Flags, Floats, PairCounts, Sides, json_numbers
from monitor.view.pairs.weights import WeightedScores, unweighted_ranking, weighted_scores, weights_report
from schemas.records.scores import ONE, SCORE_UNIT
from schemas.results.report import WeightsReport
from stats.clusters.weighted import Stratified, stratified_p
from stats.evidence.graded import graded_bound
from stats.numerics.pairs import Index

_FLOAT_ROUNDING: Final = 8
"""Units of `SCORE_UNIT` an item by which a sum of floats over at most `MAX_GRADED_ITEMS` scores may be wrong: more than their spacing."""

_NO_ROOM: Final = 2**60  # more than any lead

_Ints = NDArray[np.int64]


class Weighted(Graded):
    """Pairs of weighted clusters."""

    marginless: ClassVar = "weights"

    def __init__(self, pairs: PairCounts) -> None:
        super().__init__(pairs)
        self.weighted = _scores_of(self.benchmark)
        self.weighting = self.weighted.weighting

    @classmethod
    def ranking(cls, drawn: BoardView) -> Index:
        benchmark = drawn.described()
        means = _scores_of(benchmark).means
        place = {
            k: (-means[k] if np.isfinite(means[k]) else np.inf, benchmark.contestants[k].model)
            for k in current(benchmark).tolist()
        }
        return np.array(sorted(place, key=place.__getitem__), np.int64)

    def means_of(self, models: Index) -> tuple[Floats, Floats, Floats]:
        return self.weighted.means[models], *self.weighted.interval(models)

    def unweighted(self, models: Index) -> tuple[list[float | None], list[int | None]]:
        place = {k: rank for rank, k in enumerate(unweighted_ranking(self.benchmark, models).tolist(), 1)}
        return json_numbers(self.plain_means(models)[0]), [place[k] for k in models.tolist()]

    def weights(self, ranking: Index) -> WeightsReport:
        return weights_report(self.weighted, ranking)

    def sums_on(self, items: Flags, models: Index) -> Floats:
        return self.weighted.on(items, models) * int(items.sum()) * SCORE_UNIT

    @cached_property
    def stratified(self) -> tuple[Stratified, Floats, Floats]:
        """Moments of the weighted gap, and weighted means on the shared items."""
        return self.weighted.of_pairs(self.pairs.a, self.pairs.b)

    def add_up(self) -> Sums:
        _, _, s1, s2 = super().add_up()
        return self.stratified[1], self.stratified[2], s1, s2

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """The weighted gap, and the deviation that makes its variance that of a mean over the shared items."""
        # Both are nan without a shared item of some cluster, the deviation also with a single one.
        gap, variance, *_ = self.stratified[0]
        return gap, np.sqrt(self.pairs.n * variance)

    @property
    def cluster_weights(self) -> Floats:
        return np.asarray(self.weighting.weight)

    def constant(self) -> tuple[Flags, Floats] | None:
        return None

    @cached_property
    def p_fixed(self) -> Floats:
        return stratified_p(self.stratified[0])

    @cached_property
    def _by_cluster(self) -> tuple[_Ints, _Ints, NDArray[np.int32]]:
        """Capital, lead and shared items by cluster, the first model first."""
        benchmark, pairs = self.benchmark, self.pairs
        sums = None if benchmark.graded_sums is None else benchmark.graded_sums()
        if sums is not None and sums.shared is not None:
            return sums.capital[pairs.pair], sums.lead[pairs.pair], sums.shared[pairs.pair]
        first, second = np.minimum(pairs.a, pairs.b), np.maximum(pairs.a, pairs.b)
        return self.weighting.pairs_of(benchmark.item_codes(), benchmark.item_values, first, second)

    @property
    def of_pairs(self) -> tuple[_Ints, _Ints]:
        return self._by_cluster[:2]

    @property
    def room(self) -> tuple[_Ints, _Ints]:
        return self.weighting.room(self._by_cluster[2]), WeightedPairs.ROUNDING * self.pairs.n.astype(np.int64)

    def halves_at_worst(self, missing: Index, at: Index | slice) -> tuple[Floats, Floats]:
        return graded_bound((self.capital + self.weighting.lost(self._by_cluster[2]))[at])

    def without_missing(self, at: Index) -> None:
        """Return None: the shared items of a pair need not hold every cluster."""

    @property
    def item_scale(self) -> float:
        return self.weighted.item_scale

    @property
    def gap_scale(self) -> float:
        return self.weighted.gap_scale

    def shares(self, difference: Floats) -> Floats:
        return difference * (self.weighting.unit[self.weighting.cluster] / SCORE_UNIT)

    def ends(self, difference: Floats, shared: Flags, missing: Index, alpha: Floats) -> Bounds:
        unit = self.weighting.unit / SCORE_UNIT
        counts = on_grid(difference * unit[self.weighting.cluster], shared)
        lacking = np.maximum(self.weighting.size - self.weighting.counted(shared), 0)
        ones = np.ones((1, 1), bool)
        worst, best = (
            lacking @ np.concatenate([on_grid(side * unit[[k]][None], ones) for k in range(unit.size)])
            for side in (-1, 1)
        )
        return grid_ends(counts + worst, counts + best, np.zeros(difference.shape[0]), alpha)

    def weighed(self, difference: NDArray[Any], items: Index) -> NDArray[Any]:
        return np.asarray(self.weighting.weigh(difference[None], items)[0])

    def drawn_again(self) -> bool:
        return False

    def by_category(self) -> bool:
        spec = self.benchmark.spec
        return (spec.scores, spec.repeats) == ("binary", 1) and bool((self.benchmark.item_codes() <= ONE).all())


class Members(Weighted):
    """Pairs on the items of all members of a suite."""

    # Live decisions rest on evidence that never falls: the bound of policy completion, or the largest e along committed orders.

    @property
    def bets(self) -> bool:
        return self.pairs.asserted or self.benchmark.spec.order.policy != "none"

    @property
    def decides_at_end(self) -> bool:
        return self.pairs.asserted or self.benchmark.assumption_holds

    @property
    def shares_equally(self) -> bool:
        return self.pairs.asserted and super().shares_equally

    @property
    def leads(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        pairs = self.pairs
        if pairs.asserted:
            return self.lead
        if not self.benchmark.has_fixed_items:
            nothing = np.zeros(pairs.size, np.int64)
            return nothing, nothing + _NO_ROOM, nothing
        return *self.weighted.leads(pairs.a, pairs.b), _FLOAT_ROUNDING * pairs.n

    def bound(self, missing: Index, at: Index | slice = ALL) -> tuple[Floats, Sides]:
        united = self.benchmark.united
        if united is None or united.walked is None:
            return super().bound(missing, at)
        (peaks, sides), pair = united.walked, self.pairs.pair[at]
        peak, side = peaks[pair], sides[pair]
        return peak, np.where(self.pairs.flip[at], -side, side).astype(np.int8)

    def bounds_now(self, at: Index, *levels: Floats) -> list[Bounds]:
        return [(np.full(at.size, np.nan), np.full(at.size, np.nan)) for _ in levels]

    def evidence_along(self, differences: Floats, kept: Index) -> tuple[None, None, None]:
        return None, None, None


def _scores_of(benchmark: BoardView) -> WeightedScores:
    """Return the scores by cluster of a board that has weights."""
    scores = benchmark.once(weighted_scores)
    assert scores is not None
    return scores

"""Scores in [0, 1], and means of repeats or units: pairs bet on their differences. Clusters may weigh the items, as a suite its members."""

from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.bets import GRADED_MIXTURE
from monitor.engine.state.graded import GradedPairs, WeightedPairs, capital_of
from monitor.view.board import ALL, BoardView, Flags, Floats, PairCounts, Sides, json_numbers, unweighted_ranking
from monitor.view.kinds.kind import MOST_PAIRS, SLAB_ROWS, Bounds, Course, Kind, Sums, Walk, current
from monitor.view.pairs.weights import WeightedScores, weighted_scores, weights_report
from schemas.records.scores import ONE, SCORE_UNIT, ZERO
from schemas.results.report import WeightsReport
from stats.clusters.weighted import Stratified, stratified_p
from stats.evidence.graded import (
    MAX_ITEMS,
    graded_bound,
    graded_completion_bound,
    graded_log_e,
    graded_log_e_halves,
    initial_capital,
    log_increments,
)
from stats.fixed_n.resolution import moments_from_sums, required_n_paired
from stats.fixed_n.ttest import paired_t_from_moments
from stats.numerics.pairs import Index

_SLAB_CELLS: Final = 100_000
_GRID: Final = 60  # points a unit at which differences of graded scores count in an order-free interval

_SMALL_SPREAD: Final = 1e-4
"""Below it the standard deviation of D is computed from the rows: as a difference of sums of squares it has an error of about 1e-8."""

_Capital = NDArray[np.int64]


class Graded(Kind):
    """Pairs of scores of any size."""

    @cached_property
    def scores(self) -> tuple[Floats, Floats]:
        codes = self.benchmark.item_codes()
        return self.benchmark.item_values[codes] / SCORE_UNIT, (codes >= ZERO).astype(np.float64)

    def squares(self, values: Floats, present: Floats) -> Floats:
        return np.asarray((values * values).T @ present)

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        _, _, s1, s2 = self.sums
        gap, sd = moments_from_sums(self.pairs.n, s1, np.maximum(s2, 0))
        self.sharpen(gap, sd)
        return gap, sd

    def sharpen(self, gap: Floats, sd: Floats) -> None:
        """Compute small standard deviations of D from the rows: sums of squares of scores cancel to rounding noise."""
        at, pairs = np.flatnonzero(sd < _SMALL_SPREAD), self.pairs
        codes, values = self.benchmark.item_codes(), self.benchmark.item_values
        centre = np.rint(gap[at] * SCORE_UNIT).astype(np.int64)
        first, second = np.zeros((2, at.size))
        for start in range(0, codes.shape[0] if at.size else 0, SLAB_ROWS):
            slab = codes[start : start + SLAB_ROWS]
            scores = values[slab]
            for model in np.unique(pairs.a[at]):
                members = np.flatnonzero(pairs.a[at] == model)
                others = pairs.b[at[members]]
                shared = (slab[:, [model]] >= ZERO) & (slab[:, others] >= ZERO)
                deviation = np.where(shared, scores[:, [model]] - scores[:, others] - centre[members], 0) / SCORE_UNIT
                first[members] += deviation.sum(axis=0)
                second[members] += (deviation * deviation).sum(axis=0)
        n = np.maximum(pairs.n[at], 1)
        sd[at] = np.sqrt(np.maximum(second / n - (first / n) ** 2, 0))

    def constant(self) -> tuple[Flags, Floats] | None:
        gap, sd = self.moments
        return np.asarray(sd == 0), gap

    @cached_property
    def p_fixed(self) -> Floats:
        return paired_t_from_moments(self.pairs.n, *self.moments)[1]

    def required_n(self, alpha: float | Floats, at: Index | slice = ALL, power: float | None = None) -> Floats:
        power = self.benchmark.spec.power if power is None else power
        gap, sd = (moment[at] for moment in self.moments)
        known = np.isfinite(sd)
        needed = required_n_paired(np.where(known, gap, 0), np.where(known, sd, 0), alpha, power)
        return np.where(known, needed, np.nan)

    @property
    def bets(self) -> bool:
        return self.benchmark.graded or self.pairs.asserted

    @property
    def mixture(self) -> str:
        return GRADED_MIXTURE if self.bets else super().mixture

    @cached_property
    def of_pairs(self) -> tuple[_Capital, _Capital]:
        """Capital of each pair, the bets on its first model first, shape (pairs, 2, L), and the sum of D in units of `SCORE_UNIT`."""
        benchmark, pairs = self.benchmark, self.pairs
        if benchmark.graded_sums is None:
            return self.summed()
        sums = benchmark.graded_sums()
        return sums.capital[pairs.pair], sums.lead[pairs.pair]

    def summed(self) -> tuple[_Capital, _Capital]:
        """Return `of_pairs` from the scores, of a board that does not bet."""
        first, second = np.minimum(self.pairs.a, self.pairs.b), np.maximum(self.pairs.a, self.pairs.b)
        return capital_of(self.benchmark.item_codes(), self.benchmark.item_values, first, second)

    @cached_property
    def capital(self) -> _Capital:
        """Capital of each pair, the bets on a first."""
        capital = self.of_pairs[0]
        return np.where(self.pairs.flip[:, None, None], capital[:, ::-1], capital)

    @property
    def lead(self) -> tuple[_Capital, _Capital, _Capital]:
        return np.where(self.pairs.flip, -self.of_pairs[1], self.of_pairs[1]), *self.room

    @property
    def room(self) -> tuple[_Capital, _Capital]:
        """How far missing items can move the sum of D in units of `SCORE_UNIT`, and what of that sum is rounding."""
        assert self.pairs.missing is not None
        room = np.minimum(self.pairs.missing.astype(np.int64), MAX_ITEMS) * SCORE_UNIT  # no lead is larger
        return room, GradedPairs.ROUNDING * self.pairs.n.astype(np.int64)

    @cached_property
    def log_e(self) -> Floats:
        return graded_log_e(self.capital)

    def log_e_at_worst(self, missing: Index) -> Floats:
        return np.asarray(np.maximum(*self.halves_at_worst(missing, ALL)))

    def log_e_halves(self, at: Index) -> tuple[Floats, Floats]:
        return graded_log_e_halves(self.capital[at])

    def halves_at_worst(self, missing: Index, at: Index | slice) -> tuple[Floats, Floats]:
        # Repeats that nobody declared, or graded scores among 0/1 ones, may be of more items than a sum of bets can hold.
        held = self.pairs.n[at] + missing <= MAX_ITEMS
        for_a, for_b = graded_completion_bound(self.capital[at], np.where(held, missing, 0))
        return np.where(held, for_a, np.minimum(for_a, 0)), np.where(held, for_b, np.minimum(for_b, 0))

    def bounds_now(self, at: Index, *levels: Floats) -> list[Bounds]:
        """Return the empirical Bernstein bounds of the gap at each level; nan where there are none."""
        # The items are taken in the order in which the benchmark saw them first, or in the committed order.
        bounds, pairs = [(np.full(at.size, np.nan), np.full(at.size, np.nan)) for _ in levels], self.pairs
        if max(at.size, pairs.listed) > MOST_PAIRS:
            return bounds
        committed, shared = self.benchmark.committed, pairs.n[at] > 0
        order = slice(None) if committed is None else committed.item_at[committed.item_at >= 0]
        x, scored = (np.ascontiguousarray(values[order].T) for values in self.scores)
        present = scored > 0
        step = max(1, _SLAB_CELLS // max(1, x.shape[1]))
        for start in range(0, at.size, step):
            rows = start + np.flatnonzero(shared[start : start + step])
            if rows.size == 0:
                continue
            a, b = pairs.a[at[rows]], pairs.b[at[rows]]
            half, items = _packed((self.shares(x[a] - x[b]) + 1) / 2, present[a] & present[b])
            for (low, high), alpha in zip(bounds, levels, strict=True):
                some = np.flatnonzero(alpha[rows] > 0)
                low[rows[some]], high[rows[some]] = last_bounds(half[some], items[some], alpha[rows[some]])
        scale, most = self.item_scale, self.gap_scale
        if scale == 1:
            return bounds
        return [(np.maximum(scale * low, -most), np.minimum(scale * high, most)) for low, high in bounds]

    @property
    def item_scale(self) -> float:
        """What the mean of the differences that bet is multiplied by to give the gap."""
        return 1.0

    @property
    def gap_scale(self) -> float:
        """What a gap of 1 on every item counts."""
        return 1.0

    def shares(self, difference: Floats) -> Floats:
        """Return the differences of all items, shape (pairs, items), as they count."""
        return difference

    def bounds_at_worst(self, at: Index, missing: Index, alpha: Floats) -> Bounds:
        low, high = np.full((2, at.size), np.nan)
        if max(at.size, self.pairs.listed) > MOST_PAIRS:
            return low, high
        x, scored = (np.ascontiguousarray(values.T) for values in self.scores)
        step = max(1, _SLAB_CELLS // max(1, x.shape[1]))
        for start in range(0, at.size, step):
            some = slice(start, start + step)
            a, b = self.pairs.a[at[some]], self.pairs.b[at[some]]
            difference, shared = x[a] - x[b], (scored[a] > 0) & (scored[b] > 0)
            low[some], high[some] = self.ends(difference, shared, missing[some], alpha[some])
        scale, most = self.item_scale, self.gap_scale
        return np.clip(scale * low, -most, most), np.clip(scale * high, -most, most)

    def ends(self, difference: Floats, shared: Flags, missing: Index, alpha: Floats) -> Bounds:
        """Return the ends of the order-free interval of some pairs."""
        counts = on_grid(difference, shared)
        return grid_ends(counts, counts, missing, alpha)

    def course(self, walk: Walk) -> Course:
        values = self.benchmark.item_values
        d = self.weighed(values[walk.x] - values[walk.y], walk.items)
        gap = self.item_scale * np.cumsum(d)[walk.kept - 1] / (SCORE_UNIT * walk.kept)
        return Course(gap, *self.evidence_along(d / SCORE_UNIT, walk.kept), None, None)

    def weighed(self, difference: NDArray[Any], items: Index) -> NDArray[Any]:
        """Return the differences of one pair on some items as they count."""
        return difference

    def evidence_along(self, differences: Floats, kept: Index) -> tuple[Floats | None, Floats | None, Floats | None]:
        """Return ln e and its halves at the points kept of a path."""
        if not self.benchmark.graded:
            return None, None, None
        distinct, index = np.unique(differences, return_inverse=True)
        steps = log_increments(distinct)
        capital = initial_capital((kept.size,))
        current, start = capital[0].copy(), 0
        for k, stop in enumerate(kept.tolist()):
            counts = np.bincount(index[start:stop], minlength=distinct.size)
            current += np.tensordot(counts, steps, axes=1)
            capital[k], start = current, stop
        return graded_log_e(capital), *graded_log_e_halves(capital)


def on_grid(difference: Floats, shared: Flags) -> Floats:
    """Count the shared differences of each row at the points of a grid, in shares that keep their sum; shape (rows, points)."""
    place = (difference + 1) * _GRID
    below = np.floor(place).astype(np.int64).clip(max=2 * _GRID - 1)
    share = np.where(shared, place - below, 0)
    points = 2 * _GRID + 1
    index = below + points * np.arange(len(place))[:, None]
    size = points * len(place)
    counts = np.bincount(index.ravel(), (shared - share).ravel(), size)
    counts += np.bincount((index + 1).ravel(), share.ravel(), size)
    return counts.reshape(-1, points).clip(min=0)


def grid_ends(for_low: Floats, for_high: Floats, missing: Floats | Index, alpha: Floats) -> Bounds:
    """Return the ends of the order-free interval from the counts at the points of the grid."""
    from stats.intervals.graded_interval import graded_completion_low  # noqa: PLC0415 - start-up: only graded scores need it

    grid = np.arange(-_GRID, _GRID + 1) / _GRID
    low = graded_completion_low(grid, for_low, missing, alpha)
    return low, -graded_completion_low(-grid, for_high, missing, alpha)


def _packed(values: Floats, present: Flags) -> tuple[Floats, Index]:
    """Move the values that are present to the front of each row, in order; return them, and how many each row has."""
    items = present.sum(axis=1)
    packed = np.full((items.size, int(items.max())), 0.5)
    packed[np.arange(packed.shape[1]) < items[:, None]] = values[present]
    return packed, items


def last_bounds(half: Floats, items: Index, alpha: Floats) -> Bounds:
    """Return the bounds of the gap after the last item of each pair, from (D + 1) / 2."""
    if items.size == 0:
        return np.empty(0), np.empty(0)
    # Only graded scores need it, and it would cost every start.
    from stats.intervals.sequences import empirical_bernstein  # noqa: PLC0415

    low, high = empirical_bernstein(half, alpha[:, None])
    last = (np.arange(items.size), items - 1)
    return 2 * low[last] - 1, 2 * high[last] - 1


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
        """The weighted gap, and the deviation for which a mean over the shared items has the same variance."""
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

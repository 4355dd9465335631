"""Scores in [0, 1], and means of repeats or units: pairs bet on their differences."""

from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.kinds.bets import GRADED_MIXTURE
from monitor.engine.state.graded import GradedPairs, capital_of
from monitor.view.kinds.kind import MOST_PAIRS, SLAB_ROWS, Bounds, Course, Kind, Walk
from monitor.view.pairs.counts import ALL, Flags, Floats
from schemas.records.scores import SCORE_UNIT, ZERO
from stats.evidence.graded import (
    MAX_ITEMS,
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

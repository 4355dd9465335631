"""Latches of graded scores: the most that a chunk can add rules pairs out; the others are computed event by event."""

from collections.abc import Iterator
from itertools import pairwise
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import (
    SLACK,
    Peaks,
    Trajectory,
    by_pair,
    first,
    first_against,
    reaching_or_last,
)
from monitor.engine.latch.new_scores import BEFORE, NEVER, NewScores, Times
from monitor.engine.state.graded import (
    BETS,
    Capital,
    Differences,
    GradedPairs,
    WeightedPairs,
    capital_gained,
    differences_of,
)
from monitor.engine.state.pairs.counts import Gains
from monitor.engine.state.pairs.pair_state import PairState
from schemas.records.scores import SCORE_UNIT
from stats.evidence.graded import FIXED_POINT, graded_bound, graded_log_e, log_increments
from stats.numerics.pairs import Index, among, chosen, pair_members

_SLAB_CELLS: Final = 250_000
_KEPT_STEPS: Final = 1_000_000
_LOG_BETS: Final = log(BETS)
_SLAB_PAIRS: Final = 16_384
_PART_CELLS: Final = 200_000
_NEIGHBOURS: Final = 13
_STRETCH: Final = 16
"""Most steps that are ruled out together."""


class GradedWalk:
    """The trajectories of graded scores through a chunk; its counts are already added to `pairs`, and its new pairs registered.

    `values` are the scores of the codes, in units; `items` the items that have new scores.
    """

    def __init__(
        self,
        pairs: PairState,
        sums: GradedPairs,
        values: NDArray[np.int64],
        new: NewScores,
        gains: Gains,
        items: Index,
    ) -> None:
        self._pairs, self._sums, self._values, self._new, self._gains = pairs, sums, values, new, gains
        self._items = items
        self._completion = pairs.spec.order.policy == "completion"
        self._kept: list[_Walked] = []
        self._room = _KEPT_STEPS

    def enter(self) -> None:
        """Add the items that pairs share since the chunk to their capital."""
        for pair in self._slabs():
            times, differences = self._differences(pair)
            self._sums.share(pair, _joined(times), self._items)
            self._sums.capital[pair] += capital_gained(differences)[0]
            self._sums.lead[pair] += differences.sum(axis=1)

    def near(self) -> Iterator[Peaks]:
        """Add the items as `enter` does, and yield the pairs that may close a latch."""
        pairs, sums = self._pairs, self._sums
        for pair in self._slabs():
            times, differences = self._differences(pair)
            gained, most = capital_gained(differences)
            capital, lead = sums.capital[pair], sums.lead[pair]
            sums.capital[pair] += gained
            sums.lead[pair] += differences.sum(axis=1)
            sums.share(pair, _joined(times), self._items)
            limit = pairs.limits(pair)
            if self._completion:
                # The bound never falls: its last value is the highest, and a decision never reverses.
                missing = pairs.missing(pairs.n[pair])
                reach = np.maximum(*sums.bound(pair, missing)) >= limit - SLACK
            else:
                # The evidence is a mean over bets, so no more than the best of them.
                most += capital
                reach = most.max(axis=(1, 2)) >= (limit - SLACK) * FIXED_POINT
                lowest, highest = (lead + part(differences, 0).sum(axis=1) for part in (np.minimum, np.maximum))
                yield Peaks.turning(pair[pairs.may_reverse(pair, lowest, highest)])
            some = np.flatnonzero(reach)
            for part in _slabs(some, times):
                walked = self._walk(pair[part], capital[part], lead[part], times[part], differences[part])
                self._keep(walked)
                yield walked.highest(limit[part])

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs with evidence from `low` on, up to the first from `high` on."""
        parts = [walked.reaching(of, low[place], high[place]) for walked, of, place in self._walks(pair)]
        return by_pair(parts)

    def crossing(self, pair: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs with evidence from a limit on, up to the first."""
        return self.reaching(pair, limit, limit)

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the state of some pairs after an event each: one event is one step of a pair."""
        state = reaching_or_last(self.counts(pair), when, limit)
        now = state.when == when
        return by_pair([state.rows(~now), self._with_evidence(state.rows(now))])

    def turned(self, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the first step against a side of those of some pairs that have one."""
        left = np.ones(pair.size, bool)
        steps = []
        for walked, of, place in self._known(pair):
            left[place] = False
            steps.append(walked.first_against(of, side[place], since[place]))
        if left.any():
            steps.append(first_against(self.counts(pair[left]), pair[left], side[left], since[left]))
        return self._with_evidence(by_pair(steps))

    def _with_evidence(self, steps: Trajectory) -> Trajectory:
        """Return one step of each of some pairs with its evidence."""
        return by_pair(
            [walked.at(of, steps.step[place].astype(np.int64)) for walked, of, place in self._walks(steps.pair)]
        )

    def counts(self, pair: Index) -> Trajectory:
        """Return every step of some pairs and their state before the chunk as a step at BEFORE, without evidence."""
        times, differences = self._differences(pair)
        lead = self._sums.lead[pair] - differences.sum(axis=1)
        return self._steps(pair, lead, times, differences)[0]

    def rooms(self, pair: Index) -> NDArray[np.int64]:
        """Return how far missing items can move the lead at every step of some pairs; see `counts`."""
        times, _ = self._differences(pair)
        order, happened = _order(times)
        at = np.nonzero(np.column_stack([np.full(pair.size, True), happened]))
        if isinstance(self._sums, WeightedPairs):
            return np.asarray(self._sums.rooms_along(pair, self._items, order, happened)[at])
        before = self._pairs.n[pair] - happened.sum(axis=1, dtype=np.int32)
        n = np.cumsum(np.column_stack([before, happened]), axis=1, dtype=np.int32)
        return self._sums.room(pair, self._pairs.missing(n[at]))

    def _slabs(self) -> Iterator[Index]:
        pair = chosen(self._gains.pair, np.flatnonzero(self._gains.n))
        step = max(1, min(_SLAB_PAIRS, _SLAB_CELLS // max(1, self._new.rows)))
        for low in range(0, pair.size, step):
            yield pair[low : low + step]

    def _differences(self, pair: Index) -> tuple[Times, Differences]:
        """Return when pairs came to share each row, and D there, 0 where they do not."""
        i, j = pair_members(pair)
        times = self._new.shared(i, j)
        differences = differences_of(self._new.after[i], self._new.after[j], self._values)
        return times, np.where(_joined(times), self._sums.weigh(differences, self._items), 0)

    def _walks(self, pair: Index) -> Iterator[tuple["_Walked", Index, Index]]:
        """Yield walks of some pairs (ascending) whose new items have entered: the places of these among its own, and in `pair`."""
        left = np.ones(pair.size, bool)
        for walked, of, place in self._known(pair):
            left[place] = False
            yield walked, of, place
        rest = np.flatnonzero(left)
        if not rest.size:
            return
        times, differences = self._differences(pair[rest])
        for part in _slabs(np.arange(rest.size), times):
            place = rest[part]
            of, capital, lead = pair[place], self._sums.capital[pair[place]], self._sums.lead[pair[place]]
            capital = capital - capital_gained(differences[part])[0]
            lead = lead - differences[part].sum(axis=1)
            walked = self._walk(of, capital, lead, times[part], differences[part])
            self._keep(walked)
            yield walked, np.arange(place.size), place

    def _known(self, pair: Index) -> Iterator[tuple["_Walked", Index, Index]]:
        """Yield the walks that are kept of some pairs, as `_walks` does."""
        for walked in self._kept:
            of, place = among(pair, walked.pair)
            if of.size:
                yield walked, of, place

    def _keep(self, walked: "_Walked") -> None:
        """Keep a walk for later, as long as they are not too many."""
        self._room -= walked.cells
        if self._room > 0:
            self._kept.append(walked)

    def _walk(
        self, pair: Index, capital: Capital, lead: NDArray[np.int64], times: Times, differences: Differences
    ) -> "_Walked":
        """Follow pairs from their state before the chunk."""
        steps, (order, happened, along) = self._steps(pair, lead, times, differences)
        distinct, index = np.unique(along, return_inverse=True)
        increments, index = log_increments(distinct / SCORE_UNIT), index.reshape(along.shape)
        if self._completion:  # an item that arrives is no longer missing at its worst
            missing = steps.missing[steps.step == 0]
            lost, worst, kind = self._sums.missing_steps(pair, missing, self._items, order, happened)
            capital = capital + lost[:, None]
            kinds, index = np.unique(index * len(worst) + kind, return_inverse=True)
            increments = increments[kinds // len(worst)] - worst[kinds % len(worst), None]
            index = index.reshape(along.shape)
        index = np.where(happened, index, len(increments))
        increments = np.concatenate([increments, np.zeros((1, *increments.shape[1:]), np.int64)])
        return _Walked(
            steps, capital.reshape(-1, BETS), increments.reshape(-1, BETS), index, completion=self._completion
        )

    def _steps(
        self, pair: Index, lead: NDArray[np.int64], times: Times, differences: Differences
    ) -> tuple[Trajectory, tuple[Index, NDArray[np.bool_], Differences]]:
        """Return the steps of pairs without evidence, and the rows of each, which of these it has, and D there."""
        order, happened = _order(times)
        along = np.take_along_axis(differences, order, axis=1)
        when = np.where(happened, np.take_along_axis(times, order, axis=1), NEVER).astype(np.int64)
        before = self._pairs.n[pair] - happened.sum(axis=1, dtype=np.int32)
        n = np.cumsum(np.column_stack([before, happened]), axis=1, dtype=np.int32)
        at = np.nonzero(np.column_stack([np.full(pair.size, True), happened]))
        ahead = self._sums.leads(np.cumsum(np.column_stack([lead, along]), axis=1)[at], n[at])
        none = np.zeros(at[0].size, np.int32)
        missing = self._pairs.missing(n[at]) if self._completion else none
        when = np.column_stack([np.full(pair.size, BEFORE), when])[at]
        nothing = np.full(at[0].size, -np.inf)
        steps = Trajectory(pair[at[0]], when, n[at], none, none, ahead, missing, nothing, np.sign(ahead), at[1])
        return steps, (order, happened, along)


class _Walked:
    """Steps of pairs, and the log capital of each bet there, less what is missing at its worst under policy completion.

    The evidence is a mean over bets: at most the best of them, and no less than its share. So it is computed at few steps. Stretches of
    steps are ruled out together, as no bet rises by more than the sum of its rising steps. Tables have a row for each bet: sums over
    steps and maxima over bets are of whole rows then.
    """

    def __init__(
        self, steps: Trajectory, begin: Capital, increments: Capital, kind: Index, *, completion: bool
    ) -> None:
        self._steps, self._completion, self._increments = steps, completion, increments.T.copy()
        self._starts = np.flatnonzero(steps.step == 0)
        self._sizes = np.diff(self._starts, append=steps.pair.size) - 1
        self.pair = steps.pair[self._starts]
        pairs, longest = kind.shape
        self._stretch = max(1, min(longest, _STRETCH))
        self._stretches = max(1, -(-longest // self._stretch))
        self._kind = np.full((pairs, self._stretches * self._stretch), len(increments) - 1)
        self._kind[:, :longest] = kind
        self._kind = self._kind.reshape(-1, self._stretch)
        place = np.arange(len(self._kind))[:, None] * len(increments) + self._kind
        counts = np.bincount(place.ravel(), minlength=len(self._kind) * len(increments)).reshape(-1, len(increments))
        # Products of floats are exact here: at most 16 steps of less than 43 bits.
        weights, counts = self._increments.astype(np.float64), counts.T.astype(np.float64)
        shape = BETS, pairs, self._stretches
        capital = np.empty((BETS, pairs, self._stretches + 1), np.int64)
        capital[:, :, 0], capital[:, :, 1:] = begin.T, (weights @ counts).reshape(shape)
        _add_up(capital.transpose(2, 0, 1))
        self._begin = capital[:, :, :-1].reshape(BETS, -1)
        rising = (np.maximum(weights, 0) @ counts).reshape(shape)
        rising += capital[:, :, :-1]
        self._most = _at_most(rising)
        self._ends = capital.max(axis=0) / FIXED_POINT
        self._highest_end = capital[:, np.arange(pairs), self._ends[:, 1:].argmax(axis=1) + 1].T.copy()

    def highest(self, limit: NDArray[np.float64]) -> Peaks:
        """Return the largest evidence of each pair; none of a pair that stays below its limit."""
        least = np.maximum(limit, self._log_e(self._highest_end)[0])
        rows, bets, most, of = self._rows(self._most >= least[:, None] - SLACK, least)
        highest, least = np.full((2, least.size), -np.inf)
        np.maximum.at(highest, of, most)
        promising = most == highest[of]
        evidence, side = np.full(rows.size, -np.inf), np.zeros(rows.size, np.int64)
        evidence[promising], side[promising] = self._evidence(rows[promising], bets[promising])
        np.maximum.at(least, of[promising], evidence[promising])
        others = ~promising & (most >= least[of] - SLACK)
        evidence[others], side[others] = self._evidence(rows[others], bets[others])
        known = np.flatnonzero(promising | others)
        return Peaks.of(self._steps.pair[rows[known]], evidence[known], side[known])

    def reaching(self, of: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return steps of some pairs: those with evidence from `low` on, up to the stretch where it is certainly from `high` on."""
        least = np.full(self.pair.size, np.inf)
        least[of] = low
        reached = self._ends[of, :-1] - _LOG_BETS >= high[:, None] + SLACK
        reached[:, :1] = False
        stretches = np.zeros(self._most.shape, bool)
        stretches[of] = ~np.logical_or.accumulate(reached, axis=1) & (self._most[of] >= low[:, None] - SLACK)
        rows, bets, _, _ = self._rows(stretches, least)
        return self._evaluated(rows, bets)

    def first_against(self, of: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the first step against a side, after one of them, of those of some pairs that have one; without evidence."""
        size = self._sizes[of] - since  # steps that follow
        place = np.repeat(np.arange(of.size), size)
        row = np.arange(place.size) + np.repeat(self._starts[of] + since + 1 - (np.cumsum(size) - size), size)
        return self._steps.rows(row[first(place, side[place] * self._steps.side[row] < 0)])

    def at(self, of: Index, step: Index) -> Trajectory:
        """Return one step of some pairs with its evidence, given the places of the pairs and its number, from 1."""
        stretch = of * self._stretches + (step - 1) // self._stretch
        parts = []
        for some in self._parts(stretch.size):
            bets, _ = self._capital(stretch[some])
            parts.append(bets[:, (step[some] - 1) % self._stretch, np.arange(bets.shape[2])].T)
        return self._evaluated(self._starts[of] + step, np.concatenate(parts))

    def _rows(
        self, stretches: NDArray[np.bool_], least: NDArray[np.float64]
    ) -> tuple[Index, Capital, NDArray[np.float64], Index]:
        """Return the steps of some stretches whose bound is from a limit on: rows, log capital, bound, and place of the pair."""
        stretch = np.flatnonzero(stretches)
        parts = []
        for some in self._parts(stretch.size):
            bets, most = self._capital(stretch[some])
            of, first = np.divmod(stretch[some], self._stretches)
            step = first * self._stretch + np.arange(self._stretch)[:, None]
            at, here = ((most >= least[of] - SLACK) & (step < self._sizes[of])).T.nonzero()
            rows = self._starts[of[at]] + 1 + step[here, at]
            parts.append((rows, bets[:, here, at].T, most[here, at], of[at]))
        if not parts:
            none = np.zeros(0, np.int64)
            return none, np.zeros((0, BETS), np.int64), np.zeros(0), none
        rows, bets, most, of = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return rows, bets, most, of

    def _capital(self, stretch: Index) -> tuple[Capital, NDArray[np.float64]]:
        """Return the log capital of bets after each step of some stretches, shape (bets, steps, stretches), and a bound of the evidence."""
        bets = self._increments.take(self._kind[stretch].T, axis=1)
        bets[:, 0] += self._begin.take(stretch, axis=1)
        _add_up(bets.swapaxes(0, 1))
        return bets, _at_most(bets)

    @property
    def cells(self) -> int:
        """Steps that it holds, or what its tables of bets take as much memory as."""
        return max(self._kind.size, self.pair.size * _STRETCH)

    def _evaluated(self, rows: Index, bets: Capital) -> Trajectory:
        evidence, side = self._evidence(rows, bets)
        return self._steps.rows(rows)._replace(evidence=evidence, side=side)

    def _evidence(self, rows: Index, bets: Capital) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        evidence, side = self._log_e(bets)
        return evidence, np.sign(self._steps.lead[rows]) if side is None else side

    def _log_e(self, bets: Capital) -> tuple[NDArray[np.float64], NDArray[np.int64] | None]:
        """Return the evidence of some states, and for whom it is, unless that follows from the lead."""
        capital = bets.reshape(-1, 2, BETS // 2)
        if not self._completion:
            return graded_log_e(capital), None
        for_first, for_second = graded_bound(capital)
        return np.maximum(for_first, for_second), np.where(for_first >= for_second, 1, -1)

    def _parts(self, stretches: int) -> Iterator[slice]:
        """Yield slices of stretches, so few that the bets at all of their steps fit."""
        step = _PART_CELLS // (BETS * self._stretch)
        yield from (slice(low, low + step) for low in range(0, stretches, step))


def _at_most(capital: NDArray[Any]) -> NDArray[np.float64]:
    """Return a bound of the evidence of states, given the log capital of their bets along the first axis.

    It is a mean over bets. With the best of some neighbouring bets in place of each it takes few exponentials; neighbours differ little.
    """
    best = capital.reshape(BETS // _NEIGHBOURS, _NEIGHBOURS, *capital.shape[1:]).max(axis=1) / FIXED_POINT
    highest = best.max(axis=0)
    best -= highest
    return np.asarray(highest + np.log(np.exp(best, out=best).mean(axis=0)))


def _add_up(steps: Capital) -> None:
    """Turn steps into running sums in place, along the first axis: whole rows at a time, many times as fast as `cumsum`."""
    for before, after in pairwise(steps):
        np.add(before, after, out=after)


def _slabs(some: Index, times: Times) -> Iterator[Index]:
    """Yield some pairs, so few at a time that the bets at the stretches of their steps fit."""
    longest = int(_joined(times).sum(axis=1).max(initial=1))
    step = max(1, _SLAB_CELLS * _STRETCH // (BETS * max(1, longest)))
    for low in range(0, some.size, step):
        yield some[low : low + step]


def _joined(times: Times) -> NDArray[np.bool_]:
    """Return which rows pairs came to share in the chunk."""
    return np.asarray((times >= 0) & (times < NEVER))


def _order(times: Times) -> tuple[Index, NDArray[np.bool_]]:
    """Return the rows that pairs came to share, by time, shape (pairs, most steps), and which of these steps a pair has."""
    joined = _joined(times)
    length = int(joined.sum(axis=1).max(initial=0))
    order = np.argsort(np.where(joined, times, NEVER), axis=1, kind="stable")[:, :length]
    return order, np.take_along_axis(joined, order, axis=1)

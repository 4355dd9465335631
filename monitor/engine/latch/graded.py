"""Latches of graded scores: the most that a chunk can add rules pairs out; the others are computed event by event."""

from collections.abc import Iterator
from math import log
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import (
    SLACK,
    Peaks,
    Trajectory,
    by_pair,
    first_against,
    last_until,
)
from monitor.engine.latch.paths import BEFORE, NEVER, NewScores, Times
from monitor.engine.state.codes import SCORE_UNIT
from monitor.engine.state.counts import Gains
from monitor.engine.state.graded import (
    BETS,
    Capital,
    Differences,
    GradedPairs,
    WeightedPairs,
    capital_gained,
    differences_of,
)
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index, chosen, pair_members
from stats.evidence.graded import FIXED_POINT, graded_bound, graded_log_e, log_increments

_SLAB_CELLS: Final = 2_000_000
_LOG_BETS: Final = log(BETS)
_WORST: Final = log_increments(-1.0)[0]


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
                reach = graded_log_e(capital + most) >= limit - SLACK
                lowest, highest = (lead + part(differences, 0).sum(axis=1) for part in (np.minimum, np.maximum))
                yield Peaks.turning(pair[pairs.may_reverse(pair, lowest, highest)])
            some = np.flatnonzero(reach)
            for part in _slabs(some, times):
                walked = self._walk(pair[part], capital[part], lead[part], times[part], differences[part])
                yield walked.highest(limit[part])

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs with evidence from `low` on, up to the first from `high` on."""
        times, differences = self._differences(pair)
        parts = []
        for part in _slabs(np.arange(pair.size), times):
            walked = self._again(pair[part], times[part], differences[part])
            parts.append(walked.evaluated(walked.between(low[part], high[part])))
        return by_pair(parts)

    def after(self, pair: Index, when: Index) -> Trajectory:
        """Return the state of some pairs after an event each, without evidence."""
        return last_until(self.counts(pair), when)

    def turned(self, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the first step against a side of those of some pairs that have one."""
        turned = first_against(self.counts(pair), pair, side, since)
        parts = []
        times, differences = self._differences(turned.pair)
        for part in _slabs(np.arange(turned.pair.size), times):
            walked = self._again(turned.pair[part], times[part], differences[part])
            parts.append(walked.evaluated(walked.starts + turned.step[part]))
        return by_pair(parts)

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
            return np.asarray(self._sums.along(pair, self._items, order, happened)[1][at])
        before = self._pairs.n[pair] - happened.sum(axis=1, dtype=np.int32)
        n = np.cumsum(np.column_stack([before, happened]), axis=1, dtype=np.int32)
        return self._sums.room(pair, self._pairs.missing(n[at]))

    def _slabs(self) -> Iterator[Index]:
        pair = chosen(self._gains.pair, np.flatnonzero(self._gains.n))
        step = max(1, _SLAB_CELLS // max(1, self._new.rows))
        for low in range(0, pair.size, step):
            yield pair[low : low + step]

    def _differences(self, pair: Index) -> tuple[Times, Differences]:
        """Return when pairs came to share each row, and D there, 0 where they do not."""
        i, j = pair_members(pair)
        times = self._new.shared(i, j)
        differences = differences_of(self._new.after[i], self._new.after[j], self._values)
        return times, np.where(_joined(times), self._sums.weigh(differences, self._items), 0)

    def _again(self, pair: Index, times: Times, differences: Differences) -> "_Walked":
        """Follow pairs whose new items have entered already."""
        capital = self._sums.capital[pair] - capital_gained(differences)[0]
        lead = self._sums.lead[pair] - differences.sum(axis=1)
        return self._walk(pair, capital, lead, times, differences)

    def _walk(
        self, pair: Index, capital: Capital, lead: NDArray[np.int64], times: Times, differences: Differences
    ) -> "_Walked":
        """Follow pairs from their state before the chunk."""
        steps, (order, happened, along) = self._steps(pair, lead, times, differences)
        distinct, index = np.unique(along, return_inverse=True)
        increments = log_increments(distinct / SCORE_UNIT)[index.reshape(along.shape)]
        at = np.nonzero(np.column_stack([np.full(pair.size, True), happened]))
        path = np.empty((pair.size, along.shape[1] + 1, *capital.shape[1:]), np.int64)
        path[:, 0] = capital
        np.cumsum(increments, axis=1, out=path[:, 1:])
        path[:, 1:] += capital[:, None]
        bets = path[at]
        if self._completion and isinstance(self._sums, WeightedPairs):
            bets += self._sums.along(pair, self._items, order, happened)[0][at]
        elif self._completion:
            bets += steps.missing.astype(np.int64)[:, None, None] * _WORST
        return _Walked(steps, bets, completion=self._completion)

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
        ahead = np.cumsum(np.column_stack([lead, along]), axis=1)[at]
        none = np.zeros(at[0].size, np.int32)
        missing = self._pairs.missing(n[at]) if self._completion else none
        when = np.column_stack([np.full(pair.size, BEFORE), when])[at]
        nothing = np.full(at[0].size, -np.inf)
        steps = Trajectory(pair[at[0]], when, n[at], none, none, ahead, missing, nothing, np.sign(ahead), at[1])
        return steps, (order, happened, along)


class _Walked:
    """Steps of pairs, and the log capital of each bet there, less what is missing at its worst under policy completion.

    The evidence is a mean over bets: at most the best of them, and no less than its share. So it is computed at few steps.
    """

    def __init__(self, steps: Trajectory, bets: Capital, *, completion: bool) -> None:
        self._steps, self._bets, self._completion = steps, bets, completion
        self.starts = np.flatnonzero(steps.step == 0)
        self._sizes = np.diff(self.starts, append=steps.pair.size)
        self._best = bets.reshape(-1, BETS).max(axis=1) / FIXED_POINT
        self._best[self.starts] = -np.inf

    def highest(self, limit: NDArray[np.float64]) -> Peaks:
        """Return the largest evidence of each pair; none of a pair that stays below its limit."""
        if not self.starts.size:
            return Peaks.turning(self.starts)
        most = np.maximum.reduceat(self._best, self.starts)
        some = np.flatnonzero(self._best == np.repeat(np.where(most >= limit - SLACK, most, np.inf), self._sizes))
        least = np.full(limit.size, np.inf)
        of = np.searchsorted(self.starts, some, side="right") - 1
        np.minimum.at(least, of, self._evidence(some)[0])
        steps = self.evaluated(np.flatnonzero(self._best >= np.repeat(least - SLACK, self._sizes)))
        return Peaks.of(steps.pair, steps.evidence, steps.side)

    def between(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> Index:
        """Return the steps that may have evidence from `low` on, up to the first that certainly has it from `high` on."""
        ends = np.flatnonzero(self._best - _LOG_BETS >= np.repeat(high + SLACK, self._sizes))
        of = np.searchsorted(self.starts, ends, side="right") - 1
        last = np.full(high.size, self._best.size)
        np.minimum.at(last, of, ends)
        some = np.flatnonzero(self._best >= np.repeat(low - SLACK, self._sizes))
        return some[some <= np.repeat(last, self._sizes)[some]]

    def evaluated(self, some: Index) -> Trajectory:
        """Return some of the steps with their evidence."""
        evidence, side = self._evidence(some)
        return self._steps.rows(some)._replace(evidence=evidence, side=side)

    def _evidence(self, some: Index) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        if not self._completion:
            return graded_log_e(self._bets[some]), np.sign(self._steps.lead[some])
        for_first, for_second = graded_bound(self._bets[some])
        return np.maximum(for_first, for_second), np.where(for_first >= for_second, 1, -1)


def _slabs(some: Index, times: Times) -> Iterator[Index]:
    """Yield some pairs, so few at a time that the bets at all of their steps fit."""
    longest = int(_joined(times).sum(axis=1).max(initial=1))
    step = max(1, _SLAB_CELLS // (BETS * max(1, longest)))
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

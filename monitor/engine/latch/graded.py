"""Latches of graded scores: the most that a chunk can add rules pairs out; the others are computed event by event."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, NEVER, SLACK, NewScores, Peaks, Times, Trajectory
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
from stats.evidence.graded import graded_bound, graded_completion_bound, graded_log_e, log_increments

_SLAB_CELLS: Final = 2_000_000


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
            candidates = np.flatnonzero(reach)
            longest = int(_joined(times).sum(axis=1).max(initial=1))
            step = max(1, _SLAB_CELLS // (BETS * max(1, longest)))
            for low in range(0, candidates.size, step):
                some = candidates[low : low + step]
                before = capital[some], lead[some]
                steps = self._steps(pair[some], *before, times[some], differences[some], start=False)
                yield Peaks.of(steps.pair, steps.evidence, steps.side)

    def whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs."""
        times, differences = self._differences(pair)
        capital = self._sums.capital[pair] - capital_gained(differences)[0]
        lead = self._sums.lead[pair] - differences.sum(axis=1)
        return self._steps(pair, capital, lead, times, differences, start=True)

    def rooms(self, pair: Index) -> NDArray[np.int64]:
        """Return how far missing items can move the lead at every step of some pairs; see `whole`."""
        times, _ = self._differences(pair)
        order, happened = _order(times)
        at = np.nonzero(np.column_stack([np.full(pair.size, True), happened]))
        if isinstance(self._sums, WeightedPairs):
            return np.asarray(self._sums.along(pair, self._items, order, happened)[1][at])
        before = self._pairs.n[pair] - happened.sum(axis=1, dtype=np.int32)
        n = np.cumsum(np.column_stack([before, happened]), axis=1, dtype=np.int32)
        return self._sums.room(pair, self._pairs.missing(n[at]))

    def counts(self, pair: Index) -> Trajectory:
        """Return the same steps; their evidence is not computed apart from them."""
        return self.whole(pair)

    def exact(self, steps: Trajectory) -> Trajectory:
        """Return steps, which have their evidence."""
        return steps

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

    def _steps(
        self,
        pair: Index,
        capital: Capital,
        lead: NDArray[np.int64],
        times: Times,
        differences: Differences,
        *,
        start: bool,
    ) -> Trajectory:
        """Return the steps of pairs from their state before the chunk, with that as a first step or without."""
        order, happened = _order(times)
        along = np.take_along_axis(differences, order, axis=1)
        when = np.where(happened, np.take_along_axis(times, order, axis=1), NEVER).astype(np.int64)
        distinct, index = np.unique(along, return_inverse=True)
        increments = log_increments(distinct / SCORE_UNIT)[index.reshape(along.shape)]
        before = self._pairs.n[pair] - happened.sum(axis=1, dtype=np.int32)
        n = np.cumsum(np.column_stack([before, happened]), axis=1, dtype=np.int32)
        at = np.nonzero(np.column_stack([np.full(pair.size, start), happened]))
        total = np.cumsum(np.concatenate([capital[:, None], increments], axis=1), axis=1)[at]
        ahead = np.cumsum(np.column_stack([lead, along]), axis=1)[at]
        if self._completion:
            missing = self._pairs.missing(n[at])
            if isinstance(self._sums, WeightedPairs):
                lost, _ = self._sums.along(pair, self._items, order, happened)
                for_first, for_second = graded_bound(total + lost[at])
            else:
                for_first, for_second = graded_completion_bound(total, missing)
            evidence, side = np.maximum(for_first, for_second), np.where(for_first >= for_second, 1, -1)
        else:
            missing, evidence, side = np.zeros(at[0].size, np.int32), graded_log_e(total), np.sign(ahead)
        none = np.zeros(at[0].size, np.int32)
        when = np.column_stack([np.full(pair.size, BEFORE), when])[at]
        return Trajectory(pair[at[0]], when, n[at], none, none, ahead, missing, evidence, side)


def _joined(times: Times) -> NDArray[np.bool_]:
    """Return which rows pairs came to share in the chunk."""
    return np.asarray((times >= 0) & (times < NEVER))


def _order(times: Times) -> tuple[Index, NDArray[np.bool_]]:
    """Return the rows that pairs came to share, by time, shape (pairs, most steps), and which of these steps a pair has."""
    joined = _joined(times)
    length = int(joined.sum(axis=1).max(initial=0))
    order = np.argsort(np.where(joined, times, NEVER), axis=1, kind="stable")[:, :length]
    return order, np.take_along_axis(joined, order, axis=1)

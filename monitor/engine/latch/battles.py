"""Latches of battles: the units that pairs gain in a chunk, one step each."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import Peaks, Trajectory, first_against, log_e_from, reaching_or_last
from monitor.engine.latch.new_scores import BEFORE
from monitor.engine.state.graded import BETS, GradedPairs
from monitor.engine.state.pairs.pair_state import PairState
from schemas.records.scores import SCORE_UNIT
from stats.evidence.eprocess import log_e_value
from stats.evidence.graded import graded_log_e, log_increments
from stats.numerics.pairs import Index

_SLAB_CELLS: Final = 4_000_000


class BattleWalk:
    """The trajectories of pairs through the units of a chunk, which are already added to the sums."""

    def __init__(
        self,
        pairs: PairState,
        graded: GradedPairs | None,
        pair: Index,
        when: Index,
        difference: Index,
    ) -> None:
        order = np.lexsort((when, pair))
        self._pairs, self._graded = pairs, graded
        self._pair, self._when, self._difference = pair[order], when[order], difference[order]

    def near(self) -> Iterator[Peaks]:
        """Yield the pairs of which a latch may close."""
        for low, high in self._slabs():
            steps = self._steps(np.unique(self._pair[low:high]), slice(low, high))
            if self._graded is None:
                limit = self._pairs.limits(steps.pair)
                evidence = log_e_from(steps.b, steps.c, limit, self._pairs.spec.mixture)
                steps = steps._replace(evidence=evidence)
            happened = steps.when > BEFORE
            yield Peaks.of(steps.pair[happened], steps.evidence[happened], steps.side[happened])
            starts = np.flatnonzero(np.diff(steps.pair, prepend=-1))
            lowest, highest = (by.reduceat(steps.lead, starts) for by in (np.minimum, np.maximum))
            touched = steps.pair[starts]
            yield Peaks.turning(touched[self._pairs.may_reverse(touched, lowest, highest)])

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002 - few steps
        """Return every step of some pairs."""
        return self._whole(pair)

    def crossing(self, pair: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs with evidence from a limit on, up to the first."""
        return self.reaching(pair, limit, limit)

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs that reach a limit at an event each, or their state after it."""
        return reaching_or_last(self._whole(pair), when, limit)

    def turned(self, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the first step against a side of those of some pairs that have one."""
        return first_against(self._whole(pair), pair, side, since)

    def _whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs with its evidence; one without units in the chunk has the state before it."""
        low = np.searchsorted(self._pair, pair)
        high = np.searchsorted(self._pair, pair, side="right")
        units = np.repeat(low - np.cumsum(high - low) + (high - low), high - low) + np.arange(int((high - low).sum()))
        steps = self._steps(pair, units)
        if self._graded is None:
            steps = steps._replace(evidence=log_e_value(steps.b, steps.c, self._pairs.spec.mixture))
        return steps

    def _slabs(self) -> Iterator[tuple[int, int]]:
        """Yield ranges of units that hold whole pairs, so few that their capital fits."""
        ends = np.append(np.flatnonzero(np.diff(self._pair)) + 1, self._pair.size)
        most = _SLAB_CELLS // BETS if self._graded is not None else self._pair.size
        low = 0
        while low < self._pair.size:
            place = int(np.searchsorted(ends, low + most, side="right")) - 1
            high = int(ends[max(place, int(np.searchsorted(ends, low, side="right")))])
            yield low, high
            low = high

    def _steps(self, pair: Index, units: Index | slice) -> Trajectory:
        """Return the steps of some pairs, given all their units: each pair begins with its state before the chunk."""
        when = np.concatenate([np.full(pair.size, BEFORE), self._when[units]])
        difference = np.concatenate([np.zeros(pair.size, np.int64), self._difference[units]])
        pair = np.concatenate([pair, self._pair[units]])
        order = np.lexsort((when, pair))
        pair, when, difference = pair[order], when[order], difference[order]
        begins = np.flatnonzero(np.diff(pair, prepend=-1))
        first, happened = np.zeros(pair.size, bool), when > BEFORE
        first[begins] = True
        group, ends = np.cumsum(first) - 1, np.append(begins[1:], pair.size) - 1
        step = np.arange(pair.size) - begins[group]

        def along(gains: NDArray[np.int64], after: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
            """Return the running sum of each pair, which ends at its present value."""
            running = np.cumsum(gains, axis=0)
            return np.asarray(running + (after.astype(np.int64) - running[ends])[group])

        pairs, touched = self._pairs, pair[begins]
        n = along(happened.astype(np.int64), pairs.n[touched]).astype(np.int32)
        none = np.zeros(pair.size, np.int32)
        if self._graded is None:
            b = along((difference > 0).astype(np.int64), pairs.b[touched]).astype(np.int32)
            c = along((difference < 0).astype(np.int64), pairs.c[touched]).astype(np.int32)
            return Trajectory(pair, when, n, b, c, b - c, none, np.zeros(pair.size), np.sign(b - c), step)
        distinct, index = np.unique(difference, return_inverse=True)
        increments = log_increments(distinct / SCORE_UNIT)[index]
        increments[~happened] = 0
        evidence = graded_log_e(along(increments, self._graded.capital[touched]))
        lead = self._graded.leads(along(difference, self._graded.lead[touched]), n)
        return Trajectory(pair, when, n, none, none, lead, none, evidence, np.sign(lead), step)

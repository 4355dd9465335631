"""Latches along a committed order: the evidence at every item of a prefix counts, in the order of the permutation.

For the first model a skipped item bets the lowest difference it allows, for the second one the highest. So the evidence is the sum of two
parts: e+ at (b, c_worst) and e- at (b_best, c), each with its weight in the mixture. With nothing skipped it is e(b, c).
"""

from collections.abc import Iterator
from functools import cached_property
from math import log
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import BEFORE, SLACK, Peaks, Trajectory, log_e_from, may_reach
from monitor.engine.state.committed import SUMS, Advance, Committed
from monitor.engine.state.pair_state import PairState
from monitor.engine.state.pairs import Index, pair_index, pair_members
from monitor.engine.state.settling import Halves, Settling, Stretch
from stats.evidence.eprocess import log_completion_bound, log_e_value
from stats.evidence.mixtures import parse_mixture

_SLAB_CELLS: Final = 2_000_000
_LN2: Final = log(2.0)

Counts = NDArray[np.int32] | NDArray[np.int64]


def prefix_log_e(b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str) -> NDArray[np.float64]:
    """Return ln of the two-sided evidence."""
    log_e = log_e_value(b, c, mixture)
    skipped = np.nonzero((c_worst != c) | (b_best != b))
    if skipped[0].size:
        log_e[skipped] = np.logaddexp(*_halves(b[skipped], c[skipped], c_worst[skipped], b_best[skipped], mixture))
    return log_e


def _halves(
    b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ln of the two parts of the evidence, for the first model and for the second; their sum is the e-value."""
    return log_completion_bound(b, c_worst, 0, mixture)[0], log_completion_bound(b_best, c, 0, mixture)[1]


def _sides(b: Counts, c: Counts, c_worst: Counts, b_best: Counts, mixture: str) -> NDArray[np.int64]:
    """Return for whom the evidence is: 1 for the first model, -1 for the second."""
    side = np.where(b >= c, 1, -1)
    unclear = (c_worst != c) | (b_best != b) | (not parse_mixture(mixture).symmetric)
    if unclear.any():
        for_first, for_second = _halves(b[unclear], c[unclear], c_worst[unclear], b_best[unclear], mixture)
        side[unclear] = np.where(for_first >= for_second, 1, -1)
    return side


class CommittedWalk:
    """The trajectories of the pairs whose prefixes grow in a chunk."""

    def __init__(self, pairs: PairState, committed: Committed, advance: Advance) -> None:
        self._pairs, self._committed, self.advance = pairs, committed, advance
        self.pair = pair_index(advance.i, advance.j)

    def near(self) -> Iterator[Peaks]:
        """Yield the pairs of which a latch may close: the evidence is largest at corners of their counts, with skips part by part."""
        pairs, sums, before, pair = self._pairs, self._committed.sums, self.advance.before, self.pair
        limit, mixture = pairs.limits(pair), pairs.spec.mixture
        b, c, c_worst, b_best = (sums[name][pair] for name in ("b", "c", "c_worst", "b_best"))
        yield Peaks.turning(pair[pairs.may_reverse(pair, before["b"] - c, b - before["c"])])
        highest = np.maximum(log_e_from(b, before["c"], limit, mixture), log_e_from(before["b"], c, limit, mixture))
        skipped = (c_worst != c) | (b_best != b)
        some = np.flatnonzero(skipped & _may_reach(b, before["c_worst"], before["b_best"], c, limit))
        highest[some] = np.logaddexp(
            log_completion_bound(b[some], before["c_worst"][some], 0, mixture)[0],
            log_completion_bound(before["b_best"][some], c[some], 0, mixture)[1],
        )
        candidates = np.flatnonzero(highest >= limit - SLACK)
        length = self.advance.stop - self.advance.start
        step = max(1, _SLAB_CELLS // max(1, int(length[candidates].max(initial=0))))
        for start in range(0, candidates.size, step):
            part = candidates[start : start + step]
            yield self._peaks(part, limit[part], skipped[part])

    def _peaks(self, some: Index, limit: NDArray[np.float64], skipped: NDArray[np.bool_]) -> Peaks:
        """Return the largest evidence of some pairs: at the first item, or where the next item or none brings the lead back."""
        mixture = self._pairs.spec.mixture
        _, sums = self.advance.sums_along(some)
        lead = np.abs(sums["b"] - sums["c"])
        turns = np.ones(lead.shape, bool)
        turns[:, 1:-1] = lead[:, 1:-1] > lead[:, 2:]
        turns[skipped | (not parse_mixture(mixture).symmetric)] = True
        of, step = np.nonzero(turns)
        b, c, c_worst, b_best = (sums[name][of, step] for name in ("b", "c", "c_worst", "b_best"))
        near = may_reach(b, c, limit[of]) | (skipped[of] & _may_reach(b, c_worst, b_best, c, limit[of]))
        b, c, c_worst, b_best = (x[near] for x in (b, c, c_worst, b_best))
        evidence, side = prefix_log_e(b, c, c_worst, b_best, mixture), _sides(b, c, c_worst, b_best, mixture)
        return Peaks.of(self.pair[some][of[near]], evidence, side)

    def whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs."""
        steps, (c_worst, b_best) = self._along(pair)
        counts = steps.b, steps.c, c_worst, b_best
        mixture = self._pairs.spec.mixture
        return steps._replace(evidence=prefix_log_e(*counts, mixture), side=_sides(*counts, mixture))

    def counts(self, pair: Index) -> Trajectory:
        """Return every step of some pairs, without evidence."""
        return self._along(pair)[0]

    def exact(self, steps: Trajectory) -> Trajectory:
        """Return steps, which have their evidence."""
        return steps

    def _along(self, pair: Index) -> tuple[Trajectory, tuple[Counts, Counts]]:
        """Return every step of some pairs without evidence, and `c_worst` and `b_best` there."""
        place = self._order[np.searchsorted(self.pair, pair, sorter=self._order).clip(max=self.pair.size - 1)]
        grown = self.pair[place] == pair
        some, advance = place[grown], self.advance
        sums = {name: values[pair] for name, values in self._committed.sums.items()}
        prefix = self._committed.prefix(*pair_members(pair))
        for name, values in sums.items():
            values[grown] = advance.before[name][some]
        prefix[grown] -= (advance.stop - advance.start)[some]
        happened, along = advance.sums_along(some)
        of, step = np.nonzero(happened)
        pairs = np.concatenate([pair, self.pair[some][of]])
        order = np.argsort(pairs, kind="stable")
        n, b, c, c_worst, b_best = (np.concatenate([sums[name], along[name][of, step]])[order] for name in SUMS)
        when = np.concatenate([np.full(pair.size, BEFORE), advance.when_along(some)[of, step]])[order]
        missing = np.concatenate([prefix, prefix[grown][of] + step + 1])[order] - n
        nothing = np.full(order.size, -np.inf), np.zeros(order.size, np.int64)
        return Trajectory(pairs[order], when, n, b, c, b - c, missing.astype(np.int32), *nothing), (c_worst, b_best)

    @cached_property
    def _order(self) -> Index:
        return np.argsort(self.pair)


class BettingWalk:
    """The bets on the items that a committed order gained in a chunk, along `walk`."""

    def __init__(self, pairs: PairState, settling: Settling, committed: Committed, walk: CommittedWalk) -> None:
        self._pairs, self._settling, self._committed, self._walk = pairs, settling, committed, walk
        self._near: list[tuple[Index, Halves]] = []

    def near(self) -> Iterator[Peaks]:
        """Bet, and yield the pairs with evidence that matters."""
        pairs, advance = self._pairs, self._walk.advance
        pair = self._walk.pair
        unsettled = np.flatnonzero((pairs.claims["settled"].side[pair] == 0) & ~pairs.closed[pair])
        unsettled = unsettled[pairs.comparable(pair[unsettled])]
        pair, i, j = pair[unsettled], advance.i[unsettled], advance.j[unsettled]
        start, stop = advance.start[unsettled], advance.stop[unsettled]
        left = self._committed.size - self._committed.prefix(i, j) + stop - start
        limit = pairs.limits_in_family(pair, "settled")
        stretch = Stretch(pair, advance.codes, (i, j), start, stop, left)
        for some, (for_first, for_second) in self._settling.bet(stretch, limit):
            self._near.append((pair[some], (for_first, for_second)))
            evidence = np.logaddexp(for_first, for_second)
            at = np.arange(some.size), evidence.argmax(axis=1)
            side = np.where(for_first[at] >= for_second[at], 1, -1)
            yield Peaks(pair[some], evidence[at], side, np.zeros(some.size, bool))

    def whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs; those that `near` has not yielded have no evidence."""
        steps = self._walk.counts(pair)
        evidence, side = steps.evidence, steps.side
        starts = np.flatnonzero(np.diff(steps.pair, prepend=-1))
        step = np.arange(steps.pair.size) - np.repeat(starts, np.diff(starts, append=steps.pair.size)) - 1
        for of, (for_first, for_second) in self._near:
            order = np.argsort(of)
            place = order[np.searchsorted(of, steps.pair, sorter=order).clip(max=of.size - 1)]
            some = np.flatnonzero((of[place] == steps.pair) & (step >= 0))
            plus, minus = (half[place[some], step[some]] for half in (for_first, for_second))
            evidence[some], side[some] = np.logaddexp(plus, minus), np.where(plus >= minus, 1, -1)
        return steps._replace(missing=self._pairs.missing(steps.n))

    def counts(self, pair: Index) -> Trajectory:
        """Return every step of some pairs, without evidence."""
        return self._walk.counts(pair)

    def exact(self, steps: Trajectory) -> Trajectory:
        """Return steps, which have their evidence."""
        return steps


class RestingWalk:
    """The pairs of a committed order in a chunk that gives no evidence: they may still be latched by what others decide."""

    def __init__(self, pairs: PairState, committed: Committed) -> None:
        self._pairs, self._committed = pairs, committed

    def near(self) -> Iterator[Peaks]:
        """Yield nothing."""
        yield from ()

    def counts(self, pair: Index) -> Trajectory:
        """Return the state of some pairs."""
        n, b, c = (self._committed.sums[name][pair] for name in ("n", "b", "c"))
        nothing = np.full(pair.size, -np.inf), np.zeros(pair.size, np.int64)
        return Trajectory(pair, np.full(pair.size, BEFORE), n, b, c, b - c, self._pairs.missing(n), *nothing)

    whole = counts

    def exact(self, steps: Trajectory) -> Trajectory:
        """Return steps unchanged."""
        return steps


def _may_reach(
    b: NDArray[np.int32],
    c_worst: NDArray[np.int32],
    b_best: NDArray[np.int32],
    c: NDArray[np.int32],
    limit: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Rule out most evidence that is below a limit: the sum of two parts reaches it only if the larger one reaches half of it."""
    return may_reach(b, c_worst, limit - _LN2) | may_reach(b_best, c, limit - _LN2)

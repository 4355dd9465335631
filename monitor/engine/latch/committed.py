"""Latches along a committed order: the evidence at every item of a prefix counts, in the order of the permutation.

For the first model a skipped item bets the lowest difference it allows, for the second one the highest. So the evidence is the sum of two
parts: e+ at (b, c_worst) and e- at (b_best, c), each with its weight in the mixture. With nothing skipped it is e(b, c).
"""

from collections.abc import Iterator
from functools import cached_property
from math import log
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.base import (
    SLACK,
    Peaks,
    Trajectory,
    by_pair,
    first_against,
    log_e_from,
    may_reach,
    reaching_or_last,
    rising,
)
from monitor.engine.latch.paths import BEFORE, Evidence, KeptPaths, Paths, Sums, words_of
from monitor.engine.state.committed import SUMS, Advance, Committed
from monitor.engine.state.pairs.pair_state import PairState
from monitor.engine.state.pairs.settling import Settling, Stretch
from stats.evidence.eprocess import log_completion_bound, log_e_value
from stats.evidence.mixtures import parse_mixture
from stats.numerics.pairs import Index, among, pair_index, pair_members

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

    def __init__(self, pairs: PairState, committed: Committed, advance: Advance, evidence: Evidence) -> None:
        self._pairs, self._committed, self.advance = pairs, committed, advance
        self._evidence = evidence
        self.pair = pair_index(advance.i, advance.j)
        self._paths = KeptPaths(self._follow)
        self._crossing: list[Trajectory] = []

    def near(self) -> Iterator[Peaks]:
        """Yield the pairs of which a latch may close: the evidence is largest at corners of their counts, with skips part by part."""
        pairs, sums, before, pair = self._pairs, self._committed.sums, self.advance.before, self.pair
        (limit, alone), mixture = pairs.open_limits(pair), pairs.spec.mixture
        b, c = sums["b"][pair], sums["c"][pair]
        yield Peaks.turning(pair[pairs.may_reverse(pair, before["b"] - c, b - before["c"])])
        highest = np.maximum(log_e_from(b, before["c"], limit, mixture), log_e_from(before["b"], c, limit, mixture))
        some = np.flatnonzero(self._skipped & _may_reach(b, before["c_worst"], before["b_best"], c, limit))
        highest[some] = np.logaddexp(
            log_completion_bound(b[some], before["c_worst"][some], 0, mixture)[0],
            log_completion_bound(before["b_best"][some], c[some], 0, mixture)[1],
        )
        candidates = highest >= limit - SLACK
        plain = np.flatnonzero(candidates & ~self._skipped)
        for path in self._paths.new(pair[plain]):
            place = plain[path.place]
            (of, step), crossing = self._evidence.highest(path, limit[place], alone[place])
            self._crossing.append(self._evident(place, path, *crossing))
            at = path.sums(of, step)
            yield Peaks.of(pair[place[of]], self._evidence.exact(at), _sides(at.b, at.c, at.c, at.b, mixture))
        steps = self._whole(np.sort(pair[candidates & self._skipped]))
        steps = steps.rows(steps.when > BEFORE)
        self._crossing.append(steps)
        yield Peaks.of(steps.pair, steps.evidence, steps.side)

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs with evidence from `low` on, up to the first from `high` on."""
        some, grown = self._places(pair)
        plain = ~self._skipped[some]
        parts = [self._whole(self.pair[some[~plain]])]
        some, low, high = some[plain], low[grown][plain], high[grown][plain]
        for path in self._paths.rows(self.pair[some]):
            place = some[path.place]
            points = self._evidence.reaching(path, low[path.place], high[path.place])
            parts.append(self._evident(place, path, *_to_ends_of_events(self.advance, place, *points)))
        return by_pair(parts)

    def crossing(self, pair: Index, limit: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002 - seen by `near`
        """Return the steps of pairs that are not decided on their own, around ln 1/alpha up to the first from there on."""
        return by_pair([steps.rows(among(pair, steps.pair)[0]) for steps in self._crossing])

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the first step of some pairs that reaches a limit at an event each, or the state after it."""
        return reaching_or_last(self._whole(pair), when, limit)

    def state(self, pair: Index, when: Index) -> Trajectory:
        """Return the state of some pairs after an event each, without evidence."""
        return reaching_or_last(self._along(pair)[0], when, np.full(pair.size, np.inf))

    def turned(self, pair: Index, side: NDArray[np.integer[Any]], since: Index) -> Trajectory:
        """Return the first step against a side of those of some pairs that have one."""
        some, grown = self._places(pair)
        plain, side, since = ~self._skipped[some], side[grown], since[grown]
        skipped = self.pair[some[~plain]]
        turned = first_against(self._along(skipped)[0], skipped, side[~plain], since[~plain])
        turns = [(turned.pair, turned.step)]
        pair = self.pair[some[plain]]
        for path, of, step in self._paths.first_against(pair, side[plain], since[plain]):
            turns.append((pair[path.place[of]], step))
        pair, step = (np.concatenate(columns) for columns in zip(*turns, strict=True))
        order = np.argsort(pair)
        whole = self._whole(pair[order])
        starts = np.flatnonzero(np.diff(whole.pair, prepend=-1))
        return whole.rows(starts + step[order])

    def points(self, some: Index, step: Index) -> Trajectory:
        """Return steps of pairs without evidence, given their places and numbers, from 1."""
        places, of = np.unique(some, return_inverse=True)
        sums = np.empty((3, some.size), np.int32)
        for slab in self.advance.slabs(places):
            inside = np.flatnonzero((of >= slab.start) & (of < slab.stop))
            along = self.advance.sums_along(places[slab])[1]
            for column, name in zip(sums, ("n", "b", "c"), strict=True):
                column[inside] = along[name][of[inside] - slab.start, step[inside] - 1]
        return self._steps(some, step, Sums(*sums))

    def _steps(self, some: Index, step: Index, sums: Sums) -> Trajectory:
        """Return steps of pairs without evidence, given their places, numbers and sums."""
        n, b, c = sums
        advance = self.advance
        missing = (self._before[some] + step - n).astype(np.int32)
        nothing = np.full(some.size, -np.inf), np.zeros(some.size, np.int64)
        return Trajectory(self.pair[some], advance.when_at(some, step), n, b, c, b - c, missing, *nothing, step)

    def _evident(self, place: Index, path: Paths, of: Index, step: Index) -> Trajectory:
        """Return some points of paths with their evidence, given the places of the pairs of the paths."""
        sums = path.sums(of, step)
        sides = _sides(sums.b, sums.c, sums.c, sums.b, self._pairs.spec.mixture)
        return self._steps(place[of], step, sums)._replace(evidence=self._evidence.exact(sums), side=sides)

    def _follow(self, pair: Index) -> Iterator[Paths]:
        """Yield the steps of pairs without skipped items, some at a time."""
        advance, before = self.advance, self.advance.before
        some = self._places(pair)[0]
        order = np.argsort(advance.start[some], kind="stable")
        for slab in advance.slabs(some[order]):
            place = order[slab]
            of = some[place]
            wins, losses = advance.discordant(of)
            sums = Sums(*(before[name][of] for name in ("n", "b", "c")))
            yield Paths.of(place, advance.stop[of] - advance.start[of], sums, words_of(wins), words_of(losses))

    def _places(self, pair: Index) -> tuple[Index, NDArray[np.bool_]]:
        """Return the places of those of some pairs whose prefixes grow, and which of them these are."""
        place = self._order[np.searchsorted(self.pair, pair, sorter=self._order).clip(max=self.pair.size - 1)]
        grown = self.pair[place] == pair
        return place[grown], grown

    def _whole(self, pair: Index) -> Trajectory:
        """Return every step of some pairs with its evidence, skipped items or not."""
        steps, (c_worst, b_best) = self._along(pair)
        counts = steps.b, steps.c, c_worst, b_best
        mixture = self._pairs.spec.mixture
        return steps._replace(evidence=prefix_log_e(*counts, mixture), side=_sides(*counts, mixture))

    def _along(self, pair: Index) -> tuple[Trajectory, tuple[Counts, Counts]]:
        """Return every step of some pairs without evidence, and `c_worst` and `b_best` there."""
        some, grown = self._places(pair)
        advance = self.advance
        sums = {name: values[pair] for name, values in self._committed.sums.items()}
        prefix = self._committed.prefix(*pair_members(pair))
        for name, values in sums.items():
            values[grown] = advance.before[name][some]
        prefix[grown] = self._before[some]
        happened, along = advance.sums_along(some)
        of, step = np.nonzero(happened)
        pairs = np.concatenate([pair, self.pair[some][of]])
        order = np.argsort(pairs, kind="stable")
        n, b, c, c_worst, b_best = (np.concatenate([sums[name], along[name][of, step]])[order] for name in SUMS)
        when = np.concatenate([np.full(pair.size, BEFORE), advance.when_at(some[of], step + 1)])[order]
        missing = np.concatenate([prefix, prefix[grown][of] + step + 1])[order] - n
        number = np.concatenate([np.zeros(pair.size, np.int64), step + 1])[order]
        nothing = np.full(order.size, -np.inf), np.zeros(order.size, np.int64)
        steps = Trajectory(pairs[order], when, n, b, c, b - c, missing.astype(np.int32), *nothing, number)
        return steps, (c_worst, b_best)

    @cached_property
    def _skipped(self) -> NDArray[np.bool_]:
        """Which pairs have a skipped item in their prefix."""
        b, c, c_worst, b_best = (self._committed.sums[name][self.pair] for name in ("b", "c", "c_worst", "b_best"))
        return np.asarray((c_worst != c) | (b_best != b))

    @cached_property
    def _before(self) -> Index:
        """Length of the prefix of each pair before the chunk."""
        advance = self.advance
        return np.asarray(self._committed.prefix(advance.i, advance.j) - (advance.stop - advance.start))

    @cached_property
    def _order(self) -> Index:
        return np.argsort(self.pair)


class BettingWalk:
    """The bets on the items that a committed order gained in a chunk, along `walk`."""

    def __init__(self, pairs: PairState, settling: Settling, committed: Committed, walk: CommittedWalk) -> None:
        self._pairs, self._settling, self._committed, self._walk = pairs, settling, committed, walk
        self._near: list[_Bets] = []

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
            bets = _Bets(unsettled[some], np.logaddexp(for_first, for_second), for_first >= for_second)
            self._near.append(bets)
            at = np.arange(some.size), bets.evidence.argmax(axis=1)
            sides = np.where(bets.first[at], 1, -1)
            yield Peaks(pair[some], bets.evidence[at], sides, np.zeros(some.size, bool))

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:
        """Return the steps of some pairs with evidence from `low` on, up to the first from `high` on."""
        parts, advance = [], self._walk.advance
        for bets in self._near:
            some, asked = among(pair, self._walk.pair[bets.place])
            place, evidence = bets.place[some], bets.evidence[some]
            ends = evidence >= high[asked, None]
            last = np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, advance.stop[place] - advance.start[place])
            last = advance.last_of_event(place, last)
            may_latch = (evidence >= low[asked, None] - SLACK) & (np.arange(evidence.shape[1]) < last[:, None])
            of, step = np.nonzero(may_latch & rising(evidence))
            when = advance.when_at(place[of], step + 1)
            highest = np.ones(of.size, bool)  # of its event
            highest[:-1] = (of[1:] != of[:-1]) | (when[1:] != when[:-1])
            parts.append(self._steps(bets, some, of[highest], step[highest]))
        return by_pair(parts)

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:
        """Return the step of some pairs with the largest evidence at an event each if it reaches a limit, or the state after the event."""
        parts, left, advance = [Trajectory.nothing()], np.ones(pair.size, bool), self._walk.advance
        for bets in self._near:
            some, asked = among(pair, self._walk.pair[bets.place])
            place, evidence = bets.place[some], bets.evidence[some]
            there = np.arange(evidence.shape[1]) < (advance.stop - advance.start)[place][:, None]
            of, step = np.nonzero(there & (evidence >= limit[asked, None]))
            now = advance.when_at(place[of], step + 1) == when[asked[of]]
            best = np.full(evidence.shape, -np.inf)
            best[of[now], step[now]] = evidence[of[now], step[now]]
            step = best.argmax(axis=1)
            reached = np.flatnonzero(best[np.arange(step.size), step] > -np.inf)
            parts.append(self._steps(bets, some, reached, step[reached]))
            left[asked[reached]] = False
        state = self._walk.state(pair[left], when[left])
        return by_pair([*parts, state._replace(missing=self._pairs.missing(state.n))])

    def _steps(self, bets: "_Bets", some: Index, of: Index, step: Index) -> Trajectory:
        """Return steps of some of the pairs that bet, numbered from 0."""
        reached = self._walk.points(bets.place[some[of]], step + 1)
        return reached._replace(
            missing=self._pairs.missing(reached.n),
            evidence=bets.evidence[some[of], step],
            side=np.where(bets.first[some[of], step], 1, -1),
        )


class _Bets(NamedTuple):
    """Evidence of bets after each item of some pairs."""

    place: Index  # of the pairs in the walk
    evidence: NDArray[np.float64]  # shape (pairs, items); constant after the last item of a pair
    first: NDArray[np.bool_]  # whether it is for the first model


class RestingWalk:
    """The pairs of a committed order in a chunk that gives no evidence: they may still be latched by what others decide."""

    def __init__(self, pairs: PairState, committed: Committed) -> None:
        self._pairs, self._committed = pairs, committed

    def near(self) -> Iterator[Peaks]:
        """Yield nothing."""
        yield from ()

    def reaching(self, pair: Index, low: NDArray[np.float64], high: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002
        """Return no steps."""
        return Trajectory.nothing()

    def after(self, pair: Index, when: Index, limit: NDArray[np.float64]) -> Trajectory:  # noqa: ARG002 - no event moves them
        """Return the state of some pairs."""
        n, b, c = (self._committed.sums[name][pair] for name in ("n", "b", "c"))
        none = np.zeros(pair.size, np.int64)
        missing, nothing = self._pairs.missing(n), np.full(pair.size, -np.inf)
        return Trajectory(pair, np.full(pair.size, BEFORE), n, b, c, b - c, missing, nothing, none, none)


def _to_ends_of_events(advance: Advance, place: Index, of: Index, step: Index) -> tuple[Index, Index]:
    """Return steps of pairs and all that follow at the event of the last one of each pair; numbered from 1, by pair, then by time.

    `place`: where the pairs are that `of` counts.
    """
    last = np.flatnonzero(np.diff(of, append=-1))
    more = advance.last_of_event(place[of[last]], step[last]) - step[last]
    if not more.any():
        return of, step
    number = np.repeat(np.cumsum(more) - more, more)
    added_of, added = np.repeat(of[last], more), np.repeat(step[last], more) + np.arange(number.size) - number + 1
    of, step = np.concatenate([of, added_of]), np.concatenate([step, added])
    order = np.lexsort((step, of))
    return of[order], step[order]


def _may_reach(
    b: NDArray[np.int32],
    c_worst: NDArray[np.int32],
    b_best: NDArray[np.int32],
    c: NDArray[np.int32],
    limit: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Rule out most evidence that is below a limit: the sum of two parts reaches it only if the larger one reaches half of it."""
    return may_reach(b, c_worst, limit - _LN2) | may_reach(b_best, c, limit - _LN2)

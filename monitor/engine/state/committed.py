"""Prefixes of a committed order: the complete part of the permutation of each model, and the sums of each pair over its prefix.

The prefix of a pair is the shorter of its two models' prefixes, so the state is one number per model. A pair gains the items between its
old and its new prefix; the time of an item is the latest arrival up to it. A skipped score may be any score in [0, 1]: next to the
discordant counts b and c the sums contain `c_worst`, the items that might count against the first model, and `b_best`, those that might
count for it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes, Counts
from schemas.records.scores import ABSENT, ONE, SKIPPED, ZERO, RowKey
from stats.numerics.pairs import Index, all_pairs, pair_count, pair_index, pairs_of
from stats.order import committed_order

ALWAYS: Final = -1
SUMS: Final = ("n", "b", "c", "c_worst", "b_best")
"""n: items of the prefix that both have scored."""

_MIRROR: Final = {"n": "n", "b": "c", "c": "b", "c_worst": "b_best", "b_best": "c_worst"}
_FIRST_LOOK_AHEAD: Final = 64
_LOOK_AHEAD: Final = 4_096
_SLAB_CELLS: Final = 2_000_000
_TABLE_CELLS: Final = 131_072
_FEW: Final = 16

Sums = dict[str, Counts]


@dataclass(frozen=True)
class Advance:
    """The growth of prefixes in a chunk, for the pairs (i, j) whose prefix has grown."""

    i: Index
    j: Index
    start: Index
    stop: Index
    """The new part of each prefix is `codes[start:stop]`."""
    before: Sums
    ranks: Index
    """The places in the committed order that any model newly reached, ascending."""
    codes: Codes
    """The scores there, shape (ranks, contestants)."""
    reached: tuple[Index, Index]
    """Prefix length of each contestant before and after."""
    cells: tuple[Index, Index, Index]
    """Step, contestant and position in the chunk of the new cells among them."""

    def slabs(self, some: Index) -> Iterator[slice]:
        """Yield slices of pairs whose tables of steps stay small; where many begin at one place of the order, these only."""
        longest = int((self.stop[some] - self.start[some]).max(initial=0))
        step = max(1, _TABLE_CELLS // max(1, longest))
        turns = np.flatnonzero(np.diff(self.start[some])) + 1
        ends = [*turns.tolist(), some.size] if turns.size * _FEW <= some.size else [some.size]
        start = 0
        for end in ends:
            for low in range(start, end, step):
                yield slice(low, min(low + step, end))
            start = end

    def scores(self, some: Index) -> tuple[Codes, Codes, NDArray[np.bool_]]:
        """Return the scores of both models of pairs at each of their steps, and which of these they have; shape (pairs, most steps)."""
        start, stop = self.start[some], self.stop[some]
        longest = int((stop - start).max(initial=0))
        happened = np.arange(longest) < (stop - start)[:, None]
        first = int(start.min(initial=0))
        if (start == first).all():  # whole stretches are copied
            part = self._by_contestant[:, first : first + longest]
            return part[self.i[some]], part[self.j[some]], happened
        index = np.minimum(start[:, None] + np.arange(longest), self.ranks.size - 1)
        return self.codes[index, self.i[some, None]], self.codes[index, self.j[some, None]], happened

    @cached_property
    def _by_contestant(self) -> Codes:
        return self.codes.T.copy()

    def discordant(self, some: Index) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return at which steps of pairs only the first, only the second model is right, shape (pairs, most steps)."""
        x, y, happened = self.scores(some)
        if self._has_skips:
            adds = item_steps(x, y)
            return adds["b"] & happened, adds["c"] & happened
        return (x > y) & happened, (x < y) & happened

    def sums_along(self, some: Index) -> tuple[NDArray[np.bool_], Sums]:
        """Return which steps along the permutation pairs have, shape (pairs, most steps), and the sums after each; the last ones stay."""
        x, y, happened = self.scores(some)
        if self._has_skips:
            adds = item_steps(x, y)
            gained = {name: np.cumsum(adds[name] & happened, axis=1, dtype=np.int32) for name in SUMS}
        else:  # every score is 0 or 1, so nothing has a worst and a best
            n, b, c = (np.cumsum(adds & happened, axis=1, dtype=np.int32) for adds in (np.True_, x > y, x < y))
            gained = {"n": n, "b": b, "c": c, "c_worst": c, "b_best": b}
        return happened, {name: gained[name] + self.before[name][some, None] for name in SUMS}

    @cached_property
    def _has_skips(self) -> bool:
        return bool((self.codes == SKIPPED).any())

    def when_at(self, some: Index, step: Index) -> Index:
        """Return the event of one step of each of some pairs, numbered from 1; shape (pairs,)."""
        return self._clock.at(self.start[some] + step - 1, self.i[some], self.j[some])

    def last_of_event(self, some: Index, step: Index) -> Index:
        """Return the last step of pairs at the event of a step: one event may take a pair several."""
        if self._clock.one_at_a_time:
            return step
        when, low, high = self.when_at(some, step), step.copy(), self.stop[some] - self.start[some]
        while (low < high).any():
            middle = (low + high + 1) >> 1
            same = self.when_at(some, middle) == when
            low, high = np.where(same, middle, low), np.where(same, high, middle - 1)
        return low

    @cached_property
    def _clock(self) -> "_Clock":
        return _Clock.of(self.ranks, self.reached, self.cells)


@dataclass(frozen=True)
class _Clock:
    """When contestants reached places of the order: a row for each place at which one got a score, and a column for each that moved."""

    row: Index
    column: Index
    times: NDArray[np.int32]
    """A position in the chunk, or ALWAYS; the last column is that of all contestants that did not move."""
    one_at_a_time: bool
    """Whether no event took a contestant more than one place."""

    @classmethod
    def of(cls, ranks: Index, reached: tuple[Index, Index], cells: tuple[Index, Index, Index]) -> "_Clock":
        """Return the clock of places, by what each contestant had reached before and after the new cells."""
        before, after = reached
        step, contestant, position = cells
        moved = np.flatnonzero(after > before)
        column = np.full(before.size, moved.size)
        column[moved] = np.arange(moved.size)
        first = before[moved]
        places, row = np.unique(np.concatenate([step, np.searchsorted(ranks, first)]), return_inverse=True)
        times = np.full((places.size, moved.size + 1), np.int32(ALWAYS))
        times[row[: step.size], column[contestant]] = position
        times[:, -1] = ALWAYS
        np.maximum.accumulate(times, axis=0, out=times)
        at = ranks[places][:, None]
        times[:, :-1][(at < first) | (at >= after[moved])] = ALWAYS
        # A place that is reached at an event of its own is later than the one before it.
        later = np.count_nonzero(np.diff(times[:, :-1], axis=0, prepend=np.int32(ALWAYS)) > 0, axis=0)
        row = np.searchsorted(places, np.arange(ranks.size), side="right") - 1
        return cls(row, column, times, bool((later == after[moved] - first).all()))

    def at(self, place: Index, i: Index, j: Index) -> Index:
        """Return when both contestants of pairs had reached a place."""
        row = self.row[place]
        return np.asarray(np.maximum(self.times[row, self.column[i]], self.times[row, self.column[j]]), np.int64)


class Committed:
    """The prefixes of one benchmark."""

    def __init__(self, seed: str, item_ids: Sequence[str]) -> None:
        self.size = len(item_ids)
        self._rank_of = {item_ids[k]: rank for rank, k in enumerate(committed_order(seed, item_ids).tolist())}
        self._item_at = np.full(self.size, -1, np.int64)
        self._rank = np.zeros(0, np.int64)
        self.reached = np.zeros(0, np.int64)
        """Length of each contestant's own complete prefix; a pair's is the smaller one."""
        self.sums: Sums = {name: np.zeros(0, np.int32) for name in SUMS}  # over the prefix of each pair

    def prefix(self, i: Index, j: Index) -> Index:
        """Return the prefix length of pairs."""
        return np.minimum(self.reached[i], self.reached[j])

    def items(self, one: int, other: int) -> Index:
        """Return the items of the prefix of a pair, in the committed order."""
        return self._item_at[: int(np.minimum(self.reached[one], self.reached[other]))]

    @property
    def item_at(self) -> Index:
        """The item at each place of the order; -1 where it has not arrived."""
        return self._item_at

    def ids(self, start: int, stop: int) -> list[str]:
        """Return the ids of the items at some places of the order."""
        return list(islice(self._rank_of, start, stop))

    def in_order(self, scores: Codes) -> Codes:
        """Return the scores of the longest prefix of a contestant, by place in the order, shape (places, contestants)."""
        return scores[self._item_at[: int(self.reached.max(initial=0))]]

    def rebuild(self, items: Sequence[RowKey], scores: Codes) -> None:
        """Compute all prefixes from a score matrix."""
        contestants = np.arange(scores.shape[1])
        self._enter(items, contestants.size)
        self._move(scores, contestants)
        if contestants.size < 2:
            return
        ranks = np.arange(int(self.reached.max()))
        i, j = all_pairs(contestants.size)
        nowhere = np.zeros_like(self.reached)
        self.sums = self._gained(scores[self._item_at[ranks]], ranks, nowhere, contestants, (i, j))

    def advance(self, items: Sequence[RowKey], scores: Codes, cells: tuple[Index, Index, Index]) -> Advance | None:
        """Advance the prefixes by new cells (item, contestant, position); return None if no pair's prefix has grown.

        `items` and `scores` are the whole matrix with the new cells, which include skipped ones.
        """
        self._enter(items, scores.shape[1])
        item, contestant, position = cells
        before = self.reached.copy()
        self._move(scores, np.unique(contestant))
        moved = np.flatnonzero(self.reached > before)
        if moved.size == 0 or scores.shape[1] < 2:
            return None
        gone = np.zeros(self.size + 1, np.int64)
        np.add.at(gone, before[moved], 1)
        np.add.at(gone, self.reached[moved], -1)
        ranks = np.flatnonzero(np.cumsum(gone))
        codes = scores[self._item_at[ranks]]

        i, j = pairs_of(moved, scores.shape[1])
        old = np.minimum(before[i], before[j])
        grown = self.prefix(i, j) > old
        i, j, old = i[grown], j[grown], old[grown]
        if i.size == 0:
            return None
        pair = pair_index(i, j)
        sums = {name: values[pair] for name, values in self.sums.items()}
        for name, gained in self._gained(codes, ranks, before, moved, (i, j)).items():
            self.sums[name][pair] += gained
        step = np.searchsorted(ranks, self._rank[item])
        step[step == ranks.size] = 0
        inside = ranks[step] == self._rank[item]
        return Advance(
            i, j, np.searchsorted(ranks, old), np.searchsorted(ranks, self.prefix(i, j)), sums, ranks, codes,
            (before, self.reached.copy()), (step[inside], contestant[inside], position[inside]),
        )  # fmt: skip

    def follow(self, items: Sequence[RowKey], ready: Codes) -> NDArray[np.bool_]:
        """Compute the prefix of each contestant; return which items are in whose, shape (items, contestants)."""
        self._enter(items, ready.shape[1])
        self._move(ready, np.arange(ready.shape[1]))
        return np.asarray(self._rank[:, None] < self.reached[: ready.shape[1]])

    def release(
        self, items: Sequence[RowKey], ready: Codes, cells: tuple[Index, Index, Index]
    ) -> tuple[Index, Index, Index]:
        """Advance the prefix of each contestant by new cells (item, contestant, position); return the cells that join one, in their order.

        `ready` is the whole matrix with the new cells. A cell joins at the event of the last one that it waited for.
        """
        self._enter(items, ready.shape[1])
        item, contestant, position = cells
        before = self.reached.copy()
        self._move(ready, np.unique(contestant))
        moved = np.flatnonzero(self.reached > before)
        gained = self.reached[moved] - before[moved]
        of = np.repeat(moved, gained)
        place = np.arange(of.size) + np.repeat(before[moved] - np.cumsum(gained) + gained, gained)
        when = np.full((moved.size, int(gained.max(initial=0))), ALWAYS, np.int64)
        row = np.searchsorted(moved, contestant).clip(max=max(moved.size - 1, 0))
        step = self._rank[item] - before[contestant]
        inside = (moved.size > 0) & (self._rank[item] < self.reached[contestant])
        when[row[inside], step[inside]] = position[inside]
        np.maximum.accumulate(when, axis=1, out=when)
        when = when[np.arange(when.shape[1]) < gained[:, None]]
        order = np.lexsort((place, when))
        return self._item_at[place[order]], of[order], when[order]

    def _enter(self, items: Sequence[RowKey], contestants: int) -> None:
        """Look up the ranks of new items, and make room for new contestants."""
        known = self._rank.size
        fresh = [self._rank_of[key.item] for key in items[known:]]
        self._rank = np.concatenate([self._rank, np.array(fresh, np.int64)])
        self._item_at[self._rank[known:]] = np.arange(known, self._rank.size)
        self.reached = np.pad(self.reached, (0, contestants - self.reached.size))
        pairs = pair_count(contestants)
        if self.sums["n"].size < pairs:
            self.sums = {name: np.pad(values, (0, pairs - values.size)) for name, values in self.sums.items()}

    def _move(self, scores: Codes, contestants: Index) -> None:
        """Move contestants to their first absent item, looking a few items ahead, then more."""
        ahead = _FIRST_LOOK_AHEAD
        while contestants.size:
            ranks = self.reached[contestants][:, None] + np.arange(ahead)
            rows = self._item_at[np.minimum(ranks, self.size - 1)]
            there = (ranks < self.size) & (rows >= 0) & (scores[rows, contestants[:, None]] != ABSENT)
            complete = there.all(axis=1)
            self.reached[contestants] += np.where(complete, ahead, there.argmin(axis=1))
            contestants = contestants[complete]
            ahead = min(2 * ahead, _LOOK_AHEAD)

    def _gained(self, codes: Codes, ranks: Index, before: Index, moved: Index, pairs: tuple[Index, Index]) -> Sums:
        """Return the gains of pairs: their sums over the new prefixes, less the sums over the old ones."""
        contestants = codes.shape[1]
        total = {name: np.zeros((moved.size, contestants), np.int32) for name in SUMS}
        step = max(1, _SLAB_CELLS // contestants)
        for start in range(0, ranks.size, step):
            slab = slice(start, start + step)
            for reached, sign in ((self.reached, 1), (before, -1)):
                mine = np.where(ranks[slab, None] < reached, codes[slab], ABSENT)
                for name, values in _products(mine, moved).items():
                    total[name] += sign * values
        i, j = pairs
        place = np.full(contestants, -1, np.int64)
        place[moved] = np.arange(moved.size)
        forward = place[i] >= 0
        a, b = np.where(forward, place[i], place[j]), np.where(forward, j, i)
        return {name: np.where(forward, total[name][a, b], total[_MIRROR[name]][a, b]) for name in SUMS}


def _products(codes: Codes, some: Index) -> Sums:
    """Add up some contestants against all over rows; see `SUMS`. Absent cells count nowhere."""
    right, wrong, skipped = ((codes == code).astype(np.float32) for code in (ONE, ZERO, SKIPPED))
    scored = (codes >= ZERO).astype(np.float32)

    def product(x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.int32]:
        return (x[:, some].T @ y).astype(np.int32)

    sums = {"n": product(scored, scored), "b": product(right, wrong), "c": product(wrong, right)}
    if skipped.any():
        maybe_right, maybe_wrong = right + skipped, wrong + skipped
        return sums | {"c_worst": product(maybe_wrong, maybe_right), "b_best": product(maybe_right, maybe_wrong)}
    return sums | {"c_worst": sums["c"], "b_best": sums["b"]}


def item_steps(x: Codes, y: Codes) -> dict[str, NDArray[np.bool_]]:
    """Return which sums each item of each pair adds to; every score is present or skipped."""
    maybe_right, maybe_wrong = (x == ONE) | (x == SKIPPED), (x == ZERO) | (x == SKIPPED)
    return {
        "n": (x >= ZERO) & (y >= ZERO),
        "b": (x == ONE) & (y == ZERO),
        "c": (x == ZERO) & (y == ONE),
        "c_worst": maybe_wrong & ((y == ONE) | (y == SKIPPED)),
        "b_best": maybe_right & ((y == ZERO) | (y == SKIPPED)),
    }

"""Prefixes of a committed order: the complete part of the permutation of each model, and the sums of each pair over its prefix.

The prefix of a pair is the shorter of its two models' prefixes, so the state is one number per model. A pair gains the items between its
old and its new prefix; the time of an item is the latest arrival up to it. A skipped score may be any score in [0, 1]: next to the
discordant counts b and c the sums contain `c_worst`, the items that might count against the first model, and `b_best`, those that might
count for it.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes, Counts, grown
from schemas.records.scores import ABSENT, ONE, SKIPPED, ZERO, RowKey
from stats.numerics.pairs import Index, pair_count
from stats.order import committed_order

ALWAYS: Final = -1
SUMS: Final = ("n", "b", "c", "c_worst", "b_best")  # n: items of the prefix that both have scored

_FIRST_LOOK_AHEAD: Final = 64
_LOOK_AHEAD: Final = 4_096

Sums = dict[str, Counts]


class Committed:
    """The prefixes of one benchmark."""

    def __init__(self, seed: str, item_ids: Sequence[str]) -> None:
        self.size = len(item_ids)
        self._rank_of = {item_ids[k]: rank for rank, k in enumerate(committed_order(seed, item_ids).tolist())}
        self._item_at = np.full(self.size, -1, np.int64)
        self._rank = np.zeros(0, np.int64)
        self.reached = np.zeros(0, np.int64)
        """Length of each contestant's own complete prefix; a pair's is the smaller one."""
        self.column = np.zeros((0, self.size), np.uint8)
        """Scores of each contestant by place in the order."""
        self.table = np.zeros((0, len(SUMS) + 1), np.int32)
        """The sums over the prefix of each pair, and the place from which on the loop looks at it again."""

    @property
    def sums(self) -> Sums:
        """The sums over the prefix of each pair."""
        return dict(zip(SUMS, self.table[: pair_count(self.reached.size)].T, strict=False))

    @property
    def rank(self) -> Index:
        """The place of each item in the order."""
        return self._rank

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

    def grow(self, items: Sequence[RowKey], contestants: int) -> None:
        """Look up the ranks of new items, and make room for the scores and pairs of new contestants."""
        self._enter(items, contestants)
        self.column = grown(self.column, contestants, self.size)

    def _enter(self, items: Sequence[RowKey], contestants: int) -> None:
        """Look up the ranks of new items, and make room for new contestants."""
        known = self._rank.size
        fresh = [self._rank_of[key.item] for key in items[known:]]
        self._rank = np.concatenate([self._rank, np.array(fresh, np.int64)])
        self._item_at[self._rank[known:]] = np.arange(known, self._rank.size)
        if self.reached.size < contestants:
            self.reached = np.pad(self.reached, (0, contestants - self.reached.size))
            self.table = grown(self.table, pair_count(contestants), len(SUMS) + 1)

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

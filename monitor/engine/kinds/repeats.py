"""Items with several repeats, and units of several items: the score that bets is the mean of them.

Repeats of one item are correlated, so a single one is no bet: the items bet. An item of a model bets when as many of its repeats are scored
as were declared, of any labels, or when the run of the model ends. Until a repeat comes beyond those declared, everything here
follows from the rows and the ended runs, in any order of the log.

A declared unit is an item whose repeats are those of its items: what is written here of items holds of units. Only how many repeats are
declared is a matter of each item of a unit.

Items with one row answer the same questions (`SingleRows`), so nobody asks which of them a benchmark has.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes, ScoreTable, grown
from schemas.records.declaration import Spec
from schemas.records.scores import ABSENT, SKIPPED, ZERO, RowKey
from stats.numerics.pairs import Index

ItemCells = tuple[Index, Index, NDArray[np.uint32], Index]
"""Item, contestant, code and position of items that bet now, sorted by item."""

_SLAB_CELLS = 4_000_000


class Undeclared(NamedTuple):
    """The first repeat beyond those declared."""

    position: int
    item: str
    contestant: int


class Turns(Protocol):
    """The committed order, as `monitor.engine.state.committed.Committed` has it."""

    def follow(self, items: Sequence[RowKey], ready: Codes) -> NDArray[np.bool_]:
        """Return which items are in the prefix of which contestant."""

    def release(
        self, items: Sequence[RowKey], ready: Codes, cells: tuple[Index, Index, Index]
    ) -> tuple[Index, Index, Index]:
        """Return the cells that join a prefix, given new ones."""


class _Arrivals(NamedTuple):
    """New cells by item, contestant and position."""

    order: Index
    item: Index
    contestant: Index
    code: NDArray[np.uint32]
    position: Index
    start: Index  # the first cell of each item and contestant
    group: Index
    counts: NDArray[np.bool_]  # whether a cell is a repeat that counts: a score, or the first skip where skips bet
    number: Index  # how many repeats the item has with each cell


def rounded_mean(total: NDArray[np.int64], count: NDArray[np.int64] | np.int64) -> NDArray[np.int64]:
    """Return total / count, rounded half to even.

    >>> rounded_mean(np.array([7, 5, 6]), np.array([2, 2, 4])).tolist()
    [4, 2, 2]
    """
    mean, rest = np.divmod(total, count)
    return np.asarray(mean + ((2 * rest > count) | ((2 * rest == count) & (mean % 2 == 1))))


class SingleRows:
    """The items of a benchmark in which each has one row, of any label: `Repeats` has more to answer."""

    members: "Repeats | None" = None
    turns: Turns | None = None
    are_rows = True  # each item is one
    has_scores = True  # the rows are of the score matrix, and not prompts of battles

    def __init__(self, keys: Sequence[RowKey], table: ScoreTable, row_of: Mapping[str, int]) -> None:
        self.keys, self.table, self._row_of = keys, table, row_of
        self._others: set[str] = set()  # items whose row is not of repeat 0

    def __contains__(self, item: str) -> bool:
        """Return whether an item has a row."""
        return item in self._row_of or item in self._others

    def has_others(self, items: Mapping[str, str | None]) -> bool:
        """Return whether some of these items have a row of another label than 0."""
        return not self._others.isdisjoint(items)

    def add_row(self, key: RowKey) -> None:
        """Add the next row."""
        if key.repeat:
            self._others.add(key.item)

    def grow(self, contestants: int) -> None:
        """Make room for all items and contestants."""

    def matrix(self, scores: Codes) -> Codes:
        """Return the codes of the items, made from the rows' codes, with their spare room."""
        return scores

    def present(self, codes: Codes, contestant: int) -> NDArray[np.bool_]:
        """Return for each item, of these codes, whether a contestant has any repeat of it, skipped ones included."""
        return np.asarray(codes[:, contestant] != ABSENT)

    def whole(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return for each item, or unit, whether all of it has a row among some rows."""
        return rows

    def first_of_items(self, row: Index, contestant: Index, position: Index) -> tuple[Index, Index, Index]:
        """Return (item, contestant, position) of the cells that are the first one of their item, of any repeat."""
        return row, contestant, position

    def first_undeclared(
        self, row: Index, contestant: Index, code: NDArray[np.uint32], position: Index
    ) -> Undeclared | None:
        """Return the first of new cells that is a scored repeat beyond those declared, or None."""

    def enter(self, scores: Codes, cells: ItemCells, values: NDArray[np.int64]) -> tuple[ItemCells, Index]:
        """Enter new cells, none of them undeclared; return the items that bet or are skipped now, and contestants that lost a skip."""
        # `values` are the scores of the codes. The codes of the items returned are not written yet. With `turns` they are in their order.
        return cells, np.zeros(0, np.int64)

    def pending(self, contestant: int) -> ItemCells:
        """Return the items of a contestant that have scored repeats and have not bet, in their turn, with the code of the mean of these."""
        none = np.zeros(0, np.int64)
        return none, none, none.astype(np.uint32), none

    def waits(self, contestants: NDArray[np.bool_]) -> bool:
        """Return whether some contestants have an item that bets with fewer repeats than declared, once their runs end."""
        return False

    def first_beyond(self, contestants: int) -> Undeclared | None:
        """Return an item that has more repeats than declared, or None."""

    def within_declared(self, row: Index, contestant: int, code: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which of new cells of a contestant, taken by row, stay within the declared repeats."""
        return np.ones(row.size, bool)

    def rebuild(self, matrix: Codes, scores: NDArray[np.int64], ended: NDArray[np.bool_]) -> None:
        """Compute everything from the rows, shape (rows, contestants), and the contestants whose runs have ended."""


class Prompts(SingleRows):
    """The prompts of a benchmark of battles."""

    has_scores = False


class Repeats(SingleRows):
    """The items of a benchmark in which some item has, or may have, more than one row."""

    _MATRICES = ("codes", "count", "total", "ready")
    are_rows = False

    def __init__(
        self,
        needed: int | None,
        *,
        skips_bet: bool = False,
        units: Mapping[str, str] | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.needed, self.skips_bet, self.turns = needed, skips_bet, turns
        self._unit_of = units or {}
        self._sizes = Counter(self._unit_of.values())
        self.members = None if units is None else Repeats(needed)
        self.needs = np.zeros(0, np.int64)
        self._keys: list[RowKey] = []
        super().__init__(self._keys, ScoreTable(), {})
        self.item = np.zeros(0, np.int64)
        self._rows = 0
        self._item_of: dict[str, int] = {}
        self.codes: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)
        self.count = np.zeros((0, 0), np.int32)
        self.total = np.zeros((0, 0), np.int64)
        self.ready: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)

    def __contains__(self, item: str) -> bool:
        return item in (self._item_of if self.members is None else self.members)

    def add_row(self, key: RowKey) -> None:
        name = self._unit_of.get(key.item, key.item)
        index = self._item_of.setdefault(name, len(self.keys))
        if index == len(self.keys):
            self.needs = grown(self.needs, index + 1)
            self.needs[index] = (self.needed or 0) * self._sizes.get(name, 1)
            self._keys.append(key if self.members is None else RowKey(name, 0, key.cluster))
        if self.members is not None:
            self.members.add_row(key)
        if self._rows == self.item.size:
            self.item = np.concatenate([self.item, np.zeros(self._rows // 8 + 64, np.int64)])
        self.item[self._rows] = index
        self._rows += 1

    def grow(self, contestants: int) -> None:
        for name in self._MATRICES[: 4 if self.turns is not None else 3]:
            setattr(self, name, grown(getattr(self, name), len(self.keys), contestants))
        if self.members is not None:
            self.members.grow(contestants)

    def matrix(self, scores: Codes) -> Codes:
        return self.codes

    def present(self, codes: Codes, contestant: int) -> NDArray[np.bool_]:
        return np.asarray((self.codes[:, contestant] != ABSENT) | (self.count[:, contestant] > 0))

    def whole(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        assert self.members is not None
        item, unit = self.members.item[: rows.size][rows], self.item[: rows.size][rows]
        found = unit[np.unique(item, return_index=True)[1]]
        sizes = np.array([self._sizes.get(key.item, 1) for key in self.keys], np.int64)
        return np.bincount(found, minlength=len(self.keys)) >= sizes

    def first_of_items(self, row: Index, contestant: Index, position: Index) -> tuple[Index, Index, Index]:
        order, item, contestant, first = self._by_item(row, contestant, position)
        position = position[order]
        first &= (self.codes[item, contestant] == ABSENT) & (self.count[item, contestant] == 0)
        return item[first], contestant[first], position[first]

    def first_undeclared(
        self, row: Index, contestant: Index, code: NDArray[np.uint32], position: Index
    ) -> Undeclared | None:
        if self.needed is None or not row.size:
            return None
        if self.members is not None:
            return self.members.first_undeclared(row, contestant, code, position)
        new = self._arrivals(row, contestant, code, position)
        beyond = np.flatnonzero((new.code >= ZERO) & (new.number > self.needed))
        if not beyond.size:
            return None
        at = beyond[new.position[beyond].argmin()]
        return Undeclared(int(new.position[at]), self.keys[new.item[at]].item, int(new.contestant[at]))

    def _by_item(self, row: Index, contestant: Index, position: Index) -> tuple[Index, Index, Index, NDArray[np.bool_]]:
        """Sort cells by item, contestant and position; return the order, and item, contestant and whether it is their first of each."""
        item = self.item[row]
        order = np.lexsort((position, contestant, item))
        item, contestant = item[order], contestant[order]
        first = np.ones(item.size, bool)
        first[1:] = (item[1:] != item[:-1]) | (contestant[1:] != contestant[:-1])
        return order, item, contestant, first

    def _arrivals(self, row: Index, contestant: Index, code: NDArray[np.uint32], position: Index) -> _Arrivals:
        order, item, contestant, first = self._by_item(row, contestant, position)
        code, position = code[order], position[order]
        start, group = np.flatnonzero(first), np.cumsum(first) - 1
        before = self.count[item, contestant]
        counts = code >= ZERO
        if self.skips_bet:
            counts |= first & (before == 0)
        number = before + _running(counts.astype(np.int64), start, group)
        return _Arrivals(order, item, contestant, code, position, start, group, counts, number)

    def enter(self, scores: Codes, cells: ItemCells, values: NDArray[np.int64]) -> tuple[ItemCells, Index]:
        row, contestant, code, position = cells
        scores[row, contestant] = code
        if self.members is not None:
            self.members.enter(scores, cells, values)
        new = self._arrivals(row, contestant, code, position)
        values = np.where(new.code >= ZERO, values[new.code], 0)
        item, who = new.item[new.start], new.contestant[new.start]
        sums = self.total[new.item, new.contestant] + _running(values, new.start, new.group)
        last = np.append(new.start[1:], new.item.size) - 1
        had = self.codes[item, who]
        added = np.add.reduceat(new.counts.astype(np.int32), new.start)
        self.total[item, who] = sums[last]
        self.count[item, who] += added

        bets = np.flatnonzero(new.counts & (new.number == self.needs[new.item]) & (self.needed is not None))
        code_of = self.table.codes_of(rounded_mean(sums[bets], self.needs[new.item[bets]]))
        code_of = np.where(new.code[bets] == SKIPPED, SKIPPED, code_of)
        has_bet = np.zeros(item.size, bool)
        has_bet[new.group[bets]] = True
        skips = np.flatnonzero((self.count[item, who] == 0) & (had == ABSENT))
        lost = np.flatnonzero((had == SKIPPED) & (added > 0) & ~has_bet)
        self.codes[item[lost], who[lost]] = ABSENT

        at = np.concatenate([bets, new.start[skips]])
        codes = np.concatenate([code_of, np.full(skips.size, SKIPPED)]).astype(np.uint32)
        order = np.lexsort((new.contestant[at], new.item[at]))
        at = at[order]
        return self._in_turn((new.item[at], new.contestant[at], codes[order], new.position[at])), who[lost]

    def _in_turn(self, cells: ItemCells) -> ItemCells:
        """Return the items that bet, given those that could: with `turns`, the ones that no item of the order before them holds up."""
        if self.turns is None:
            return cells
        item, contestant, code, position = cells
        scored = code >= ZERO
        item, contestant, position = item[scored], contestant[scored], position[scored]
        self.ready[item, contestant] = code[scored]
        ready = self.ready[: len(self.keys)]
        item, contestant, position = self.turns.release(self.keys, ready, (item, contestant, position))
        return item, contestant, ready[item, contestant], position

    def pending(self, contestant: int) -> ItemCells:
        count, codes = self.count[: len(self.keys), contestant], self.codes[: len(self.keys), contestant]
        item = np.flatnonzero((count > 0) & (codes == ABSENT))
        mean = rounded_mean(self.total[item, contestant], count[item].astype(np.int64))
        codes = self.table.codes_of(mean).astype(np.uint32)
        return self._in_turn((item, np.full(item.size, contestant), codes, np.zeros(item.size, np.int64)))

    def waits(self, contestants: NDArray[np.bool_]) -> bool:
        count = self.count[: len(self.keys), : contestants.size][:, contestants]
        needs = self.needs[: len(self.keys), None]
        return bool(((count > 0) & (True if self.needed is None else count < needs)).any())

    def first_beyond(self, contestants: int) -> Undeclared | None:
        if self.needed is None:
            return None
        if self.members is not None:
            return self.members.first_beyond(contestants)
        beyond = np.argwhere(self.needed < self.count[: len(self.keys), :contestants].T)
        return Undeclared(0, self.keys[beyond[0, 1]].item, int(beyond[0, 0])) if beyond.size else None

    def within_declared(self, row: Index, contestant: int, code: NDArray[np.uint32]) -> NDArray[np.bool_]:
        if self.members is not None:
            return self.members.within_declared(row, contestant, code)
        new = self._arrivals(row, np.full(row.size, contestant), code, row)
        keep = np.ones(row.size, bool)
        if self.needed is not None:
            keep[new.order] = (new.code < ZERO) | (new.number <= self.needed)
        return keep

    def rebuild(self, matrix: Codes, scores: NDArray[np.int64], ended: NDArray[np.bool_]) -> None:
        if self.members is not None:
            self.members.rebuild(matrix, scores, ended)
        rows, contestants = matrix.shape
        shape = len(self.keys), contestants
        self.codes = np.zeros(shape, np.uint32)
        self.count, self.total = np.zeros(shape, np.int32), np.zeros(shape, np.int64)
        if not rows or not contestants:
            return
        order = np.argsort(self.item[:rows], kind="stable")
        start = np.flatnonzero(np.diff(self.item[order], prepend=-1))
        step = max(1, _SLAB_CELLS // rows)
        for low in range(0, contestants, step):
            part = slice(low, low + step)
            cells = matrix[:, part][order]
            count = np.add.reduceat((cells >= ZERO).astype(np.int32), start, axis=0)
            total = np.add.reduceat(scores[cells], start, axis=0)
            skipped = (count == 0) & (np.add.reduceat((cells == SKIPPED).astype(np.int32), start, axis=0) > 0)
            enough = False if self.needed is None else count >= self.needs[: len(count), None]
            bets = (count > 0) & (ended[part] | enough)
            codes = np.where(skipped, SKIPPED, ABSENT)
            codes[bets] = self.table.codes_of(rounded_mean(total[bets], count[bets].astype(np.int64)))
            if self.skips_bet:
                count[skipped] = 1
            self.codes[:, part], self.count[:, part], self.total[:, part] = codes, count, total
        if self.turns is not None:
            self.codes[self.codes == SKIPPED] = ABSENT
            self.ready = self.codes.copy()
            self.codes[~self.turns.follow(self.keys, self.ready)] = ABSENT


def _running(values: NDArray[np.int64], start: Index, group: Index) -> NDArray[np.int64]:
    """Add up values within each group, up to and with each of them."""
    along = np.cumsum(values)
    return np.asarray(along - (along - values)[start][group])


def rows_of(spec: Spec, rows: tuple[Sequence[RowKey], ScoreTable, dict[str, int]], turns: Turns | None) -> SingleRows:
    """Return the items of a benchmark without scores: its rows, unless its declaration joins several rows in one item."""
    if spec.repeats == 1 and spec.units is None:
        return SingleRows(*rows)
    return Repeats(None if spec.repeats == "all" else spec.repeats, units=spec.units, turns=turns)

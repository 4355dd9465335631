"""Declared repeats: the score of an item is the mean of its R repeats, once all of them are scored.

Repeats of one item are correlated, so a single one is no bet. The items bet: their scores are means in units of `SCORE_UNIT`, rounded
half to even.
"""

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import ABSENT, SKIPPED, Codes, ScoreTable
from monitor.engine.state.pairs import Index

ItemCells = tuple[Index, Index, NDArray[np.uint32], Index]
"""Item, contestant, code and position of newly complete items, sorted by item."""


def rounded_mean(total: NDArray[np.int64], count: NDArray[np.int64] | np.int64) -> NDArray[np.int64]:
    """Return total / count, rounded half to even.

    Examples
    --------
    >>> rounded_mean(np.array([7, 5, 6]), np.array([2, 2, 4])).tolist()
    [4, 2, 2]
    """
    mean, rest = np.divmod(total, count)
    return np.asarray(mean + ((2 * rest > count) | ((2 * rest == count) & (mean % 2 == 1))))


class Repeats:
    """The items of a benchmark of R repeats."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.table = ScoreTable()
        self.clusters: list[str | None] = []  # of the first row of each item
        self.codes: NDArray[np.uint32] = np.zeros((0, 0), np.uint32)
        """By item and contestant: ABSENT until all repeats are present, SKIPPED if any was skipped, else the code of their sum."""
        self.row_at = np.zeros((0, count), np.int64)  # row of each repeat of an item; -1 where it is absent
        self._item_of: dict[str, int] = {}
        self._item: list[int] = []

    @property
    def items(self) -> int:
        """Number of items with at least one of their R repeats."""
        return len(self.clusters)

    def add_row(self, item: str, repeat: int, cluster: str | None) -> None:
        """Add the next row; a repeat beyond the R declared belongs to no item."""
        row = len(self._item)
        if repeat >= self.count:
            self._item.append(-1)
            return
        index = self._item_of.setdefault(item, len(self.clusters))
        if index == len(self.clusters):
            self.clusters.append(cluster)
            if index == len(self.row_at):
                spare = np.full((len(self.row_at) // 8 + 64, self.count), -1, np.int64)
                self.row_at = np.concatenate([self.row_at, spare])
        self._item.append(index)
        self.row_at[index, repeat] = row

    def grow(self, contestants: int) -> None:
        """Make room for all items and contestants."""
        rows, columns = self.codes.shape
        if rows < self.items or columns < contestants:
            grown = np.zeros((max(rows, len(self.row_at)), max(columns, contestants)), np.uint32)
            grown[:rows, :columns] = self.codes
            self.codes = grown

    def completed(self, scores: Codes, table: ScoreTable, row: Index, contestant: Index, position: Index) -> ItemCells:
        """Return the items that new cells complete, each at the position of its last cell.

        `scores` is the score matrix with the new cells, `table` its scores.
        """
        item = np.array(self._item, np.int64)[row]
        inside = np.flatnonzero(item >= 0)
        inside = inside[np.lexsort((position[inside], contestant[inside], item[inside]))]
        item, contestant, position = item[inside], contestant[inside], position[inside]
        last = np.ones(item.size, bool)
        last[:-1] = (item[1:] != item[:-1]) | (contestant[1:] != contestant[:-1])
        item, contestant, position = item[last], contestant[last], position[last]

        rows = self.row_at[item]
        cells = np.where(rows >= 0, scores[rows, contestant[:, None]], ABSENT)
        whole = (cells != ABSENT).all(axis=1)
        item, contestant, position, cells = item[whole], contestant[whole], position[whole], cells[whole]
        mean = rounded_mean(table.by_code[cells].sum(axis=1), np.int64(self.count))
        code = np.where((cells == SKIPPED).any(axis=1), SKIPPED, self.table.codes_of(mean))
        return item, contestant, code.astype(np.uint32), position

    def matrix(self, contestants: int) -> NDArray[np.uint32]:
        """Return the codes without their spare room, shape (items, contestants)."""
        return self.codes[: self.items, :contestants]

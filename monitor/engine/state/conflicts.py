"""Scores that contradict an earlier one: each of the first 10,000, and how many scores of each contestant came again."""

from typing import Final

import numpy as np

from monitor.engine.state.changes import Again, ConflictChanges, Listed
from stats.numerics.pairs import Index

MOST_LISTED: Final = 10_000  # conflicts of a benchmark that are kept one by one; further ones are only counted


class Conflicts:
    """The conflicts of one benchmark, in the order of the log."""

    def __init__(self, listed: Listed | None = None, again: Again | None = None) -> None:
        self.listed: Listed = np.empty((0, 4), np.uint32) if listed is None else listed
        self.again: Again = np.empty((0, 2), np.int64) if again is None else again
        self._stored = len(self.listed)
        self._touched: set[int] = set()

    def add(self, entries: Listed, duplicates: Index, contestants: int) -> None:
        """Add conflicts, in the order of the log, and the contestant of each duplicate."""
        room = MOST_LISTED - len(self.listed)
        if room > 0 and len(entries):
            self.listed = np.concatenate([self.listed, entries[:room]])
        self.again = np.pad(self.again, ((0, contestants - len(self.again)), (0, 0)))
        for column, who in enumerate((duplicates, entries[:, 1].astype(np.int64))):
            counts = np.bincount(who, minlength=contestants)
            self.again[:, column] += counts
            self._touched.update(np.flatnonzero(counts).tolist())

    def by_contestant(self, contestants: int) -> Again:
        """Return the counts of all contestants."""
        return np.pad(self.again, ((0, contestants - len(self.again)), (0, 0)))

    def changed(self) -> ConflictChanges:
        """Return what was added since the last call."""
        start, self._stored = self._stored, len(self.listed)
        touched = np.array(sorted(self._touched), np.int64)
        self._touched.clear()
        return ConflictChanges(start, self.listed[start:], touched, self.again[touched])

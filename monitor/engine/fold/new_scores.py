"""New scores by time: when pairs came to share an item."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes
from schemas.records.scores import ZERO
from stats.numerics.pairs import Index

Times = NDArray[np.int16]
NEVER: Final = np.iinfo(np.int16).max  # later than any position in a chunk: a chunk has at most 8,000
ALWAYS: Final = -1
_SLAB_CELLS: Final = 500_000


@dataclass(frozen=True)
class NewScores:
    """The new scores of a chunk and the rows they are in, shape (contestants, rows): the scores of a contestant are contiguous."""

    time: Times  # position of each score in the chunk; ALWAYS if it was there before, NEVER if it is absent or skipped
    after: Codes  # the rows with the new scores

    @classmethod
    def of(cls, before: Codes, after: Codes, row: Index, contestant: Index, position: Index) -> "NewScores":
        """Lay out new scores by time; `before` and `after` have shape (rows, contestants)."""
        time = np.where(before.T.copy() >= ZERO, np.int16(ALWAYS), np.int16(NEVER))
        time[contestant, row] = position
        return cls(time, after.T.copy())

    @property
    def rows(self) -> int:
        """Number of rows with new scores."""
        return int(self.time.shape[1])

    def shared(self, i: Index, j: Index) -> Times:
        """Return when pairs came to share each row, shape (pairs, rows)."""
        times = self.time[i]
        return np.maximum(times, self.time[j], out=times)

    def first_shared(self, i: Index, j: Index) -> Times:
        """Return when pairs that shared nothing before got their first shared item, shape (pairs,)."""
        first = np.empty(i.size, np.int16)
        step = max(1, _SLAB_CELLS // max(1, self.rows))
        for start in range(0, i.size, step):
            self.shared(i[start : start + step], j[start : start + step]).min(axis=1, out=first[start : start + step])
        return first

"""Stop a worker on too many unreadable records, instead of draining the topic into its dead letters."""

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from monitor.engine.state.delta import DeadLetter, RefusedLetter

WINDOW: Final = 10_000
"""Records over which the share is taken: enough to distinguish 10 % from 5 %, few enough to notice a new fault in a long log."""

ALWAYS: Final = 100
"""Unreadable records that are always allowed within the window, even for a small share."""

SHARE: Final = 0.1
"""The same as `report` and `watch` allow of lines. Beyond it the readable scores may be a biased selection."""

RUN: Final = 500
"""Unreadable records in a row. One task that writes NaN for its few hundred items must not stop the service for other runs. 500 bad records
without a good one are another format or another topic: at a share of 10 % such a sequence has probability 1e-500."""


class TooManyDeadLetters(ValueError):  # noqa: N818 - the state of the topic is its name
    """Too much of a partition is unreadable to continue."""


class DeadLetterLimit:
    """Counts the unreadable records of one partition.

    Offsets number the records, so the dead letters alone give the share of bad records and their longest sequence. A packed record counts
    by its bad share: its letters over the places up to the last letter. One bad event in a thousand counts little; a record with only bad
    events counts as 1. Records that were read and refused do not count: one producer that sends scores of ended runs, or of items that are
    not declared, must not stop the service for the rest.

    Each start of a worker counts from zero. A worker that restarts within a sequence of bad records stops before it keeps more of them.

    Parameters
    ----------
    share : float
        The largest share of unreadable records among the last `WINDOW`; 1 allows everything.
    run : int
        The most unreadable records in a row.
    """

    def __init__(self, share: float = SHARE, run: int = RUN) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share}; give a share of the records, from 0 to 1")
        if run < 1:
            raise ValueError(f"run is {run}; give a number of records, from 1")
        self.share, self.run = share, run
        self._bad: deque[tuple[int, float]] = deque()
        self._in_window = 0.0
        self._run = 0
        self._run_end = -1

    def add(self, topic: str, partition: int, letters: Sequence[DeadLetter]) -> None:
        """Count letters in the order of the log; pass all letters of a record together.

        Raises
        ------
        TooManyDeadLetters
            If there are too many; keep none of these letters, because they come again.
        """
        if self.share == 1:
            return
        unreadable = (letter for letter in letters if not isinstance(letter, RefusedLetter))
        for offset, group in groupby(unreadable, attrgetter("offset")):
            letter, weight = _weigh(list(group))
            self._count(offset, weight)
            if self._in_window > max(ALWAYS, self.share * WINDOW):
                raise _too_many(f"{self._in_window:,.0f} of the last {WINDOW:,} records", topic, partition, letter)
            if self._run > self.run:
                raise _too_many(f"{self._run:,} records in a row", topic, partition, letter)

    def _count(self, offset: int, weight: float) -> None:
        self._bad.append((offset, weight))
        self._in_window += weight
        while self._bad[0][0] <= offset - WINDOW:
            self._in_window -= self._bad.popleft()[1]
        whole = weight == 1
        self._run = (self._run + 1 if offset == self._run_end + 1 else 1) if whole else 0
        self._run_end = offset


def _weigh(letters: Sequence[DeadLetter]) -> tuple[DeadLetter, float]:
    return letters[-1], min(1.0, len(letters) / (letters[-1].index + 1))


def _too_many(amount: str, topic: str, partition: int, last: DeadLetter) -> TooManyDeadLetters:
    return TooManyDeadLetters(
        f"stopped at partition {partition} of {topic}: {amount} could not be read, the last at offset {last.offset} ({last.field}: found "
        f"{last.found}: {last.reason}). Fix the producer that writes them. To skip them as dead letters, start with max_rejected set to 1 "
        "(RANKWATCH_MAX_REJECTED), and reset it after them"
    )

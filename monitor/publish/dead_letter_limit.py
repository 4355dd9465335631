"""How many records of a topic may be unreadable before the worker stops, instead of draining the topic into its dead letters."""

from collections import deque
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final

from monitor.engine.state.delta import DeadLetter

WINDOW: Final = 10_000
"""Records over which the share is taken: long enough to tell 10 % from 5 %, short enough to notice today's mistake in a year's log."""

ALWAYS: Final = 100
"""So many unreadable records within the window are allowed, however small the share: a few strays are nobody's fault."""

SHARE: Final = 0.1
"""As `report` and `watch` allow of lines. Beyond it the scores that are left may be a selection, and a verdict would rest on it."""

RUN: Final = 500
"""Records in a row. One task of an evaluation that writes NaN for all of its few hundred items is an accident of that run, and must not
stop the service for others. 500 records without a single good one among them are another format, or another topic: at a share of 10 % such
a run has probability 1e-500."""


class TooManyDeadLetters(ValueError):  # noqa: N818 - the state of the topic is its name
    """So much of a partition cannot be read that going on would only empty it."""


class DeadLetterLimit:
    """Counts the unreadable records of one partition.

    The offsets of a topic number its records, so the dead letters alone tell the share of bad records, and how many stand in a row. A
    packed record counts for the part of it that was bad, as far as its letters tell: so many letters of so many places up to the last of
    them. A single bad event somewhere in a thousand counts little, a record of nothing but bad ones counts whole.

    Counting begins anew with each start of a worker, as if everything before had been good. One that is started again into a run stops
    before anything more of it is kept.

    Parameters
    ----------
    share : float
        The largest share of unreadable records among the last `WINDOW`; 1 lets everything pass, runs too.
    run : int
        The most unreadable records in a row.
    """

    def __init__(self, share: float = SHARE, run: int = RUN) -> None:
        if not 0 <= share <= 1:
            raise ValueError(f"share is {share}: give a share of the records, from 0 to 1")
        if run < 1:
            raise ValueError(f"run is {run}: give a number of records, from 1")
        self.share, self.run = share, run
        self._bad: deque[tuple[int, float]] = deque()
        self._in_window = 0.0
        self._run = 0
        self._run_end = -1

    def add(self, topic: str, partition: int, letters: Sequence[DeadLetter]) -> None:
        """Count letters, in the order of the log, all of a record together.

        Raises
        ------
        TooManyDeadLetters
            If they are too many; then none of these letters should be kept, for they come again.
        """
        if self.share == 1:
            return
        for offset, group in groupby(letters, attrgetter("offset")):
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


def _too_many(what: str, topic: str, partition: int, last: DeadLetter) -> TooManyDeadLetters:
    return TooManyDeadLetters(
        f"stopped at partition {partition} of {topic}: {what} could not be read, the last at offset {last.offset} ({last.field}: found "
        f"{last.found}: {last.reason}); find out who writes them and stop that. To have all of them put aside and go on behind them, start "
        "with max_rejected set to 1 (RANKWATCH_MAX_REJECTED), and set it back once they are behind"
    )

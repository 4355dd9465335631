"""What a monitor without anytime-valid statistics would say: the exact McNemar test, read again at every look."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.paper.demo.simulate import DemoStream
from stats.mcnemar import exact_p

LOOK_EVERY: Final = 100
"""Items between two looks of `follow`: far fewer looks than a live dashboard takes."""

LEVEL: Final = 0.05

Counts = npt.NDArray[np.int64]


class NaivePeeking:
    """Reads p < .05 at every look as a verdict, and counts how often that verdict changes.

    Parameters
    ----------
    pairs : sequence of (str, str)
        The pairs that are looked at; the first of the two is "a".

    Attributes
    ----------
    pairs : tuple of (str, str)
    looks : int
        Looks taken so far.
    verdicts : ndarray of int8, shape (pairs,)
        At the last look: 1 for a, -1 for b, 0 for none.
    flips : ndarray of int64, shape (pairs,)
        Changes of the verdict between looks (none, a and b alike), the first verdict included.
    called : ndarray of bool, shape (pairs,)
        Whether there was a verdict at any look.

    Examples
    --------
    >>> naive = NaivePeeking([("x", "y")])
    >>> for b, c in [(3, 2), (12, 2), (12, 11), (12, 30)]:
    ...     naive.look([b], [c])
    >>> naive.flips.tolist(), naive.words()
    ([3], ['y'])
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
        self.looks = 0
        self.verdicts = np.zeros(len(self.pairs), np.int8)
        self.flips = np.zeros(len(self.pairs), np.int64)
        self.called = np.zeros(len(self.pairs), np.bool_)
        self._items = 0

    def look(self, b: npt.ArrayLike, c: npt.ArrayLike) -> None:
        """Read the test at these counts.

        Parameters
        ----------
        b, c : array_like, shape (pairs,)
            Items that only the first, and only the second model of each pair has right.
        """
        wins, losses = np.asarray(b, np.int64), np.asarray(c, np.int64)
        if wins.shape != self.flips.shape or losses.shape != self.flips.shape:
            expected, found = f"one count for each of the {len(self.pairs)} pairs", f"{wins.shape} and {losses.shape}"
            raise ValueError(f"b and c must hold {expected}, not arrays of shape {found}")
        verdicts = np.where(exact_p(wins, losses) < LEVEL, np.sign(wins - losses), 0).astype(np.int8)
        self.flips += verdicts != self.verdicts
        self.called |= verdicts != 0
        self.verdicts = verdicts
        self.looks += 1

    def follow(self, stream: DemoStream, items: int) -> None:
        """Take the looks that are due once this many items have arrived: one every 100 items, and one at the end.

        What has been looked at by the end is a function of the stream alone, not of how it was cut into chunks.
        """
        total = len(stream.scores)
        due = [n for n in range(LOOK_EVERY, total + LOOK_EVERY, LOOK_EVERY) if self._items < min(n, total) <= items]
        for n in due:
            self.look(*discordant(stream, self.pairs, min(n, total)))
            self._items = min(n, total)

    def words(self) -> list[str]:
        """Return the model that is said to be better, or "none", for each pair."""
        return [
            (b if verdict < 0 else a) if verdict else "none"
            for (a, b), verdict in zip(self.pairs, self.verdicts, strict=True)
        ]


def discordant(stream: DemoStream, pairs: Sequence[tuple[str, str]], items: int) -> tuple[Counts, Counts]:
    """Count the items, of the first to arrive, that only the first and only the second model of each pair has right."""
    column = {model: position for position, model in enumerate(stream.models)}
    first = stream.scores[:items, [column[a] for a, _ in pairs]].astype(np.int64)
    second = stream.scores[:items, [column[b] for _, b in pairs]].astype(np.int64)
    return (first > second).sum(0), (first < second).sum(0)

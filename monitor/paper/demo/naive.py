"""A monitor without anytime-valid statistics: the exact McNemar test, read again at every look."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from monitor.paper.demo.simulate import DemoStream
from stats.fixed_n.mcnemar import exact_p

LOOK_EVERY: Final = 100  # items between two looks; a live dashboard takes far more

LEVEL: Final = 0.05

Counts = npt.NDArray[np.int64]


class NaivePeeking:
    """Takes p < .05 at any look as a verdict, and counts how often the verdict changes.

    >>> naive = NaivePeeking([("x", "y")])
    >>> for b, c in [(3, 2), (12, 2), (12, 11), (12, 30)]:
    ...     naive.look([b], [c])
    >>> naive.flips.tolist(), naive.leaders()
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
        """Run the test on the items that only the first (b) and only the second (c) model of each pair has right."""
        wins, losses = np.asarray(b, np.int64), np.asarray(c, np.int64)
        if wins.shape != self.flips.shape or losses.shape != self.flips.shape:
            raise ValueError(
                f"b and c have shapes {wins.shape} and {losses.shape}; give one count for each of the {len(self.pairs)} pairs"
            )
        verdicts = np.where(exact_p(wins, losses) < LEVEL, np.sign(wins - losses), 0).astype(np.int8)
        self.flips += verdicts != self.verdicts
        self.called |= verdicts != 0
        self.verdicts = verdicts
        self.looks += 1

    def follow(self, stream: DemoStream, items: int) -> None:
        """Take the looks that are due after so many items: one every 100 items and one at the end, however the stream is cut."""
        total = len(stream.scores)
        for n in range(LOOK_EVERY, total + LOOK_EVERY, LOOK_EVERY):
            due = min(n, total)
            if self._items < due <= items:
                self.look(*discordant(stream, self.pairs, due))
                self._items = due

    def leaders(self) -> list[str]:
        """Return the model with the verdict, or "none", for each pair."""
        return [
            (b if verdict < 0 else a) if verdict else "none"
            for (a, b), verdict in zip(self.pairs, self.verdicts, strict=True)
        ]


def discordant(stream: DemoStream, pairs: Sequence[tuple[str, str]], items: int) -> tuple[Counts, Counts]:
    """Count, among the first items, those that only the first and only the second model of each pair has right."""
    first, second = (
        stream.scores[:items, [stream.models.index(model) for model in models]] for models in zip(*pairs, strict=True)
    )
    return (first > second).sum(0), (first < second).sum(0)

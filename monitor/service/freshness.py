"""How old the state is that a reader shows."""

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Final

_SAMPLE_SECONDS: Final = 0.2
_SAMPLES: Final = 256
"""Ends of a partition that are remembered; beyond that the age is overestimated, until the first of them is folded."""


class Freshness:
    """The ends of each partition as they were seen, and when the state got to them.

    A state is as old as the last end that it has reached: events that came later are not in it.

    >>> freshness = Freshness([0])
    >>> freshness.age(now=100.0)
    inf
    >>> freshness.see(0, end=50, at=100.0)
    >>> freshness.see(0, end=80, at=101.0)
    >>> freshness.fold({0: 60})
    >>> freshness.age(now=103.0)
    3.0
    """

    def __init__(self, partitions: Mapping[int, object] | list[int]) -> None:
        self._ahead: dict[int, deque[tuple[int, float]]] = {number: deque() for number in partitions}
        self._reached: dict[int, float] = dict.fromkeys(partitions, -inf)

    def see(self, partition: int, end: int, at: float) -> None:
        """Record that a partition ended at an offset at a time."""
        ahead = self._ahead[partition]
        latest = ahead[-1][1] if ahead else self._reached[partition]
        if at - latest >= _SAMPLE_SECONDS and len(ahead) < _SAMPLES:
            ahead.append((end, at))

    def fold(self, offsets: Mapping[int, int]) -> None:
        """Record how far each partition is folded."""
        for number, offset in offsets.items():
            ahead = self._ahead[number]
            while ahead and ahead[0][0] <= offset:
                self._reached[number] = ahead.popleft()[1]

    def age(self, now: float) -> float:
        """Return how long ago the last end was seen that every partition has reached, in seconds."""
        return max(0.0, now - min(self._reached.values()))

"""The bets of pairs on who leads on all items of a benchmark, along its committed order; see `stats.evidence.settled`.

Bets are a function of the items in their order: a restart computes them again from the scores.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import Codes
from schemas.records.scores import ONE, SKIPPED
from stats.evidence.settled import SettledState, settled_start, settled_steps
from stats.numerics.pairs import Index

SLACK: Final = 1e-9
_SLAB_CELLS: Final = 200_000
_SLAB_PAIRS: Final = 32_768

Halves = tuple[NDArray[np.float64], NDArray[np.float64]]
"""ln e+ / 2 and ln e- / 2, shape (pairs, items)."""


class Stretch(NamedTuple):
    """The next items of pairs: their scores by place in the order, and which of these places each pair has."""

    pair: Index
    codes: Codes  # shape (places, contestants)
    members: tuple[Index, Index]
    start: Index
    stop: Index
    left: Index  # items of the order that are left before them

    def rows(self, some: Index | slice | NDArray[np.bool_]) -> "Stretch":
        """Return some of the pairs."""
        i, j = self.members
        return Stretch(
            self.pair[some], self.codes, (i[some], j[some]), self.start[some], self.stop[some], self.left[some]
        )

    def slabs(self) -> Iterator[slice]:
        """Yield slices of pairs that fit into memory."""
        step = max(1, min(_SLAB_PAIRS, _SLAB_CELLS // max(1, int((self.stop - self.start).max(initial=0)))))
        yield from (slice(start, start + step) for start in range(0, self.pair.size, step))

    def differences(self) -> tuple[NDArray[np.int8], NDArray[np.int8], Index]:
        """Return the lowest and the highest difference of each pair on each of its items, and its number of items."""
        steps = self.stop - self.start
        index = self.start[:, None] + np.arange(int(steps.max(initial=0)))
        index = np.minimum(index, len(self.codes) - 1)
        first, second = (self.codes[index, members[:, None]] for members in self.members)
        right, other_right = first == ONE, second == ONE
        maybe, other_maybe = right | (first == SKIPPED), other_right | (second == SKIPPED)
        return right.astype(np.int8) - other_maybe, maybe.astype(np.int8) - other_right, steps


class Settling:
    """The bets of all pairs, in the order of pair indices."""

    def __init__(self) -> None:
        self._state = settled_start(0)

    def bet(self, items: Stretch, limit: NDArray[np.float64]) -> Iterator[tuple[Index, Halves]]:
        """Bet on the next items of pairs; yield the places of those whose ln e reaches a limit, with its two halves after each item."""
        for slab in items.slabs():
            part = items.rows(slab)
            low, high, steps = part.differences()
            bets = settled_steps(self._of(part.pair), low, high, part.left, steps)
            some = np.flatnonzero(bets.largest >= limit[slab] - SLACK)
            if some.size:
                yield some + slab.start, bets.logs(some)
            self._state.capital[part.pair], self._state.lead[part.pair] = bets.state

    def rebuild(self, items: Stretch, limit: NDArray[np.float64]) -> tuple[Index, NDArray[np.float64]]:
        """Bet on items from the first one on; return the pairs whose ln e reached a limit, and the largest, negative if for the second."""
        pairs, peaks = [np.zeros(0, np.int64)], [np.zeros(0)]
        for some, (for_first, for_second) in self.bet(items, limit):
            evidence = np.logaddexp(for_first, for_second)
            at = np.arange(some.size), evidence.argmax(axis=1)
            pairs.append(items.pair[some])
            peaks.append(np.where(for_first[at] >= for_second[at], 1, -1) * evidence[at])
        return np.concatenate(pairs), np.concatenate(peaks)

    def log_e(self, pair: Index, left: Index) -> NDArray[np.float64]:
        """Return ln e of pairs with some items of the order left."""
        none = np.zeros((pair.size, 0), np.int8)
        return settled_steps(self._of(pair), none, none, left).log_e

    def _of(self, pair: Index) -> SettledState:
        missing = int(pair.max(initial=-1)) + 1 - self._state.lead.shape[0]
        if missing > 0:
            new = settled_start(missing + missing // 16)
            capital, lead = (np.concatenate(x) for x in zip(self._state, new, strict=True))
            self._state = SettledState(capital, lead)
        return SettledState(self._state.capital[pair], self._state.lead[pair])

"""The battles of one benchmark: every vote, and the units that pairs bet on.

A unit is a prompt on which two models were compared. Its D is the mean of its votes, 1 for a win of the first model of the pair and -1 for
a loss; where both orders were shown, it is the mean over the two orders, so that a judge's preference for a position cancels.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import SCORE_UNIT
from monitor.engine.state.delta import Refusal
from monitor.engine.state.pairs import Index, pair_members
from schemas.decode import Fault
from schemas.events import Spec

COLUMNS: Final = 6
"""Columns of a vote: prompt, pair, judge (-1 without one), outcome and order for the first model of the pair (1, 0, -1), repeat."""

PROMPT, PAIR, JUDGE, OUTCOME, ORDER, REPEAT = range(COLUMNS)

Votes = NDArray[np.int32]

_UNIT_BITS: Final = 25
"""There are fewer than 2^24 pairs of the most contestants."""


class Units(NamedTuple):
    """Units, each once, in the order of their prompts; arrays of shape (units,).

    Attributes
    ----------
    prompt, pair : arrays of int64
    votes : array of int64
        How many each has.
    difference : array of int64
        D in units of `SCORE_UNIT`.
    order : array of int64
        1 where every known order shows the first model first, -1 where none does, 0 where both occur or none is known.
    swapped : array of bool
        Whether both orders were shown.
    """

    prompt: Index
    pair: Index
    votes: Index
    difference: Index
    order: Index
    swapped: NDArray[np.bool_]

    def rows(self, some: Any) -> "Units":  # noqa: ANN401 - an index of any kind
        """Return some of the units."""
        return Units(*(column[some] for column in self))


class Battles:
    """The votes of one benchmark, in the order of the log.

    Attributes
    ----------
    judges : list of str
        By number.
    """

    def __init__(self, votes: Votes | None = None, judges: list[str] | None = None) -> None:
        self._votes: Votes = np.zeros((0, COLUMNS), np.int32)
        self._new: list[tuple[int, ...]] = []  # votes that are not in the array yet
        self.size = 0
        self.judges: list[str] = []
        self.judge_of: dict[str | None, int] = {None: -1}
        self._first: dict[int, int] = {}  # the first vote of each unit
        self._more: dict[int, list[int]] = {}  # all votes of units with several
        self._seen: dict[tuple[int, int, int, int], int] = {}  # their votes by key
        for judge in judges or ():
            self.add_judge(judge)
        if votes is not None:
            self._votes, self.size = votes.copy(), len(votes)
            keys = _unit_keys(votes[:, PROMPT], votes[:, PAIR])
            for index, (unit, vote) in enumerate(zip(keys.tolist(), votes.tolist(), strict=True)):
                self._note(unit, index, vote[JUDGE], vote[ORDER], vote[REPEAT])

    def add_judge(self, name: str) -> int:
        """Add a judge and return its number."""
        self.judge_of[name] = number = len(self.judges)
        self.judges.append(name)
        return number

    @property
    def votes(self) -> Votes:
        """Every vote, shape (votes, columns)."""
        if self._new:
            begin = self.size - len(self._new)
            if self.size > len(self._votes):
                room = np.zeros((self.size + self.size // 2, COLUMNS), np.int32)
                room[:begin] = self._votes[:begin]
                self._votes = room
            self._votes[begin : self.size] = self._new
            self._new.clear()
        return self._votes[: self.size]

    def find(self, prompt: int, pair: int, judge: int, order: int, repeat: int) -> int | None:
        """Return the vote with a key, or None."""
        unit = prompt << _UNIT_BITS | pair
        first = self._first.get(unit)
        if first is None:
            return None
        if unit in self._more:
            return self._seen.get((unit, judge, order, repeat))
        vote = self.votes[first]
        return first if (vote[JUDGE], vote[ORDER], vote[REPEAT]) == (judge, order, repeat) else None

    def add(self, prompt: int, pair: int, judge: int, outcome: int, order: int, repeat: int) -> int:
        """Add a vote; return how many its unit has now."""
        unit = prompt << _UNIT_BITS | pair
        self._note(unit, self.size, judge, order, repeat)
        self._new.append((prompt, pair, judge, outcome, order, repeat))
        self.size += 1
        return len(self._more[unit]) if unit in self._more else 1

    def _note(self, unit: int, index: int, judge: int, order: int, repeat: int) -> None:
        first = self._first.setdefault(unit, index)
        if first == index:
            return
        if unit not in self._more:
            vote = self.votes[first]
            self._more[unit] = [first]
            self._seen[unit, int(vote[JUDGE]), int(vote[ORDER]), int(vote[REPEAT])] = first
        self._more[unit].append(index)
        self._seen[unit, judge, order, repeat] = index

    def votes_of(self, prompt: int, pair: int) -> list[int]:
        """Return the votes of a unit."""
        unit = prompt << _UNIT_BITS | pair
        return self._more.get(unit) or [self._first[unit]]

    def betting(self, repeats: int | str, ended: NDArray[np.bool_]) -> Units:
        """Return every unit that has bet: those with all declared votes, and those of ended runs; `ended` is by contestant."""
        units = self.units()
        i, j = pair_members(units.pair)
        bets = ended[i] & ended[j]
        if isinstance(repeats, int):
            bets |= units.votes >= repeats
        return units.rows(np.flatnonzero(bets))

    def waiting(self, repeats: int | str, ended: NDArray[np.bool_], newly: NDArray[np.bool_]) -> Units:
        """Return the units with fewer votes than declared whose runs have both ended, one of them just now."""
        units = self.units()
        i, j = pair_members(units.pair)
        some = ended[i] & ended[j] & (newly[i] | newly[j])
        if isinstance(repeats, int):
            some &= units.votes < repeats
        return units.rows(np.flatnonzero(some))

    def units(self, some: Index | slice = slice(None)) -> Units:
        """Return the units of some votes."""
        return units_of(self.votes[some])


def _unit_keys(prompt: NDArray[Any], pair: NDArray[Any]) -> Index:
    return np.asarray(prompt.astype(np.int64) << _UNIT_BITS | pair.astype(np.int64))


def units_of(votes: Votes) -> Units:
    """Return the units of votes."""
    keys = _unit_keys(votes[:, PROMPT], votes[:, PAIR])
    order = np.argsort(keys, kind="stable")
    keys, votes = keys[order], votes[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if not starts.size:
        none = np.zeros(0, np.int64)
        return Units(none, none, none, none, none, np.zeros(0, bool))

    def total(values: NDArray[Any]) -> NDArray[np.float64]:
        return np.add.reduceat(values.astype(np.float64), starts)

    outcome, shown = votes[:, OUTCOME], votes[:, ORDER]
    count = total(np.ones(len(votes)))
    first, second = total(shown == 1), total(shown == -1)
    both = (first > 0) & (second > 0)
    mean = total(outcome) / count
    with np.errstate(divide="ignore", invalid="ignore"):
        by_order = (total(outcome * (shown == 1)) / first + total(outcome * (shown == -1)) / second) / 2
    # Votes whose order is not known keep their weight.
    known = first + second
    balanced = (np.where(both, by_order, 0) * known + total(outcome * (shown == 0))) / count
    difference = np.rint(np.where(both, balanced, mean) * SCORE_UNIT).astype(np.int64)
    place = votes[starts]
    return Units(
        place[:, PROMPT].astype(np.int64),
        place[:, PAIR].astype(np.int64),
        count.astype(np.int64),
        difference,
        np.where(both, 0, (first > 0).astype(np.int64) - (second > 0)),
        both,
    )


def battle_fault(name: str, spec: Spec) -> Fault | None:
    """Return why a declaration does not fit battles, or None."""
    if spec.items is None and spec.order.policy in {"none", "trusted"}:
        return None
    reason = f"{name!r} declares items or an order of them, and battles have neither; declare order: trusted without items, or send scores"
    return Refusal("order", spec.order.policy, reason, name)

"""The battles of one benchmark: every vote, and the units that pairs bet on.

A unit is a prompt on which two models were compared. Its D is the mean of its votes, 1 for a win of the first model of the pair and -1 for
a loss; where both orders were shown, it is the mean over the two orders, so that a judge's preference for a position cancels.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.state.codes import grown
from monitor.engine.state.key_index import KeyIndex
from schemas.records.declaration import Spec
from schemas.records.events import BattleFields
from schemas.records.scores import SCORE_UNIT
from schemas.records.text import Fault, Refusal, shorten
from stats.numerics.pairs import Index, pair_members

COLUMNS: Final = 6
"""Columns of a vote: prompt, pair, judge (-1 without one), outcome and order for the first model of the pair (1, 0, -1), repeat."""

PROMPT, PAIR, JUDGE, OUTCOME, ORDER, REPEAT = range(COLUMNS)

Votes = NDArray[np.int32]

NO_JUDGE: Final = -1

_PAIR_BITS: Final = 25  # there are fewer than 2^24 pairs of the most contestants

_REPEAT_BITS: Final = 31
_CAST_BITS: Final = 24  # there are fewer than 2^24 votes


class Units(NamedTuple):
    """Units, each once, in the order of their prompts; arrays of shape (units,)."""

    prompt: Index
    pair: Index
    votes: Index
    difference: Index
    order: Index
    swapped: NDArray[np.bool_]

    def rows(self, some: Any) -> "Units":  # noqa: ANN401 - an index of any kind
        """Return some of the units."""
        return Units(*(column[some] for column in self))

    def betting(self, needed: float, ended: NDArray[np.bool_]) -> "Units":
        """Return the units that have bet: those with all declared votes, and those of ended runs; `ended` is by contestant."""
        i, j = pair_members(self.pair)
        return self.rows(np.flatnonzero((ended[i] & ended[j]) | (self.votes >= needed)))


class Battles:
    """The votes of one benchmark, in the order of the log."""

    def __init__(self, votes: Votes | None = None, judges: list[str] | None = None) -> None:
        self._votes: Votes = np.zeros((0, COLUMNS), np.int32)
        self.size = 0
        self.judges: list[str] = []
        self.judge_of: dict[str | None, int] = {None: NO_JUDGE}
        self._unit_of, self._cast_of, self._vote_of = KeyIndex(), KeyIndex(), KeyIndex()
        self._count = np.zeros(0, np.int32)  # votes of each unit
        for judge in judges or ():
            self.add_judge(judge)
        if votes is not None:
            self.add(votes)

    def add_judge(self, name: str) -> None:
        """Add a judge."""
        self.judge_of[name] = len(self.judges)
        self.judges.append(name)

    @property
    def votes(self) -> Votes:
        """Every vote, shape (votes, columns)."""
        return self._votes[: self.size]

    @property
    def counts(self) -> NDArray[np.int32]:
        """How many votes each unit has, in no certain order."""
        return self._count[: self._unit_of.size]

    def find(self, votes: Votes) -> Index:
        """Return the vote that has the key of each of these, -1 without one."""
        unit, cast = self._unit_of.find(unit_keys(votes)), self._cast_of.find(cast_keys(votes))
        places = np.full(len(votes), -1, np.int64)
        known = np.flatnonzero((unit >= 0) & (cast >= 0))
        places[known] = self._vote_of.find(unit[known] << _CAST_BITS | cast[known])
        return places

    def outcomes(self, places: Index, others: NDArray[np.int32]) -> NDArray[Any]:
        """Return the outcomes of stored votes, and other ones where the place is -1."""
        return np.where(places >= 0, self.votes[places, OUTCOME], others) if self.size else others

    def add(self, votes: Votes) -> Index:
        """Add votes, whose keys are distinct and new; return how many its unit has with each, shape (votes,)."""
        unit, cast = self._unit_of.numbers(unit_keys(votes)), self._cast_of.numbers(cast_keys(votes))
        self._vote_of.add(unit << _CAST_BITS | cast)
        size = self.size + len(votes)
        self._votes = grown(self._votes, size, COLUMNS)
        self._votes[self.size : size] = votes
        self.size = size
        self._count = grown(self._count, self._unit_of.size)
        order = np.argsort(unit, kind="stable")
        starts = np.flatnonzero(np.diff(unit[order], prepend=-1))
        counts = np.diff(starts, append=unit.size)
        count = np.empty(unit.size, np.int64)
        count[order] = self._count[unit[order]] + np.arange(1, unit.size + 1) - np.repeat(starts, counts)
        self._count[unit[order][starts]] += counts.astype(np.int32)
        return count

    def units_with(self, last: Index) -> Units:
        """Return the units of some votes, each of another unit, in the order of these votes; of all their votes so far."""
        unit = self._unit_of.find(unit_keys(self.votes[last]))
        votes, which = self._vote_of.between(unit << _CAST_BITS, (unit + 1) << _CAST_BITS)
        units = self.units(votes[np.lexsort((votes, which))])
        # Units come sorted by prompt and pair.
        by_key = np.argsort(unit_keys(self.votes[last]))
        return units.rows(np.argsort(by_key))

    def waiting(self, needed: float, ended: NDArray[np.bool_], newly: NDArray[np.bool_]) -> Units:
        """Return the units with fewer votes than declared whose runs have both ended, one of them just now."""
        units = self.units(slice(None) if (self.counts < needed).any() else slice(0, 0))
        i, j = pair_members(units.pair)
        some = ended[i] & ended[j] & (newly[i] | newly[j]) & (units.votes < needed)
        return units.rows(np.flatnonzero(some))

    def units(self, some: Index | slice = slice(None)) -> Units:
        """Return the units of some votes."""
        return units_of(self.votes[some])


def unit_keys(votes: Votes) -> Index:
    """Return the key of the unit of each vote."""
    return np.asarray(votes[:, PROMPT].astype(np.int64) << _PAIR_BITS | votes[:, PAIR])


def cast_keys(votes: Votes) -> Index:
    """Return a key of the judge, the order and the repeat of each vote."""
    judge, order = votes[:, JUDGE].astype(np.int64) - NO_JUDGE, votes[:, ORDER].astype(np.int64) + 1
    return np.asarray((judge << 2 | order) << _REPEAT_BITS | votes[:, REPEAT])


def single_units(votes: Votes) -> Units:
    """Return the units of votes, each of which is the only one of its unit, in their order."""
    columns = votes.astype(np.int64)
    one, none = np.ones(len(votes), np.int64), np.zeros(len(votes), bool)
    difference = columns[:, OUTCOME] * SCORE_UNIT
    return Units(columns[:, PROMPT], columns[:, PAIR], one, difference, columns[:, ORDER], none)


def units_of(votes: Votes) -> Units:
    """Return the units of votes."""
    keys = unit_keys(votes)
    order = np.argsort(keys, kind="stable")
    keys, votes = keys[order], votes[order]
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if not starts.size:
        none = np.zeros(0, np.int64)
        return Units(none, none, none, none, none, np.zeros(0, bool))
    if starts.size == len(votes):
        return single_units(votes)

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


def first_of_key(votes: Votes) -> Index:
    """Return the first vote that has the key of each."""
    unit, cast = unit_keys(votes), cast_keys(votes)
    order = np.lexsort((cast, unit))
    starts = (np.diff(unit[order], prepend=-1) != 0) | (np.diff(cast[order], prepend=-1) != 0)
    first = np.empty(len(votes), np.int64)
    first[order] = order[np.flatnonzero(starts)][np.cumsum(starts) - 1]
    return first


def battle_fault(name: str, spec: Spec) -> Fault | None:
    """Return why a declaration does not fit battles, or None."""
    if spec.units is not None:
        reason = f"{name!r} declares units of items, and the votes on a prompt are one unit already; omit units"
        return Refusal("units", f"{len(spec.units):,} items", reason, name)
    if spec.items is None and spec.order.policy in {"none", "trusted"}:
        return None
    reason = f"{name!r} declares items or an order of them, and battles have neither; declare order: trusted without items, or send scores"
    return Refusal("order", spec.order.policy, reason, name)


def event_fault(name: str, aliases: Mapping[str, str], event: BattleFields) -> Fault | None:
    """Return what is wrong with a battle in any benchmark, or None."""
    names = [aliases.get(model, model) for model in (event.model_a, event.model_b)]
    if names[0] == names[1]:
        reason = f"{shorten(names[0])} is both models of the battle; name two models"
        return Refusal("model_b", shorten(event.model_b), reason, name)
    if event.epoch:
        reason = f"epoch {event.epoch} is given, and battles have none; omit it, and number further votes as repeats"
        return Refusal("epoch", str(event.epoch), reason, name)
    return None

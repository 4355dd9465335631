"""The fold of battles: votes into units, and units into pair sums, latches and counters."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from monitor.engine.latch.changes import announce_closed, invalidate, loop_of
from monitor.engine.limits import Limits, Usage, bad_name, exceeds, limit_fault, model_fault, usage_fault
from monitor.engine.state.battles import (
    COLUMNS,
    OUTCOME,
    PAIR,
    PROMPT,
    Units,
    Votes,
    battle_fault,
    event_fault,
    first_of_key,
    single_units,
)
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import BenchmarkDelta
from monitor.engine.state.pairs.counts import CHUNK_CELLS
from schemas.records.columns import EventBatch, EventColumns
from schemas.records.events import BattleFields
from schemas.records.names import MAX_NAME_LENGTH
from schemas.records.scores import ONE, SCORE_UNIT, ZERO
from schemas.records.text import Fault, Refusal, shorten
from stats.numerics.pairs import Index, pair_index, pair_members

_HALF: Final = SCORE_UNIT // 2
_POINTS: Final = {"a": 1, "b": -1, "tie": 0, None: 0}
_NEW: Final = -2
"""The place of a name that the benchmark does not have."""


class _Counted(NamedTuple):
    """What the votes of a piece come to."""

    units: Units
    """The units that have all their votes, in the order of the log."""
    when: Index
    """Position of the last vote of each."""
    beyond: tuple[int, str] | None
    """Position of the first vote that no declaration covers, and why it holds the benchmark."""


def fold_battles(
    benchmark: Benchmark, batch: EventBatch, delta: BenchmarkDelta, limits: Limits
) -> list[tuple[int, Fault]]:
    """Fold battles into a benchmark; return the position and fault of each refused one."""
    refused: list[tuple[int, Fault]] = []
    start, size = 0, CHUNK_CELLS
    while start < len(batch.events):
        places = look_up(benchmark, batch.events[start : start + size])
        # Towards a limit pieces get smaller, down to one battle, which meets it or not.
        while len(places.events) > 1 and not places.have_room(benchmark, limits):
            places = places.part(len(places.events) // 2)
        size = len(places.events)
        piece, holds = batch.part(start, start + size), benchmark.assumption_holds
        faults = places.faults(benchmark, limits)
        refused += [(start + position, fault) for position, fault in faults]
        if len(faults) < size:
            counted = _count(benchmark, piece, *places.enter(benchmark, delta, faults), delta)
            benchmark.grow()
            if counted.when.size:
                _enter(benchmark, piece, counted.units, counted.when, delta)
            if counted.beyond is not None:
                position, reason = counted.beyond
                delta.undeclared = reason, False
                if holds:
                    invalidate(benchmark, piece, position, reason, delta)
                benchmark.hold_repeats(reason)
            benchmark.revision += 1
        start, size = start + size, min(2 * size, CHUNK_CELLS)
    benchmark.counters["events"] += len(batch.events) - len(refused)
    return refused


def _count(benchmark: Benchmark, piece: EventBatch, votes: Votes, at: Index, delta: BenchmarkDelta) -> _Counted:
    """Add the votes of a piece, the first of each key; `at` is the position of each."""
    battles = benchmark.battles
    stored, first = battles.find(votes), first_of_key(votes)
    new = np.flatnonzero((stored < 0) & (first == np.arange(len(votes))))
    again = np.flatnonzero((stored >= 0) | (first != np.arange(len(votes))))
    if again.size:
        kept = battles.outcomes(stored, votes[first, OUTCOME])
        if not benchmark.has_choice and (differs := at[again[votes[again, OUTCOME] != kept[again]]]).size:
            piece.note_choice(int(differs.min()))
        _count_again(benchmark, votes[again], kept[again], [piece.offsets[k] for k in at[again].tolist()], delta)
    begin = battles.size
    count = battles.add(votes[new])
    delta.votes.append(battles.votes[begin:].copy())
    needed = benchmark.spec.repeats
    if not isinstance(needed, int) or benchmark.undeclared:
        return _Counted(battles.units(slice(0, 0)), np.zeros(0, np.int64), None)
    completed, too_many = np.flatnonzero(count == needed), np.flatnonzero(count > needed)
    beyond = None
    if too_many.size:
        completed = completed[completed < too_many[0]]
        vote = votes[new[too_many[0]]]
        beyond = int(at[new[too_many[0]]]), benchmark.votes_reason(int(vote[PROMPT]), int(vote[PAIR]))
    last = begin + completed
    units = single_units(battles.votes[last]) if needed == 1 else battles.units_with(last)
    return _Counted(units, at[new[completed]], beyond)


def _count_again(benchmark: Benchmark, votes: Votes, kept: Index, offsets: list[int], delta: BenchmarkDelta) -> None:
    """Count votes whose key has a vote already, with the outcome `kept`: the same outcome is a duplicate, another one a conflict."""
    contestant = pair_members(votes[:, PAIR].astype(np.int64))[0]
    differs = votes[:, OUTCOME] != kept
    pairs = zip(kept[differs].tolist(), votes[differs, OUTCOME].tolist(), strict=True)
    codes = np.array([[_code(benchmark, outcome, delta) for outcome in pair] for pair in pairs], np.uint32)
    columns = votes[differs, PROMPT], contestant[differs], *codes.reshape(-1, 2).T
    benchmark.counters["conflicts"] += int(np.count_nonzero(differs))
    benchmark.counters["duplicates"] += int(np.count_nonzero(~differs))
    entries = np.column_stack([column.astype(np.uint32) for column in columns])
    benchmark.conflicts.add(entries, contestant[~differs], len(benchmark.contestants))
    delta.conflict_offsets += [offsets[k] for k in np.flatnonzero(differs).tolist()]


def _code(benchmark: Benchmark, outcome: int, delta: BenchmarkDelta) -> int:
    """Return the code of the score that an outcome gives the first model of a pair."""
    if outcome:
        return ONE if outcome > 0 else ZERO
    code = benchmark.table.code_of.get(_HALF)
    if code is None:
        code = benchmark.add_value(_HALF)
        delta.values.append(_HALF)
    return code


# --- places ---


class Places(NamedTuple):
    """Battles, and the place of each name; `_NEW` for one that the benchmark does not have. Arrays of shape (battles,)."""

    events: Sequence[Any]
    prompt: Index
    one: Index
    other: Index
    judge: Index

    def part(self, size: int) -> "Places":
        """Return the first battles."""
        return self.rows(slice(size))

    def rows(self, some: slice) -> "Places":
        """Return some of the battles."""
        names = (column[some] for column in (self.prompt, self.one, self.other, self.judge))
        return Places(self.events[some], *names)

    def have_room(self, benchmark: Benchmark, limits: Limits) -> bool:
        """Return whether these battles meet no limit, if each new name in them is another one."""
        new = [int(np.count_nonzero(column == _NEW)) for column in self[1:]]
        prompts, votes = len(benchmark.rows) + new[0], benchmark.battles.size + len(self.events)
        models, judges = len(benchmark.contestants) + new[1] + new[2], len(benchmark.battles.judges) + new[3]
        return (
            prompts <= min(limits.rows, benchmark.bets.most_items)
            and models <= limits.contestants
            and max(votes, judges) <= limits.rows
            and not exceeds(limits.others.plus(Usage.of_battles(prompts, votes, models)), limits.budget)
        )

    def faults(self, benchmark: Benchmark, limits: Limits) -> list[tuple[int, Fault]]:
        """Return the position of each battle that is refused, and why. They have room, or are a single one."""
        events = self.events
        if not benchmark.holds_battles:
            reasons = ((k, board_fault(benchmark, event)) for k, event in enumerate(events))
            refused = [(k, reason) for k, reason in reasons if reason is not None]
            if refused:
                return refused
        doubtful = (self.one == self.other) | (self.one == _NEW) | (self.other == _NEW) | (self.judge == _NEW)
        doubtful |= np.array([event.epoch for event in events]) > 0
        # In most files each battle has a prompt of its own.
        for k in np.flatnonzero((self.prompt == _NEW) & ~doubtful).tolist():
            name = events[k].item_id
            doubtful[k] = len(name) > MAX_NAME_LENGTH or not name.isprintable()
        if len(events) == 1 and not self.have_room(benchmark, limits):
            doubtful[0] = True
        ended = self._ended(benchmark)
        doubtful |= ended
        reasons = (
            (k, self._fault(k, benchmark, limits, ended=bool(ended[k]))) for k in np.flatnonzero(doubtful).tolist()
        )
        return [(k, reason) for k, reason in reasons if reason is not None]

    def _ended(self, benchmark: Benchmark) -> NDArray[np.bool_]:
        """Return which of the battles are of a run that has ended."""
        flags = np.append(benchmark.ended_flags(), [False, False])  # of new models
        return np.asarray(flags[self.one] | flags[self.other])

    def _fault(self, k: int, benchmark: Benchmark, limits: Limits, *, ended: bool) -> Fault | None:
        """Return why a battle is refused that has a new name, something wrong, or no room."""
        event, name = self.events[k], benchmark.name
        fault = event_fault(name, benchmark.spec.aliases, event) or _name_fault(name, event)
        if fault is not None or self._known(k, benchmark):
            return fault
        if ended:
            return _ended_fault(benchmark, (int(self.one[k]), int(self.other[k])))
        new = [
            model for model, place in ((event.model_a, self.one[k]), (event.model_b, self.other[k])) if place == _NEW
        ]
        new_prompt, models = self.prompt[k] == _NEW, len(benchmark.contestants)
        taken = Usage.of_battles(len(benchmark.rows) + int(new_prompt), benchmark.battles.size + 1, models + len(new))
        model_faults = (model_fault(name, model, limits, models + i) for i, model in enumerate(new))
        return (
            (
                limit_fault(
                    name, "item_id", event.item_id, len(benchmark.rows), min(limits.rows, benchmark.bets.most_items)
                )
                if new_prompt
                else None
            )
            or next(filter(None, model_faults), None)
            or (
                limit_fault(name, "cluster", event.cluster, len(benchmark.battles.judges), limits.rows)
                if self.judge[k] == _NEW
                else None
            )
            or limit_fault(name, "winner", event.winner, benchmark.battles.size, limits.rows)
            or usage_fault(name, "item_id", event.item_id, limits, taken)
        )

    def _known(self, k: int, benchmark: Benchmark) -> bool:
        """Return whether there is a vote with the key of a battle: it is a duplicate, or a conflict."""
        battle = self.rows(slice(k, k + 1))
        new = any(place == _NEW for (place,) in battle[1:])
        return not new and bool(benchmark.battles.find(battle.votes())[0] >= 0)

    def enter(
        self, benchmark: Benchmark, delta: BenchmarkDelta, faults: Sequence[tuple[int, Fault]]
    ) -> tuple[Votes, Index]:
        """Add the new names of the battles that are not refused; return their votes, and the position of each."""
        at = np.arange(len(self.events))
        if not faults:
            return _with_names(self, benchmark, delta).votes(), at
        at = np.delete(at, [k for k, _ in faults])
        taken = Places([self.events[k] for k in at.tolist()], *(column[at] for column in self[1:]))
        return _with_names(taken, benchmark, delta).votes(), at

    def votes(self) -> Votes:
        """Return the votes; every name has a place."""
        events, sign = self.events, np.where(self.one < self.other, 1, -1)
        votes = np.empty((len(events), COLUMNS), np.int32)
        votes[:, 0] = self.prompt
        votes[:, 1] = pair_index(np.minimum(self.one, self.other), np.maximum(self.one, self.other))
        votes[:, 2] = self.judge
        votes[:, 3] = sign * np.array([_POINTS[event.winner] for event in events])
        votes[:, 4] = sign * np.array([_POINTS[event.position] for event in events])
        votes[:, 5] = [event.repeat for event in events]
        return votes


def look_up(benchmark: Benchmark, columns: EventColumns) -> Places:
    """Return the places of battles."""
    events: Sequence[Any] = list(columns)
    row_of, contestant_of = benchmark.row_of.get, benchmark.contestant_of.get
    judge_of = benchmark.battles.judge_of.get
    # Comprehensions are faster here than `map` with `attrgetter`.
    return Places(
        events,
        np.array([row_of(event.item_id, _NEW) for event in events], np.int64),
        np.array([contestant_of(event.model_a, _NEW) for event in events], np.int64),
        np.array([contestant_of(event.model_b, _NEW) for event in events], np.int64),
        np.array([judge_of(event.cluster, _NEW) for event in events], np.int64),
    )


def _with_names(places: Places, benchmark: Benchmark, delta: BenchmarkDelta) -> Places:
    """Add the new names of battles in their order; return the battles with every place."""
    if not benchmark.holds_battles:
        benchmark.begin_battles()
    battles, events = benchmark.battles, places.events
    new = np.flatnonzero(places.prompt == _NEW)
    named = [events[k].item_id for k in new.tolist()]
    begin, prompts = len(benchmark.rows), list(dict.fromkeys(named))
    delta.rows += benchmark.add_items(dict.fromkeys(prompts))
    one_each = len(prompts) == len(named)
    places.prompt[new] = range(begin, len(benchmark.rows)) if one_each else [benchmark.row_of[name] for name in named]
    for k in np.flatnonzero((places.one == _NEW) | (places.other == _NEW)).tolist():
        for model in (events[k].model_a, events[k].model_b):
            if model not in benchmark.contestant_of:
                contestant = benchmark.add_contestant(benchmark.spec.aliases.get(model, model), 0)
                delta.contestants.append(benchmark.contestants[contestant])
        places.one[k], places.other[k] = (benchmark.contestant_of[x] for x in (events[k].model_a, events[k].model_b))
    unknown = np.flatnonzero(places.judge == _NEW)
    judges = [events[k].cluster for k in unknown.tolist()]
    for judge in dict.fromkeys(judges):
        battles.add_judge(judge)
        delta.judges.append(judge)
    places.judge[unknown] = [battles.judge_of[judge] for judge in judges]
    return places


def board_fault(benchmark: Benchmark, event: BattleFields) -> Fault | None:
    """Return why the benchmark takes no battles, or None."""
    if benchmark.holds_battles or not benchmark.counters["events"]:
        return battle_fault(benchmark.name, benchmark.spec)
    reason = f"{benchmark.name!r} holds scores of items, so it takes no battles; give these a benchmark of their own"
    return Refusal("winner", event.winner, reason, benchmark.name)


def _name_fault(name: str, event: BattleFields) -> Fault | None:
    """Return what is wrong with a name of a battle, or None."""
    fields = {"item_id": event.item_id, "model_a": event.model_a, "model_b": event.model_b, "cluster": event.cluster}
    return next(filter(None, (bad_name(name, field, value) for field, value in fields.items())), None)


def _ended_fault(benchmark: Benchmark, members: tuple[int, int]) -> Fault:
    """Return why a battle is refused of which the run of a model has ended."""
    member = next(member for member in members if member in benchmark.ended)
    model = shorten(benchmark.contestants[member].model)
    reason = (
        f"the run of {model} has ended, which is permanent; omit its further battles, and end a run after its last one"
    )
    return Refusal("model_a", model, reason, benchmark.name)


# --- units --------------------------------------------------------------------------------------------------------------------------------


def _enter(benchmark: Benchmark, piece: EventBatch, units: Units, when: Index, delta: BenchmarkDelta) -> None:
    """Add units to the sums of their pairs, and close latches."""
    if benchmark.can_decide:
        benchmark.add_points(units)
        found = loop_of(benchmark).fold_units(units.pair, units.difference, when)
        announce_closed(benchmark, piece, found, delta)
        return
    touched = np.unique(units.pair)
    fresh = touched[benchmark.n[touched] == 0]
    benchmark.add_units(units)
    if fresh.size:
        eligible = benchmark.eligible(fresh)
        first = when[np.unique(units.pair, return_index=True)[1]]
        eligible = eligible[np.argsort(first[np.searchsorted(touched, eligible)], kind="stable")]
        benchmark.register(eligible)
        delta.registered.append(np.asarray(eligible, np.uint32))


def end_battles(benchmark: Benchmark, fresh: set[int], place: tuple[int, int], delta: BenchmarkDelta) -> None:
    """Let the units bet that wait for more votes, since a run of each of their pairs has just ended and so has the other."""
    newly = np.zeros(len(benchmark.contestants), bool)
    newly[sorted(fresh)] = True
    units = benchmark.battles.waiting(benchmark.spec.needed_repeats, benchmark.ended_flags(), newly)
    for start in range(0, units.pair.size, CHUNK_CELLS):
        part = units.rows(slice(start, start + CHUNK_CELLS))
        size = part.pair.size
        piece = EventBatch.at(benchmark.name, *place, size)
        _enter(benchmark, piece, part, np.arange(size), delta)

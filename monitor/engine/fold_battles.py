"""The fold of battles: votes into units, and units into pair sums, latches and counters."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from monitor.engine.chunk import EventBatch
from monitor.engine.latch.battles import BattleWalk
from monitor.engine.latch.changes import announce, invalidate
from monitor.engine.latch.close import close_latches
from monitor.engine.limits import LARGE_PAIRS, Limits, Usage, bad_name, exceeds, limit_fault, model_fault, usage_fault
from monitor.engine.slices import Slices
from monitor.engine.state.battles import COLUMNS, ORDER, OUTCOME, PAIR, PROMPT, Units, battle_fault
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.codes import ONE, SCORE_UNIT, ZERO
from monitor.engine.state.counts import CHUNK_CELLS
from monitor.engine.state.delta import BenchmarkDelta, Refusal
from monitor.engine.state.pairs import Index, pair_members
from schemas.battles import BattleFields
from schemas.decode import Fault
from schemas.names import MAX_NAME_LENGTH
from schemas.text import shorten
from stats.graded import MAX_ITEMS

_HALF = SCORE_UNIT // 2
_POINTS = {"a": 1, "b": -1, "tie": 0, None: 0}


class _Votes(NamedTuple):
    """What the votes of a piece come to."""

    units: Units
    """The units that have all their votes, in the order of the log."""
    when: Index
    """Position of the last vote of each."""
    beyond: tuple[int, str] | None
    """Position of the first vote that no declaration covers, and why it holds the benchmark."""


def fold_battles(
    benchmark: Benchmark, batch: EventBatch, delta: BenchmarkDelta, limits: Limits
) -> Slices[list[tuple[int, Fault]]]:
    """Fold battles into a benchmark, in slices; return the position and fault of each refused one."""
    refused: list[tuple[int, Fault]] = []
    for start in range(0, len(batch.events), CHUNK_CELLS):
        piece = batch.part(start, start + CHUNK_CELLS)
        holds = benchmark.assumption_holds
        votes, faults = _count(benchmark, piece.events, delta, limits, piece.offsets)
        refused += [(start + position, fault) for position, fault in faults]
        for _ in benchmark.grow_in_slices():
            if benchmark.pairs > LARGE_PAIRS:
                yield False
        if votes.when.size:
            _enter(benchmark, piece, votes.units, votes.when, delta)
        if votes.beyond is not None:
            position, reason = votes.beyond
            delta.undeclared = reason, False
            if holds:
                invalidate(benchmark, piece, position, reason, delta)
            benchmark.hold_repeats(reason)
        benchmark.revision += 1
        yield True
    benchmark.counters["events"] += len(batch.events) - len(refused)
    return refused


def _count(
    benchmark: Benchmark, events: Sequence[Any], delta: BenchmarkDelta, limits: Limits, offsets: Sequence[int]
) -> tuple[_Votes, list[tuple[int, Fault]]]:
    """Add the votes of a piece, the first of each key; return what they come to, and the refused ones."""
    faults: list[tuple[int, Fault]] = []
    conflicts: list[tuple[int, int, int, int]] = []
    duplicates: list[int] = []
    completed: list[tuple[int, int, int]] = []
    beyond: tuple[int, str] | None = None
    needed = benchmark.spec.repeats if isinstance(benchmark.spec.repeats, int) and not benchmark.undeclared else None
    begin = 0 if benchmark.battles is None else benchmark.battles.size
    roomy = _has_room(benchmark, len(events), limits)
    for position, event in enumerate(events):
        place = _place(benchmark, event, delta, limits, roomy=roomy)
        if isinstance(place, Fault):
            faults.append((position, place))
            continue
        battles = benchmark.battles
        assert battles is not None
        prompt, pair, judge, outcome, order = place
        known = battles.find(prompt, pair, judge, order, event.repeat)
        if known is not None:
            first = int(pair_members(np.array([pair]))[0][0])
            kept = int(battles.votes[known][OUTCOME])
            if kept == outcome:
                duplicates.append(first)
            else:
                conflicts.append((prompt, first, _code(benchmark, kept, delta), _code(benchmark, outcome, delta)))
                delta.conflict_offsets.append(offsets[position])
            continue
        count = battles.add(prompt, pair, judge, outcome, order, event.repeat)
        if needed is None or beyond is not None:
            continue
        if count == needed:
            completed.append((battles.size - 1, position, prompt))
        elif count > needed:
            beyond = position, benchmark.votes_reason(prompt, pair)
    if benchmark.battles is not None:
        delta.votes.append(benchmark.battles.votes[begin:].copy())
    if conflicts or duplicates:
        benchmark.counters["conflicts"] += len(conflicts)
        benchmark.counters["duplicates"] += len(duplicates)
        entries = np.array(conflicts, np.uint32).reshape(-1, 4)
        benchmark.conflicts.add(entries, np.array(duplicates, np.int64), len(benchmark.contestants))
    last, when = np.array(completed, np.int64).reshape(-1, 3)[:, :2].T
    return _Votes(_completed(benchmark, last), when, beyond), faults


def _completed(benchmark: Benchmark, last: Index) -> Units:
    """Return the units whose last votes these are, in their order."""
    battles = benchmark.battles
    if battles is None or benchmark.spec.repeats == 1:
        votes = np.zeros((0, COLUMNS), np.int64) if battles is None else battles.votes[last].astype(np.int64)
        one, none = np.ones(last.size, np.int64), np.zeros(last.size, bool)
        return Units(votes[:, PROMPT], votes[:, PAIR], one, votes[:, OUTCOME] * SCORE_UNIT, votes[:, ORDER], none)
    places = [battles.votes_of(*vote) for vote in battles.votes[last][:, [PROMPT, PAIR]].tolist()]
    units = battles.units(np.array([vote for place in places for vote in place], np.int64))
    # Units come sorted by prompt and pair.
    by_key = np.lexsort((battles.votes[last, PAIR], battles.votes[last, PROMPT]))
    return units.rows(np.argsort(by_key))


def _has_room(benchmark: Benchmark, votes: int, limits: Limits) -> bool:
    """Return whether no limit on prompts and votes can be met in so many further votes."""
    size = 0 if benchmark.battles is None else benchmark.battles.size
    prompts = len(benchmark.rows) + votes
    usage = limits.others.plus(Usage.of_battles(prompts, size + votes, len(benchmark.contestants)))
    return (
        prompts <= _most_prompts(benchmark, limits) and size + votes < limits.rows and not exceeds(usage, limits.budget)
    )


def _most_prompts(benchmark: Benchmark, limits: Limits) -> int:
    return min(limits.rows, MAX_ITEMS) if benchmark.graded else limits.rows


def _code(benchmark: Benchmark, outcome: int, delta: BenchmarkDelta) -> int:
    """Return the code of the score that an outcome gives the first model of a pair."""
    if outcome:
        return ONE if outcome > 0 else ZERO
    code = benchmark.table.code_of.get(_HALF)
    if code is None:
        code = benchmark.add_value(_HALF)
        delta.values.append(_HALF)
    return code


def _place(
    benchmark: Benchmark, event: BattleFields, delta: BenchmarkDelta, limits: Limits, *, roomy: bool
) -> tuple[int, int, int, int, int] | Fault:
    """Return (prompt, pair, judge, outcome, order) of a battle and add its new names; or refuse it and add nothing.

    `roomy`: no limit can be met.
    """
    prompt, contestant_of = benchmark.row_of.get(event.item_id), benchmark.contestant_of.get
    one, other = contestant_of(event.model_a), contestant_of(event.model_b)
    battles = benchmark.battles
    judge = None if battles is None else battles.judge_of.get(event.cluster)
    if one is None or other is None or judge is None or event.epoch or one == other or prompt is None:
        usual = not (one is None or other is None or judge is None or event.epoch or one == other)
        # In most files each battle has a prompt of its own.
        if not (usual and roomy and len(event.item_id) <= MAX_NAME_LENGTH and event.item_id.isprintable()):
            fault = _fault(benchmark, event, (prompt, one, other, judge), limits)
            if fault is not None:
                return fault
        prompt, one, other, judge = _add_names(benchmark, event, delta)
        battles = benchmark.battles
    assert battles is not None
    sign = 1 if one < other else -1
    low, high = (one, other) if one < other else (other, one)
    pair = high * (high - 1) // 2 + low
    outcome, order = sign * _POINTS[event.winner], sign * _POINTS[event.position]
    closed = (benchmark.ended and benchmark.ended & {one, other}) or battles.size >= limits.rows
    if closed and battles.find(prompt, pair, judge, order, event.repeat) is None:
        return _ended_fault(benchmark, (one, other)) or _votes_fault(benchmark, event, limits)
    return prompt, pair, judge, outcome, order


def _add_names(benchmark: Benchmark, event: BattleFields, delta: BenchmarkDelta) -> tuple[int, int, int, int]:
    """Return the prompt, the models and the judge of a battle; add those that are new."""
    if benchmark.battles is None:
        benchmark.begin_battles()
    battles, members = benchmark.battles, []
    assert battles is not None
    prompt = benchmark.row_of.get(event.item_id)
    if prompt is None:
        prompt = benchmark.add_row(event.item_id, 0, None)
        delta.rows.append(benchmark.rows[prompt])
    for model in (event.model_a, event.model_b):
        contestant = benchmark.contestant_of.get(model)
        if contestant is None:
            contestant = benchmark.add_contestant(benchmark.spec.aliases.get(model, model), 0)
            delta.contestants.append(benchmark.contestants[contestant])
        members.append(contestant)
    judge = battles.judge_of.get(event.cluster)
    if judge is None:
        assert event.cluster is not None
        judge = battles.add_judge(event.cluster)
        delta.judges.append(event.cluster)
    return prompt, members[0], members[1], judge


def _fault(
    benchmark: Benchmark,
    event: BattleFields,
    places: tuple[int | None, int | None, int | None, int | None],
    limits: Limits,
) -> Fault | None:
    """Return why a battle is refused that has a new name or something wrong, or None."""
    prompt, one, other, judge = places
    alias = benchmark.spec.aliases
    names = [alias.get(model, model) for model in (event.model_a, event.model_b)]
    if names[0] == names[1]:
        reason = f"{shorten(names[0])} is both models of the battle; name two models"
        return Refusal("model_b", shorten(event.model_b), reason, benchmark.name)
    if event.epoch:
        reason = f"epoch {event.epoch} is given, and battles have none; send them under another benchmark name"
        return Refusal("epoch", str(event.epoch), reason, benchmark.name)
    if benchmark.battles is None and benchmark.counters["events"]:
        reason = (
            f"{benchmark.name!r} holds scores of items, so it takes no battles; send them under another benchmark name"
        )
        return Refusal("winner", event.winner, reason, benchmark.name)
    fault = battle_fault(benchmark.name, benchmark.spec)
    if fault is not None:
        return fault
    new = [model for model, place in ((event.model_a, one), (event.model_b, other)) if place is None]
    size = 0 if benchmark.battles is None else benchmark.battles.size
    taken = Usage.of_battles(len(benchmark.rows) + (prompt is None), size + 1, len(benchmark.contestants) + len(new))
    most = _most_prompts(benchmark, limits)
    judges, known = 0 if benchmark.battles is None else len(benchmark.battles.judges), len(benchmark.contestants)
    return (
        (prompt is None and _new_fault(benchmark, "item_id", event.item_id, len(benchmark.rows), most))
        or next(
            filter(None, (model_fault(benchmark.name, name, limits, known + k) for k, name in enumerate(new))), None
        )
        or (judge is None and _new_fault(benchmark, "cluster", event.cluster, judges, limits.rows))
        or usage_fault(benchmark.name, "item_id", event.item_id, limits, taken)
        or None
    )


def _new_fault(benchmark: Benchmark, field: str, name: str | None, count: int, most: int) -> Fault | None:
    """Return why a prompt or a judge is refused that is new, or None."""
    if name is None:
        return None
    return bad_name(benchmark.name, field, name) or limit_fault(benchmark.name, field, name, count, most)


def _ended_fault(benchmark: Benchmark, members: tuple[int, int]) -> Fault | None:
    for member in members:
        if member in benchmark.ended:
            model = shorten(benchmark.contestants[member].model)
            reason = f"the run of {model} has ended; send further battles under another benchmark name"
            return Refusal("model_a", model, reason, benchmark.name)
    return None


def _votes_fault(benchmark: Benchmark, event: BattleFields, limits: Limits) -> Fault:
    fault = limit_fault(benchmark.name, "winner", event.winner, limits.rows, limits.rows)
    assert fault is not None
    return fault


# --- units --------------------------------------------------------------------------------------------------------------------------------


def _enter(benchmark: Benchmark, piece: EventBatch, units: Units, when: Index, delta: BenchmarkDelta) -> None:
    """Add units to the sums of their pairs, and close latches."""
    touched = np.unique(units.pair)
    fresh = touched[benchmark.n[touched] == 0]
    benchmark.add_units(units)
    if fresh.size:
        eligible = benchmark.eligible(fresh)
        first = when[np.unique(units.pair, return_index=True)[1]]
        eligible = eligible[np.argsort(first[np.searchsorted(touched, eligible)], kind="stable")]
        benchmark.register(eligible)
        delta.registering.append(np.asarray(eligible, np.uint32))
    if benchmark.can_decide:
        walk = BattleWalk(benchmark, benchmark.graded_pairs, units.pair, when, units.difference)
        announce(benchmark, piece, close_latches(benchmark, walk), delta)


def end_battles(benchmark: Benchmark, fresh: set[int], place: tuple[int, int], delta: BenchmarkDelta) -> None:
    """Let the units bet that wait for more votes, since a run of each of their pairs has just ended and so has the other."""
    assert benchmark.battles is not None
    newly = np.zeros(len(benchmark.contestants), bool)
    newly[sorted(fresh)] = True
    units = benchmark.battles.waiting(benchmark.spec.repeats, benchmark.ended_flags(), newly)
    for start in range(0, units.pair.size, CHUNK_CELLS):
        part = units.rows(slice(start, start + CHUNK_CELLS))
        size = part.pair.size
        piece = EventBatch.at(benchmark.name, *place, size)
        _enter(benchmark, piece, part, np.arange(size), delta)

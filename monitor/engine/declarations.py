"""Declarations of a benchmark that has scores: nothing that a verdict rests on may change, except by a new version.

A new version keeps the scores. Decisions under the last one end as superseded, pairs join the family again in their order, and the evidence
is judged at the event of the declaration.
"""

from typing import Final

import numpy as np
from pydantic import ValidationError

from monitor.engine.latch.changes import announce_closed, loop_of, replace
from monitor.engine.state.battles import battle_fault
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import BenchmarkDelta
from monitor.engine.state.graded import unweighted_reason
from monitor.engine.state.stored import StoredBenchmark
from monitor.words import assumptions as words
from monitor.words.order import UNDECLARED_UNITS
from schemas.records.columns import EventBatch
from schemas.records.declaration import MAX_GRADED_ITEMS, Spec, alias_problem, unit_name_problem
from schemas.records.decode import describe_error
from schemas.records.redeclared import KEEP, admitted, changed_fields, parts_chosen, version_fault
from schemas.records.scores import SCORE_UNIT
from schemas.records.text import Fault, Refusal, shorten
from schemas.results.assumptions import PARTS
from schemas.results.verdict_changes import VerdictChanges

_COMMITTED: Final = ("order", "item_ids", "items")  # what a committed order is made of


def with_late_parts(benchmark: Benchmark, spec: Spec) -> Spec:
    """Return a declaration with the parts that were declared late, what is known of the scores, and the newcomers, now or before."""
    late: set[str] = (
        {*benchmark.spec.declared_late, *spec.declared_late} if benchmark.declared else {*spec.declared_late}
    )
    if benchmark.board is not None:
        late |= set(benchmark.board.late)
    if benchmark.knows_scores:
        late |= set(parts_chosen(benchmark.name, benchmark.spec, spec))
    provenance = benchmark.spec.provenance | spec.provenance
    return spec.model_copy(
        update={
            "declared_late": tuple(name for name in PARTS if name in late),
            "provenance": provenance,
            "admissions": admitted(benchmark.spec, spec),
        }
    )


def refusal(benchmark: Benchmark, spec: Spec) -> Fault | None:
    """Return why a declaration is refused, or None."""
    old = benchmark.spec
    if old.order.policy == "committed":
        differing = next((name for name in _COMMITTED if getattr(old, name) != getattr(spec, name)), None)
        if differing is not None:
            return _seed_fault(benchmark, differing)
    if (fault := _admission_fault(benchmark, spec)) is not None:
        return fault
    begun = benchmark.sentinel is not None and benchmark.sentinel.has_begun
    if not benchmark.counters["events"] and not begun:
        return None
    if benchmark.sentinel is not None and spec.version > old.version:
        return version_fault(benchmark.name, old, spec) or sentinel_fault(benchmark.name, "version", "version")
    if spec.version == old.version + 1:
        fault = version_fault(benchmark.name, old, spec) or _scores_fault(benchmark, spec)
    elif (fault := _clash(benchmark.name, old, spec)) is not None and benchmark.sentinel is not None:
        return sentinel_fault(benchmark.name, fault.field, fault.found)
    if benchmark.holds_battles:
        fault = fault or battle_fault(benchmark.name, spec)
    return fault or _alias_fault(benchmark, spec)


def sentinel_fault(name: str, field: str, found: str) -> Fault:
    """Return why a sentinel gets no other declaration."""
    reason = f"{name!r} is a sentinel, and its runs are ranked under one declaration"
    return Refusal(field, found, f"{reason}; repeat the stored one, or begin a sentinel of another name", name)


def _seed_fault(benchmark: Benchmark, differing: str) -> Fault:
    """Return why a declaration is refused that replaces a committed seed or its items."""
    seed = benchmark.seed
    where = "" if seed is None else f" at {words.place(seed)}"
    reason = (
        f"{benchmark.name!r} has committed to a seed and its items{where}, and the first ones count: {words.PARTS[differing]} can no "
        "longer change; omit this declaration (`rankwatch board delete` begins again, and verdicts then name it)"
    )
    return Refusal(differing, differing, reason, benchmark.name)


def _clash(name: str, old: Spec, new: Spec) -> Fault | None:
    """Return why a declaration that is not the next version is refused; None if it repeats the one in force."""
    after = old.version + 1
    if new.version > after:
        reason = f"{name!r} has version {old.version} of its declaration, so the next one is version {after}, not {new.version}"
        return Refusal("version", str(new.version), f"{reason}; declare it as version {after}", name)
    changed = changed_fields(old, new)
    if not changed:
        return None
    declared = shorten(new.model_dump_json(include=set(changed), exclude_none=True))
    reason = f"{name!r} already has scores, so {declared} can no longer be declared"
    why = "verdicts would depend on a choice made after seeing data"
    advice = (
        f"send the whole declaration as version {after}: decisions start again under it, and assume that it was not chosen because of "
        "the scores"
    )
    if "items" in changed:
        advice += "; for runs of different sizes, declare the items of the whole benchmark before the first one"
    return Refusal(changed[0], declared, f"{reason}: {why}; {KEEP if version_fault(name, old, new) else advice}", name)


def _scores_fault(benchmark: Benchmark, spec: Spec) -> Fault | None:
    """Return why the scores of a benchmark do not fit a new declaration."""
    listed = None if spec.item_ids is None else set(spec.item_ids)
    unlisted = None if listed is None else next((key.item for key in benchmark.rows if key.item not in listed), None)
    if unlisted is not None:
        reason = f"{benchmark.name!r} has scores of item {shorten(unlisted)}, which is not in the list; add it"
        return Refusal("item_ids", shorten(unlisted), reason, benchmark.name)
    if spec.weights is not None:
        for key in benchmark.item_keys:
            if (why := unweighted_reason(spec, key.cluster)) is not None:
                shown = shorten(key.item)
                return Refusal(
                    "weights", shown, f"{benchmark.name!r} has scores of item {shown}: {why}", benchmark.name
                )
    names = spec.unit_sizes.keys() - (spec.units or {}).keys()
    if (clash := next((key.item for key in benchmark.rows if key.item in names), None)) is not None:
        return Refusal("units", shorten(clash), unit_name_problem(clash), benchmark.name)
    items = benchmark.items
    if spec.units != benchmark.spec.units:
        items = len({spec.unit_of(key.item) for key in benchmark.rows})
    if spec.items is not None and spec.items < items:
        had = f"{items:,}"
        reason = (
            f"{benchmark.name!r} has scores of {had} items, so it cannot have {spec.items:,}; declare at least {had}"
        )
        return Refusal("items", str(spec.items), reason, benchmark.name)
    if spec.bets_are_graded and items > MAX_GRADED_ITEMS:
        reason = f"{items:,} items are too many for graded scores, repeats, units or weights; use at most {MAX_GRADED_ITEMS:,}"
        return Refusal("scores", spec.scores, reason, benchmark.name)
    return None


def _admission_fault(benchmark: Benchmark, spec: Spec) -> Fault | None:
    """Return why a newcomer is not admitted: its seed may have been chosen after a look."""
    known, board, generation = benchmark.spec.admissions or {}, benchmark.board, benchmark.generation
    for model, new in (spec.admissions or {}).items():
        old, name = known.get(model), shorten(model)
        if new == old or new.generation < generation:  # copies of an undo repeat what was declared, and count no more
            continue
        twin = next((other for other, each in known.items() if each.seed == new.seed and other != model), None)
        problem = None
        if new.generation > generation:
            problem = f"the board is in generation {generation:,}, not {new.generation:,}"
        elif board is not None and board.unfinished is not None:
            problem = "the records of the board are still being copied; wait until that has ended"
        elif old is not None and old.generation == generation:
            problem = f"{name} is admitted already, and its first seed counts; go on along that order"
        elif model in benchmark.model_names() | spec.aliases.keys():
            problem = (
                f"{name} has scores or is an alias, and an order that is drawn after a look is not random; admit a model before its "
                "first score, under a name of its own"
            )
        elif twin is not None:
            problem = f"{shorten(twin)} has this seed; each newcomer needs its own, drawn after it is fixed"
        if problem is not None:
            return Refusal("admissions", name, problem, benchmark.name)
    return None


def _alias_fault(benchmark: Benchmark, spec: Spec) -> Fault | None:
    """Return why an alias is refused: it is one already, of another model; it has scores of its own; or it is part of a chain."""
    scored = {contestant.model for contestant in benchmark.contestants}
    for name, model in spec.aliases.items():
        known = benchmark.spec.aliases.get(name, model)
        problem = None
        if known != model:
            problem = f"{shorten(name)} is an alias of {shorten(known)}, which is permanent"
            remedy = "omit it"
        elif name in scored:
            problem = f"{shorten(name)} already has scores of its own"
            remedy = "omit it: an alias is declared before its first score"
        if problem is not None:
            reason = f"{problem}, so it cannot become an alias of {shorten(model)}; {remedy}"
            return Refusal("aliases", shorten(name), reason, benchmark.name)
    chained = alias_problem(benchmark.spec.aliases | spec.aliases)
    return (
        None if chained is None else Refusal("aliases", ", ".join(map(shorten, spec.aliases)), chained, benchmark.name)
    )


# --- a new version ------------------------------------------------------------------------------------------------------------------------


def under_version(benchmark: Benchmark, spec: Spec) -> StoredBenchmark:
    """Return the scores of a benchmark under a new version of its declaration, with nothing decided, to be restored."""
    old = benchmark.spec
    same_items = (spec.repeats, spec.units) == (old.repeats, old.units) and not benchmark.undeclared
    return StoredBenchmark(
        key=benchmark.key,
        name=benchmark.name,
        off=benchmark.off,
        spec=spec.model_dump_json(),
        rows=benchmark.rows[:],
        contestants=benchmark.contestants,
        values=[0, SCORE_UNIT, *benchmark.table.by_code[4:].tolist()],
        width=benchmark.width,
        columns=list(benchmark.matrix().T),
        registered=np.empty(0, np.uint32),
        changes=VerdictChanges(),
        counters=benchmark.counters,
        pairs=benchmark.snapshot() if same_items else None,
        votes=benchmark.battles.votes,
        judges=benchmark.battles.judges,
        ended=sorted(benchmark.ended),
        gaps=benchmark.gaps,
    )


def with_found_units(benchmark: Benchmark) -> Spec:
    """Return the declaration of a benchmark of files with the units that its events name: files are read whole before a verdict."""
    # An item with the name of a unit is one of it.
    found = benchmark.found_units
    if found.clash:
        raise ValueError(f"{benchmark.name}: {found.clash}")
    if (policy := benchmark.spec.order.policy) in {"committed", "trusted"}:
        raise ValueError(
            f"{benchmark.name}: its results name units, which order policy {policy} needs in advance; declare them (--units FILE; "
            "FILE may be the results as .jsonl)"
        )
    names = set(found.of_item.values()) - found.of_item.keys()
    units = found.of_item | {key.item: key.item for key in benchmark.rows if key.item in names}
    # Units that come with the scores may have been made from them.
    late = [*dict.fromkeys([*benchmark.spec.declared_late, "units"])]
    fields = benchmark.spec.model_dump(exclude_none=True) | {"units": units, "declared_late": late}
    if benchmark.spec.item_ids is not None:
        del fields["items"]
    try:
        return Spec.model_validate(fields)
    except ValidationError as error:
        raise ValueError(f"{benchmark.name}: {describe_error(error.errors(include_url=False)[0])}") from None


def follow(old: Benchmark, new: Benchmark) -> None:
    """Let the restored state of `under_version` keep the conflicts, the arrival order and the family places of a benchmark."""
    _carry_over(old, new)
    _register(old, new)


def redeclare(old: Benchmark, new: Benchmark, batch: EventBatch, delta: BenchmarkDelta) -> None:
    """Let the restored state of `under_version` follow a benchmark, and judge its pairs as they are now."""
    # `batch` has the place of the declaration in the log.
    replace(old, batch, new.spec.version, delta)
    follow(old, new)
    registered = np.flatnonzero(new.family_index).astype(np.uint32)
    delta.registered = [registered[np.argsort(new.family_index[registered], kind="stable")]]
    delta.redeclared = True
    if old.unknown_units != new.unknown_units:
        delta.unknown_units = new.unknown_units
    if old.undeclared or new.undeclared:
        delta.undeclared = new.undeclared, new.mixed
    judge(new, batch, delta)


def judge(new: Benchmark, batch: EventBatch, delta: BenchmarkDelta) -> None:
    """Judge all pairs of a restored state of `under_version` as they are now."""
    family = new.claims["anytime_family"]
    family.own_peak()[:] = 0
    family.note_peaks(np.arange(new.pairs))
    batch.redeclared = True
    if new.can_decide:
        every = np.ones(len(new.contestants), bool)
        announce_closed(new, batch, loop_of(new).judge(every, ignored=False), delta)


def _carry_over(old: Benchmark, new: Benchmark) -> None:
    """Keep the verdict changes, conflicts and arrival order, and hold the new state if it has undeclared repeats."""
    new.changes, new.change_counts, new.conflicts, new.arrival = (
        old.changes,
        old.change_counts,
        old.conflicts,
        old.arrival,
    )
    if old.undeclared or not _keeps_places(old, new):
        new.arrival = old.arrival.restarted(
            np.array([new.present(k).sum() for k in range(len(new.contestants))], np.int64)
        )
    new.reading = old.reading
    _hold_repeats(new)
    new.unknown_units = old.unknown_units and new.spec.units is None
    if new.unknown_units:
        new.hold_repeats(UNDECLARED_UNITS)


def _keeps_places(old: Benchmark, new: Benchmark) -> bool:
    """Return whether every declared item keeps its place in the order of the ids."""
    if old.item_places is None or new.item_places is None:
        return old.item_places is new.item_places
    return old.item_places.items() <= new.item_places.items()


def _hold_repeats(benchmark: Benchmark) -> None:
    """Hold the benchmark if an item has more repeats than declared, or two models more votes on a prompt."""
    units = benchmark.battles.units()
    for k in np.flatnonzero(units.votes > benchmark.spec.needed_repeats)[:1].tolist():
        benchmark.hold_repeats(benchmark.votes_reason(int(units.prompt[k]), int(units.pair[k])))
    beyond = benchmark.by_item.first_beyond(len(benchmark.contestants))
    if beyond is not None:
        benchmark.hold_repeats(benchmark.undeclared_reason(beyond))


def _register(old: Benchmark, new: Benchmark) -> None:
    """Give the pairs that share items places in their families: first those that had one, in its order."""
    pair = np.flatnonzero(new.n[: new.pairs] > 0)
    pair = new.eligible(pair, had_place=old.family_index[pair] > 0)
    place = old.family_index[pair]
    new.register(pair[np.lexsort((pair, place, place == 0))])

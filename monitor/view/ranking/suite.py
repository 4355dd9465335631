"""A suite: a benchmark whose items are those of other benchmarks, each of which counts by its weight.

Nothing of a suite is stored: it is computed from the states of its members, with the members as clusters that have weights.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from monitor.engine.state.benchmark import Benchmark, United
from monitor.engine.state.codes import NARROW, ScoreTable
from monitor.engine.state.graded import WeightedPairs
from monitor.engine.state.keys import benchmark_key
from monitor.engine.state.restore import restore_benchmark
from monitor.engine.state.stored import StoredBenchmark
from monitor.view.pairs.item_means import described
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.suite_evidence import Terms, register_family, terms_of, walk_committed
from schemas.records.events import MAX_GRADED_ITEMS, FamilySpec, OrderSpec, Spec
from schemas.records.reading import Reading
from schemas.records.scores import ABSENT, SCORE_UNIT, SKIPPED, ZERO, Contestant, RowKey
from schemas.records.suites import Suite
from schemas.results.report import SuiteGap, SuiteMember, SuiteMemberState, SuiteReport
from schemas.results.verdict_changes import VerdictChanges
from stats.numerics.pairs import Index


def suite_benchmark(suite: Suite, benchmarks: Mapping[str, Benchmark], *, assert_complete: bool) -> Benchmark:
    """Return the union of the members of a suite as a benchmark: the models that it ranks, by their newest epochs.

    These have a score in every member, or in some member where what a model lacks counts at its worst. An item is named after its member.
    A member that does not exist, or holds battles, has no items: then no model is ranked. The size of a member is its declared item count,
    or the items it has if these are taken as complete; else the sizes are declared for all or unknown, and unknown where their sum is
    beyond `MAX_GRADED_ITEMS`.
    """
    members = _scored_members(suite, benchmarks)
    lacking = _lacking(suite, members)
    if len(members) < len(suite.members):
        lacking = {}
    models = [model for model, lacks in lacking.items() if suite.missing == "worst" or not lacks]
    place = {model: k for k, model in enumerate(models)}
    terms = terms_of(suite, members, len(models))
    table, rows = ScoreTable(), []
    codes = np.full((sum(len(each.item_keys) for each in members.values()), len(models)), ABSENT, np.int64)
    start = 0
    for name, each in members.items():
        newest = np.array([k for k in _newest(each).tolist() if each.contestants[k].model in place], np.int64)
        values = each.item_values
        known = np.concatenate([[ABSENT, SKIPPED], table.codes_of(values[ZERO:])]).astype(np.int64)
        stop = start + len(each.item_keys)
        columns = [place[each.contestants[k].model] for k in newest.tolist()]
        codes[start:stop, columns] = known[each.item_codes()[:, newest]]
        rows += [RowKey(f"{name}/{key.item}", 0, name) for key in each.item_keys]
        start = stop
    rows = _distinct(rows)
    width = 1 if len(table) <= NARROW else 4
    stored = StoredBenchmark(
        key=benchmark_key(suite.name),
        name=suite.name,
        off=0,
        spec=_spec(suite, members, terms, assert_complete=assert_complete).model_dump_json(),
        rows=rows,
        contestants=[Contestant(model, 0) for model in models],
        values=[0, SCORE_UNIT, *table.by_code[ZERO + 2 :].tolist()],
        width=width,
        columns=list(codes.T.astype(np.uint8 if width == 1 else np.uint32)),
        registered=np.empty(0, np.uint32),
        changes=VerdictChanges(),
        counters={
            counter: sum(each.counters[counter] for each in members.values())
            for counter in ("events", "duplicates", "conflicts", "filled", "rejected")
        },
        pairs=None,
        ended=[
            k for k, model in enumerate(models) if not lacking[model] and all(map(_has_ended(model), members.values()))
        ],
        gaps=list(dict.fromkeys(gap for each in members.values() for gap in each.gaps)),
    )
    benchmark = restore_benchmark(stored)
    rescored = any(each.contestants[k].epoch for each in members.values() for k in _newest(each).tolist())
    units = any(each.spec.units is not None for each in members.values())
    has_choice = any(each.has_choice for each in members.values())
    benchmark.united = United(
        suite, terms.hold_reason, terms.shares_items, rescored=rescored, units=units, has_choice=has_choice
    )
    benchmark.generation = max((each.generation for each in members.values()), default=1)
    if not assert_complete and terms.policy != "none":
        _decide_live(benchmark, members, terms)
    # Later repeats would change the means of a member with undeclared ones, so nothing is settled there either.
    open_means = not assert_complete and any(benchmarks[name].undeclared for name in members)
    benchmark.exceeded = open_means or any(each.exceeded for each in members.values())
    benchmark.quarantine = next((each.quarantine for each in members.values() if each.quarantine is not None), None)
    benchmark.reading = Reading(
        refused=list(dict.fromkeys(file for each in members.values() for file in each.reading.refused)),
        unread=sum(each.reading.unread for each in members.values()),
        differing=next((each.reading.differing for each in members.values() if each.reading.differing), ""),
    )
    benchmark.incomplete = next((each.incomplete for each in members.values() if each.incomplete), "")
    return benchmark


def _scored_members(suite: Suite, benchmarks: Mapping[str, Benchmark]) -> dict[str, Benchmark]:
    """Return the members that have scores, each as it is described."""
    present = {name: benchmarks[name] for name in suite.members if name in benchmarks}
    return {name: described(each) for name, each in present.items() if each.battles is None}


def _distinct(rows: list[RowKey]) -> list[RowKey]:
    """Return rows with distinct names: item b/c of member a, and item c of member a/b, would have one."""
    seen: set[str] = set()
    for place, (item, repeat, cluster) in enumerate(rows):
        name = item
        while name in seen:
            name = f"{name} ({cluster})"
        seen.add(name)
        rows[place] = RowKey(name, repeat, cluster)
    return rows


def _decide_live(union: Benchmark, members: Mapping[str, Benchmark], terms: Terms) -> None:
    """Add what live verdicts rest on: places in the family and, along committed orders, evidence."""
    assert union.united is not None
    assert union.weighting is not None
    union.united = replace(union.united, no_family=register_family(union))
    if terms.policy != "committed":
        return
    union.spec = union.spec.model_copy(update={"order": OrderSpec(policy="committed")})
    if union.pairs:
        walk = walk_committed(union, union.weighting, members)
        sums = WeightedPairs(union.weighting)
        sums.grow(len(union.contestants))
        sums.capital = walk.capital
        union.graded_pairs, union.united = sums, replace(union.united, walked=(walk.peak, walk.side))


def _spec(suite: Suite, members: Mapping[str, Benchmark], terms: Terms, *, assert_complete: bool) -> Spec:
    declared = [each.spec.items is not None for each in members.values()]
    whole = len(members) == len(suite.members)
    sizes = {name: _size(members.get(name)) for name in suite.members}
    sized = any(declared) if assert_complete else whole and all(declared)
    sized = sized and sum(sizes.values()) <= MAX_GRADED_ITEMS
    return Spec.model_validate(
        {
            "weights": suite.gap_weights,
            "order": "completion" if terms.policy == "completion" and not assert_complete else "none",
            "family": FamilySpec() if assert_complete else terms.family,
            "alpha": min((each.spec.alpha for each in members.values()), default=Spec().alpha),
            "scores": "graded",
            "declared_late": {part for each in members.values() for part in each.spec.declared_late},
            **({"clusters": sizes} if sized else {}),
        }
    )


def _size(member: Benchmark | None) -> int:
    """Return the items of a member: those declared, those it has, or 1 where it has none."""
    return 1 if member is None else max(member.spec.items or 0, member.items, 1)


def _newest(member: Benchmark) -> Index:
    """Return the newest epoch of each model that has a score in it."""
    if not member.contestants:
        return np.zeros(0, np.int64)
    return np.flatnonzero(member.current() & (member.scored[: len(member.contestants)] > 0))


def _has_ended(model: str) -> Callable[[Benchmark], bool]:
    """Return whether the run of a model by its newest epoch has ended in a member."""
    return lambda member: member.epoch_contestant_of[model, member.latest_epoch[model]] in member.ended


def _lacking(suite: Suite, members: Mapping[str, Benchmark]) -> dict[str, list[str]]:
    """Return for every model, in the order of their first events, the members in which it has no score."""
    scored = {name: {each.contestants[k].model: None for k in _newest(each).tolist()} for name, each in members.items()}
    models = dict.fromkeys(model for names in scored.values() for model in names)
    return {model: [name for name in suite.members if model not in scored.get(name, ())] for model in models}


def suite_report(
    suite: Suite, benchmarks: Mapping[str, Benchmark], table: PairTable, at: Index, *, hides: bool
) -> SuiteReport:
    """Report the members of a suite, and what each adds to the gap of some pairs; `hides`: as `SuiteReport` has it."""
    assert table.weighted is not None
    scores, names = table.weighted, [contestant.model for contestant in table.benchmark.contestants]
    members = _scored_members(suite, benchmarks)
    lacking = {model: lacks for model, lacks in sorted(_lacking(suite, members).items()) if lacks}
    parts = scores.gap_scale * scores.weighting.weight * scores.gaps_by_cluster(table.a[at], table.b[at])
    gaps = [
        SuiteGap(
            model_a=names[a],
            model_b=names[b],
            parts=dict(zip(scores.weighting.names, row, strict=True)),
            driver=scores.weighting.names[int(np.argmax(np.abs(row)))] if any(row) else None,
        )
        for a, b, row in zip(table.a[at].tolist(), table.b[at].tolist(), parts.tolist(), strict=True)
        if np.isfinite(row).all()
    ]
    return SuiteReport(
        members=[_member_report(suite, name, benchmarks.get(name), table) for name in suite.members],
        lacking=lacking,
        gaps=gaps,
        missing=suite.missing,
        hides=hides,
    )


def _member_report(suite: Suite, name: str, benchmark: Benchmark | None, table: PairTable) -> SuiteMember:
    """Report one member, with the mean score in it of each ranked model."""
    assert table.weighted is not None
    names = [contestant.model for contestant in table.benchmark.contestants]
    k, counts = table.weighted.weighting.names.index(name), suite.members[name]
    n, s1, _ = table.weighted.of_models
    state: SuiteMemberState = "counts"
    if benchmark is None:
        state = "absent"
    elif benchmark.battles is not None:
        state = "battles"
    elif benchmark.board is not None and benchmark.board.state == "archived":
        state = "archived"
    scored = benchmark is not None and benchmark.battles is None
    return SuiteMember(
        benchmark=name,
        weight=counts.weight / sum(each.weight for each in suite.members.values()),
        baseline=counts.baseline,
        state=state,
        weighted=benchmark is not None and benchmark.spec.weights is not None,
        items=_size(benchmark) if benchmark is not None and scored else 0,
        models=_newest(described(benchmark)).size if benchmark is not None and scored else 0,
        means={names[m]: float(s1[m, k] / n[m, k]) for m in table.ranking.tolist() if n[m, k]},
    )

"""A suite: a benchmark that takes its items from other benchmarks and weighs each of them.

Nothing of a suite is stored: it is computed from the states of its members, with the members as clusters that have weights.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np

from monitor.engine.state.benchmark import COUNTERS
from monitor.engine.state.changes import benchmark_key
from monitor.engine.state.codes import NARROW, Codes, ScoreTable
from monitor.engine.state.graded import Weighting, capital_of
from monitor.engine.state.pairs.settling import Settling
from monitor.engine.state.rows import Rows
from monitor.view.board import BoardView, Cells, GradedSums, ItemScores, United, model_maps, no_latches, of_scores
from monitor.view.kinds.graded import Members
from monitor.view.kinds.kind import kind_of
from monitor.view.pairs.table import PairTable
from monitor.view.pairs.weights import WeightedScores
from monitor.view.ranking.suite_evidence import Terms, family_places, terms_of, walk_committed
from monitor.view.reasons import unit_items
from schemas.records.declaration import MAX_GRADED_ITEMS, FamilySpec, OrderSpec, Provenance, Spec
from schemas.records.reading import Reading
from schemas.records.scores import ABSENT, SKIPPED, ZERO, Contestant, RowKey
from schemas.records.suites import Suite
from schemas.results.report import SuiteGap, SuiteMember, SuiteMemberState, SuiteReport
from stats.numerics.pairs import Index, all_pairs, pair_count


def suite_board(suite: Suite, boards: Mapping[str, BoardView], *, assert_complete: bool) -> BoardView:
    """Return the union of the members of a suite as a board: the models that it ranks, by their newest epochs."""
    # These have a score in every member, or in some member where what a model lacks counts at its worst. An item is named after its member.
    # A member that does not exist, or holds battles, has no items: then no model is ranked. The size of a member is its declared item
    # count, or the items it has if these are taken as complete; else the sizes are declared for all or unknown, and unknown where their sum
    # is beyond `MAX_GRADED_ITEMS`.
    members = _scored_members(suite, boards)
    lacking = _lacking(suite, members) if len(members) == len(suite.members) else {}
    models = [model for model, lacks in lacking.items() if suite.missing == "worst" or not lacks]
    terms = terms_of(suite, members, len(models))
    spec, scores = _spec(suite, members, terms, assert_complete=assert_complete), _scores(members, models)
    weighting = Weighting.of(spec)
    if weighting is not None:
        weighting.enter(scores.keys)
    # Later repeats would change the means of a member with undeclared ones, so nothing is settled there either.
    open_means = not assert_complete and any(boards[name].undeclared for name in members)
    each = list(members.values())
    counters = {name: sum(member.counters[name] for member in each) for name in COUNTERS}
    rows = Rows()
    for key in scores.keys:
        rows.append(key)
    pairs = pair_count(len(models))
    union = BoardView(
        kind_of=lambda _: Members,
        origin=object(),
        name=suite.name,
        key=benchmark_key(suite.name),
        spec=spec,
        generation=max((member.generation for member in each), default=1),
        quarantine=next((member.quarantine for member in each if member.quarantine is not None), None),
        gaps=list(dict.fromkeys(gap for member in each for gap in member.gaps)),
        **model_maps(Contestant(model, 0) for model in models),
        ended=frozenset(k for k, model in enumerate(models) if not lacking[model] and _has_ended(model, each)),
        items=len(scores.keys),
        rows=len(scores.keys),
        counters=counters,
        reading=Reading(
            refused=list(dict.fromkeys(file for member in each for file in member.reading.refused)),
            differing=next((member.reading.differing for member in each if member.reading.differing), ""),
            off_scale=next((member.reading.off_scale for member in each if member.reading.off_scale), ""),
        ),
        unread=sum(member.unread for member in each),
        again=lambda: np.zeros((len(models), 2), np.int64),
        incomplete=next((member.incomplete for member in each if member.incomplete), ""),
        too_many_items=(weighting is not None and bool(weighting.exceeded))
        or (spec.items is not None and len(scores.keys) > spec.items),
        exceeded=open_means or any(member.exceeded for member in each),
        has_choice=any(member.has_choice for member in each) or counters["conflicts"] + counters["filled"] > 0,
        united=United(
            suite,
            terms.held,
            terms.shares_items,
            rescored=any(member.contestants[k].epoch for member in each for k in _newest(member).tolist()),
            unit_items=_unit_items(each),
        ),
        baselines={name: member.baseline for name, member in suite.members.items()},
        least_scored=int(suite.missing == "worst"),
        members=list(suite.members),
        suite_report=partial(
            _suite_report, suite, {name: boards[name] for name in suite.members if name in boards}, suite.name in boards
        ),
        **of_scores(scores),
        family_index=lambda: np.zeros(pairs, np.int32),
        claims=no_latches(pairs),
        graded_sums=None
        if spec.order.policy == "none"
        else cache(lambda: _graded_sums(scores, len(models), weighting)),
        settling=Settling(),
        weighting=weighting,
        row_keys=rows,
        cells=lambda: Cells(scores.codes, scores.values),
    )
    return union if assert_complete or terms.policy == "none" else _decided_live(union, members, terms)


def _scores(members: Mapping[str, BoardView], models: Sequence[str]) -> ItemScores:
    """Return the scores of models on the items of all members."""
    place = {model: k for k, model in enumerate(models)}
    table, keys = ScoreTable(), list[RowKey]()
    codes = np.full((sum(len(each.item_keys) for each in members.values()), len(models)), ABSENT, np.int64)
    for name, each in members.items():
        newest = np.array([k for k in _newest(each).tolist() if each.contestants[k].model in place], np.int64)
        known = np.concatenate([[ABSENT, SKIPPED], table.codes_of(each.item_values[ZERO:])]).astype(np.int64)
        some = slice(len(keys), len(keys) + len(each.item_keys))
        codes[some, [place[each.contestants[k].model] for k in newest.tolist()]] = known[each.item_codes()[:, newest]]
        keys += [RowKey(f"{name}/{key.item}", 0, name) for key in each.item_keys]
    narrow: Codes = codes.astype(np.uint8) if len(table) <= NARROW else codes.astype(np.uint32)
    return ItemScores(narrow, table.by_code, _distinct(keys))


def _unit_items(members: Sequence[BoardView]) -> int | None:
    """Return how many items the units of members have, with the items of members without units; None if none declares units."""
    counts = [unit_items(member) for member in members]
    if all(count is None for count in counts):
        return None
    return sum(member.items if count is None else count for member, count in zip(members, counts, strict=True))


def _graded_sums(scores: ItemScores, models: int, weighting: Weighting | None) -> GradedSums:
    pairs = all_pairs(models)
    if weighting is None:
        return GradedSums(*capital_of(scores.codes, scores.values, *pairs))
    return GradedSums(*weighting.pairs_of(scores.codes, scores.values, *pairs))


def _scored_members(suite: Suite, benchmarks: Mapping[str, BoardView]) -> dict[str, BoardView]:
    """Return the members that have scores, each as it is described."""
    present = {name: benchmarks[name] for name in suite.members if name in benchmarks}
    return {name: each.described() for name, each in present.items() if kind_of(each).member_state == "counts"}


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


def _decided_live(union: BoardView, members: Mapping[str, BoardView], terms: Terms) -> BoardView:
    """Return a union with what live verdicts rest on: places in the family and, along committed orders, evidence."""
    assert union.united is not None
    weighting = union.weighting
    assert weighting is not None
    place, no_family = family_places(union)
    union = replace(union, united=replace(union.united, no_family=no_family), family_index=lambda: place)
    if terms.policy != "committed":
        return union
    union = replace(union, spec=union.spec.model_copy(update={"order": OrderSpec(policy="committed")}))
    if not union.pairs:
        return union
    walk, lead = walk_committed(union, weighting, members), np.zeros(union.pairs, np.int64)
    shared = np.zeros((lead.size, len(weighting.names)), np.int32)
    assert union.united is not None
    return replace(
        union,
        graded_sums=cache(lambda: GradedSums(walk.capital, lead, shared)),
        united=replace(union.united, walked=(walk.peak, walk.side)),
    )


def _spec(suite: Suite, members: Mapping[str, BoardView], terms: Terms, *, assert_complete: bool) -> Spec:
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
            "provenance": Provenance(begun_again=any(each.begun_again for each in members.values())),
            **({"clusters": sizes} if sized else {}),
        }
    )


def _size(member: BoardView | None) -> int:
    """Return the items of a member: those declared, those it has, or 1 where it has none."""
    return 1 if member is None else max(member.spec.items or 0, member.items, 1)


def _newest(member: BoardView) -> Index:
    """Return the newest epoch of each model that has a score in it."""
    if not member.contestants:
        return np.zeros(0, np.int64)
    return np.flatnonzero(member.current() & (member.scored > 0))


def _has_ended(model: str, members: Iterable[BoardView]) -> bool:
    """Return whether the run of a model by its newest epoch has ended in all members."""
    return all(member.newest(model) in member.ended for member in members)


def _lacking(suite: Suite, members: Mapping[str, BoardView]) -> dict[str, list[str]]:
    """Return for every model, in the order of their first events, the members in which it has no score."""
    scored = {name: {each.contestants[k].model: None for k in _newest(each).tolist()} for name, each in members.items()}
    models = dict.fromkeys(model for names in scored.values() for model in names)
    return {model: [name for name in suite.members if model not in scored.get(name, ())] for model in models}


def _suite_report(suite: Suite, benchmarks: Mapping[str, BoardView], hides: bool, table: PairTable) -> SuiteReport:  # noqa: FBT001
    """Report the members of a suite, and what each adds to the gaps of neighbours; `hides`: as `SuiteReport` has it."""
    assert isinstance(table.kind, Members)
    at = np.flatnonzero(table.pairs.adjacent)
    scores, names = table.kind.weighted, [contestant.model for contestant in table.benchmark.contestants]
    members = _scored_members(suite, benchmarks)
    lacking = {model: lacks for model, lacks in sorted(_lacking(suite, members).items()) if lacks}
    parts = scores.gap_scale * scores.weighting.weight * scores.gaps_by_cluster(table.pairs.a[at], table.pairs.b[at])
    gaps = [
        SuiteGap(
            model_a=names[a],
            model_b=names[b],
            parts=dict(zip(scores.weighting.names, row, strict=True)),
            driver=scores.weighting.names[int(np.argmax(np.abs(row)))] if any(row) else None,
        )
        for a, b, row in zip(table.pairs.a[at].tolist(), table.pairs.b[at].tolist(), parts.tolist(), strict=True)
        if np.isfinite(row).all()
    ]
    return SuiteReport(
        members=[_member_report(suite, name, benchmarks.get(name), table, scores) for name in suite.members],
        lacking=lacking,
        gaps=gaps,
        missing=suite.missing,
        hides=hides,
    )


def _member_report(
    suite: Suite, name: str, benchmark: BoardView | None, table: PairTable, scores: WeightedScores
) -> SuiteMember:
    """Report one member, with the mean score in it of each ranked model."""
    names = [contestant.model for contestant in table.benchmark.contestants]
    k, counts = scores.weighting.names.index(name), suite.members[name]
    n, s1, _ = scores.of_models
    state: SuiteMemberState = "absent" if benchmark is None else kind_of(benchmark).member_state
    scored = state == "counts"
    if benchmark is not None and scored and benchmark.board is not None and benchmark.board.state == "archived":
        state = "archived"
    return SuiteMember(
        benchmark=name,
        weight=counts.weight / sum(each.weight for each in suite.members.values()),
        baseline=counts.baseline,
        state=state,
        weighted=benchmark is not None and benchmark.spec.weights is not None,
        items=_size(benchmark) if benchmark is not None and scored else 0,
        models=_newest(benchmark.described()).size if benchmark is not None and scored else 0,
        means={names[m]: float(s1[m, k] / n[m, k]) for m in table.ranking.tolist() if n[m, k]},
    )

"""A suite: a benchmark whose items are those of other benchmarks, each of which counts by its weight.

Nothing of a suite is stored: it is computed from the states of its members, with the members as clusters that have weights.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.codes import ABSENT, NARROW, SCORE_UNIT, SKIPPED, ZERO, ScoreTable
from monitor.engine.state.delta import Contestant, RowKey, StoredBenchmark
from monitor.engine.state.keys import benchmark_key
from monitor.engine.state.pairs import Index
from monitor.engine.state.restore import restore_benchmark
from monitor.report.item_means import described
from monitor.report.pair_table import PairTable
from schemas.events import Spec
from schemas.report import SuiteGap, SuiteMember, SuiteReport


@dataclass(frozen=True)
class Suite:
    """The name of a suite, and the weight of each of its members."""

    name: str
    members: Mapping[str, float]


def suite_benchmark(suite: Suite, benchmarks: Mapping[str, Benchmark]) -> Benchmark:
    """Return the union of the members of a suite as a benchmark: models with a score in every member, by their newest epochs.

    An item is named after its member. The size of a member is its declared item count, or the items it has.
    """
    members = {name: described(benchmarks[name]) for name in suite.members}
    models = [model for model, lacks in _lacking(members).items() if not lacks]
    place = {model: k for k, model in enumerate(models)}
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
    sizes = {name: max(each.spec.items or 0, each.items, 1) for name, each in members.items()}
    declared = {"clusters": sizes} if any(each.spec.items is not None for each in members.values()) else {}
    alpha = min(each.spec.alpha for each in members.values())
    spec = Spec.model_validate(
        {"weights": dict(suite.members), "order": "none", "alpha": alpha, "scores": "graded", **declared}
    )
    width = 1 if len(table) <= NARROW else 4
    stored = StoredBenchmark(
        key=benchmark_key(suite.name),
        name=suite.name,
        off=0,
        spec=spec.model_dump_json(),
        rows=rows,
        contestants=[Contestant(model, 0) for model in models],
        values=[0, SCORE_UNIT, *table.by_code[ZERO + 2 :].tolist()],
        width=width,
        columns=list(codes.T.astype(np.uint8 if width == 1 else np.uint32)),
        registered=np.empty(0, np.uint32),
        changes={},
        counters={
            counter: sum(each.counters[counter] for each in members.values())
            for counter in ("events", "duplicates", "conflicts", "rejected")
        },
        pairs=None,
        ended=list(range(len(models))),
        gaps=[],
    )
    benchmark = restore_benchmark(stored)
    benchmark.complete_files = True
    benchmark.incomplete = next((each.incomplete for each in members.values() if each.incomplete), "")
    return benchmark


def _newest(member: Benchmark) -> Index:
    """Return the newest epoch of each model that has a score in it."""
    if not member.contestants:
        return np.zeros(0, np.int64)
    return np.flatnonzero(member.current() & (member.scored[: len(member.contestants)] > 0))


def _lacking(members: Mapping[str, Benchmark]) -> dict[str, list[str]]:
    """Return for every model, in the order of their first events, the members in which it has no score."""
    scored = {name: [each.contestants[k].model for k in _newest(each).tolist()] for name, each in members.items()}
    models = dict.fromkeys(model for names in scored.values() for model in names)
    has = {name: set(names) for name, names in scored.items()}
    return {model: [name for name in members if model not in has[name]] for model in models}


def suite_report(suite: Suite, benchmarks: Mapping[str, Benchmark], table: PairTable, at: Index) -> SuiteReport:
    """Report the members of a suite, and what each adds to the gap of some pairs."""
    assert table.weighted is not None
    scores, names = table.weighted, [contestant.model for contestant in table.benchmark.contestants]
    weighting = scores.weighting
    n, s1, _ = scores.of_models
    means = np.divide(s1, n, out=np.full(s1.shape, np.nan), where=n > 0)
    members = [
        SuiteMember(
            benchmark=name,
            weight=float(weighting.weight[k]),
            items=int(weighting.size[k]),
            models=_newest(benchmarks[name]).size,
            means={names[m]: float(means[m, k]) for m in table.ranking.tolist() if n[m, k]},
        )
        for k, name in enumerate(weighting.names)
    ]
    every = _lacking({name: benchmarks[name] for name in suite.members})
    lacking = {model: lacks for model, lacks in sorted(every.items()) if lacks}
    parts = weighting.weight * scores.gaps_by_cluster(table.a[at], table.b[at])
    gaps = [
        SuiteGap(
            model_a=names[a],
            model_b=names[b],
            parts=dict(zip(weighting.names, row, strict=True)),
            driver=weighting.names[int(np.argmax(np.abs(row)))] if any(row) else None,
        )
        for a, b, row in zip(table.a[at].tolist(), table.b[at].tolist(), parts.tolist(), strict=True)
        if np.isfinite(row).all()
    ]
    return SuiteReport(members=members, lacking=lacking, gaps=gaps)

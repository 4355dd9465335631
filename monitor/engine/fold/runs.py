"""The fold of a sentinel: scores of runs into its monitors, and their alarms into verdict changes."""

from collections.abc import Iterable, Mapping
from typing import Final

from monitor.engine.decoder import RunEnded
from monitor.engine.kinds.sentinel import Moved, Sentinel
from monitor.engine.latch.records import id_sequence
from monitor.engine.limits import Limits
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.changes import BenchmarkDelta
from monitor.words.drift import change_sentence
from schemas.records.columns import EventBatch
from schemas.records.text import Fault, Refusal, shorten
from schemas.records.versions import STATISTICS_VERSION
from schemas.results.changes import DRIFT_KINDS, DriftChange
from schemas.results.drift import DriftAlarm
from schemas.results.verdict_changes import change_field

_FACTS: Final = {*DriftChange.__struct_fields__} & {*DriftAlarm.__struct_fields__} - {"run"}


def fold_runs(
    benchmark: Benchmark,
    sentinel: Sentinel,
    batch: EventBatch,
    delta: BenchmarkDelta,
    limits: Limits,
    files: Mapping[int, str],
) -> list[tuple[int, Fault]]:
    """Fold scores into a sentinel; return the position and fault of each that is refused."""
    refused, moved = sentinel.fold(batch, limits, files)
    benchmark.counters["events"] += len(batch.events) - len(refused)
    _announce(benchmark, batch, moved, delta)
    return refused


def mark_runs(
    benchmark: Benchmark, sentinel: Sentinel, step: RunEnded, delta: BenchmarkDelta, limits: Limits
) -> Fault | None:
    """Take the start or end of a run, or an announced change; return why it is refused."""
    fault, moved = sentinel.mark(step.ended, limits)
    _announce(benchmark, EventBatch.at(benchmark.name, step.offset, step.place), moved, delta)
    return fault


def no_sentinel(name: str) -> Fault:
    """Return why no run can be marked of a benchmark that is no sentinel."""
    reason = (
        f"{shorten(name)} is no sentinel, so nothing is reported of its runs; declare drift before the first of them"
    )
    return Refusal("run", shorten(name), reason, name)


def _announce(benchmark: Benchmark, batch: EventBatch, moved: Iterable[Moved], delta: BenchmarkDelta) -> None:
    """Record what monitors report, each at the event with which its run closed."""
    for each in moved:
        index, offset = batch.indices[each.position], batch.offsets[each.position]
        sequence = id_sequence(index, each.number, 0, DRIFT_KINDS.index(each.kind), later=False)
        change = DriftChange(
            id=f"{offset}-{sequence}",
            benchmark=benchmark.name,
            model=each.model,
            kind=each.kind,
            of=each.of,
            run=each.run,
            judge_moved=each.judge_moved,
            statistics_version=STATISTICS_VERSION,
            sentence=change_sentence(benchmark.name, each.model, each.kind, each.facts),
            **{name: getattr(each.facts, name, None) for name in _FACTS},
        )
        field = change_field(f"{each.number}.{each.place}", "drift", each.kind, 1)
        for changes in (benchmark.changes, delta.changes):
            changes.add(field, change)
        benchmark.change_counts["drift", each.kind] += 1
    benchmark.revision += 1

"""The budgets of a partition: what its benchmarks take of them, and whether events may exceed them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from monitor.engine.limits import Limits, Usage, exceeds
from monitor.engine.state.benchmark import Benchmark
from schemas.records.columns import EventBatch


def usage_of(benchmark: Benchmark) -> Usage:
    """Return what a benchmark takes of the budgets of its partition."""
    if benchmark.sentinel is not None:
        return benchmark.sentinel.usage
    rows, contestants = len(benchmark.rows), len(benchmark.contestants)
    cells = rows * contestants * benchmark.by_item.has_scores
    return Usage.of_battles(rows, benchmark.battles.size, contestants).plus(Usage(cells=cells))


def may_exceed(
    benchmarks: Mapping[str, Benchmark], usage: Usage, batches: Sequence[EventBatch], limits: Limits
) -> bool:
    """Return whether events may take benchmarks beyond a budget, if each of them names a new item and a new model."""
    # `usage` is what the benchmarks take together before the events.
    for batch in batches:
        benchmark, size = benchmarks.get(batch.benchmark), len(batch.events)
        rows, contestants = (len(benchmark.rows), len(benchmark.contestants)) if benchmark is not None else (0, 0)
        if batch.events.has_battles():
            most = min(contestants + 2 * size, limits.contestants)
            usage = usage.plus(Usage.of_battles(size, size, most)).plus(Usage.of_battles(0, 0, contestants), -1)
        else:
            most = min(contestants + size, limits.contestants)
            usage = usage.plus(Usage.sized(rows + size, most)).plus(Usage.sized(rows, contestants), -1)
    return exceeds(usage, limits.budget)


def in_log_order(batches: Sequence[EventBatch]) -> Iterator[EventBatch]:
    """Yield runs of events of one benchmark in the order of the log: which event exceeds a budget must not depend on the chunks."""
    if len(batches) == 1:
        yield batches[0]
        return
    places = sorted(
        (offset, index, which, k)
        for which, batch in enumerate(batches)
        for k, (offset, index) in enumerate(zip(batch.offsets, batch.indices, strict=True))
    )
    for which, run in groupby(places, key=itemgetter(2)):
        first, *_, last = (*run,) * 2
        yield batches[which].part(first[3], last[3] + 1)

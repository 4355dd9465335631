"""Describe the boards of a partition: what operators have done with them, and what they hold."""

from collections.abc import Iterator

from monitor.engine.chunk_fold import Partition
from schemas.records.boards import BoardEntry
from schemas.results.api import BoardDetail, BoardSummary


def board_summaries(partition: Partition) -> Iterator[BoardSummary]:
    """Yield a summary of each board of a partition, also of those without a benchmark: deleted, set aside, or begun again."""
    changed = {entry.benchmark for entry in (*partition.boards, *partition.quarantine)}
    for name in (*partition.benchmarks, *(changed - partition.benchmarks.keys())):
        yield _summary(partition, name)


def board_detail(partition: Partition, name: str) -> BoardDetail | None:
    """Return one board of a partition with its declaration, or None."""
    benchmark = partition.benchmarks.get(name)
    if benchmark is None and partition.boards.of(name) is None and partition.quarantine.of(name) is None:
        return None
    declared = benchmark is not None and benchmark.declared
    return BoardDetail(**dict(_summary(partition, name)), spec=benchmark.spec if benchmark and declared else None)


def _summary(partition: Partition, name: str) -> BoardSummary:
    entry, benchmark = partition.boards.of(name) or BoardEntry(name), partition.benchmarks.get(name)
    suspect = partition.quarantine.of(name)
    return BoardSummary(
        benchmark=name,
        title=entry.title or None,
        state=entry.state,
        since=entry.since,
        generation=entry.generation,
        note=entry.note,
        partition=partition.number,
        models=0 if benchmark is None else len(benchmark.latest_epoch),
        events=0 if benchmark is None else benchmark.counters["events"],
        rejected=0 if benchmark is None else benchmark.counters["rejected"],
        set_aside=None if suspect is None else suspect.describe(),
    )

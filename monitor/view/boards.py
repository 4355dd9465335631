"""Describe the boards of a partition: what operators have done with them, and what they hold."""

from collections.abc import Iterator

from monitor.view.partition_view import PartitionView
from monitor.view.reasons import quarantined
from monitor.words.order import because
from schemas.records.boards import BoardEntry
from schemas.results.api import BoardDetail, BoardSummary


def board_summaries(partition: PartitionView) -> Iterator[BoardSummary]:
    """Yield a summary of each board of a partition, also of those without a benchmark: deleted, set aside, or begun again."""
    names = dict.fromkeys(partition.names())
    for name in (*names, *(partition.changed_names() - names.keys())):
        yield _summary(partition, name)


def board_detail(partition: PartitionView, name: str) -> BoardDetail | None:
    """Return one board of a partition with its declaration, or None."""
    benchmark = partition.board(name)
    if benchmark is None and partition.entry(name) is None and partition.suspect(name) is None:
        return None
    declared = benchmark is not None and benchmark.declared
    return BoardDetail(**dict(_summary(partition, name)), spec=benchmark.spec if benchmark and declared else None)


def _summary(partition: PartitionView, name: str) -> BoardSummary:
    entry, benchmark = partition.entry(name) or BoardEntry(name), partition.board(name)
    suspect = partition.suspect(name)
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
        set_aside=None if suspect is None else because([quarantined(suspect)]),
    )

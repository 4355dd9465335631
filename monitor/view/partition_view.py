"""A partition of the state as its readers see it: its boards, and what it would refuse."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from monitor.engine.admission import Admission
from monitor.engine.chunk_fold import Partition
from monitor.engine.declarations import refusal, with_late_parts
from monitor.engine.fold.runs import no_sentinel
from monitor.engine.fold.scores import no_runs, runs_of
from monitor.engine.kinds.sentinel import Sentinel
from monitor.engine.limits import benchmark_fault
from monitor.engine.state.benchmark import Benchmark
from monitor.view.board import BoardView
from monitor.view.from_state import board_view, current_view, state_version
from monitor.view.reasons import quarantined
from monitor.words.order import because
from schemas.records.boards import BoardEntry, Suspect
from schemas.records.declaration import Declaration
from schemas.records.events import Ended, EventFields
from schemas.records.operations import BoardChange
from schemas.records.scores import Contestant
from schemas.records.text import Fault, shorten
from schemas.results.api import BoardDetail, BoardSummary


def board_views(partitions: Iterable[Partition]) -> dict[str, BoardView]:
    """Return the benchmarks of some partitions, by name."""
    return {name: board_view(benchmark) for each in partitions for name, benchmark in each.benchmarks.items()}


def excess(benchmark: Benchmark, rejected: int, refused: int, files: int, share: float) -> str:
    """Return that more than a share of the lines, or files, of a benchmark was rejected, or refused; empty if not."""
    lines = rejected + benchmark.counters["events"]
    parts = [
        f"{part:,} of {whole:,} {what}, more than {share:.0%},"
        for part, whole, what in ((refused, files, "files"), (rejected, lines, "lines"))
        if part > share * whole
    ]
    if not parts:
        return ""
    return f"{shorten(benchmark.name)}: {' and '.join(parts)} could not be read; fix the files, or raise the limit with --max-rejected"


Judge = Callable[[EventFields], Fault | None]  # returns why the fold would refuse the next event, or None


@dataclass(frozen=True)
class PartitionView:
    """A partition; use it while the state does not change."""

    state: Partition

    @property
    def number(self) -> int:
        """Its number."""
        return self.state.number

    @property
    def off(self) -> int:
        """How far the log is folded."""
        return self.state.off

    @property
    def counters(self) -> Mapping[str, int]:
        """What was counted of its records."""
        return self.state.counters

    @property
    def rejected(self) -> int:
        """Records that became dead letters, of all its boards."""
        of_boards = sum(each.counters["rejected"] for each in self.state.benchmarks.values())
        return self.state.counters["rejected"] + of_boards

    def is_ours(self, name: str) -> bool:
        """Return whether a benchmark belongs to it, if it exists."""
        return self.state.is_ours(name)

    def names(self) -> Iterable[str]:
        """Return the benchmarks."""
        return self.state.benchmarks.keys()

    def board(self, name: str) -> BoardView | None:
        """Return a benchmark as it is now, or None."""
        benchmark = self.state.benchmarks.get(name)
        return None if benchmark is None else current_view(benchmark)

    def boards(self) -> Iterator[tuple[str, BoardView]]:
        """Yield every benchmark as it is now, by name."""
        for name, benchmark in self.state.benchmarks.items():
            yield name, current_view(benchmark)

    def versions(self) -> Iterator[tuple[str, int, tuple[object, ...]]]:
        """Yield every benchmark with its number of events, and what differs whenever it has changed."""
        for name, benchmark in self.state.benchmarks.items():
            yield name, benchmark.counters["events"], state_version(benchmark)

    def assume_ends(self, incomplete: Mapping[str, str]) -> None:
        """End every run for a last report, although the log may still bring scores. Runs of `incomplete` benchmarks go on."""
        self.state.assume_ends(incomplete)

    def note_excess(self, files: Iterable[str], share: float) -> None:
        """Record with each benchmark whether more than a share of its lines, or of all files, was refused."""
        every = set(files)
        for name, benchmark in self.state.benchmarks.items():
            rejected, refused = self.state.readings.rejected(name), {each.path for each in benchmark.reading.refused}
            benchmark.reading.excess = excess(benchmark, rejected, len(refused), len(every | refused), share)

    # --- what operators did with boards ---

    def entry(self, name: str) -> BoardEntry | None:
        """Return what operators have done with a board, or None."""
        return self.state.boards.of(name)

    def suspect(self, name: str) -> Suspect | None:
        """Return why the records of a benchmark are set aside, or None."""
        return self.state.quarantine.of(name)

    def changed_names(self) -> set[str]:
        """Return the boards that operators changed, or whose records are set aside."""
        return {entry.benchmark for entry in (*self.state.boards, *self.state.quarantine)}

    # --- what the fold would refuse ---

    def closed(self, name: str) -> Fault | None:
        """Return why a board takes no records, or None."""
        return self.state.boards.refusal(name)

    def change_fault(self, change: BoardChange) -> Fault | None:
        """Return why the state of a board does not allow a change, or None."""
        return self.state.board_fault(change)

    def declaration_fault(self, declaration: Declaration, *, folded: bool) -> Fault | None:
        """Return why a declaration is refused: it contradicts the one under which scores exist, or is of a benchmark too many."""
        name, state = declaration.declare, self.state
        closed, benchmark = self.closed(name), state.benchmarks.get(name)
        if closed is not None:
            return closed
        if benchmark is not None:
            return refusal(benchmark, declaration.spec())
        return benchmark_fault(name, len(state.benchmarks), state.limits) if folded else None

    def is_declared(self, declaration: Declaration) -> bool:
        """Return whether a declaration is in force."""
        benchmark = self.state.benchmarks.get(declaration.declare)
        if benchmark is None or not benchmark.declared:
            return False
        return benchmark.spec == with_late_parts(benchmark, declaration.spec())

    def new_items(self, name: str, items: Iterable[str]) -> int:
        """Count the items that a benchmark does not have."""
        benchmark = self.state.benchmarks.get(name)
        return sum(benchmark is None or item not in benchmark.by_item for item in items)

    def judge(
        self,
        name: str,
        events: int,
        runs: int,
        *,
        battles: bool,
        begun: int,
        folded: bool,
        declared: Declaration | None,
    ) -> Judge | Fault | None:
        """Return what judges the events of a benchmark, or why it cannot begin; None if none can be refused."""
        state, benchmark = self.state, self.state.benchmarks.get(name)
        fault = self.closed(name) if folded else None
        if fault is None and benchmark is None and folded:
            fault = benchmark_fault(name, len(state.benchmarks) + begun, state.limits)
        if fault is not None:
            return fault
        benchmark = benchmark or Benchmark(name)
        limits = state.limits_beside(benchmark)
        if (sentinel := _sentinel(benchmark, declared)) is not None:
            return sentinel.judge(limits, folded=folded)
        admission = Admission(benchmark, limits, folded=folded and declared is None)
        return admission.fault if admission.needed(events, runs, battles=battles) else None

    def ending(self, end: Ended, declared: Declaration | None = None) -> Sequence[Contestant] | Fault:
        """Return the runs that an end is of, or why it is of none; `declared`: what its request declares ahead of it."""
        benchmark = self.state.benchmarks.get(end.ended)
        if (sentinel := _sentinel(benchmark or Benchmark(end.ended), declared)) is not None:
            return sentinel.unknown(end, self.state.limits) or []
        if end.state is not None:
            return no_sentinel(end.ended)
        runs = no_runs(end.ended) if benchmark is None else runs_of(benchmark, end)
        if isinstance(runs, Fault):
            return runs
        return [] if benchmark is None else [benchmark.contestants[run] for run in runs]


def _sentinel(benchmark: Benchmark, declared: Declaration | None) -> Sentinel | None:
    """Return the sentinel that a benchmark is once a declaration that comes first is in force, or None."""
    known = benchmark.sentinel
    if declared is None or declared.drift is None or (known is not None and known.has_begun):
        return known
    return Sentinel(benchmark.name, declared.spec())


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

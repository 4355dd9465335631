"""Compute reports from the state on request, and keep them until the state changes."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from monitor.background import in_background
from monitor.serve.kept_results import KeptResults
from monitor.serve.log_position import accepts, note_older, note_position
from monitor.serve.shown_boards import ShownBoards
from monitor.serve.summaries import board_summary, suite_summary
from monitor.state_lock import StateLock
from monitor.store.commit_times import CommitTimes
from monitor.view.board import BoardView
from monitor.view.build import ReportView, Which, suite_view, table_view
from monitor.view.live_pairs import LivePairs
from monitor.view.news import BoardNews, PairNames, board_news
from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import PartitionView
from monitor.view.ranking.goal import goal_report, priced, priced_report
from monitor.view.ranking.suite import suite_board
from monitor.view.ranking.tie_bands import TieBands, tie_bands
from schemas.records.prices import Prices
from schemas.records.suites import Suite
from schemas.results.api import BenchmarkSummary
from schemas.results.report import BenchmarkReport, GoalReport, Report

_Result = TypeVar("_Result")

_MAX_LIVE_PAIRS: Final = 8
"""Benchmarks whose pairs stay in memory, those last requested: a thousand models have half a million pairs."""

_MAX_REPORTS: Final = 200
"""Reports that stay in memory, those last requested."""

_MAX_PAIRS: Final = 1_000_000
"""Pairs in memory of two benchmarks."""

_REPORT_COOLDOWN: Final = 1
"""Reports of lists that are slow are reused for this many times their excess: the fold keeps half of the time."""

_QUICK_PAIRS: Final = 2_000
"""So many pairs are reported at once; more in a thread, so that other requests are served meanwhile."""

_QUICK_NEIGHBOURS: Final = 6_000
"""The same for work that reports only neighbours in rank: most pairs enter statistics, but make no row."""

_CELLS_A_PAIR: Final = 1_000
"""Scores of which reading costs about as much as the statistics of a pair."""


class Origin(NamedTuple):
    """The state from which a benchmark, a suite or a list is reported."""

    sources: tuple[object, ...]
    version: tuple[object, ...]
    offsets: dict[int, int]


class ReportCache(ShownBoards):
    """Reports of the benchmarks of a process."""

    def __init__(
        self,
        partitions: Callable[[], Sequence[PartitionView]],
        commit_times: Callable[[], Mapping[str, CommitTimes]] = dict,
        state: StateLock | None = None,
        committed: Callable[[], Mapping[int, int]] = dict,
        shown: Callable[[str], bool] | None = None,
        suites: Sequence[Suite] = (),
        prices: Prices = MappingProxyType({}),
    ) -> None:
        super().__init__(partitions, shown, suites, prices)
        self._commit_times, self._committed = commit_times, committed
        self._state = state or StateLock()
        self._reports: KeptResults[Any] = KeptResults(_MAX_REPORTS, self._offsets, _REPORT_COOLDOWN)
        self._pairs: KeptResults[LivePairs] = KeptResults(_MAX_LIVE_PAIRS, self._offsets)
        self._unions: KeptResults[BoardView] = KeptResults(_MAX_LIVE_PAIRS, self._offsets)
        """The members of suites, as one benchmark each."""
        self.whole = self
        """The reports of every benchmark; the same object unless `readable_by` made this one."""

    async def read(
        self, work: Callable[[], _Result], names: Iterable[str] | None = None, pairs: Which = "all"
    ) -> _Result:
        """Run work that reads some benchmarks (None: all): at once if they are small, else in a thread while the state does not change.

        `pairs` are those that it reports.
        """
        wanted = None if names is None else self._with_members(names := list(names))
        read = [source for name in (self.names() if names is None else names) for source in self._sources(name)]
        if sum(map(_cost, read)) > (_QUICK_PAIRS if pairs == "all" else _QUICK_NEIGHBOURS):
            # The thread goes on where its request is cancelled, and the state must not change under it.
            return await asyncio.shield(asyncio.create_task(self._read_in_thread(work, wanted)))
        async with self._state.read():
            await asyncio.sleep(0)  # the loop is not held by many readers in a row: others have their turns between two
            return self._read(work, wanted)

    async def read_briefly(self, work: Callable[[], _Result], names: Iterable[str] | None = None) -> _Result:
        """Run work that computes hardly anything, also of large benchmarks: it waits for the change under way, and for no reader."""
        wanted = None if names is None else self._with_members(names)
        return await self._state.read_briefly(lambda: self._read(work, wanted))

    async def _read_in_thread(self, work: Callable[[], _Result], names: list[str] | None) -> _Result:
        async with self._state.read():
            self._note_position(names)
            return await in_background(work)

    def _read(self, work: Callable[[], _Result], names: list[str] | None) -> _Result:
        self._note_position(names)
        return work()

    def _note_position(self, names: list[str] | None) -> None:
        """Record the offsets of the partitions that are read as those of the current request."""
        partitions = self._partitions()
        if names is not None:
            partitions = [each for each in partitions if any(map(each.is_ours, names))]
        note_position({each.number: each.off for each in partitions}, self._committed())

    def committed(self, partition: int) -> int:
        """Return the offset up to which the store holds a partition, as far as this process knows."""
        return self._committed().get(partition, 0)

    def commit_times(self, name: str) -> CommitTimes:
        """Return the commit times of a benchmark; empty if none is recorded."""
        return self._commit_times().get(name) or CommitTimes()

    def clear(self) -> None:
        """Drop everything, for benchmarks have moved to another worker."""
        for kept in (self._reports, self._pairs, self._unions):
            kept.clear()

    def find(self, name: str) -> BoardView | None:
        """Return a benchmark, or the union of the members of a suite; None if there is none. Use it while the state does not change."""
        if name not in self._suites:
            return self.benchmark(name)
        suite = self.suite(name)
        if suite is None:
            return None

        def unite() -> BoardView:
            return suite_board(suite, self._every_benchmark(), assert_complete=False)

        return self._unions.get((name, self.revision), self._sources(name), unite)

    def _view(self, benchmark: BoardView, pairs: Which) -> ReportView:
        table = self._live_pairs(benchmark).table
        if benchmark.suite is None:
            view = table_view(table, pairs)
            return replace(view, report=priced_report(view.report, self.prices))
        return suite_view(benchmark.suite, self._every_benchmark(), table, pairs)

    def benchmark_report(self, name: str, pairs: Which = "adjacent") -> BenchmarkReport | None:
        """Return the report of a benchmark, or None if there is no such benchmark."""
        benchmark = self.find(name)
        return None if benchmark is None else self._view(benchmark, pairs).report

    def goal(self, name: str) -> GoalReport | None:
        """Return the declared goal of a benchmark with its costs, or None without one."""
        benchmark = self.benchmark(name)
        goal = None if benchmark is None else goal_report(self._live_pairs(benchmark).table)
        return None if goal is None else priced(goal, self.prices)

    def board(self, name: str, low_coverage: float) -> tuple[BenchmarkReport, TieBands] | None:
        """Return the report of a benchmark with its neighbours, and its ties, or None if there is no such benchmark."""
        benchmark = self.find(name)
        return None if benchmark is None else self._board(benchmark, low_coverage)

    def boards(self, low_coverage: float) -> list[tuple[BenchmarkReport, TieBands]]:
        """Return what `board` returns of each suite and benchmark, suites first, then by name; that of a large one may be slightly old."""
        boards = (
            self._listed(name, f"board {low_coverage}", lambda benchmark: self._board(benchmark, low_coverage))
            for name in self.names()
        )
        return [board for board in boards if board is not None]

    def _board(self, benchmark: BoardView, low_coverage: float) -> tuple[BenchmarkReport, TieBands]:
        view = self._view(benchmark, "adjacent")
        return view.report, tie_bands(view.table, low_coverage)

    def _listed(self, name: str, what: str, compute: Callable[[BoardView], _Result]) -> _Result | None:
        """Return what a list shows of a benchmark, or None if there is no such benchmark; that of a large one may be slightly old."""
        if self.origin(name) is None:
            return None

        def result() -> _Result:
            benchmark = self.find(name)
            assert benchmark is not None
            return compute(benchmark)

        sources = self._sources(name)
        boards = tuple(source.board for source in sources)  # an archive is shown at once
        key = name, what, boards, self._hides(name), self.revision
        kept: _Result = self._reports.get(key, sources, result)
        return kept

    def origin(self, name: str) -> Origin | None:
        """Return the state from which a benchmark or a suite is reported; None if there is no such benchmark."""
        sources = self._sources(name)
        if not sources and self.find(name) is None:
            return None
        version = self._hides(name), *(source.version for source in sources)
        return Origin(tuple(source.origin for source in sources), version, self._offsets(sources))

    def list_origin(self) -> Origin:
        """Return the state from which all benchmarks are listed."""
        offsets = {each.number: each.off for each in self.partitions}
        return Origin(tuple(each.state for each in self.partitions), tuple(offsets.items()), offsets)

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        """Record that the answer to the current request shows partitions as of these offsets."""
        note_position(offsets, self._committed())

    def report(self, pairs: Which = "adjacent", names: Iterable[str] | None = None) -> Report:
        """Return the reports of some suites and benchmarks (None: all), suites first, then by name."""
        chosen = self.names() if names is None else names
        reports = (self._listed(name, pairs, lambda benchmark: self._view(benchmark, pairs).report) for name in chosen)
        return Report(benchmarks=[report for report in reports if report is not None])

    def pair_table(self, benchmark: BoardView) -> PairTable:
        """Return the current pairs of a benchmark: those in memory, or new ones that are not kept."""
        kept = self._pairs.current((benchmark.name, False), (benchmark,))
        return PairTable(benchmark) if kept is None else kept.table

    def accepts(self, name: str, offset: int) -> bool:
        """Return whether the current request may be answered with a benchmark as of an offset of its partition."""
        partition = self.partition_of(name)
        return partition is None or accepts(partition.number, offset)

    def note_older(self, name: str, offset: int) -> None:
        """Record that the answer to the current request shows a benchmark as of an earlier offset of its partition."""
        partition = self.partition_of(name)
        if partition is not None:
            note_older(partition.number, offset)

    def news(self, name: str, pairs: Collection[PairNames]) -> BoardNews | None:
        """Return what a board adds to verdict changes of some pairs, or None if there is no such benchmark."""
        benchmark = self.benchmark(name)
        return None if benchmark is None else board_news(self._live_pairs(benchmark).table, pairs)

    def live_pairs(self, name: str) -> LivePairs | None:
        """Return the current pairs of a benchmark, or None if there is no such benchmark."""
        benchmark = self.find(name)
        if benchmark is None:
            return None
        return self._live_pairs(benchmark)

    def _live_pairs(self, benchmark: BoardView) -> LivePairs:
        """Return the current pairs of a benchmark: one table, which reports and metrics share."""
        key = benchmark.name, benchmark.suite is not None
        # A table of the largest benchmark takes some gigabytes, so it makes room for another one first.
        self._pairs.drop(key, lambda other: other.benchmark.pairs + benchmark.pairs > _MAX_PAIRS)
        return self._pairs.get(key, (benchmark,), lambda: LivePairs(benchmark))

    def summaries(self, names: Iterable[str] | None = None) -> list[BenchmarkSummary]:
        """Return a summary of some suites and benchmarks (None: all), suites first, then by name."""
        found = (
            self._listed(name, "summary", lambda suite: suite_summary(self._live_pairs(suite).table))
            if name in self._suites
            else self._own_summary(name)
            for name in (self.names() if names is None else names)
        )
        return [summary for summary in found if summary is not None]

    def _own_summary(self, name: str) -> BenchmarkSummary | None:
        benchmark = self.benchmark(name)
        return None if benchmark is None else benchmark.once(board_summary)


def _cost(benchmark: BoardView) -> int:
    """Return what reading a benchmark costs, in pairs."""
    return benchmark.pairs + benchmark.rows * len(benchmark.contestants) // _CELLS_A_PAIR

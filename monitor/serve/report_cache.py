"""Compute reports from the state on request."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeVar

import numpy as np

from monitor.background import in_background
from monitor.serve.cache import Cache, Origin
from monitor.serve.log_position import note_position
from monitor.serve.shown_boards import ShownBoards
from monitor.state_lock import StateLock
from monitor.store.commit_times import CommitTimes
from monitor.view.board import BoardView
from monitor.view.build import ReportView, Which, board_report, order_report, table_view
from monitor.view.live_pairs import LivePairs
from monitor.view.news import BoardNews, PairNames, board_news
from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import PartitionView
from monitor.view.ranking.goal import goal_report, priced, priced_report
from monitor.view.ranking.suite import suite_board
from monitor.view.ranking.tie_bands import TieBands, tie_bands
from monitor.view.reasons import partial
from monitor.words.order import because
from schemas.records.prices import Prices
from schemas.records.suites import Suite
from schemas.results.api import BenchmarkSummary
from schemas.results.report import BenchmarkReport, GoalReport, Report
from stats.numerics.pairs import pair_count, pair_members

_Result = TypeVar("_Result")

_KEPT_BYTES: Final = 64_000_000  # answers in memory, and what lists and metrics show of each benchmark

_KEPT_PAIRS: Final = 1_000_000
"""Pairs in memory of all tables: a thousand models have half a million, which take some gigabytes."""

_LEAST_PAIRS: Final = _KEPT_PAIRS // 8  # what a table counts for at least: so there are at most 8

_MODEL_BYTES: Final = 5_000  # what a report and its ties take in memory for each model

_QUICK_PAIRS: Final = 2_000
"""So many pairs are reported at once; more in a thread, so that other requests are served meanwhile."""

_QUICK_NEIGHBOURS: Final = 6_000
"""The same for work that reports only neighbours in rank: most pairs enter statistics, but make no row."""

_CELLS_A_PAIR: Final = 1_000  # scores of which reading costs about as much as the statistics of a pair


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
        self.cache = Cache(_KEPT_BYTES)  # answers, and what lists and metrics show of each benchmark
        self._tables = Cache(_KEPT_PAIRS)
        """Tables of pairs, and the members of suites, as one benchmark each: only of the current state."""
        self.whole = self  # the reports of every benchmark; the same object unless `readable_by` made this one

    async def read(
        self, work: Callable[[], _Result], names: Iterable[str] | None = None, pairs: Which = "all"
    ) -> _Result:
        """Run work that reads some benchmarks (None: all): at once if they are small, else in a thread while the state does not change."""
        # `pairs` are those that it reports.
        wanted = None if names is None else self._with_members(names := list(names))

        def cost() -> int:
            shown = self.names() if names is None else names
            return sum(_cost(each) for name in shown for each in self._sources(name))

        most = _QUICK_PAIRS if pairs == "all" else _QUICK_NEIGHBOURS
        if await self._state.read_briefly(cost) > most:
            # The thread goes on where its request is cancelled, and the state must not change under it.
            return await asyncio.shield(asyncio.create_task(self._read_in_thread(work, wanted)))
        async with self._state.read():
            await asyncio.sleep(0)  # the loop is not held by many readers in a row: others have their turns between two
            return self._read(work, wanted)

    async def read_briefly(self, work: Callable[[], _Result], names: Iterable[str] | None = None) -> _Result:
        """Run work that computes hardly anything, also of large benchmarks: it waits for the change under way, and for no reader."""
        wanted = None if names is None else self._with_members(names)
        return await self._state.read_briefly(lambda: self._read(work, wanted))

    async def at_rest(self) -> None:
        """Wait until no thread changes the state: look-ups that do not `read` may follow, until the next await."""
        await self._state.at_rest()

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
        self.cache.clear()
        self._tables.clear()

    def find(self, name: str) -> BoardView | None:
        """Return a benchmark, or the union of the members of a suite; None if there is none. Use it while the state does not change."""
        if name not in self._suites:
            return self.benchmark(name)
        suite = self.suite(name)
        if suite is None:
            return None

        def unite() -> BoardView:
            return suite_board(suite, self._every_benchmark(), assert_complete=False)

        origin = self.origin_of(name, self._sources(name))
        return self._tables.get(("union", name, self.revision), origin, unite, size=_LEAST_PAIRS, most_seconds=0)

    def _view(self, benchmark: BoardView, pairs: Which) -> ReportView:
        view = table_view(self._live_pairs(benchmark).table, pairs)
        return replace(view, report=priced_report(view.report, self.prices))

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
            self._listed(name, f"board {low_coverage}", lambda found: self._board(found, low_coverage), _MODEL_BYTES)
            for name in self.names()
        )
        return [board for board in boards if board is not None]

    def _board(self, benchmark: BoardView, low_coverage: float) -> tuple[BenchmarkReport, TieBands]:
        view = self._view(benchmark, "adjacent")
        return view.report, tie_bands(view.table, low_coverage)

    def listed_reports(self, names: Iterable[str], pairs: Which) -> bytes:
        """Return the reports of some suites and benchmarks as JSON; that of a large one may be slightly old."""
        reports = (self._listed(name, pairs, lambda found: self._view(found, pairs).report.as_json()) for name in names)
        return b'{"benchmarks":[%b]}' % b",".join(filter(None, reports))

    def listed_summaries(self, names: Iterable[str]) -> bytes:
        """Return the summaries of some suites and benchmarks as JSON; that of a large suite may be slightly old."""
        summaries = (self._listed(name, "summary", lambda found: self._summary(found).as_json()) for name in names)
        return b"[%b]" % b",".join(filter(None, summaries))

    def _summary(self, benchmark: BoardView) -> BenchmarkSummary:
        if benchmark.suite is None:
            return _summary(benchmark, _decided_pairs(benchmark))
        sides = self._live_pairs(benchmark).table.decided("anytime_family")
        return _summary(benchmark, 0 if sides is None else int(np.count_nonzero(sides)))

    def _listed(
        self, name: str, what: str, compute: Callable[[BoardView], _Result], model_bytes: int = 0
    ) -> _Result | None:
        """Return what a list shows of a benchmark, or None if there is no such benchmark; that of a large one may be slightly old."""
        origin = self.origin(name)
        if origin is None:
            return None

        def result() -> _Result:
            benchmark = self.find(name)
            assert benchmark is not None
            return compute(benchmark)

        sources = self._sources(name)
        boards = tuple(source.board for source in sources)  # an archive is shown at once
        key = name, what, boards, self._hides(name), self.revision
        size = model_bytes * sum(len(source.contestants) for source in sources)
        return self.cache.get(key, origin, result, size=size)

    def origin(self, name: str) -> Origin | None:
        """Return the state from which a benchmark or a suite is reported; None if there is no such benchmark."""
        sources = self._sources(name)
        if not sources and self.find(name) is None:
            return None
        return self.origin_of(name, sources)

    def origin_of(self, name: str, sources: Iterable[BoardView]) -> Origin:
        """Return the current state of some sources of what is reported under a name."""
        sources = tuple(sources)
        version = self._hides(name), *(source.version for source in sources)
        return Origin(tuple(source.origin for source in sources), version, self._offsets(sources))

    def list_origin(self) -> Origin:
        """Return the state from which all benchmarks are listed."""
        offsets = {each.number: each.off for each in self.partitions}
        return Origin(tuple(each.state for each in self.partitions), tuple(offsets.items()), offsets)

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        """Record that the answer to the current request shows partitions as of these offsets."""
        note_position(offsets, self._committed())

    def report(self, pairs: Which = "adjacent") -> Report:
        """Return the reports of all suites and benchmarks as they are now, suites first, then by name."""
        reports = (self.benchmark_report(name, pairs) for name in self.names())
        return Report(benchmarks=[report for report in reports if report is not None])

    def pair_table(self, benchmark: BoardView) -> PairTable:
        """Return the current pairs of a benchmark: those in memory, or new ones that are not kept."""
        kept = self._tables.current(
            ("pairs", benchmark.name, False, self.revision), self.origin_of(benchmark.name, (benchmark,))
        )
        return PairTable(benchmark) if kept is None else kept.result.table

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
        name, is_suite = benchmark.name, benchmark.suite is not None
        origin = self.origin_of(name, self._sources(name) if is_suite else (benchmark,))
        key, size = ("pairs", name, is_suite, self.revision), max(benchmark.pairs, _LEAST_PAIRS)
        return self._tables.get(key, origin, lambda: LivePairs(benchmark), size=size, most_seconds=0)


def _cost(benchmark: BoardView) -> int:
    """Return what reading a benchmark costs, in pairs."""
    return benchmark.pairs + benchmark.rows * len(benchmark.contestants) // _CELLS_A_PAIR


def _summary(benchmark: BoardView, decided: int) -> BenchmarkSummary:
    models = len(benchmark.latest_epoch)
    return BenchmarkSummary(
        benchmark=benchmark.name,
        items=benchmark.items,
        events=benchmark.counters["events"],
        models=models,
        pairs=pair_count(models),
        decided=decided,
        order=order_report(benchmark),
        rejected=benchmark.counters["rejected"],
        conflicts=benchmark.counters["conflicts"],
        partial=because(partial(benchmark)),
        board=board_report(benchmark),
        members=None if benchmark.members is None else list(benchmark.members),
        battles=benchmark.battles is not None,
        newcomers=sum(each.generation == benchmark.generation for each in (benchmark.spec.admissions or {}).values()),
        sentinel=benchmark.drift is not None,
    )


def _decided_pairs(benchmark: BoardView) -> int:
    """Count the pairs of current models with a family-wise verdict."""
    if not benchmark.assumption_holds:
        return 0
    latched = np.flatnonzero(benchmark.latched["anytime_family"])
    i, j = pair_members(latched)
    current = benchmark.current()
    return int((current[i] & current[j]).sum())

"""Compute reports from the state on request."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Self, TypeVar

import numpy as np
from fastapi import Query

from monitor.background import in_background
from monitor.serve.api.problems import ProblemError, unknown_benchmark
from monitor.serve.cache import Cache, Origin
from monitor.serve.log_position import note_position
from monitor.state_lock import StateLock
from monitor.store.layout import CommitTimes
from monitor.view.board import BoardView
from monitor.view.build import MAX_REPORT_PAIRS, ReportView, Which, board_report, order_report, table_view
from monitor.view.live_pairs import LivePairs
from monitor.view.news import board_news
from monitor.view.pairs.table import PairTable
from monitor.view.partition_view import PartitionView
from monitor.view.ranking.goal import goal_report, priced, priced_report
from monitor.view.ranking.standings import tie_bands
from monitor.view.ranking.suite import suite_board
from monitor.view.reasons import partial
from monitor.view.values import BoardNews, PairNames, TieBands
from monitor.words.order import because
from schemas.records.names import MAX_NAME_LENGTH
from schemas.records.prices import Prices
from schemas.records.suites import Suite
from schemas.records.text import shorten
from schemas.results.api import BenchmarkSummary
from schemas.results.report import BenchmarkReport, GoalReport, Report
from stats.numerics.pairs import pair_count, pair_members


def _everything(_: str) -> bool:
    return True


class ShownAs:
    """The suites and prices of the settings, which may change; one object, which all callers share."""

    def __init__(self, suites: Iterable[Suite], prices: Prices) -> None:
        self.revision = 0
        self.change(suites, prices)

    def change(self, suites: Iterable[Suite], prices: Prices) -> None:
        """Take other suites and prices."""
        self.suites = {suite.name: suite for suite in suites}
        self.prices = prices
        self.revision += 1


class ShownBoards:
    """The benchmarks and suites of a process, as a caller sees them. To find one takes the same time however many there are."""

    def __init__(
        self,
        partitions: Callable[[], Sequence[PartitionView]],
        shown: Callable[[str], bool] | None = None,
        suites: Sequence[Suite] = (),
        prices: Prices = MappingProxyType({}),
    ) -> None:
        self._partitions, self._shown = partitions, shown or _everything
        self._shown_as = ShownAs(suites, prices)
        self.may_read: Callable[[str], bool] = _everything

    def readable_by(self, may_read: Callable[[str], bool]) -> Self:
        """Return what a caller sees: a benchmark that it may not read does not exist. Results are shared."""
        seen = copy(self)
        seen.may_read = may_read
        return seen

    def show_as(self, suites: Iterable[Suite], prices: Prices) -> None:
        """Show other suites, and costs of goals by other prices, from now on."""
        self._shown_as.change(suites, prices)

    @property
    def revision(self) -> int:
        """Differs after each change of the suites and prices."""
        return self._shown_as.revision

    @property
    def prices(self) -> Prices:
        """The price of an item by model."""
        return self._shown_as.prices

    @property
    def _suites(self) -> Mapping[str, Suite]:
        return self._shown_as.suites

    @property
    def partitions(self) -> Sequence[PartitionView]:
        """The current partitions."""
        return self._partitions()

    def owns(self, name: str) -> bool:
        """Return whether a benchmark belongs to a partition of this process, if it exists."""
        return self.partition_of(name) is not None

    def partition_of(self, name: str) -> PartitionView | None:
        """Return the current partition to which a benchmark belongs, or None."""
        return next((partition for partition in self._partitions() if partition.is_ours(name)), None)

    @property
    def suites(self) -> list[Suite]:
        """The suites that are shown and may be read: a caller may read the suite, and every member."""
        return list(filter(self._is_readable, self._suites.values()))

    def suite(self, name: str) -> Suite | None:
        """Return a suite that is shown and may be read, or None."""
        suite = self._suites.get(name)
        return suite if suite is not None and self._is_readable(suite) else None

    def _is_readable(self, suite: Suite) -> bool:
        return self._shown(suite.name) and all(map(self.may_read, (suite.name, *suite.members)))

    def names(self) -> list[str]:
        """Return the names of everything that is reported: suites, then benchmarks, each by name."""
        own = (name for each in self._partitions() for name in each.names() if name not in self._suites)
        return sorted(suite.name for suite in self.suites) + sorted(filter(self.may_show, own))

    def has(self, name: str) -> bool:
        """Return whether `names` has a name."""
        return self.suite(name) is not None if name in self._suites else self.benchmark(name) is not None

    def own_benchmarks(self, partition: int | None = None) -> dict[str, BoardView]:
        """Return the benchmarks, of one partition or of all, that may be read and that no suite of the same name is shown in place of."""
        return {name: benchmark for name, benchmark in self.benchmarks(partition).items() if name not in self._suites}

    def benchmarks(self, partition: int | None = None) -> dict[str, BoardView]:
        """Return the benchmarks, of one partition or of all, with a state of their own that may be read, by name."""
        benchmarks = self._every_benchmark(partition)
        if self._shown is _everything and self.may_read is _everything:
            return benchmarks
        return {name: each for name, each in benchmarks.items() if self.may_show(name)}

    def may_show(self, name: str) -> bool:
        """Return whether a benchmark, if it exists, is shown and may be read."""
        return self._shown(name) and self.may_read(name)

    def benchmark(self, name: str) -> BoardView | None:
        """Return a benchmark with a state of its own that may be read, or None."""
        state = self._state_of(name)
        return state if state is not None and self.may_show(name) else None

    def _every_benchmark(self, partition: int | None = None) -> dict[str, BoardView]:
        partitions = [each for each in self._partitions() if partition is None or each.number == partition]
        return {name: board for each in partitions for name, board in each.boards()}

    def _state_of(self, name: str) -> BoardView | None:
        boards = (each.board(name) for each in self._partitions())
        return next((benchmark for benchmark in boards if benchmark is not None), None)

    def _with_members(self, names: Iterable[str]) -> list[str]:
        """Return names with each suite replaced by its members."""
        return [each for name in names for each in (self._suites[name].members if name in self._suites else (name,))]

    def _sources(self, name: str) -> tuple[BoardView, ...]:
        """Return the state from which something is reported: a benchmark, or the members of a suite that exist; empty if there is none."""
        if name in self._suites:
            suite = self.suite(name)
            members = () if suite is None else map(self._state_of, suite.members)
            return tuple(member for member in members if member is not None)
        benchmark = self.benchmark(name)
        return () if benchmark is None else (benchmark,)

    def _hides(self, name: str) -> bool:
        """Return whether a suite is shown in place of a benchmark of its name."""
        return name in self._suites and self._state_of(name) is not None

    def _offsets(self, sources: Iterable[BoardView]) -> dict[int, int]:
        """Return the offset up to which each partition of some benchmarks is folded."""
        partitions = (self.partition_of(benchmark.name) for benchmark in sources if benchmark.suite is None)
        return {partition.number: partition.off for partition in partitions if partition is not None}


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


Found = TypeVar("Found")

Name = Annotated[str, Query(min_length=1, max_length=MAX_NAME_LENGTH)]
Cursor = Annotated[str | None, Query(pattern=r"^[0-9]{1,9}$", description="`next_cursor` of the previous page")]

NEXT_CURSOR: Final = "Rankwatch-Next-Cursor"
"""Header of a page of a list that is not the last one: `cursor` of the next."""

TOO_MANY_PAIRS: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The answer would have more pairs than an answer may have. Page through them."}
}


def check_pairs(benchmarks: Iterable[BoardView], pairs: Which) -> None:
    """Raise the 409 for a report of too many pairs."""
    displayed = sum(
        pair_count(count) if pairs == "all" else count - 1 for b in benchmarks if (count := len(b.latest_epoch))
    )
    if displayed > MAX_REPORT_PAIRS:
        raise ProblemError(
            409,
            f"The report would have {displayed:,} pairs; it holds at most {MAX_REPORT_PAIRS:,}. Page through GET /api/v1/pairs instead, or "
            "ask for fewer benchmarks at once (limit), or for the neighbours only.",
        )


def found_benchmark(reports: ReportCache, name: str) -> BoardView:
    """Return a benchmark, or the union of the members of a suite, or raise the 404."""
    return _known(reports.find(name), name)


def own_benchmark(reports: ReportCache, name: str) -> BoardView:
    """Return a benchmark that has events of its own, or raise the 404."""
    suite = reports.suite(name)
    if suite is not None:
        members = ", ".join(map(shorten, suite.members))
        raise ProblemError(
            404, f"{name!r} is a suite, which has no events of its own. Name one of its members: {members}."
        )
    return _known(reports.benchmark(name), name)


def live_pairs(reports: ReportCache, name: str) -> LivePairs:
    """Return the pairs of a benchmark, or raise the 404."""
    return _known(reports.live_pairs(name), name)


def _known(found: Found | None, name: str) -> Found:
    if found is None:
        raise unknown_benchmark(name)
    return found


def rank_of(live: LivePairs, model: str) -> int:
    """Return the 0-based rank of a model, or raise the 404."""
    rank = live.place(model)
    if rank is None:
        raise ProblemError(
            404, f"Benchmark {live.benchmark.name!r} has no model {model!r}. GET /api/v1/matrix lists its models."
        )
    return rank

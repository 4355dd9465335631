"""Compute reports from the state on request, and keep them until the state changes."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from operator import is_
from threading import Lock
from time import monotonic
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from monitor.background import in_background
from monitor.engine.partition import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs.index import pair_count, pair_members
from monitor.report.build import ReportView, Which, board_report, order_report, suite_view, table_view
from monitor.report.live_pairs import LivePairs
from monitor.report.news import BoardNews, PairNames, board_news
from monitor.report.pairs.table import PairTable
from monitor.report.ranking.goal import goal_report, priced, priced_report
from monitor.report.ranking.suite import suite_benchmark
from monitor.report.ranking.tie_bands import TieBands, tie_bands
from monitor.report.sentences import partial
from monitor.serve.log_position import accepts, note_older, note_position
from monitor.state_lock import StateLock
from monitor.store.commit_times import CommitTimes
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

QUICK_SECONDS: Final = 0.2
"""Reports that take at most this long, those of a few hundred models, are computed for every list."""

_REPORT_COOLDOWN: Final = 1
"""Slower ones are reused for this many times their excess: the fold keeps half of the time."""

_QUICK_PAIRS: Final = 2_000
"""Statistics of so many pairs are computed at once; those of more in a thread, so that other requests are served meanwhile."""

_CELLS_A_PAIR: Final = 1_000
"""Scores of which reading costs about as much as the statistics of a pair."""


def _everything(_: str) -> bool:
    return True


class _Kept(NamedTuple):
    """A result, the state it was computed from, and until when it is reused although the state has changed."""

    sources: tuple[Benchmark, ...]
    version: tuple[object, ...]
    offsets: Mapping[int, int]
    """The offset up to which each partition was folded."""
    result: Any
    until: float


class Origin(NamedTuple):
    """The state from which a benchmark, or a suite, is reported.

    Attributes
    ----------
    sources : tuple of Benchmark
        The benchmark, or the members of the suite that exist.
    version : tuple
        Differs whenever one of them has changed since it was loaded.
    offsets : dict of int to int
        The offset up to which each of their partitions was folded.
    """

    sources: tuple[Benchmark, ...]
    version: tuple[object, ...]
    offsets: dict[int, int]


class ReportCache:
    """Reports of the benchmarks of a process.

    Parameters
    ----------
    partitions : callable
        Returns the current partitions.
    commit_times : callable, optional
        Returns the commit times by benchmark.
    state : StateLock, optional
        Held while the state changes.
    committed : callable, optional
        Returns the offset up to which the store holds each partition, where the state may be ahead of it.
    shown : callable, optional
        Returns whether a benchmark is shown, by name; default: all are.
    suites : sequence of Suite, optional
        Reported from the state of their members, where these are; each is shown in place of a benchmark of its name.
    prices : mapping of str to float, optional
        The price of an item by model, for the costs of goals.
    """

    def __init__(
        self,
        partitions: Callable[[], Sequence[Partition]],
        commit_times: Callable[[], Mapping[str, CommitTimes]] = dict,
        state: StateLock | None = None,
        committed: Callable[[], Mapping[int, int]] = dict,
        shown: Callable[[str], bool] | None = None,
        suites: Sequence[Suite] = (),
        prices: Prices = MappingProxyType({}),
    ) -> None:
        self._partitions, self._commit_times = partitions, commit_times
        self._committed, self._shown = committed, shown
        self._suites = {suite.name: suite for suite in suites}
        self.prices = prices
        self._state = state or StateLock()
        self._bookkeeping = Lock()
        """Held while the results below are looked up or dropped: a thread and the event loop may do so at once."""
        self._reports: dict[object, _Kept] = {}
        self._pairs: dict[object, _Kept] = {}
        self._summaries: WeakKeyDictionary[Benchmark, tuple[tuple[object, ...], BenchmarkSummary]] = WeakKeyDictionary()
        self._unions: dict[object, _Kept] = {}
        """The members of suites, as one benchmark each."""
        self.whole = self
        """The reports of every benchmark; the same object unless `readable_by` made this one."""
        self.may_read: Callable[[str], bool] = _everything

    def readable_by(self, may_read: Callable[[str], bool]) -> Self:
        """Return the reports as a caller sees them: a benchmark that it may not read does not exist. Results are shared."""
        seen = copy(self)
        seen.may_read = may_read
        return seen

    async def read(self, work: Callable[[], _Result], names: Iterable[str] | None = None) -> _Result:
        """Run work that reads some benchmarks (None: all): at once if they are small, else in a thread while the state does not change."""
        wanted = None if names is None else self._with_members(names := list(names))
        every = self._every_benchmark()
        read = [source for name in (self.names() if names is None else names) for source in self._among(every, name)]
        if sum(map(_cost, read)) > _QUICK_PAIRS:
            # The thread goes on where its request is cancelled, and the state must not change under it.
            return await asyncio.shield(asyncio.create_task(self._read_in_thread(work, wanted)))
        if not self._state.changing:
            return self._read(work, wanted)
        async with self._state:
            return self._read(work, wanted)

    async def _read_in_thread(self, work: Callable[[], _Result], names: list[str] | None) -> _Result:
        async with self._state:
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

    @property
    def partitions(self) -> Sequence[Partition]:
        """The current partitions."""
        return self._partitions()

    def committed(self, partition: int) -> int:
        """Return the offset up to which the store holds a partition, as far as this process knows."""
        return self._committed().get(partition, 0)

    def commit_times(self, name: str) -> CommitTimes:
        """Return the commit times of a benchmark; empty if none is recorded."""
        return self._commit_times().get(name) or CommitTimes()

    def clear(self) -> None:
        """Drop everything, for benchmarks have moved to another worker."""
        with self._bookkeeping:
            self._reports.clear()
            self._pairs.clear()
            self._unions.clear()

    def owns(self, name: str) -> bool:
        """Return whether a benchmark belongs to a partition of this process, if it exists."""
        return self.partition_of(name) is not None

    def partition_of(self, name: str) -> Partition | None:
        """Return the current partition to which a benchmark belongs, or None."""
        return next((partition for partition in self._partitions() if partition.is_ours(name)), None)

    @property
    def suites(self) -> list[Suite]:
        """The suites that are shown and may be read: a caller may read the suite, and every member."""
        return [
            suite
            for suite in self._suites.values()
            if (self._shown is None or self._shown(suite.name))
            and all(map(self.may_read, (suite.name, *suite.members)))
        ]

    def names(self) -> list[str]:
        """Return the names of everything that is reported: suites, then benchmarks, each by name."""
        suites = sorted(suite.name for suite in self.suites)
        return suites + sorted(self.own_benchmarks())

    def own_benchmarks(self, partition: int | None = None) -> dict[str, Benchmark]:
        """Return the benchmarks, of one partition or of all, that may be read and that no suite of the same name is shown in place of."""
        return {name: benchmark for name, benchmark in self.benchmarks(partition).items() if name not in self._suites}

    def benchmarks(self, partition: int | None = None) -> dict[str, Benchmark]:
        """Return the benchmarks, of one partition or of all, with a state of their own that may be read, by name."""
        shown = self._shown
        benchmarks = self._every_benchmark(partition)
        if shown is not None:
            benchmarks = {name: benchmark for name, benchmark in benchmarks.items() if shown(name)}
        if self.may_read is _everything:
            return benchmarks
        return {name: benchmark for name, benchmark in benchmarks.items() if self.may_read(name)}

    def _every_benchmark(self, partition: int | None = None) -> dict[str, Benchmark]:
        partitions = [each for each in self._partitions() if partition is None or each.number == partition]
        return {name: benchmark for each in partitions for name, benchmark in each.benchmarks.items()}

    def suite(self, name: str) -> Suite | None:
        """Return a suite that is shown and may be read, or None."""
        return next((suite for suite in self.suites if suite.name == name), None)

    def _with_members(self, names: Iterable[str]) -> list[str]:
        """Return names with each suite replaced by its members."""
        return [each for name in names for each in (self._suites[name].members if name in self._suites else (name,))]

    def _sources(self, name: str) -> tuple[Benchmark, ...]:
        """Return the state from which something is reported: a benchmark, or the members of a suite that exist; empty if there is none."""
        return self._among(self._every_benchmark(), name)

    def _among(self, every: Mapping[str, Benchmark], name: str) -> tuple[Benchmark, ...]:
        if name in self._suites:
            members = () if self.suite(name) is None else self._suites[name].members
            return tuple(every[member] for member in members if member in every)
        found = every.get(name)
        readable = found is not None and (self._shown is None or self._shown(name)) and self.may_read(name)
        return (found,) if found is not None and readable else ()

    def events(self) -> dict[str, int]:
        """Return the number of events of everything that is reported; of a suite, those of its members."""
        every = self._every_benchmark()
        return {name: sum(each.counters["events"] for each in self._among(every, name)) for name in self.names()}

    def find(self, name: str) -> Benchmark | None:
        """Return a benchmark, or the union of the members of a suite; None if there is none. Use it while the state does not change."""
        if name not in self._suites:
            return self.benchmarks().get(name)
        suite = self.suite(name)
        if suite is None:
            return None

        def unite() -> Benchmark:
            return suite_benchmark(suite, self._every_benchmark(), assert_complete=False)

        return self._keep(self._unions, name, self._sources(name), unite, 0, _MAX_LIVE_PAIRS)

    def _view(self, benchmark: Benchmark, pairs: Which) -> ReportView:
        table = self._live_pairs(benchmark).table
        if benchmark.suite is None:
            view = table_view(table, pairs)
            return ReportView(priced_report(view.report, self.prices), view.table)
        return suite_view(benchmark.suite, self._every_benchmark(), table, pairs)

    def benchmark_report(self, name: str, pairs: Which = "adjacent") -> BenchmarkReport | None:
        """Return the report of a benchmark, or None if there is no such benchmark."""
        benchmark = self.find(name)
        return None if benchmark is None else self._view(benchmark, pairs).report

    def goal(self, name: str) -> GoalReport | None:
        """Return the declared goal of a benchmark with its costs, or None without one."""
        benchmark = self.benchmarks().get(name)
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

    def _board(self, benchmark: Benchmark, low_coverage: float) -> tuple[BenchmarkReport, TieBands]:
        view = self._view(benchmark, "adjacent")
        return view.report, tie_bands(view.table, low_coverage)

    def _listed(self, name: str, what: str, compute: Callable[[Benchmark], _Result]) -> _Result | None:
        """Return what a list shows of a benchmark, or None if there is no such benchmark; that of a large one may be slightly old."""
        origin = self.origin(name)
        if origin is None:
            return None

        def result() -> _Result:
            benchmark = self.find(name)
            assert benchmark is not None
            return compute(benchmark)

        boards = tuple(source.board for source in origin.sources)  # an archive is shown at once
        key = name, what, boards, self._hides(name)
        return self._keep(self._reports, key, origin.sources, result, _REPORT_COOLDOWN, _MAX_REPORTS)

    def _hides(self, name: str) -> bool:
        """Return whether a suite is shown in place of a benchmark of its name."""
        return name in self._suites and name in self._every_benchmark()

    def origin(self, name: str) -> Origin | None:
        """Return the state from which a benchmark or a suite is reported; None if there is no such benchmark."""
        sources = self._sources(name)
        if not sources and self.find(name) is None:
            return None
        return Origin(sources, (self._hides(name), *map(state_version, sources)), self._offsets(sources))

    def note_offsets(self, offsets: Mapping[int, int]) -> None:
        """Record that the answer to the current request shows partitions as of these offsets."""
        note_position(offsets, self._committed())

    def report(self, pairs: Which = "adjacent", names: Iterable[str] | None = None) -> Report:
        """Return the reports of some suites and benchmarks (None: all), suites first, then by name."""
        chosen = self.names() if names is None else names
        reports = (self._listed(name, pairs, lambda benchmark: self._view(benchmark, pairs).report) for name in chosen)
        return Report(benchmarks=[report for report in reports if report is not None])

    def pair_table(self, benchmark: Benchmark) -> PairTable:
        """Return the current pairs of a benchmark: those in memory, or new ones that are not kept."""
        with self._bookkeeping:
            kept = self._pairs.get((benchmark.name, False))
        if kept is not None and kept.sources[0] is benchmark and kept.version == (state_version(benchmark),):
            table: PairTable = kept.result.table
            return table
        return PairTable(benchmark)

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
        benchmark = self.benchmarks().get(name)
        return None if benchmark is None else board_news(self._live_pairs(benchmark).table, pairs)

    def live_pairs(self, name: str) -> LivePairs | None:
        """Return the current pairs of a benchmark, or None if there is no such benchmark."""
        benchmark = self.find(name)
        if benchmark is None:
            return None
        return self._live_pairs(benchmark)

    def _live_pairs(self, benchmark: Benchmark) -> LivePairs:
        """Return the current pairs of a benchmark: one table, which reports and metrics share."""
        key = benchmark.name, benchmark.suite is not None
        with self._bookkeeping:
            for other in [other for other in self._pairs if other != key]:
                # A table of the largest benchmark takes some gigabytes, so it makes room for another one first.
                if self._pairs[other].result.benchmark.pairs + benchmark.pairs > _MAX_PAIRS:
                    del self._pairs[other]
        return self._keep(self._pairs, key, (benchmark,), lambda: LivePairs(benchmark), 0, _MAX_LIVE_PAIRS)

    def _keep(
        self,
        kept: dict[object, _Kept],
        key: object,
        sources: tuple[Benchmark, ...],
        compute: Callable[[], _Result],
        cooldown: float,
        most: int | None = None,
    ) -> _Result:
        """Return a kept result, computed again if the state has changed; drop the results that were requested longest ago beyond `most`."""
        version, start = tuple(map(state_version, sources)), monotonic()
        with self._bookkeeping:
            entry = kept.pop(key, None)
        if (
            entry is None
            or not _same(entry.sources, sources)
            or (entry.version != version and not (cooldown and start < entry.until and _accepted(entry)))
        ):
            entry = None  # two tables of a large benchmark do not fit
            result = compute()
            end = monotonic()
            entry = _Kept(
                sources,
                version,
                self._offsets(sources),
                result,
                end + cooldown * max(0.0, end - start - QUICK_SECONDS),
            )
        elif entry.version != version:
            for partition, offset in entry.offsets.items():
                note_older(partition, offset)
        with self._bookkeeping:
            kept[key] = entry
            if most is not None and len(kept) > most:
                del kept[next(iter(kept))]
        return entry.result  # type: ignore[no-any-return]

    def _offsets(self, sources: Iterable[Benchmark]) -> dict[int, int]:
        partitions = (self.partition_of(benchmark.name) for benchmark in sources if benchmark.suite is None)
        return {partition.number: partition.off for partition in partitions if partition is not None}

    def summaries(self, names: Iterable[str] | None = None) -> list[BenchmarkSummary]:
        """Return a summary of some suites and benchmarks (None: all), suites first, then by name."""
        benchmarks = self.benchmarks()
        found = (
            self._listed(name, "summary", self._suite_summary)
            if name in self._suites
            else self._own_summary(benchmarks[name])
            if name in benchmarks
            else None
            for name in (self.names() if names is None else names)
        )
        return [summary for summary in found if summary is not None]

    def _suite_summary(self, benchmark: Benchmark) -> BenchmarkSummary:
        sides = self._live_pairs(benchmark).table.decided("anytime_family")
        return _summary(benchmark, 0 if sides is None else int(np.count_nonzero(sides)))

    def _own_summary(self, benchmark: Benchmark) -> BenchmarkSummary:
        """Return the summary of a benchmark; kept until it changes, for lists have thousands of them."""
        version = state_version(benchmark)
        with self._bookkeeping:
            known = self._summaries.get(benchmark)
        if known is None or known[0] != version:
            known = version, _summary(benchmark, _decided_pairs(benchmark))
            with self._bookkeeping:
                self._summaries[benchmark] = known
        return known[1]


def _accepted(entry: _Kept) -> bool:
    return all(accepts(partition, offset) for partition, offset in entry.offsets.items())


def _same(one: tuple[Benchmark, ...], other: tuple[Benchmark, ...]) -> bool:
    """Return whether both hold the same benchmarks, as objects: one that was loaded again is another one."""
    return len(one) == len(other) and all(map(is_, one, other))


def _cost(benchmark: Benchmark) -> int:
    """Return what reading a benchmark costs, in pairs."""
    return benchmark.pairs + len(benchmark.rows) * len(benchmark.contestants) // _CELLS_A_PAIR


def state_version(benchmark: Benchmark) -> tuple[object, ...]:
    """Return what differs whenever a benchmark has changed since it was loaded."""
    return (benchmark.off, benchmark.revision, *benchmark.counters.values(), benchmark.spec)


def _summary(benchmark: Benchmark, decided: int) -> BenchmarkSummary:
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
        partial=partial(benchmark),
        board=board_report(benchmark),
        members=list(benchmark.suite.members) if benchmark.suite is not None else None,
        battles=benchmark.battles is not None,
    )


def _decided_pairs(benchmark: Benchmark) -> int:
    """Count the pairs of current models with a family-wise verdict."""
    if not benchmark.assumption_holds:
        return 0
    latched = np.flatnonzero(benchmark.latched["anytime_family"][: benchmark.pairs])
    i, j = pair_members(latched)
    current = benchmark.current()
    return int((current[i] & current[j]).sum())

"""Compute reports from the state on request, and keep them until the state changes."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from threading import Lock
from time import monotonic
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np

from monitor.background import in_background
from monitor.engine.partition import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs import pair_count, pair_members
from monitor.report.build import Which, board_report, order_report, table_view
from monitor.report.live_pairs import LivePairs
from monitor.report.metrics_view import MetricsView, metrics_view
from monitor.report.news import BoardNews, PairNames, board_news
from monitor.report.tie_bands import TieBands, tie_bands
from monitor.serve.log_position import note_older, note_position
from monitor.state_lock import StateLock
from monitor.store.commit_times import CommitTimes
from schemas.api import BenchmarkSummary
from schemas.report import BenchmarkReport, Report

_Result = TypeVar("_Result")

_MAX_LIVE_PAIRS: Final = 8
"""Benchmarks whose pairs stay in memory, those last requested: a thousand models have half a million pairs."""

_MAX_REPORTS: Final = 200
"""Reports that stay in memory, those last requested."""

_MAX_PAIRS: Final = 1_000_000
"""Pairs in memory of two benchmarks."""

QUICK_SECONDS: Final = 0.2
"""Statistics that take at most this long, those of a few hundred models, are computed for every scrape."""

COOLDOWN: Final = 10
"""Slower statistics are reused for this many times their excess, so that scrapes cannot take all of the worker's time."""

_REPORT_COOLDOWN: Final = 1
"""The same for reports: the fold keeps half of the time."""

_QUICK_PAIRS: Final = 2_000
"""Statistics of so many pairs are computed at once; those of more in a thread, so that other requests are served meanwhile."""

_CELLS_A_PAIR: Final = 1_000
"""Scores of which reading costs about as much as the statistics of a pair."""


def _everything(_: str) -> bool:
    return True


class _Kept(NamedTuple):
    """A result, the state it was computed from, and until when it is reused although the state has changed."""

    benchmark: Benchmark
    version: tuple[object, ...]
    offset: tuple[int, int] | None
    """The partition, and the offset up to which it was folded."""
    result: Any
    until: float


class ReportCache:
    """Reports of the benchmarks of this worker.

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
    """

    def __init__(
        self,
        partitions: Callable[[], Sequence[Partition]],
        commit_times: Callable[[], Mapping[str, CommitTimes]] = dict,
        state: StateLock | None = None,
        committed: Callable[[], Mapping[int, int]] = dict,
        shown: Callable[[str], bool] | None = None,
    ) -> None:
        self._partitions, self._commit_times = partitions, commit_times
        self._committed, self._shown = committed, shown
        self._state = state or StateLock()
        self._bookkeeping = Lock()
        """Held while the results below are looked up or dropped: a thread and the event loop may do so at once."""
        self._reports: dict[object, _Kept] = {}
        self._pairs: dict[object, _Kept] = {}
        self._metrics: dict[object, _Kept] = {}
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
        wanted = None if names is None else list(names)
        benchmarks = self.benchmarks()
        read = benchmarks.values() if wanted is None else [benchmarks[name] for name in wanted if name in benchmarks]
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
            self._metrics.clear()

    def owns(self, name: str) -> bool:
        """Return whether a benchmark belongs to this worker, if it exists."""
        return self.partition_of(name) is not None

    def partition_of(self, name: str) -> Partition | None:
        """Return the partition of this worker to which a benchmark belongs, or None."""
        return next((partition for partition in self._partitions() if partition.is_ours(name)), None)

    def benchmarks(self) -> dict[str, Benchmark]:
        """Return the benchmarks that may be read, by name."""
        shown = self._shown
        benchmarks = {
            name: benchmark
            for partition in self._partitions()
            for name, benchmark in partition.benchmarks.items()
            if shown is None or shown(name)
        }
        if self.may_read is _everything:
            return benchmarks
        return {name: benchmark for name, benchmark in benchmarks.items() if self.may_read(name)}

    def benchmark_report(self, name: str, pairs: Which = "adjacent") -> BenchmarkReport | None:
        """Return the report of a benchmark, or None if there is no such benchmark."""
        benchmark = self.benchmarks().get(name)
        if benchmark is None:
            return None
        return self._keep(
            self._reports,
            (name, pairs, benchmark.board),  # an archive is shown at once
            benchmark,
            lambda: table_view(self._live_pairs(benchmark).table, pairs).report,
            _REPORT_COOLDOWN,
            _MAX_REPORTS,
        )

    def board(self, name: str, low_coverage: float) -> tuple[BenchmarkReport, TieBands] | None:
        """Return the report of a benchmark with its neighbours, and its ties, or None if there is no such benchmark."""
        benchmark = self.benchmarks().get(name)
        if benchmark is None:
            return None

        def compute() -> tuple[BenchmarkReport, TieBands]:
            table = self._live_pairs(benchmark).table
            return table_view(table, "adjacent").report, tie_bands(table, low_coverage)

        return self._keep(
            self._reports, (name, "board", benchmark.board), benchmark, compute, _REPORT_COOLDOWN, _MAX_REPORTS
        )

    def report(self, pairs: Which = "adjacent") -> Report:
        """Return the report of every benchmark, by name."""
        reports = (self.benchmark_report(name, pairs) for name in sorted(self.benchmarks()))
        return Report(benchmarks=[report for report in reports if report is not None])

    def metrics_view(self, name: str) -> MetricsView:
        """Return the statistics for the metrics of a benchmark; those of a large one may be slightly old."""
        benchmark = self.benchmarks()[name]
        return self._keep(self._metrics, name, benchmark, lambda: self._metrics_view(benchmark), COOLDOWN)

    def _metrics_view(self, benchmark: Benchmark) -> MetricsView:
        return metrics_view(benchmark, table=self._live_pairs(benchmark).table)

    def news(self, name: str, pairs: Collection[PairNames]) -> BoardNews | None:
        """Return what a board adds to verdict changes of some pairs, or None if there is no such benchmark."""
        benchmark = self.benchmarks().get(name)
        return None if benchmark is None else board_news(self._live_pairs(benchmark).table, pairs)

    def live_pairs(self, name: str) -> LivePairs | None:
        """Return the current pairs of a benchmark, or None if there is no such benchmark."""
        benchmark = self.benchmarks().get(name)
        if benchmark is None:
            return None
        return self._live_pairs(benchmark)

    def _live_pairs(self, benchmark: Benchmark) -> LivePairs:
        """Return the current pairs of a benchmark: one table, which reports and metrics share."""
        with self._bookkeeping:
            for key in [key for key in self._pairs if key != benchmark.name]:
                # A table of the largest benchmark takes some gigabytes, so it makes room for another one first.
                if self._pairs[key].benchmark.pairs + benchmark.pairs > _MAX_PAIRS:
                    del self._pairs[key]
        return self._keep(self._pairs, benchmark.name, benchmark, lambda: LivePairs(benchmark), 0, _MAX_LIVE_PAIRS)

    def _keep(
        self,
        kept: dict[object, _Kept],
        key: object,
        benchmark: Benchmark,
        compute: Callable[[], _Result],
        cooldown: float,
        most: int | None = None,
    ) -> _Result:
        """Return a kept result, computed again if the state has changed; drop the results that were requested longest ago beyond `most`."""
        version, start = _version(benchmark), monotonic()
        with self._bookkeeping:
            entry = kept.pop(key, None)
        if (
            entry is None
            or entry.benchmark is not benchmark
            or (entry.version != version and (not cooldown or start >= entry.until))
        ):
            entry = None  # two tables of a large benchmark do not fit
            result = compute()
            end = monotonic()
            entry = _Kept(
                benchmark,
                version,
                self._offset(benchmark),
                result,
                end + cooldown * max(0.0, end - start - QUICK_SECONDS),
            )
        elif entry.version != version and entry.offset is not None:
            note_older(*entry.offset)
        with self._bookkeeping:
            kept[key] = entry
            if most is not None and len(kept) > most:
                del kept[next(iter(kept))]
        return entry.result  # type: ignore[no-any-return]

    def _offset(self, benchmark: Benchmark) -> tuple[int, int] | None:
        partition = self.partition_of(benchmark.name)
        return None if partition is None else (partition.number, partition.off)

    def summaries(self) -> list[BenchmarkSummary]:
        """Return a summary of each benchmark, by name."""
        return [_summary(benchmark) for _, benchmark in sorted(self.benchmarks().items())]


def _cost(benchmark: Benchmark) -> int:
    """Return what reading a benchmark costs, in pairs."""
    return benchmark.pairs + len(benchmark.rows) * len(benchmark.contestants) // _CELLS_A_PAIR


def _version(benchmark: Benchmark) -> tuple[object, ...]:
    return (benchmark.off, benchmark.revision, *benchmark.counters.values(), benchmark.spec)


def _summary(benchmark: Benchmark) -> BenchmarkSummary:
    models = len(benchmark.latest_epoch)
    return BenchmarkSummary(
        benchmark=benchmark.name,
        items=benchmark.items,
        events=benchmark.counters["events"],
        models=models,
        pairs=pair_count(models),
        decided=_decided_pairs(benchmark) if benchmark.assumption_holds else 0,
        order=order_report(benchmark),
        rejected=benchmark.counters["rejected"],
        conflicts=benchmark.counters["conflicts"],
        board=board_report(benchmark),
    )


def _decided_pairs(benchmark: Benchmark) -> int:
    """Count the pairs of current models with a family-wise verdict."""
    latched = np.flatnonzero(benchmark.latched["anytime_family"][: benchmark.pairs])
    i, j = pair_members(latched)
    current = benchmark.current()
    return int((current[i] & current[j]).sum())

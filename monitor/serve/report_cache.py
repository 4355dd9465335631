"""Compute reports from the state on request, and keep them until the state changes."""

from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Final

import numpy as np

from monitor.engine.partition import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.pairs import pair_count, pair_members
from monitor.report.build import Which, benchmark_report, order_report
from monitor.report.live_pairs import LivePairs
from monitor.report.metrics_view import MetricsView, metrics_view
from monitor.store.commit_times import CommitTimes
from schemas.api import BenchmarkSummary
from schemas.report import BenchmarkReport, Report

_MAX_LIVE_PAIRS: Final = 8
"""Benchmarks whose pairs stay in memory, those last requested: a thousand models have half a million pairs."""

QUICK_SECONDS: Final = 0.2
"""Statistics that take at most this long, those of a few hundred models, are computed for every scrape."""

COOLDOWN: Final = 10
"""Slower statistics are reused for this many times their excess, so that scrapes cannot take all of the worker's time."""


class ReportCache:
    """Reports of the benchmarks of this worker.

    Parameters
    ----------
    partitions : callable
        Returns the current partitions.
    commit_times : callable, optional
        Returns the commit times by benchmark.
    """

    def __init__(
        self,
        partitions: Callable[[], Sequence[Partition]],
        commit_times: Callable[[], Mapping[str, CommitTimes]] = dict,
    ) -> None:
        self._partitions, self._commit_times = partitions, commit_times
        self._reports: dict[tuple[str, Which], tuple[tuple[object, ...], BenchmarkReport]] = {}
        self._pairs: dict[str, tuple[tuple[object, ...], LivePairs]] = {}
        self._metrics: dict[str, tuple[tuple[object, ...], MetricsView, float]] = {}

    @property
    def partitions(self) -> Sequence[Partition]:
        """The current partitions."""
        return self._partitions()

    def commit_times(self, name: str) -> CommitTimes:
        """Return the commit times of a benchmark; empty if none is recorded."""
        return self._commit_times().get(name) or CommitTimes()

    def clear(self) -> None:
        """Drop everything, for benchmarks have moved to another worker."""
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
        """Return the benchmarks by name."""
        return {name: benchmark for p in self._partitions() for name, benchmark in p.benchmarks.items()}

    def benchmark_report(self, name: str, pairs: Which = "adjacent") -> BenchmarkReport | None:
        """Return the report of a benchmark, or None if there is no such benchmark."""
        benchmark = self.benchmarks().get(name)
        if benchmark is None:
            return None
        version = _version(benchmark)
        cached = self._reports.get((name, pairs))
        if cached is None or cached[0] != version:
            cached = self._reports[name, pairs] = version, benchmark_report(benchmark, pairs=pairs)
        return cached[1]

    def report(self, pairs: Which = "adjacent") -> Report:
        """Return the report of every benchmark, by name."""
        reports = (self.benchmark_report(name, pairs) for name in sorted(self.benchmarks()))
        return Report(benchmarks=[report for report in reports if report is not None])

    def metrics_view(self, name: str) -> MetricsView:
        """Return the statistics for the metrics of a benchmark; those of a large one may be slightly old."""
        benchmark = self.benchmarks()[name]
        version, start = _version(benchmark), monotonic()
        cached = self._metrics.get(name)
        if cached is None or (cached[0] != version and start >= cached[2]):
            view = metrics_view(benchmark)
            end = monotonic()
            cached = self._metrics[name] = version, view, end + COOLDOWN * max(0.0, end - start - QUICK_SECONDS)
        return cached[1]

    def live_pairs(self, name: str) -> LivePairs | None:
        """Return the current pairs of a benchmark, or None if there is no such benchmark."""
        benchmark = self.benchmarks().get(name)
        if benchmark is None:
            return None
        version = _version(benchmark)
        cached = self._pairs.pop(name, None)
        if cached is None or cached[0] != version or cached[1].benchmark is not benchmark:
            cached = version, LivePairs(benchmark)
        self._pairs[name] = cached
        if len(self._pairs) > _MAX_LIVE_PAIRS:
            del self._pairs[next(iter(self._pairs))]
        return cached[1]

    def summaries(self) -> list[BenchmarkSummary]:
        """Return a summary of each benchmark, by name."""
        return [_summary(benchmark) for _, benchmark in sorted(self.benchmarks().items())]


def _version(benchmark: Benchmark) -> tuple[object, ...]:
    return (benchmark.off, *benchmark.counters.values(), benchmark.spec)


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
    )


def _decided_pairs(benchmark: Benchmark) -> int:
    """Count the pairs of current models with a family-wise verdict."""
    latched = np.flatnonzero(benchmark.latched["anytime_family"][: benchmark.pairs])
    i, j = pair_members(latched)
    current = benchmark.current()
    return int((current[i] & current[j]).sum())

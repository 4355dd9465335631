"""The reports behind every surface, computed from the state when they are asked for and kept until it changes."""

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

_PAIRS: Final = 8
"""Benchmarks whose pairs are kept at hand: those last asked for. A thousand models have half a million pairs."""

QUICK_SECONDS: Final = 0.2
"""Statistics for the metrics that take no longer are computed for every scrape: those of a few hundred models."""

PATIENCE: Final = 10
"""What takes longer is kept for so many times what is beyond, or those who scrape would have the worker to themselves."""


class Board:
    """Reports of the benchmarks that this worker owns.

    Parameters
    ----------
    partitions : callable
        Returns the partitions as they are now.
    commit_times : callable, optional
        Returns the commit times by benchmark.
    """

    def __init__(
        self,
        partitions: Callable[[], Sequence[Partition]],
        commit_times: Callable[[], Mapping[str, CommitTimes]] = dict,
    ) -> None:
        self._partitions, self._commit_times = partitions, commit_times
        self._kept: dict[tuple[str, str, bool], tuple[tuple[object, ...], BenchmarkReport]] = {}
        self._pairs: dict[str, tuple[tuple[object, ...], LivePairs]] = {}
        self._followed: dict[str, tuple[tuple[object, ...], MetricsView, float]] = {}

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions as they are now."""
        return self._partitions()

    def commit_times(self, name: str) -> CommitTimes:
        """Return the commit times of a benchmark; empty where none is recorded."""
        return self._commit_times().get(name) or CommitTimes()

    def forget(self) -> None:
        """Drop what is kept: benchmarks have gone."""
        self._kept.clear()
        self._pairs.clear()
        self._followed.clear()

    def benchmarks(self) -> dict[str, Benchmark]:
        """Benchmarks by name."""
        return {name: benchmark for p in self._partitions() for name, benchmark in p.benchmarks.items()}

    def benchmark(
        self, name: str, pairs: Which = "adjacent", *, assert_complete: bool = False
    ) -> BenchmarkReport | None:
        """Return the report of a benchmark, or None if there is none of that name."""
        benchmark = self.benchmarks().get(name)
        if benchmark is None:
            return None
        state = _state(benchmark)
        kept = self._kept.get((name, pairs, assert_complete))
        if kept is None or kept[0] != state:
            kept = (state, benchmark_report(benchmark, pairs=pairs, assert_complete=assert_complete))
            self._kept[name, pairs, assert_complete] = kept
        return kept[1]

    def followed(self, name: str) -> MetricsView:
        """Return what the metrics tell of a benchmark that is there; of a large one, as it was shortly before."""
        benchmark = self.benchmarks()[name]
        state, begin = _state(benchmark), monotonic()
        kept = self._followed.get(name)
        if kept is None or (kept[0] != state and begin >= kept[2]):
            followed = metrics_view(benchmark)
            end = monotonic()
            kept = self._followed[name] = state, followed, end + PATIENCE * max(0.0, end - begin - QUICK_SECONDS)
        return kept[1]

    def report(self, pairs: Which = "adjacent", *, assert_complete: bool = False) -> Report:
        """Return the report of every benchmark, by name."""
        reports = (self.benchmark(name, pairs, assert_complete=assert_complete) for name in sorted(self.benchmarks()))
        return Report(benchmarks=[r for r in reports if r is not None])

    def pairs(self, name: str) -> LivePairs | None:
        """Return the pairs of a benchmark as they are now, or None if there is none of that name."""
        benchmark = self.benchmarks().get(name)
        if benchmark is None:
            return None
        state = _state(benchmark)
        kept = self._pairs.get(name)
        if kept is None or kept[0] != state or kept[1].benchmark is not benchmark:
            kept = (state, LivePairs(benchmark))
        self._pairs.pop(name, None)
        self._pairs[name] = kept
        if len(self._pairs) > _PAIRS:
            del self._pairs[next(iter(self._pairs))]
        return kept[1]

    def summaries(self) -> list[BenchmarkSummary]:
        """Return what a list shows of each benchmark, by name."""
        return [_summary(benchmark) for _, benchmark in sorted(self.benchmarks().items())]


def _state(benchmark: Benchmark) -> tuple[object, ...]:
    return (benchmark.off, *benchmark.counters.values(), benchmark.spec)


def _summary(benchmark: Benchmark) -> BenchmarkSummary:
    models = len(benchmark.latest_epoch)
    return BenchmarkSummary(
        benchmark=benchmark.name,
        items=benchmark.items,
        events=benchmark.counters["events"],
        models=models,
        pairs=pair_count(models),
        decided=_decided(benchmark) if benchmark.standing else 0,
        order=order_report(benchmark),
        rejected=benchmark.counters["rejected"],
        conflicts=benchmark.counters["conflicts"],
    )


def _decided(benchmark: Benchmark) -> int:
    """How many pairs of current models have a family-wise verdict."""
    latched = np.flatnonzero(benchmark.latched["anytime_family"][: benchmark.pairs])
    i, j = pair_members(latched)
    current = benchmark.current()
    return int((current[i] & current[j]).sum())

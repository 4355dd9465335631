"""The reports behind every surface, computed from the state when they are asked for and kept until it changes."""

from collections.abc import Callable, Sequence

from monitor.engine.benchmark import Benchmark
from monitor.engine.partition import Partition
from monitor.engine.report import Which, benchmark_report
from schemas.report import BenchmarkReport, Report


class Board:
    """Reports of the benchmarks that this worker owns.

    Parameters
    ----------
    partitions : callable
        Returns the partitions as they are now.
    """

    def __init__(self, partitions: Callable[[], Sequence[Partition]]) -> None:
        self._partitions = partitions
        self._kept: dict[tuple[str, str, bool], tuple[tuple[object, ...], BenchmarkReport]] = {}

    @property
    def partitions(self) -> Sequence[Partition]:
        """The partitions as they are now."""
        return self._partitions()

    def forget(self) -> None:
        """Drop what is kept: benchmarks have gone."""
        self._kept.clear()

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
        state = (benchmark.off, *benchmark.counters.values(), benchmark.spec)
        kept = self._kept.get((name, pairs, assert_complete))
        if kept is None or kept[0] != state:
            kept = (state, benchmark_report(benchmark, pairs=pairs, assert_complete=assert_complete))
            self._kept[name, pairs, assert_complete] = kept
        return kept[1]

    def report(self, pairs: Which = "adjacent", *, assert_complete: bool = False) -> Report:
        """Return the report of every benchmark, by name."""
        reports = (self.benchmark(name, pairs, assert_complete=assert_complete) for name in sorted(self.benchmarks()))
        return Report(benchmarks=[r for r in reports if r is not None])

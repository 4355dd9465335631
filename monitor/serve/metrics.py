"""Prometheus metrics, computed from the state at each scrape, so that nothing goes stale."""

from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from monitor.engine.delta import STATE_VERSION
from monitor.engine.latches import STATISTICS_VERSION
from monitor.serve import catalogue
from monitor.serve.board import Board
from schemas.report import BenchmarkReport, PairReport

SERIES_CAP: Final = 1_000
"""Most pairs of a benchmark with series of their own."""


class StateCollector(Collector):
    """Collects from the board; `log_end` returns the durable end of the log of each partition, by number."""

    def __init__(self, board: Board, log_end: Callable[[], dict[int, int]]) -> None:
        self._board, self._log_end = board, log_end

    def collect(self) -> Iterator[Metric]:
        """Yield every family of the catalogue."""
        families = {metric.name: _family(metric) for metric in catalogue.CATALOGUE if metric.kind != "info"}

        def add(metric: catalogue.Metric, value: float, *labels: str) -> None:
            families[metric.name].add_metric(labels, value)

        rejected = 0
        for partition in self._board.partitions:
            add(catalogue.LOG_POSITION, partition.off, str(partition.number))
            rejected += partition.counters["rejected"]
        for number, end in self._log_end().items():
            add(catalogue.LOG_END, end, str(number))
        add(catalogue.REJECTED, rejected, "")
        for name, benchmark in sorted(self._board.benchmarks().items()):
            report = self._board.benchmark(name)
            assert report is not None
            for counter in (catalogue.EVENTS, catalogue.DUPLICATES, catalogue.CONFLICTS, catalogue.REJECTED):
                add(counter, getattr(report, counter.name.removeprefix("rankwatch_")), name)
            add(catalogue.ITEMS, report.items, name)
            add(catalogue.MODELS, len(report.models), name)
            add(catalogue.PAIRS, len(report.models) * (len(report.models) - 1) // 2, name)
            add(catalogue.HELD, float(not benchmark.betting), name)
            for procedure, count in report.summary.undecided.items():
                add(catalogue.ADJACENT_UNDECIDED, count, name, procedure)
            for procedure, count in report.summary.unresolved.items():
                add(catalogue.ADJACENT_UNRESOLVED, count, name, procedure)
            for (procedure, kind), count in Counter((c.procedure, c.kind) for c in benchmark.changes.values()).items():
                add(catalogue.VERDICTS, count, name, procedure, kind)
            self._pairs(report, add)
        yield from families.values()
        yield _build()

    def _pairs(self, report: BenchmarkReport, add: Callable[..., None]) -> None:
        add(catalogue.PAIR_SERIES_OMITTED, max(0, len(report.pairs) - SERIES_CAP), report.benchmark)
        for pair in report.pairs[:SERIES_CAP]:
            _pair(report.benchmark, pair, add)


def _pair(benchmark: str, pair: PairReport, add: Callable[..., None]) -> None:
    """Add the series of one pair, in name order: labels must not swap when ranks do."""
    swap = pair.model_a > pair.model_b
    labels = (benchmark, pair.model_b, pair.model_a) if swap else (benchmark, pair.model_a, pair.model_b)
    sign = -1 if swap else 1
    add(catalogue.PAIR_ITEMS, pair.n, *labels)
    for metric, value, factor in (
        (catalogue.PAIR_GAP, pair.gap, sign),
        (catalogue.PAIR_LOG_E, pair.log_e, 1),
        (catalogue.PAIR_RESOLUTION, pair.resolution_ratio, 1),
    ):
        if value is not None:
            add(metric, factor * value, *labels)
    for procedure, side in pair.decided:
        add(catalogue.PAIR_DECIDED, {None: 0, "a": sign, "b": -sign}[side], *labels, procedure)


def _family(metric: catalogue.Metric) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return kind(metric.name, metric.help, labels=metric.labels)


def program_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("rankwatch")
    except PackageNotFoundError:
        return "unknown"


def _build() -> InfoMetricFamily:
    value = {
        "version": program_version(),
        "statistics_version": str(STATISTICS_VERSION),
        "state_version": str(STATE_VERSION),
    }
    return InfoMetricFamily(catalogue.BUILD.name, catalogue.BUILD.help, value=value)

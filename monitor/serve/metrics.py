"""Prometheus metrics, computed from the state at each scrape, so that nothing goes stale."""

from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from typing import Final, NamedTuple, get_args

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from monitor.engine.benchmark import PROCEDURES, Benchmark
from monitor.engine.delta import STATE_VERSION
from monitor.engine.followed import PAIR_CAP, Followed
from monitor.engine.latches import STATISTICS_VERSION
from monitor.engine.partition import Partition
from monitor.serve import catalogue
from monitor.serve.board import Board
from monitor.serve.catalogue import Metric
from monitor.serve.pair_series import add_pairs
from schemas.changes import Kind
from schemas.report import BenchmarkReport

MODEL_CAP: Final = 500
"""Most models of a benchmark with series of their own."""

Add = Callable[..., None]


class Worker(NamedTuple):
    """What the collector asks of the worker it is in."""

    mode: str
    topic: str
    group: str
    webhook: bool
    partitions: Callable[[], int]
    """How many the log has."""
    log_end: Callable[[], dict[int, int]]
    """The durable end of the log of each partition in hand."""
    ready: Callable[[], bool]


class StateCollector(Collector):
    """Collects from the board every family of the catalogue that is not among the worker's own meters."""

    def __init__(self, board: Board, worker: Worker) -> None:
        self._board, self._worker = board, worker

    def collect(self) -> Iterator[Family]:
        """Yield the families."""
        families = {m.name: _family(m) for m in catalogue.CATALOGUE if m in _OF_STATE}

        def add(metric: Metric, value: float, *labels: str) -> None:
            families[metric.name].add_metric(labels, value)

        ends = self._worker.log_end()
        rejected = 0
        for partition in self._board.partitions:
            _add_partition(partition, ends.get(partition.number), add)
            rejected += partition.counters["rejected"]
        add(catalogue.REJECTED, rejected, "")
        add(catalogue.PARTITIONS, self._worker.partitions())
        add(catalogue.READY, self._worker.ready())
        for name, benchmark in sorted(self._board.benchmarks().items()):
            _add_benchmark(benchmark, self._board.followed(name), add)
        yield from families.values()
        yield self._build()
        yield self._configuration()

    @staticmethod
    def _build() -> InfoMetricFamily:
        value = {
            "version": program_version(),
            "statistics_version": str(STATISTICS_VERSION),
            "state_version": str(STATE_VERSION),
        }
        return InfoMetricFamily(catalogue.BUILD.name, catalogue.BUILD.help, value=value)

    def _configuration(self) -> InfoMetricFamily:
        worker = self._worker
        value = {
            "mode": worker.mode,
            "topic": worker.topic,
            "group": worker.group,
            "pair_series_cap": str(PAIR_CAP),
            "webhook": "yes" if worker.webhook else "no",
        }
        return InfoMetricFamily(catalogue.CONFIGURATION.name, catalogue.CONFIGURATION.help, value=value)


_OF_PROCESS: Final = {
    catalogue.FOLD_SECONDS,
    catalogue.COMMIT_SECONDS,
    catalogue.CHUNK_RECORDS,
    catalogue.STALE_COMMITS,
    catalogue.STORE_UP,
    catalogue.BROKER_UP,
    catalogue.OUTBOX,
    catalogue.RELAYED,
    catalogue.RELAY_FAILURES,
    catalogue.SOURCE_GAP,
}
_OF_STATE: Final = set(catalogue.CATALOGUE) - _OF_PROCESS - {catalogue.BUILD, catalogue.CONFIGURATION}


def _add_partition(partition: Partition, end: int | None, add: Add) -> None:
    number = str(partition.number)
    counters = partition.counters
    add(catalogue.PARTITION_OWNED, 1, number)
    add(catalogue.LOG_POSITION, partition.off, number)
    if end is not None:
        add(catalogue.LOG_END, end, number)
        add(catalogue.LOG_LAG, max(0, end - partition.off), number)
    add(catalogue.RECORDS, counters["records"], number)
    add(catalogue.MISROUTED, counters["misrouted"], number)
    add(catalogue.REPUBLISHED, counters["republished"], number)
    rejected = counters["rejected"] + sum(b.counters["rejected"] for b in partition.benchmarks.values())
    add(catalogue.DEAD_LETTERS, rejected, number)


def _add_benchmark(benchmark: Benchmark, followed: Followed, add: Add) -> None:
    report, spec, name = followed.report, benchmark.spec, benchmark.name
    for counter in (catalogue.EVENTS, catalogue.DUPLICATES, catalogue.CONFLICTS, catalogue.REJECTED):
        add(counter, benchmark.counters[counter.name.removeprefix("rankwatch_")], name)
    add(catalogue.BENCHMARK_INFO, 1, name, spec.order.policy, spec.family.policy, spec.mixture)
    add(catalogue.OWNED, 1, name)
    if benchmark.at:
        add(catalogue.LAST_EVENT, benchmark.at, name)
    add(catalogue.ITEMS, report.items, name)
    if spec.items is not None:
        add(catalogue.ITEMS_DECLARED, spec.items, name)
    add(catalogue.ALPHA, spec.alpha, name)
    add(catalogue.MODELS, len(report.models), name)
    add(catalogue.PAIRS, followed.pairs, name)
    add(catalogue.HELD, not benchmark.betting, name)
    for procedure, count in followed.decided.items():
        add(catalogue.PAIRS_DECIDED, count, name, procedure)
    add(catalogue.PAIRS_EXHAUSTED, followed.exhausted, name)
    add(catalogue.BEYOND_CAPACITY, followed.beyond_capacity, name)
    _add_adjacent(report, add)
    changes: Counter[tuple[str, str]] = Counter((c.procedure, c.kind) for c in benchmark.changes.values())
    # All kinds, from 0 on: an increase has to begin somewhere.
    for procedure, kind in product(PROCEDURES, get_args(Kind)):
        add(catalogue.VERDICTS, changes[procedure, kind], name, procedure, kind)
    _add_models(report, add)
    add(catalogue.PAIR_SERIES_OMITTED, followed.omitted, name)
    add_pairs(benchmark, followed, add)


def _add_adjacent(report: BenchmarkReport, add: Add) -> None:
    """Count what is open among the adjacent pairs; the summary says which procedures were computed."""
    adjacent = [pair for pair in report.pairs if pair.adjacent]
    for procedure, count in report.summary.undecided.items():
        if procedure != "bonferroni_adjacent":  # which counts adjacent pairs alone as it is
            count = sum(getattr(pair.decided, procedure) is None for pair in adjacent)  # noqa: PLW2901
        add(catalogue.ADJACENT_UNDECIDED, count, report.benchmark, procedure)
    for procedure, count in report.summary.unresolved.items():
        if procedure != "bonferroni_adjacent":
            count = sum(not getattr(pair.resolved, procedure) for pair in adjacent)  # noqa: PLW2901
        add(catalogue.ADJACENT_UNRESOLVED, count, report.benchmark, procedure)


def _add_models(report: BenchmarkReport, add: Add) -> None:
    add(catalogue.MODELS_OMITTED, max(0, len(report.models) - MODEL_CAP), report.benchmark)
    for model in report.models[:MODEL_CAP]:
        for metric, value in (
            (catalogue.MODEL_RANK, model.rank),
            (catalogue.MODEL_RANK_LOW, model.rank_low),
            (catalogue.MODEL_RANK_HIGH, model.rank_high),
            (catalogue.MODEL_TIES, model.tie_group),
            (catalogue.MODEL_MEAN, model.mean),
            (catalogue.MODEL_MEAN_LOW, model.mean_low),
            (catalogue.MODEL_MEAN_HIGH, model.mean_high),
            (catalogue.MODEL_ITEMS, model.items),
        ):
            if value is not None:
                add(metric, value, report.benchmark, model.model)


def _family(metric: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return kind(metric.name if metric.kind == "counter" else metric.exposed, metric.help, labels=metric.labels)


def program_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("rankwatch")
    except PackageNotFoundError:
        return "unknown"

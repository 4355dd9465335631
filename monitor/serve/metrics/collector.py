"""Prometheus metrics, computed from the state at each scrape, so that nothing goes stale."""

from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import nan
from typing import Final, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from monitor.engine.latch.base import STATISTICS_VERSION
from monitor.engine.partition import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.engine.state.delta import STATE_VERSION
from monitor.report.metrics_view import PAIR_CAP, MetricsView
from monitor.serve.metrics import catalogue
from monitor.serve.metrics.exposition import Exposition, labelled
from monitor.serve.metrics.pair_series import add_pairs
from monitor.serve.report_cache import Board
from monitor.store.commit_times import CommitTimes
from schemas.report import ModelReport

MODEL_CAP: Final = 500
"""Most models of a benchmark with series of their own."""


class Worker(NamedTuple):
    """What the metrics ask of the worker they are in."""

    mode: str
    topic: str
    group: str
    webhook: bool
    partitions: Callable[[], int]
    """How many the log has."""
    log_end: Callable[[], dict[int, int]]
    """The durable end of the log of each partition in hand."""
    ready: Callable[[], bool]


class Metrics:
    """Everything of the catalogue: what the board and the worker tell, and what is in the registry of the worker's own meters."""

    def __init__(self, board: Board, worker: Worker, meters: CollectorRegistry) -> None:
        self._board, self._worker, self._meters = board, worker, meters

    def scrape(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics in the format that an Accept header asks for, and the type of that content."""
        encode, content_type = choose_encoder(accept)
        openmetrics = content_type.startswith("application/openmetrics-text")
        # The meters come last: what the client writes of them ends with the mark of the end.
        return self._collect().text(openmetrics=openmetrics) + encode(self._meters), content_type

    def _collect(self) -> Exposition:
        told = Exposition(metric for metric in catalogue.CATALOGUE if metric not in _OF_PROCESS)
        worker = self._worker
        ends = worker.log_end()
        for partition in self._board.partitions:
            _add_partition(partition, ends.get(partition.number), told)
        told.add(catalogue.REJECTED, sum(p.counters["rejected"] for p in self._board.partitions), "")
        told.add(catalogue.PARTITIONS, worker.partitions())
        told.add(catalogue.READY, worker.ready())
        for name, benchmark in sorted(self._board.benchmarks().items()):
            _add_benchmark(benchmark, self._board.followed(name), self._board.commit_times(name), told)
        told.add(catalogue.BUILD, 1, program_version(), str(STATISTICS_VERSION), str(STATE_VERSION))
        webhook = "yes" if worker.webhook else "no"
        told.add(catalogue.CONFIGURATION, 1, worker.mode, worker.topic, worker.group, str(PAIR_CAP), webhook)
        return told


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


def _add_partition(partition: Partition, end: int | None, told: Exposition) -> None:
    number = str(partition.number)
    counters = partition.counters
    told.add(catalogue.PARTITION_OWNED, 1, number)
    told.add(catalogue.LOG_POSITION, partition.off, number)
    if end is not None:
        told.add(catalogue.LOG_END, end, number)
        told.add(catalogue.LOG_LAG, max(0, end - partition.off), number)
    told.add(catalogue.RECORDS, counters["records"], number)
    told.add(catalogue.MISROUTED, counters["misrouted"], number)
    told.add(catalogue.REPUBLISHED, counters["republished"], number)
    rejected = counters["rejected"] + sum(b.counters["rejected"] for b in partition.benchmarks.values())
    told.add(catalogue.DEAD_LETTERS, rejected, number)


def _add_benchmark(benchmark: Benchmark, followed: MetricsView, times: CommitTimes, told: Exposition) -> None:
    spec, name = benchmark.spec, benchmark.name
    for counter in (catalogue.EVENTS, catalogue.DUPLICATES, catalogue.CONFLICTS, catalogue.REJECTED):
        told.add(counter, benchmark.counters[counter.name.removeprefix("rankwatch_")], name)
    told.add(catalogue.BENCHMARK_INFO, 1, name, spec.order.policy, spec.family.policy, spec.mixture)
    told.add(catalogue.OWNED, 1, name)
    if times.last:
        told.add(catalogue.LAST_EVENT, times.last, name)
    told.add(catalogue.ITEMS, benchmark.items, name)
    if spec.items is not None:
        told.add(catalogue.ITEMS_DECLARED, spec.items, name)
    told.add(catalogue.ALPHA, spec.alpha, name)
    told.add(catalogue.MODELS, len(followed.models), name)
    told.add(catalogue.PAIRS, followed.pairs, name)
    told.add(catalogue.HELD, not benchmark.betting, name)
    for metric, counts in (
        (catalogue.PAIRS_DECIDED, followed.decided),
        (catalogue.ADJACENT_UNDECIDED, followed.adjacent_undecided),
        (catalogue.ADJACENT_UNRESOLVED, followed.adjacent_unresolved),
    ):
        for procedure, count in counts.items():
            told.add(metric, count, name, procedure)
    told.add(catalogue.PAIRS_EXHAUSTED, followed.exhausted, name)
    told.add(catalogue.BEYOND_CAPACITY, followed.beyond_capacity, name)
    for (procedure, kind), count in followed.changes.items():
        told.add(catalogue.VERDICTS, count, name, procedure, kind)
    _add_models(name, followed.models, told)
    told.add(catalogue.PAIR_SERIES_OMITTED, followed.omitted, name)
    add_pairs(benchmark.name, followed, times, told)


def _add_models(benchmark: str, models: list[ModelReport], told: Exposition) -> None:
    told.add(catalogue.MODELS_OMITTED, max(0, len(models) - MODEL_CAP), benchmark)
    shown = models[:MODEL_CAP]
    series = [f"{labelled('benchmark', benchmark)},{labelled('model', model.model)}" for model in shown]
    for metric, field in (
        (catalogue.MODEL_RANK, "rank"),
        (catalogue.MODEL_RANK_LOW, "rank_low"),
        (catalogue.MODEL_RANK_HIGH, "rank_high"),
        (catalogue.MODEL_TIES, "tie_group"),
        (catalogue.MODEL_MEAN, "mean"),
        (catalogue.MODEL_MEAN_LOW, "mean_low"),
        (catalogue.MODEL_MEAN_HIGH, "mean_high"),
        (catalogue.MODEL_ITEMS, "items"),
    ):
        values = (getattr(model, field) for model in shown)
        told.add_column(metric, series, (nan if value is None else float(value) for value in values))


@cache
def program_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("rankwatch")
    except PackageNotFoundError:
        return "unknown"

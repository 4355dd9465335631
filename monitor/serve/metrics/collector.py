"""Compute the metrics from the state at each scrape, so that no value is stale."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from math import nan
from typing import NamedTuple, get_args

import structlog
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from monitor.serve.metrics import catalogue
from monitor.serve.metrics.budget import ALWAYS, MODEL_CAP, Allotment, add_pairs, allot, size_of, statistics_of
from monitor.serve.metrics.exposition import Exposition, label
from monitor.serve.report_cache import ReportCache
from monitor.serve.serving import Collect
from monitor.state_lock import StateTorn
from monitor.store.layout import CommitTimes
from monitor.view.board import BoardView
from monitor.view.metrics_view import PAIR_CAP, BoardCounts, MetricsView
from monitor.view.partition_view import PartitionView
from monitor.view.ranking.goal import priced
from schemas.records.prices import Prices
from schemas.records.versions import STATE_VERSION, STATISTICS_VERSION
from schemas.results.changes import PROCEDURES
from schemas.results.drift import DriftReport
from schemas.results.report import BenchmarkReport, GoalReport, ModelReport, SuiteMemberState

_log = structlog.get_logger()


class WorkerInfo(NamedTuple):
    """Facts about the worker that its metrics export."""

    mode: catalogue.Mode
    topic: str
    group: str
    webhook: bool
    partitions: Callable[[], int]  # returns the partition count of the log
    log_end: Callable[[], dict[int, int]]  # returns the durable end of the log, by owned partition
    ready: Callable[[], bool]
    series: Callable[[], int] = lambda: 80_000  # returns how many series about boards there are at most
    first: Callable[[str], bool] = lambda _: False
    """Returns whether the models and pairs of a benchmark come first, by name."""


class MetricsCollector:
    """Collects every metric of the catalogue: from the reports, the worker, and the registry of the process."""

    def __init__(self, reports: ReportCache, worker: WorkerInfo, registry: CollectorRegistry) -> None:
        self._reports, self._worker, self._registry = reports, worker, registry
        self._logged = False

    def scrape(self, accept: str, collect: Collect = "all") -> tuple[bytes, str]:
        """Return the metrics in the format that an Accept header requests, and their content type."""
        encode, content_type = choose_encoder(accept)
        openmetrics = content_type.startswith("application/openmetrics-text")
        # The registry comes last: its text ends with the OpenMetrics end marker.
        return self._collect(collect).text(openmetrics=openmetrics) + encode(self._registry), content_type

    def _collect(self, collect: Collect) -> Exposition:
        exposition = Exposition(
            metric for metric in catalogue.CATALOGUE if not metric.of_process and self._worker.mode in metric.modes
        )
        with suppress(StateTorn):  # raised ahead of any series
            self._add_folded(collect, exposition)
        worker = self._worker
        exposition.add(catalogue.PARTITIONS, worker.partitions())
        exposition.add(catalogue.READY, worker.ready())
        exposition.add(catalogue.BUILD, 1, program_version(), str(STATISTICS_VERSION), str(STATE_VERSION))
        webhook = "yes" if worker.webhook else "no"
        exposition.add(catalogue.CONFIGURATION, 1, worker.mode, worker.topic, worker.group, str(PAIR_CAP), webhook)
        return exposition

    def _add_folded(self, collect: Collect, exposition: Exposition) -> None:
        """Add the partitions and their benchmarks."""
        worker, partitions = self._worker, self._reports.partitions
        ends = worker.log_end()
        for partition in partitions:
            _add_partition(partition, ends.get(partition.number), exposition)
            if worker.mode != "serve":
                exposition.add(catalogue.PARTITION_OWNED, 1, str(partition.number))
            else:
                ahead = partition.off - self._reports.committed(partition.number)
                exposition.add(catalogue.UNCONFIRMED, max(0, ahead), str(partition.number))
        exposition.add(catalogue.REJECTED, sum(p.counters["rejected"] for p in partitions), "")
        benchmarks = self._reports.benchmarks()
        if collect == "all" and worker.mode in catalogue.READ_SIDE:
            for suite in self._reports.suites:
                _add_suite(self._reports.benchmark_report(suite.name), exposition)
            shown = self._allot(benchmarks, exposition).shown
            statistics = statistics_of(self._reports, benchmarks, shown)
            for name, benchmark in sorted(benchmarks.items()):
                times, prices = self._reports.commit_times(name), self._reports.prices
                _add_benchmark(benchmark, statistics[name], times, prices, exposition)
        for name in sorted(benchmarks):
            if worker.mode != "serve":
                exposition.add(catalogue.OWNED, 1, name)

    def _allot(self, benchmarks: dict[str, BoardView], exposition: Exposition) -> Allotment:
        """Share the budget of series, export it, and log once that it omits some."""
        series = self._worker.series()
        allotment = allot(list(map(size_of, benchmarks.values())), series, self._worker.first)
        exposition.add(catalogue.SERIES_BUDGET, series)
        exposition.add(catalogue.SERIES_OMITTED, allotment.omitted)
        if allotment.omitted and not self._logged:
            self._logged = True
            _log.warning(
                "series of metrics omitted; raise metrics_series, or name boards in metrics_first",
                omitted=allotment.omitted,
                metrics_series=series,
                boards=len(benchmarks),
                boards_without_models=sum(not shown.models for shown in allotment.shown.values()),
            )
        return allotment


def _add_partition(partition: PartitionView, end: int | None, exposition: Exposition) -> None:
    number = str(partition.number)
    counters = partition.counters
    exposition.add(catalogue.LOG_POSITION, partition.off, number)
    if end is not None:
        exposition.add(catalogue.LOG_END, end, number)
        exposition.add(catalogue.LOG_LAG, max(0, end - partition.off), number)
    exposition.add(catalogue.RECORDS, counters["records"], number)
    exposition.add(catalogue.MISROUTED, counters["misrouted"], number)
    exposition.add(catalogue.REPUBLISHED, counters["republished"], number)
    exposition.add(catalogue.DEAD_LETTERS, partition.rejected, number)


def _add_benchmark(
    benchmark: BoardView, counts: BoardCounts, times: CommitTimes, prices: Prices, exposition: Exposition
) -> None:
    _add_state(benchmark, counts, times, exposition)
    name = benchmark.name
    _add_counts(name, counts, exposition)
    models = displayed = 0
    if isinstance(counts, MetricsView):
        _add_procedures(name, counts, exposition)
        if benchmark.drift is not None:
            _add_means(benchmark.drift(), exposition)
        _add_models(name, counts.models[:MODEL_CAP], exposition)
        add_pairs(benchmark, counts, times, exposition)
        models, displayed = min(MODEL_CAP, counts.model_count), counts.n.size
    if counts.goal is not None:
        _add_goal(name, priced(counts.goal, prices), models, exposition)
    exposition.add(catalogue.MODELS_OMITTED, counts.model_count - models, name)
    exposition.add(catalogue.PAIR_SERIES_OMITTED, counts.followed - displayed, name)


def _add_means(report: DriftReport, exposition: Exposition) -> None:
    """Add the mean of the last run of each model that has one, and of its frozen answers."""
    for sentinel in report.sentinels[:MODEL_CAP]:
        for of in ("model", "judge"):
            means = (run.mean if of == "model" else run.anchor_mean for run in reversed(sentinel.runs) if run.ranked)
            if (mean := next(means, None)) is not None:
                exposition.add(catalogue.SENTINEL_MEAN, mean, sentinel.benchmark, sentinel.model, of)


def _add_goal(name: str, goal: GoalReport, cap: int, exposition: Exposition) -> None:
    exposition.add(catalogue.GOAL_MET, goal.state == "met", name, goal.goal)
    exposition.add(catalogue.GOAL_OPEN_PAIRS, goal.open_pairs, name)
    exposition.add(catalogue.GOAL_MODELS_NEEDED, len(goal.needed), name)
    for metric, value in (
        (catalogue.SAVED_RATIO, goal.saved_ratio),
        (catalogue.RUN_COST, goal.cost_run),
        (catalogue.SAVED_COST, goal.cost_saved),
    ):
        if value is not None:
            exposition.add(metric, value, name)
    runs = goal.by_model[:cap]
    series = [f"{label('benchmark', name)},{label('model', run.model)}" for run in runs]
    exposition.add_column(catalogue.MODEL_SCORES_RUN, series, (float(run.items_run) for run in runs))
    known = [(each, run.saved_ratio) for each, run in zip(series, runs, strict=True) if run.saved_ratio is not None]
    exposition.add_column(catalogue.MODEL_SAVED_RATIO, [each for each, _ in known], (ratio for _, ratio in known))


def _add_state(benchmark: BoardView, counts: BoardCounts, times: CommitTimes, exposition: Exposition) -> None:
    spec, name = benchmark.spec, benchmark.name
    for counter in (catalogue.EVENTS, catalogue.DUPLICATES, catalogue.CONFLICTS, catalogue.REJECTED):
        exposition.add(counter, benchmark.counters[counter.name.removeprefix("rankwatch_")], name)
    exposition.add(catalogue.BENCHMARK_INFO, 1, name, spec.order.policy, spec.family.policy, spec.mixture)
    if times.last:
        exposition.add(catalogue.LAST_EVENT, times.last, name)
    exposition.add(catalogue.ITEMS, benchmark.items, name)
    if spec.items is not None:
        exposition.add(catalogue.ITEMS_DECLARED, spec.items, name)
    if counts.clusters is not None:
        exposition.add(catalogue.EFFECTIVE_CLUSTERS, counts.clusters.effective_clusters, name)
        exposition.add(catalogue.ITEMS_WITHOUT_CLUSTER, counts.clusters.unlabelled, name)
    exposition.add(catalogue.ALPHA, spec.alpha, name)
    exposition.add(catalogue.HELD, not benchmark.can_decide, name)
    exposition.add(catalogue.PARTIAL, bool(benchmark.gaps), name)
    exposition.add(catalogue.FILES_REFUSED, len(benchmark.reading.refused), name)
    exposition.add(catalogue.ITEMS_UNREAD, benchmark.unread, name)


def _add_counts(name: str, counts: BoardCounts, exposition: Exposition) -> None:
    exposition.add(catalogue.MODELS, counts.model_count, name)
    if counts.items_least is not None:
        exposition.add(catalogue.MODEL_ITEMS_LEAST, counts.items_least, name)
    exposition.add(catalogue.PAIRS, counts.pairs, name)
    exposition.add(catalogue.PAIRS_SETTLED, counts.settled, name)
    exposition.add(catalogue.PAIRS_EXHAUSTED, counts.exhausted, name)
    exposition.add(catalogue.BEYOND_CAPACITY, counts.beyond_capacity, name)
    for procedure, count in counts.decided.items():
        exposition.add(catalogue.PAIRS_DECIDED, count, name, procedure)
    if counts.neighbours_undecided is not None:
        metric, procedure = ALWAYS
        exposition.add(metric, counts.neighbours_undecided, name, procedure)
    for (procedure, kind), count in counts.changes.items():
        if procedure != "anytime":
            exposition.add(catalogue.VERDICTS, count, name, procedure, kind)


def _add_procedures(name: str, view: MetricsView, exposition: Exposition) -> None:
    for metric, counts in (
        (catalogue.ADJACENT_UNDECIDED, view.adjacent_undecided),
        (catalogue.ADJACENT_UNRESOLVED, view.adjacent_unresolved),
    ):
        for procedure, count in counts.items():
            if (metric, procedure) != ALWAYS:
                exposition.add(metric, count, name, procedure)


def _add_suite(report: BenchmarkReport | None, exposition: Exposition) -> None:
    if report is None or report.suite is None:
        return
    name, found = report.benchmark, report.suite
    states = Counter(member.state for member in found.members)
    for state in get_args(SuiteMemberState):
        exposition.add(catalogue.SUITE_MEMBERS, states[state], name, state)
    exposition.add(catalogue.SUITE_MODELS, len(report.models), name)
    exposition.add(catalogue.SUITE_MODELS_LACKING, len(found.lacking), name)
    for procedure, count in report.summary.undecided.items():
        if procedure not in PROCEDURES:  # a suite has no anytime verdict
            exposition.add(catalogue.SUITE_UNDECIDED, count, name, procedure)
    models = report.models[:MODEL_CAP]
    series = [f"{label('suite', name)},{label('model', model.model)}" for model in models]
    exposition.add_column(catalogue.SUITE_MODEL_RANK, series, (float(model.rank) for model in models))
    means = (nan if model.mean is None else model.mean for model in models)
    exposition.add_column(catalogue.SUITE_MODEL_MEAN, series, means)


def _add_models(benchmark: str, models: list[ModelReport], exposition: Exposition) -> None:
    series = [f"{label('benchmark', benchmark)},{label('model', model.model)}" for model in models]
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
        values = (getattr(model, field) for model in models)
        exposition.add_column(metric, series, (nan if value is None else float(value) for value in values))


@cache
def program_version() -> str:
    """Return the version of the installed distribution."""
    try:
        return version("rankwatch")
    except PackageNotFoundError:
        return "unknown"

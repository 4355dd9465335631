"""Choose the boards whose models and pairs have series, and bound what computing the statistics of a scrape takes."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from time import thread_time
from typing import Final, NamedTuple

import numpy as np

from monitor.serve.metrics import catalogue
from monitor.serve.metrics.catalogue import CATALOGUE
from monitor.serve.metrics.exposition import Exposition, label
from monitor.serve.report_cache import ReportCache
from monitor.store.layout import CommitTimes
from monitor.view.board import BoardView
from monitor.view.metrics_view import PAIR_CAP, BoardCounts, MetricsView, board_counts, metrics_view
from schemas.results.changes import PROCEDURES

MODEL_CAP: Final = 500  # models with series of their own, per benchmark

ALWAYS: Final = (catalogue.ADJACENT_UNDECIDED, "anytime_family")
"""The one procedure of a metric of details that every board has."""

_OF_GOAL: Final = (
    catalogue.GOAL_MET,
    catalogue.GOAL_OPEN_PAIRS,
    catalogue.GOAL_MODELS_NEEDED,
    catalogue.SAVED_RATIO,
    catalogue.RUN_COST,
    catalogue.SAVED_COST,
)
_OF_GOAL_MODEL: Final = (catalogue.MODEL_SCORES_RUN, catalogue.MODEL_SAVED_RATIO)  # metrics of boards with a goal


def _series_each(labels: tuple[str, ...], *, detail: bool = False) -> int:
    """Return how many series the metrics of a benchmark, a model or a pair have for each."""
    others = {"model", "model_a", "model_b"} - set(labels)
    return sum(
        metric.per_label
        for metric in CATALOGUE
        if metric.labels[: len(labels)] == labels
        and others.isdisjoint(metric.labels)
        and metric.detail == detail
        and metric not in (*_OF_GOAL, *_OF_GOAL_MODEL, catalogue.SENTINEL_MEAN)
    )


_AGGREGATES: Final = _series_each(catalogue.BENCHMARK) + 1
_DETAILS: Final = _series_each(catalogue.BENCHMARK, detail=True) - 1
_MODEL: Final = _series_each(catalogue.MODEL)
_PAIR: Final = _series_each(catalogue.PAIR)


class Size(NamedTuple):
    """What determines the series of a board: nothing here changes with the scores, so no board comes and goes with them."""

    name: str
    models: int
    declared_pairs: int = 0
    goal: bool = False
    means: int = 0  # of the models of a sentinel, and of their judges


class Shown(NamedTuple):
    """What a board has beyond its aggregates: series of its models and procedures, and of up to so many pairs."""

    models: bool = False
    pairs: int = 0


class Allotment(NamedTuple):
    """What each board has, by name, and the series that the budget omits, at most."""

    shown: dict[str, Shown]
    omitted: int


def size_of(benchmark: BoardView) -> Size:
    """Return what determines the series of a benchmark."""
    spec = benchmark.spec
    models = len({contestant.model for contestant in benchmark.contestants})
    watched = 0 if benchmark.drift is None else len(benchmark.drift().sentinels)
    means = catalogue.SENTINEL_MEAN.per_label * min(MODEL_CAP, watched)
    return Size(benchmark.name, models, len(spec.family.pairs or ()), spec.goal is not None, means)


def allot(boards: Sequence[Size], budget: int, first: Callable[[str], bool]) -> Allotment:
    """Share the budget: aggregates of all boards, always; then models, then neighbours and declared pairs, then other decided pairs."""
    # Boards that come first get all of theirs ahead of the others. Among equals the order is by name. A board that does not fit is passed
    # over, and the next that fits is taken. Each board is counted with the most that it can have.
    left = budget - sum(_AGGREGATES + len(_OF_GOAL) * board.goal for board in boards)
    shown = {board.name: Shown() for board in boards}
    omitted = 0
    for group in (True, False):
        members = sorted(board for board in boards if first(board.name) == group)
        for level in range(3):
            for board in members:
                each = _MODEL + len(_OF_GOAL_MODEL) * board.goal
                near = min(PAIR_CAP, max(0, board.models - 1) + board.declared_pairs)
                most = max(near, min(PAIR_CAP, board.models * (board.models - 1) // 2))
                cost, grown, needed = (
                    (_DETAILS + each * min(MODEL_CAP, board.models) + board.means, Shown(models=True), Shown()),
                    (_PAIR * near, Shown(models=True, pairs=near), Shown(models=True)),
                    (_PAIR * (most - near), Shown(models=True, pairs=most), Shown(models=True, pairs=near)),
                )[level]
                if cost <= left and shown[board.name] == needed:
                    left -= cost
                    shown[board.name] = grown
                else:
                    omitted += cost
    return Allotment(shown, omitted)


SCRAPE_SECONDS: Final = 0.4
"""Processor time after which a scrape renews no more statistics; the next one goes on where it ended."""

_BOARD_BYTES: Final = 2_000
_PAIR_BYTES: Final = 300


def statistics_of(
    reports: ReportCache, benchmarks: Mapping[str, BoardView], shown: Mapping[str, Shown]
) -> dict[str, BoardCounts]:
    """Return the statistics of all benchmarks; those that changed may be slightly old, unless the request asks for a later offset."""
    start, cache = thread_time(), reports.cache

    def key(name: str) -> tuple[object, ...]:
        return "statistics", name, shown[name]

    def renew(benchmark: BoardView) -> BoardCounts:
        some, table = shown[benchmark.name], reports.pair_table(benchmark)
        return metrics_view(benchmark, some.pairs, table) if some.models else board_counts(table)

    def of(name: str) -> BoardCounts:
        benchmark = benchmarks[name]
        return cache.get(
            key(name),
            reports.origin_of(name, (benchmark,)),
            lambda: renew(benchmark),
            size=_BOARD_BYTES + _PAIR_BYTES * min(shown[name].pairs, benchmark.pairs),
            most_seconds=inf,
            is_busy=lambda: thread_time() - start >= SCRAPE_SECONDS,
        )

    return {name: of(name) for name in sorted(benchmarks, key=lambda name: cache.at(key(name)))}


def add_pairs(benchmark: BoardView, view: MetricsView, commits: CommitTimes, exposition: Exposition) -> None:
    """Add the series of every followed pair of a benchmark."""
    columns = view.columns
    first = label("benchmark", benchmark.name)
    series = [f"{first},{label('model_a', min(names))},{label('model_b', max(names))}" for names in view.names]
    swap = np.array([a > b for a, b in view.names], bool)
    sign = np.where(swap, -1.0, 1.0)
    exposition.add_column(catalogue.PAIR_ITEMS, series, view.n.astype(float).tolist())
    exposition.add_column(catalogue.PAIR_GAP, series, (sign * columns["gap"]).tolist())
    exposition.add_column(catalogue.PAIR_LOG_E, series, columns["log_e"].tolist())
    a, b = columns["log_e_a"], columns["log_e_b"]
    for side, values in (("a", np.where(swap, b, a)), ("b", np.where(swap, a, b))):
        exposition.add_column(catalogue.PAIR_LOG_E_SIDE, series, values.tolist(), ("side", side))
    exposition.add_column(catalogue.PAIR_TO_DECISION, series, columns["items_to_decision"].tolist())
    for procedure, name in (("anytime", "gap"), ("anytime_family", "gap_family")):
        low, high = columns[f"{name}_low"], columns[f"{name}_high"]
        extra = ("procedure", procedure)
        exposition.add_column(catalogue.PAIR_GAP_LOW, series, np.where(swap, -high, low).tolist(), extra)
        exposition.add_column(catalogue.PAIR_GAP_HIGH, series, np.where(swap, -low, high).tolist(), extra)
    for metric, by_procedure in (
        (catalogue.PAIR_THRESHOLD, view.log_threshold),
        (catalogue.PAIR_RESOLUTION, {name: q for name, q in view.resolution.items() if name != "anytime_family"}),
        (catalogue.PAIR_DECIDED, {name: np.where(swap, -view.sides[name], view.sides[name]) for name in PROCEDURES}),
    ):
        for procedure, values in by_procedure.items():
            exposition.add_column(metric, series, values.astype(float).tolist(), ("procedure", procedure))
    for text, status in zip(series, view.statuses, strict=True):
        exposition.add_column(catalogue.PAIR_STATUS, [text], [1.0], ("status", status))
    _add_latches(benchmark, commits, view, series, exposition)


def _add_latches(
    benchmark: BoardView, commits: CommitTimes, view: MetricsView, series: list[str], exposition: Exposition
) -> None:
    for procedure, latch in view.latched.items():
        closed = latch != 0
        turned = np.where(closed, np.abs(latch) > 1, np.nan)
        exposition.add_column(catalogue.PAIR_REVERSED, series, turned.tolist(), ("procedure", procedure))
        # The times are current; the rest of the view may be slightly older.
        pairs = [(text, pair) for text, pair, decided in zip(series, view.pair, closed, strict=True) if decided]
        times = [commits.changes.get(benchmark.change_field(pair, procedure, "decided"), np.nan) for _, pair in pairs]
        exposition.add_column(catalogue.DECIDED_TIME, [text for text, _ in pairs], times, ("procedure", procedure))

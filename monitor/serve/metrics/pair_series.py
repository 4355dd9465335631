"""Add the series of the followed pairs. A series names its models in name order, so labels do not swap when ranks do."""

import numpy as np

from monitor.serve.metrics import catalogue
from monitor.serve.metrics.exposition import Exposition, label
from monitor.store.commit_times import CommitTimes
from monitor.view.board import BoardView
from monitor.view.metrics_view import MetricsView
from schemas.results.changes import PROCEDURES


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

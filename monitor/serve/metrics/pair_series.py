"""The series of the followed pairs, in name order: labels must not swap when ranks do."""

import numpy as np

from monitor.report.metrics_view import MetricsView
from monitor.serve.metrics import catalogue
from monitor.serve.metrics.exposition import Exposition, labelled
from monitor.store.commit_times import CommitTimes


def add_pairs(benchmark: str, followed: MetricsView, commits: CommitTimes, told: Exposition) -> None:
    """Add the series of every followed pair."""
    columns = followed.columns
    first = labelled("benchmark", benchmark)
    series = [
        f"{first},{labelled('model_a', min(names))},{labelled('model_b', max(names))}" for names in followed.names
    ]
    swap = np.array([a > b for a, b in followed.names], bool)
    sign = np.where(swap, -1.0, 1.0)
    told.add_column(catalogue.PAIR_ITEMS, series, followed.n.astype(float).tolist())
    told.add_column(catalogue.PAIR_GAP, series, (sign * columns["gap"]).tolist())
    told.add_column(catalogue.PAIR_LOG_E, series, columns["log_e"].tolist())
    a, b = columns["log_e_a"], columns["log_e_b"]
    for side, values in (("a", np.where(swap, b, a)), ("b", np.where(swap, a, b))):
        told.add_column(catalogue.PAIR_LOG_E_SIDE, series, values.tolist(), ("side", side))
    told.add_column(catalogue.PAIR_TO_DECISION, series, columns["items_to_decision"].tolist())
    for procedure, name in (("anytime", "gap"), ("anytime_family", "gap_family")):
        low, high = columns[f"{name}_low"], columns[f"{name}_high"]
        of = ("procedure", procedure)
        told.add_column(catalogue.PAIR_GAP_LOW, series, np.where(swap, -high, low).tolist(), of)
        told.add_column(catalogue.PAIR_GAP_HIGH, series, np.where(swap, -low, high).tolist(), of)
    for metric, by_procedure in (
        (catalogue.PAIR_THRESHOLD, followed.log_threshold),
        (catalogue.PAIR_RESOLUTION, followed.resolution),
        (catalogue.PAIR_DECIDED, {name: np.where(swap, -side, side) for name, side in followed.sides.items()}),
    ):
        for procedure, values in by_procedure.items():
            told.add_column(metric, series, values.astype(float).tolist(), ("procedure", procedure))
    for text, status in zip(series, followed.statuses, strict=True):
        told.add_column(catalogue.PAIR_STATUS, [text], [1.0], ("status", status))
    _add_latches(commits, followed, series, told)


def _add_latches(commits: CommitTimes, followed: MetricsView, series: list[str], told: Exposition) -> None:
    for procedure, latch in followed.latched.items():
        closed = latch != 0
        turned = np.where(closed, np.abs(latch) > 1, np.nan)
        told.add_column(catalogue.PAIR_REVERSED, series, turned.tolist(), ("procedure", procedure))
        # The commit that a time is of may have come since the rest was computed.
        pairs = [(text, pair) for text, pair, decided in zip(series, followed.pair, closed, strict=True) if decided]
        for metric, kind in ((catalogue.DECIDED_TIME, "decided"), (catalogue.REVERSED_TIME, "reversed")):
            times = [commits.changes.get(f"{pair}:{procedure}:{kind}", np.nan) for _, pair in pairs]
            told.add_column(metric, [text for text, _ in pairs], times, ("procedure", procedure))

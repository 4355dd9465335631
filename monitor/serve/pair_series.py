"""The series of the followed pairs, in name order: labels must not swap when ranks do."""

from collections.abc import Callable
from math import isfinite
from typing import Final

from monitor.engine.benchmark import PROCEDURES, Benchmark
from monitor.engine.followed import Followed
from monitor.serve import catalogue
from schemas.report import PairReport

Add = Callable[..., None]
_OTHER: Final = {"a": "b", "b": "a"}
_SIDES: Final = {None: 0, "a": 1, "b": -1}


def add_pairs(benchmark: Benchmark, followed: Followed, add: Add) -> None:
    """Add the series of every followed pair."""
    resolution = {name: values.tolist() for name, values in followed.resolution.items()}
    for place, (pair, index, threshold) in enumerate(
        zip(followed.report.pairs, followed.pair.tolist(), followed.log_threshold.tolist(), strict=True)
    ):
        swap = pair.model_a > pair.model_b
        labels = (benchmark.name, *((pair.model_b, pair.model_a) if swap else (pair.model_a, pair.model_b)))
        _add_evidence(pair, labels, add, swap=swap)
        _add_intervals(pair, labels, add, swap=swap)
        thresholds = {"anytime": followed.single_threshold, "anytime_family": threshold}
        for procedure, value in thresholds.items():
            _finite(add, catalogue.PAIR_THRESHOLD, value, *labels, procedure)
        for procedure, values in resolution.items():
            _finite(add, catalogue.PAIR_RESOLUTION, values[place], *labels, procedure)
        if pair.cluster is not None:
            _finite(add, catalogue.PAIR_RESOLUTION, pair.cluster.resolution_ratio, *labels, "clustered")
        _add_latches(benchmark, index, labels, add)


def _finite(add: Add, metric: catalogue.Metric, value: float | None, *labels: str) -> None:
    if value is not None and isfinite(value):
        add(metric, value, *labels)


def _add_evidence(pair: PairReport, labels: tuple[str, ...], add: Add, *, swap: bool) -> None:
    sign = -1 if swap else 1
    add(catalogue.PAIR_ITEMS, pair.n, *labels)
    add(catalogue.PAIR_STATUS, 1, *labels, pair.status)
    _finite(add, catalogue.PAIR_LOG_E, pair.log_e, *labels)
    for side, value in (("a", pair.log_e_a), ("b", pair.log_e_b)):
        _finite(add, catalogue.PAIR_LOG_E_SIDE, value, *labels, _OTHER[side] if swap else side)
    _finite(add, catalogue.PAIR_TO_DECISION, pair.items_to_decision, *labels)
    for procedure, decided in pair.decided:
        add(catalogue.PAIR_DECIDED, sign * _SIDES[decided], *labels, procedure)


def _add_intervals(pair: PairReport, labels: tuple[str, ...], add: Add, *, swap: bool) -> None:
    if pair.gap is not None:
        add(catalogue.PAIR_GAP, -pair.gap if swap else pair.gap, *labels)
    for procedure, low, high in (
        ("anytime", pair.gap_low, pair.gap_high),
        ("anytime_family", pair.gap_family_low, pair.gap_family_high),
    ):
        if low is not None and high is not None:
            add(catalogue.PAIR_GAP_LOW, -high if swap else low, *labels, procedure)
            add(catalogue.PAIR_GAP_HIGH, -low if swap else high, *labels, procedure)


def _add_latches(benchmark: Benchmark, index: int, labels: tuple[str, ...], add: Add) -> None:
    for procedure in PROCEDURES:
        if benchmark.latched[procedure][index]:
            add(catalogue.PAIR_REVERSED, abs(benchmark.latched[procedure][index]) > 1, *labels, procedure)
        for metric, kind in ((catalogue.DECIDED_TIME, "decided"), (catalogue.REVERSED_TIME, "reversed")):
            at = benchmark.times.get(f"{index}:{procedure}:{kind}")
            if at is not None:
                add(metric, at, *labels, procedure)

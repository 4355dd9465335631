"""Has a model got worse than it was: the monitors of a sentinel, from its runs in their order (statistics: drift)."""

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import exp, isfinite
from typing import Final, Literal, Protocol

import msgspec
import numpy as np

from monitor.engine.kinds.runs import ModelRuns, Monitor, Rows, describe
from monitor.engine.kinds.sentinel import Sentinel as EngineSentinel
from schemas.records.drift import DriftSettings
from schemas.results.drift import DriftMonitor, DriftOutcome, DriftReport, FoundDrop, Sentinel
from stats.drift.detector import Ranks
from stats.drift.power import detection_delay, run_spread
from stats.drift.ranks import item_sums

DROPS: Final = (0.08, 0.04, 0.02)
HORIZON: Final = 60
_SIMULATIONS: Final = 30
_SHORT: Final = 8  # ranked runs of a segment below which no alarm is likely, however large the drop
_MOST_SPREAD: Final = 20  # from so many runs on, the spread between runs counts, and not only the spread of items


class RunScores(Protocol):
    """What a monitor needs of a run."""

    @property
    def name(self) -> str:
        """Name of the run."""

    @property
    def duplicates(self) -> int:
        """Scores that came twice."""

    @property
    def conflicts(self) -> int:
        """Scores other than the first of their key."""

    @property
    def skipped(self) -> int:
        """Items without a score."""

    def means(self, role: str | None = None) -> dict[str, float]:
        """Return the mean score of each item, of fresh answers or of anchors."""


def sentinel_of(
    benchmark: str,
    model: str,
    runs: Sequence[RunScores],
    settings: DriftSettings,
    *,
    ordered_by: Literal["date", "appearance"] = "date",
) -> Sentinel:
    """Return what the runs of one model on one benchmark show, in their order."""
    watched = ModelRuns(benchmark, model, settings)
    for run in runs:
        if run.name in settings.changes:
            watched.announce()
        watched.enter(run.name, run.means(), run.means("anchor"))
    for name in ("duplicates", "conflicts", "skipped"):
        watched.counts[name] = sum(getattr(run, name) for run in runs)
    return shown(watched, ordered_by=ordered_by)


def shown(watched: ModelRuns, *, ordered_by: Literal["date", "appearance", "closing"] = "closing") -> Sentinel:
    """Return what the runs of a model show."""
    settings = watched.settings
    monitors = [_monitor(each) for each in watched.monitors or [Monitor("", "model", settings, both=settings.both)]]
    why = Counter(run.unranked for run in watched.runs)
    model = watched.monitor("model")
    return Sentinel(
        benchmark=watched.benchmark,
        model=watched.model,
        outcome=_outcome(monitors),
        items=watched.settings.items or (watched.whole if any(run.items for run in watched.runs) else 0),
        unused_items=0 if model is None else model.unused,
        incomplete=why["incomplete"],
        cancelled=why["cancelled"],
        late=watched.counts["late"],
        repeated=tuple(watched.named["repeated"]),
        out_of_order=tuple(watched.named["out_of_order"]),
        open=tuple(watched.open),
        duplicates=watched.counts["duplicates"],
        conflicts=watched.counts["conflicts"],
        skipped=watched.counts["skipped"],
        ordered_by=ordered_by,
        graded=watched.graded,
        runs=tuple(watched.runs),
        monitors=tuple(monitors),
    )


def report_of(sentinel: EngineSentinel) -> DriftReport:
    """Return what the models of a sentinel show, those with a closed run."""
    announced = {name for model in sentinel.models.values() for name in model.announced}
    settings = msgspec.structs.replace(sentinel.settings, changes=tuple(sorted(announced)))
    models = sorted(sentinel.models.values(), key=lambda model: model.model)
    return DriftReport(settings=settings, sentinels=tuple(shown(each) for each in models if each.runs))


def _monitor(monitor: Monitor) -> DriftMonitor:
    total, last = monitor.evidence(monitor.strongest), len(monitor.runs)
    has_runs = monitor.first < last
    return DriftMonitor(
        of=monitor.of,
        both=monitor.both,
        segment=monitor.runs[monitor.first] if has_runs else None,
        ranked=last - monitor.first,
        log_sum=total if isfinite(total) else None,
        log_limit=monitor.limit,
        alarms=tuple(describe(monitor, each) for each in monitor.current),
        earlier=tuple(describe(monitor, each) for each in monitor.alarms if each.place < monitor.changed),
        changed=monitor.runs[monitor.changed] if 0 < monitor.changed < last else None,
        spread=_spread(monitor.bag(monitor.first, last)) if has_runs else None,
        ranks=monitor.ranks,
        dispersion=monitor.refuted,
        back=_back(monitor),
    )


def _back(monitor: Monitor) -> float | None:
    """Return the mean score of the last `_SHORT` runs if they are back where they were before the newest alarm, else None."""
    last = len(monitor.runs)
    if not monitor.current or monitor.first != monitor.alarms[-1].place + 1 or last - monitor.first < _SHORT:
        return None
    alarm, start = monitor.alarms[-1], monitor.alarms[-1].point.start - 1
    sign, rows = 1 if alarm.side == "worse" else -1, monitor.bag(alarm.first, last)
    means = sign * np.nanmean(rows, axis=1)
    old, low, late = (
        each.mean() for each in (means[:start], means[start : monitor.first - alarm.first], means[-_SHORT:])
    )
    reach = 1.96 * _spread(rows[:start]) / _SHORT**0.5
    is_back = late >= old - reach and late > (old + low) / 2 + reach
    return float(np.nanmean(monitor.scores.rows(last - _SHORT, last), axis=1).mean()) if is_back else None


# --- while it is quiet ----------------------------------------------------------------------------------------------------------------


def with_found(report: DriftReport) -> DriftReport:
    """Return a report with how soon lasting drops would be found, at the noise and the history of each quiet segment (simulated)."""
    return msgspec.structs.replace(report, sentinels=tuple(map(_with_found, report.sentinels)))


def _with_found(sentinel: Sentinel) -> Sentinel:
    model = sentinel.monitors[0]
    if sentinel.outcome != DriftOutcome.QUIET or model.spread is None:
        return sentinel
    found = [
        FoundDrop(
            drop,
            median_delay(drop * _scale(sentinel), model.spread, model.ranked, exp(model.log_limit), model.ranks),
            HORIZON,
        )
        for drop in DROPS
    ]
    monitors = (msgspec.structs.replace(model, found=tuple(found)), *sentinel.monitors[1:])
    return msgspec.structs.replace(sentinel, monitors=monitors)


@lru_cache(maxsize=256)
def median_delay(drop: float, spread: float, history: int, limit: float, ranks: Ranks = "runs") -> float | None:
    """Return the runs until half of such drops are found; None beyond `HORIZON`."""
    delays = detection_delay(drop, spread, history, limit, ranks=ranks, horizon=HORIZON, simulations=_SIMULATIONS)
    return delays.median if isfinite(delays.median) else None


def _scale(sentinel: Sentinel) -> float:
    """Return what a drop of 1 is in the rows that are ranked: with anchors they are differences, halved into [0, 1]."""
    return 0.5 if len(sentinel.monitors) > 1 else 1.0


def item_variances(rows: Rows) -> Rows:
    """Return the variance of each item between the runs that hold it, for items that two of them hold."""
    count, total, squares = (np.asarray(each, float) for each in item_sums(rows))
    here = count > 1
    return np.asarray(np.maximum(squares[here] - total[here] ** 2 / count[here], 0) / (count[here] - 1))


def _spread(rows: Rows) -> float:
    """Return the standard deviation of a run's mean: between runs where they are enough, and never below what its items explain alone."""
    variances = item_variances(rows)
    of_items = run_spread(variances) if variances.size else 0.0
    of_runs = float(np.nanmean(rows, axis=1).std(ddof=1)) if rows.shape[0] >= _MOST_SPREAD else 0.0
    return max(of_items, of_runs, 1e-6)


# --- the outcome ----------------------------------------------------------------------------------------------------------------------


def _outcome(monitors: Sequence[DriftMonitor]) -> DriftOutcome:
    """Return what a sentinel shows: the newest alarm of the model, else of its judge."""
    model = monitors[0]
    judge = next((each for each in monitors if each.of == "judge"), None)
    if model.alarms:
        return DriftOutcome(model.alarms[-1].side)
    if judge is not None and judge.alarms:
        return DriftOutcome.JUDGE
    if any(each.dispersion is not None for each in monitors):
        return DriftOutcome.HELD
    return DriftOutcome.QUIET if model.ranked >= _SHORT else DriftOutcome.SHORT

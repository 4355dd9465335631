"""Has a model got worse than it was: the monitors of a sentinel, from its runs in their order (statistics: drift)."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import date
from math import exp, isfinite, log
from typing import Final, Literal, NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.results.drift import (
    DriftAlarm,
    DriftMonitor,
    DriftOutcome,
    DriftReport,
    DriftRun,
    DriftSettings,
    FallenItem,
    FoundDrop,
    Sentinel,
    Side,
)
from stats.drift.bets import Ranks
from stats.drift.detector import DriftState, begin, localize, log_ever, log_sum, step
from stats.drift.power import detection_delay, run_spread
from stats.drift.ranks import generator, item_sums, p_dispersion, p_items, p_runs, uniform
from stats.drift.size import drift_size

DROPS: Final = (0.08, 0.04, 0.02)
HORIZON: Final = 60
_SIMULATIONS: Final = 30
_SHORT: Final = 8
"""Ranked runs of a segment below which no alarm is likely, however large the drop."""

_LISTED: Final = 10
_DISPERSION_ALPHA: Final = 0.01
_DISPERSION_RUNS: Final = 20
_MOST_SPREAD: Final = 20
"""From so many runs on, the spread between runs counts, and not only the spread of items."""

Rows = NDArray[np.float64]


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


class _Row(NamedTuple):
    """One run as a monitor ranks it."""

    run: str
    scores: Mapping[str, float]


class _Watched(NamedTuple):
    """The scores that one monitor ranks."""

    of: Literal["model", "judge"]
    both: bool
    rows: Sequence[_Row]
    levels: Sequence[Mapping[str, float]]
    """Scores of the same runs on the scale that is shown."""


def sentinel_of(
    benchmark: str,
    model: str,
    runs: Sequence[RunScores],
    settings: DriftSettings,
    *,
    ordered_by: Literal["date", "appearance"] = "date",
) -> Sentinel:
    """Return what the runs of one model on one benchmark show."""
    fresh = [run.means() for run in runs]
    anchors = [run.means("anchor") for run in runs]
    anchored = any(anchors)
    whole = settings.items or max(len(fresh[0]), 1)
    full = [len(of) >= settings.min_coverage * whole for of in fresh]
    ranked = [ok and (bool(frozen) or not anchored) for ok, frozen in zip(full, anchors, strict=True)]
    if settings.missing == "fail":
        fresh = [
            dict.fromkeys(fresh[0], 0.0) | of for of in fresh
        ]  # items that come later are new, and were not missing
    kept = [k for k, ok in enumerate(ranked) if ok]
    names = [run.name for run in runs]
    watched = _watched(names, fresh, anchors, kept, settings, anchored=anchored)
    monitors, p = [], dict[str, float]()
    unused = 0
    for each in watched:
        monitor, values, left_out = _monitor(f"{benchmark}/{model}/{each.of}", each, settings)
        monitors.append(monitor)
        if each.of == "model":
            p, unused = values, left_out
    graded = any(score not in (0.0, 1.0) for of in fresh for score in of.values())
    return Sentinel(
        benchmark=benchmark,
        model=model,
        outcome=_outcome(monitors),
        items=whole,
        unused_items=unused,
        incomplete=len(runs) - sum(full),
        duplicates=sum(run.duplicates for run in runs),
        conflicts=sum(run.conflicts for run in runs),
        skipped=sum(run.skipped for run in runs),
        ordered_by=ordered_by,
        graded=graded,
        runs=tuple(
            DriftRun(
                run=name,
                items=len(of),
                mean=_mean(of),
                anchors=len(frozen),
                anchor_mean=_mean(frozen),
                ranked=ok,
                p=p.get(name),
            )
            for name, of, frozen, ok in zip(names, fresh, anchors, ranked, strict=True)
        ),
        monitors=tuple(monitors),
    )


def _watched(
    names: Sequence[str],
    fresh: Sequence[Mapping[str, float]],
    anchors: Sequence[Mapping[str, float]],
    kept: Sequence[int],
    settings: DriftSettings,
    *,
    anchored: bool,
) -> list[_Watched]:
    """Return the monitors of a sentinel: with anchors, the judge's scores of them, and the fresh scores less their mean."""
    levels = [fresh[k] for k in kept]
    if not anchored:
        rows = [_Row(names[k], fresh[k]) for k in kept]
        return [_Watched("model", settings.both, rows, levels)]
    frozen = [anchors[k] for k in kept]
    against = []
    for k, of in zip(kept, frozen, strict=True):
        scale = float(np.mean(list(of.values())))
        against.append(_Row(names[k], {item: (score - scale + 1) / 2 for item, score in fresh[k].items()}))
    judge = [_Row(names[k], of) for k, of in zip(kept, frozen, strict=True)]
    return [_Watched("model", True, against, levels), _Watched("judge", True, judge, frozen)]


class _Segment:
    """The runs since the start, an alarm, or an announced change, with a detector of each side."""

    def __init__(self, sides: Sequence[Side], first: int) -> None:
        self.first = self.end = first
        self.states: dict[Side, DriftState] = {side: begin() for side in sides}

    @property
    def places(self) -> range:
        """The places of its runs."""
        return range(self.first, self.end)


def _monitor(name: str, watched: _Watched, settings: DriftSettings) -> tuple[DriftMonitor, dict[str, float], int]:
    """Run one monitor along its runs; return it with the p-value of each run, and how many items entered none."""
    ranks: Ranks = "items" if settings.assume == "independent-items" and watched.of == "model" else "runs"
    sides: tuple[Side, ...] = ("worse", "better") if watched.both else ("worse",)
    limit = log(len(sides) * settings.false_alarm_runs if settings.ever is None else len(sides) / settings.ever)
    evidence = log_sum if settings.ever is None else log_ever
    items = sorted({item for row in watched.rows for item in row.scores})
    bag = _matrix(watched.rows, items)
    seed = settings.seed or _seed(settings)
    ended: list[tuple[DriftAlarm, _Segment, Side, int]] = []
    values: dict[str, float] = {}
    segment, unused, refuted = _Segment(sides, 0), 0, None
    whole = not np.isnan(bag).any()
    for place, row in enumerate(watched.rows):
        if row.run in settings.changes:
            segment = _Segment(sides, place)
        segment.end = place + 1
        rows = bag[segment.first : segment.end]
        rows, used = (rows, len(items)) if whole else _common(rows, settings.min_coverage)
        unused = len(items) - used
        p = _p(rows, name, row.run, seed, ranks, _stratum(watched, segment.places, settings))
        values[row.run] = p
        refuted = refuted or _dispersion(rows, name, row.run, seed, ranks)
        for side in sides:
            segment.states[side] = step(segment.states[side], p if side == "worse" else 1 - p, ranks)
        alarm = max(sides, key=lambda side: evidence(segment.states[side]))
        if evidence(segment.states[alarm]) >= limit and refuted is None:
            found = _alarm(watched, segment, alarm, evidence(segment.states[alarm]), limit)
            ended.append((found, segment, alarm, place))
            segment = _Segment(sides, place + 1)
    alarms = tuple(_renewed(each, watched, bag, items, settings) for each in ended)
    state = max((evidence(state) for state in segment.states.values()), default=-np.inf)
    return (
        DriftMonitor(
            of=watched.of,
            both=watched.both,
            segment=watched.rows[segment.first].run if segment.places else None,
            ranked=len(segment.places),
            log_sum=float(state) if np.isfinite(state) else None,
            log_limit=limit,
            alarms=alarms,
            spread=_spread(bag[segment.first : segment.end]) if segment.places else None,
            ranks=ranks,
            dispersion=refuted,
        ),
        values,
        unused,
    )


def _p(rows: Rows, name: str, run: str, seed: str, ranks: Ranks, stratum: NDArray[np.bool_] | None) -> float:
    u = uniform(seed, name, run)
    if ranks == "items":
        return p_items(rows, u, generator(seed, name, run))
    return p_runs(rows, u, stratum=stratum)


def _dispersion(rows: Rows, name: str, run: str, seed: str, ranks: Ranks) -> float | None:
    """Return the p-value that refutes independent items: runs differ by more than their items do (looked at after 20, 40, 80 … runs)."""
    size = rows.shape[0]
    looks = ranks == "items" and size % _DISPERSION_RUNS == 0 and (size // _DISPERSION_RUNS).bit_count() == 1
    if not looks:
        return None
    p = p_dispersion(rows, generator(f"{seed}/dispersion", name, run))
    return p if p <= _DISPERSION_ALPHA else None


def _stratum(watched: _Watched, places: Sequence[int], settings: DriftSettings) -> NDArray[np.bool_] | None:
    if settings.strata is None:
        return None
    days = np.array([date.fromisoformat(watched.rows[place].run[:10]).weekday() for place in places])
    return np.asarray(days == days[-1])


def _matrix(rows: Sequence[_Row], items: Sequence[str]) -> Rows:
    """Return the scores of runs and items; NaN where a run lacks an item."""
    place = {item: k for k, item in enumerate(items)}
    matrix = np.full((len(rows), len(items)), np.nan)
    for k, row in enumerate(rows):
        matrix[k, [place[item] for item in row.scores]] = list(row.scores.values())
    return matrix


def _common(rows: Rows, share: float) -> tuple[Rows, int]:
    """Return the columns that enough of the runs hold: the rule depends on the bag of runs alone, so ranks stay uniform."""
    held = ~np.isnan(rows)
    used = held.sum(0) >= max(1.0, share * rows.shape[0])
    return rows[:, used], int(used.sum())


def _seed(settings: DriftSettings) -> str:
    """Return the seed that follows from what is declared."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(settings, changes=()))).hexdigest()


# --- after an alarm -------------------------------------------------------------------------------------------------------------------


def _alarm(watched: _Watched, segment: _Segment, side: Side, total: float, limit: float) -> DriftAlarm:
    """Return an alarm with its change point; its size comes once later runs are known."""
    point = localize(segment.states[side])
    run = [watched.rows[place].run for place in segment.places]
    return DriftAlarm(
        side=side,
        run=run[-1],
        start=run[point.start - 1],
        after_run=run[point.first - 2],
        last_start=run[point.last - 1],
        before=0.0,
        since=0.0,
        low=0.0,
        high=0.0,
        runs_since=0,
        log_sum=total,
        log_limit=limit,
    )


def _renewed(
    ended: tuple[DriftAlarm, _Segment, Side, int],
    watched: _Watched,
    bag: Rows,
    items: Sequence[str],
    settings: DriftSettings,
) -> DriftAlarm:
    """Return an alarm with its size, from its segment and the runs after it, up to an announced change."""
    alarm, segment, side, place = ended
    point = localize(segment.states[side])
    later = []
    for after in range(place + 1, len(watched.rows)):
        if watched.rows[after].run in settings.changes:
            break
        later.append(after)
    places = [*segment.places, *later]
    sign = 1.0 if side == "worse" else -1.0
    means = np.array([float(np.mean(list(watched.levels[k].values()))) for k in places])
    size = drift_size(sign * means, point.start, point.starts)
    first = point.start - 1
    listed, share = _moved(bag[places[:first]], bag[places[first:]], items, sign)
    # The model's rows are less the judge's mean; what is listed is on the scale of the scores.
    return msgspec.structs.replace(
        alarm,
        before=sign * size.before,
        since=sign * size.after,
        low=size.low,
        high=size.high,
        runs_since=size.runs,
        items=_on_scale(listed, watched, places, first),
        share_of_ten=share,
    )


def _moved(before: Rows, since: Rows, items: Sequence[str], sign: float) -> tuple[list[str], float | None]:
    """Return the items that moved most, and the share of the whole movement that ten of them carry."""
    with np.errstate(invalid="ignore"):
        fell = sign * (_means(before) - _means(since))
    fell = np.where(np.isnan(fell), -np.inf, fell)
    order = np.argsort(-fell, kind="stable")[:_LISTED]
    whole = float(fell[np.isfinite(fell)].sum())
    share = float(fell[order][fell[order] > 0].sum()) / whole if whole > 0 else None
    return [items[k] for k in order if fell[k] > 0], share


def _means(rows: Rows) -> Rows:
    sums = item_sums(rows) if rows.size else None
    if sums is None:
        return np.full(rows.shape[1], np.nan)
    counts, totals = np.asarray(sums[0], float), np.asarray(sums[1], float)
    return np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)


def _on_scale(listed: Sequence[str], watched: _Watched, places: Sequence[int], first: int) -> tuple[FallenItem, ...]:
    found = []
    for item in listed:
        old = [watched.levels[k][item] for k in places[:first] if item in watched.levels[k]]
        new = [watched.levels[k][item] for k in places[first:] if item in watched.levels[k]]
        found.append(FallenItem(item, float(np.mean(old)), float(np.mean(new)), len(new)))
    return tuple(found)


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


def _mean(of: Mapping[str, float]) -> float | None:
    return float(np.mean(list(of.values()))) if of else None

"""Runs of one model on a sentinel, how they are collected and when they close, and the monitors that rank them (statistics: drift).

A run is open until it ends, is complete, or another run of its model begins. It enters once, when it closes; what comes later is counted.
"""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import isfinite, log
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.records.drift import DriftSettings
from schemas.results.drift import DriftAlarm, DriftRun, FallenItem, RunClosed, Side, Unranked
from stats.drift.detector import DROPS, ChangePoint, DriftState, Ranks, begin, localize, log_ever, log_sum, step
from stats.drift.ranks import ItemSums, generator, item_sums, p_dispersion, p_items, p_runs, uniform
from stats.drift.size import drift_size

Rows = NDArray[np.float64]

Of = Literal["model", "judge"]

_DISPERSION_ALPHA: Final = 0.01
_DISPERSION_RUNS: Final = 20


class Rank(NamedTuple):
    """What a run has shown: its p-value, that of the dispersion of runs where it refutes independent items, and the evidence with it."""

    p: float
    refuted: float | None = None
    log_sum: float | None = None


class Alarm(NamedTuple):
    """An alarm: the places of its segment's first run and of its own run, counted from 0 over the ranked runs, and its evidence."""

    side: Side
    first: int
    place: int
    log_sum: float
    point: ChangePoint


class Matrix:
    """Scores of runs and items; NaN where a run lacks an item. It grows in both directions."""

    def __init__(self) -> None:
        self._cells: Rows = np.full((0, 0), np.nan)
        self.items: list[str] = []
        self.place_of: dict[str, int] = {}
        self.size = 0

    def add(self, scores: Mapping[str, float]) -> Rows:
        """Add a run and return its row."""
        for item in sorted(scores.keys() - self.place_of.keys()):
            self.place_of[item] = len(self.items)
            self.items.append(item)
        height, width = self._cells.shape
        if self.size >= height or len(self.items) > width:
            cells = np.full((max(height, 2 * self.size, 16), max(width, len(self.items))), np.nan)
            cells[:height, :width] = self._cells
            self._cells = cells
        row = self._cells[self.size, : len(self.items)]
        row[[self.place_of[item] for item in scores]] = list(scores.values())
        self.size += 1
        return row

    def rows(self, first: int, last: int) -> Rows:
        """Return the runs from one place to before another."""
        return self._cells[first:last, : len(self.items)]


class Monitor:
    """One sequence of runs that is watched: a model's scores, or its judge's scores of frozen answers."""

    # Each run moves it on once, and what it shows depends on the runs up to there alone.

    def __init__(self, name: str, of: Of, settings: DriftSettings, *, both: bool, shifted: bool = False) -> None:
        self.name, self.of, self.settings, self.both, self.shifted = name, of, settings, both, shifted
        self.seed = settings.seed or seed_of(settings)
        self.ranks: Ranks = "items" if settings.assume == "independent-items" and of == "model" else "runs"
        self.sides: tuple[Side, ...] = ("worse", "better") if both else ("worse",)
        count = len(self.sides)
        self.limit = log(count * settings.false_alarm_runs if settings.ever is None else count / settings.ever)
        self.runs: list[str] = []
        self.shown: list[Rank] = []
        self.scores = Matrix()  # on the scale that is shown
        self.shifts: list[float] = []
        """Of a model with frozen answers: their mean in each run, which is taken off its scores."""
        self.alarms: list[Alarm] = []
        self.breaks: list[int] = []  # the places of the first runs after announced changes
        self.refuted: float | None = None
        self.unused = 0  # items that too few runs of the segment hold, as of the last run
        self._begin(0)

    def _begin(self, first: int) -> None:
        self.first = first
        """The place of the first run of the segment, which begins after an alarm, and at an announced change."""
        self.states: dict[Side, DriftState] = {side: begin() for side in self.sides}
        self._sums: ItemSums | None = None

    @property
    def changed(self) -> int:
        """The place of the first run after the last announced change; what was before it is history."""
        return self.breaks[-1] if self.breaks else 0

    @property
    def current(self) -> list[Alarm]:
        """The alarms since the last announced change."""
        return [each for each in self.alarms if each.place >= self.changed]

    def evidence(self, side: Side) -> float:
        """Return the logarithm of the sum of a side."""
        return (log_sum if self.settings.ever is None else log_ever)(self.states[side])

    @property
    def strongest(self) -> Side:
        """The side with the largest evidence."""
        return max(self.sides, key=self.evidence)

    def bag(self, first: int, last: int) -> Rows:
        """Return what is ranked of some runs."""
        rows = self.scores.rows(first, last)
        return (rows - np.array(self.shifts[first:last])[:, None] + 1) / 2 if self.shifted else rows

    def announce(self) -> None:
        """Begin a segment with the next run, since the model was changed on purpose."""
        if self.breaks[-1:] != [len(self.runs)]:
            self.breaks.append(len(self.runs))
        self._begin(len(self.runs))

    def add(
        self, run: str, scores: Mapping[str, float], shift: float | None = None, known: Rank | None = None
    ) -> Alarm | None:
        """Rank a run among those of its segment, and return the alarm it raises; `known`: what it has shown before a restart."""
        self.scores.add(scores)
        self.runs.append(run)
        if self.shifted:
            assert shift is not None, "a run with frozen answers has their mean"
            self.shifts.append(shift)
        place = len(self.runs) - 1
        shown = self._rank(run, place) if known is None else known
        self.shown.append(shown)
        if known is not None:
            self.refuted = self.refuted or known.refuted
            return None
        self.refuted = self.refuted or shown.refuted
        for side in self.sides:
            self.states[side] = step(self.states[side], shown.p if side == "worse" else 1 - shown.p, self.ranks)
        side = self.strongest
        total = self.evidence(side)
        self.shown[-1] = shown._replace(log_sum=total if isfinite(total) else None)
        if total < self.limit or self.refuted is not None:
            return None
        alarm = Alarm(side, self.first, place, total, localize(self.states[side]))
        self.alarms.append(alarm)
        self._begin(place + 1)
        return alarm

    def _rank(self, run: str, place: int) -> Rank:
        rows = self.bag(self.first, place + 1)
        sums = self._summed(rows)
        used = sums.runs >= max(1.0, self.settings.min_coverage * rows.shape[0])
        self.unused = int(used.size - used.sum())
        if self.unused:
            rows, sums = rows[:, used], ItemSums(sums.runs[used], sums.total[used], sums.squares[used])
        u = uniform(self.seed, self.name, run)
        if self.ranks == "items":
            p = p_items(rows, u, generator(self.seed, self.name, run), sums=sums)
            return Rank(p, self._dispersion(rows, run))
        return Rank(p_runs(rows, u, sums, self._stratum(place)))

    def _summed(self, rows: Rows) -> ItemSums:
        """Return the sums of the segment, with those of its new run."""
        width = rows.shape[1]
        sums = self._sums
        if sums is None or sums.runs.size != width:
            zeros = np.zeros(width)
            sums = ItemSums(np.zeros(width, np.int64), zeros, zeros)
            for row in rows[:-1]:
                sums = sums.with_run(row)
        self._sums = sums.with_run(rows[-1])
        return self._sums

    def _dispersion(self, rows: Rows, run: str) -> float | None:
        """Return the p-value that refutes independent items: runs differ by more than their items (looked at after 20, 40, 80 … runs)."""
        size = rows.shape[0]
        if size % _DISPERSION_RUNS or (size // _DISPERSION_RUNS).bit_count() != 1:
            return None
        p = p_dispersion(rows, generator(f"{self.seed}/dispersion", self.name, run))
        return p if p <= _DISPERSION_ALPHA else None

    def _stratum(self, place: int) -> NDArray[np.bool_] | None:
        """Return which runs of the segment are of the same weekday as the newest."""
        if self.settings.strata is None:
            return None
        days = [weekday(run) for run in self.runs[self.first : place + 1]]
        return np.array([day == days[-1] for day in days])

    # --- what a restart needs ---------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return what the runs and their p-values do not show, as JSON."""
        return {
            "first": self.first,
            "breaks": self.breaks,
            "unused": self.unused,
            "alarms": [
                [each.side, each.first, each.place, each.log_sum, [*each.point[:3], each.point.starts.tolist()]]
                for each in self.alarms
            ],
            "states": {
                side: [state.runs, state.starts.tolist(), b64encode(state.log_capital.astype("<f8").tobytes()).decode()]
                for side, state in self.states.items()
            },
        }

    def load(self, stored: Mapping[str, Any]) -> None:
        """Take over what `dump` returned, once the runs are there."""
        self.first, self.breaks, self.unused = stored["first"], list(stored["breaks"]), stored["unused"]
        self.alarms = [
            Alarm(side, first, place, total, ChangePoint(start, low, high, np.array(starts, np.int64)))
            for side, first, place, total, (start, low, high, starts) in stored["alarms"]
        ]
        for side, (runs, starts, capital) in stored["states"].items():
            cells = np.frombuffer(b64decode(capital), "<f8").reshape(-1, len(DROPS))
            self.states[side] = DriftState(runs, np.array(starts, np.int64), cells)
        self._sums = None


def seed_of(settings: DriftSettings) -> str:
    """Return the seed that follows from what is declared."""
    return hashlib.sha256(msgspec.json.encode(msgspec.structs.replace(settings, changes=()))).hexdigest()


def weekday(run: str) -> int | None:
    """Return the weekday of the date with which the name of a run begins; None without one."""
    try:
        return date.fromisoformat(run[:10]).weekday()
    except ValueError:
        return None


def mean_of(scores: Mapping[str, float] | Sequence[float]) -> float | None:
    """Return the mean of some scores; None without one."""
    values = list(scores.values()) if isinstance(scores, Mapping) else list(scores)
    return float(np.mean(values)) if values else None


# --- what an alarm is ---------------------------------------------------------------------------------------------------------------------

_LISTED: Final = 10


def describe(monitor: Monitor, alarm: Alarm, last: int | None = None) -> DriftAlarm:
    """Return an alarm with its size, from its segment and the runs after it, up to an announced change and to before the place `last`."""
    runs, point, first = monitor.runs, alarm.point, alarm.first
    ends = [each for each in (*monitor.breaks, len(runs), last) if each is not None and each > alarm.place]
    places = range(first, min(ends))
    sign = 1.0 if alarm.side == "worse" else -1.0
    levels = monitor.scores.rows(places.start, places.stop)
    size = drift_size(sign * np.nanmean(levels, axis=1), point.start, point.starts)
    before = point.start - 1
    bag = monitor.bag(places.start, places.stop)
    moved, share = _moved(bag[:before], bag[before:], sign)
    # The model's rows are less the judge's mean; what is listed is on the scale of the scores.
    return DriftAlarm(
        side=alarm.side,
        run=runs[alarm.place],
        start=runs[first + point.start - 1],
        after_run=runs[first + point.first - 2],
        last_start=runs[first + point.last - 1],
        before=sign * size.before,
        since=sign * size.after,
        low=size.low,
        high=size.high,
        runs_since=size.runs,
        log_sum=alarm.log_sum,
        log_limit=monitor.limit,
        items=tuple(_item(monitor, levels, before, item) for item in moved),
        share_of_ten=share,
    )


def _moved(before: Rows, since: Rows, sign: float) -> tuple[Sequence[int], float | None]:
    """Return the items that moved most, and the share of the whole movement that ten of them carry."""
    fell = sign * (_means(before) - _means(since))
    fell = np.where(np.isnan(fell), -np.inf, fell)
    order = np.argsort(-fell, kind="stable")[:_LISTED]
    whole = float(fell[np.isfinite(fell)].sum())
    share = float(fell[order][fell[order] > 0].sum()) / whole if whole > 0 else None
    return [int(k) for k in order if fell[k] > 0], share


def _means(rows: Rows) -> Rows:
    sums = item_sums(rows)
    counts = np.asarray(sums.runs, float)
    return np.where(counts > 0, sums.total / np.maximum(counts, 1), np.nan)


def _item(monitor: Monitor, levels: Rows, before: int, item: int) -> FallenItem:
    column = levels[:, item]
    since = column[before:]
    held = since[~np.isnan(since)]
    return FallenItem(monitor.scores.items[item], float(np.nanmean(column[:before])), float(held.mean()), held.size)


# --- the runs of a model ------------------------------------------------------------------------------------------------------------------

Scores = dict[str, dict[int, float]]  # the score of each item, by repeat
_NAMED: Final = 20  # runs of a kind that are named; the others are counted


@dataclass
class OpenRun:
    """A run that is not closed."""

    name: str
    number: int  # its place among the runs of the benchmark
    started: bool = False  # whether its start was declared: then only its end closes it
    mixed: bool = False  # whether its model was changed meanwhile
    fresh: Scores = field(default_factory=dict)
    anchors: Scores = field(default_factory=dict)

    def has_all(self, settings: DriftSettings, repeats: int) -> bool:
        """Return whether every declared item, and every declared frozen answer, has all its repeats."""
        return (
            settings.items is not None
            and (not settings.anchored or settings.anchors is not None)
            and len(self.fresh) >= settings.items
            and _complete(self.fresh, repeats) >= settings.items
            and _complete(self.anchors, repeats) >= (settings.anchors or 0)
        )


def _complete(scores: Scores, repeats: int) -> int:
    return len(scores) if repeats == 1 else sum(len(each) >= repeats for each in scores.values())


def means(scores: Scores) -> dict[str, float]:
    """Return the mean score of each item over its repeats."""
    return {item: sum(of.values()) / len(of) for item, of in scores.items()}


class ModelRuns:
    """The runs of one model on one sentinel, and its monitors."""

    def __init__(self, benchmark: str, model: str, settings: DriftSettings) -> None:
        self.benchmark, self.model, self.settings = benchmark, model, settings
        self.runs: list[DriftRun] = []  # the closed runs, in the order of closing
        self.open: dict[str, OpenRun] = {}
        self.closed: dict[str, int] = {}  # where each closed run is
        self.monitors: list[Monitor] = []
        """Empty until the first run with enough items: it decides whether there are frozen answers, unless a judge was declared."""
        self.counts = dict.fromkeys(("duplicates", "conflicts", "skipped", "late"), 0)
        """What was counted otherwise than expected."""
        self.named: dict[str, list[str]] = {"repeated": [], "out_of_order": []}
        """The first runs that came again after they had closed, or in another order than their dates."""
        self.graded = False
        self.announced: list[str] = []  # the first run after each announced change
        self._whole: int | None = settings.items
        self._first: dict[str, float] | None = None
        self._changed = False
        self._latest = ""

    def note(self, kind: str, run: str) -> None:
        """Name a run that is otherwise than expected."""
        named = self.named[kind]
        if run not in named and len(named) < _NAMED:
            named.append(run)

    def announce(self) -> None:
        """Begin a history of its own with the next run; a run that is open is of both."""
        self._changed = True
        for monitor in self.monitors:
            monitor.announce()
        for run in self.open.values():
            run.mixed = True

    def enter(
        self,
        name: str,
        fresh: dict[str, float],
        anchors: dict[str, float],
        closed: RunClosed = "ended",
        *,
        mixed: bool = False,
        known: Mapping[str, Rank] | None = None,
    ) -> list[tuple[Monitor, Alarm | None]]:
        """Take a closed run; return the monitors that ranked it, each with the alarm that it raises."""
        if self._first is None and fresh and closed != "cancelled":
            self._first = dict.fromkeys(fresh, 0.0)
            self._whole = self._whole or len(fresh)
        self.graded |= any(score not in (0.0, 1.0) for score in fresh.values())
        count = len(fresh)
        why = self._unranked(fresh, anchors, closed, mixed=mixed)
        if self.settings.missing == "fail":
            fresh = (self._first or {}) | fresh  # items that come later are new, and were not missing
        moved, rank = list[tuple[Monitor, Alarm | None]](), None
        if why is None:
            moved = self._rank(name, fresh, anchors, known)
            rank = moved[0][0].shown[-1]
            if self._changed:
                self.announced.append(name)
                self._changed = False
        if name < self._latest and name[:2] == "20" == self._latest[:2]:
            self.note("out_of_order", name)
        self._latest = max(self._latest, name)
        self.closed[name] = len(self.runs)
        self.runs.append(
            DriftRun(
                run=name,
                items=count,
                mean=mean_of(fresh),
                anchors=len(anchors),
                anchor_mean=mean_of(anchors),
                ranked=why is None,
                unranked=why,
                p=None if rank is None else rank.p,
                log_sum=None if rank is None else rank.log_sum,
            )
        )
        return moved

    def _unranked(
        self, fresh: Mapping[str, float], anchors: Mapping[str, float], closed: RunClosed, *, mixed: bool
    ) -> Unranked | None:
        """Return why a run is not ranked: a rule about the run itself, so that the others stay exchangeable."""
        if closed == "cancelled":
            return "cancelled"
        if mixed:
            return "changed"
        if len(fresh) < max(1.0, self.settings.min_coverage * self.whole):
            return "incomplete"
        if not self.monitors:
            self._watch(anchored=self.settings.anchored or bool(anchors))
        return "unanchored" if len(self.monitors) > 1 and not anchors else None

    def _watch(self, *, anchored: bool) -> None:
        name = f"{self.benchmark}/{self.model}"
        self.monitors = [
            Monitor(f"{name}/model", "model", self.settings, both=anchored or self.settings.both, shifted=anchored)
        ]
        if anchored:
            self.monitors.append(Monitor(f"{name}/judge", "judge", self.settings, both=True))

    def _rank(
        self, name: str, fresh: Mapping[str, float], anchors: Mapping[str, float], known: Mapping[str, Rank] | None
    ) -> list[tuple[Monitor, Alarm | None]]:
        moved = []
        for monitor in self.monitors:
            shift = mean_of(anchors) if monitor.shifted else None
            of = fresh if monitor.of == "model" else anchors
            alarm = monitor.add(name, of, shift, None if known is None else known[monitor.of])
            moved.append((monitor, alarm))
        return moved

    def monitor(self, of: Literal["model", "judge"]) -> Monitor | None:
        """Return the monitor of the model, or of its judge."""
        return next((each for each in self.monitors if each.of == of), None)

    @property
    def whole(self) -> int:
        """Items of a whole run."""
        return self._whole or 1

    # --- what a restart needs ---------------------------------------------------------------------------------------------------------

    def dump(self) -> dict[str, Any]:
        """Return what the runs themselves do not show, as JSON."""
        return {
            "counts": self.counts,
            "repeated": self.named["repeated"],
            "monitors": {each.of: each.dump() for each in self.monitors},
        }

    def load(self, stored: Mapping[str, Any]) -> None:
        """Take over what `dump` returned, once the runs are there."""
        self.counts |= stored["counts"]
        self.named["repeated"] = list(stored["repeated"])
        for monitor in self.monitors:
            monitor.load(stored["monitors"][monitor.of])


def in_turn(runs: Iterable[OpenRun]) -> list[OpenRun]:
    """Return runs in the order in which they began."""
    return sorted(runs, key=lambda run: run.number)

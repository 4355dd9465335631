"""A monitor of a sentinel: the scores of its runs, the p-value of each, and a detector of each side (statistics: drift)."""

import hashlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import date
from math import isfinite, log
from typing import Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.records.drift import DriftSettings
from schemas.results.drift import Side
from stats.drift.bets import DROPS, Ranks
from stats.drift.detector import ChangePoint, DriftState, begin, localize, log_ever, log_sum, step
from stats.drift.ranks import ItemSums, generator, p_dispersion, p_items, p_runs, uniform

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
    """One sequence of runs that is watched: a model's scores, or its judge's scores of frozen answers.

    Each run moves it on once, and what it shows depends on the runs up to there alone.
    """

    def __init__(self, name: str, of: Of, settings: DriftSettings, *, both: bool, shifted: bool = False) -> None:
        self.name, self.of, self.settings, self.both, self.shifted = name, of, settings, both, shifted
        self.seed = settings.seed or seed_of(settings)
        self.ranks: Ranks = "items" if settings.assume == "independent-items" and of == "model" else "runs"
        self.sides: tuple[Side, ...] = ("worse", "better") if both else ("worse",)
        count = len(self.sides)
        self.limit = log(count * settings.false_alarm_runs if settings.ever is None else count / settings.ever)
        self.runs: list[str] = []
        self.shown: list[Rank] = []
        self.scores = Matrix()
        """On the scale that is shown."""
        self.shifts: list[float] = []
        """Of a model with frozen answers: their mean in each run, which is taken off its scores."""
        self.alarms: list[Alarm] = []
        self.breaks: list[int] = []
        """The places of the first runs after announced changes."""
        self.refuted: float | None = None
        self.unused = 0
        """Items that too few runs of the segment hold, as of the last run."""
        self._begin(0)

    def _begin(self, first: int) -> None:
        self.first = first
        """The place of the first run of the segment, which begins after an alarm, and at an announced change."""
        self.states: dict[Side, DriftState] = {side: begin() for side in self.sides}
        self._sums: ItemSums | None = None

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

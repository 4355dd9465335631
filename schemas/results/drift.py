"""What `rankwatch drift` found: facts of each sentinel, for programs and for words."""

from enum import StrEnum
from typing import Literal

import msgspec

from schemas.records.drift import DriftSettings

Side = Literal["worse", "better"]  # of a model: its scores fell or rose. Of a judge: it became stricter or more lenient

RunClosed = Literal["ended", "complete", "next", "cancelled"]
"""How a run closed: by its end, with its last item, with the next run of its model, or because it was cancelled."""

Unranked = Literal["incomplete", "cancelled", "changed", "unanchored"]
"""Why a run is not ranked: too few items, cancelled, its model was changed meanwhile, or no frozen answers."""


class DriftOutcome(StrEnum):
    """What a sentinel shows."""

    QUIET = "quiet"
    WORSE = "worse"
    BETTER = "better"
    JUDGE = "judge"  # the judge alone moved
    SHORT = "short"  # too few runs for any alarm to be likely
    HELD = "held"  # the runs contradict what was declared of them


class FallenItem(msgspec.Struct, frozen=True):
    """Mean scores of an item before and since a change."""

    item: str
    before: float
    since: float
    runs_since: int


class DriftAlarm(msgspec.Struct, frozen=True, kw_only=True):
    """An alarm, its change point and its size."""

    side: Side
    run: str  # the run at which the monitor alarmed
    start: str  # the most likely first run after the change
    after_run: str  # the last run that is surely before the change: the earliest start of the set comes next
    last_start: str  # the latest start of the set
    before: float
    since: float
    low: float  # the hull of how far the mean moved, in the direction of the alarm
    high: float
    runs_since: int
    log_sum: float
    log_limit: float
    items: tuple[FallenItem, ...] = ()  # the items that moved most
    share_of_ten: float | None = None  # share of the whole movement that ten items carry


class FoundDrop(msgspec.Struct, frozen=True):
    """How soon a lasting drop would be found, from the history of the segment."""

    drop: float
    median: float | None  # runs until half of such drops are found; None: beyond `horizon`
    horizon: int


class DriftMonitor(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence of runs that is watched: a model's scores, or its judge's scores of frozen answers."""

    of: Literal["model", "judge"]
    both: bool
    segment: str | None  # the first run of the segment; None without a ranked run
    ranked: int  # ranked runs of the segment
    log_sum: float | None
    log_limit: float
    alarms: tuple[DriftAlarm, ...] = ()  # since the last announced change
    earlier: tuple[DriftAlarm, ...] = ()  # before it: history, and no result of today
    changed: str | None = None  # the first ranked run after it
    found: tuple[FoundDrop, ...] = ()
    spread: float | None = None
    """Standard deviation of what is ranked of a run: its mean score, or with anchors half of its difference to theirs."""
    ranks: Literal["runs", "items"] = "runs"
    dispersion: float | None = None  # p-value of the dispersion of runs under independent items, where it refutes them
    back: float | None = None
    """Mean score of the latest runs, where they are as high again as before the newest alarm; descriptive."""


class DriftRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a sentinel, in order."""

    run: str
    items: int
    mean: float | None
    anchors: int = 0
    anchor_mean: float | None = None
    ranked: bool = True
    unranked: Unranked | None = None  # why it is not ranked
    p: float | None = None
    log_sum: float | None = None  # the evidence of the model's monitor with it


class Sentinel(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark on which one model is run many times, every day for example."""

    benchmark: str
    model: str
    outcome: DriftOutcome
    items: int  # items of a whole run
    unused_items: int  # items that too few of the runs hold: they enter no score
    incomplete: int  # runs below the least coverage: counted, and not ranked
    cancelled: int = 0
    late: int = 0  # scores that came after their run had closed
    repeated: tuple[str, ...] = ()  # runs that came again after they had closed
    out_of_order: tuple[str, ...] = ()  # runs that closed after one of a later date
    open: tuple[str, ...] = ()  # runs that are not closed
    duplicates: int
    conflicts: int
    skipped: int
    ordered_by: Literal["date", "appearance", "closing"]
    graded: bool
    runs: tuple[DriftRun, ...]
    monitors: tuple[DriftMonitor, ...]


class DriftReport(msgspec.Struct, frozen=True, kw_only=True):
    """All sentinels of the files."""

    settings: DriftSettings
    sentinels: tuple[Sentinel, ...]
    equal_runs: bool = False  # whether files with equal contents count as runs of their own

    @property
    def exit_code(self) -> int:
        """4 where a model got worse, 5 where a judge alone moved, 3 where one is held or too short, 0 else."""
        found = {sentinel.outcome for sentinel in self.sentinels}
        codes = ((DriftOutcome.WORSE, 4), (DriftOutcome.JUDGE, 5), (DriftOutcome.HELD, 3), (DriftOutcome.SHORT, 3))
        return next((code for outcome, code in codes if outcome in found), 0)


class DriftWords(msgspec.Struct, frozen=True, kw_only=True):
    """What a sentinel shows, in words."""

    title: str
    sign: str
    headline: str
    details: list[tuple[str, str]]
    quiet: str | None
    notes: list[str]
    list_note: str
    quote: str  # the result with what it claims and assumes, to be pasted elsewhere
    change: str  # the names of an announced change, as arguments of `rankwatch drift change`


class DriftPage(msgspec.Struct, frozen=True, kw_only=True):
    """The sentinels of one benchmark, with words for a page."""

    report: DriftReport
    words: list[DriftWords]
    promise: str
    assumption: str


class PlannedDrop(msgspec.Struct, frozen=True, kw_only=True):
    """Whether, and how soon, a lasting drop is found with so many items and runs of history."""

    drop: float
    median: float | None  # runs until half of such drops are found; None: beyond `horizon`
    horizon: int
    least_history: int  # runs of history below which it is unlikely to be found, however long one waits


class PlannedWatch(msgspec.Struct, frozen=True, kw_only=True):
    """What one number of items finds."""

    items: int
    history: int
    spread: float  # standard deviation of a run's mean
    cost_a_year: float | None
    drops: tuple[PlannedDrop, ...]


class DriftPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Which drops a sentinel would find."""

    variance: float  # mean variance of an item's score between two runs
    shocks: float  # standard deviation that whole runs share, beyond what their items explain
    benchmark: str | None  # where the noise comes from; None: given
    model: str | None
    false_alarm_runs: float
    years: float
    runs_a_year: float
    watches: tuple[PlannedWatch, ...]

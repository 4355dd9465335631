"""Runs of one model on a sentinel: how they are collected, when they close, and what its monitors make of them (statistics: drift).

A run is open until it ends, is complete, or another run of its model begins. It enters once, when it closes; what comes later is counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from monitor.engine.kinds.monitors import Alarm, Monitor, Rank, mean_of
from schemas.records.drift import DriftSettings
from schemas.results.drift import DriftRun, RunClosed, Unranked

Scores = dict[str, dict[int, float]]
"""The score of each item, by repeat."""

_NAMED: Final = 20
"""Runs of a kind that are named; the others are counted."""


@dataclass
class OpenRun:
    """A run that is not closed."""

    name: str
    number: int
    """Its place among the runs of the benchmark."""
    started: bool = False
    """Whether its start was declared: then only its end closes it."""
    mixed: bool = False
    """Whether its model was changed meanwhile."""
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
        self.runs: list[DriftRun] = []
        """The closed runs, in the order of closing."""
        self.open: dict[str, OpenRun] = {}
        self.closed: dict[str, int] = {}
        """Where each closed run is."""
        self.monitors: list[Monitor] = []
        """Empty until the first run with enough items: it decides whether there are frozen answers, unless a judge was declared."""
        self.counts = dict.fromkeys(("duplicates", "conflicts", "skipped", "late"), 0)
        """What was counted otherwise than expected."""
        self.named: dict[str, list[str]] = {"repeated": [], "out_of_order": []}
        """The first runs that came again after they had closed, or in another order than their dates."""
        self.graded = False
        self.announced: list[str] = []
        """The first run after each announced change."""
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
        if self._first is None and closed != "cancelled":
            self._first = dict.fromkeys(fresh, 0.0)
            self._whole = self._whole or max(len(fresh), 1)
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
        self,
        name: str,
        fresh: Mapping[str, float],
        anchors: Mapping[str, float],
        known: Mapping[str, Rank] | None,
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

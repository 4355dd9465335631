"""Drift in words: has this model got worse, or its judge moved."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import mean, median
from typing import Final

from monitor.words.counts import EQUAL_RUNS, counted
from schemas.records.drift import DriftSettings
from schemas.records.run_names import date_in
from schemas.records.text import Sentence, shorten
from schemas.results.drift import (
    DriftAlarm,
    DriftMonitor,
    DriftOutcome,
    DriftPage,
    DriftReport,
    DriftWords,
    FoundDrop,
    Sentinel,
    Unranked,
)
from schemas.results.reasons import DriftKind

SIGNS: Final = {
    DriftOutcome.WORSE: "▼",
    DriftOutcome.BETTER: "▲",
    DriftOutcome.JUDGE: "◆",
    DriftOutcome.QUIET: "○",
    DriftOutcome.SHORT: "…",
    DriftOutcome.HELD: "‖",
}
_MOVED: Final = {"worse": "has got worse", "better": "has got better"}
_JUDGE_MOVED: Final = {"worse": "has become stricter", "better": "has become more lenient"}
_DIRECTION: Final = {"worse": "lower", "better": "higher"}
_UNRANKED: Final[dict[Unranked, tuple[str, str]]] = {
    "incomplete": ("run", "with too few items, counted and not ranked (min-coverage)"),
    "cancelled": ("cancelled run", "counted and not ranked (never cancel a run because of its scores)"),
    "unanchored": ("run", "without frozen answers, counted and not ranked"),
    "changed": ("run", "open at an announced change, counted and not ranked"),
}
LIST_NOTE: Final = "A list to look at, not a claim."


def points(score: float) -> str:
    """Return a mean score in points."""
    return f"{100 * score:.1f}"


def monitor_of(sentinel: Sentinel, of: str) -> DriftMonitor | None:
    """Return the monitor of the model, or of the judge."""
    return next((each for each in sentinel.monitors if each.of == of), None)


def title(sentinel: Sentinel) -> str:
    """Return what was read: benchmark, model, items and runs."""
    first, last = sentinel.runs[0].run, sentinel.runs[-1].run
    span = f"{first} to {last}" if len(sentinel.runs) > 1 else first
    read = f"{counted(sentinel.items, 'item')} · {counted(len(sentinel.runs), 'run')}, {span}"
    return f"{shorten(sentinel.benchmark)} · {shorten(sentinel.model)} · {read}"


def headline(sentinel: Sentinel) -> str:
    """Return the result in one sentence."""
    model, judge = monitor_of(sentinel, "model"), monitor_of(sentinel, "judge")
    assert model is not None, "a sentinel has a monitor of its model"
    name = shorten(sentinel.model)
    if model.alarms:
        alarm = model.alarms[-1]
        return f"{name} {_said(_MOVED[alarm.side], model)}."
    if judge is not None and judge.alarms:
        alarm = judge.alarms[-1]
        return f"The judge {_said(_JUDGE_MOVED[alarm.side], judge)} on its frozen answers. No evidence that {name} changed."
    if sentinel.outcome == DriftOutcome.HELD:
        return f"{name}: held. The runs differ by more than their items explain: drop --assume independent-items."
    if sentinel.outcome == DriftOutcome.SHORT:
        return f"{name}: too little history. {counted(model.ranked, 'run')} of at least 8; add runs."
    return f"{name}: quiet. No alarm in {counted(model.ranked, 'run')} since {model.segment}."


def _said(moved: str, monitor: DriftMonitor) -> str:
    """Return that a model or judge has moved, or had moved and is back, with its levels."""
    alarm = monitor.alarms[-1]
    before = f"{points(alarm.before)} points before {alarm.start}"
    if monitor.back is None:
        return f"{moved}: {before}, {points(alarm.since)} since"
    return f"{moved.replace('has', 'had', 1)} and is back: {before}, {points(monitor.back)} in the last 8 runs"


def _extent(alarm: DriftAlarm) -> str:
    """Return by how much the mean moved in the direction of an alarm; a limit on the other side of zero is none."""
    if alarm.low > 0:
        return f"{points(alarm.low)} to {points(alarm.high)} points"
    if alarm.high > 0:
        return f"at most {points(alarm.high)} points, with no lower limit yet"
    back = _DIRECTION["better" if alarm.side == "worse" else "worse"]
    return f"nothing any more: {points(-alarm.high)} to {points(-alarm.low)} points {back}"


def details(sentinel: Sentinel) -> Iterator[tuple[str, str]]:
    """Yield the lines below the headline of an alarm, each with its label."""
    model, judge = monitor_of(sentinel, "model"), monitor_of(sentinel, "judge")
    moved = model if model is not None and model.alarms else judge
    if moved is None or not moved.alarms:
        yield from _earlier(sentinel)
        return
    alarm = moved.alarms[-1]
    if moved.back is None:
        yield f"{_DIRECTION[alarm.side]} by", f"{_extent(alarm)} ({counted(alarm.runs_since, 'run')} since)"
    yield "change", f"between {alarm.after_run} and {alarm.last_start}"
    yield from _earlier(sentinel, moved)
    if moved is judge:
        yield "model", "no alarm once the judge's own movement is removed"
        yield "so", "scores since are on another scale: compare none with those before"
    elif judge is not None:
        yield from _attributed(sentinel, alarm, judge)


def _earlier(sentinel: Sentinel, moved: DriftMonitor | None = None) -> Iterator[tuple[str, str]]:
    """Yield the alarms that are history: before an announced change, or before the newest one of the monitor that moved."""
    named = [
        f"{each.start} ({'judge, ' if monitor.of == 'judge' else ''}{_DIRECTION[each.side]})"
        for monitor in sentinel.monitors
        for each in (*monitor.earlier, *(monitor.alarms[:-1] if monitor is moved else ()))
    ]
    if named:
        yield "earlier", ", ".join(named)


def _attributed(sentinel: Sentinel, alarm: DriftAlarm, judge: DriftMonitor) -> Iterator[tuple[str, str]]:
    """Yield what the judge did meanwhile, and what follows."""
    frozen = max((run.anchors for run in sentinel.runs), default=0)
    if judge.alarms:
        moved = _JUDGE_MOVED[judge.alarms[-1].side]
        yield "judge", f"{_said(f'{moved} too', judge)} on its {counted(frozen, 'frozen answer')}"
        yield "so", "both moved; the size above is on the judge's scale of today"
        return
    since = [run.run for run in sentinel.runs].index(judge.changed) if judge.changed else 0
    place = [run.run for run in sentinel.runs].index(alarm.start)
    before, now = (
        points(mean(run.anchor_mean for run in runs if run.ranked and run.anchor_mean is not None))
        for runs in (sentinel.runs[since:place], sentinel.runs[place:])
    )
    yield "judge", f"as before: {before} on its {counted(frozen, 'frozen answer')}, {now} since"
    yield "so", "the model moved, or its provider, prompt or harness"


def quiet(found: Sequence[FoundDrop]) -> str | None:
    """Return which lasting drops would have been found; None where none was worked out."""
    if not found:
        return None
    seen = [f"{100 * each.drop:g} points within {counted(round(each.median), 'run')}" for each in found if each.median]
    never = [f"{100 * each.drop:g} points" for each in found if not each.median]
    horizon = found[0].horizon
    parts = []
    if seen:
        parts.append(f"A lasting drop would have been found, in half of the cases: {', '.join(seen)}.")
    if never:
        parts.append(
            f"A drop of {' or '.join(never)} would not have been found within {horizon} runs in half of the cases."
        )
    return " ".join(parts)


def otherwise(sentinel: Sentinel) -> Iterator[Sentence]:
    """Yield what was counted otherwise than expected, with the flag or field that changes it."""
    for why, (noun, text) in _UNRANKED.items():
        if named := [run.run for run in sentinel.runs if run.unranked == why]:
            yield f"{counted(len(named), noun)} {text}: {_named(named)}."
    counts = (
        (sentinel.unused_items, "item", "that too few runs hold: not used (min-coverage)"),
        (sentinel.conflicts, "score", "in conflict with an earlier score of the same run: the first counts"),
        (sentinel.duplicates, "repeated score", "counted once"),
        (sentinel.late, "score", "of runs that had closed: not counted"),
        (sentinel.skipped, "item", "without a score (missing: fail counts them as 0)"),
    )
    yield from (f"{counted(count, noun)} {text}." for count, noun, text in counts if count)
    if sentinel.repeated:
        yield f"Runs that came again after they had closed, and count once: {_named(sentinel.repeated)}."
    if sentinel.out_of_order:
        yield f"Runs that closed after one of a later date: {_named(sentinel.out_of_order)}. They are ranked in the order of closing."
    dates = Counter(date[:10] for run in sentinel.runs if run.ranked and (date := date_in(run.run)) is not None)
    if len(dates) > 1 and (most := max(dates.values())) > 5 * median(dates.values()):
        day = max(dates, key=dates.__getitem__)
        yield f"{counted(most, 'run')} of {day}, far more than of other days: if days have levels, this one is most of the past."
    if sentinel.ordered_by == "appearance":
        yield "The runs are in the order in which they were read: some have no date in their name."


def _named(runs: Sequence[str]) -> str:
    shown = ", ".join(shorten(run) for run in runs[:3])
    return shown if len(runs) <= 3 else f"{shown} and {len(runs) - 3:,} more"


def change_sentence(benchmark: str, model: str, kind: DriftKind, alarm: DriftAlarm | None) -> Sentence:
    """Return what a monitor reports, in one sentence."""
    name, place = shorten(model), shorten(benchmark)
    if alarm is None:
        return (
            f"{name} on {place} is held: its runs differ by more than independent items explain, so no drift is claimed; declare a new "
            "sentinel with assume exchangeable-runs"
        )
    moved = f"{name} {_MOVED[alarm.side]} on {place}"
    if kind == "drift.judge":
        moved = f"the judge of {name} {_JUDGE_MOVED[alarm.side]} on {place}"
    return (
        f"{moved}: {points(alarm.before)} -> {points(alarm.since)} since {shorten(alarm.start)}, {_DIRECTION[alarm.side]} by "
        f"{_extent(alarm)}"
    )


def page(report: DriftReport) -> DriftPage:
    """Return what the sentinels of a benchmark show, with words for a page."""
    bound, assumed = promise(report.settings), assumption(report)
    words = [
        DriftWords(
            title=title(each),
            sign=SIGNS[each.outcome],
            headline=headline(each),
            details=list(details(each)),
            quiet=quiet(each.monitors[0].found),
            notes=list(otherwise(each)),
            list_note=LIST_NOTE,
            quote=f"{shorten(each.benchmark)}: {' '.join([headline(each), *_clauses(each), bound, assumed])}",
            change=change_arguments(each.benchmark, each.model),
        )
        for each in report.sentinels
    ]
    return DriftPage(report=report, words=words, promise=bound, assumption=assumed)


def change_arguments(benchmark: str, model: str, server: str | None = None) -> str:
    """Return what follows `rankwatch drift change`, for names of any characters."""
    return shlex.join([*([] if server is None else ["--server", server]), f"--benchmark={benchmark}", "--", model])


def _clauses(sentinel: Sentinel) -> Iterator[str]:
    """Yield what is quoted after the headline: the details of an alarm, or the drops that would have been found."""
    yield from (f"{label.capitalize()} {text}." for label, text in details(sentinel))
    if (found := quiet(sentinel.monitors[0].found)) is not None:
        yield found


def promise(settings: DriftSettings) -> str:
    """Return the bound on false alarms."""
    if settings.ever is not None:
        return (
            f"The chance of any false alarm, ever, is at most {100 * settings.ever:g} % for each monitor and history."
        )
    runs = settings.years * settings.runs_a_year
    daily = settings.runs_a_year == 365
    years = "1 year" if settings.years == 1 else f"{settings.years:g} years"
    span = f"{years} of daily runs" if daily else f"{runs:,.0f} runs ({years})"
    each = "for each monitor" if settings.monitors == 1 else f"over {settings.monitors:,} monitors together"
    return f"At most one false alarm is expected in {span}, {each}."


def assumption(report: DriftReport) -> str:
    """Return what an alarm assumes."""
    runs = "Assumes that runs were exchangeable while nothing changed: same items and harness, no level that wanders for days."
    items = (
        " Assumes too that items are independent within a run." if report.settings.assume == "independent-items" else ""
    )
    judge = (
        " Assumes that the judge moves alike on frozen and fresh answers."
        if any(run.anchors for each in report.sentinels for run in each.runs)
        else " A judge that moves looks like a model that moves. Judge frozen answers in every run (role: anchor) to separate the two."
    )
    return runs + items + judge + f" {EQUAL_RUNS}" * report.equal_runs


def remedy(report: DriftReport) -> str:
    """Return the exit code in words, and what to do."""
    code = report.exit_code
    word = {4: "worse", 5: "the judge alone moved", 3: "too little history, or held", 0: "quiet, or better"}[code]
    if code == 4:
        worse = next(each for each in report.sentinels if each.outcome == DriftOutcome.WORSE)
        return f"Exit 4: {word}. Was it you? rankwatch drift PATH --change {worse.monitors[0].alarms[-1].start}"
    return f"Exit {code}: {word}."

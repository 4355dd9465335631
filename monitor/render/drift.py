"""Drift in the terminal and in Markdown: the same sentences in the same order, and one chart of runs."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from monitor.render.document import Column, Element, Figure, Heading, Note, Notes, Table, numbers, plain, texts
from monitor.render.markdown import write
from monitor.words import drift as words
from schemas.records.text import shorten
from schemas.results.drift import DriftAlarm, DriftOutcome, DriftReport, Sentinel

_COLUMNS: Final = 37
_ROWS: Final = 5
_BAND: Final = 1.96
_SHOWN_ITEMS: Final = 3
_WIDTH: Final = 100


def terminal(report: DriftReport) -> Iterator[str]:
    """Yield the lines of a report for a terminal, with the exit code."""
    yield from findings(report)
    yield from _wrapped(words.remedy(report))


def findings(report: DriftReport) -> Iterator[str]:
    """Yield the lines of a report for a terminal."""
    for sentinel in report.sentinels:
        yield words.title(sentinel)
        yield ""
        yield f"{words.SIGNS[sentinel.outcome]} {words.headline(sentinel)}"
        for label, text in words.details(sentinel):
            yield f"  {label:<11} {text}"
        yield from _indented(chart(sentinel))
        yield from _indented(_items(sentinel))
        if (found := _quiet(sentinel)) is not None:
            yield from _wrapped(found, "  ")
        for note in words.otherwise(sentinel):
            yield from _wrapped(note, "  ")
        yield ""
    yield from _wrapped(words.promise(report.settings))
    yield from _wrapped(words.assumption(report))


def _wrapped(sentence: str, indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(sentence, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)


def markdown(report: DriftReport) -> str:
    """Write a report as Markdown."""
    return write(_document(report))


def _document(report: DriftReport) -> Iterator[Element]:
    for sentinel in report.sentinels:
        yield Heading(f"{words.SIGNS[sentinel.outcome]} {words.headline(sentinel)}")
        yield plain(words.title(sentinel))
        yield Notes([Note(text, label) for label, text in words.details(sentinel)], "facts")
        yield from [Figure("", "", lines=lines)] if (lines := list(chart(sentinel))) else []
        yield from _table(sentinel)
        yield from [plain(found)] if (found := _quiet(sentinel)) is not None else []
        yield from map(plain, words.otherwise(sentinel))
    yield plain(words.promise(report.settings), words.assumption(report))


def _indented(lines: Iterator[str]) -> Iterator[str]:
    shown = list(lines)
    if shown:
        yield ""
    yield from (f"  {line}" for line in shown)


def _quiet(sentinel: Sentinel) -> str | None:
    model = words.monitor_of(sentinel, "model")
    return None if model is None else words.quiet(model.found)


def _alarm(sentinel: Sentinel) -> DriftAlarm | None:
    """Return the alarm that a sentinel shows: the model's, else its judge's."""
    alarms = [each.alarms[-1] for each in sentinel.monitors if each.alarms]
    return alarms[0] if alarms else None


# --- the items that moved -------------------------------------------------------------------------------------------------------------


def _items(sentinel: Sentinel) -> Iterator[str]:
    alarm = _alarm(sentinel)
    if alarm is None or not alarm.items:
        return
    head = _head(sentinel, alarm)
    width = max(20, len(head), *(len(shorten(each.item)) for each in alarm.items[:_SHOWN_ITEMS]))
    yield f"{head:<{width}}  before   since"
    for each in alarm.items[:_SHOWN_ITEMS]:
        yield f"{shorten(each.item):<{width}}  {100 * each.before:5.0f} %   {_since(sentinel, each.since, each.runs_since)}"
    share = "" if alarm.share_of_ten is None else f" Ten items carry {100 * min(1.0, alarm.share_of_ten):.0f} % of it."
    yield f"{words.LIST_NOTE}{share}"


def _head(sentinel: Sentinel, alarm: DriftAlarm) -> str:
    """Return the head of the items that moved most: of the model, or the frozen answers of its judge."""
    return f"{'Frozen answers' if _of_judge(sentinel) else 'Items'} that {'fell' if alarm.side == 'worse' else 'rose'} most"


def _of_judge(sentinel: Sentinel) -> bool:
    """Return whether what is shown is the alarm of the judge alone."""
    return sentinel.outcome == DriftOutcome.JUDGE


def _table(sentinel: Sentinel) -> Iterator[Element]:
    alarm = _alarm(sentinel)
    if alarm is None or not alarm.items:
        return
    shown = alarm.items[:_SHOWN_ITEMS]
    columns = {
        "item": Column(_head(sentinel, alarm), texts(shorten(each.item) for each in shown), "name"),
        "before": numbers("before", (f"{100 * each.before:.0f} %" for each in shown)),
        "since": numbers("since", (_since(sentinel, each.since, each.runs_since) for each in shown)),
    }
    yield Table(columns)
    yield plain(words.LIST_NOTE)


def _since(sentinel: Sentinel, mean: float, runs: int) -> str:
    """Return an item's scores since a change: how many runs had it right, where scores are 0 or 1."""
    return f"{100 * mean:.0f} %" if sentinel.graded else f"{round(mean * runs):,} of {runs:,}"


# --- the chart ------------------------------------------------------------------------------------------------------------------------


def chart(sentinel: Sentinel) -> Iterator[str]:
    """Yield a chart of the means of runs, of frozen answers where the judge alone moved: dots for runs, and the band of their past."""
    judge = _of_judge(sentinel)
    shown = [(run.run, run.anchor_mean if judge else run.mean) for run in sentinel.runs if run.ranked]
    runs = [(name, mean) for name, mean in shown if mean is not None]
    if len(runs) < _ROWS:
        return
    size = -(-len(runs) // _COLUMNS)
    means = np.array([mean for _, mean in runs])
    groups = [float(means[k : k + size].mean()) for k in range(0, len(runs), size)]
    alarm = _alarm(sentinel)
    names = [name for name, _ in runs]
    change = names.index(alarm.start) if alarm is not None and alarm.start in names else len(runs)
    changed = max((names.index(each.changed) for each in sentinel.monitors if each.changed in names), default=0)
    past = means[changed : change or len(runs)]
    center, spread = float(past.mean()), float(past.std(ddof=1)) if past.size > 1 else 0.0
    band = _BAND * spread / size**0.5
    low, high = min(*groups, center - band), max(*groups, center + band)
    step = max((high - low) / (_ROWS - 1), 1e-9)
    levels = [high - k * step for k in range(_ROWS)]
    for level in levels:
        cells = [
            _cell(group, level, step, center, band, own=changed - size < k * size < change)
            for k, group in enumerate(groups)
        ]
        note = ""
        if abs(level - center) <= step / 2:
            note = f"  {words.points(center)}"
        elif (
            alarm is not None
            and abs(level - float(means[change:].mean() if change < len(runs) else center)) <= step / 2
        ):
            note = f"  {words.points(float(means[change:].mean()))}"
        yield f"{100 * level:5.1f} {''.join(cells)}{note}".rstrip()
    yield f"      {_axis(names, len(groups))}"
    dot = "1 run" if size == 1 else f"{size} runs"
    yield f"      ● {dot}   · its own past, 95 %{'   (frozen answers)' if judge else ''}"


def _cell(group: float, level: float, step: float, center: float, band: float, *, own: bool) -> str:
    if level - step / 2 <= group < level + step / 2:
        return "●"
    return "·" if own and abs(level - center) <= max(band, step / 2) else " "


def _axis(names: Sequence[str], columns: int) -> str:
    """Return the first and the last run below the chart."""
    first, last = names[0][:10], names[-1][:10]
    return f"{first}{last:>{max(columns - len(first), len(last) + 1)}}"

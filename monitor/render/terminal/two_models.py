"""Two models on a terminal: their scores, the gap on its interval, and what so many items can show."""

from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from monitor.render.signs import HELD, UNDECIDED
from monitor.render.terminal.layout import shorten
from monitor.words import numbers as form
from monitor.words.two_models import Comparison, comparison, points
from schemas.results.reasons import Reason
from schemas.results.report import BenchmarkReport

_LABEL: Final = 10
_SECOND: Final = 32  # cells to the second number of a row
_LEAST, _MOST = 30, 51  # cells of the axis
_MARGIN: Final = 6
_ASCII: Final = str.maketrans({"−": "-", "·": ";"})


def compared(b: BenchmarkReport) -> Comparison | None:
    """Return the numbers of a benchmark of two models; None of another one, of prompts, and where nothing may be decided."""
    two = next(iter(b.result.best.facts if b.result else ()), None)
    if b.result is None or two is None or two["code"] != Reason.TWO_MODELS or two.get("prompts"):
        return None
    return comparison(two, b.result.change.facts if b.result.change else [])


def two_models(b: BenchmarkReport, found: Comparison, console: Console, low_coverage: float) -> list[list[Text]]:
    """Build the parts: the numbers, the axis, and what would decide."""
    ascii_only = console.options.ascii_only
    parts = [[_scores(b, console.width, low_coverage)], _axis(found, console.width, ascii_only=ascii_only), []]
    for row in found.rows:
        cells = [f"{name:<{_LABEL}}{'' if value[0] in '+−' else ' '}{value}" for name, value in row]
        if len(cells) > 1:  # the second value is a text
            cells[1] = f"{row[1][0]} {row[1][1]}"
        if sum(map(len, cells)) + 4 > console.width or len(cells) == 1:
            parts[0] += [Text(f"  {cell}") for cell in cells]
        else:
            parts[0].append(Text(f"  {cells[0]:<{_SECOND}}{cells[1]}"))
    if found.sentences:
        parts[2] = [Text(found.title, "bold"), *(Text(f"  {each}") for each in found.sentences)]
    for line in (line for part in parts for line in part if ascii_only):
        line.plain = line.plain.translate(_ASCII)
    return parts


def _scores(b: BenchmarkReport, width: int, low_coverage: float) -> Text:
    line = Text(" ")
    for model in b.models[:2]:
        line.append(f" {shorten(model.shown, max(8, width // 2 - 16))}  {form.percent(model.mean)}")
        line.append(f" {model.coverage:.0%}" if model.coverage < low_coverage else "", HELD).append("  ")
    line.rstrip()
    return line


def _axis(found: Comparison, width: int, *, ascii_only: bool) -> list[Text]:
    """Draw the interval with the gap in it and 0, each below its number."""
    room = min(_MOST, width - 2 * _MARGIN)
    if found.low is None or found.high is None or room < _LEAST:
        return []
    # An interval of several looks may miss the gap.
    least, most = min(found.low, found.gap, 0.0), max(found.high, found.gap, 0.0)
    if least == most:
        return []

    def at(gap: float) -> int:
        return round((gap - least) / (most - least) * (room - 1))

    low, high, gap, zero = at(found.low), at(found.high), at(found.gap), at(0.0)
    end, line, crossing, dot = "|-+o" if ascii_only else "┼─┼●"
    cells = [line if low <= k <= high else " " for k in range(room)]
    cells[low], cells[high] = (end, end) if ascii_only else ("├", "┤")
    cells[zero] = crossing if low <= zero <= high else "|" if ascii_only else "│"
    cells[gap] = dot
    ends = [(low, points(found.low)), (high, points(found.high)), (gap, points(found.gap)), (zero, "0")]
    labels = _labels(ends, room)
    pad = " " * _MARGIN
    return [Text(labels, UNDECIDED), Text(f"{pad}{''.join(cells)}".rstrip())]


def _labels(texts: Sequence[tuple[int, str]], room: int) -> str:
    """Write each number above its place; one without room is omitted."""
    line = [" "] * (room + 2 * _MARGIN)
    for place, text in texts:
        start = max(0, place + _MARGIN - len(text) // 2)
        around = line[max(0, start - 1) : start + len(text) + 1]
        if not "".join(around).strip():
            line[start : start + len(text)] = text
    return "".join(line).rstrip()

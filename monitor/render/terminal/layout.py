"""Tables that fit a terminal: every column as wide as its cells, and a layout that fits the width."""

import os
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from itertools import pairwise
from typing import Final, NoReturn

from rich.cells import cell_len, chop_cells
from rich.console import Console, Group
from rich.text import Text

from monitor.render.signs import ASCII, DECIDED, UNDECIDED, UNICODE, Glyphs
from monitor.words.numbers import safe

GAP: Final = 2  # cells between two columns

PIPE_WIDTH: Final = 100  # width of a table in a file, in columns


def output_console() -> Console:
    """Return a console on standard output: as wide as COLUMNS, else as the terminal, in a pipe too; 100 columns where there is none."""
    # A name may have characters that the terminal cannot encode: they are escaped.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    console = _Console(highlight=False)
    return console if console.is_terminal else _Console(highlight=False, width=_pipe_width())


class _Console(Console):
    """A console that leaves it to the command what a closed pipe means; rich ends it with a fault."""

    def on_broken_pipe(self) -> NoReturn:
        raise BrokenPipeError


def _pipe_width() -> int:
    """Return the width that a pipe's reader most likely has: COLUMNS, or that of the terminal of the other streams."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    for stream in (sys.__stderr__, sys.__stdin__):
        try:
            width = 0 if stream is None else os.get_terminal_size(stream.fileno()).columns
        except (OSError, ValueError):
            continue
        if width > 0:
            return width
    return PIPE_WIDTH


@dataclass(frozen=True)
class Column:
    """A title, which may have several lines, and one text a row; columns of one group have a line above theirs, and signs are close."""

    title: str
    cells: Sequence[Text]
    right: bool = False
    style: str = ""
    group: str = ""
    sign: bool = False

    @property
    def width(self) -> int:
        """Cells that the column needs."""
        lines = [cell_len(line) for line in self.title.split("\n")]
        return max([*lines, *(cell.cell_len for cell in self.cells)])


def glyphs_for(console: Console) -> Glyphs:
    """Return the glyphs that the terminal can encode."""
    return ASCII if console.options.ascii_only else UNICODE


def shorten(name: str, room: int, ellipsis: str = "…") -> str:
    """Cut a name in its middle, where model names differ least, to at most `room` cells."""
    name = safe(name)
    if cell_len(name) <= room:
        return name
    head = (room - cell_len(ellipsis) + 1) // 2
    tail = room - cell_len(ellipsis) - head
    if tail <= 0:
        return "".join(chop_cells(name, max(room, 1))[:1])
    return chop_cells(name, head)[0] + ellipsis + chop_cells(name[::-1], tail)[0][::-1]


def table(columns: Sequence[Column], *, ascii_only: bool = False, ruled: bool = True) -> Group:
    """Lay out columns, each exactly as wide as it needs, with one rule under the titles unless it is not `ruled`."""
    return Group(*table_lines(columns, ascii_only=ascii_only, ruled=ruled))


def table_lines(
    columns: Sequence[Column],
    *,
    ascii_only: bool = False,
    ruled: bool = True,
    gap: int = GAP,
    rules: Container[int] = (),
) -> list[Text]:
    """Lay out columns as lines, with a rule below some rows."""
    # rich's own table measures each cell several times, too slow for a screen that is drawn four times a second.
    gaps, widths = _gaps(columns, gap), _widths(columns, gap)
    length = sum(widths) + sum(gaps)
    line = "-" if ascii_only else "─"
    headed = any(column.title or column.group for column in columns)
    lines = _heads(columns, widths, gaps, ruled=ruled) if headed else []
    if ruled:
        lines.append(Text(line * length, UNDECIDED, no_wrap=True, overflow="crop"))
    for k, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        lines.append(_line(columns, widths, gaps, row))
        if k in rules:
            lines.append(Text(line * length, DECIDED, no_wrap=True, overflow="crop"))
    return lines


def _gaps(columns: Sequence[Column], gap: int) -> list[int]:
    """Return the cells ahead of each column: one between two signs of a group."""
    return [0, *(1 if a.sign and b.sign and a.group == b.group else gap for a, b in pairwise(columns))]


def _widths(columns: Sequence[Column], gap: int) -> list[int]:
    """Return the width of each column; the last one of a group has room for the name of the group."""
    gaps, widths = _gaps(columns, gap), [column.width for column in columns]
    for group in {column.group for column in columns if column.group}:
        places = [k for k, column in enumerate(columns) if column.group == group]
        widths[places[-1]] += max(0, len(group) - sum(widths[k] for k in places) - sum(gaps[k] for k in places[1:]))
    return widths


def _heads(columns: Sequence[Column], widths: Sequence[int], gaps: Sequence[int], *, ruled: bool) -> list[Text]:
    titles = [column.title.split("\n") for column in columns]
    titles = [
        [column.group if k == 0 or columns[k - 1].group != column.group else "", *title] if column.group else title
        for k, (column, title) in enumerate(zip(columns, titles, strict=True))
    ]
    lines = []
    for level in range(-max(map(len, titles)), 0):
        line, at = Text(style="" if ruled else UNDECIDED, no_wrap=True, overflow="crop"), 0
        for column, title, width, gap in zip(columns, titles, widths, gaps, strict=True):
            part = title[level] if -level <= len(title) else ""
            start = at + gap + (width - cell_len(part) if column.right else 0)
            at += gap + width
            if part:
                line.append(" " * (start - line.cell_len)).append(part, column.style)
        lines.append(line)
    return lines


def _line(columns: Sequence[Column], widths: Sequence[int], gaps: Sequence[int], cells: Sequence[Text]) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for column, width, gap, cell in zip(columns, widths, gaps, cells, strict=True):
        space = " " * (width - cell.cell_len)
        line.append(" " * gap)
        line.append_text(Text(space).append_text(cell) if column.right else cell.copy().append(space))
    line.rstrip()
    return line


def width_of(columns: Mapping[str, Column], keys: Sequence[str], gap: int = GAP) -> int:
    """Return the width of a table of these columns in cells."""
    shown = [columns[key] for key in keys]
    return sum(_widths(shown, gap)) + sum(_gaps(shown, gap))


def first_that_fits(columns: Mapping[str, Column], layouts: Sequence[tuple[str, ...]], width: int) -> tuple[str, ...]:
    """Return the first layout that fits, or the last."""
    return next((layout for layout in layouts if width_of(columns, layout) <= width), layouts[-1])


def wrap(line: Text, console: Console, indent: int = 0) -> list[Text]:
    """Wrap a line to the width of the console; all lines but the first are indented."""
    width = console.width
    if line.cell_len <= width:
        return [line]
    first, *rest = line.wrap(console, width)
    parts = [first, *rest]
    if rest and width > 3 * indent:
        remaining = line[len(first.plain.rstrip()) :]
        remaining = remaining[len(remaining.plain) - len(remaining.plain.lstrip()) :]
        parts = [first, *(Text(" " * indent).append_text(part) for part in remaining.wrap(console, width - indent))]
    for part in parts:
        part.rstrip()
    return parts


def ellipsis_of(*, ascii_only: bool) -> str:
    """Return the sign for omitted characters."""
    return ".." if ascii_only else "…"

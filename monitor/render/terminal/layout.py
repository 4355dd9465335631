"""Tables that fit a terminal: every column as wide as its cells, and a layout that fits the width."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import TextIOWrapper
from typing import Final, NoReturn

from rich.cells import cell_len, chop_cells
from rich.console import Console, Group
from rich.text import Text

from monitor.render.signs import ASCII, UNDECIDED, UNICODE, Glyphs
from monitor.words.numbers import safe

GAP: Final = 2  # cells between two columns

PIPE_WIDTH: Final = 100
"""Width of a table in a file, in columns."""


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
    """A title, which may have several lines, and one text a row."""

    title: str
    cells: Sequence[Text]
    right: bool = False
    style: str = ""

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
    """Lay out columns, each exactly as wide as it needs, with one rule under the titles unless it is not `ruled`.

    rich's own table measures each cell several times, too slow for a screen that is drawn four times a second.
    """
    widths = [column.width for column in columns]
    titles = [column.title.split("\n") for column in columns]
    depth = max(len(title) for title in titles)
    lines = []
    for level in range(depth):
        parts = [title[level - depth + len(title)] if level >= depth - len(title) else "" for title in titles]
        lines.append(
            _line(columns, widths, [Text(part, column.style) for part, column in zip(parts, columns, strict=True)])
        )
    rule = ("-" if ascii_only else "─") * (sum(widths) + GAP * (len(widths) - 1))
    if ruled:
        lines.append(Text(rule, UNDECIDED, no_wrap=True, overflow="crop"))
    lines.extend(_line(columns, widths, row) for row in zip(*(column.cells for column in columns), strict=True))
    return Group(*lines)


def _line(columns: Sequence[Column], widths: Sequence[int], cells: Sequence[Text]) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for column, width, cell in zip(columns, widths, cells, strict=True):
        if line:
            line.append(" " * GAP)
        space = " " * (width - cell.cell_len)
        if column.right:
            line.append(space).append_text(cell)
        else:
            line.append_text(cell).append(space)
    line.rstrip()
    return line


def width_of(columns: Mapping[str, Column], keys: Sequence[str], but: str = "") -> int:
    """Return the width of a table of these columns in cells, without the column `but`."""
    return sum(columns[key].width for key in keys if key != but) + GAP * (len(keys) - 1)


def first_that_fits(
    columns: Mapping[str, Column],
    layouts: Sequence[tuple[str, ...]],
    width: int,
    at_most: Mapping[str, int] | None = None,
) -> tuple[str, ...]:
    """Return the first layout that fits, or the last; a column in `at_most` may be shortened to that many cells."""
    for layout in layouts:
        spare = sum(max(0, columns[key].width - most) for key, most in (at_most or {}).items() if key in layout)
        if width_of(columns, layout) - spare <= width:
            return layout
    return layouts[-1]


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

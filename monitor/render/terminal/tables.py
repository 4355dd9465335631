"""A table of a document on a terminal: names are shortened, and columns left out, until it fits."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Final

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from monitor.render.document import Cell, Element, Figure, Heading, Notes, Table
from monitor.render.document import Column as Declared
from monitor.render.terminal.layout import GAP, Column, ellipsis_of, shorten, table_lines, width_of
from monitor.words.numbers import safe

_ENDLESS: Final = 10**4
_LEAST: Final = 16  # cells that a name may shrink to before a column is omitted for it


_ASCII: Final = str.maketrans({"−": "-", "–": "-", "≥": ">="})


def group(parts: Iterable[Element]) -> Group:
    """Lay out the headings, tables and plain notes of a document, with a blank line between two parts."""
    made: list[Text] = []
    for part in parts:
        made += [Text()] if made and not isinstance(part, Figure) else []
        if isinstance(part, Heading):
            made += [Text(safe(part.text))]
        elif isinstance(part, Notes):
            made += [Text(safe(note.text)) for note in part.notes]
        elif isinstance(part, Table):
            made += [*([Text(part.title)] if part.title else []), *lines(part, _ENDLESS)]
    return Group(*made)


def lines(
    part: Table,
    width: int,
    *,
    ascii_only: bool = False,
    ruled: bool = True,
    gap: int = GAP,
    drawn: Mapping[str, Column] | None = None,
    rules: Collection[int] | None = None,
) -> list[Text]:
    """Lay out a table; columns that are `drawn` here replace those of their keys."""
    columns = {key: _column(column, ascii_only=ascii_only) for key, column in part.columns.items()} | dict(drawn or {})
    columns = {key: columns[key] for key in part.columns if key in columns}
    names = [key for key, column in part.columns.items() if column.kind == "name"]
    natural = {key: columns[key].width for key in names}
    both = any(cell.second for key in names for cell in part.columns[key].cells)
    least = 2 * _LEAST + 3 if both else _LEAST
    squeezed = columns | {
        key: replace(columns[key], cells=[Text(" " * min(natural[key], least))], title="") for key in names
    }
    keys = list(columns)
    for key in (*part.omit, *reversed([key for key in keys if key not in part.omit and key not in names])):
        if width_of(squeezed, keys, gap) <= width:
            break
        if key in keys:
            keys.remove(key)
    for key in names:
        others = width_of(columns, [other for other in keys if other != key], gap) + (gap if len(keys) > 1 else 0)
        room = max(4, min(natural[key], width - others))
        cells = [_named(cell, room, ellipsis_of(ascii_only=ascii_only)) for cell in part.columns[key].cells]
        columns[key] = replace(columns[key], cells=cells)
    shown = [columns[key] for key in keys]
    made = table_lines(shown, ascii_only=ascii_only, ruled=ruled, gap=gap, rules=part.rules if rules is None else rules)
    for line in made:
        line.truncate(width)
    return made


def _column(column: Declared, *, ascii_only: bool) -> Column:
    cells = [text_of(cell, ascii_only=ascii_only) for cell in column.cells]
    sign = column.kind == "sign"
    return Column(column.head, cells, right=column.kind == "number", group=column.group, sign=sign)


def text_of(cell: Cell, *, ascii_only: bool = False) -> Text:
    """Return a cell with its tones."""
    both = f" {cell.relation} {safe(cell.second)}" if cell.second else ""
    parts = ((f"{safe(cell.text)}{both}", cell.tone), (safe(cell.more), cell.more_tone))
    return Text.assemble(*((part.translate(_ASCII), tone) if ascii_only else (part, tone) for part, tone in parts))


def _named(cell: Cell, room: int, ellipsis: str) -> Text:
    """Return a name, or two, within `room` cells; a short one leaves its share to the other."""
    if not cell.second:
        return Text(shorten(cell.text, room - len(cell.more), ellipsis)).append(cell.more, cell.more_tone)
    a, b = safe(cell.text), safe(cell.second)
    share = max(room, 9) - 3
    if cell_len(a) + cell_len(b) > share:
        room_a = min(cell_len(a), max(share // 2, share - cell_len(b)))
        a, b = shorten(a, room_a, ellipsis), shorten(b, share - room_a, ellipsis)
    return Text(a).append(f" {cell.relation} ", "bold").append(b)

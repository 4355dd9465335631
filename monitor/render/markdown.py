"""A document as Markdown: for an issue, a pull request or a README."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from monitor.render.document import Cell, Element, Figure, Heading, Notes, Table
from monitor.render.signs import HELD
from monitor.words.numbers import safe

_MARKUP: Final = re.compile(r"([\\`*_{}\[\]<>|~#&!])")
_MENTION: Final = re.compile(r"(?<!\w)@(?=\w)")
_LINK: Final = re.compile(r"(?<=[A-Za-z]):(?=//)|(?<=\b[wW]{3})\.")
_RULES: Final = {"number": "---:", "sign": ":-:"}


def escape(text: str) -> str:
    r"""Escape text so that Markdown shows it unchanged: no markup, no table cell, no link, no notification.

    >>> escape("a|b*c")
    'a\\|b\\*c'
    >>> escape("see https://x and @you")
    'see https&#58;//x and @&#8203;you'
    """
    text = _MARKUP.sub(r"\\\1", safe(text))
    text = _MENTION.sub("@&#8203;", text)
    return _LINK.sub(lambda match: f"&#{ord(match.group())};", text)


def write(parts: Iterable[Element]) -> str:
    """Write the parts of a document; a figure is its lines."""
    return "\n\n".join(text for part in parts for text in _blocks(part)) + "\n"


def _blocks(part: Element) -> Iterator[str]:
    if isinstance(part, Heading):
        yield f"{'#' * part.level} {escape(part.text)}"
    elif isinstance(part, Notes):
        yield from _notes(part)
    elif isinstance(part, Figure):
        yield from ["\n".join(["```text", *part.lines, "```"])] if part.lines else []
    elif part.cards:
        yield from _groups(part)
    else:
        yield table(part)


def _notes(part: Notes) -> Iterator[str]:
    if part.kind == "plain":
        yield from (escape(note.text) for note in part.notes)
        return
    if part.kind == "signs":
        yield "; ".join(f"{escape(note.sign)} {escape(note.text)}" for note in part.notes)
        return
    bold = "**" if part.kind in {"result", "reasons"} else ""
    lead = "> - " if part.kind == "warnings" else "- "
    yield "\n".join(
        f"{lead}{f'{escape(note.sign)} ' if note.sign else ''}"
        f"{f'{bold}{escape(note.label)}{bold}: ' if note.label else ''}{escape(note.text)}"
        for note in part.notes
    )


def _groups(part: Table) -> Iterator[str]:
    """Write a table for each group of columns, with the name of the row ahead of it."""
    name = next(key for key, column in part.columns.items() if column.kind == "name")
    for group in dict.fromkeys(column.group for column in part.columns.values() if column.group):
        keys = [key for key, column in part.columns.items() if column.group == group]
        rows = [k for k in range(part.rows) if any(part.columns[key].cells[k].text for key in keys)]
        columns = {
            key: part.columns[key]._replace(cells=[part.columns[key].cells[k] for k in rows], group="")
            for key in (name, *keys)
        }
        if rows:
            yield f"#### {group}"
            yield table(Table(columns))


def table(part: Table) -> str:
    """Write the columns that have a text; a group is named at its first column."""
    columns = [c for c in part.columns.values() if not c.cells or any(cell.text or cell.second for cell in c.cells)]
    heads, last = [], ""
    for column in columns:
        head = escape(column.head.replace("\n", " "))
        heads.append(f"{column.group}: {head}" if column.group and column.group != last else head)
        last = column.group
    rules = [_RULES.get(column.kind, "---") for column in columns]
    rows = ([_cell(cell) for cell in row] for row in zip(*(column.cells for column in columns), strict=True))
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, rules, *rows))


def _cell(cell: Cell) -> str:
    text = escape(cell.text.strip())
    if cell.second:
        text = f"{text} {escape(cell.relation)} {escape(cell.second)}"
    if cell.tone == HELD and text:
        text = f"**{text}**"
    return ", ".join(part for part in (text, escape(cell.more.strip())) if part)

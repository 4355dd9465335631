"""A document as one HTML file that loads nothing and runs no script."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Final

from monitor.render.document import Cell, Column, Element, Figure, Heading, Note, Notes, Table
from monitor.render.signs import DECIDED, HELD, UNDECIDED
from monitor.words.numbers import safe

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_TONES: Final = {DECIDED: "yes", HELD: "turned", UNDECIDED: "no"}
_KINDS: Final = {"number": "num", "sign": "centre", "drawing": "ties"}
_LEFT_TO_TABLES: Final = {"n", "bc", "log_e", "required_n", "q"}
"""Columns of pairs that the tables of sizes and the cards show."""


def text(value: str) -> str:
    """Escape a name or a sentence for HTML."""
    return escape(safe(value))


def page(title: str, body: str, policy: str = POLICY) -> str:
    """Write a page that loads nothing but what the policy allows, and runs no script; `body` is HTML."""
    style = files("monitor.render").joinpath("report.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}"><title>{text(title)}</title>'
        f"<style>{style}</style></head><body>{body}</body></html>\n"
    )


def write(parts: Iterable[Element], name: str = "") -> str:
    """Write the parts of a document; a heading of level 2 gets an id."""
    return "".join(_block(part, name) for part in parts)


def _block(part: Element, name: str) -> str:
    if isinstance(part, Heading):
        own = f' id="{name}"' if part.level == 2 and name else ""
        return f"<h{part.level}{own}>{text(part.text)}</h{part.level}>"
    if isinstance(part, Notes):
        return notes(part)
    if isinstance(part, Figure):
        return _figure(part)
    return _cards(part) if part.cards else table(part)


def notes(part: Notes) -> str:
    """Write notes as paragraphs or a list."""
    if part.kind == "plain":
        return "".join(f'<p class="soft">{text(note.text)}</p>' for note in part.notes)
    if part.kind in {"result", "facts"}:
        return f'<dl class="{"lede" if part.kind == "result" else "facts"}">{"".join(map(_entry, part.notes))}</dl>'
    items = "".join(f"<li>{_sign(note.sign, note.tone)}{text(note.text)}</li>" for note in part.notes)
    return f'<ul class="{"key" if part.kind == "signs" else "notes"}">{items}</ul>'


def _entry(note: Note) -> str:
    tone = f' class="t-{_TONES[note.tone]}"' if note.tone else ""
    return f"<dt{tone}>{_sign(note.sign)}{text(note.label)}</dt><dd>{text(note.text)}</dd>"


def _sign(sign: str, tone: str = "") -> str:
    kind = f' class="sign {_TONES[tone]}"' if tone else ""
    return f'<span{kind} aria-hidden="true">{escape(sign)}</span> ' if sign else ""


def _figure(part: Figure) -> str:
    key = "".join(f'<li><span class="swatch {kind}"></span>{escape(words)}</li>' for kind, words in part.key)
    numbers = f"<details><summary>Show as a table</summary>{table(part.table)}</details>" if part.table else ""
    return f'<p class="soft">{text(part.title)}</p><ul class="key">{key}</ul><figure class="matrix">{part.svg}</figure>{numbers}'


def table(part: Table) -> str:
    """Write a table; groups of columns have a head above theirs, and sentences a row of their own."""
    columns = {key: column for key, column in part.columns.items() if not (part.below and key in _LEFT_TO_TABLES)}
    kinds = {key: _classes(column, first=_begins(columns, key)) for key, column in columns.items()}
    rows = []
    for k in range(part.rows):
        cells = "".join(_cell(column, column.cells[k], kinds[key]) for key, column in columns.items())
        ruled = ' class="ruled"' if k in part.rules else ""
        rows.append(f"<tr{ruled}>{cells}</tr>")
        if k in part.below:
            rows.append(f'<tr class="why"><td colspan="{len(columns)}"><p>{text(part.below[k])}</p></td></tr>')
    title = text(part.title)
    label = title or text(next(iter(columns.values())).head)
    above = f'<p class="soft">{title}</p>' if title else ""
    ranked = ' class="ranked"' if part.rules or "ties" in columns else ""
    return (
        f'{above}<div{ranked}><div class="scroll" role="region" tabindex="0" aria-label="{label}"><table><thead>{_head(columns)}</thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div></div>"
    )


def _begins(columns: Mapping[str, Column], key: str) -> bool:
    """Return whether a column begins a group."""
    group = columns[key].group
    return bool(group) and next(k for k, column in columns.items() if column.group == group) == key


def _head(columns: Mapping[str, Column]) -> str:
    grouped = any(column.group for column in columns.values())
    first, second = [], []
    for key, column in columns.items():
        head = text(column.head.replace("\n", " "))
        shown = f'<abbr title="{text(column.about)}">{head}</abbr>' if column.about else head
        kind = _classes(column, first=_begins(columns, key))
        if column.group:
            second.append(f'<th scope="col"{kind}>{shown}</th>')
            if _begins(columns, key):
                span = sum(other.group == column.group for other in columns.values())
                first.append(f'<th scope="colgroup" colspan="{span}" class="head">{text(column.group)}</th>')
        else:
            first.append(f'<th scope="col"{" rowspan=2" if grouped else ""}{kind}>{shown}</th>')
    return f"<tr>{''.join(first)}</tr>" + (f"<tr>{''.join(second)}</tr>" if grouped else "")


def _classes(column: Column, *, first: bool) -> str:
    kinds = [kind for kind in (_KINDS.get(column.kind), "head" if first else None) if kind]
    return f' class="{" ".join(kinds)}"' if kinds else ""


def _cell(column: Column, cell: Cell, kind: str) -> str:
    if column.kind == "name":
        return f'<th scope="row">{_name(cell)}</th>'
    return f"<td{kind}>{cell.svg}{_shown(column, cell)}</td>"


def _name(cell: Cell) -> str:
    both = f" {escape(cell.relation)} {text(cell.second)}" if cell.second else ""
    return f"{text(cell.text)}{both}{_toned(cell.more, cell.more_tone)}"


def _shown(column: Column, cell: Cell) -> str:
    hidden = f'<span class="hidden">{text(cell.words)}</span>' if cell.words else ""
    if column.kind == "sign":
        kind = _TONES.get(cell.tone, "no")
        return f'<span class="sign {kind}" aria-hidden="true">{escape(cell.text)}</span>{hidden}' if cell.text else ""
    soft = cell.svg and not cell.more
    shown = f'<span class="soft">{text(cell.text)}</span>' if soft and cell.text else _toned(cell.text, cell.tone)
    return f"{shown}{', ' if cell.text and cell.more else ''}{_toned(cell.more, cell.more_tone)}{hidden}"


def _toned(words: str, tone: str) -> str:
    kind = _TONES.get(tone)
    return f'<span class="t-{kind}">{text(words)}</span>' if kind and words else text(words)


def _cards(part: Table) -> str:
    """Write each row on its own: its name, its drawing, and its columns as a list; further groups open on demand."""
    name = next(column for column in part.columns.values() if column.kind == "name")
    groups = dict.fromkeys(column.group for column in part.columns.values() if column.group)
    articles = []
    for k in range(part.rows):
        drawn = "".join(c.cells[k].svg or text(c.cells[k].text) for c in part.columns.values() if c.kind == "drawing")
        lists = [_entries([c for c in part.columns.values() if c.group == group], k) for group in groups]
        more = "".join(
            f"<details><summary>{text(group)}</summary>{entries}</details>"
            for group, entries in list(zip(groups, lists, strict=True))[1:]
            if entries
        )
        articles.append(f'<article class="card"><h4>{_name(name.cells[k])}</h4>{drawn}{lists[0]}{more}</article>')
    return f'<div class="cards">{"".join(articles)}</div>'


def _entries(columns: Sequence[Column], k: int) -> str:
    shown = [(column.head, column.cells[k].text) for column in columns if column.cells[k].text]
    rows = "".join(f"<div><dt>{text(head)}</dt><dd>{text(value)}</dd></div>" for head, value in shown)
    return f"<dl>{rows}</dl>" if rows else ""

"""The comparison as JSON, or as tables for a terminal."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from monitor.paper.reproduce.rows import Row, Section

if TYPE_CHECKING:
    from rich.console import RenderableType

_MARK = {True: "[green]same[/]", False: "[yellow]differs[/]", None: "[dim]-[/]"}


def counts(sections: Sequence[Section]) -> dict[str, int]:
    """Count the rows that agree, that differ, that cannot be recomputed from print, and that the paper does not print."""
    rows = [row for section in sections for row in section.rows]
    unpaired = [row.computed is None for row in rows if row.same is None]
    return {
        "same": sum(row.same is True for row in rows),
        "differs": sum(row.same is False for row in rows),
        "not_recomputable": unpaired.count(True),
        "not_printed": unpaired.count(False),
    }


def as_json(sections: Sequence[Section]) -> str:
    """Return {"summary": {...}, "sections": [{title, source, rows: [{name, published, computed, same, note}]}]}."""
    return json.dumps(
        {"summary": counts(sections), "sections": [_plain(section) for section in sections]},
        indent=2,
        ensure_ascii=False,
        allow_nan=False,
    )


def _plain(section: Section) -> dict[str, object]:
    """Return the section for JSON, in which an infinite N* is the text "inf"."""
    rows = [
        row if not isinstance(row.computed, float) or math.isfinite(row.computed) else replace(row, computed="inf")
        for row in section.rows
    ]
    return asdict(replace(section, rows=tuple(rows)))


def render_table(sections: Sequence[Section]) -> "RenderableType":
    """Return one table a section, and a line with the counts of agreeing and differing rows."""
    from rich.console import Group  # noqa: PLC0415 - JSON needs no rich
    from rich.table import Table  # noqa: PLC0415 - JSON needs no rich

    parts: list[RenderableType] = []
    for section in sections:
        table = Table(title=f"{section.title} [dim]({section.source})[/]", title_justify="left", expand=True)
        table.add_column("quantity", ratio=4)
        table.add_column("published", justify="right", min_width=9)
        table.add_column("computed", justify="right", min_width=11)
        table.add_column("", min_width=7)
        table.add_column("note", ratio=5, style="dim")
        for row in section.rows:
            table.add_row(row.name, row.published, display(row), _MARK[row.same], row.note.removeprefix("differs "))
        parts += [table, ""]
    total = counts(sections)
    parts.append(
        f"{total['same']} agree, {total['differs']} differ, {total['not_recomputable']} cannot be recomputed from print"
    )
    return Group(*parts)


def display(row: Row) -> str:
    """Format the computed value with one digit more than the published one, to show the rounding."""
    if not isinstance(row.computed, float):
        return row.computed or ""
    if not math.isfinite(row.computed):
        return str(row.computed)
    if row.same is None:
        return f"{row.computed:,.4f}"
    mantissa, exponent, _ = row.published.replace(",", "").lstrip("<>").partition("e")
    decimals = len(mantissa.partition(".")[2])
    if exponent or (row.computed != 0 and abs(row.computed) < 1e-4):
        value, power = f"{row.computed:.{decimals + 1}e}".split("e")
        return f"{value}e{int(power)}"
    return f"{row.computed:,.{decimals + 1}f}"

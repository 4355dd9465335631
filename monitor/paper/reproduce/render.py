"""The comparison as JSON, or as tables for a terminal."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

from monitor.paper.reproduce.rows import Row, Section, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLOURS: Final[dict[Verdict, str]] = {
    "equal": "green",
    "compatible": "cyan",
    "differs": "yellow",
    "not_recomputable": "dim",
    "not_printed": "dim",
}


def counts(sections: Sequence[Section]) -> dict[Verdict, int]:
    """Count the rows of each verdict."""
    verdicts = [row.verdict for section in sections for row in section.rows]
    return {verdict: verdicts.count(verdict) for verdict in _COLOURS}


def as_json(sections: Sequence[Section]) -> str:
    """Return {"summary": {...}, "sections": [{title, source, rows: [{name, published, computed, verdict, note}]}]}."""
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
    """Return one table a section, and a line with the number of rows of each verdict."""
    from rich.console import Group  # noqa: PLC0415 - JSON needs no rich
    from rich.table import Table  # noqa: PLC0415 - JSON needs no rich

    parts: list[RenderableType] = []
    for section in sections:
        table = Table(title=f"{section.title} [dim]({section.source})[/]", title_justify="left", expand=True)
        table.add_column("quantity", ratio=4)
        table.add_column("published", justify="right", min_width=9)
        table.add_column("computed", justify="right", min_width=11)
        table.add_column("", min_width=10)
        table.add_column("note", ratio=5, style="dim")
        for row in section.rows:
            table.add_row(
                row.name,
                row.published,
                display(row),
                f"[{_COLOURS[row.verdict]}]{row.verdict.replace('_', ' ')}[/]",
                row.note,
            )
        parts += [table, ""]
    total = counts(sections)
    parts.append(
        f"{total['equal']} equal to the printed digits, {total['compatible']} compatible, {total['differs']} differ, "
        f"{total['not_recomputable']} not recomputable from print"
    )
    return Group(*parts)


def display(row: Row) -> str:
    """Format the computed value with one digit more than the published one, to show the rounding."""
    if not isinstance(row.computed, float):
        return row.computed or ""
    if not math.isfinite(row.computed):
        return str(row.computed)
    if row.verdict == "not_printed":
        return f"{row.computed:,.4f}"
    mantissa, exponent, _ = row.published.replace(",", "").lstrip("<>").partition("e")
    decimals = len(mantissa.partition(".")[2])
    if exponent or (row.computed != 0 and abs(row.computed) < 1e-4):
        value, power = f"{row.computed:.{decimals + 1}e}".split("e")
        return f"{value}e{int(power)}"
    return f"{row.computed:,.{decimals + 1}f}"

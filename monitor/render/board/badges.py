"""Badges as SVG: a label and a value, light or dark as the reader's page."""

from collections.abc import Sequence
from html import escape
from typing import Final

from rich.cells import cell_len

from monitor.render.board.standings import Standing
from monitor.render.numbers import safe
from monitor.render.terminal.layout import shorten
from schemas.report import BenchmarkReport, ResultLine

_LONGEST: Final = 60
"""Cells of a label or a value; a longer name is cut in its middle."""

_CELL: Final = 6.6
_PAD: Final = 8
_HEIGHT: Final = 22

_STYLE: Final = (
    ".p{fill:#fff}.t{fill:#1b222b}.yes{fill:#eaf2fb;stroke:#0a56ad}.yes-t{fill:#0a56ad}.no{fill:#f1f2f3;stroke:#5c6672}.no-t{fill:#5c6672}"
    ".held{fill:#fdeee4;stroke:#99440a}.held-t{fill:#99440a}text{font:12px system-ui,sans-serif}.v{font-weight:600}"
    "@media(prefers-color-scheme:dark){.p{fill:#191f27}.t{fill:#e6eaef}.yes{fill:#1d3a5c;stroke:#7db9ff}.yes-t{fill:#7db9ff}"
    ".no{fill:#2a3139;stroke:#a0abb8}.no-t{fill:#a0abb8}.held{fill:#4a2a12;stroke:#ffb26b}.held-t{fill:#ffb26b}}"
)


def badge(label: str, value: str, kind: str) -> str:
    """Draw a badge.

    Parameters
    ----------
    label, value : str
        Any text.
    kind : "yes", "no" or "held"
        Blue with a filled sign, grey with a hollow one, orange with an exclamation mark.
    """
    left, right = shorten(label, _LONGEST), f"{_SIGNS[kind]} {shorten(value, _LONGEST)}"
    first, second = (round(cell_len(text) * _CELL) + 2 * _PAD for text in (left, right))
    title = escape(f"{safe(label)}: {safe(value)}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{first + second}" height="{_HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title><style>{_STYLE}</style>"
        f'<rect class="{kind}" x=".5" y=".5" width="{first + second - 1}" height="{_HEIGHT - 1}" rx="3"/>'
        f'<path class="p" d="M3.5 1H{first}V{_HEIGHT - 1}H3.5A2.5 2.5 0 0 1 1 {_HEIGHT - 3.5}V3.5A2.5 2.5 0 0 1 3.5 1Z"/>'
        f'<text class="t" x="{_PAD}" y="15" textLength="{first - 2 * _PAD}" lengthAdjust="spacingAndGlyphs">{escape(left)}</text>'
        f'<text class="v {kind}-t" x="{first + _PAD}" y="15" textLength="{second - 2 * _PAD}" lengthAdjust="spacingAndGlyphs">'
        f"{escape(right)}</text></svg>\n"
    )


_SIGNS: Final = {"yes": "●", "no": "○", "held": "!"}


def rank_badge(report: BenchmarkReport, standing: Standing) -> str:
    """Draw the range of ranks of a model; held benchmarks give none."""
    if _held(report):
        return badge(report.benchmark, "held: no order policy is declared", "held")
    every = (standing.model.rank_low, standing.model.rank_high) == (1, standing.models)
    return badge(report.benchmark, standing.place, "no" if every else "yes")


def tie_badge(report: BenchmarkReport, standing: Standing) -> str:
    """Draw how many models a model is tied with."""
    if _held(report):
        return badge(report.benchmark, "held: no order policy is declared", "held")
    return badge(report.benchmark, standing.tie, "no" if standing.ties else "yes")


def board_badge(report: BenchmarkReport) -> str:
    """Draw how many neighbours in rank are decided."""
    if _held(report):
        return badge(report.benchmark, "held: no order policy is declared", "held")
    line: ResultLine | None = None if report.result is None else report.result.decided
    if line is None:
        return badge(report.benchmark, "no shared items", "no")
    adjacent: Sequence[str | None] = [
        p.decided.anytime_family for p in report.pairs if p.adjacent and p.status != "superseded"
    ]
    value = f"{sum(side is not None for side in adjacent)} of {len(adjacent)} steps decided"
    return badge(report.benchmark, value, "yes" if line.yes else "no")


def _held(report: BenchmarkReport) -> bool:
    return report.order.policy == "none"

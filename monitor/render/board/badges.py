"""Badges as SVG: a label and a value, light or dark as the reader's page."""

from collections.abc import Sequence
from html import escape
from typing import Final, Literal

from rich.cells import cell_len

from monitor.render.board.standings import Standing
from monitor.render.terminal.layout import shorten
from monitor.words.numbers import safe
from schemas.results.report import BenchmarkReport, PairReport

State = Literal["yes", "no", "held", "withdrawn"]
Question = Literal["settled", "decided", "resolved"]

_LONGEST: Final = 60  # cells of a label or a value; a longer name is cut in its middle

_CELL: Final = 6.6
_PAD: Final = 8
_HEIGHT: Final = 22
_SIGN: Final = 15  # pixels of a sign, with the space after it

_STYLE: Final = (
    ".p{fill:#fff}.t{fill:#1b222b}.yes{fill:#eaf2fb;stroke:#0a56ad}.yes-t{fill:#0a56ad}.no{fill:#f1f2f3;stroke:#5c6672}.no-t{fill:#5c6672}"
    ".no-s{fill:none;stroke:#5c6672;stroke-width:1.5}.held{fill:#fdeee4;stroke:#99440a}.held-t{fill:#99440a}"
    "text{font:12px system-ui,sans-serif}.v{font-weight:600}"
    "@media(prefers-color-scheme:dark){.p{fill:#191f27}.t{fill:#e6eaef}.yes{fill:#1d3a5c;stroke:#7db9ff}.yes-t{fill:#7db9ff}"
    ".no{fill:#2a3139;stroke:#a0abb8}.no-t{fill:#a0abb8}.no-s{stroke:#a0abb8}.held{fill:#4a2a12;stroke:#ffb26b}.held-t{fill:#ffb26b}}"
)

_SHAPES: Final[dict[str, str]] = {
    "settled": "m0 11 4.5-4.5L9 11l-4.5 4.5z",
    "decided": "M.5 11a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "resolved": "M.5 7h8v8h-8z",
    "withdrawn": "M0 7h9l-4.5 8z",
    "held": "M0 6.5h9v9H0zM3.7 8v4h1.6V8zM3.7 12.8v1.5h1.6v-1.5z",
}
"""The sign of an answer, from 0 to 9 across; the exclamation mark of `held` is a hole in its square."""


def badge(label: str, value: str, state: State, question: Question = "decided") -> str:
    """Draw a badge."""
    left, right = shorten(label, _LONGEST), shorten(value, _LONGEST)
    first, second = (round(cell_len(text) * _CELL) for text in (left, right))
    start, width = first + 2 * _PAD, first + second + 4 * _PAD + _SIGN
    title, kind = escape(f"{safe(label)}: {safe(value)}"), "held" if state == "withdrawn" else state
    shape = _SHAPES[question if state in {"yes", "no"} else state]
    drawn = f"{kind}-s" if state == "no" else f"{kind}-t"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_HEIGHT}" role="img" aria-label="{title}">'
        f"<title>{title}</title><style>{_STYLE}</style>"
        f'<rect class="{kind}" x=".5" y=".5" width="{width - 1}" height="{_HEIGHT - 1}" rx="3"/>'
        f'<path class="p" d="M3.5 1H{start}V{_HEIGHT - 1}H3.5A2.5 2.5 0 0 1 1 {_HEIGHT - 3.5}V3.5A2.5 2.5 0 0 1 3.5 1Z"/>'
        f'<text class="t" x="{_PAD}" y="15" textLength="{first}" lengthAdjust="spacingAndGlyphs">{escape(left)}</text>'
        f'<path class="{drawn}" fill-rule="evenodd" transform="translate({start + _PAD})" d="{shape}"/>'
        f'<text class="v {kind}-t" x="{start + _PAD + _SIGN}" y="15" textLength="{second}" lengthAdjust="spacingAndGlyphs">'
        f"{escape(right)}</text></svg>\n"
    )


def rank_badge(report: BenchmarkReport, standing: Standing) -> str:
    """Draw the range of ranks of a model; filled where one rank is left."""
    one = standing.model.rank_low == standing.model.rank_high
    return _unanswered(report) or badge(report.benchmark, standing.place, "yes" if one else "no")


def tie_badge(report: BenchmarkReport, standing: Standing) -> str:
    """Draw how many models a model is tied with."""
    return _unanswered(report) or badge(report.benchmark, standing.tie, "no" if standing.ties else "yes")


def claim_badge(report: BenchmarkReport, pair: PairReport) -> str:
    """Draw whether the first model of a pair is better; the badge follows the verdict, in either direction."""
    label, side = f"{pair.model_a} > {pair.model_b}", pair.decided.anytime_family
    if pair.status == "invalidated":
        return badge(label, "withdrawn", "withdrawn")
    if side is not None:
        return badge(label, "decided", "yes") if side == "a" else badge(label, "decided against", "withdrawn")
    if pair.status == "held":
        return badge(label, _hold(report), "held")
    known = {"a": "settled, undecided", "b": "settled against, undecided", "tie": "equal scores, undecided"}
    return badge(
        label, "equivalent" if pair.status == "equivalent" else known.get(pair.settled or "", "undecided"), "no"
    )


def board_badge(report: BenchmarkReport) -> str:
    """Draw how many neighbours in rank are decided, and of a benchmark that is not complete how much is scored."""
    steps = _steps(report)
    if not steps:
        return badge(report.benchmark, "no shared items", "no")
    decided = sum(pair.decided.anytime_family is not None for pair in steps)
    share = _scored(report) if any(pair.status == "collecting" for pair in steps) else None
    value = f"{decided} of {len(steps)} steps decided"
    if share is not None:
        value = f"{decided} of {len(steps)} steps, {share} % scored" if decided else f"live: {share} % scored"
    return _unanswered(report) or badge(report.benchmark, value, "yes" if decided else "no")


def settled_badge(report: BenchmarkReport) -> str:
    """Draw whether it is settled who leads on these items."""
    steps = _steps(report)
    if report.result is None or not report.result.settled.yes:
        return badge(report.benchmark, "the lead is open", "no", "settled")
    level = bool(steps) and steps[0].settled == "tie"
    return badge(
        report.benchmark, "the lead is shared" if level else f"{report.models[0].model} leads", "yes", "settled"
    )


def resolved_badge(report: BenchmarkReport) -> str:
    """Draw for how many gaps between neighbours the benchmark has enough items."""
    steps = _steps(report)
    enough = sum(pair.resolved.fixed_n is True for pair in steps)
    return badge(
        report.benchmark, f"large enough for {enough} of {len(steps)} gaps", "yes" if enough else "no", "resolved"
    )


def _steps(report: BenchmarkReport) -> Sequence[PairReport]:
    return [pair for pair in report.pairs if pair.adjacent and pair.status != "superseded"]


def _scored(report: BenchmarkReport) -> int | None:
    """Return which share of all scores there is, in whole percent below 100; None without an item count, and for complete ones."""
    full = (report.declared_items or 0) * len(report.models)
    items = sum(model.items for model in report.models)
    return 100 * items // full if items < full else None


def _unanswered(report: BenchmarkReport) -> str | None:
    """Draw why there is no answer; None if there is one."""
    states = {pair.status for pair in report.pairs}
    if "invalidated" in states:
        return badge(report.benchmark, "withdrawn", "withdrawn")
    if report.order.policy == "none" or states == {"held"}:
        return badge(report.benchmark, _hold(report), "held")
    return None


def _hold(report: BenchmarkReport) -> str:
    return "held: order not declared" if report.order.policy == "none" else "held: no verdict"

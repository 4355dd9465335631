"""A comparison of two models in rows: the gap and its interval, p and its threshold, the items that differ, and what so many can show."""

from collections.abc import Sequence
from typing import NamedTuple

from monitor.words.counts import counted
from monitor.words.numbers import apart, p_value
from monitor.words.points import points as signed
from monitor.words.results import line
from schemas.results.reasons import Fact, Reason


class Comparison(NamedTuple):
    """The numbers of two models."""

    gap: float
    low: float | None
    high: float | None
    rows: list[tuple[tuple[str, str], ...]]  # names with their values; two in a row where they belong together
    title: str  # what heads the sentences
    sentences: list[str]
    plan: str | None  # the command that plans a test of this gap


def points(gap: float) -> str:
    """Format a gap with the sign of a minus.

    >>> points(-0.0118)
    '−1.18'
    """
    return signed(gap).replace("-", "−")


def comparison(two: Fact, change: Sequence[Fact]) -> Comparison:
    """Return what a report shows of two models."""
    counts = next((each for each in change if each["code"] == Reason.TWO_COUNTS), {})
    unit = "unit" if two.get("units") else "prompt" if two.get("prompts") else "item"
    low, high, gap = counts.get("low"), counts.get("high"), two["gap"]
    rows: list[tuple[tuple[str, str], ...]] = [(("gap", f"{points(gap)} points"),)]
    if low is not None and high is not None:
        rows[0] += (("interval", f"{points(low)} to {points(high)}"),)
    if two["p"] is not None:
        p, threshold = apart(p_value, two["p"], two["threshold"])
        rows.append((("p", p), ("decided at", f"{threshold} or less")))
    if "wins" in counts:
        a, b = two["models"]
        differ = f"{counts['wins']:,} only {a} right · {counts['losses']:,} only {b} right · {counts['alike']:,} alike"
        differ += f" · {counts['missing']:,} missing" if counts["missing"] else ""
        rows.append(((f"{unit}s", differ),))
    title = "How close" if two["close"] else f"What {counted(two['n'], unit)} can show"
    sentences = [line([each]) for each in change if each["code"] != Reason.TWO_COUNTS]
    return Comparison(gap, low, high, rows, title, sentences, _plan(two, change, counts))


def _plan(two: Fact, change: Sequence[Fact], counts: Fact) -> str | None:
    """Return the command that plans a test of the gap of an undecided pair."""
    if "wins" not in counts or not any(each["code"] == Reason.GAP_NEEDS for each in change):
        return None
    share = (counts["wins"] + counts["losses"]) / two["n"]
    return f"rankwatch plan --gap {abs(two['gap']):.3g} --discordance {share:.3g}"

"""How a number, a name and a verdict look on a terminal; without rich, so that plain output does not pay for it."""

from math import ceil, isfinite, log
from typing import Final, NamedTuple

from monitor.report.sentences import counted
from schemas.report import ASSERTED, BenchmarkReport, PairReport, Side
from schemas.text import printable

MISSING: Final = "-"
_MILLION: Final = 10**6

PROCEDURES: Final = {
    "anytime_family": ("FAM", "anytime family (headline)"),
    "anytime": ("any", "anytime (the pair by itself)"),
    "e_bh": ("eBH", "e-BH (revocable)"),
    "fixed_n": ("fix", "fixed n"),
    "bonferroni": ("Bon", "Bonferroni"),
    "holm": ("Hol", "Holm"),
    "benjamini_hochberg": ("BH", "Benjamini-Hochberg"),
    "clustered": ("clu", "clustered"),
}
"""Short and long name of each procedure, the headline first; every table lists them in this order."""

SUMMARY_ONLY: Final = {"bonferroni_adjacent": "Bon (neighbours)"}
"""What is counted in the summary besides the procedures above, for neighbours in rank alone."""

_ORDER: Final = {
    "completion": "declared: the item count; a verdict is given once the missing items can no longer undo it",
    "committed": "asserted: the items follow the permutation that was committed before the first score",
    "trusted": "asserted: the arrival order does not depend on outcomes or clusters",
    "none": "nothing is asserted, so no anytime verdict is given: declare an order policy",
}


class Glyphs(NamedTuple):
    """One sign per meaning; each takes one cell, and never stands for its colour alone."""

    decided: str
    reversed: str
    undecided: str
    missing: str
    held: str
    equivalent: str
    collecting: str
    exhausted: str
    superseded: str
    invalidated: str


UNICODE: Final = Glyphs("●", "▼", "○", "·", "■", "≈", "○", "□", "◌", "✗")
ASCII: Final = Glyphs("*", "v", "o", ".", "#", "=", "o", "x", "~", "!")

DECIDED, UNDECIDED, HELD = "dodger_blue1", "grey50", "dark_orange"
"""The colours of the product: blue decided, grey undecided, orange reversed or held; legible on black and on white."""


def read(benchmark: BenchmarkReport) -> str:
    """Say how much was read."""
    b = benchmark
    return f"{counted(b.items, 'item')}, {counted(len(b.models), 'model')}, {counted(b.events, 'event')}"


safe: Final = printable
"""Escape what cannot be printed: names are checked where they enter, and this protects the terminal all the same."""


def in_name_order(pair: PairReport) -> tuple[str, str]:
    """Name a pair the way the store, the metrics and the feed do."""
    return (pair.model_a, pair.model_b) if pair.model_a <= pair.model_b else (pair.model_b, pair.model_a)


def points(gap: float | None, digits: int = 2) -> str:
    """Format a difference of scores in percentage points, with its sign.

    Examples
    --------
    >>> points(0.0118), points(-0.0), points(None)
    ('+1.18', '+0.00', '-')
    """
    return MISSING if gap is None else f"{round(100 * gap, digits) + 0.0:+.{digits}f}"


def interval(low: float | None, high: float | None) -> str:
    """Format an interval of gaps in percentage points."""
    return MISSING if low is None or high is None else f"[{points(low)}, {points(high)}]"


def percent(mean: float | None) -> str:
    """Format a mean score as a percentage without its sign."""
    return MISSING if mean is None else f"{100 * mean:.2f}"


def items(count: float | None) -> str:
    """Format a number of items needed: rounded up, and no more than its order of magnitude from a million on.

    Examples
    --------
    >>> items(5786.2), items(2727127.0), items(float("inf")), items(None)
    ('5,787', '>= 10^6', '>= 10^6', '-')
    """
    if count is None:
        return MISSING
    return ">= 10^6" if count >= _MILLION else f"{ceil(count):,}"


def decimal(value: float | None, digits: int = 2) -> str:
    """Format a plain number; infinite values by name."""
    if value is None:
        return MISSING
    return f"{round(value, digits) + 0.0:.{digits}f}" if isfinite(value) else str(value)


def ratio(q: float | None) -> str:
    """Format a resolution ratio so that it never rounds across 1.

    Examples
    --------
    >>> ratio(2.079), ratio(0.9996), ratio(27.78), ratio(0.0044)
    ('2.08', '0.99', '27.8', '0.00')
    """
    if q is None:
        return MISSING
    if 0.99 < q < 1:
        return "0.99"
    return decimal(q, 1 if q >= 10 else 2)


def log_thresholds(benchmark: BenchmarkReport) -> tuple[float, float | None]:
    """Return ln(1/alpha), and ln(m/alpha) of a family of declared capacity m.

    Under `spending` every pair has a threshold of its own, so there is no second number.
    """
    family = benchmark.family
    pair = -log(benchmark.alpha)
    return pair, pair + log(family.size) if family.policy == "capacity" and family.size else None


def order_sentence(benchmark: BenchmarkReport) -> str:
    """Say what the order policy asserts, and by whom: a completeness that was asserted for a report was declared by nobody."""
    reason = _asserted(benchmark)
    return _ORDER[benchmark.order.policy] if reason is None else reason


def order_trouble(benchmark: BenchmarkReport) -> str | None:
    """Say what is wrong with the order, or missing; None when nothing is."""
    if _asserted(benchmark) is not None:
        return None
    return benchmark.order.reason or ("the arrival order is suspect" if benchmark.order.suspect else None)


def _asserted(benchmark: BenchmarkReport) -> str | None:
    reason = benchmark.order.reason
    return reason if reason is not None and reason.startswith(ASSERTED) else None


def decision_glyph(pair: PairReport, procedure: str, glyphs: Glyphs) -> tuple[str, str]:
    """Return the glyph and the colour of one decision; a side that was never tested is not called undecided."""
    side: Side | None = getattr(pair.decided, procedure)
    if side == "a":
        return glyphs.decided, DECIDED
    if side == "b":
        return glyphs.reversed, HELD
    return (glyphs.undecided if _tested(pair, procedure) else glyphs.missing), UNDECIDED


def _tested(pair: PairReport, procedure: str) -> bool:
    if procedure == "clustered":
        return pair.p_clustered is not None
    # A pair outside the declared family has no interval at its level, and no test within it either.
    if procedure not in {"fixed_n", "anytime"} and pair.gap_family_low is None:
        return False
    if procedure in {"anytime", "anytime_family", "e_bh"}:
        return pair.log_e is not None
    return pair.sd is not None


def resolution_glyph(pair: PairReport, procedure: str, glyphs: Glyphs) -> tuple[str, str]:
    """Return the glyph and the colour of one resolution: resolved, unresolved, or not computed."""
    value: bool | None = getattr(pair.resolved, procedure)
    if value is None:
        return glyphs.missing, UNDECIDED
    return (glyphs.decided, DECIDED) if value else (glyphs.undecided, UNDECIDED)


def status_glyph(pair: PairReport, glyphs: Glyphs) -> tuple[str, str, str]:
    """Return the glyph, the word and the colour of a pair's status."""
    status = pair.status
    if status == "decided":
        if pair.decided.anytime_family == "b":
            return glyphs.reversed, "decided for B", HELD
        return glyphs.decided, "decided", DECIDED
    return getattr(glyphs, status), status, HELD if status in {"held", "invalidated"} else UNDECIDED


def relation(pair: PairReport) -> str:
    """Return the sign between two names: an order is only claimed where the family-wise verdict decides it."""
    side = pair.decided.anytime_family
    return {"a": ">", "b": "<"}.get(side or "", "~")

"""The sign, word and colour of a verdict; without rich and the report's models, so that plain output and plans load fast."""

from typing import TYPE_CHECKING, Final, NamedTuple

from monitor.words.columns import PROCEDURES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from schemas.results.reasons import Side
    from schemas.results.report import PairReport, ResultLine

SUMMARY_ONLY: Final = {"bonferroni_adjacent": "Bonferroni (neighbours)"}
"""The procedure that only the summary counts, over neighbours in rank."""


class Glyphs(NamedTuple):
    """One sign per meaning, one cell wide; a colour never carries a meaning alone."""

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
    settled: str
    unsettled: str
    tie: str
    resolved: str
    unresolved: str
    open: str


UNICODE: Final = Glyphs("●", "▼", "○", "·", "!", "≈", "○", "○", "◌", "✗", "◆", "◇", "=", "■", "□", "◔")
ASCII: Final = Glyphs("*", "v", "o", ".", "!", "=", "o", "o", "~", "x", "+", "-", "=", "#", "_", "?")

DECIDED, UNDECIDED, HELD = "dodger_blue1", "grey50", "dark_orange"
"""The colours of the product: blue decided, grey undecided, orange reversed or held; legible on black and on white."""


def in_name_order(pair: "PairReport") -> tuple[str, str]:
    """Name a pair in the order of the store, the metrics and the feed."""
    return (pair.model_a, pair.model_b) if pair.model_a <= pair.model_b else (pair.model_b, pair.model_a)


def decision_glyph(pair: "PairReport", procedure: str, glyphs: Glyphs) -> tuple[str, str]:
    """Return the glyph and the colour of one decision; a pair that was never tested is not undecided."""
    side: Side | None = getattr(pair.decided, procedure)
    if side == "a":
        return glyphs.decided, DECIDED
    if side == "b":
        return glyphs.reversed, HELD
    return (glyphs.undecided if _tested(pair, procedure) else glyphs.missing), UNDECIDED


def _tested(pair: "PairReport", procedure: str) -> bool:
    if procedure == "clustered":
        return pair.p_clustered is not None
    # A pair outside the declared family has no interval at its level, and no test within it either.
    if procedure not in {"fixed_n", "anytime"} and pair.gap_family_low is None:
        return False
    if procedure in {"anytime", "anytime_family", "e_bh"}:
        return pair.log_e is not None
    return pair.sd is not None


def step(pair: "PairReport", glyphs: Glyphs) -> tuple[str, str]:
    """Return the glyph and the colour of a step of the ranking, from a model to the next."""
    return {
        "decided": (glyphs.decided, DECIDED),
        "against": (glyphs.reversed, HELD),
        "open": (glyphs.open, HELD),
        "equivalent": (glyphs.equivalent, UNDECIDED),
        "held": (glyphs.held, HELD),
        "invalidated": (glyphs.invalidated, HELD),
    }.get(pair.step, (glyphs.undecided, UNDECIDED))


def result_sign(word: str, line: "ResultLine", glyphs: Glyphs) -> tuple[str, str]:
    """Return the glyph and the colour of a line of the result: filled if it is decided, hollow if not; none of a line of details."""
    if word in {"steps", "details"}:
        return "", UNDECIDED
    if line.held and not line.yes:
        return glyphs.held, HELD
    signs = {"settled": (glyphs.unsettled, glyphs.settled), "resolved": (glyphs.unresolved, glyphs.resolved)}
    return signs.get(word, (glyphs.undecided, glyphs.decided))[line.yes], DECIDED if line.yes else UNDECIDED


def settled_glyph(pair: "PairReport", glyphs: Glyphs) -> tuple[str, str]:
    """Return the glyph and the colour of who leads on the items of the benchmark."""
    signs = {"a": (glyphs.settled, DECIDED), "b": (glyphs.reversed, HELD), "tie": (glyphs.tie, UNDECIDED)}
    return signs.get(pair.settled or "", (glyphs.unsettled, UNDECIDED))


SETTLED_WORDS: Final = {
    "a": "settled: the first model leads",
    "b": "settled: the second model leads",
    "tie": "equal on these items",
}


def resolution_glyph(pair: "PairReport", procedure: str, glyphs: Glyphs) -> tuple[str, str]:
    """Return the glyph and the colour of one resolution: resolved, unresolved, or not computed."""
    value: bool | None = getattr(pair.resolved, procedure)
    if value is None:
        return glyphs.missing, UNDECIDED
    return (glyphs.decided, DECIDED) if value else (glyphs.undecided, UNDECIDED)


def pair_signs(pairs: "Iterable[PairReport]", glyphs: Glyphs) -> list[tuple[str, str, str]]:
    """Return the signs of settled, decided and resolved that a table of pairs shows, each with its colour and what it means."""
    shown = set()
    for pair in pairs:
        shown.add(settled_glyph(pair, glyphs)[0])
        shown |= {decision_glyph(pair, key, glyphs)[0] for key in PROCEDURES}
        shown |= {resolution_glyph(pair, key, glyphs)[0] for key, each in PROCEDURES.items() if each.resolves}
    meanings = [
        (glyphs.settled, DECIDED, "settled"),
        (glyphs.unsettled, UNDECIDED, "open"),
        (glyphs.tie, UNDECIDED, "equal on these items"),
        (glyphs.decided, DECIDED, "yes, the first model"),
        (glyphs.reversed, HELD, "yes, the second model"),
        (glyphs.undecided, UNDECIDED, "no"),
        (glyphs.missing, UNDECIDED, "not computed, or not in the family"),
    ]
    return [each for each in meanings if each[0] in shown]


def status_glyph(pair: "PairReport", glyphs: Glyphs) -> tuple[str, str, str]:
    """Return the glyph, the word and the colour of a pair's status."""
    status = pair.status
    if status == "decided":
        if pair.decided.anytime_family == "b":
            return glyphs.reversed, "decided for B", HELD
        return glyphs.decided, "decided", DECIDED
    return getattr(glyphs, status), status, HELD if status in {"held", "invalidated"} else UNDECIDED


def relation(pair: "PairReport") -> str:
    """Return the sign between two names; only a family-wise verdict claims an order."""
    side = pair.decided.anytime_family
    return {"a": ">", "b": "<"}.get(side or "", "~")

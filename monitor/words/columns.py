"""The heads of columns, the names of procedures, and what some cells hold: each is declared here once, for every surface."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from monitor.words import numbers as form
from monitor.words.counts import counted
from monitor.words.numbers import MISSING

_NAMED: Final = 3  # files, and models, that are named


def discordant(pair: "PairReport") -> str:
    """Format b/c, the items that only one of the two models has right."""
    return f"{pair.b:,}/{pair.c:,}" if pair.b is not None and pair.c is not None else MISSING


def ranks(model: "ModelReport", dash: str = "–") -> str:
    """Format the ranks that the verdicts leave open to a model."""
    low, high = f"{model.rank_low:,}", f"{model.rank_high:,}"
    return low if low == high else f"{low}{dash}{high}"


def repeats(counts: "RepeatsReport | None") -> str:
    """Format the scored repeats of an item: their number, or the mean with the least and the most.

    >>> from schemas.results.report import RepeatsReport
    >>> repeats(RepeatsReport(min=4, mean=4.0, max=4)), repeats(RepeatsReport(min=1, mean=3.24, max=96))
    ('4', '3.2 (1 to 96)')
    """
    if counts is None:
        return MISSING
    return f"{counts.max:,}" if counts.min == counts.max else f"{counts.mean:.1f} ({counts.min:,} to {counts.max:,})"


if TYPE_CHECKING:  # `plan` shows no report
    from schemas.results.report import ModelReport, PairReport, RepeatsReport

HEADS: Final = {
    "ties": "ties",
    "rank": "rank",
    "ranks": "ranks",
    "places": "possible ranks",
    "model": "model",
    "score": "score",
    "interval": "interval",
    "step": "step to the next",
    "settled": "settled",
    "decided": "decided",
    "resolved": "resolved",
    "items": "items",
    "skipped": "skipped",
    "coverage": "coverage",
    "unweighted": "unweighted",
    "unweighted_rank": "unweighted rank",
    "shared": "shared",
    "shared_rank": "shared rank",
    "repeats": "repeats",
    "run": "run",
}
GOAL: Final = {
    "model": "model",
    "items_run": "run",
    "items_full": "of a full run",
    "saved": "saved %",
    "cost_run": "cost",
    "cost_saved": "cost saved",
    "left": "can change the answer",
}  # what each model ran for a goal; costs only with prices
RATED: Final = {"score": "rating", "items": "prompts", "won": "won %", "island": "island"}


class Procedure(NamedTuple):
    """A procedure that decides pairs: its short and long name, and what it holds for."""

    short: str
    name: str
    about: str
    planned: bool = False  # valid at a planned n only
    resolves: bool = False  # whether it has a number of items that a gap needs


PROCEDURES: Final = {  # the headline first; every table lists them in this order
    "anytime_family": Procedure("family", "anytime family", "valid at any time, over all pairs; this is the headline"),
    "anytime": Procedure(
        "pair", "anytime, this pair only", "valid at any time, for one pair that you chose in advance", resolves=True
    ),
    "e_bh": Procedure("e-BH", "e-BH", "a current view that may be withdrawn"),
    "fixed_n": Procedure("fixed", "fixed n", "exact test at alpha, evaluated once", planned=True, resolves=True),
    "bonferroni": Procedure("Bonf.", "Bonferroni", "over all pairs", planned=True, resolves=True),
    "holm": Procedure("Holm", "Holm", "over all pairs", planned=True),
    "benjamini_hochberg": Procedure("BH", "Benjamini-Hochberg", "controls the false discovery rate", planned=True),
    "clustered": Procedure(
        "clust.", "clustered", "accounts for related items in one cluster", planned=True, resolves=True
    ),
}


STEPS: Final = {  # what a step to the next model may be: its word, and what that means
    "decided": ("decided", "evidence beyond these items"),
    "against": ("decided against", "the order of the scores is reversed"),
    "tie": ("tie", "no such evidence"),
    "open": ("open", "items are missing"),
    "equivalent": ("equivalent", "the gap is within the margin"),
    "held": ("held", "no verdict is given"),
    "invalidated": ("invalidated", "a verdict was withdrawn"),
}

NEEDS: Final = "needs N: a test of N items finds this gap in 4 of 5 runs"


def sized(pair: "PairReport") -> bool:
    """Return whether a step shows how many items it needs: in the others they are missing, or it is decided, held or unknown."""
    lacks = pair.step == "open" and pair.missing
    return pair.n > 0 and pair.needs_items is not None and pair.status in {"collecting", "exhausted"} and not lacks


def needs(pair: "PairReport") -> str | None:
    """Return how many items are missing, or how many a step needs in all; None where nothing is known of it."""
    if pair.n == 0:
        return "no shared item"
    if pair.needs_items is not None and sized(pair):
        return form.needs(pair.needs_items)
    return f"{counted(pair.missing, 'item')} missing" if pair.step == "open" and pair.missing else None


def step(pair: "PairReport") -> str:
    """Return the verdict on a step to the next model, and how many items it needs."""
    return ", ".join(filter(None, (STEPS[pair.step][0], needs(pair))))


def skipped(reasons: Mapping[str, int]) -> str:
    """Return how many results have no score, and why; empty without any.

    >>> skipped({"blank": 9})
    '9 skipped: blank'
    >>> skipped({"blank": 9, "Timeout": 3})
    '12 skipped (blank: 9, Timeout: 3)'
    """
    total = f"{sum(reasons.values()):,} skipped"
    if len(reasons) < 2:
        return "".join(f"{total}: {reason}" for reason in reasons)
    listed = [f"{reason}: {count:,}" for reason, count in list(reasons.items())[:_NAMED]]
    rest = sum(list(reasons.values())[_NAMED:])
    return f"{total} ({', '.join([*listed, *([f'other: {rest:,}'] if rest else [])])})"

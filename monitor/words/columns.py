"""The heads of columns, and the names of procedures: each is declared here once, for every surface."""

from typing import TYPE_CHECKING, Final, NamedTuple

from monitor.words import numbers as form
from monitor.words.counts import counted

if TYPE_CHECKING:  # `plan` shows no report
    from schemas.results.report import PairReport

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

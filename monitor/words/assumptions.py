"""What verdicts assume, as clauses: the one wording of each assumption."""

from collections.abc import Iterable
from typing import Final

from schemas.records.text import Sentence
from schemas.results.assumptions import BATTLES, SEEDED, Assumption, Seed, in_order

TEXTS: Final[dict[str, str]] = {  # the wording of each assumption, by its code; a sentence starts with "Assumes that"
    # What the order policy rests on: one of these comes first.
    "completion": "the declared number of items is the whole benchmark, with no items omitted because of their scores",
    "listed": "the declared list of items is the whole benchmark",
    "items_read": "the {number:,} items read are the whole benchmark",
    "items_rejected": "the items read, and {number:,} whose lines were rejected, are the whole benchmark",
    "units_read": "the {number:,} units read are the whole benchmark",
    "committed": "the ids of the items were fixed before the seed, and their order comes from the committed seed",
    "trusted": "neither the arrival order nor what is skipped depends on outcomes or clusters",
    BATTLES: "which models meet does not depend on the prompt or its category, which answer is shown first is drawn at random, and how "
    "many votes a prompt gets is fixed before the first of them",
    # What the items are.
    "independent": "the items are a sample of independent items",
    "units": "the items are a sample of independent units",
    "members": "which items of a unit are scored does not depend on their scores",
    # Clusters come with the scores.
    "labelled": "which cluster an item is in does not depend on the scores",
    # Settled before it is certain, along a committed order.
    "ordered": "their ids were fixed before the seed, and their order comes from the committed seed",
    # Family-wise verdicts where the order of arrival gives the pairs their shares of alpha, or leaves no room for some.
    "joined": "which models join, and when, does not depend on their scores",
    "capacity": "either at most {number:,} pairs join, or which models join, and when, does not depend on their scores",
    # Parts of the declaration that came after the first score, unless they are the published size.
    "declared_late": "{names}, declared after the first score, {verb} chosen without knowing any score",
    # A board that was begun again, after a deletion or an undo.
    "begun_again": "earlier scores and seeds of this board were not removed because of who was ahead",
    "repeated": "which repeats of an item are scored, and how many, does not depend on their scores",
    # Scores that filled nulls or came in conflict, and runs that aliases join.
    "score_choice": "which score of an item counts does not depend on the scores",
    "rescored": "scores were replaced for reasons that do not depend on who was ahead",
    "ignored": "what is missing does not depend on the scores, and that the run was not ended because of its scores",
    # Those who report a suite define it, at any time.
    "distinct": "no item is part of two members of the suite",
    "composed": "the suite, its weights and its baselines were not chosen because of the scores",
    # A gate that runs its evaluation on the items of its baseline, and evaluates a block again.
    "baseline_items": "which items have a score of the baseline does not depend on the scores",
    "broken_off": "no block that was evaluated again broke off because of its scores",
}

_SINGULAR: Final = {
    "items_read": "the 1 item read is the whole benchmark",
    "items_rejected": "the items read, and 1 whose lines were rejected, are the whole benchmark",
    "units_read": "the 1 unit read is the whole benchmark",
    "capacity": "either at most 1 pair joins, or which models join, and when, does not depend on their scores",
}

PARTS: Final[dict[str, str]] = {  # the parts of a declaration that verdicts rest on
    "declaration": "the declaration",
    "order": "the order policy",
    "items": "the number of items",
    "item_ids": "the list of items",
    "family": "the family",
    "weights": "the weights",
    "clusters": "the sizes of the clusters",
    "scores": "the kind of scores",
    "repeats": "the number of repeats",
    "units": "the units of the items",
    "missing": "what missing items count",
    "nulls": "what a null counts",
    "mixture": "the mixture",
    "look": "the share of alpha for the last item",
    "known": "what counts of items that one model lacks",
    "alpha": "alpha",
    "margin": "the equivalence margin",
}

_PLURAL: Final = frozenset({"weights", "clusters", "units"})  # the parts whose wording is plural


def clause(assumption: Assumption) -> Sentence:
    """Return the wording of one assumption.

    >>> clause(Assumption("items_read", 12_032))
    'the 12,032 items read are the whole benchmark'
    >>> clause(Assumption("declared_late", names=("family", "alpha")))
    'the family and alpha, declared after the first score, were chosen without knowing any score'
    >>> clause(Assumption("ordered", 1_204))
    'their ids were fixed before the seed, and their order comes from the committed seed (offset 1,204 of the log)'
    """
    code, number, names = assumption
    if code in SEEDED:
        return TEXTS[code] + ("" if number is None else f" ({place(Seed(number, *names))})")
    if number == 1:
        return _SINGULAR[code]
    named = list(map(PARTS.__getitem__, names))
    listed = " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))
    verb = "was" if len(named) == 1 and _PLURAL.isdisjoint(names) else "were"
    return TEXTS[code].format(number=number, names=listed, verb=verb)


def clauses(assumptions: Iterable[Assumption]) -> Sentence | None:
    """Return assumptions as one clause, each once; None without any."""
    return ", and that ".join(map(clause, in_order(assumptions))) or None


def place(seed: Seed) -> str:
    """Return where a seed was committed.

    >>> place(Seed(1_204)), place(Seed(3, "runs.jsonl"))
    ('offset 1,204 of the log', 'line 3 of runs.jsonl')
    """
    return f"offset {seed.place:,} of the log" if seed.file is None else f"line {seed.place:,} of {seed.file}"

"""The sentences about verdicts that the page fills in: the server gives them to its scripts, which have none of their own.

A name in braces is a value; of two forms, the first is for one and the second for any other number.
"""

from typing import Final

TEMPLATES: Final[dict[str, str | tuple[str, str]]] = {
    # a model: its place, and who is better
    "held": "held: no verdict", "place": "rank {ranks} of {all}", "better": "decided: {model} is better", "tied": "tied with {n}",
    "tied_with_none": "tied with none", "against_rank": "the shared items are against the rank: ",
    "lead": ("{lead} {n} model", "{lead} {n} models"), "lead_more": "{lead} {n}", "settled": "{places} on these items",
    "nothing_settled": "Nothing is settled on these items", "settled_open": ("; {n} is still open", "; {n} are still open"),
    "nothing_settled_in_battles": "Nothing is settled: battles have no last prompt.", "one_rank": "No other rank than {rank} is left.",
    "several_ranks": "The decisions leave ranks {low} to {high} open.",
    "enough": ("Enough {unit}s for {some} of its {n} gap", "Enough {unit}s for {some} of its {n} gaps"),
    "nothing_shared": "no shared item", "planned": "{enough}, in a planned test.",
    "closest": " Closest tie: {model}, which needs {items} {unit}s in all.",
    "gaps": "Gap on the shared {unit}s in points, with its family-wise interval. Hollow: undecided. Right of the line this model is "
    "better.",
    # the board
    "ties_at": "; ties by family-wise decisions at {level} %",
    "too_many_bands": "More than {n} bands overlap here, so the ties are shown as possible ranks only. Choose a model under “Tied "
    "with” to see its ties.",
    "low_coverage": ("{n} model with low coverage: choose it under “Tied with” to see its ties.",
     "{n} models with low coverage: choose one under “Tied with” to see its ties."),
    "no_tie_crosses": (" No tie crosses the {n} blue line.", " No tie crosses the {n} blue lines."),
    "nothing_decided": "Nothing is decided yet: each of the {n} models could have any rank.",
    "open_ranks": "Each column is a model, with rank 1 at the top and {all} at the bottom. Shaded: the ranks that the decisions allow. "
    "A model has {open} of {all} ranks open{half}.", "half_open": ", and half of the models at least {n}",
    "rules": "No tie crosses a {line}: all above are decided over all below. ",
    "lacking": "A model that {lacks} is in no band and enters no line; its thread marks the models that it may be tied with.",
    "joined": " a line joins tied models", "above": " all above decided over all below",
    "ratings": "Ratings are Bradley-Terry estimates: 400 points are odds of 10 to 1, {centre}. Their intervals are asymptotic and "
    "valid at a planned number of battles only. Ties, possible ranks and steps come from the direct battles of each pair.",
    # categories, and all pairs
    "cell_better": "better than the baseline, decided", "cell_worse": "worse, decided", "cell_none": "no verdict",
    "no_cells": "No verdicts by category: {why}.", "cells_level": ", at {level} % over all pairs and categories.",
    "cells_decided": ("{some} of {n} comparison by category", "{some} of {n} comparisons by category"),
    "cells_enough": "{enough} over all categories, in a planned test. ",
    "cells_about": "A column is about the items of its category alone. All {n} comparisons, of every pair in every category, share the "
    "{level} %, so baseline and category may be chosen after a look at the results. They are computed from the scores of this moment "
    "and are not kept: a new model or category may withdraw one.",
    "cells_caption": "; ▲ ▼ decided at {level} % over all pairs and categories",
    "profile": "Scores are in percent of the items of a category{reading}. A profile: it enters no verdict.",
    "row": "the row's model is decided to be better", "column": "the column's model is decided to be better", "open": "undecided: a tie",
    "against": "decided against the current rank",
    "matrix": ("{some} of {n} pair decided family-wise.", "{some} of {n} pairs decided family-wise."),
    "procedures": "Undecided and unresolved pairs under each procedure, of {n}",
    # charts of one pair
    "scale": "p {p}, decided at or below {limit}", "from_here": "decided from here", "alone": "0.05, one pair alone",
    "at_or_above": "decided at or above",
    "at_or_below": "decided at or below", "ahead": "{model} ahead",
    "crosses": "The pair is decided where the line crosses the threshold{look}.",
    "look": ", or by one exact test of all items with {share} % of alpha, which is not drawn",
    "crosses_elsewhere": "Under the order policy {policy}, the decision need not fall where the line crosses the threshold.",
    "interval": "Gap in points with its {level} % interval, {validity}. While the interval contains 0, this pair is undecided on its "
    "own.", "interval_valid": "valid at any time", "interval_held": "not valid while verdicts are held",
    # the past, the changes and the data
    "none_fell": "No verdict has fallen yet. Each one appears on this line as soon as it is reached.",
    "not_kept": "A suite has no verdict changes of its own, so its past is not kept. Those of its members are on their rankings.",
    "first": "first verdict", "last": "last verdict", "before_first": "before the first verdict",
    "timeline": "Above the line: verdicts, a dot where two neighbours were decided. Below it {sign}: a verdict was withdrawn, replaced "
    "or reversed. ← → move by one moment, Home and End to the first and the last.",
    "replay": "The scores on the {items} that all models have, in one random order; the verdicts are among all {pairs}. Pale bar: p < "
    ".05 for the upper model; orange bar: for the lower one; {sign}: the call was withdrawn. These are no verdicts of this ranking: no "
    "order was committed for its scores. ", "anytime": "Anytime verdicts: {n}", "none_withdrawn": ", and none is withdrawn.",
    "moment": "{moment}: {pairs} decided", "decided_then": ("{some} of {n} pair decided", "{some} of {n} pairs decided"),
    "steps_then": (", {some} of {n} step", ", {some} of {n} steps"),
    "in_force": "The verdicts in force at one moment. A verdict falls at the same place on every replay.",
    "missing": (" · {n} missing item", " · {n} missing items"),
    "missing_against": " counted against the leader",
    "outside": ("{n} pair outside it, without family-wise verdicts", "{n} pairs outside it, without family-wise verdicts"),
    "assumes": "verdicts assume that {assumption}",
}  # fmt: skip

LEADS: Final = {
    "ahead": "ahead of", "below": "below", "level": "level with", "better": "better than", "worse": "worse than", "tied": "tied with",
    "held": "held against",
}  # fmt: skip
"""What a model is to others; a number of models follows."""

ANSWERS: Final = {
    "settled": {"yes": "settled", "no": "not settled", "against": "settled against the rank", "equal": "equal on these items"},
    "decided": {"yes": "decided", "no": "undecided", "against": "decided against the rank", "held": "held"},
    "resolved": {"yes": "resolved", "no": "not resolved", "unknown": "not computed"},
}  # fmt: skip
"""The answers to the three questions about a pair; one that shares no item has none to the first two."""

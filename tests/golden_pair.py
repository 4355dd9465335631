"""MMLU-Pro ranks 5 and 6 from their published counts: decided alone, not in a family of nine, resolved at fixed n, not at any time."""

import numpy as np

from tests.commands import write

NAMES = ("rank 5", "rank 6")
BENCHMARK = "mmlu-pro"
ITEMS = 12_032
VERDICTS = (True, False, True, False)
"""Decided (anytime), decided (family of nine), resolved (fixed n), resolved (anytime)."""


def write_golden_pair(path):
    """Write the declaration and the events to a file of results."""
    scores = np.repeat([[1, 0], [0, 1], [1, 1], [0, 0]], [1680, 1454, 5949, 2949], axis=0)
    # In this order ln e stays below 4.7. Under completion the exact test would decide the pair in the family too.
    scores = np.random.default_rng(0).permutation(scores).tolist()
    family = {"policy": "capacity", "size": 9}
    declaration = {"declare": BENCHMARK, "items": ITEMS, "order": "trusted", "family": family}
    events = [
        {"benchmark": BENCHMARK, "item_id": str(item), "model": name, "score": score}
        for item, row in enumerate(scores)
        for name, score in zip(NAMES, row, strict=True)
    ]
    return write(path, [declaration, *events])


def verdicts_of(pair):
    """Read the four from a pair as the report JSON and the API give it."""
    decided, resolved = pair["decided"], pair["resolved"]
    return decided["anytime"] == "a", decided["anytime_family"] == "a", resolved["fixed_n"], resolved["anytime"]


_DECISIONS = ("anytime_family", "anytime", "e_bh", "fixed_n", "bonferroni", "holm", "benjamini_hochberg", "clustered")
_RESOLUTIONS = ("anytime", "fixed_n", "bonferroni", "clustered")


def verdicts_by_sign(signs):
    """Read the four from a row of signs, as tables for people show them: the decisions, then the resolutions."""
    columns = [("decided", d) for d in _DECISIONS] + [("resolved", r) for r in _RESOLUTIONS]
    verdicts = dict(zip(columns, signs, strict=True))
    wanted = [("decided", "anytime"), ("decided", "anytime_family"), ("resolved", "fixed_n"), ("resolved", "anytime")]
    return tuple(verdicts[key] == "●" for key in wanted)

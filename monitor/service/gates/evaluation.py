"""An evaluation that stops as soon as its gate is decided: candidates one after the other, in blocks of a committed order."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from monitor.view.board import Floats
from monitor.view.gates.along_order import Question, compare_along_order
from monitor.view.gates.reasons import first_lost, with_facts
from schemas.results.gate import GateComparison
from schemas.results.reasons import Reason, fact
from stats.gates.curtail import old_right_first
from stats.order import committed_order

Scores = Mapping[str, float | None]  # by item

_LEAST_BLOCK: Final = 10
_BLOCKS: Final = 50


def default_block(items: int) -> int:
    """Return the items of a block: a fiftieth of all, and at least 10.

    >>> default_block(1319), default_block(200)
    (27, 10)
    """
    return max(_LEAST_BLOCK, math.ceil(items / _BLOCKS))


@dataclass(frozen=True)
class Plan:
    """What an evaluation commits to before its first block."""

    questions: tuple[Question, ...]  # one for each candidate, in the order in which they are evaluated
    items: tuple[str, ...]  # in the committed order
    seed: str
    block: int

    @classmethod
    def of(
        cls,
        questions: Sequence[Question],
        items: Sequence[str],
        seed: str,
        block: int | None = None,
        first: Scores | None = None,
    ) -> "Plan":
        """Put items into the order that a seed commits to; those with a high score in `first` come first."""
        ordered = [items[k] for k in committed_order(seed, items).tolist()]
        if first is not None:
            ordered = [ordered[k] for k in old_right_first([first[item] or 0.0 for item in ordered]).tolist()]
        return cls(tuple(questions), tuple(ordered), seed, block or default_block(len(items)))


def evaluate_all(
    plan: Plan,
    evaluate_one: Callable[[Question, int | None], GateComparison],
    budget: int | None = None,
    *,
    until_pass: bool = False,
) -> list[GateComparison]:
    """Evaluate candidates one after the other."""
    comparisons: list[GateComparison] = []
    for question in plan.questions:
        cheaper = next((each.candidate for each in comparisons if each.verdict == "pass"), None) if until_pass else None
        left = None if budget is None else max(0, budget - sum(each.n for each in comparisons))
        if cheaper is not None:
            nothing = compare_along_order(np.zeros(0), np.zeros(0), len(plan.items), question)
            comparisons.append(with_facts(nothing, [fact(Reason.NOT_EVALUATED, cheaper=cheaper)]))
            continue
        # Blocks that are done cost nothing, so they count under any budget.
        comparison = evaluate_one(question, left)
        if left == 0 and not comparison.n and comparison.verdict == "undecided":
            comparison = with_facts(comparison, [fact(Reason.NOT_EVALUATED, cheaper=None)])
        comparisons.append(comparison)
    return comparisons


def evaluate(
    plan: Plan,
    question: Question,
    baseline: Scores,
    done: Sequence[Scores],
    run_block: Callable[[int, Sequence[str]], Scores],
    budget: int | None = None,
    on_block: Callable[[int, GateComparison], None] | None = None,
) -> GateComparison:
    """Evaluate a candidate block after block until it is decided, the budget is spent or no item is left."""
    known = _scores_of(plan.items, baseline)
    scores: list[float] = []
    judged = 0
    number, most = 0, min(len(plan.items), budget if budget is not None else len(plan.items))
    while True:
        candidate = np.array(scores)
        if number >= len(done) and question.decided(candidate, known, judged):
            break
        judged = candidate.size if number >= len(done) else 0
        start = len(scores)
        if start >= most and number >= len(done):
            break
        block = plan.items[start : start + plan.block]
        if number < len(done):
            block_scores = done[number]
            block = tuple(item for item in block if item in block_scores)
        else:
            if number and on_block is not None:
                on_block(start, question.compare(candidate, known, len(plan.items)))
            block = block[: most - start]
            block_scores = run_block(number + 1, block)
        scores += _scores_of(block, block_scores).tolist()
        number += 1
    found = question.compare(np.array(scores), known, len(plan.items))
    if found.verdict != "fail":
        return found
    named = zip(plan.items, np.nan_to_num(scores).tolist(), known.tolist(), strict=False)  # the rest was not evaluated
    return found.replace(first_lost=first_lost(named))


def _scores_of(items: Sequence[str], scores: Scores) -> Floats:
    values = (scores.get(item) for item in items)
    return np.array([math.nan if value is None else value for value in values], np.float64)

"""The reasons of a gate as facts: what a verdict on one benchmark means, and what it would take."""

from collections.abc import Iterable
from heapq import nsmallest
from typing import Final

from monitor.view.gates.margin import Margin, equal_answers
from monitor.words.gates import reason
from schemas.results.gate import GateComparison
from schemas.results.reasons import Fact, Reason, fact


def of_comparison(c: GateComparison, margin: Margin, held: list[Fact]) -> list[Fact]:
    """Return what the verdict on a benchmark means, or what it would take."""
    if held:
        return [fact(Reason.HELD, because=held)]
    if c.gap is None:
        return [fact(Reason.NO_SHARED_ITEMS)]
    if c.verdict == "pass":
        worse = c.p_worse <= c.alpha
        of = {"margin": margin.size, "relative": margin.relative, "alpha": c.alpha}
        return [fact(Reason.NOT_WORSE, **of, decided_at=c.decided_at_n, worse=worse)]
    if c.verdict == "fail":
        return [fact(Reason.WORSE, alpha=c.alpha, beyond=c.gap < c.allowed)]
    missing = (c.missing or 0) if c.policy == "completion" else 0
    few = _only_wins(c, margin, c.n + missing)
    if c.gap <= c.allowed:
        return [fact(Reason.NOT_WITHIN_MARGIN, gap=c.gap), *few]
    return [fact(Reason.TAKES_ITEMS, items=c.items_needed, rule=c.rule, n=c.n, missing=missing), *few]


def _only_wins(c: GateComparison, margin: Margin, items: int) -> list[Fact]:
    """Return that equal answers do not pass with so few items, where that is so at one look."""
    if c.policy != "completion" or margin.relative:
        return []
    needed = equal_answers(margin.size, c.alpha, c.rule)
    return [fact(Reason.ONLY_WINS, items=items, needed=needed)] if items < needed else []


_NAMED: Final = 5


def first_lost(scores: Iterable[tuple[str, float, float]]) -> list[str]:
    """Return the first few items that the candidate lost, of (item, candidate's score, baseline's): the largest losses first."""
    lost = (((x - y), place, item) for place, (item, x, y) in enumerate(scores) if x < y)
    return [item for _, _, item in nsmallest(_NAMED, lost)]


def with_facts(comparison: GateComparison, facts: list[Fact]) -> GateComparison:
    """Return a comparison with its reason."""
    return comparison.replace(facts=facts, reason=reason(facts))

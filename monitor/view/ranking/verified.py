"""Whether one look at complete results verifies the leader, or the top models, that a goal asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from monitor.view.board import Flags
from monitor.view.build import ReportView
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.goal import GoalView, named_first, unscored_models
from monitor.view.reasons import unit_items
from monitor.words.results import line
from schemas.records.goals import parse_goal
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import Verified
from stats.fixed_n.verified import top_set


def with_verified(view: ReportView) -> ReportView:
    """Return a report whose goal has whether its leader, or its top models, are verified, where it asks for them."""
    goal = view.report.goal
    verified = None if goal is None else verify(view.table)
    if goal is None or verified is None:
        return view
    return replace(view, report=view.report.replace(goal=goal.replace(verified=verified)))


def verify(table: PairTable) -> Verified | None:
    """Test the declared goal by one look at complete files; None for another goal, with a margin, or where verdicts are held."""
    spec = table.benchmark.spec
    goal = None if spec.goal is None else parse_goal(spec.goal)
    if goal is None or goal.kind != "top" or goal.margin is not None or not table.one_look or table.held:
        return None
    view = GoalView(table, goal, unscored_models(table))
    if goal.size >= len(view.models):
        return None
    planned, right = spec.items or table.assumed_items or 0, table.kind.right(table.ranking[view.places])
    units: dict[str, Any] = {} if unit_items(table.benchmark) is None else {"units": True}
    why = _lacks(view, planned, right, units)
    if why is not None or right is None:
        return _line(why or fact(Reason.NOT_LOOKED_AT, needs="scores"))
    found, of = top_set(right, goal.size), len(view.models)
    models, pair = ([view.models[k] for k in some] for some in (found.models.tolist(), (found.inside, found.outside)))
    values = {**named_first(models), "of": of, "items": planned, "p": found.p, "alpha": spec.alpha, **units}
    if found.p > spec.alpha:
        return _line(fact(Reason.NOT_VERIFIED, pair=pair, **values), models=models, p=found.p)
    exact = found.p <= 2 * spec.alpha / (goal.size * (of - goal.size))
    return _line(fact(Reason.VERIFIED, exact=exact, **values), yes=True, models=models, p=found.p)


def _lacks(view: GoalView, planned: int, right: Flags | None, units: Mapping[str, Any]) -> Fact | None:
    """Return what a look lacks that is valid; None where it lacks nothing."""
    table = view.table
    if not planned:
        return fact(Reason.NOT_LOOKED_AT, needs="count")
    if view.absent:
        return fact(Reason.NOT_LOOKED_AT, needs="models", **named_first(view.absent))
    if right is None or table.benchmark.undeclared:
        return fact(Reason.NOT_LOOKED_AT, needs="scores")
    if len(right) != planned:
        return fact(Reason.NOT_LOOKED_AT, needs="items", shared=len(right), items=planned, **units)
    return None


def _line(why: Fact, *, yes: bool = False, models: Sequence[str] = (), p: float | None = None) -> Verified:
    return Verified(yes=yes, text=line([why]), facts=[why], models=[*models], p=p)

"""A plan of a goal as JSON, or as a table."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from rich.console import Group, RenderableType

from monitor.render.document import Table, numbers, plain
from monitor.render.terminal.tables import group
from monitor.words.numbers import money, safe
from stats.numerics.checks import FloatArray
from stats.planning.goal_plan import QUANTILES, Ends, GoalPlan


@dataclass(frozen=True)
class PlannedGoal:
    """A plan of a goal."""

    goal: str
    source: str
    models: list[str]
    alpha: float
    power: float
    mixture: str
    boards: int
    known: bool
    plan: GoalPlan
    prices: list[float] | None
    look: float


def render_goal_plan(planned: PlannedGoal, *, as_json: bool) -> RenderableType | str:
    """Show a plan of a goal."""
    return json.dumps(_fields(planned)) if as_json else _tables(planned)


def _races(planned: PlannedGoal) -> dict[str, tuple[int, Ends]]:
    plan = planned.plan
    races = {"committed": (plan.items, plan.committed)}
    if plan.completion is not None and plan.completion_items is not None:
        races["completion"] = plan.completion_items, plan.completion
    return races


def _quantiles(values: FloatArray) -> list[float]:
    """Return the smallest values that these shares of all do not exceed."""
    return [float(np.quantile(values, share, method="inverted_cdf")) for share in QUANTILES]


def _costs(planned: PlannedGoal, ends: Ends) -> FloatArray:
    return np.asarray(ends.items_run @ np.array(planned.prices or [0.0] * len(planned.models)), float)


def _fields(planned: PlannedGoal) -> dict[str, Any]:
    plan = planned.plan

    def shares(values: Sequence[float]) -> dict[str, float | None]:
        return {str(share): None if value == inf else value for share, value in zip(QUANTILES, values, strict=True)}

    procedures: dict[str, Any] = {
        name: {
            "benchmark_items": items,
            "met": float(ends.met.mean()),
            "items": shares(_quantiles(ends.items())),
            "scores": shares(_quantiles(ends.items_run.sum(axis=1).astype(float))),
            "cost": None if planned.prices is None else shares(_quantiles(_costs(planned, ends))),
            "median_items_by_model": dict(zip(planned.models, np.median(ends.items_run, axis=0).tolist(), strict=True)),
        }
        for name, (items, ends) in _races(planned).items()
    }
    needed = plan.fixed_items
    procedures["fixed_n"] = {
        "benchmark_items": plan.items,
        "met": plan.fixed_power,
        "items": needed,
        "scores": None if needed is None else needed * len(planned.models),
        "cost": None if needed is None or planned.prices is None else needed * sum(planned.prices),
    }
    return {
        "goal": planned.goal,
        "source": planned.source,
        "models": planned.models,
        "items": plan.items,
        "items_given": planned.known,
        "alpha": planned.alpha,
        "power": planned.power,
        "mixture": planned.mixture,
        "look": planned.look or None,
        "boards": planned.boards,
        "procedures": procedures,
    }


def _tables(planned: PlannedGoal) -> Group:
    plan, models = planned.plan, len(planned.models)
    head = [
        f"Goal {safe(planned.goal)}: {safe(planned.source)}.",
        (
            f"{'' if planned.known else 'Up to '}{plan.items:,} items, alpha {planned.alpha:g} for all pairs, mixture {planned.mixture}"
            f"{f', look {planned.look:g}' if planned.look else ''}; "
            f"{planned.boards:,} simulated boards"
        ),
    ]
    rows: list[list[str]] = []
    for name, (items, ends) in _races(planned).items():
        longest = [f"> {items:,}" if value == inf else f"{value:,.0f}" for value in _quantiles(ends.items())]
        scores = [f"{value:,.0f}" for value in _quantiles(ends.items_run.sum(axis=1).astype(float))]
        costs = [] if planned.prices is None else [money(value) for value in _quantiles(_costs(planned, ends))]
        rows.append([_race_name(name, items), f"{100 * ends.met.mean():.0f} %", *longest, *scores, *costs[1:]])
    needed = plan.fixed_items
    if needed is None:
        fixed = ["fixed n", f"{100 * plan.fixed_power:.0f} %", "-", f"> {plan.items:,}", "-", "-", "-", "-"]
        rows.append(fixed + ([] if planned.prices is None else ["-", "-"]))
    else:
        cost = [] if planned.prices is None else ["", money(needed * sum(planned.prices)), ""][1:]
        rows.append(
            ["fixed n", f"{100 * planned.power:.0f} %", "", f"{needed:,}", "", "", f"{needed * models:,}", "", *cost]
        )
    titles = [
        "procedure",
        "goal\nmet",
        *(f"{what}\n{share:.0%}" for what in ("items", "scores") for share in QUANTILES),
    ]
    titles += [] if planned.prices is None else ["cost\n50%", "\n90%"]
    columns = {title: numbers(title, [row[k] for row in rows]) for k, title in enumerate(titles)}
    columns["procedure"] = columns["procedure"]._replace(kind="text")
    return group([plain(*head), Table(columns), plain(*_notes(planned))])


def _race_name(name: str, items: int) -> str:
    return "committed race" if name == "committed" else f"completion, {items:,} items"


def _notes(planned: PlannedGoal) -> list[str]:
    plan = planned.plan
    notes = [
        "Items: at most so many until the goal is met in a tenth, half and nine tenths of the boards, of the model that runs longest.",
        "Scores: those of all models until no item can change the answer.",
        "Fixed n: exact tests of all pairs at that count only (Holm), every model on every item.",
    ]
    if not planned.known:
        notes.append(f"--items N plans for a benchmark of N items; {plan.items:,} is the most that is considered here.")
    if plan.completion is None:
        notes.append("No fixed n has the power, so completion is not shown; --items N shows it.")
    full = plan.items if plan.fixed_items is None or planned.known else plan.fixed_items
    run = _quantiles(plan.committed.items_run.sum(axis=1).astype(float))[1]
    share = run / (full * len(planned.models))
    notes.append(
        f"In half of the boards a committed race takes at most {run:,.0f} scores, {100 * share:.0f} % of all models on {full:,} items."
    )
    return notes

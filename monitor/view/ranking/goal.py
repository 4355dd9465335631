"""The goal of a benchmark: whether the verdicts answer its question, and which models can still change the answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from monitor.view.board import Flags
from monitor.view.pairs.intervals import family_alpha
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.standings import decisions_by_rank
from monitor.words.results import line
from schemas.records.goals import Goal, parse_goal
from schemas.records.prices import Prices
from schemas.results.reasons import Fact, Reason, fact
from schemas.results.report import BenchmarkReport, GoalReport, GoalRun
from stats.numerics.pairs import Index, ranked_pairs
from stats.planning.goals import GoalState, goal_state

_NAMED: Final = 3  # models that a sentence names; of more, the number


@dataclass(frozen=True)
class GoalView:
    """A goal over the models of a benchmark."""

    table: PairTable
    goal: Goal
    absent: tuple[str, ...] = ()
    undone: tuple[int, ...] = ()

    @cached_property
    def _ranked(self) -> list[str]:
        """Every model of the board, by rank."""
        contestants = self.table.benchmark.contestants
        return [contestants[k].model for k in self.table.ranking.tolist()]

    @cached_property
    def places(self) -> Index:
        """The ranks, from 0, of the models that take part: the declared ones, whose pairs have all of alpha, or else every model."""
        declared = declared_models(self.table)
        return np.array([k for k, model in enumerate(self._ranked) if not declared or model in declared], np.int64)

    @cached_property
    def models(self) -> list[str]:
        """The models that take part, by rank; those without a score come last."""
        return [*(self._ranked[k] for k in self.places.tolist()), *self.absent]

    @property
    def outside(self) -> list[str]:
        """Models with scores that do not take part, by rank."""
        return [model for model in self._ranked if model not in self.models]

    @cached_property
    def unknown(self) -> list[str]:
        """Models that the goal names and that do not take part yet."""
        return [model for model in self.named if model not in self.models]

    @property
    def named(self) -> list[str]:
        """Models that the goal names, without aliases."""
        aliases = self.table.benchmark.spec.aliases
        return [aliases.get(model, model) for model in self.goal.models]

    @cached_property
    def better(self) -> Flags:
        """The decisions over the models, closed as for the ranges of ranks."""
        return self._among_all(decisions_by_rank(self.table, self.undone))

    @cached_property
    def state(self) -> GoalState | None:
        """What is open; None where the goal names a model that does not take part yet."""
        if self.unknown:
            return None
        state = self._ask(None)
        if self.goal.margin is None or state.met or not self.table.kind.bets or self.table.held:
            return state
        return self._ask(self._not_worse(self.goal.margin, state.open))

    def _ask(self, not_worse: Flags | None) -> GoalState:
        places = [self.models.index(model) for model in self.named]
        return goal_state(self.goal.kind, self.goal.size, places, self.better, not_worse)

    def _among_all(self, ranked: Flags, *, of_absent: bool = False) -> Flags:
        """Take the models that take part of a matrix over ranks, and add those without a score."""
        size, there = len(self.models), self.places.size
        matrix = np.full((size, size), of_absent)
        matrix[:there, :there] = ranked[np.ix_(self.places, self.places)]
        return matrix

    def _by_rank(self, among: Flags) -> Flags:
        """Return a matrix over the models that take part as one over ranks."""
        ranked, there = np.zeros((self.table.ranking.size,) * 2, bool), self.places.size
        ranked[np.ix_(self.places, self.places)] = among[:there, :there]
        return ranked

    @cached_property
    def _pairs(self) -> tuple[Index, Index]:
        """The ranks of each pair of the table, from 0."""
        return ranked_pairs(self.table.ranking.size)

    def _not_worse(self, margin: float, asked: Flags) -> Flags:
        """Return which models are shown not to be worse than which by more than a margin, among pairs that are asked for."""
        # The intervals have the pairs' fixed shares of alpha, so all of them hold together with probability 1 - alpha.
        table, (first, second) = self.table, self._pairs
        at = np.flatnonzero(self._by_rank(asked)[first, second] & (table.pairs.n > 0) & table.has_place())
        ((low, high),) = table.kind.gap_bounds(at, family_alpha(table, at))
        ranked = np.zeros((table.ranking.size,) * 2, bool)
        ranked[first[at], second[at]] = low > -margin
        ranked[second[at], first[at]] = high < margin
        return self._among_all(ranked)

    @cached_property
    def possible(self) -> Flags:
        """Which pairs more items may decide, shape (models, models)."""
        table, (first, second) = self.table, self._pairs
        left = room(table)
        may = left > 0
        if self.goal.margin is None and self.state is not None:
            at = np.flatnonzero(may & self._by_rank(self.state.open)[first, second])
            may[at] = table.kind.reachable(at, left[at])
        ranked = np.zeros((table.ranking.size, table.ranking.size), bool)
        ranked[first, second] = ranked[second, first] = may
        return self._among_all(ranked, of_absent=True)

    @cached_property
    def needed(self) -> Flags:
        """Which models can still change the answer."""
        if self.state is None:
            return np.isin(np.array(self.models), self.named)
        return self.state.needed(self.possible)

    @property
    def outcome(self) -> Literal["met", "open", "impossible"]:
        """The state of the goal."""
        if self.state is not None and self.state.met:
            return "met"
        return "open" if self.state is None or self.table.held or self.needed.any() else "impossible"

    @cached_property
    def answer(self) -> list[str]:
        """The answer so far; see `GoalReport.models`."""
        names, state, goal = self.models, self.state, self.goal
        if state is None:
            return []
        order: list[int] = state.order.tolist()
        if goal.kind == "model":
            return self.named
        if goal.kind == "pair":
            return sorted(self.named, key=lambda model: order.index(names.index(model)))[:1]
        if goal.kind == "top":
            # Models that are certain to be in the set come before those that are in it for now.
            chosen = set(sorted(order, key=lambda k: -state.place[k])[: goal.size])
            order = [k for k in order if k in chosen]
        return [names[k] for k in order]

    def report(self) -> GoalReport:
        """Report the goal."""
        names, runs, facts = self.models, self._runs(), self._facts()
        run = sum(each.items_run for each in runs)
        full = None if self._items is None else self._items * len(names)
        return GoalReport(
            goal=self.goal.text,
            state=self.outcome,
            reason=line(facts),
            facts=facts,
            models=self.answer,
            open_pairs=0 if self.state is None else self.state.open_pairs,
            needed=[names[k] for k in np.flatnonzero(self.needed).tolist()],
            items_run=run,
            items_full=full,
            saved_ratio=_saved(run, full),
            by_model=runs,
        )

    @property
    def _items(self) -> int | None:
        """The items of a full run."""
        return self.table.assumed_items or self.table.benchmark.spec.items

    def _runs(self) -> list[GoalRun]:
        """Report what each model ran, by rank."""
        benchmark, ranking = self.table.benchmark, self.table.ranking[self.places]
        items = self._items
        # Of an item with several repeats the item counts; an older epoch is another run.
        run = [*(benchmark.scored[ranking] + benchmark.skipped[ranking]).tolist(), *(0 for _ in self.absent)]
        return [
            GoalRun(
                model=model,
                items_run=count,
                items_full=items,
                saved_ratio=_saved(count, items),
                left=not needed,
                cost_run=None,
                cost_saved=None,
            )
            for model, count, needed in zip(self.models, run, self.needed.tolist(), strict=True)
        ]

    def _facts(self) -> list[Fact]:
        """Return what the goal depends on, or its answer, and which models do not take part."""
        outside = [fact(Reason.OUTSIDE_GOAL, **named_first(self.outside))] if self.outside else []
        return [self._fact(), *outside]

    def _fact(self) -> Fact:
        state = self.state
        if state is None:
            waited = [model for model in self.unknown if model not in self.outside]
            return fact(Reason.GOAL_WAITS, **named_first(waited)) if waited else fact(Reason.GOAL_OF_STRANGER)
        if state.met:
            return self._met()
        if self.table.held:
            return fact(Reason.NO_VERDICT, because=[*self.table.held])
        if not self.needed.any():
            members = [self.models[k] for k in np.flatnonzero(state.open.any(axis=1)).tolist()]
            return fact(Reason.GOAL_IMPOSSIBLE, pairs=state.open_pairs, **named_first(members))
        needed = [self.models[k] for k in np.flatnonzero(self.needed).tolist()]
        others = len(self.models) - len(needed)
        return fact(Reason.GOAL_OPEN, pairs=state.open_pairs, others=others, **named_first(needed))

    def _met(self) -> Fact:
        """Return the answer."""
        goal, total, answer = self.goal, len(self.models), self.answer
        values: dict[str, Any] = {"kind": goal.kind, "of": total, "margin": goal.margin}
        if goal.kind == "pair":
            other = next(model for model in self.named if model != answer[0])
            decided = bool(self.better[self.models.index(answer[0]), self.models.index(other)])
            return fact(Reason.GOAL_MET, **values, models=[answer[0], other], decided=decided)
        if goal.kind == "model":
            place = self.models.index(answer[0])
            low, high = 1 + int(self.better[:, place].sum()), total - int(self.better[place].sum())
            return fact(Reason.GOAL_MET, **values, models=[answer[0]], low=low, high=high)
        return fact(Reason.GOAL_MET, **values, **named_first(answer))


def _saved(run: int, full: int | None) -> float | None:
    """Return the share of a full run that was not run."""
    return max(0.0, 1 - run / full) if full else None


def goal_report(table: PairTable, goal: Goal | None = None) -> GoalReport | None:
    """Report the goal of a benchmark, or another one; None if there is none, or no model."""
    declared = table.benchmark.spec.goal
    if goal is None and declared is not None:
        goal = parse_goal(declared)
    return None if goal is None or not table.ranking.size else GoalView(table, goal, unscored_models(table)).report()


def priced(goal: GoalReport, prices: Prices) -> GoalReport:
    """Return a goal with what was run and saved in money: in all, if each model has a price."""

    def cost(run: GoalRun) -> GoalRun:
        price = prices.get(run.model, prices.get(""))
        if price is None:
            return run
        left = None if run.items_full is None else price * max(0, run.items_full - run.items_run)
        return run.replace(cost_run=price * run.items_run, cost_saved=left)

    runs = [cost(run) for run in goal.by_model]
    costs = _sum([run.cost_run for run in runs]), _sum([run.cost_saved for run in runs])
    return goal.replace(by_model=runs, cost_run=costs[0], cost_saved=costs[1])


def _sum(costs: Sequence[float | None]) -> float | None:
    """Return the sum; None if one is not known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def priced_report(report: BenchmarkReport, prices: Prices) -> BenchmarkReport:
    """Return a report with the costs of its goal, if it has one."""
    if not prices or report.goal is None:
        return report
    return report.replace(goal=priced(report.goal, prices))


def declared_models(table: PairTable) -> frozenset[str]:
    """Return the models of the declared list, without aliases; empty where anyone may join."""
    spec = table.benchmark.spec
    return frozenset(spec.aliases.get(name, name) for name in spec.family.models or ())


def unscored_models(table: PairTable, expected: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the models that take part and have no score: those of a declared family, then `expected` ones."""
    spec = table.benchmark.spec
    present = {table.benchmark.contestants[k].model for k in table.ranking.tolist()}
    names = (spec.aliases.get(name, name) for name in (*(spec.family.models or ()), *expected))
    return tuple(dict.fromkeys(name for name in names if name not in present))


def room(table: PairTable) -> Index:
    """Return how many more items each pair may come to share; 1 at least where their number is not known."""
    benchmark, a, b = table.benchmark, table.pairs.a, table.pairs.b
    if table.asserted:
        return np.zeros(table.pairs.size, np.int64)
    ended = benchmark.ended_flags()
    if benchmark.committed is not None:
        most = np.where(ended, benchmark.committed.reached[: ended.size], benchmark.committed.size)
        return np.asarray(np.minimum(most[a], most[b]) - benchmark.committed.prefix(a, b))
    if table.pairs.missing is None:
        return np.where(ended[a] | ended[b], 0, 1)
    most = np.where(ended, benchmark.scored[: ended.size], np.iinfo(np.int64).max)
    return np.clip(np.minimum(most[a], most[b]) - table.pairs.n, 0, table.pairs.missing)


def named_first(models: Sequence[str]) -> dict[str, Any]:
    """Return the first models, and how many there are."""
    return {"models": [*(models if len(models) <= _NAMED + 1 else models[:_NAMED])], "count": len(models)}

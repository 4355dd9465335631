"""A race for a goal: which models run next on which items, and which can no longer change the answer.

The plan is a function of the state, so of the log alone. Why verdicts stay valid although it looks at them: docs/how-to/race.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from monitor.view.board import BoardView
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.goal import GoalView, declared_models, unscored_models
from schemas.records.goals import Goal, parse_goal
from schemas.records.scores import ABSENT
from schemas.records.text import shorten
from schemas.results.api import Next, NextRun
from schemas.results.report import GoalReport
from stats.numerics.pairs import Index
from stats.planning.racing import next_target


class NoRaceError(ValueError):
    """A benchmark cannot be raced; the message names the reason and what to do."""


@dataclass(frozen=True)
class Race:
    """A race at one state of a benchmark."""

    view: GoalView
    block: int | None = None

    @classmethod
    def of(
        cls, table: PairTable, goal: Goal | None = None, expected: Sequence[str] = (), block: int | None = None
    ) -> "Race":
        """Return the race for the declared goal, or another one, among the models with scores, a declared family and `expected` ones."""
        benchmark = table.benchmark
        if goal is None:
            if benchmark.spec.goal is None:
                raise NoRaceError(
                    f"{benchmark.name!r} has no goal; declare one (goal: best), or ask for one (goal=best)"
                )
            goal = parse_goal(benchmark.spec.goal)
        policy, ids = benchmark.spec.order.policy, benchmark.spec.item_ids
        if policy not in {"committed", "completion"}:
            raise NoRaceError(
                f"{benchmark.name!r} has the order policy {policy}, under which verdicts are not valid where a run stops because of the "
                "scores of other models; declare a committed order before the first score"
            )
        if ids is None:
            raise NoRaceError(f"{benchmark.name!r} has no list of items, so none can be chosen; declare item_ids")
        declared, aliases = declared_models(table), benchmark.spec.aliases
        strange = next((name for name in expected if declared and aliases.get(name, name) not in declared), None)
        if strange is not None:
            raise NoRaceError(
                f"{benchmark.name!r} declares its models, and {shorten(strange)} is none of them; declare it too, or omit it"
            )
        return cls(GoalView(table, goal, unscored_models(table, expected)), block)

    @property
    def _benchmark(self) -> BoardView:
        return self.view.table.benchmark

    @cached_property
    def goal(self) -> GoalReport:
        """The goal."""
        return self.view.report()

    @property
    def over(self) -> bool:
        """Whether no further item can change the answer."""
        return self.view.outcome != "open" or not self._active.any()

    @cached_property
    def _contestants(self) -> Index:
        """The contestant of each model; -1 for one without a score."""
        ranking = self.view.table.ranking[self.view.places]
        return np.concatenate([ranking, np.full(len(self.view.absent), -1)])

    @cached_property
    def _reached(self) -> Index:
        """Items that each model has from the first one of the order on."""
        benchmark, known = self._benchmark, self._contestants
        assert benchmark.spec.item_ids is not None
        reached = np.zeros(known.size, np.int64)
        for place, k in enumerate(known.tolist()):
            if k < 0:
                continue
            if benchmark.committed is not None and benchmark.spec.units is None:
                reached[place] = benchmark.committed.reached[k]
            else:
                absent = ~self._listed(k)
                reached[place] = absent.argmax() if absent.any() else absent.size
        return reached

    def _listed(self, contestant: int) -> NDArray[np.bool_]:
        """Return for each item of the list whether a contestant has it; of a unit, all its items."""
        benchmark = self._benchmark
        if benchmark.spec.units is not None:
            present = benchmark.by_item.whole(benchmark.cells().codes[:, contestant] != ABSENT)
        else:
            present = benchmark.present(contestant)
        there = np.append(present, False)
        return np.asarray(there[self._row_of_listed])

    @cached_property
    def _row_of_listed(self) -> Index:
        rows = {key.item: row for row, key in enumerate(self._benchmark.item_keys)}
        return np.array([rows.get(item, len(rows)) for item in self._units], np.int64)

    @property
    def _units(self) -> Sequence[str]:
        """The units of the list, or its items without units, in the order in which they are run."""
        committed = self._benchmark.committed
        return self._benchmark.spec.listed_units if committed is None else committed.names(0, committed.size)

    @cached_property
    def _size(self) -> int:
        return len(self._benchmark.spec.listed_units)

    @cached_property
    def _active(self) -> NDArray[np.bool_]:
        """Which models can change the answer and have items left."""
        ended = np.append(self._benchmark.ended_flags(), False)[self._contestants]
        return np.asarray(self.view.needed & (self._reached < self._size) & ~ended, bool)

    @cached_property
    def target(self) -> int:
        """Items up to which models run before the next look."""
        front = int(self._reached[self._active].min(initial=self._size))
        return next_target(front, self._size, self.block)

    @cached_property
    def _out(self) -> NDArray[np.bool_]:
        """Which models can never change the answer again, for any models that join."""
        view, state = self.view, self.view.state
        models = np.array(view.models)
        if view.goal.kind == "pair":
            named = np.isin(models, view.named)
            return ~named | (view.outcome == "met")
        if state is None:
            return np.zeros(models.size, bool)
        # A model that joins can only push a model that is out of the best ones further down.
        closed = self._benchmark.spec.family.models is not None
        done = closed & ~view.needed & ((view.outcome != "open") | ~self._active)
        return np.asarray((state.place == -1) | done, bool)

    def plan(self) -> list[NextRun]:
        """Return what each model does next, by rank."""
        view, over = self.view, self.over
        run = self._active & (self._reached < self.target) & (not over)
        return [
            NextRun(
                model=model,
                step="run" if run[place] else "stop" if self._out[place] else "wait",
                items_run=self._items_run(place),
                items=self._items(place) if run[place] else [],
            )
            for place, model in enumerate(view.models)
        ]

    def report(self) -> Next:
        """Report the goal and what each model does next."""
        return Next(benchmark=self._benchmark.name, goal=self.goal, over=self.over, models=self.plan())

    def _items_run(self, place: int) -> int:
        k = int(self._contestants[place])
        return 0 if k < 0 else int(self._benchmark.scored[k] + self._benchmark.skipped[k])

    def _items(self, place: int) -> list[str]:
        """Return the items that a model lacks up to the target."""
        start, k = int(self._reached[place]), int(self._contestants[place])
        benchmark = self._benchmark
        if benchmark.spec.units is not None:
            return self._items_of_units(start, k)
        if benchmark.committed is None:
            listed = list((benchmark.spec.item_ids or ())[start : self.target])
            return listed if k < 0 else list(compress(listed, ~self._listed(k)[start : self.target]))
        items = benchmark.committed.names(start, self.target)
        if k < 0:
            return items
        rows, present = (benchmark.row_of.get(item) for item in items), benchmark.present(k)
        return [item for item, row in zip(items, rows, strict=True) if row is None or not present[row]]

    def _items_of_units(self, start: int, k: int) -> list[str]:
        """Return the items that a contestant lacks of the units from one on up to the target."""
        benchmark, members = self._benchmark, dict[str, list[str]]()
        for item in benchmark.spec.item_ids or ():
            members.setdefault(benchmark.spec.unit_of(item), []).append(item)
        items = [item for unit in self._units[start : self.target] for item in members[unit]]
        rows = (benchmark.row_of.get(item) for item in items)
        return [
            item
            for item, row in zip(items, rows, strict=True)
            if k < 0 or row is None or benchmark.cells().codes[row, k] == ABSENT
        ]

"""Races through the engine on made boards, and what they falsely claim: decisions, eliminations and answers.

The controller names the next items of each model (`monitor.view.ranking.race`); what a harness does with them is `Made.sends`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.race import Race
from tests.calibration.streams import Board, Wrong, listed, named, of_quality, under

Rng = np.random.Generator
Event = tuple[str, str, int | None]  # item, model, score
Sends = Callable[[Rng, list[Event], dict[str, int]], list[Event]]

LOOKS = 2_000
"""A race that is not over by then does not end."""


def everything(_rng: Rng, asked: list[Event], _lead: dict[str, int]) -> list[Event]:
    """Send what was asked for."""
    return asked


def losses_skipped(rng: Rng, asked: list[Event], _lead: dict[str, int]) -> list[Event]:
    """Skip a third of the wrong answers of every other model."""
    even = {named(k) for k in range(0, 100, 2)}
    return [(i, m, None if m in even and score == 0 and rng.random() < 1 / 3 else score) for i, m, score in asked]


def leaders_slow(rng: Rng, asked: list[Event], lead: dict[str, int]) -> list[Event]:
    """Send in any order, and of models that lead so far only a part: their wrong answers come last."""
    middle = np.median(list(lead.values()))
    sent = [each for each in asked if lead[each[1]] <= middle or each[2] == 1 or rng.random() < 0.3] or asked
    return [sent[k] for k in rng.permutation(len(sent)).tolist()]


@dataclass(frozen=True)
class Made:
    """A made board, and how it is raced.

    Attributes
    ----------
    quality : sequence of float
        The share of items that each model has right.
    goal : str
    size : int
        Models of the best ones.
    joining : int
        Models, the last ones, that join once the race of the others is over.
    sends : callable
        What is sent of the scores that are asked for.
    """

    quality: Sequence[float]
    goal: str = "best"
    size: int = 1
    joining: int = 0
    sends: Sends = everything

    def race(self, rng: Rng, policy: str) -> list[Wrong]:
        """Race; return what was claimed falsely at any look."""
        scores = of_quality(rng, list(self.quality))[:, :, 0]
        models = [named(k) for k in range(len(self.quality))]
        known = models[: len(models) - self.joining]
        family: dict[str, Any] = {"policy": "spending"} if self.joining else {"models": models}
        spec = under(rng, policy) | {"item_ids": listed(), "goal": self.goal, "family": family}
        board, found = Board(**spec), []
        for expected in dict.fromkeys((tuple(known), tuple(models))):
            for _ in range(LOOKS):
                race = Race.of(PairTable(board_view(board.benchmark)), expected=expected)
                found += self._wrong(race)
                if race.over:
                    break
                self._send(board, rng, race, scores)
            assert race.over
        return list(dict.fromkeys(found))

    def _send(self, board: Board, rng: Rng, race: Race, scores: np.ndarray) -> None:
        plan = race.plan()
        column = {named(k): k for k in range(len(self.quality))}
        asked: list[Event] = [
            (item, each.model, int(scores[int(item), column[each.model]])) for each in plan for item in each.items
        ]
        lead = {each.model: 0 for each in plan}
        for contestant, right in zip(board.benchmark.contestants, board.benchmark.total.tolist(), strict=False):
            lead[contestant.model] = right
        sent = self.sends(rng, asked, lead)
        board.fold(
            *({"benchmark": "bench", "item_id": item, "model": model, "score": score} for item, model, score in sent)
        )

    def _wrong(self, race: Race) -> list[Wrong]:
        """Return what a look claims falsely: models of the same quality are equal, whatever their scores."""
        view, state = race.view, race.view.state
        assert state is not None
        quality = np.array([self.quality[int(model.removeprefix("model-"))] for model in view.models])
        wrong = []
        if (view.better & (quality[:, None] <= quality)).any():
            wrong.append(Wrong("", "decision"))
        best = (quality[:, None] <= quality).sum(axis=1) <= self.size
        possible = (quality[:, None] < quality).sum(axis=1) < self.size
        if (possible & (state.place == -1)).any() or (~best & (state.place == 1)).any():
            wrong.append(Wrong("", "elimination"))
        if state.met:
            answer = [quality[view.models.index(model)] for model in race.goal.models]
            others = np.delete(quality, [view.models.index(model) for model in race.goal.models])
            if others.size and min(answer) <= others.max():
                wrong.append(Wrong("", "goal"))
        return wrong


MADE = {
    "three models equal, the best one wanted": Made([0.75, 0.75, 0.75, 0.4, 0.3]),
    "three of five equal at the boundary of the best two": Made([0.9, 0.6, 0.6, 0.6, 0.3], "top:2", 2),
    "two joiners, one as good as the best, `spending`": Made([0.8, 0.5, 0.4, 0.8, 0.45], joining=2),
    "equal models, a third of the losses of some skipped": Made([0.7] * 4 + [0.3], sends=losses_skipped),
    "equal models, leaders slow, their wins first": Made([0.7] * 4 + [0.3], sends=leaders_slow),
}
"""Boards by the words of the table."""


def rows() -> dict[str, dict[str, Callable[[Rng], list[list[Wrong]]]]]:
    """Return the cases by row and order policy."""

    def run(rng: Rng, made: Made, policy: str) -> list[list[Wrong]]:
        return [made.race(rng, policy)]

    return {
        row: {policy: partial(run, made=made, policy=policy) for policy in ("committed", "completion")}
        for row, made in MADE.items()
    }

"""How many items a newcomer needs: models of the board, each admitted to the others along random orders."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from monitor.view.admission import AdmissionError, AdmissionGoal, BoardScores, scores_of
from monitor.view.board import BoardView
from stats.admission.newcomer import Admission
from stats.numerics.pairs import Index

_REPLAYS: Final = 60  # runs in all, some seconds on 12,032 items


@dataclass(frozen=True)
class Replayed:
    """A model as a newcomer: its rank, and the items until the goal, the median over the orders."""

    model: str
    rank: int
    items: int


@dataclass(frozen=True)
class AdmissionPlan:
    """What the models of a board would have needed as newcomers."""

    benchmark: str
    goal: str
    alpha: float
    items: int
    models: int
    orders: int
    median: int
    nine_of_ten: int
    newcomers: list[Replayed]


def plan_admission(board: BoardView, goal: AdmissionGoal, alpha: float) -> AdmissionPlan:
    """Replay the complete models of a board as newcomers, evenly by rank where they are many; a goal out of reach takes every item."""
    known = scores_of(board)
    complete = np.flatnonzero(known.present.all(axis=0))
    if not complete.size or len(known.models) < 2:
        raise AdmissionError(
            f"{board.name!r} has {complete.size:,} of {len(known.models):,} complete models; a plan admits each of these to the others"
        )
    totals, items = known.totals()[0], len(known.items)
    ranked = complete[np.argsort(-totals[complete], kind="stable")]
    some = ranked[np.unique(np.linspace(0, ranked.size - 1, min(_REPLAYS, ranked.size)).round().astype(np.int64))]
    orders = max(1, _REPLAYS // some.size)
    needed = np.array(
        [
            [
                _needed(known, int(k), goal, alpha, np.random.default_rng([order, int(k)]).permutation(items))
                for k in some
            ]
            for order in range(orders)
        ]
    )
    return AdmissionPlan(
        benchmark=board.name,
        goal=goal.text,
        alpha=alpha,
        items=items,
        models=len(known.models),
        orders=orders,
        median=int(np.quantile(needed, 0.5, method="inverted_cdf")),
        nine_of_ten=int(np.quantile(needed, 0.9, method="inverted_cdf")),
        newcomers=[
            Replayed(known.models[k], 1 + int((totals > totals[k]).sum()), int(np.median(column)))
            for k, column in zip(some.tolist(), needed.T, strict=True)
        ],
    )


def _needed(known: BoardScores, model: int, goal: AdmissionGoal, alpha: float, order: Index) -> int:
    """Return after how many items of an order the goal of a newcomer is met."""
    others = np.arange(len(known.models)) != model
    low, high = (totals[others] for totals in known.totals())
    newcomer = Admission(known.difficulty(others)[order], low, high, alpha=alpha, unit=known.unit)
    newcomer.add(known.scores[order, model])
    items, at = newcomer.items, newcomer.settled_at
    if goal.points is not None:
        return first_narrow(newcomer, goal.points / 100)
    if goal.ranks is not None:
        open_until = np.sort(np.where(at > 0, at, items))
        return int(open_until[-goal.ranks]) if goal.ranks <= open_until.size else 0
    assert goal.top is not None
    above, below = (np.sort(at[side]) for side in (newcomer.above, newcomer.below))
    places = (below, goal.top), (above, at.size + 1 - goal.top)
    return min(
        (int(side[place - 1]) if place > 0 else 0 for side, place in places if place <= side.size), default=items
    )


def first_narrow(newcomer: Admission, width: float) -> int:
    """Return after how many items the score is known to a width."""
    low, high = 0, newcomer.items
    while low < high:
        middle = (low + high) // 2
        least, most = newcomer.interval(middle)
        if most - least <= width * newcomer.items * newcomer.unit:
            high = middle
        else:
            low = middle + 1
    return low

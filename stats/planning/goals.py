"""Whether decisions between models answer a question about their ranking, and which models can still change the answer.

Models are positions 0, ..., K - 1 of a ranking, best first. ``better[i, j]`` means that i is decided to be better than j, and
``not_worse[i, j]`` that i is shown not to be worse than j by more than a margin. Where the decisions are all correct with probability
1 - alpha (a family-wise procedure), so is every goal that rests on them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import BoolArray, IntArray


class GoalState(NamedTuple):
    """What decisions leave open of a goal.

    Attributes
    ----------
    open : ndarray of bool, shape (K, K)
        Pairs that the goal rests on and that are not decided, symmetric.
    allowed : int
        How many of them may stay open.
    place : ndarray of int, shape (K,)
        For the best models: 1 where a model is certain to be among them, -1 where it is certain not to be, else 0. 0 for other goals.
    order : ndarray of int, shape (K,)
        The ranking made consistent with the decisions.
    """

    open: BoolArray
    allowed: int
    place: IntArray
    order: IntArray

    @property
    def open_pairs(self) -> int:
        """Number of open pairs."""
        return int(np.count_nonzero(self.open)) // 2

    @property
    def met(self) -> bool:
        """Whether the goal is met."""
        return self.open_pairs <= self.allowed

    def needed(self, possible: npt.ArrayLike) -> BoolArray:
        """Return which models can still change the answer: those in an open pair that more items may decide."""
        if self.met:
            return np.zeros(self.place.size, bool)
        return np.asarray((self.open & np.asarray(possible, bool)).any(axis=1))


def ranking_goal(better: npt.ArrayLike, not_worse: npt.ArrayLike | None = None) -> GoalState:
    """Return what is open of the order of all models.

    Examples
    --------
    >>> state = ranking_goal([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    >>> state.met, state.open_pairs, state.needed(np.ones((3, 3))).tolist()
    (False, 1, [False, True, True])
    """
    wins, order = _ordered(better)
    return _state(wins, not_worse, order, np.ones(wins.shape, bool))


def top_goal(better: npt.ArrayLike, size: int, not_worse: npt.ArrayLike | None = None) -> GoalState:
    """Return what is open of the set of the best models.

    Parameters
    ----------
    better : array_like of bool, shape (K, K)
    size : int
        Models of the set.
    not_worse : array_like of bool, shape (K, K), optional

    Notes
    -----
    A model that is decided better than all but ``size - 1`` others is in the set; one below ``size`` others is not. Both are then set
    aside, and the same is asked of the others: the best of them, as many as places are left. What remains open are the pairs of those
    in the set as it is now with those outside. A model that was set aside cannot change the set, so it needs no more items.

    Examples
    --------
    >>> better = np.zeros((4, 4), bool)
    >>> better[0, 2:] = better[1, 3] = True  # model 0 is in the set; 3 is not; 1 and 2 compete for the second place
    >>> state = top_goal(better, 2)
    >>> state.place.tolist(), state.open_pairs, state.met
    ([1, 0, 0, -1], 1, False)
    """
    wins, order = _ordered(better)
    models = wins.shape[0]
    place = np.zeros(models, np.int64)
    left = min(size, models)
    while True:
        among = np.flatnonzero(place == 0)
        inside = wins[np.ix_(among, among)]
        if left <= 0 or left >= among.size:
            place[among] = 1 if left > 0 else -1
            break
        sure = inside.sum(axis=1) >= among.size - left
        ruled_out = inside.sum(axis=0) >= left
        if not (sure | ruled_out).any():
            break
        place[among[sure]], place[among[ruled_out]] = 1, -1
        left -= int(sure.sum())
    candidates = order[place[order] == 0]
    chosen = np.zeros(models, bool)
    chosen[candidates[: max(left, 0)]] = True
    other = (place == 0) & ~chosen
    boundary = chosen[:, None] & other
    return _state(wins, not_worse, order, boundary | boundary.T, place=place)


def pair_goal(better: npt.ArrayLike, one: int, other: int, not_worse: npt.ArrayLike | None = None) -> GoalState:
    """Return whether it is open which of two models is better."""
    wins, order = _ordered(better)
    asked = np.zeros(wins.shape, bool)
    asked[one, other] = asked[other, one] = True
    return _state(wins, not_worse, order, asked)


def rank_goal(better: npt.ArrayLike, model: int, width: int = 1, not_worse: npt.ArrayLike | None = None) -> GoalState:
    """Return what is open of the rank of a model, whose range may hold `width` ranks."""
    wins, order = _ordered(better)
    asked = np.zeros(wins.shape, bool)
    asked[model] = asked[:, model] = True
    return _state(wins, not_worse, order, asked, allowed=width - 1)


def goal_state(
    kind: str, size: int, models: Sequence[int], better: npt.ArrayLike, not_worse: npt.ArrayLike | None = None
) -> GoalState:
    """Return what is open of a goal.

    Parameters
    ----------
    kind : {"ranking", "top", "pair", "model"}
    size : int
        Models of the set of ``top``; ranks that the range of ``model`` may hold.
    models : sequence of int
        The two models of ``pair``, the one of ``model``.
    better, not_worse
        See `top_goal`.
    """
    if kind == "ranking":
        return ranking_goal(better, not_worse)
    if kind == "top":
        return top_goal(better, size, not_worse)
    if kind == "pair":
        return pair_goal(better, models[0], models[1], not_worse)
    return rank_goal(better, models[0], size, not_worse)


def _ordered(better: npt.ArrayLike) -> tuple[BoolArray, IntArray]:
    """Return checked decisions, and the ranking with each model after those decided better than it."""
    wins = np.asarray(better, bool)
    if wins.ndim != 2 or wins.shape[0] != wins.shape[1]:
        raise ValueError(f"better must be a square matrix, got shape {wins.shape}")
    return wins, np.argsort(wins.sum(axis=0), kind="stable")


def _state(
    wins: BoolArray,
    not_worse: npt.ArrayLike | None,
    order: IntArray,
    asked: BoolArray,
    *,
    allowed: int = 0,
    place: IntArray | None = None,
) -> GoalState:
    accepted = wins | wins.T
    if not_worse is not None:
        position = np.empty(order.size, np.int64)
        position[order] = np.arange(order.size)
        ahead = np.asarray(not_worse, bool) & (position[:, None] < position)
        accepted = accepted | ahead | ahead.T
    still_open = asked & ~accepted
    np.fill_diagonal(still_open, val=False)
    return GoalState(still_open, allowed, np.zeros(order.size, np.int64) if place is None else place, order)

"""Races: models run in step along one order of the items until a goal is met, and leave when they can no longer change the answer.

The rules that `GET /api/v1/next` follows are here: how far the next block goes, which pairs may still be decided, and `run_race`, which
races over known 0/1 scores as the engine would, for plans and error rates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log, log1p
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stats.evidence.curtailed import curtailed_leader_log_p, curtailed_log_p
from stats.evidence.eprocess import log_e_value
from stats.families.error_control import WHOLE, place_weights, step_down
from stats.families.transitivity import CLOSURE_MODELS, transitive_closure
from stats.intervals.completion_gap import completion_interval
from stats.intervals.confidence import gap_interval
from stats.numerics.checks import BoolArray, FloatArray, IntArray
from stats.numerics.mixtures import parse_mixture
from stats.planning.goals import GoalState, goal_state

FIRST_BLOCK: Final = 10
"""Items of the first blocks."""

GROWTH: Final = 50
"""Later blocks are this part of the items that every needed model has: a decision is seen at most so much late."""

_LARGE_LEAD: Final = 6
"""Leads of so many standard deviations are decided."""

_CELLS: Final = 1_000_000
_SLACK: Final = 1e-9
_LN2: Final = log(2.0)

Goal = Callable[[BoolArray, BoolArray | None, IntArray], GoalState]
"""Returns what is open, given the decisions over ranks, what is not worse by more than a margin, and the rank of each model, from 0."""


def race_goal(kind: str, size: int = 1, models: Sequence[int] = ()) -> Goal:
    """Return a goal about models of a board by their numbers; see `stats.planning.goals.goal_state`."""
    return lambda better, not_worse, rank: goal_state(kind, size, [int(rank[k]) for k in models], better, not_worse)


def next_target(front: int, size: int, block: int | None = None) -> int:
    """Return the item up to which models run next.

    Parameters
    ----------
    front : int
        Items that every needed model has.
    size : int
        Items of the benchmark.
    block : int, optional
        Items of a block; by default 10 of them, later 2 % of the items so far.
    """
    return min(size, front + (block or max(FIRST_BLOCK, ceil(front / GROWTH))))


class Counts(NamedTuple):
    """The counts of pairs, arrays of shape (P,): with skipped items, `c_worst` and `b_best` count each against one model."""

    n: npt.NDArray[np.integer]
    b: npt.NDArray[np.integer]
    c: npt.NDArray[np.integer]
    c_worst: npt.NDArray[np.integer]
    b_best: npt.NDArray[np.integer]


def may_be_decided(
    counts: Counts,
    left: npt.NDArray[np.integer],
    alpha: float,
    mixture: str = "beta(1,1)",
    lost: npt.NDArray[np.integer] | None = None,
) -> BoolArray:
    """Return which pairs may be decided if one of the two models wins every item that they may still share.

    Parameters
    ----------
    counts : Counts
    left : ndarray of int, shape (P,)
        Items that each pair may still share.
    alpha : float
    mixture : str
        Mixture of the e-process.
    lost : ndarray of int, shape (P,), optional
        Items that will stay missing, if the curtailed exact test decides, and not the e-process.
    """
    n, b, c, c_worst, b_best = counts
    # ln e is about d^2 / 2m at a lead d in m discordant items: most pairs need no more than this.
    may = left > np.abs(b - c) + _LARGE_LEAD * np.sqrt(n + left)
    some = np.flatnonzero(~may)
    b, c, c_worst, b_best, left = (x[some] for x in (b, c, c_worst, b_best, left))
    if lost is not None:
        best = np.maximum(-curtailed_log_p(b + left, c, lost[some])[0], -curtailed_log_p(b, c + left, lost[some])[1])
    else:
        best = np.maximum(log_e_value(b_best + left, c, mixture), log_e_value(b, c_worst + left, mixture))
    may[some] = best >= -log(alpha)
    return np.asarray(may, bool)


@dataclass(frozen=True)
class RaceRules:
    """The rules of a race.

    Attributes
    ----------
    goal : callable
        See `Goal`.
    completion : bool
        Whether the curtailed exact test decides, and not the e-process along a committed order.
    alpha : float
        Error rate of the family of all pairs, which share it equally.
    mixture : str
        A symmetric mixture of the e-process.
    margin : float, optional
        Gap up to which the order of two models does not matter.
    block : int, optional
        See `next_target`.
    look : float
        Share of alpha for the exact test of all items, at the end of a committed order.
    """

    goal: Goal
    completion: bool = False
    alpha: float = 0.05
    mixture: str = "beta(1,1)"
    margin: float | None = None
    block: int | None = None
    look: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.look < 1 or (self.look and self.completion):
            raise ValueError(
                f"look {self.look} is no share of alpha along a committed order; use one from 0 to below 1"
            )
        if not self.completion and not parse_mixture(self.mixture).symmetric:
            raise ValueError(f"the mixture {self.mixture} is not symmetric; use a symmetric one, such as beta(1,1)")

    def not_worse(self, counts: Counts, size: int, alpha: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Return for pairs whether the first model is shown not to be worse than the second by more than the margin, and the reverse.

        Parameters
        ----------
        counts : Counts
        size : int
            Items of the benchmark.
        alpha : ndarray, shape (P,)
            The share of alpha of each pair, so that all intervals hold together.
        """
        margin = self.margin or 0.0
        n, b, c = counts[:3]
        if self.completion:
            low, high = completion_interval(np.full(n.size, size), b, c, size - n, alpha)
        else:
            low, high = gap_interval(n, b, c, alpha * (1 - self.look), self.mixture)
        if self.look:
            at_end = completion_interval(np.full(n.size, size), b, c, size - n, alpha * self.look)
            low, high = np.maximum(low, at_end[0]), np.minimum(high, at_end[1])
        return low > -margin, high < margin


class RaceResult(NamedTuple):
    """The end of a race.

    Attributes
    ----------
    met : bool
        Whether the goal is met; if not, no item was left that could decide it.
    items_run : ndarray of int, shape (K,)
        Items that each model ran.
    side : ndarray of int, shape (K, K)
        1 where a model is decided to be better than another one, -1 where it is decided to be worse.
    place : ndarray of int, shape (K,)
        For the best models: 1 where a model is certain to be among them, -1 where it is certain not to be.
    order : ndarray of int, shape (K,)
        The models from the best to the worst, made consistent with the decisions.
    looks : int
        How often the controller was asked.
    """

    met: bool
    items_run: IntArray
    side: IntArray
    place: IntArray
    order: IntArray
    looks: int


def run_race(scores: npt.ArrayLike, rules: RaceRules) -> RaceResult:
    """Race over known scores.

    Parameters
    ----------
    scores : array_like of 0 and 1, shape (items, models)
        The items in the order in which they are run; equal means are ranked in the order of the models.
    rules : RaceRules

    Notes
    -----
    The result is that of the engine if each look folds the scores that `GET /api/v1/next` asks for and all models are declared. Decisions
    at a look depend on the largest evidence of each pair so far only, so they are found a block at a time.

    Examples
    --------
    >>> scores = np.random.default_rng(1).random((500, 3)) < [0.9, 0.6, 0.3]
    >>> result = run_race(scores, RaceRules(race_goal("top", 1)))
    >>> result.met, int(result.order[0]), result.items_run.tolist()
    (True, 0, [40, 40, 20])
    """
    race = _Race(np.ascontiguousarray(np.asarray(scores, np.int8).T), rules)
    looks = 1
    while not race.look():
        looks += 1
    return race.result(looks)


class _Race:
    """A race: its state, and the look at it."""

    def __init__(self, scores: npt.NDArray[np.int8], rules: RaceRules) -> None:
        self._scores, self._rules = scores, rules
        models, self._size = scores.shape
        self._i, self._j = np.triu_indices(models, 1)
        pairs = self._i.size
        self._weights = place_weights(np.arange(1, pairs + 1), max(pairs, 1))
        self._open_weight = WHOLE
        self._reached, self._right = np.zeros((2, models), np.int64)
        self._n, self._b, self._c = np.zeros((3, pairs), np.int64)
        self._early = log1p(-rules.look)
        self._peak = np.zeros(pairs)  # largest evidence so far from ln 1/alpha on
        self._peak_side, self._side = np.zeros((2, pairs), np.int64)
        self._state: GoalState
        self._ranking = np.arange(models)

    def look(self) -> bool:
        """Run the next block; return whether the race is over."""
        known = self._reached > 0
        means = np.divide(self._right, self._reached, out=np.full(known.size, -1.0), where=known)
        self._ranking = np.argsort(-means, kind="stable")
        rank = np.empty(known.size, np.int64)
        rank[self._ranking] = np.arange(known.size)
        first, second = rank[self._i], rank[self._j]
        better = np.zeros((known.size, known.size), bool)
        better[first, second], better[second, first] = self._side > 0, self._side < 0
        if known.size <= CLOSURE_MODELS and better.any():
            better = transitive_closure(better)
        self._state = self._rules.goal(better, None, rank)
        if self._rules.margin is not None and not self._state.met:
            not_worse = self._not_worse(first, second)
            self._state = self._rules.goal(better, not_worse, rank)
        possible = np.zeros(better.shape, bool)
        possible[first, second] = possible[second, first] = self._possible(self._state.open[first, second])
        needed = self._state.needed(possible)[rank]
        active = needed & (self._reached < self._size)
        if not active.any():
            return True
        target = next_target(int(self._reached[active].min()), self._size, self._rules.block)
        self._run(active & (self._reached < target), target)
        return False

    def result(self, looks: int) -> RaceResult:
        """Return the end of the race."""
        side = np.zeros((self._reached.size,) * 2, np.int64)
        side[self._i, self._j], side[self._j, self._i] = self._side, -self._side
        place = np.empty(self._reached.size, np.int64)
        place[self._ranking] = self._state.place
        return RaceResult(self._state.met, self._reached, side, place, self._ranking[self._state.order], looks)

    def _possible(self, asked: BoolArray) -> BoolArray:
        """Return which pairs more items may decide."""
        left = self._size - self._n
        may: BoolArray = left > 0
        if self._rules.margin is None:
            at = np.flatnonzero(may & asked & (self._n > 0))
            n, b, c = self._n[at], self._b[at], self._c[at]
            counts, none, rules = Counts(n, b, c, c, b), np.zeros(at.size, np.int64), self._rules
            alpha = rules.alpha * (1 - rules.look)
            may[at] = may_be_decided(counts, left[at], alpha, rules.mixture, none if rules.completion else None)
            if rules.look:
                may[at] |= may_be_decided(counts, left[at], rules.alpha * rules.look, rules.mixture, none)
        return may

    def _not_worse(self, first: IntArray, second: IntArray) -> BoolArray:
        """Return over ranks which models are shown not to be worse than which by more than a margin."""
        at = np.flatnonzero(self._state.open[first, second] & (self._n > 0))
        n, b, c = self._n[at], self._b[at], self._c[at]
        alpha = np.full(at.size, self._rules.alpha) * self._weights[at] / WHOLE
        matrix = np.zeros(self._state.open.shape, bool)
        matrix[first[at], second[at]], matrix[second[at], first[at]] = self._rules.not_worse(
            Counts(n, b, c, c, b), self._size, alpha
        )
        return matrix

    # --- scores -------------------------------------------------------------------------------------------------------------------------

    def _run(self, models: BoolArray, target: int) -> None:
        """Run some models up to an item, and decide pairs."""
        for k in np.flatnonzero(models).tolist():
            self._right[k] += int(self._scores[k, self._reached[k] : target].sum())
        self._reached[models] = target
        shared = np.minimum(self._reached[self._i], self._reached[self._j])
        grown = np.flatnonzero((shared > self._n) & (self._side == 0))
        stretch = self._n[grown] * (self._size + 1) + shared[grown]
        in_step = (stretch == stretch[:1]).all()
        for key in (stretch[:1] if in_step else np.unique(stretch)).tolist():
            self._fold(grown[stretch == key], *divmod(key, self._size + 1))
        if not grown.size:
            return
        waiting = np.flatnonzero((self._side == 0) & (self._peak > 0))
        decided = step_down(self._peak[waiting], self._weights[waiting], self._open_weight, self._rules.alpha)
        self._open_weight = decided.open_weight
        self._side[waiting[decided.pair]] = self._peak_side[waiting[decided.pair]]

    def _fold(self, pair: IntArray, start: int, stop: int) -> None:
        """Add the items of a stretch to pairs that had all items before it, and keep their largest evidence."""
        block = self._scores[:, start:stop]
        right = block.astype(np.float32)
        both = np.rint(right @ right.T).astype(np.int64)
        won = both.diagonal()[:, None] - both
        i, j = self._i[pair], self._j[pair]
        before_b, before_c = self._b[pair], self._c[pair]
        self._n[pair] = stop
        self._b[pair] += won[i, j]
        self._c[pair] += won[j, i]
        if self._rules.completion:
            b, c = self._b[pair], self._c[pair]
            self._keep(pair, -curtailed_leader_log_p(b, c, self._size - stop), np.sign(b - c))
            return
        if self._rules.look:
            b, c = self._b[pair], self._c[pair]
            at_end = log(self._rules.look) - curtailed_leader_log_p(b, c, self._size - stop)
            self._keep(pair, at_end, np.sign(b - c))
        # Evidence is at most ln 2 d^2 / m at a lead d, and that where one model wins all its items first.
        limit = np.maximum(-log(self._rules.alpha), self._peak[pair]) - _SLACK - self._early
        lead, discordant = before_b - before_c, before_b + before_c
        near = np.zeros(pair.size, bool)
        for ahead, more in ((lead, self._b[pair] - before_b), (-lead, self._c[pair] - before_c)):
            most = np.maximum(ahead + more, 0).astype(np.float64)
            near |= (most > 0) & (_LN2 * most**2 >= limit * (discordant + more))
        at = np.flatnonzero(near)
        step = max(1, _CELLS // (stop - start))
        for part in range(0, at.size, step):
            some = at[part : part + step]
            difference = block[i[some]] - block[j[some]]
            leads = lead[some, None] + difference.cumsum(axis=1, dtype=np.int64)
            discordants = discordant[some, None] + (difference != 0).cumsum(axis=1, dtype=np.int64)
            self._walk(pair[some], leads, discordants, limit[some])

    def _walk(self, pair: IntArray, lead: IntArray, discordant: IntArray, limit: FloatArray) -> None:
        """Keep the largest evidence of pairs along their items, shape (pairs, items): it is where the lead does not grow further."""
        size = np.abs(lead)
        near = _LN2 * size * size >= limit[:, None] * discordant
        near[:, :-1] &= size[:, :-1] > size[:, 1:]
        near &= size > 0
        of, item = np.nonzero(near)
        lead, discordant = lead[of, item], discordant[of, item]
        if not of.size:
            return
        evidence = log_e_value((discordant + lead) // 2, (discordant - lead) // 2, self._rules.mixture)
        starts = np.flatnonzero(np.diff(of, prepend=-1))
        largest = np.maximum.reduceat(evidence, starts)
        at = np.flatnonzero(evidence == np.repeat(largest, np.diff(starts, append=of.size)))
        earliest = at[np.flatnonzero(np.diff(of[at], prepend=-1))]
        self._keep(pair[of[starts]], largest + self._early, np.sign(lead[earliest]))

    def _keep(self, pair: IntArray, evidence: FloatArray, side: IntArray) -> None:
        """Keep evidence that is larger than before, and at least ln 1/alpha."""
        higher = (evidence > self._peak[pair]) & (evidence >= -log(self._rules.alpha) - _SLACK)
        self._peak[pair[higher]], self._peak_side[pair[higher]] = evidence[higher], side[higher]

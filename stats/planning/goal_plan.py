"""How many items a goal takes: whole boards are simulated, and raced by the rules of the engine.

A board comes from accuracies and a correlation, or from a pilot. The gaps of a pilot are a bad plan (see `stats.planning.pilot`), so a
board of a pilot draws its items from the pilot's, with random weights (the Bayesian bootstrap), and from further items whose scores are
those of a pilot item with the models exchanged at random. These shrink every gap, as if each of two models had won
`stats.planning.pilot.ADDED_WINS` more items.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, log, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stats.evidence.curtailed import curtailed_leader_log_p
from stats.families.error_control import WHOLE, place_weights, step_down
from stats.families.transitivity import transitive_closure
from stats.numerics.checks import BoolArray, FloatArray, IntArray
from stats.numerics.special import ndtri
from stats.planning.pilot import ADDED_WINS
from stats.planning.racing import Counts, RaceRules, run_race
from stats.planning.simulate import latent_joint

Scores = npt.NDArray[np.int8]

QUANTILES: Final = (0.1, 0.5, 0.9)
"""Shares of the simulated boards that a plan gives."""

_MOST_ADDED: Final = 10_000
_SIZES: Final = 40
_STEPS: Final = 40


class PilotBoards:
    """Boards like a pilot.

    Parameters
    ----------
    scores : array_like of 0 and 1, shape (items, models)
    """

    def __init__(self, scores: npt.ArrayLike) -> None:
        self._scores = np.asarray(scores, np.int8)
        items, models = self._scores.shape
        right = self._scores.sum(axis=1, dtype=np.int64)
        discordant = float((right * (models - right)).sum())
        if not discordant:
            raise ValueError("no two models of the pilot differ on any item; use a pilot on which they do")
        share = discordant / (items * models * (models - 1) / 2)
        self._added = min(_MOST_ADDED, ceil(2 * ADDED_WINS / share))

    @property
    def models(self) -> int:
        """Number of models."""
        return int(self._scores.shape[1])

    def draw(self, items: int, rng: "np.random.Generator") -> Scores:
        """Draw a board, shape (items, models)."""
        own = self._scores.shape[0]
        added = rng.permuted(self._scores[rng.integers(own, size=self._added)], axis=1)
        weights = rng.standard_exponential(own + self._added)
        drawn = np.searchsorted(np.cumsum(weights), rng.random(items) * weights.sum()).clip(max=weights.size - 1)
        return np.asarray(np.concatenate([self._scores, added])[drawn], np.int8)


class MadeBoards:
    """Boards of models with given accuracies, whose 0/1 scores have a correlation: one normal factor makes items hard for all of them.

    Parameters
    ----------
    accuracies : sequence of float
        In (0, 1).
    rho : float
        Mean phi coefficient over the pairs.
    """

    def __init__(self, accuracies: Sequence[float], rho: float) -> None:
        self._p = np.asarray(accuracies, float)
        first, second = np.triu_indices(self._p.size, 1)
        a, b = self._p[first], self._p[second]
        spread = np.sqrt(a * (1 - a) * b * (1 - b))

        def phi(latent: float) -> float:
            return float(np.mean((latent_joint(a, b, latent)[:, 0] - a * b) / spread))

        low, high = 0.0, 0.999
        if not 0 <= rho <= phi(high):
            raise ValueError(
                f"a correlation of {rho:g} is not possible between these models; use one from 0 to {phi(high):.2f}"
            )
        for _ in range(_STEPS):
            middle = (low + high) / 2
            low, high = (middle, high) if phi(middle) < rho else (low, middle)
        self._latent = low

    @property
    def models(self) -> int:
        """Number of models."""
        return self._p.size

    def draw(self, items: int, rng: "np.random.Generator") -> Scores:
        """Draw a board, shape (items, models)."""
        shared, own = rng.standard_normal((items, 1)), rng.standard_normal((items, self._p.size))
        skill = sqrt(self._latent) * shared + sqrt(1 - self._latent) * own
        return np.asarray(skill < ndtri(self._p), np.int8)


class Ends(NamedTuple):
    """How races end.

    Attributes
    ----------
    met : ndarray of bool, shape (boards,)
    items_run : ndarray of int, shape (boards, models)
    """

    met: BoolArray
    items_run: IntArray

    def items(self) -> FloatArray:
        """Return the items until the goal is met, those of the longest run, shape (boards,); infinite where it is not."""
        return np.where(self.met, self.items_run.max(axis=1), np.inf)


@dataclass(frozen=True)
class GoalPlan:
    """A plan.

    Attributes
    ----------
    items : int
        Items of the benchmark.
    committed : Ends
        Races along a committed order.
    fixed_power : float
        Share of the boards on which the goal is met by exact tests of all pairs after these items (Holm).
    fixed_items : int or None
        Items at which that share reaches the power, to a few percent; None if it does not.
    completion_items : int or None
        Items of the benchmark that is raced under `completion`.
    completion : Ends or None
    """

    items: int
    committed: Ends
    fixed_power: float
    fixed_items: int | None
    completion_items: int | None = None
    completion: Ends | None = None


@dataclass(frozen=True)
class GoalSimulation:
    """What is simulated.

    Attributes
    ----------
    boards : PilotBoards or MadeBoards
    rules : RaceRules
    items : int
        Items of the benchmark, or the most that are considered.
    known : bool
        Whether that is the item count of the benchmark. If not, `completion` is planned for the items of a fixed n.
    power : float
    runs : int
        Boards.
    seed : int
    on_board : callable, optional
        Called after each simulated board.
    """

    boards: PilotBoards | MadeBoards
    rules: RaceRules
    items: int
    known: bool = True
    power: float = 0.8
    runs: int = 100
    seed: int = 0
    on_board: Callable[[], None] = field(default=lambda: None)

    def plan(self) -> GoalPlan:
        """Simulate."""
        sizes = np.unique(np.geomspace(min(10, self.items), self.items, _SIZES).astype(np.int64))
        committed, fixed = [], []
        for board in range(self.runs):
            scores = self._draw(board)
            committed.append(run_race(scores, self.rules))
            fixed.append(fixed_n_met(scores, self.rules, sizes))
            self.on_board()
        share = np.mean(fixed, axis=0)
        enough = _first_size(sizes, share, self.power)
        ends = Ends(np.array([each.met for each in committed]), np.stack([each.items_run for each in committed]))
        plan = GoalPlan(self.items, ends, float(share[-1]), enough)
        raced = self.items if self.known else enough
        return plan if raced is None else replace(plan, completion_items=raced, completion=self._completion(raced))

    def _completion(self, items: int) -> Ends:
        rules, found = replace(self.rules, completion=True, look=0.0), []
        for board in range(self.runs):
            found.append(run_race(self._draw(board)[:items], rules))
            self.on_board()
        return Ends(np.array([each.met for each in found]), np.stack([each.items_run for each in found]))

    def _draw(self, board: int) -> Scores:
        return self.boards.draw(self.items, np.random.default_rng([self.seed, board]))


def fixed_n_met(scores: Scores, rules: RaceRules, sizes: IntArray) -> BoolArray:
    """Return whether the goal is met at each of some item counts, ascending, if it is looked at then only.

    All pairs are tested by the exact test with Holm's procedure; with a margin, intervals that hold together count too.
    """
    models = scores.shape[1]
    i, j = np.triu_indices(models, 1)
    weights = place_weights(np.arange(1, i.size + 1), max(i.size, 1))
    wins, sums = _counts_at(scores, sizes)
    won, lost = wins[:, i, j], wins[:, j, i]
    evidence = -curtailed_leader_log_p(won.ravel(), lost.ravel(), 0).reshape(won.shape)
    met = []
    for size, right, b, c, log_evidence in zip(sizes.tolist(), sums, won, lost, evidence, strict=True):
        decided = step_down(log_evidence, weights, WHOLE, rules.alpha).pair
        ranking = np.argsort(-right, kind="stable")
        rank = np.empty(models, np.int64)
        rank[ranking] = np.arange(models)
        side = np.zeros(i.size, np.int64)
        side[decided] = np.sign(b - c)[decided]
        better = np.zeros((models, models), bool)
        better[rank[i], rank[j]], better[rank[j], rank[i]] = side > 0, side < 0
        state = rules.goal(transitive_closure(better), None, rank)
        if rules.margin is not None and not state.met:
            alpha = np.full(i.size, rules.alpha) * weights / WHOLE
            n = np.full(i.size, size)
            closer = replace(rules, completion=True).not_worse(Counts(n, b, c, c, b), size, alpha)
            matrix = np.zeros((models, models), bool)
            matrix[rank[i], rank[j]], matrix[rank[j], rank[i]] = closer
            state = rules.goal(transitive_closure(better), matrix, rank)
        met.append(state.met)
    return np.array(met)


def _counts_at(scores: Scores, sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return at each size how many items a model has right and another one wrong, and how many it has right."""
    blocks = [block.astype(np.float32) for block in np.split(scores[: sizes[-1]], sizes[:-1])]
    wins = np.rint(np.stack([block.T @ (1 - block) for block in blocks])).astype(np.int64)
    right = np.rint(np.stack([block.sum(axis=0) for block in blocks])).astype(np.int64)
    return wins.cumsum(axis=0), right.cumsum(axis=0)


def _first_size(sizes: IntArray, share: FloatArray, power: float) -> int | None:
    """Return about how many items give a power, between the sizes that were tried."""
    reached = np.flatnonzero(share >= power)
    if not reached.size:
        return None
    k = int(reached[0])
    if k == 0:
        return int(sizes[0])
    part = (power - share[k - 1]) / (share[k] - share[k - 1])
    return ceil(float(np.exp(log(sizes[k - 1]) + part * (log(sizes[k]) - log(sizes[k - 1])))))

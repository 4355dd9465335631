"""What a committed order would have taken for a goal, on scores that came without one."""

from statistics import median
from time import process_time
from typing import Final, NamedTuple

import numpy as np

from monitor.engine.state.codes import ONE, ZERO
from monitor.report.goal import GoalView, unscored_models
from monitor.report.pair_table import PairTable
from monitor.report.sentences import counted
from schemas.goals import parse_goal
from stats.mixtures import parse_mixture
from stats.racing import RaceRules, race_goal, run_race

_SHUFFLES: Final = 500
_SECONDS: Final = 2.0
"""Processor time after which no further shuffle begins."""

_MOST_MODELS: Final = 100
_MOST_CELLS: Final = 2_000_000
"""Models and scores up to which one race takes a small part of the time."""


class CommittedRace(NamedTuple):
    """Races over the scores of a report, each along a random order of the items.

    Attributes
    ----------
    shuffles : int
        Orders.
    met : int
        Races that met the goal; the others ended because no item was left that could decide it.
    items : float
        Median items of the longest run.
    scores : float
        Median scores of all models.
    models : int
    shared : int
        Items that all models have: the races are over these.
    """

    shuffles: int
    met: int
    items: float
    scores: float
    models: int
    shared: int

    @property
    def sentence(self) -> str:
        """What the races took."""
        full = self.models * self.shared
        ends = "meets the goal" if self.met == self.shuffles else f"meets the goal in {self.met:,} shuffles, and ends"
        return (
            f"On the {counted(self.shared, 'item')} that all models have, a race along a committed order {ends} at a median of item "
            f"{self.items:,.0f}, after {self.scores:,.0f} of {counted(full, 'score')} ({100 * self.scores / full:.1f} %), over "
            f"{counted(self.shuffles, 'shuffle')} of these items. This is no verdict: no order was committed for these scores."
        )


def committed_race(table: PairTable, *, seconds: float = _SECONDS) -> CommittedRace | None:
    """Race for the declared goal over the scores of a benchmark; None where that is no comparison.

    It needs scores 0 and 1, models that all have a score, a mixture that a race can use, and verdicts that do not follow a committed order
    already. The number of shuffles depends on the processor time that they take.

    Parameters
    ----------
    table : PairTable
    seconds : float
        Processor time after which no further shuffle begins.
    """
    benchmark, spec = table.benchmark, table.benchmark.spec
    without = benchmark.committed is not None or benchmark.battles is not None or table.weighted is not None
    if spec.goal is None or without or benchmark.undeclared or not benchmark.binary or unscored_models(table):
        return None
    goal = parse_goal(spec.goal)
    view = GoalView(table, goal)
    names = sorted(view.models)
    if view.unknown or not 2 <= len(names) <= _MOST_MODELS or not parse_mixture(spec.mixture).symmetric:
        return None
    of_name = dict(zip(view.models, table.ranking.tolist(), strict=True))
    codes = benchmark.item_codes()[:, [of_name[name] for name in names]]
    scores = (codes[(codes >= ZERO).all(axis=1)] == ONE).astype(np.int8)
    if not 0 < scores.size <= _MOST_CELLS:
        return None
    goal_rule = race_goal(goal.kind, goal.size, [names.index(name) for name in view.named])
    rules = RaceRules(goal_rule, False, spec.alpha, spec.mixture, goal.margin)
    rng, end = np.random.default_rng(0), process_time() + seconds
    races: list[tuple[bool, int, int]] = []
    while len(races) < _SHUFFLES and (not races or process_time() < end):
        race = run_race(scores[rng.permutation(len(scores))], rules)
        races.append((race.met, int(race.items_run.max()), int(race.items_run.sum())))
    met, items, run = zip(*races, strict=True)
    return CommittedRace(len(races), sum(met), median(items), median(run), len(names), len(scores))

"""What a committed order would have taken for a goal, on scores that came without one."""

from statistics import median
from typing import Final

import numpy as np

from monitor.view.pairs.table import PairTable
from monitor.view.ranking.goal import GoalView, unscored_models
from monitor.words.results import race
from schemas.records.goals import parse_goal
from schemas.results.report import BenchmarkReport, CommittedRace
from stats.numerics.mixtures import parse_mixture
from stats.planning.racing import RaceResult, RaceRules, race_goal, run_race

_SHUFFLES: Final = 500
_LOOKS: Final = 2_000
"""Looks of two models after which no further shuffle begins: about a second. It is no time, so that a report can be made again."""

_PAIRS_A_LOOK: Final = 4_000  # a look at so many ordered pairs takes twice as long as one at two models

_MOST_MODELS: Final = 100
_MOST_CELLS: Final = 2_000_000  # models and scores up to which one race takes a small part of the time


def with_committed_race(report: BenchmarkReport, table: PairTable) -> BenchmarkReport:
    """Return a report whose goal has what a committed order would have taken, where that is a comparison."""
    race = None if report.goal is None else committed_race(table)
    if report.goal is None or race is None:
        return report
    return report.replace(goal=report.goal.replace(committed=race))


def committed_race(table: PairTable, *, looks: int = _LOOKS) -> CommittedRace | None:
    """Race for the declared goal over the scores of a benchmark; None where that is no comparison."""
    # It needs scores 0 and 1, models that all have a score, a mixture that a race can use, and verdicts that do not follow a committed
    # order already.
    benchmark, spec = table.benchmark, table.benchmark.spec
    if spec.goal is None or benchmark.committed is not None or benchmark.undeclared or unscored_models(table):
        return None
    goal = parse_goal(spec.goal)
    view = GoalView(table, goal)
    names = sorted(view.models)
    if view.unknown or not 2 <= len(names) <= _MOST_MODELS or not parse_mixture(spec.mixture).symmetric:
        return None
    of_name = dict(zip(view.models, table.ranking[view.places].tolist(), strict=True))
    right = table.kind.right(np.array([of_name[name] for name in names], np.int64))
    if right is None or not 0 < right.size <= _MOST_CELLS:
        return None
    scores = right.astype(np.int8)
    goal_rule = race_goal(goal.kind, goal.size, [names.index(name) for name in view.named])
    rules = RaceRules(goal_rule, False, spec.alpha, spec.mixture, goal.margin)
    races: list[RaceResult] = []
    rng, left = np.random.default_rng(0), float(looks)
    while len(races) < _SHUFFLES and (not races or left > 0):
        races.append(run_race(scores[rng.permutation(len(scores))], rules))
        left -= races[-1].looks * (1 + len(names) ** 2 / _PAIRS_A_LOOK)
    met = sum(race.met for race in races)
    items = median(int(race.items_run.max()) for race in races)
    run = median(int(race.items_run.sum()) for race in races)
    return CommittedRace(
        shuffles=len(races),
        met=met,
        items=items,
        scores=run,
        items_shared=len(scores),
        text=race(len(races), met, items, run, len(names), len(scores)),
    )

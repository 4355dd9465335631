"""Races over known scores: those of the engine, and what they promise."""

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.race import Race
from schemas.records.goals import Goal, parse_goal
from stats.planning.racing import RaceRules, next_target, race_goal, run_race
from tests.fold_log import FoldLog, event

NAMES = [f"m{k}" for k in range(6)]


def rules(goal: Goal, **more) -> RaceRules:
    """The rules of a goal over models m0, m1, ..."""
    models = [NAMES.index(name) for name in goal.models]
    return RaceRules(race_goal(goal.kind, goal.size, models), margin=goal.margin, **more)


def scores(seed, items):
    """Six models of which some are close, and two equal on every item in half of the boards."""
    rng = np.random.default_rng(seed)
    right = rng.random((items, 1)) * 0.5 + rng.random((items, 6)) * 0.5 < [0.9, 0.8, 0.78, 0.5, 0.4, 0.3]
    if seed % 2:
        right[:, 2] = right[:, 1]
    return right.astype(np.int8)


def engine_race(board, goal, policy, look=0.0):
    """Race through the engine; return its last look, and the items that each model ran."""
    items = [str(k) for k in range(len(board))]
    order = {"policy": policy} | ({"seed": "7"} if policy == "committed" else {})
    declared = {"declare": "bench", "item_ids": items, "goal": goal.text, "family": {"models": NAMES}, "look": look}
    log = FoldLog(declared | {"order": order})
    looks = 1
    while not (race := Race.of(PairTable(board_view(log.bench)))).over:
        looks += 1
        log.send(
            *(
                event(item, each.model, int(board[int(item), NAMES.index(each.model)]))
                for each in race.plan()
                for item in each.items
            )
        )
    order = log.bench.committed.ids(0, len(items)) if policy == "committed" else items
    return race, looks, board[[int(item) for item in order]]


CASES = [("top:2", "committed", 0.0), ("ranking,margin=0.3", "completion", 0.0), ("best", "committed", 0.3)]
MORE = [
    (goal, policy, look)
    for goal in ("best", "top:2", "top:3", "ranking", "pair:m1,m3", "model:m3,width=2", "top:2,margin=0.1")
    for policy, look in (("committed", 0.0), ("committed", 0.2), ("committed", 0.7), ("completion", 0.0))
]


def race_both_ways(goal, policy, look, seed):
    """Race a board through the engine and over known scores, and compare the ends."""
    asked, board = parse_goal(goal), scores(seed, 160 if policy == "committed" else 90)
    race, looks, ordered = engine_race(board, asked, policy, look)
    result = run_race(ordered, rules(asked, completion=policy == "completion", look=look))
    assert ("met" if result.met else "impossible") == race.goal.state
    run = {each.model: each.items_run for each in race.plan()}
    assert dict(zip(NAMES, result.items_run.tolist(), strict=True)) == run
    assert looks == result.looks
    table, place = race.view.table, race.view.state.place.tolist()
    assert dict(zip(NAMES, result.place.tolist(), strict=True)) == dict(zip(race.view.models, place, strict=True))
    ranked = [NAMES.index(table.benchmark.contestants[k].model) for k in table.ranking.tolist()]
    sides = table.decided("anytime_family")
    assert (result.side[np.ix_(ranked, ranked)] == table.pairs.matrix(sides, -sides)).all()


@pytest.mark.parametrize(("goal", "policy", "look"), CASES)
def test_a_race_over_known_scores_is_that_of_the_engine(goal, policy, look):
    race_both_ways(goal, policy, look, seed=1)


@pytest.mark.full
@pytest.mark.parametrize(("goal", "policy", "look"), MORE)
def test_every_race_over_known_scores_is_that_of_the_engine(goal, policy, look):
    for seed in (0, 1):
        race_both_ways(goal, policy, look, seed)


def test_blocks_grow_with_the_front():
    assert [next_target(front, 12_032) for front in (0, 490, 600, 12_000)] == [10, 500, 612, 12_032]
    assert next_target(100, 1_000, block=7) == 107


def test_a_mixture_that_is_not_symmetric_is_refused():
    with pytest.raises(ValueError, match="not symmetric"):
        rules(parse_goal("best"), mixture="beta(2,1)")

"""What a committed order would have taken on scores without one."""

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.committed_race import committed_race
from monitor.words.results import race
from stats.planning.racing import RaceRules, race_goal, run_race
from tests.fold_log import FoldLog, packed

TRUTH = (0.9, 0.6, 0.3)
MODELS = list("abc")


def board(items=300):
    return (np.random.default_rng(1).random((items, 3)) < TRUTH).astype(float)


def race_of(scores, **spec):
    log = FoldLog({"declare": "bench", "goal": "best", **({"items": len(scores)} | spec)})
    log.send(packed(scores, MODELS))
    return committed_race(PairTable(board_view(log.bench)), looks=300)


@pytest.mark.parametrize("spec", [{}, {"order": {"policy": "trusted"}}])
def test_it_is_the_median_of_races_over_the_same_scores(spec):
    scores = board()
    race = race_of(scores, **spec)
    rng, rules = np.random.default_rng(0), RaceRules(race_goal("top", 1))
    runs = [run_race(scores[rng.permutation(300)], rules) for _ in range(race.shuffles)]
    assert 1 < race.shuffles < 500
    assert race_of(scores, **spec) == race
    assert race.met == race.shuffles == sum(run.met for run in runs)
    assert race.items == np.median([run.items_run.max() for run in runs])
    assert race.scores == np.median([run.items_run.sum() for run in runs]) < 300


def test_the_sentence_has_the_assumption_and_the_number_of_shuffles():
    assert race(500, 500, 86.0, 180.0, 3, 300) == (
        "On the 300 items that all models have, a race along a committed order, with alpha shared equally by all 3 pairs, meets the goal "
        "at a median of item 86, after 180 of 900 scores (20.0 %), over 500 shuffles of these items. This is no verdict: no order was "
        "committed for these scores."
    )
    assert "committed order meets the goal in 3 shuffles, and ends at" in race(9, 3, 86.0, 180.0, 2, 300)


def test_models_that_are_equal_meet_no_goal():
    scores = board()
    scores[:, 1] = scores[:, 0]
    assert race_of(scores).met == 0


def test_only_items_of_all_models_are_raced():
    scores = board()
    scores[:40, 2] = np.nan
    assert race_of(scores).items_shared == 260


@pytest.mark.parametrize(
    "spec",
    [
        {"goal": None},
        {"goal": "pair:a,x"},
        {"family": {"models": [*MODELS, "d"]}},
        {"item_ids": [str(i) for i in range(300)], "items": 300, "order": {"policy": "committed", "seed": "s"}},
    ],
)
def test_elsewhere_there_is_no_comparison(spec):
    assert race_of(board(), **spec) is None


def test_graded_scores_are_not_raced():
    assert race_of(board() / 2 + 0.25) is None


def test_the_work_is_bounded():
    log = FoldLog({"declare": "bench", "goal": "best", "items": 300})
    log.send(packed(board(), MODELS))
    assert committed_race(PairTable(board_view(log.bench)), looks=0).shuffles == 1

"""Plans of goals against exact laws."""

import numpy as np
import pytest

from stats import exact_p
from stats.fixed_n.power import items_for_power
from stats.planning.goal_plan import GoalSimulation, MadeBoards, PilotBoards, fixed_n_met
from stats.planning.pilot import PilotEffect
from stats.planning.racing import RaceRules, race_goal
from stats.planning.simulate import bernoulli_joint
from stats.planning.stopping import AnytimeLaw

PAIR = RaceRules(race_goal("pair", 1, [0, 1]))


def test_boards_of_a_pilot_have_its_gap_shrunk_as_the_plan_of_a_pair():
    pilot = np.zeros((200, 2), np.int8)
    pilot[:30, 0] = pilot[30:40, 1] = 1
    boards, rng = PilotBoards(pilot), np.random.default_rng(1)
    drawn = np.array([boards.draw(400, rng).mean(axis=0) for _ in range(400)])
    gaps, effect = drawn[:, 0] - drawn[:, 1], PilotEffect(200, 30, 10)
    assert gaps.mean() == pytest.approx(effect.gap, abs=0.006)
    low, high = effect.interval()
    # The gap of a board adds the noise of its items to that of the pilot.
    spread = np.sqrt(((high - low) / 3.92) ** 2 + 0.2 / 400)
    assert gaps.std() == pytest.approx(spread, rel=0.15)


def test_a_pilot_without_a_difference_is_refused():
    with pytest.raises(ValueError, match="differ on any item"):
        PilotBoards(np.ones((20, 3)))


def test_made_boards_have_the_accuracies_and_the_correlation():
    board = MadeBoards([0.8, 0.7, 0.5], 0.3).draw(40_000, np.random.default_rng(2))
    assert board.mean(axis=0) == pytest.approx([0.8, 0.7, 0.5], abs=0.01)
    phi = np.corrcoef(board.T)[np.triu_indices(3, 1)]
    assert phi.mean() == pytest.approx(0.3, abs=0.015)
    with pytest.raises(ValueError, match="not possible between these models; use one from 0 to"):
        MadeBoards([0.9, 0.1], 0.9)


def test_one_look_is_the_exact_test():
    scores = MadeBoards([0.8, 0.6], 0.2).draw(120, np.random.default_rng(3))
    sizes = np.array([20, 40, 60, 120])
    won = [(scores[:n, 0] > scores[:n, 1]).sum() for n in sizes]
    lost = [(scores[:n, 0] < scores[:n, 1]).sum() for n in sizes]
    assert fixed_n_met(scores, PAIR, sizes).tolist() == (exact_p(won, lost) <= 0.05).tolist()


@pytest.mark.full
def test_the_plan_of_two_models_agrees_with_the_exact_laws():
    plan = GoalSimulation(MadeBoards([0.65, 0.55], 0.5), PAIR, 1_500, known=False, runs=200).plan()
    _, won, lost, _ = bernoulli_joint(0.65, 0.55, 0.5)
    law = AnytimeLaw(won, lost, np.log(20))
    share = [float((plan.committed.items() <= n).mean()) for n in (100, 200, 400)]
    # A look may see a decision some items late.
    assert share == pytest.approx([law.by(n - 5) for n in (100, 200, 400)], abs=0.1)
    assert plan.fixed_items == pytest.approx(items_for_power(won, lost), rel=0.2)
    assert plan.completion_items == plan.fixed_items
    assert plan.completion.met.mean() == pytest.approx(0.8, abs=0.06)

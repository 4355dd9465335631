"""Goals against every ranking that the decisions allow."""

from itertools import permutations

import numpy as np
import pytest

from stats.planning.goals import pair_goal, rank_goal, ranking_goal, top_goal


def boards(models, count=60):
    """Partial orders of few models: transitively closed decisions."""
    rng = np.random.default_rng(7)
    for _ in range(count):
        better = np.triu(rng.random((models, models)) < rng.random(), 1)
        for _ in range(models):
            better |= (better.astype(int) @ better) > 0
        order = rng.permutation(models)
        yield better[np.ix_(order, order)]


def rankings(better):
    """Every ranking that contradicts no decision."""
    models = range(len(better))
    for order in permutations(models):
        place = np.argsort(order)
        if not (better & (place[:, None] > place)).any():
            yield list(order)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_best_models_are_certain_exactly_where_every_ranking_has_them(size):
    for better in boards(5):
        state, allowed = top_goal(better, size), [set(order[:size]) for order in rankings(better)]
        certain, possible = set.intersection(*allowed), set.union(*allowed)
        assert set(np.flatnonzero(state.place == 1)) == certain
        assert set(np.flatnonzero(state.place == -1)) == set(range(5)) - possible
        assert state.met == (certain == possible)


def test_a_model_that_is_certain_needs_no_more_items_and_every_other_one_does():
    for better in boards(5):
        state = top_goal(better, 2)
        assert (state.needed(np.ones((5, 5))) == ((state.place == 0) & (not state.met))).all()


def test_the_ranking_and_a_rank_are_met_where_only_one_is_left():
    for better in boards(4):
        orders = list(rankings(better))
        assert ranking_goal(better).met == (len(orders) == 1)
        for model in range(4):
            ranks = {order.index(model) for order in orders}
            for width in (1, 2, 3):
                assert rank_goal(better, model, width).met == (max(ranks) - min(ranks) < width)


def test_the_order_follows_the_decisions():
    for better in boards(5):
        place = np.argsort(ranking_goal(better).order)
        assert not (better & (place[:, None] > place)).any()


def test_a_pair():
    better = np.zeros((3, 3), bool)
    state = pair_goal(better, 0, 2)
    assert (state.met, state.open_pairs, state.needed(np.ones((3, 3))).tolist()) == (False, 1, [True, False, True])
    better[2, 0] = True
    assert pair_goal(better, 0, 2).met


def test_a_margin_accepts_a_tie_in_the_direction_of_the_ranking_only():
    better, not_worse = np.zeros((2, 3, 3), bool)
    better[:2, 2] = True
    not_worse[1, 0] = True
    assert not top_goal(better, 1, not_worse).met
    assert not ranking_goal(better, not_worse).met
    not_worse[0, 1] = True
    assert top_goal(better, 1, not_worse).met
    assert ranking_goal(better, not_worse).met


def test_nobody_is_needed_where_no_pair_can_be_decided():
    state = top_goal(np.zeros((3, 3), bool), 1)
    assert not state.needed(np.zeros((3, 3), bool)).any()


@pytest.mark.parametrize("size", [3, 9])
def test_a_set_of_all_models_is_met(size):
    assert top_goal(np.zeros((3, 3), bool), size).met


def test_decisions_have_to_be_square():
    with pytest.raises(ValueError, match="square"):
        ranking_goal([[0, 1]])

"""Which boards have series of models and pairs, by hand and for random states."""

import random

import pytest

from monitor.serve.metrics.budget import Shown, Size, allot

BOARD, DETAILS, MODEL, PAIR = 34, 13, 8, 22


def nobody(_):
    return False


def test_models_of_all_boards_come_before_pairs_and_then_the_order_is_by_name():
    boards = [Size(name, 4) for name in ("c", "a", "b")]
    aggregates, models, near, rest = 3 * BOARD, DETAILS + 4 * MODEL, 3 * PAIR, 3 * PAIR
    assert allot(boards, 0, nobody) == ({name: Shown() for name in "abc"}, 3 * (models + near + rest))
    shown, _ = allot(boards, aggregates + 2 * models, nobody)
    assert shown == {"a": Shown(True), "b": Shown(True), "c": Shown()}
    shown, _ = allot(boards, aggregates + 3 * models + near, nobody)
    assert shown == {"a": Shown(True, 3), "b": Shown(True), "c": Shown(True)}
    shown, omitted = allot(boards, aggregates + 3 * (models + near) + rest, nobody)
    assert shown == {"a": Shown(True, 6), "b": Shown(True, 3), "c": Shown(True, 3)}
    assert omitted == 2 * rest


def test_a_watched_board_gets_all_of_its_series_first():
    boards = [Size(name, 4) for name in "abc"]
    budget = 3 * BOARD + 2 * (DETAILS + 4 * MODEL) + 6 * PAIR
    shown, _ = allot(boards, budget, lambda name: name == "c")
    assert shown == {"c": Shown(True, 6), "a": Shown(True), "b": Shown()}


def test_a_board_that_does_not_fit_does_not_keep_out_smaller_ones():
    shown, _ = allot([Size("a", 300), Size("b", 4)], 2 * BOARD + DETAILS + 4 * MODEL, nobody)
    assert shown == {"a": Shown(), "b": Shown(True)}


def test_a_goal_is_counted_with_its_series():
    need = BOARD + 6 + DETAILS + 4 * (MODEL + 2)
    assert allot([Size("a", 4, goal=True)], need, nobody).shown["a"].models
    assert not allot([Size("a", 4, goal=True)], need - 1, nobody).shown["a"].models


def test_the_means_of_a_sentinel_are_counted_with_its_series():
    shown, _ = allot([Size("a", 0, means=2), Size("b", 4)], 2 * BOARD + 2 + 2 * DETAILS + 4 * MODEL, nobody)
    assert shown["b"].models
    shown, _ = allot([Size("a", 0, means=3), Size("b", 4)], 2 * BOARD + 2 + 2 * DETAILS + 4 * MODEL, nobody)
    assert not shown["b"].models


def test_caps_bound_a_board_and_empty_ones_cost_their_aggregates():
    shown, omitted = allot([Size("a", 5_000, 10_000), Size("b", 0), Size("c", 1)], 10**6, nobody)
    assert shown == {"a": Shown(True, 300), "b": Shown(True), "c": Shown(True)}
    assert omitted == 0


@pytest.mark.parametrize("seed", range(20))
def test_the_budget_is_kept_unless_aggregates_exceed_it_and_no_order_of_the_boards_matters(seed):
    rng = random.Random(seed)
    boards = [
        Size(f"b{k}", rng.choice([0, 1, 2, 10, 40, 600]), rng.choice([0, 0, 5])) for k in range(rng.randint(1, 40))
    ]
    budget = rng.randint(0, 40_000)
    found = allot(boards, budget, lambda name: name.endswith("7"))
    rng.shuffle(boards)
    assert allot(boards, budget, lambda name: name.endswith("7")) == found
    spent = sum(
        BOARD
        + (DETAILS + MODEL * min(500, board.models)) * found.shown[board.name].models
        + PAIR * found.shown[board.name].pairs
        for board in boards
    )
    assert spent <= max(budget, BOARD * len(boards))
    assert allot(boards, 10**7, nobody).omitted == 0

"""A newcomer on a frozen board against reference values, a plain computation and the enumeration of all orders."""

import gzip
import json
import os
from collections import defaultdict
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stats import Admission, thousandths
from stats.admission.newcomer import BELOW
from stats.evidence.settled import LAMBDAS
from stats.order import committed_items

DIFFICULTY = [1000, 250, 500, 750, 0, 1000, 500, 250, 750, 500, 0, 1000]
SCORES = [1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0, 1]
BETS = np.array(LAMBDAS)


class CapAtTheItem(Admission):
    """A planted fault: the cap of a bet sees the difficulty of the item, so what it bets is no longer fair."""

    def _factors(self, side, totals, start, stop):
        out = []
        for item in range(start, stop):
            share = (totals - self._sum[side, item]) / (self.items - item) / self.unit
            x, tilt = self._x[side, item] / self.unit, self._slope[item] * (self._d[item] - self._mean[item])
            if side == BELOW:
                share, x, tilt = 1 - share, 1 - x, -tilt
            h = share + tilt
            out.append([1 + (1 / h if bet * h > 1 else bet) * (x - h) for bet in BETS])
        return np.array(out)


def means_over_all_orders(kind, difficulty, scores, skipped=()):
    """Return the means of e+ and e- at the true total over all orders of a few items, after each item."""
    unit = 4
    x = [round(score * unit) for score in scores]
    lowest = [0 if item in skipped else each for item, each in enumerate(x)]
    highest = [unit if item in skipped else each for item, each in enumerate(x)]
    # Items that are alike in everything may change places: each of these orders stands for equally many.
    orders = sorted(set(permutations(zip(difficulty, lowest, highest, strict=True))))
    sums = np.zeros((len(x), 2))
    for order in orders:
        d, low, high = zip(*order, strict=True)
        newcomer = kind(d, [sum(x)], unit=unit)
        for place in range(len(x)):
            newcomer.add(low[place], high[place])
            sums[place] += np.exp(newcomer.log_e[:, 0])
    return sums / len(orders)


@pytest.mark.parametrize(
    ("difficulty", "scores"),
    [
        ([0, 1000, 1000, 0, 500, 1000], [0, 1, 1, 0, 1, 1]),
        ([0, 1000, 250, 500, 1000], [0.5, 0.25, 1, 0, 0.75]),
        ([0, 0, 0, 0, 1000, 0], [1, 1, 1, 1, 0, 1]),
        ([500] * 5, [1, 0, 1, 1, 0]),
    ],
)
def test_over_all_orders_the_bets_at_the_true_total_are_fair(difficulty, scores):
    assert_allclose(means_over_all_orders(Admission, difficulty, scores), 1, atol=1e-12)


def test_a_cap_that_sees_the_difficulty_of_the_item_is_found():
    fair, unfair = (
        means_over_all_orders(kind, [0, 0, 0, 0, 1000, 0], [1, 1, 1, 1, 0, 1]) for kind in (Admission, CapAtTheItem)
    )
    assert_allclose(fair, 1, atol=1e-12)
    assert_allclose(unfair.max(axis=1)[:2], [1.001587, 1.002281], atol=6e-7)
    assert (unfair.max(axis=1) > 1.001).all()


def test_skipped_items_only_lower_the_evidence():
    means = means_over_all_orders(Admission, [0, 1000, 1000, 0, 500, 1000], [0, 1, 1, 0, 1, 1], skipped=(1, 3))
    assert_allclose(means[[0, 1, 5], 0], [0.9697619, 0.9360767, 0.6972659], atol=6e-8)
    assert (means <= 1 + 1e-12).all()


def test_reference_values():
    newcomer = Admission(DIFFICULTY, [3, 5, 9])
    newcomer.add(SCORES[0])
    assert newcomer.slope_before(0) == 0.001
    assert_allclose(
        newcomer.log_e,
        [[0.05156409, 0.02242524, -0.03853048], [-0.05436819, -0.02293969, 0.03710079]],
        atol=6e-9,
    )
    newcomer.add(SCORES[1:8])
    assert_allclose(newcomer.log_e[0], [np.inf, 0.50411427, -0.26899790], atol=6e-9)
    assert_allclose(newcomer.log_e[1], [-0.55138342, -0.37748228, 0.28534372], atol=6e-9)
    newcomer.add(SCORES[8:])
    assert_allclose(newcomer.log_e, [[np.inf, np.inf, -0.44367663], [-1.07623844, -0.82049840, np.inf]], atol=6e-9)

    graded = Admission(DIFFICULTY, [12, 20, 36], unit=4)
    graded.add([2, 1, 4, 3, 0, 4])
    assert_allclose(1000 * graded.slope, 0.947674419, atol=6e-10)
    assert_allclose(graded.log_e[0], [0.44263836, 0.15119174, -0.27702207], atol=6e-9)
    assert_allclose(graded.log_e[1], [-0.33658484, -0.16425110, 0.33747855], atol=6e-9)

    skipping = Admission(DIFFICULTY, [3, 5, 9])
    skipping.add([1, 0, 1, 1], [1, 1, 1, 1])
    assert_allclose(1000 * skipping.slope, 0.969283276, atol=6e-10)
    assert_allclose(skipping.log_e[0], [0.36063348, 0.19766801, -0.08982193], atol=6e-9)
    assert_allclose(skipping.log_e[1], [-0.43672082, -0.35329331, -0.13995320], atol=6e-9)


def made_board(rng, items, models):
    """Return difficulties, totals and the scores of a newcomer whose total is one of them."""
    hardness = rng.normal(0, 1.5, items)
    board = (rng.normal(0.2, 0.6, models) + rng.normal(0, 1, (items, models)) > hardness[:, None]).astype(int)
    return thousandths(board.sum(axis=1), np.full(items, models)), board.sum(axis=0), board[:, 0]


@pytest.mark.parametrize("unit", [1, 10**12])
def test_calls_do_not_matter_and_the_interval_agrees_with_every_opponent(unit):
    rng = np.random.default_rng(3)
    for _ in range(4):
        difficulty, totals, x = made_board(rng, 90, 12)
        order = rng.permutation(90)
        low = x[order] * unit
        high = np.where(rng.random(90) < 0.05, unit, low)
        whole, parts = (Admission(difficulty[order], totals * unit, alpha=0.3, unit=unit) for _ in range(2))
        whole.add(low[:80], high[:80])
        before = (0, 90 * unit)
        for at in np.split(np.arange(80), np.sort(rng.integers(0, 80, 9))):
            parts.add(low[at], high[at])
            interval = parts.interval()
            assert before[0] <= interval[0] <= interval[1] <= before[1]
            assert_array_equal(parts.above, interval[0] > totals * unit)
            assert_array_equal(parts.below, interval[1] < totals * unit)
            before = interval
            assert whole.interval(int(parts.done)) == interval
        assert_array_equal(whole.log_e, parts.log_e)
        assert_array_equal(whole.settled_at, parts.settled_at)
        assert (whole.interval(), whole.ranks) == (before, parts.ranks)
        whole.add(low[80:], high[80:])
        assert whole.interval()[0] <= low.sum() <= high.sum() <= whole.interval()[1] or whole.interval()[0] > low.sum()


def test_the_whole_run_gives_the_rank():
    rng = np.random.default_rng(5)
    difficulty, totals, x = made_board(rng, 40, 9)
    newcomer = Admission(difficulty, totals[1:])
    newcomer.add(x)
    better, equal = (totals[1:] > totals[0]).sum(), (totals[1:] == totals[0]).sum()
    assert newcomer.ranks == (1 + better, 1 + better + equal)
    assert newcomer.interval() == (x.sum(), x.sum())
    assert (newcomer.p[totals[1:] != totals[0]] == 0).all()


def test_missing_scores_of_an_opponent_count_against_every_statement():
    exact, open_ = Admission(DIFFICULTY, [3, 5, 9]), Admission(DIFFICULTY, [3, 5, 8], [4, 5, 10])
    for each in (exact, open_):
        each.add(SCORES[:10])
    assert (open_.log_e <= exact.log_e + 1e-12).all()
    assert_array_equal(open_.log_e[:, 1], exact.log_e[:, 1])


@pytest.mark.parametrize(("items", "runs"), [(40, 300), (200, 100)])
def test_the_true_total_is_rarely_rejected(items, runs):
    """It bounds everything that is said about a newcomer: at most 5 %, and rejecting never would show a broken test."""
    rng = np.random.default_rng(items)
    wrong = 0
    for _ in range(runs):
        difficulty, _, x = made_board(rng, items, 6)
        order = rng.permutation(items)
        newcomer = Admission(difficulty[order], [x.sum()])
        newcomer.add(x[order])
        wrong += bool((newcomer.above | newcomer.below).any())
    assert wrong <= 0.05 * runs


def test_a_board_in_which_all_items_are_equally_hard_has_no_slope():
    newcomer = Admission([500] * 8, [2, 7])
    newcomer.add([1, 1, 1, 0])
    assert newcomer.slope == 0
    assert newcomer.above.tolist() == [True, False]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: Admission([], [1]), "difficulty must be"),
        (lambda: Admission([1001], [1]), "difficulty must be"),
        (lambda: Admission([0.5], [1]), "difficulty must be whole numbers"),
        (lambda: Admission([500], [1], alpha=1), "alpha must lie"),
        (lambda: Admission([500], [2]), "high must be at most 1"),
        (lambda: Admission([500], [1], [0]), "0 <= low <= high"),
        (lambda: Admission([500, 500], [1], unit=2**62), "2\\^62"),
        (lambda: Admission([500], [1]).add([1, 1]), "at most 1"),
        (lambda: Admission([500], [1]).add(2), "scores must lie in 0 to 1"),
        (lambda: Admission([500], [1]).interval(1), "after must lie in 0 to 0"),
        (lambda: Admission([500], [1]).add(1, 0), "scores must lie in 0 to 1"),
    ],
)
def test_what_cannot_be_used_is_refused(call, problem):
    with pytest.raises(ValueError, match=problem):
        call()


@pytest.mark.data
@pytest.mark.slow
def test_models_of_a_real_board_as_newcomers():
    path = Path(os.environ.get("RANKWATCH_DATA", "")) / "mmlu_pro/events.jsonl.gz"
    if not path.exists():
        pytest.skip("RANKWATCH_DATA names no folder with mmlu_pro")
    scores = defaultdict(dict)
    with gzip.open(path, "rt") as lines:
        for event in map(json.loads, lines):
            scores[event["model"]].setdefault(event["item_id"], int(event["score"]))
    order = committed_items("rankwatch", sorted(set().union(*scores.values())))
    board = np.array([[model[item] for item in order] for model in scores.values() if len(model) == len(order)])
    board = board[np.argsort(-board.sum(axis=1), kind="stable")]
    for rank, opponents, items, ranges in (
        (6, [3, 4, 5, 7, 8, 9], [448, 584, 620, 2245, 1319, 1299], {3: 1299, 5: 954}),
        (12, [], [], {3: 2985, 5: 1143}),
        (18, [], [], {3: 2912, 5: 670}),
    ):
        others = np.delete(board, rank - 1, axis=0)
        newcomer = Admission(thousandths(others.sum(axis=0), np.full(len(order), 25)), others.sum(axis=1))
        newcomer.add(board[rank - 1])
        at = dict(zip(np.delete(np.arange(1, 27), rank - 1).tolist(), newcomer.settled_at.tolist(), strict=True))
        assert [at[opponent] for opponent in opponents] == items
        assert {width: sorted(at.values())[-width] for width in (3, 5)} == ranges


def test_a_board_of_no_opponents_has_one_rank():
    newcomer = Admission([500, 250], [])
    newcomer.add([1, 0])
    assert (newcomer.ranks, newcomer.interval()) == ((1, 1), (1, 1))

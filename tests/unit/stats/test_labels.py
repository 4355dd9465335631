"""Bets on a comparison that labels correct, against plain sums over items."""

from math import exp, inf, log

import numpy as np
import pytest

from stats.evidence.labels import (
    COEFFICIENTS,
    LABEL_BETS,
    labelled_gap,
    labelled_log_e,
    labelled_settled_log_e,
)


def plain_log_e(judge, people, of, c, delta):
    def capital(values, room):
        return sum(
            np.prod([1 + min(50, bet / max(room, 1e-12)) * value for value in values]) for bet in LABEL_BETS
        ) / len(LABEL_BETS)

    on_judge = capital([c * j - delta for j in judge], c + delta) if c else 1.0
    return log(on_judge) + log(capital([h - c * j + delta for h, j in zip(people, of, strict=True)], 1 + c - delta))


def plain_settled(people, of, total, items):
    capitals = dict.fromkeys(((c, bet) for c in COEFFICIENTS for bet in LABEL_BETS), 1.0)
    so_far = of_judge = 0.0
    for t, (h, j) in enumerate(zip(people, of, strict=True)):
        left = items - t
        mu_h, mu_j = -so_far / left, (total - of_judge) / left
        for c, bet in capitals:
            capitals[c, bet] *= 1 + bet / (1 + abs(mu_h) + c * (1 + abs(mu_j))) * (h - c * (j - mu_j) - mu_h)
        so_far, of_judge = so_far + h, of_judge + j
    return log(sum(capitals.values()) / len(capitals))


@pytest.mark.parametrize("graded", [False, True])
def test_the_smallest_product_counts(graded):
    rng = np.random.default_rng(5)
    for _ in range(8):
        judge, people, of = ((rng.uniform(-1, 1, n) if graded else rng.integers(-1, 2, n)) for n in (40, 12, 12))
        found = []
        for c in COEFFICIENTS:
            grid = np.linspace(-c, c, 201 if c else 1)
            smallest = min(plain_log_e(judge, people, of, c, delta) for delta in grid)
            value = labelled_log_e(judge, people, of, [c])
            assert value <= smallest + 1e-9
            assert value == pytest.approx(smallest, abs=1e-3)
            found.append(value)
        assert labelled_log_e(judge, people, of) == pytest.approx(log(sum(map(exp, found)) / 3))


@pytest.mark.parametrize("digits", [1, 2, 15])
def test_a_rough_value_is_never_below_the_refined_one_and_products_change_nothing(digits):
    rng = np.random.default_rng(8)
    for size in (0, 5, 16, 100):
        judge, of = (np.round(rng.uniform(-1, 1, n), digits) for n in (size, size // 4))
        people = np.clip(of + np.round(rng.normal(0, 0.2, size // 4), digits), -1, 1)
        for c in COEFFICIENTS:
            value = labelled_log_e(judge, people, of, [c])
            assert labelled_log_e(judge, people, of, [c], refined=False) >= value - 1e-12
            grid = [plain_log_e(judge, people, of, c, delta) for delta in (np.linspace(-c, c, 41) if c else [0.0])]
            assert labelled_log_e(judge, people, of, [c], refined=False) == pytest.approx(
                min(grid), rel=1e-12, abs=1e-12
            )
    certain = labelled_log_e(np.linspace(-1, 1, 64), np.linspace(-1, 1, 64), np.zeros(64))
    assert np.isfinite(certain)


def test_bets_on_these_items_follow_the_means_that_are_left():
    rng = np.random.default_rng(6)
    for size in (1, 5, 20):
        every, of_people = rng.integers(-1, 2, 60), rng.integers(-1, 2, 60)
        found = labelled_settled_log_e(of_people[:size], every[:size], float(every.sum()), 60)
        assert len(found) == size
        assert found[-1] == pytest.approx(plain_settled(of_people[:size], every[:size], float(every.sum()), 60))


def test_these_items_are_certain_once_the_others_cannot_turn_them():
    found = labelled_settled_log_e(np.ones(10), np.zeros(10), 0.0, 15)
    assert [each == inf for each in found] == [False] * 7 + [True] * 3
    assert labelled_settled_log_e([], [], 0.0, 15).size == 0


def test_without_labels_or_a_judge_nothing_is_claimed():
    assert labelled_log_e([], [], []) == pytest.approx(0)
    assert labelled_log_e(np.ones(1_000), [], []) <= 0
    assert labelled_log_e([], np.ones(30), np.zeros(30)) > log(20)


def test_an_estimate_uses_no_judge_that_does_not_vary():
    found = labelled_gap(np.zeros(10), [1, 0, 1], np.zeros(3))
    assert (found.gap, found.coefficient) == (pytest.approx(2 / 3), 0)
    assert np.isnan(found.correlation)
    against = labelled_gap([1, -1, 1, -1], [-1, 1], [1, -1])
    assert (against.correlation, against.coefficient, against.gap) == (-1, 0, 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: labelled_log_e([2], [0], [0]),
        lambda: labelled_log_e([0], [np.nan], [0]),
        lambda: labelled_log_e([[0]], [0], [0]),
        lambda: labelled_log_e([0], [0, 1], [0]),
        lambda: labelled_settled_log_e([0, 1], [0], 0, 5),
        lambda: labelled_settled_log_e([0, 1], [0, 1], 0, 1),
        lambda: labelled_gap([0], [], []),
    ],
)
def test_what_is_no_difference_is_refused(call):
    with pytest.raises(ValueError, match="must"):
        call()

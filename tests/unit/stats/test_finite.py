"""The without-replacement e-process against its reference values, brute force and enumeration of all orders."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stats.eprocess import log_e_value
from stats.finite import finite_log_e

REFERENCE = [1, 1, -1, 1, 0, 1]


def test_reference_values():
    _, plus, _ = finite_log_e(REFERENCE, 10, lambdas=[0.5])
    assert_allclose(np.exp(plus), [1.5, 2.33333, 1.458333, 2.291667, 2.673611, 4.545139], rtol=3e-6)


def test_default_bets_are_the_mean_of_their_products():
    d, n = np.array([0.5, -0.25, 1.0, 0.0, -0.5]), 20
    log_e, plus, minus = finite_log_e(d, n)
    for sign, half in ((1, plus), (-1, minus)):
        capital = np.zeros((49, 5))
        for row, bet in enumerate(np.arange(2, 100, 2) / 100):
            total, value = 0.0, 1.0
            for t, x in enumerate(d):
                mu = -total / (n - t)
                value *= 1 + sign * min(bet, 1 / (1 + sign * mu)) * (x - mu)
                total += x
                capital[row, t] = value
        assert_allclose(np.exp(half), capital.mean(0))
    assert_allclose(np.exp(log_e), (np.exp(plus) + np.exp(minus)) / 2)


@pytest.mark.parametrize("values", [(1, 1, -1, -1, 0, 0), (0.5, 0.5, -1, 0.25, -0.25, 0)])
def test_mean_is_one_over_all_orders_of_a_tied_benchmark(values):
    orders = np.array(list(permutations(values)), dtype=float)
    for part in finite_log_e(orders, 6):
        assert_allclose(np.exp(part[:, :-1]).mean(0), 1, rtol=1e-12)


def test_half_for_a_has_mean_at_most_one_when_b_leads():
    orders = np.array(list(permutations((1, 1, -1, -1, -1, 0))), dtype=float)
    _, plus, minus = finite_log_e(orders, 6)
    assert (np.exp(plus[:, :-1]).mean(0) < 1).all()
    assert (minus[:, -1] == np.inf).all()


def test_probability_of_ever_deciding_a_tie_is_at_most_alpha_over_all_orders():
    orders = np.array(list(permutations((1, 1, 1, -1, -1, -1, 0, 0))), dtype=float)
    log_e = finite_log_e(orders, 8)[0]
    for alpha in (0.5, 0.3, 0.1):
        assert 0 <= (log_e.max(1) >= -np.log(alpha)).mean() <= alpha
    assert (log_e.max(1) >= np.log(2)).mean() > 0


def test_swapping_the_models_swaps_the_halves():
    d = np.random.default_rng(1).choice([-1.0, 0.0, 0.5, 1.0], (3, 40))
    log_e, plus, minus = finite_log_e(d, 50)
    assert_allclose(finite_log_e(-d, 50), (log_e, minus, plus))


def test_an_outcome_the_items_left_cannot_undo_is_certain():
    log_e, plus, minus = finite_log_e([1, 1, 1, -1], 5)
    assert np.isinf(plus).tolist() == [False, False, True, True]
    assert np.isinf(log_e).tolist() == [False, False, True, True]
    assert np.isfinite(minus[:2]).all()
    assert not np.isinf(finite_log_e([0.1, 0.2, -0.3], 3)[1]).any()  # a tie, up to rounding


def test_it_is_much_sooner_than_the_superpopulation_test():
    d = np.r_[np.ones(115), -np.ones(87), np.zeros(970)]
    d = np.random.default_rng(0).permuted(np.tile(d, (200, 1)), axis=1)
    crossed = finite_log_e(d, 1172)[0] >= np.log(20)
    assert crossed.any(1).all()
    assert 840 < np.median(crossed.argmax(1) + 1) < 930
    superpopulation = log_e_value((d > 0).cumsum(1), (d < 0).cumsum(1), "grid98")
    assert (superpopulation.max(1) >= np.log(20)).mean() < 0.15


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: finite_log_e([0, 1.5], 10), "differences"),
        (lambda: finite_log_e([0, np.nan], 10), "differences"),
        (lambda: finite_log_e([0, 1, 1], 2), "items"),
        (lambda: finite_log_e(1.0, 2), "items"),
        (lambda: finite_log_e([0, 1], 2, lambdas=[0.0]), "lambdas"),
        (lambda: finite_log_e([0, 1], 2, lambdas=[]), "lambdas"),
        (lambda: finite_log_e([0, 1], 2, lambdas=[1.5]), "lambdas"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()

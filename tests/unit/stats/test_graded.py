from itertools import product

import numpy as np
import pytest

from stats import log_e_value
from stats.evidence import graded

D = [0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1]
GRID98_BETS = [k / 50 for k in range(1, 50)]


def test_reference_values():
    state = graded.update_capital(graded.initial_capital((), GRID98_BETS), D, GRID98_BETS)
    plus, minus = graded.graded_log_e_halves(state)
    assert np.exp(plus) == pytest.approx(1.1791990443, abs=1e-10)
    assert np.exp(minus) == pytest.approx(0.3589772720, abs=1e-10)
    assert np.exp(graded.graded_log_e(state)) == pytest.approx(0.7690881581, abs=1e-10)


def test_histogram_is_identical_to_the_stream():
    values = np.array([-1, -0.5, -0.25, 0, 0.1, 1])
    counts = np.random.default_rng(0).integers(0, 40, (7, 6))
    by_histogram = graded.histogram_capital(values, counts)
    for pair in range(7):
        rows = np.repeat(values, counts[pair])
        np.random.default_rng(pair).shuffle(rows)
        state = graded.initial_capital()
        for chunk in np.array_split(rows, 5):
            state = graded.update_capital(state, chunk)
        np.testing.assert_array_equal(state, by_histogram[pair])


def test_many_pairs_at_once_and_merge():
    d = np.random.default_rng(1).uniform(-1, 1, (3, 50))
    whole = graded.update_capital(graded.initial_capital((3,)), d)
    parts = [graded.update_capital(graded.initial_capital((3,)), d[:, at]) for at in (slice(0, 20), slice(20, 50))]
    np.testing.assert_array_equal(whole, parts[0] + parts[1])
    assert graded.graded_log_e(whole).shape == (3,)


def test_expectation_is_one_and_never_above_under_a_symmetric_null():
    values = np.array([-1.0, -0.3, 0.0, 0.3, 1.0])
    weights = np.array([0.2, 0.25, 0.1, 0.25, 0.2])
    total_plus = total = 0.0
    for outcome in product(range(5), repeat=4):
        counts = np.bincount(outcome, minlength=5)
        state = graded.histogram_capital(values, counts)
        total_plus += weights[list(outcome)].prod() * np.exp(graded.graded_log_e_halves(state)[0])
        total += weights[list(outcome)].prod() * np.exp(graded.graded_log_e(state))
    for expectation in (total_plus, total):
        assert 1 - 1e-10 < expectation <= 1


def test_expectation_under_an_asymmetric_mean_zero_null():
    values, weights = np.array([-0.25, 0.75]), np.array([0.75, 0.25])
    assert weights @ values == 0
    total = 0.0
    for outcome in product(range(2), repeat=8):
        state = graded.histogram_capital(values, np.bincount(outcome, minlength=2))
        total += weights[list(outcome)].prod() * np.exp(graded.graded_log_e(state))
    assert total == pytest.approx(1, abs=1e-9)


def test_with_binary_differences_it_is_the_discrete_mixture():
    state = graded.histogram_capital([1, -1, 0], [[10, 2, 30], [1680, 1454, 8898]], GRID98_BETS)
    np.testing.assert_allclose(graded.graded_log_e(state), log_e_value([10, 1680], [2, 1454], "grid98"), atol=1e-8)


def test_swapping_the_models_swaps_the_halves():
    state = graded.update_capital(graded.initial_capital(), D)
    swapped = graded.update_capital(graded.initial_capital(), -np.array(D))
    assert graded.graded_log_e_halves(state) == graded.graded_log_e_halves(swapped)[::-1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: graded.log_increments([1.5]), "values must lie in"),
        (lambda: graded.log_increments([np.nan]), "values must be finite"),
        (lambda: graded.log_increments([0.5], [1.0]), "lambdas must be a list of bets"),
        (lambda: graded.histogram_capital([0.5, 1], [[1, 2, 3]]), "one column per value"),
        (lambda: graded.histogram_capital([0.5], [[0.5]]), "counts must be non-negative whole"),
        (lambda: graded.histogram_capital([0.5], [[2**21]]), "at most 2097151 items"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

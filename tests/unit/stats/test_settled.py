"""Sampling without replacement against reference values, a plain computation and the enumeration of all orders."""

from itertools import permutations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stats import (
    SettledState,
    log_e_value,
    settled_log_e,
    settled_start,
    settled_steps,
)
from stats.evidence.settled import LAMBDAS, TIE
from tests.stats_reference import certain_side

D = [1, 0, 1, -1, 0, 1, 1, 0, 0, 1, 1, 0, -1, 1, 0, 1, 1, 0, 1, 1]
GRADED = [0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1]


def plain_half(differences, items, lambdas):
    """Return e+ after each item, or infinity, by the definition."""
    capital, total, out = np.ones(len(lambdas)), 0.0, []
    for t, d in enumerate(differences):
        left = items - t
        mu = np.clip(-total / left, -1, 1)
        with np.errstate(divide="ignore"):
            capital = capital * np.maximum(1 + np.minimum(lambdas, np.divide(1, 1 + mu)) * (d - mu), 0)
        total += d
        out.append(np.inf if total > left - 1 + 1e-9 else capital.mean())
    return np.array(out)


def test_reference_values():
    half = plain_half([1, 1, -1, 1, 0, 1], 10, [0.5])
    assert_allclose(half, [1.5, 2.33333, 1.458333, 2.291667, 2.673611, 4.545139], rtol=3e-6)
    assert_allclose(LAMBDAS, [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64])
    log_e, plus, minus = settled_log_e(D, 40)
    assert_allclose([plus[15], minus[15], log_e[15]], [1.564102, -0.737962, 0.966313], atol=6e-7)
    assert_allclose([plus[19], minus[19], log_e[19]], [3.194623, -0.920706, 2.517665], atol=6e-7)
    assert settled_log_e(D, 24)[0][-1] == np.inf
    assert np.isfinite(settled_log_e(D, 24)[0][:-1]).all() == (np.cumsum(D) <= 23 - np.arange(20))[:-1].all()
    log_e, plus, minus = settled_log_e(GRADED, 15)
    assert_allclose([plus[-1], minus[-1], log_e[-1]], [0.458159, -0.412143, 0.114841], atol=6e-7)


@pytest.mark.parametrize("items", [40, 64, 300])
def test_it_is_the_definition_also_where_bets_are_cut_and_scores_skipped(items):
    rng = np.random.default_rng(items)
    for share in ([0.1, 0.8, 0.1], [0.02, 0.18, 0.8], [0.5, 0.1, 0.4]):
        low = rng.choice([-1, 0, 1], (20, 38), p=share)
        high = np.where(rng.random(low.shape) < 0.1, 1, low)
        log_e, plus, minus = settled_log_e(low, items, high)
        for row in range(20):
            assert_allclose(np.exp(plus[row]), plain_half(low[row], items, LAMBDAS), rtol=1e-11)
            assert_allclose(np.exp(minus[row]), plain_half(-high[row], items, LAMBDAS), rtol=1e-11)
        assert_allclose(np.exp(log_e), (np.exp(plus) + np.exp(minus)) / 2, rtol=1e-12)
    graded = rng.uniform(-1, 1, (20, 38)).round(3)
    assert_allclose(np.exp(settled_log_e(graded, items)[1][7]), plain_half(graded[7], items, LAMBDAS), rtol=1e-11)


@pytest.mark.parametrize("values", [(1, 1, -1, -1, 0, 0), (0.5, 0.5, -1, 0.25, -0.25, 0)])
def test_mean_is_one_over_all_orders_of_a_tied_benchmark(values):
    orders = np.array(list(permutations(values)), dtype=float)
    for part in settled_log_e(orders, 6):
        assert_allclose(np.exp(part[:, :-1]).mean(0), 1, rtol=1e-12)


def test_half_for_a_has_mean_at_most_one_when_b_leads():
    orders = np.array(list(permutations((1, 1, -1, -1, -1, 0))), dtype=float)
    _, plus, minus = settled_log_e(orders, 6)
    assert (np.exp(plus[:, :-1]).mean(0) < 1).all()
    assert (minus[:, -1] == np.inf).all()


def test_halves_have_mean_at_most_one_when_skips_depend_on_scores():
    values = np.array([1, 1, -1, -1, 0, 0])
    orders = np.array(list(permutations(range(6))))
    for skipped in ({0}, {2, 4}, {0, 1, 5}):  # whose score is withheld is known beforehand, the order is not
        gone = np.isin(orders, list(skipped))
        low, high = (np.where(gone, worst, values[orders]) for worst in (-1, 1))
        _, plus, minus = settled_log_e(low, 6, high)
        assert (np.exp(plus).mean(0) <= 1 + 1e-12).all()
        assert (np.exp(minus).mean(0) <= 1 + 1e-12).all()


def test_probability_of_ever_deciding_a_tie_is_at_most_alpha_over_all_orders():
    orders = np.array(list(permutations((1, 1, 1, -1, -1, -1, 0, 0))), dtype=float)
    log_e = settled_log_e(orders, 8)[0]
    for alpha in (0.5, 0.3, 0.1):
        assert (log_e.max(1) >= -np.log(alpha)).mean() <= alpha
    assert (log_e.max(1) >= np.log(1.5)).mean() > 0


def test_swapping_the_models_swaps_the_halves():
    d = np.random.default_rng(1).choice([-1.0, 0.0, 0.5, 1.0], (3, 40))
    log_e, plus, minus = settled_log_e(d, 50)
    assert_allclose(settled_log_e(-d, 50), (log_e, minus, plus))


def test_an_outcome_the_items_left_cannot_undo_is_certain():
    log_e, plus, minus = settled_log_e([1, 1, 1, -1], 5)
    assert np.isinf(plus).tolist() == [False, False, True, True]
    assert np.isinf(log_e).tolist() == [False, False, True, True]
    assert np.isfinite(minus[:2]).all()
    assert not np.isinf(settled_log_e([0.1, 0.2, -0.3], 3)[1]).any()  # a tie, although floats do not sum to 0
    lead, missing = np.array([3, 3, -3, 0, 0, 1]), np.array([2, 3, 2, 0, 1, 0])
    assert certain_side(lead, lead, missing).tolist() == [1, 0, -1, TIE, 0, 1]
    assert certain_side([2, -1], [3, 1], [1, 0]).tolist() == [1, 0]
    assert certain_side([2 * 10**12 + 1], [2 * 10**12 + 1], [2], 10**12).tolist() == [1]


@pytest.mark.parametrize("unit", [1, 10**12])
def test_no_division_into_calls_changes_a_digit(unit):
    rng = np.random.default_rng(5)
    pairs, items, length = 130, 8_000, 1_400
    low = rng.choice([-1, 0, 1], (pairs, length), p=[0.3, 0.3, 0.4]) * unit
    low[:20] = unit  # some capital grows beyond every limit, and some vanishes
    low[20:30] = -unit
    high = np.where(rng.random(low.shape) < 0.02, unit, low)
    start = rng.integers(0, 100, pairs)
    steps = rng.integers(1_300, length + 1, pairs)
    once = settled_steps(settled_start(pairs), low, high, items - start, steps, unit)
    for_a, for_b = once.logs()
    e = np.exp(for_a) + np.exp(for_b)
    assert_array_equal(once.logs(np.array([3, 7]))[1], for_b[[3, 7]])
    happened = np.arange(length) < steps[:, None]
    assert_allclose(once.largest, np.log(np.where(happened, e, 0).max(axis=1)), rtol=1e-13)
    assert_allclose(once.log_e, np.log(e[np.arange(pairs), steps - 1]), rtol=1e-13)
    assert (once.state.capital == 1e250).any()
    assert (once.state.capital == 0).any()

    def pieces(some):
        state, walked, best = settled_start(some.size), np.zeros(some.size, np.int64), np.full(some.size, -np.inf)
        while (walked < steps[some]).any():
            take = np.minimum(rng.integers(0, 90, some.size), steps[some] - walked)
            at = np.minimum(walked[:, None] + np.arange(90), length - 1)
            parts = (np.take_along_axis(x[some], at, axis=1) for x in (low, high))
            found = settled_steps(state, *parts, items - start[some] - walked, take, unit)
            best = np.maximum(best, np.where(take > 0, found.largest, -np.inf))
            state, walked = found.state, walked + take
        return state, best

    for some in (np.arange(pairs), np.array([3]), np.arange(25, 90)):
        state, best = pieces(some)
        assert_array_equal(state.capital, once.state.capital[some])
        assert_array_equal(state.lead, once.state.lead[some])
        assert_array_equal(best, once.largest[some])


def test_capital_out_of_range_is_followed_no_further():
    ones = np.ones((1, 1500), np.int64)
    found = settled_steps(settled_start(1), ones, ones, 10_000)
    assert_allclose(found.log_e, np.log(1e250 / 14), atol=3)
    before = found.state.capital.copy()
    after = settled_steps(found.state, ones[:, :64], ones[:, :64], 8_500).state
    assert_array_equal(after.capital[before == 1e250], 1e250)
    assert_array_equal(found.state.capital, before)


def test_it_is_much_sooner_than_the_superpopulation_test():
    d = np.r_[np.ones(115), -np.ones(87), np.zeros(970)]
    d = np.random.default_rng(0).permuted(np.tile(d, (200, 1)), axis=1)
    crossed = settled_log_e(d, 1172)[0] >= np.log(20)
    assert crossed.any(1).all()
    assert 800 < np.median(crossed.argmax(1) + 1) < 930
    superpopulation = log_e_value((d > 0).cumsum(1), (d < 0).cumsum(1), "grid98")
    assert (superpopulation.max(1) >= np.log(20)).mean() < 0.15


def test_nothing_to_follow():
    empty = settled_steps(settled_start(0), np.zeros((0, 5), int), np.zeros((0, 5), int), 10)
    assert (empty.log_e.size, empty.state.capital.shape) == (0, (0, 2, 7))
    still = settled_steps(settled_start(2), np.zeros((2, 0), int), np.zeros((2, 0), int), 10)
    assert_allclose(still.log_e, 0, atol=1e-15)
    assert_array_equal(still.state.capital, 1)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: settled_log_e([0, 1.5], 10), "differences"),
        (lambda: settled_log_e([0, np.nan], 10), "differences"),
        (lambda: settled_log_e([0, 1, 1], 2), "items"),
        (lambda: settled_log_e(1.0, 2), "items"),
        (lambda: settled_steps(settled_start(2), [[1]], [[1]], 10), "low and high must have shape"),
        (lambda: settled_steps(settled_start(1), [[0.5]], [[0.5]], 10), "low and high must be integers"),
        (lambda: settled_steps(settled_start(1), [[1, 1]], [[1, 1]], 1), "left must be at least"),
        (lambda: settled_steps(SettledState(*settled_start(1)), [[1]], [[1]], 10, 2), "steps must lie"),
        (lambda: certain_side(0, 0, -1), "missing must be non-negative"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()

"""Laws that hold for every input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats import (
    closed_averaging,
    e_bh,
    e_bonferroni,
    e_holm,
    empirical_bernstein,
    exact_p,
    gap_interval,
    holm,
    items_to_decision,
    log_completion_bound,
    log_e_halves,
    log_e_value,
    mid_p,
    moments,
    required_n,
    resolution_ratio,
)
from stats.evidence import graded

counts = st.integers(0, 20_000)
symmetric = st.sampled_from(
    ["beta(1,1)", "beta(2,2)", "beta(.5,.5)", "beta(10,10)", "beta(100,100)", "grid98", "two_point(.4,.6)"]
)
mixtures = st.one_of(symmetric, st.sampled_from(["beta(3,1)", "beta(.7,2)"]))
levels = st.floats(1e-8, 0.5)
log_es = st.lists(st.floats(-30, 60), min_size=1, max_size=30)


@st.composite
def tables(draw):
    n = draw(st.integers(0, 30_000))
    b = draw(st.integers(0, n))
    return n, b, draw(st.integers(0, n - b))


@given(counts, counts, symmetric)
def test_swapping_the_models_swaps_the_halves(b, c, mixture):
    assert log_e_value(b, c, mixture) == pytest.approx(float(log_e_value(c, b, mixture)), abs=1e-9)
    plus, minus = log_e_halves(b, c, mixture)
    swapped_plus, swapped_minus = log_e_halves(c, b, mixture)
    assert (plus, minus) == (
        pytest.approx(float(swapped_minus), abs=1e-9),
        pytest.approx(float(swapped_plus), abs=1e-9),
    )


@given(counts, counts, mixtures)
def test_directional_evidence_grows_with_wins_and_shrinks_with_losses(b, c, mixture):
    plus, minus = log_e_halves([b, b + 1, b], [c, c, c + 1], mixture)
    assert plus[1] > plus[0] - 1e-9
    assert plus[2] < plus[0] + 1e-9
    assert minus[1] < minus[0] + 1e-9
    assert minus[2] > minus[0] - 1e-9


@given(counts, counts, st.integers(0, 500), st.integers(0, 500), mixtures)
def test_log_e_is_convex_so_its_largest_corner_bounds_a_rectangle(b, c, wide, high, mixture):
    corners = log_e_value([b, b + wide, b, b + wide], [c, c, c + high, c + high], mixture)
    inside = log_e_value(b + wide // 2, c + high // 3, mixture)
    assert inside <= corners.max() + 1e-9


@given(counts, counts, mixtures)
def test_a_coin_keeps_the_e_value_on_average(b, c, mixture):
    now = log_e_value(b, c, mixture)
    then = log_e_value([b + 1, b], [c, c + 1], mixture)
    assert np.logaddexp(*then) - np.log(2) == pytest.approx(float(now), abs=1e-8)


@given(tables(), levels, mixtures)
def test_the_interval_excludes_zero_exactly_when_e_reaches_the_threshold(table, alpha, mixture):
    n, b, c = table
    low, high = gap_interval(n, b, c, alpha, mixture)
    assert (low > 0 or high < 0) == (log_e_value(b, c, mixture) >= -np.log(alpha))
    gap, _ = moments(n, b, c)
    assert -1 <= low <= gap <= high <= 1


@given(tables(), st.integers(0, 300), mixtures, st.data())
def test_a_verdict_by_completion_cannot_be_undone(table, missing, mixture, data):
    _, b, c = table
    for_a, for_b = log_completion_bound(b, c, missing, mixture)
    wins = data.draw(st.integers(0, missing))
    losses = data.draw(st.integers(0, missing - wins))
    final = log_e_value(b + wins, c + losses, mixture)
    assert final >= max(float(for_a), float(for_b)) - 1e-9


@given(tables())
def test_resolution_and_forecasts_ignore_the_direction(table):
    n, b, c = table
    assert required_n(n, b, c) == required_n(n, c, b)
    assert resolution_ratio(n, required_n(n, b, c)) >= 0
    low, mid, high = items_to_decision(n, b, c, np.log(20))
    assert mid >= 0
    # The range is of gaps; a larger gap can only bring the decision nearer, up to the 1 % the forecast is good to.
    assert low <= 1.05 * mid + 1
    assert mid <= 1.05 * high + 1
    assert mid_p(b, c) <= exact_p(b, c)


@given(log_es, st.floats(0.001, 0.3))
def test_family_procedures_are_ordered_by_power(log_e, alpha):
    simple, stepwise = e_bonferroni(log_e, alpha), e_holm(log_e, alpha)
    averaged, discoveries = closed_averaging(log_e, alpha), e_bh(log_e, alpha)
    assert not (simple & ~stepwise).any()
    assert not (stepwise & ~averaged).any()
    assert not (simple & ~discoveries).any()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.randoms())
def test_adjusted_p_values_follow_their_hypotheses(p, random):
    order = list(range(len(p)))
    random.shuffle(order)
    shuffled = holm([p[i] for i in order])
    assert shuffled.tolist() == holm(p)[order].tolist()


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=60), st.integers(0, 60), st.randoms())
def test_graded_state_knows_neither_order_nor_chunks(differences, cut, random):
    whole = graded.update_capital(graded.initial_capital(), differences)
    shuffled = list(differences)
    random.shuffle(shuffled)
    first = graded.update_capital(graded.initial_capital(), shuffled[:cut])
    np.testing.assert_array_equal(graded.update_capital(first, shuffled[cut:]), whole)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=80))
def test_empirical_bernstein_bounds_stay_in_range(scores):
    low, high = empirical_bernstein(scores)
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (low <= high).all()

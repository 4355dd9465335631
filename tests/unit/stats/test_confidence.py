import numpy as np
import pytest

from stats import gap_interval, log_e_value, mean_interval, parse_mixture
from stats.intervals import confidence


def test_reference_intervals():
    low, high = gap_interval(12032, [1680, 352], [1454, 242])
    assert low == pytest.approx([0.001637, 0.002170], abs=5e-7)
    assert high == pytest.approx([0.035946, 0.016242], abs=5e-7)


@pytest.mark.parametrize("mixture", ["beta(1,1)", "beta(2,2)", "beta(.5,.5)", "grid98", "two_point(.4,.6)"])
def test_the_inverted_process_at_zero_is_the_e_value(mixture):
    rng = np.random.default_rng(1)
    n = np.r_[np.arange(40), rng.integers(100, 1_000_000, 60)].astype(float)
    b = np.floor(n * rng.random(100))
    c = np.floor((n - b) * rng.random(100))
    at_zero = confidence._process(n, b, c, parse_mixture(mixture))(np.zeros(100))
    np.testing.assert_allclose(at_zero, log_e_value(b, c, mixture), atol=2e-8, rtol=1e-9)


@pytest.mark.parametrize("mixture", ["beta(1,1)", "grid98", "beta(3,2)"])
@pytest.mark.parametrize("gap", [-0.4, 0.0, 0.15, 0.6])
def test_expectation_is_one_at_the_true_gap(mixture, gap):
    from math import comb

    n, discordance = 6, 0.8
    rate_b, rate_c = (discordance + gap) / 2, (discordance - gap) / 2
    total = 0.0
    for b in range(n + 1):
        for c in range(n - b + 1):
            weight = comb(n, b) * comb(n - b, c) * rate_b**b * rate_c**c * (1 - discordance) ** (n - b - c)
            log_e = confidence._process(*(np.array([float(x)]) for x in (n, b, c)), parse_mixture(mixture))
            total += weight * np.exp(log_e(np.array([gap])))[0]
    assert total == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize("mixture", ["beta(1,1)", "grid98"])
def test_bounds_are_where_e_reaches_the_threshold(mixture):
    n, b, c = np.array([30.0, 500.0, 12032.0]), np.array([3.0, 40.0, 1680.0]), np.array([1.0, 90.0, 1454.0])
    for alpha in (0.3, 0.05, 1e-6):
        for bound in gap_interval(n, b, c, alpha, mixture):
            value = confidence._process(n, b, c, parse_mixture(mixture))(bound)
            np.testing.assert_allclose(value, -np.log(alpha), atol=1e-6)


def test_intervals_nest_in_alpha_and_broadcast():
    low, high = gap_interval(1000, [[60], [50]], [[40], [50]], [0.2, 0.05, 0.001])
    assert low.shape == high.shape == (2, 3)
    assert (np.diff(low) < 0).all()
    assert (np.diff(high) > 0).all()
    np.testing.assert_allclose(low[1], -high[1], atol=1e-9)


def test_extreme_tables():
    low, high = gap_interval([0, 1, 5, 200, 200], [0, 0, 5, 200, 0], [0, 0, 0, 0, 0], 0.05)
    assert low[0] == -1
    assert high[0] == 1
    assert (low >= -1).all()
    assert (high <= 1).all()
    assert high[3] == 1  # nothing seen contradicts a gap of 1
    assert low[3] > 0.9
    assert (low[4], high[4]) == (pytest.approx(-float(high[4])), pytest.approx(-float(low[4])))
    assert high[4] < 0.1


def test_ten_million_items_and_tiny_levels():
    n = 10_000_000
    for alpha in (0.05, 1e-12, 1e-300):
        low, high = gap_interval(n, [1_000_000, n, 0], [1_005_000, 0, 0], alpha)
        assert low[0] < -0.0005 < high[0]
        assert high[0] - low[0] < 0.011
        assert low[1] > 0.9998
        assert high[2] == pytest.approx(-low[2])
        assert high[2] < 1e-4


def test_wilson_against_statsmodels():
    from statsmodels.stats.proportion import proportion_confint

    for right, n, alpha in ((0, 10, 0.05), (7, 10, 0.05), (10, 10, 0.01), (7407, 12032, 0.05)):
        low, high = mean_interval(right, n, alpha)
        assert (low, high) == pytest.approx(proportion_confint(right, n, alpha, method="wilson"), abs=1e-12)
    assert mean_interval(0, 0) == (0, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gap_interval(10, 9, 9), "must not exceed n"),
        (lambda: gap_interval(10, 1, 1, 0.0), "alpha must lie strictly"),
        (lambda: mean_interval(11, 10), "total must not exceed scored"),
        (lambda: mean_interval(np.nan, 10), "total must be finite"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

import numpy as np
import pytest

from stats import (
    bootstrap_power,
    exact_power,
    max_t_intervals,
    paired_bootstrap_delta,
    required_n,
    required_n_interval,
    wald_power,
)

rng = np.random.default_rng(8)
A, B = (rng.random(300) < 0.7).astype(float), (rng.random(300) < 0.6).astype(float)
GRADED_A, GRADED_B = rng.beta(4, 2, 300), rng.beta(4, 2.4, 300)


@pytest.mark.parametrize(("a", "b"), [(A, B), (GRADED_A, GRADED_B)])
@pytest.mark.parametrize("method", ["percentile", "studentised"])
def test_intervals_agree_with_normal_theory_in_large_samples(a, b, method):
    result = paired_bootstrap_delta(a, b, method=method, resamples=4000, seed=3)
    d = a - b
    half = 1.96 * d.std() / np.sqrt(d.size)
    assert result.delta == pytest.approx(d.mean())
    assert (result.low, result.high) == pytest.approx((d.mean() - half, d.mean() + half), abs=0.12 * half)
    assert result == paired_bootstrap_delta(a, b, method=method, resamples=4000, seed=3)
    assert result != paired_bootstrap_delta(a, b, method=method, resamples=4000, seed=4)


def test_percentile_against_scipy():
    from scipy.stats import bootstrap

    expected = bootstrap((A - B,), np.mean, method="percentile", n_resamples=9999, rng=1).confidence_interval
    result = paired_bootstrap_delta(A, B, resamples=9999)
    assert (result.low, result.high) == pytest.approx((expected.low, expected.high), abs=0.004)


def test_constant_differences_have_no_spread():
    for method in ("percentile", "studentised"):
        assert paired_bootstrap_delta([1, 1, 1], [0, 0, 0], method=method) == (1, 1, 1)


def test_hellaswag_hangs_on_the_closed_endpoint():
    n, b, c = 10042, 295, 249
    d = np.repeat([1.0, -1.0, 0.0], [b, c, n - b - c])
    means = np.random.default_rng(0).multinomial(n, [b / n, c / n, 1 - (b + c) / n], 200_000)
    difference = means[:, 0] - means[:, 1]
    assert (difference <= 0).mean() == pytest.approx(0.0255, abs=0.0015)
    assert (difference < 0).mean() == pytest.approx(0.0231, abs=0.0015)
    result = paired_bootstrap_delta(np.maximum(d, 0), np.maximum(-d, 0), resamples=20_000)
    assert abs(result.low) < 2.5 / n


def test_bootstrap_power_agrees_with_the_formulas():
    gap, sd = (A - B).mean(), (A - B).std()
    n = 250
    rates = (A > B).mean(), (A < B).mean()
    chi2 = bootstrap_power(A, B, n, trials=4000, test="chi2")
    assert chi2 == pytest.approx(exact_power(n, *rates, test="chi2"), abs=0.025)
    expected = float(wald_power(n, gap, sd))
    assert bootstrap_power(A, B, n, trials=4000, test="t") == pytest.approx(expected, abs=0.03)
    assert bootstrap_power(A, B, n, trials=400, resamples=200) == pytest.approx(expected, abs=0.08)


def test_required_n_interval_covers_and_is_vectorised():
    low, high = required_n_interval([12032, 12032, 12032], [1871, 787, 1449], [1076, 684, 1439])
    n_star = required_n(12032, [1871, 787, 1449], [1076, 684, 1439])
    assert (low < n_star).all()
    assert (n_star < high).all()
    assert high[0] < 1.6 * n_star[0]
    assert high[2] > 100 * n_star[0]
    assert required_n_interval(10, 0, 0) == (np.inf, np.inf)


def test_max_t_is_between_one_test_and_bonferroni():
    from scipy.special import ndtri

    table = (np.random.default_rng(2).random((5, 800)) < 0.6).astype(float)
    result = max_t_intervals(table)
    assert result.first.size == 10
    assert -ndtri(0.025) < result.critical < -ndtri(0.025 / 10)
    np.testing.assert_allclose(result.gap, table[result.first].mean(axis=1) - table[result.second].mean(axis=1))
    # One pair needs no correction at all.
    assert max_t_intervals(table[:2], draws=40_000).critical == pytest.approx(-ndtri(0.025), abs=0.03)


def test_max_t_simultaneous_coverage():
    generator, misses, rounds = np.random.default_rng(6), 0, 300
    for seed in range(rounds):
        shared = generator.normal(size=200)
        result = max_t_intervals(generator.normal(size=(4, 200)) + shared, 0.1, draws=500, seed=seed)
        misses += bool(((result.low > 0) | (result.high < 0)).any())
    assert misses / rounds < 0.1 + 3 * np.sqrt(0.09 / rounds)
    assert misses / rounds > 0.03


def test_identical_models_have_a_gap_of_zero():
    table = np.vstack([A, A, B])
    result = max_t_intervals(table)
    assert (result.gap[0], result.low[0], result.high[0]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_bootstrap_delta([1, 0], [1]), "scores_a and scores_b must be of equal length"),
        (lambda: paired_bootstrap_delta([], []), "scores_a must not be empty"),
        (lambda: paired_bootstrap_delta([2], [1]), "scores_a must lie in"),
        (lambda: paired_bootstrap_delta([1], [0], method="bca"), "method must be"),
        (lambda: paired_bootstrap_delta([1], [0], resamples=0), "resamples must be at least 1"),
        (lambda: bootstrap_power(GRADED_A, GRADED_B, 10, test="chi2"), "needs 0/1 scores"),
        (lambda: bootstrap_power(A, B, 10, test="sign"), "test must be"),
        (lambda: required_n_interval(0, 0, 0), "with n >= 1"),
        (lambda: required_n_interval(10, 1.5, 1), "must be whole numbers"),
        (lambda: max_t_intervals([[1, 0, 1]]), "at least 2 models"),
        (lambda: max_t_intervals([[1, 0], [0, 1]], draws=3), "draws must be at least"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_without_a_gap_the_interval_of_items_has_no_end():
    b, c, _ = np.random.default_rng(12).multinomial(400, [0.1, 0.1, 0.8], 1_000).T
    low, high = required_n_interval(400, b, c, resamples=200)
    # N* is infinite at gap 0: the interval covers it where it has no upper end.
    assert np.isinf(high).mean() == pytest.approx(0.95, abs=0.02)
    assert np.isfinite(low).all()

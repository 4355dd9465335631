"""What a gate can know before it runs: against reference values, enumeration and simulation."""

from itertools import combinations, product
from math import comb

import numpy as np
import pytest
import scipy.stats

import stats

FLIPS = [(50, 1, 0.01), (50, 1, 0.03), (200, 1, 0.01), (200, 4, 0.01), (1319, 1, 0.01), (1319, 1, 0.03)]


@pytest.mark.parametrize(
    ("variance", "red"),
    [
        (0.042, [0.403625, 0.232107, 0.270952, 0.149893, 0.099826]),
        (0.14, [0.446847, 0.344250, 0.369161, 0.285041, 0.241191, 0.019920]),
    ],
)
def test_an_unchanged_model_is_red_as_often_as_the_reference(variance, red):
    found = [stats.flip(*case, variance) for case in FLIPS[: len(red)]]
    assert found == pytest.approx(red, abs=5e-7)


@pytest.mark.parametrize(
    ("items", "repeats", "margin", "noise"), [(200, 1, 0.01, 2.0), (200, 4, 0.01, 2.0), (50, 1, 0.03, 0.25)]
)
def test_the_chance_of_red_is_that_of_simulated_runs(items, repeats, margin, noise):
    """Cases of the setting of the reference: success probabilities Beta(.7 k, .3 k)."""
    rng = np.random.default_rng(11)
    red, variances = 0, []
    for _ in range(4_000):
        p = rng.beta(0.7 * noise, 0.3 * noise, items)
        old, new = (rng.binomial(repeats, p).sum() for _ in range(2))
        red += new < old - margin * items * repeats - 1e-9
        variances.append(float((p * (1 - p)).mean()))
    assert red / 4_000 == pytest.approx(stats.flip(items, repeats, margin, float(np.mean(variances))), abs=0.03)


def test_from_so_many_answers_on_red_stays_below_the_level():
    cases = list(product((0.02, 0.03, 0.1, 1 / 3), (0.25, 0.14, 0.042), (0.05, 0.2)))
    for margin, variance, level in cases:
        found = stats.answers_for_flip(margin, variance, level)
        after = [stats.flip(k, 1, margin, variance) for k in range(int(found), int(4 * found))]
        assert max(after) <= level
        assert found == 1 or stats.flip(found - 1, 1, margin, variance) > level
        assert stats.answers_for_flip(margin, variance, level, each=60) == 60 * np.ceil(found / 60)
    assert stats.answers_for_flip(0.0, 0.1) == np.inf
    assert stats.answers_for_flip(0.02, 0.0) == 1
    graded = stats.answers_for_flip(0.02, 0.05, whole=False)
    assert stats.flip(graded, 1, 0.02, 0.05, whole=False) <= 0.05 < stats.flip(graded - 1, 1, 0.02, 0.05, whole=False)


def test_no_outcome_passes_below_the_items_that_are_named():
    assert (stats.least_discordant(), stats.least_discordant(0.05 / 45)) == (6, 11)
    assert [stats.equal_items(margin) for margin in (0.01, 0.02, 0.03, 0.05)] == [299, 149, 99, 59]
    for margin, wrong in product((0.02, 0.1, 0.3), (1.0, 0.5, 0.1, 0.0)):
        best = stats.best_items(margin, wrong)
        p = [float(stats.excess_p(n, int(wrong * n + 1e-9), 0, -margin)) for n in range(1, best + 1)]
        assert p[-1] <= 0.05 < min(p[:-1], default=1)


def test_rates_of_a_gate_are_those_of_all_outcomes():
    """By hand for 12 items and a wide margin: every table, its verdict by the two tests, its chance."""
    n, gap, discordance, margin = 12, -0.1, 0.5, 0.6
    win, loss = (discordance + gap) / 2, (discordance - gap) / 2
    passed = failed = 0.0
    for b, c in product(range(n + 1), repeat=2):
        if b + c > n:
            continue
        chance = comb(n, b) * comb(n - b, c) * win**b * loss**c * (1 - discordance) ** (n - b - c)
        if float(stats.excess_p(n, b, c, -margin)) <= 0.05:
            passed += chance
        elif c > b and float(stats.exact_p(b, c)) <= 0.05:
            failed += chance
    rates = stats.gate_rates(n, gap, discordance, margin)
    assert (rates.passed, rates.failed) == pytest.approx((passed, failed), abs=1e-9)
    assert rates.undecided == pytest.approx(1 - passed - failed)


@pytest.mark.parametrize("discordance", [0.04, 0.13])
def test_a_model_worse_by_the_margin_passes_in_a_twentieth_at_most(discordance):
    for items in (20, 50, 100, 200, 500):
        assert stats.gate_rates(items, -0.03, discordance, 0.03).passed <= 0.05
        assert stats.gate_rates(items, 0.0, discordance, 0.03).failed <= 0.025
        assert stats.gate_rates(items, 0.0, 0.0, 0.03).passed == (items >= 99)


def test_means_of_repeats_bet_and_err_no_more():
    rng = np.random.default_rng(2)
    answers = (rng.random((120, 6)) < rng.beta(1.4, 0.6, 120)[:, None]).astype(float)
    equal, worse = (stats.mean_rates(answers, 800, 3, gap, 0.04, simulations=200) for gap in (0.0, -0.04))
    assert equal.passed > 0.5
    assert worse.passed <= 0.06
    assert equal.failed <= 0.03


@pytest.mark.parametrize(
    "call",
    [
        lambda: stats.flip(0, 1, 0.01, 0.1),
        lambda: stats.flip(10, 1, 1.0, 0.1),
        lambda: stats.answers_for_flip(0.01, 0.1, 0.6),
        lambda: stats.case_variances([1, 0, 1]),
        lambda: stats.equal_items(0.0),
        lambda: stats.best_items(0.02, 1.5),
        lambda: stats.gate_rates(10, 0.2, 0.1, 0.02),
        lambda: stats.mean_rates([[np.nan]], 10, 1, 0.0, 0.02),
        lambda: stats.mean_rates([[1.0]], 10, 1, 0.2, 0.02),
    ],
)
def test_what_is_out_of_range_is_an_error(call):
    with pytest.raises(ValueError, match=r"take|must|of shape"):
        call()


def test_bounds_of_a_case_are_exact_and_agree_with_their_p_values():
    for right, of, k in product(range(0, 21, 4), (20, 25), (1, 3)):
        low, high = (float(each) for each in stats.case_bounds(right, of, k))
        test = scipy.stats.binomtest(right, of)
        both = test.proportion_ci(0.9, "exact")
        assert (low, high) == pytest.approx((both.low**k, both.high**k))
        for floor in (0.3, 0.8):
            p = float(stats.below_p(right, of, floor, k))
            assert p == pytest.approx(scipy.stats.binom.cdf(right, of, floor ** (1 / k)))
            assert (p < 0.05) == (high < floor)
    for floor, k in product((0.5, 0.8, 0.95), (1, 2, 5)):
        needed = stats.repeats_for_floor(floor, k)
        reached = [float(stats.case_bounds(each, each, k)[0]) >= floor for each in (needed - 1, needed)]
        assert reached == [False, True]


def test_a_case_that_got_worse_is_found_by_fishers_exact_test():
    for right, of, old_right, old_of in product((0, 3, 8), (8, 10), (0, 4, 9), (9, 12)):
        table = [[right, of - right], [old_right, old_of - old_right]]
        assert stats.lost_p(right, of, old_right, old_of) == pytest.approx(
            scipy.stats.fisher_exact(table, "less").pvalue
        )


def test_pass_k_counts_the_draws_of_k_answers_that_are_all_right():
    for right, of, k in ((3, 5, 2), (4, 4, 3), (1, 3, 2), (0, 4, 1)):
        draws = [all(answer < right for answer in drawn) for drawn in combinations(range(of), k)]
        assert float(stats.pass_k(right, of, k)) == pytest.approx(np.mean(draws))

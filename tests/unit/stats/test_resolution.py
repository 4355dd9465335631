import numpy as np
import pytest

from stats import (
    admissible_delta,
    calculator_table,
    cohens_h,
    difference_variance,
    exact_p,
    exact_power,
    hoeffding_bounds,
    inflation,
    mde,
    moments,
    paper,
    required_n,
    required_n_paired,
    resolution_ratio,
    rho_sensitivity,
    shortcut_constant,
    shortcut_n,
    unpaired_required_n,
    wald_power,
)


def test_published_pair_8v9():
    gap, sd = moments(12032, 787, 684)
    n_star = required_n(12032, 787, 684)
    assert n_star == pytest.approx(13086.49, abs=0.005)
    assert resolution_ratio(12032, n_star) == pytest.approx(0.9194, abs=5e-5)
    assert mde(12032, sd) * 100 == pytest.approx(0.893, abs=5e-4)
    assert required_n_paired(gap, sd) == pytest.approx(float(n_star))


def test_wald_power_at_n_star_and_mde_is_the_target():
    gap, sd = moments(12032, 787, 684)
    # N* inverts the dominant tail only; the other adds less than 1e-3.
    assert wald_power(required_n(12032, 787, 684), gap, sd) == pytest.approx(0.8, abs=1e-3)
    assert wald_power(500, mde(500, sd, 0.01, 0.9), sd, 0.01) == pytest.approx(0.9, abs=1e-3)


def test_limits():
    assert required_n([0, 10, 10], [0, 3, 10], [0, 3, 0]).tolist() == [np.inf, np.inf, 0]
    assert resolution_ratio([0, 10, 10], [np.inf, np.inf, 0]).tolist() == [0, 0, np.inf]
    assert mde(0, 0.5) == np.inf
    assert wald_power([0, 100, 100], [0.1, 0.0, 0.1], [0.5, 0.0, 0.0]) == pytest.approx([0.05, 0.05, 1])
    assert required_n_paired(0, 0) == np.inf


def test_inflation_reference():
    assert inflation([9, 40, 45]) == pytest.approx([1.6646, 2.1093, 2.1442], abs=5e-5)
    assert inflation(40, method="sidak") == pytest.approx(2.1019, abs=5e-5)
    assert inflation(1) == 1


def test_rho_sensitivity_is_clamped():
    p_a, p_b = 0.65, 0.60
    _, highest = hoeffding_bounds(p_a, p_b)
    more, middle, fewer = rho_sensitivity(p_a, p_b, highest - 0.02)
    assert more > middle > fewer
    assert fewer == pytest.approx(float(required_n_paired(0.05, np.sqrt(difference_variance(p_a, p_b, highest)))))


def test_shortcut_reference():
    assert shortcut_constant([0.65, 0.8, 0.65], [0, 0.5, 0.9]) == pytest.approx([0.31196, 0.79753, 0.66618], abs=5e-6)
    assert shortcut_constant(0.5, [-0.5, 0, 0.9]) == pytest.approx([1 / 3] * 3)
    assert shortcut_constant(0.8, 0) == pytest.approx(0.081, abs=5e-4)
    assert admissible_delta(0.65, 0.3, 0.05) == pytest.approx(0.43406, abs=5e-6)


@pytest.mark.parametrize(("p", "rho"), [(0.65, 0.3), (0.8, 0.5), (0.5, 0.6), (0.65, 0.9)])
def test_shortcut_constant_is_the_second_order_term(p, rho):
    delta = 0.002
    p_a, p_b = p + delta / 2, p - delta / 2
    n_star = required_n_paired(delta, np.sqrt(difference_variance(p_a, p_b, rho)))
    ratio = shortcut_n(p_a, p_b, rho) / n_star
    assert abs(ratio - 0.5) / delta**2 == pytest.approx(float(shortcut_constant(p, rho)), rel=1e-3)


def test_calculators_against_statsmodels():
    from statsmodels.stats.power import NormalIndPower
    from statsmodels.stats.proportion import proportion_effectsize

    one, two, paired = calculator_table(0.65, 0.60, 0.30)
    assert float(cohens_h(0.65, 0.60)) == pytest.approx(proportion_effectsize(0.65, 0.60))
    oracle = NormalIndPower().solve_power(proportion_effectsize(0.65, 0.60), alpha=0.05, power=0.8)
    assert two.per_arm == pytest.approx(oracle, rel=1e-4)
    assert one.per_arm == pytest.approx(two.per_arm / 2)
    assert np.ceil([one.per_arm, one.times_one_minus_rho, two.per_arm, two.times_one_minus_rho]).tolist() == [
        736, 515, 1471, 1030,
    ]  # fmt: skip
    assert np.ceil(paired.per_arm) == 1028
    assert one.times_one_minus_rho / paired.per_arm == pytest.approx(0.5, abs=1e-3)


def test_unpaired_costs_one_over_one_minus_rho():
    paired = required_n_paired(0.001, np.sqrt(difference_variance(0.6005, 0.5995, 0.5)))
    assert unpaired_required_n(0.6005, 0.5995) / paired == pytest.approx(2, rel=1e-5)


def test_exact_power_by_enumeration():
    from math import comb

    n, rate_b, rate_c, alpha = 12, 0.5, 0.2, 0.1
    expected = 0.0
    for b in range(n + 1):
        for c in range(n - b + 1):
            if exact_p(b, c) <= alpha:
                ways = comb(n, b) * comb(n - b, c)
                expected += ways * rate_b**b * rate_c**c * (1 - rate_b - rate_c) ** (n - b - c)
    assert exact_power(n, rate_b, rate_c, alpha) == pytest.approx(expected)


def test_exact_power_agrees_with_wald_in_large_samples():
    n_star = float(required_n(12032, 787, 684))
    rates = 787 / 12032, 684 / 12032
    for test in ("chi2", "mid", "exact", "corrected"):
        assert exact_power(round(n_star), *rates, test=test) == pytest.approx(0.8, abs=0.012)
    assert exact_power(2000, 0.1, 0.1, 0.05, "exact") <= 0.05
    assert exact_power(100, 0, 0) == 0


def test_the_seven_functions_of_the_paper():
    assert set(paper.__all__) == {
        "ANYTIME_INFLATION",
        "cohens_h",
        "paired_bootstrap_delta",
        "bootstrap_power",
        "parametric_required_n_proportions",
        "parametric_required_n_paired_binary",
        "required_n_mcnemar",
        "parametric_required_n_paired",
    }
    assert paper.ANYTIME_INFLATION == 2.15
    assert np.ceil(paper.parametric_required_n_proportions(0.65, 0.60)) == 736
    assert np.ceil(paper.parametric_required_n_proportions(0.65, 0.60, paired=True, rho=0.3)) == 515
    assert np.ceil(paper.parametric_required_n_paired_binary(0.65, 0.60, 0.3)) == 1028
    assert round(float(paper.required_n_mcnemar(295, 249, 10042))) == 20255
    assert paper.parametric_required_n_paired(0.05, 0.5) == pytest.approx(7.848880 * 100, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: required_n(10, 8, 4), r"b \+ c must not exceed n"),
        (lambda: required_n(10, [1, 2], [1, 2, 3]), "arrays of unequal length"),
        (lambda: required_n(10, np.nan, 1), "b must be finite"),
        (lambda: required_n(10, -1, 1), "b must be non-negative"),
        (lambda: required_n(10, 1, "many"), "c must be numeric"),
        (lambda: required_n(10, 1, 2, alpha=1.5), "alpha must lie strictly between 0 and 1"),
        (lambda: resolution_ratio(10, np.nan), "n_star must be non-negative"),
        (lambda: inflation(0), "m must lie in"),
        (lambda: inflation(3, method="holm"), "method must be"),
        (lambda: shortcut_constant(0.5, 1), "rho must be below 1"),
        (lambda: exact_power(10, 0.8, 0.8), "must not exceed 1"),
        (lambda: exact_power(10, 0.1, 0.1, test="t"), "test must be one of"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

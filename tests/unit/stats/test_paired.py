import numpy as np
import pytest

from stats import (
    correlation,
    difference_variance,
    hoeffding_bounds,
    moments,
    moments_from_sums,
    paired_t,
    phi_correlation,
)
from stats.fixed_n import mcnemar

rng = np.random.default_rng(7)


def scores(p_a, p_b, n=400):
    u = rng.random(n)
    return (u < p_a).astype(float), (np.where(rng.random(n) < 0.5, u, rng.random(n)) < p_b).astype(float)


def table(a, b):
    return [int(x.sum()) for x in (a * b, a * (1 - b), (1 - a) * b, (1 - a) * (1 - b))]


def test_moments_and_phi_agree_with_the_rows():
    a, b = scores(0.7, 0.6)
    n11, wins, losses, n00 = table(a, b)
    gap, sd = moments(a.size, wins, losses)
    assert gap == pytest.approx((a - b).mean())
    assert sd == pytest.approx((a - b).std())
    rho = np.corrcoef(a, b)[0, 1]
    assert phi_correlation(n11, wins, losses, n00) == pytest.approx(rho)
    assert correlation(a.size, wins, losses, a.sum(), b.sum()) == pytest.approx(rho)
    assert np.sqrt(difference_variance(a.mean(), b.mean(), rho)) == pytest.approx(sd)


def test_sums_of_graded_differences():
    d = rng.uniform(-1, 1, 50)
    gap, sd = moments_from_sums(50, d.sum(), (d**2).sum())
    assert (gap, sd) == (pytest.approx(d.mean()), pytest.approx(d.std()))


def test_hoeffding_bounds_are_reached_and_not_exceeded():
    p_a, p_b = 0.65, 0.6
    low, high = hoeffding_bounds(p_a, p_b)
    for joint, bound in ((min(p_a, p_b), high), (max(0, p_a + p_b - 1), low)):
        rho = (joint - p_a * p_b) / np.sqrt(p_a * (1 - p_a) * p_b * (1 - p_b))
        assert rho == pytest.approx(bound)
    with pytest.raises(ValueError, match="rho must lie within its Hoeffding bounds"):
        difference_variance(p_a, p_b, float(high) + 0.01)


def test_degenerate_margins():
    assert np.isnan(phi_correlation(5, 0, 0, 0))
    low, high = hoeffding_bounds([0.0, 1.0], 0.5)
    assert low.tolist() == high.tolist() == [0.0, 0.0]
    gap, sd = moments(0, 0, 0)
    assert (gap, sd) == (0, 0)


def test_paired_t_against_scipy():
    from scipy.stats import ttest_rel

    x, y = rng.random((2, 40))
    d = x - y
    t, p = paired_t(40, d.sum(), (d**2).sum())
    expected = ttest_rel(x, y)
    assert t == pytest.approx(expected.statistic)
    assert p == pytest.approx(expected.pvalue)


def test_paired_t_limits():
    t, p = paired_t([1, 5, 5], [0.5, 0, 2.5], [0.25, 0, 1.25])
    assert t.tolist() == [0, 0, np.inf]
    assert p.tolist() == [1, 1, 2**-4]


@pytest.mark.parametrize("seed", range(5))
def test_mcnemar_against_statsmodels(seed):
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar as oracle

    b, c = (int(x) for x in np.random.default_rng(seed).integers(1, 60, 2))
    cells = [[10, b], [c, 10]]
    assert mcnemar.chi2_p(b, c) == pytest.approx(oracle(cells, exact=False, correction=False).pvalue)
    if b != c:
        assert mcnemar.corrected_p(b, c) == pytest.approx(oracle(cells, exact=False, correction=True).pvalue)
    assert mcnemar.exact_p(b, c) == pytest.approx(binomtest(b, b + c).pvalue)
    assert mcnemar.exact_p(b, c) == pytest.approx(min(oracle(cells, exact=True).pvalue, 1))


def test_mid_p_by_enumeration():
    from math import comb

    for m in range(1, 12):
        for b in range(m + 1):
            weight = [comb(m, k) / 2**m for k in range(m + 1)]
            k = min(b, m - b)
            expected = min(1.0, 2 * sum(weight[:k]) + weight[k])
            assert mcnemar.mid_p(b, m - b) == pytest.approx(expected)


def test_mcnemar_reference_and_limits():
    assert mcnemar.chi2_p(295, 249) == pytest.approx(0.0485829, abs=5e-8)
    assert mcnemar.exact_p(295, 249) == pytest.approx(0.0535864, abs=5e-8)
    assert mcnemar.mid_p(295, 249) == pytest.approx(0.04869, abs=5e-6)
    for test in (mcnemar.chi2_p, mcnemar.corrected_p, mcnemar.exact_p, mcnemar.mid_p):
        assert test(0, 0) == 1
        assert test(7, 7) == pytest.approx(1)
        assert test(100_000, 0) == 0
        np.testing.assert_array_equal(test([3, 9], [9, 3]), np.repeat(test(3, 9), 2))

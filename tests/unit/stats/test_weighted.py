"""Weighted averages over strata, against statsmodels and formulas written out."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import t as student

from stats.clusters.weighted import bet_scales, normalised, stratified_moments, stratified_p, weighted_mean_interval


def sums(*strata):
    return [np.array([[f(d) for d in strata]]) for f in (len, np.sum, lambda d: np.sum(d * d))]


def test_two_strata_of_equal_weight_are_a_welch_test_of_one_against_the_mirrored_other():
    from statsmodels.stats.weightstats import ttest_ind

    rng = np.random.default_rng(1)
    one, other = rng.choice([-1, 0, 1], 70, p=[0.1, 0.6, 0.3]), rng.choice([-1, 0, 1], 23, p=[0.3, 0.5, 0.2])
    moments = stratified_moments(*sums(one, other), [1, 1])
    _, p, degrees = ttest_ind(one, -other, usevar="unequal")
    assert stratified_p(moments)[0] == pytest.approx(p, rel=1e-12)
    assert moments.degrees[0] == pytest.approx(degrees, rel=1e-12)


def test_many_strata_of_any_weight_follow_the_formulas():
    rng = np.random.default_rng(2)
    weights = np.array([3.0, 1.0, 2.0, 0.5])
    strata = [rng.uniform(-1, 1, size) for size in (40, 9, 120, 2)]
    moments = stratified_moments(*sums(*strata), weights)
    w = weights / weights.sum()
    gap = sum(each * d.mean() for each, d in zip(w, strata, strict=True))
    parts = [each**2 * d.var(ddof=1) / d.size for each, d in zip(w, strata, strict=True)]
    degrees = sum(parts) ** 2 / sum(part**2 / (d.size - 1) for part, d in zip(parts, strata, strict=True))
    assert (moments.gap[0], moments.variance[0]) == pytest.approx((gap, sum(parts)), rel=1e-12)
    assert stratified_p(moments)[0] == pytest.approx(2 * student.sf(abs(gap) / sum(parts) ** 0.5, degrees), rel=1e-10)


@pytest.mark.parametrize(
    ("strata", "p"),
    [
        (([1, 0, 1], []), 1),
        (([1, 0, 1], [1]), 1),
        (([0, 0, 0], [0, 0]), 1),
        (([1, 1, 1], [1, 1]), 1 / 8),
        (([1, 1, 1, 1], [0, 0]), 1 / 8),
        (([1] * 40, [1] * 20), 2.0**-58),
        (([1, 1], [-1, -1]), 1),
    ],
)
def test_without_a_variance_there_is_no_test_and_without_spread_one_of_signs(strata, p):
    moments = stratified_moments(*sums(*map(np.array, strata)), [1, 1])
    assert stratified_p(moments)[0] == p


def test_the_mean_of_what_bets_is_the_gap():
    rng = np.random.default_rng(3)
    sizes, weights = [50, 20, 5], [1, 1, 2]
    strata = [rng.choice([-1, 0, 1], size) for size in sizes]
    scales, largest = bet_scales(weights, sizes)
    mean = sum(scale * d.sum() for scale, d in zip(scales, strata, strict=True)) / sum(sizes)
    assert largest * mean == pytest.approx(stratified_moments(*sums(*strata), weights).gap[0], rel=1e-12)
    assert scales.max() == 1


def test_the_interval_of_a_weighted_mean_covers_it():
    rng = np.random.default_rng(4)
    sizes, chances, weights = np.array([200, 60, 30]), np.array([0.9, 0.5, 0.2]), normalised([1, 1, 1])
    right = np.stack([rng.binomial(size, p, 2_000) for size, p in zip(sizes, chances, strict=True)], axis=1)
    low, high = weighted_mean_interval(sizes, right, right, weights)
    covered = ((low <= weights @ chances) & (weights @ chances <= high)).mean()
    assert 0.93 < covered < 0.97


@pytest.mark.parametrize("weights", [[], [0, 1], [-1, 2], [[1, 1]]])
def test_weights_are_positive(weights):
    with pytest.raises(ValueError, match="positive"):
        normalised(weights)


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2), (4, 3)])
def test_without_spread_the_error_is_bounded_by_all_signs(sizes):
    """Two items of one sign in each stratum had p = 0, and were decided at any level."""
    signs = np.array(list(product([-0.3, 0.3], repeat=sum(sizes))))
    parts = np.split(signs, np.cumsum(sizes)[:-1], axis=1)
    s1, s2 = (np.stack([(part**k).sum(axis=1) for part in parts], axis=1) for k in (1, 2))
    moments = stratified_moments(np.broadcast_to(sizes, s1.shape), s1, s2, [1, 2])
    p = stratified_p(moments)[moments.variance == 0]
    assert p.size / len(signs) <= p.min()

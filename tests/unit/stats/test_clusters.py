"""Clusters against statsmodels, brute force over items, and the reference values of the cluster e-process."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import t as student

from stats.clusters import robust
from stats.clusters.eprocess import cluster_e_process, clusters_needed
from stats.clusters.robust import (
    FEW_CLUSTERS,
    cluster_icc,
    cluster_required_n,
    cluster_sums,
    clustered_p,
    clustered_se,
    design_effect,
    effective_clusters,
    holm_rejects,
    robust_design_effect,
)
from stats.clusters.sensitivity import (
    category_bootstrap,
    difficulty_clusters,
    leave_one_out,
    random_clusters,
    split_halves,
)
from stats.families.error_control import holm
from stats.fixed_n.resolution import required_n
from tests.stats_reference import cluster_e_max


@pytest.fixture(scope="module")
def items():
    """Six pairs over 600 items in nine unequal clusters with their own gaps; one pair misses some items."""
    rng = np.random.default_rng(5)
    labels = rng.choice(9, 600, p=np.arange(1, 10) / 45)
    shift = rng.normal(0, 0.15, (6, 9))[:, labels] + np.linspace(0, 0.2, 6)[:, None]
    d = np.sign(rng.random((6, 600)) - 0.5 + shift / 2) * (rng.random((6, 600)) < 0.4)
    d[5, rng.random(600) < 0.2] = np.nan
    return d, labels


@pytest.fixture(scope="module")
def sums(items):
    return cluster_sums(*items, 9)


def test_sums_equal_a_loop_over_items(items, sums):
    d, labels = items
    for pair in range(6):
        for g in range(9):
            x = d[pair, (labels == g) & ~np.isnan(d[pair])]
            assert [s[pair, g] for s in sums] == [x.size, x.sum(), (x * x).sum()]


def test_icc_equals_the_analysis_of_variance_of_the_items(items, sums):
    from statsmodels.api import OLS, add_constant

    d, labels = items
    expected = []
    for x in d:
        ok = ~np.isnan(x)
        fit = OLS(x[ok], add_constant(np.eye(9)[labels[ok]][:, 1:])).fit()
        sizes = np.bincount(labels[ok], minlength=9)
        n0 = (ok.sum() - (sizes**2).sum() / ok.sum()) / 8
        expected.append((fit.mse_model - fit.mse_resid) / (fit.mse_model + (n0 - 1) * fit.mse_resid))
    assert_allclose(cluster_icc(*sums), expected, rtol=1e-10)
    assert min(expected) < 0.02 < max(expected)


def test_clustered_p_equals_statsmodels_cluster_robust_regression():
    from statsmodels.api import OLS

    rng = np.random.default_rng(15)
    labels = rng.choice(40, 900, p=np.arange(20, 60) / np.arange(20, 60).sum())
    d = rng.choice([-1.0, 0.0, 1.0], (4, 900), p=[0.2, 0.5, 0.3]) * (rng.random(40) < 0.8)[labels]
    n, s1, _ = cluster_sums(d, labels, 40)
    assert (effective_clusters(n) > FEW_CLUSTERS).all()
    p, se = clustered_p(n, s1), clustered_se(n, s1)
    for pair, x in enumerate(d):
        fit = OLS(x, np.ones(900)).fit(
            cov_type="cluster", cov_kwds={"groups": labels, "use_correction": False}, use_t=True
        )
        # Without its (N - 1) / (N - k) factor, which is 1 for a mean up to 1 / N.
        assert_allclose(se[pair], fit.bse[0] * np.sqrt(40 / 39), rtol=1e-10)
        assert_allclose(p[pair], 2 * student.sf(abs(x.mean()) / se[pair], 39), rtol=1e-9)


def test_with_few_effective_clusters_the_standard_error_is_the_jackknife_of_whole_clusters(items, sums):
    d, labels = items
    assert (effective_clusters(sums[0]) < FEW_CLUSTERS).all()
    p, se = clustered_p(*sums[:2]), clustered_se(*sums[:2])
    for pair, x in enumerate(d):
        without = np.array([np.nanmean(x[labels != g]) for g in range(9)])
        jackknife = np.sqrt(8 / 9 * ((without - np.nanmean(x)) ** 2).sum())
        assert_allclose(se[pair], jackknife, rtol=1e-10)
        assert_allclose(p[pair], 2 * student.sf(abs(np.nanmean(x)) / jackknife, 8), rtol=1e-9)


def test_the_effective_number_of_clusters_is_their_number_only_where_sizes_are_equal():
    assert_allclose(effective_clusters([[7] * 5, [0, 9, 9, 0, 0], [99, 1, 0, 0, 0]]), [5, 2, 1 / (0.99**2 + 0.01**2)])
    assert np.isnan(effective_clusters([0, 0]))


def test_equal_clusters_have_one_standard_error_on_both_sides_of_the_limit():
    rng = np.random.default_rng(8)
    for clusters in (3, 9, 11):  # CR3 below ten, CR1 above
        d = rng.choice([-1.0, 0.0, 1.0], clusters * 20)
        n, s1, _ = cluster_sums(d, np.repeat(np.arange(clusters), 20), clusters)
        crossed = np.sqrt(clusters / (clusters - 1) * ((s1 - n * d.mean()) ** 2).sum()) / d.size
        assert_allclose(clustered_se(n, s1), crossed)


def test_one_item_per_cluster_is_the_ordinary_standard_error():
    d = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], 200)
    n, s1, s2 = cluster_sums(d, np.arange(200), 200)
    assert_allclose(clustered_se(n, s1), d.std(ddof=1) / np.sqrt(200))
    assert_allclose(robust_design_effect(n, s1, s2), 200 / 199)
    assert cluster_icc(n, s1, s2) == 0  # of single items there is nothing to correlate
    assert cluster_required_n(n, s1, s2) == pytest.approx(float(required_n(200, (d > 0).sum(), (d < 0).sum())))


def test_design_effect_and_published_cluster_rows():
    assert_allclose(design_effect([-0.2, 0.0, 0.5], 11), [1, 1, 6])
    # Paper, 4 v 5: DE 31.5 from an ICC of 0.0355, N* 432.5 -> 13,621
    assert_allclose(design_effect(0.03553, 12032 / 14), 31.5, atol=0.01)
    assert_allclose(required_n(12032, 1871, 1076) * 31.5, 13621, rtol=2e-4)


def test_cluster_required_n_is_the_iid_one_times_the_design_effect(sums):
    n, s1, s2 = sums
    b, c = (s2 + s1).sum(1) / 2, (s2 - s1).sum(1) / 2
    effect = design_effect(cluster_icc(n, s1, s2), n.sum(1) / 9)
    assert_allclose(cluster_required_n(n, s1, s2), required_n(n.sum(1), b, c) * effect)


def test_empty_clusters_do_not_count(sums):
    padded = [np.pad(s, ((0, 0), (2, 1))) for s in sums]
    for function, arrays in ((cluster_icc, 3), (clustered_p, 2), (clustered_se, 2), (cluster_required_n, 3)):
        assert_allclose(function(*padded[:arrays]), function(*sums[:arrays]), rtol=1e-12)


def test_limits_that_say_nothing_are_documented_values():
    zero = np.zeros((1, 3))
    assert clustered_p(zero, zero) == 1
    assert clustered_p([[5, 0]], [[5, 0]]) == 1  # one cluster only
    assert clustered_p([[5, 5]], [[1, 1]]) == 1  # no spread between clusters to measure the gap by
    assert clustered_p([[5, 5]], [[0.1 + 0.2, 0.3]]) == 1  # the same up to rounding
    assert cluster_icc([[5, 5]], [[0, 0]], [[0, 0]]) == 0
    assert np.isnan(cluster_icc([[5, 0]], [[2, 0]], [[2, 0]]))
    assert np.isinf(cluster_required_n([[5, 5]], [[1, -1]], [[1, 1]]))


@pytest.mark.parametrize(
    ("n", "s1", "s2", "match"),
    [
        ([5, 5], [1], [1, 1], "s1 must have shape"),
        ([5, np.nan], [1, 1], [1, 1], "n must be finite"),
        ([5, -1], [0, 0], [1, 0], "n and s2 must be >= 0"),
        ([5, 5], [6, 0], [6, 0], r"differences in \[-1, 1\]"),
        ([5, 5], [3, 0], [1, 0], r"differences in \[-1, 1\]"),
        ([5, 5], [0, 0], [-1, 0], "n and s2 must be >= 0"),
    ],
)
def test_sums_that_no_differences_have_are_refused(n, s1, s2, match):
    with pytest.raises(ValueError, match=match):
        cluster_icc(n, s1, s2)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: cluster_sums([0, 1], [0], 1), "one cluster per item"),
        (lambda: cluster_sums([0, 1], [0, 2], 2), "0..1"),
        (lambda: cluster_sums([0, 1.5], [0, 1], 2), "1.5"),
        (lambda: design_effect(0.1, 0.5), "mean_size"),
        (lambda: design_effect(1.1, 5), "icc"),
        (lambda: cluster_required_n([5, 5], [1, 2], [3, 3], alpha=0), "alpha"),
        (lambda: category_bootstrap([[5]], [[1]], [[1]]), "at least two clusters"),
        (lambda: category_bootstrap([5, 5], [1, 1], [1, 1], replicates=0), "replicates"),
        (lambda: category_bootstrap([5, 5], [1, 1], [1, 1], interval=(0.9, 0.1)), "interval"),
        (lambda: leave_one_out([5], [1], [1]), "at least two clusters"),
        (lambda: random_clusters(3, 4, np.random.default_rng()), "clusters"),
        (lambda: difficulty_clusters([0.1, np.nan]), "finite"),
        (lambda: difficulty_clusters([0.1], 0), "clusters"),
        (lambda: cluster_e_process([5], [1], mixture="beta(2,2)"), "grid98"),
        (lambda: cluster_e_max(-1), "clusters"),
        (lambda: clusters_needed(0.0), "mean_gap"),
        (lambda: clusters_needed(0.1, alpha=1.0), "alpha"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_leave_one_out_equals_recomputation_from_the_items_left(items, sums):
    d, labels = items
    result = leave_one_out(*sums)
    for g in range(9):
        left = cluster_sums(d[:, labels != g], labels[labels != g], 9)
        assert_allclose(result.icc[:, g], cluster_icc(*left), rtol=1e-9)
        required = cluster_required_n(*left)
        assert_allclose(result.required_n[:, g], required, rtol=1e-9)
        assert result.unresolved_count[g] == (left[0].sum(1) < required).sum()
    assert 0 < result.unresolved_count.min() <= result.unresolved_count.max() < 6


def test_category_bootstrap_equals_a_loop_over_resampled_clusters(sums):
    n, s1, s2 = sums
    result = category_bootstrap(n, s1, s2, replicates=200, seed=3)
    draws = np.random.default_rng(3).integers(9, size=(200, 9))
    icc = np.array([cluster_icc(n[:, draw], s1[:, draw], s2[:, draw]) for draw in draws])
    size = np.array([n[:, draw].sum(1) / 9 for draw in draws])
    effect = np.array([design_effect(i, m) for i, m in zip(icc[:, :5], size[:, :5], strict=True)])
    iid = required_n(n.sum(1), (s2 + s1).sum(1) / 2, (s2 - s1).sum(1) / 2)[:5]
    assert_allclose(result.icc[:5], np.quantile(icc[:, :5], [0.05, 0.95], axis=0).T, rtol=1e-9)
    assert_allclose(result.design_effect[:5], np.quantile(effect, [0.05, 0.95], axis=0).T, rtol=1e-9)
    assert_allclose(result.required_n[:5], np.quantile(effect * iid, [0.05, 0.95], axis=0).T, rtol=1e-9)
    assert_allclose(result.unresolved[:5], (effect * iid > n.sum(1)[:5]).mean(0))
    assert_allclose(result.unresolved_count.sum(), 1)
    assert_allclose((result.unresolved_count * np.arange(7)).sum(), result.unresolved.sum())


def test_a_pair_without_items_in_a_cluster_has_no_sensitivity_and_stops_no_other():
    n, s1, s2 = [[0, 0, 0], [50, 50, 50]], [[0, 0, 0], [10, 10, 30]], [[0, 0, 0], [20, 20, 30]]
    left, resampled = leave_one_out(n, s1, s2), category_bootstrap(n, s1, s2, replicates=20)
    assert np.isnan(left.icc[0]).all()
    assert np.isnan(resampled.icc[0]).all()
    alone = leave_one_out(n[1:], s1[1:], s2[1:])
    assert_array_equal(left.required_n[1:], alone.required_n)


def test_category_bootstrap_of_a_tied_pair_is_unresolved():
    result = category_bootstrap([[5, 5]], [[1, -1]], [[3, 3]], replicates=50)
    assert np.isinf(result.required_n).all()
    assert result.unresolved_count.tolist() == [0, 1]


def test_random_clusters_have_no_icc_and_halves_inherit_it():
    rng = np.random.default_rng(8)
    labels = np.repeat(np.arange(14), 400)
    d = np.sign(rng.random(5600) - 0.5 + 0.2 * np.linspace(-1, 1, 14)[labels])
    icc = {
        name: float(cluster_icc(*cluster_sums(d, made, made.max() + 1)))
        for name, made in (
            ("own", labels),
            ("random", random_clusters(5600, 14, rng)),
            ("halves", split_halves(labels)),
        )
    }
    assert icc["own"] > 0.03
    assert abs(icc["random"]) < 0.005
    assert abs(icc["halves"] / icc["own"] - 1) < 0.25


def test_definitions_partition_the_items():
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 5, 101)
    halves = split_halves(labels)
    assert_array_equal(halves // 2, labels)
    counts = np.bincount(halves, minlength=10).reshape(5, 2)
    assert ((counts[:, 0] - counts[:, 1]) <= 1).all()
    assert ((counts[:, 0] - counts[:, 1]) >= 0).all()
    quartiles = difficulty_clusters(rng.random(400))
    assert np.bincount(quartiles).tolist() == [100] * 4


# --- the cluster e-process -------------------------------------------------------------------------------------------


def test_reference_values_of_the_cluster_e_process():
    assert_allclose(cluster_e_max(14), 1032.9058, atol=1e-4)
    assert clusters_needed(0.10) == 57
    assert clusters_needed(0.05) == 111
    assert clusters_needed(-0.05) == 111


def test_both_mixtures_equal_their_definition():
    n, s1 = np.array([4, 10, 3, 8]), np.array([3, -2, 0, 6])
    means = s1 / n
    log_e, plus, minus = cluster_e_process(n, s1)
    grid = [np.prod(1 + bet * means) for bet in 2 * np.r_[0.01:0.495:0.01, 0.51:0.995:0.01] - 1]
    assert len(grid) == 98
    assert_allclose(np.exp(log_e), np.mean(grid))
    assert_allclose([np.exp(plus), np.exp(minus)], [np.mean(grid[49:]), np.mean(grid[:49])])
    log_e, plus, minus = cluster_e_process(n, s1, mixture="beta(1,1)")
    capital = lambda bet: np.prod(1 + bet * means)  # noqa: E731
    assert_allclose(np.exp(log_e), quad(capital, -1, 1)[0] / 2)
    assert_allclose([np.exp(plus), np.exp(minus)], [quad(capital, 0, 1)[0], quad(capital, -1, 0)[0]])


def test_open_and_empty_clusters_make_no_bet():
    n, s1 = np.array([[4, 10, 0, 8]]), np.array([[3, -2, 0, 6]])
    closed = np.array([True, False, True, True])
    assert_allclose(cluster_e_process(n, s1, closed), cluster_e_process([[4, 8]], [[3, 6]]))
    assert_allclose(cluster_e_process(n, s1, np.zeros(4, dtype=bool)), 0, atol=1e-12)


def test_the_mean_e_value_is_one_under_the_null_by_enumeration():
    # Cluster means on {-1, -1/2, 0, 1/2, 1} with a symmetric law: all 5^4 sequences.
    law = np.array([0.1, 0.2, 0.4, 0.2, 0.1])
    index = np.stack(np.meshgrid(*[np.arange(5)] * 4, indexing="ij"), -1).reshape(-1, 4)
    probability = law[index].prod(1)
    n = np.full(index.shape, 2)
    for mixture in ("grid98", "beta(1,1)"):
        for part in cluster_e_process(n, index - 2.0, mixture=mixture):
            assert_allclose((probability * np.exp(part)).sum(), 1, rtol=1e-12)


def test_swapping_the_models_or_relabelling_the_clusters_changes_no_verdict(sums):
    n, s1, s2 = sums
    turned = np.random.default_rng(0).permutation(9)
    for m, d1, d2 in ((n, -s1, s2), (n[:, turned], s1[:, turned], s2[:, turned])):
        assert_allclose(cluster_icc(m, d1, d2), cluster_icc(n, s1, s2), rtol=1e-9)
        assert_allclose(clustered_p(m, d1), clustered_p(n, s1), rtol=1e-9)
    log_e, plus, minus = cluster_e_process(n, s1)
    assert_allclose(cluster_e_process(n, -s1), (log_e, minus, plus), rtol=1e-9)


@pytest.mark.parametrize("rounds", [50, 1])
@pytest.mark.parametrize("effect", [0.0, 2.0, 8.0])
def test_thresholds_on_t_reject_what_holm_rejects(effect, rounds, monkeypatch):
    monkeypatch.setattr(robust, "_ROUNDS", rounds)
    rng = np.random.default_rng(2)
    df = rng.integers(1, 14, 500).astype(float)
    t = np.abs(rng.standard_t(df) + effect)
    p = 2 * student.sf(t, df)
    for m in (500, 900):
        assert_array_equal(holm_rejects(t, df, m, 0.05), holm(p, m) <= 0.05)
    assert holm_rejects(np.full(3, 1e9), np.ones(3), 3, 0.05).all()

"""Generators against the laws they promise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import beta, kstest, multivariate_normal, norm

from stats.fixed_n.resolution import hoeffding_bounds
from stats.planning.simulate import (
    bernoulli_joint,
    equal_models,
    graded_beta,
    latent_gaussian,
    latent_joint,
    paired_bernoulli,
)

SIZE = 40_000


def frequencies(x_a, x_b):
    return np.bincount(3 - 2 * x_a - x_b, minlength=4) / x_a.size


@pytest.mark.parametrize(("p_a", "p_b", "rho"), [(0.65, 0.6, 0.3), (0.9, 0.5, -0.2), (0.2, 0.2, 1.0), (0.5, 0.5, -1.0)])
def test_paired_bernoulli_has_exactly_these_accuracies_and_this_correlation(p_a, p_b, rho):
    cells = bernoulli_joint(p_a, p_b, rho)
    assert_allclose(cells.sum(), 1)
    assert_allclose([cells[0] + cells[1], cells[0] + cells[2]], [p_a, p_b])
    assert_allclose((cells[0] - p_a * p_b) / np.sqrt(p_a * (1 - p_a) * p_b * (1 - p_b)), rho)
    seen = frequencies(*paired_bernoulli(p_a, p_b, rho, SIZE, np.random.default_rng(1)))
    assert_allclose(seen, cells, atol=4 * 0.5 / np.sqrt(SIZE))
    assert (seen[cells == 0] == 0).all()


def test_correlations_at_the_hoeffding_bounds_are_reached_and_beyond_refused():
    low, high = hoeffding_bounds(0.7, 0.6)
    assert bernoulli_joint(0.7, 0.6, high)[2] == pytest.approx(0)
    assert bernoulli_joint(0.7, 0.6, low)[3] == pytest.approx(0)
    with pytest.raises(ValueError, match="rho must lie within its Hoeffding bounds"):
        bernoulli_joint(0.7, 0.6, high + 0.01)


@pytest.mark.parametrize("rho", [-1.0, -0.9999, -0.7, 0.0, 0.4, 0.95, 0.999, 1.0])
@pytest.mark.parametrize(("p_a", "p_b"), [(0.65, 0.6), (0.9, 0.5), (0.05, 0.97), (0.7, 0.7)])
def test_latent_joint_is_the_bivariate_normal_probability(p_a, p_b, rho):
    law = multivariate_normal(cov=[[1, rho], [rho, 1]], allow_singular=True)
    expected = law.cdf(norm.ppf([p_a, p_b])) if abs(rho) < 1 else min(p_a, p_b) if rho > 0 else max(p_a + p_b - 1, 0)
    cells = latent_joint(p_a, p_b, rho)
    assert_allclose(cells[0], expected, atol=2e-5 if abs(rho) > 0.99 else 1e-7)
    assert_allclose([cells.sum(), cells[0] + cells[1], cells[0] + cells[2]], [1, p_a, p_b])
    assert (cells >= 0).all()


def test_latent_gaussian_has_the_law_of_latent_joint():
    seen = frequencies(*latent_gaussian(0.7, 0.6, 0.8, SIZE, np.random.default_rng(3)))
    assert_allclose(seen, latent_joint(0.7, 0.6, 0.8), atol=4 * 0.5 / np.sqrt(SIZE))


def test_graded_beta_has_beta_marginals_and_the_gap():
    x_a, x_b = graded_beta(0.05, 0.6, SIZE, np.random.default_rng(4))
    assert kstest(x_b, beta(4, 2).cdf).pvalue > 1e-3
    assert kstest(x_a, beta(6 * (4 / 6 + 0.05), 6 * (2 / 6 - 0.05)).cdf).pvalue > 1e-3
    assert_allclose((x_a - x_b).mean(), 0.05, atol=4 * (x_a - x_b).std() / np.sqrt(SIZE))
    scores = [norm.ppf(beta(6 * m, 6 * (1 - m)).cdf(x)) for m, x in ((4 / 6 + 0.05, x_a), (4 / 6, x_b))]
    assert_allclose(np.corrcoef(scores)[0, 1], 0.6, atol=0.02)


def test_equal_models_are_equal_on_every_item_and_share_its_difficulty():
    p = np.where(np.arange(SIZE) < SIZE // 2, 0.9, 0.3)
    x = equal_models(3, p, 0.6, SIZE, np.random.default_rng(5))
    assert_allclose(x[:, : SIZE // 2].mean(1), 0.9, atol=0.01)
    assert_allclose(x[:, SIZE // 2 :].mean(1), 0.3, atol=0.015)
    assert_allclose(frequencies(x[0, SIZE // 2 :], x[2, SIZE // 2 :]), latent_joint(0.3, 0.3, 0.6), atol=0.015)


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: paired_bernoulli(0.6, 0.5, 0.2, 100, rng),
        lambda rng: latent_gaussian(0.6, 0.5, 0.2, 100, rng),
        lambda rng: graded_beta(0.1, 0.2, 100, rng),
        lambda rng: equal_models(4, 0.6, 0.2, 100, rng),
    ],
)
def test_the_seed_decides(draw):
    assert_array_equal(draw(np.random.default_rng(7)), draw(np.random.default_rng(7)))
    assert np.any(np.asarray(draw(np.random.default_rng(7))) != np.asarray(draw(np.random.default_rng(8))))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda rng: paired_bernoulli(0.0, 0.5, 0.0, 10, rng), "p_a"),
        (lambda rng: latent_gaussian(0.5, 1.0, 0.0, 10, rng), "p_b"),
        (lambda rng: latent_gaussian(0.5, 0.5, 1.5, 10, rng), "rho"),
        (lambda rng: graded_beta(0.5, 0.0, 10, rng), "gap"),
        (lambda rng: graded_beta(0.0, 0.0, 10, rng, shape=(0.0, 1.0)), "shape"),
        (lambda rng: equal_models(0, 0.5, 0.0, 10, rng), "models"),
        (lambda rng: equal_models(2, 0.5, -0.1, 10, rng), "rho"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValueError, match=match):
        call(np.random.default_rng(0))

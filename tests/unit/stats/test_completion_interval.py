"""Intervals under policy completion: reference values, direct inversion, enumeration of verdicts and of coverage."""

from math import log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import binom, binomtest, norm

from stats import (
    clopper_pearson_gap,
    completion_interval,
    curtailed_side,
    score_interval,
    score_z,
)
from stats.evidence.graded import LAMBDAS, graded_completion_bound, histogram_capital
from tests.stats_reference import graded_completion_interval

LEVELS = (0.5, 0.2, 0.05, 0.05 / 9, 0.05 / 406, 1e-6, 1e-9)


def tables(*sizes):
    """Return every (N, b, c, missing)."""
    return np.array(
        [
            (n, b, c, rest)
            for n in sizes
            for b in range(n + 1)
            for c in range(n - b + 1)
            for rest in range(n - b - c + 1)
        ]
    ).T


def test_reference_values():
    low, high = clopper_pearson_gap(12032, [1680, 1680, 352, 32], [1454, 1454, 242, 20], [0, 100, 0, 0])
    assert_allclose(low, [0.00959064, 0.00112644, 0.00512024, -0.000257711], rtol=5e-6)
    assert_allclose(high, [0.0279408, 0.0363659, 0.0130730, 0.00213457], rtol=5e-6)
    low, high = score_interval(50, 12, 2)
    assert (round(float(low), 4), round(float(high), 4)) == (0.0611, 0.3447)


def test_clopper_pearson_against_scipy():
    rng = np.random.default_rng(0)
    for b, c in rng.integers(0, 300, (30, 2)).tolist():
        exact = binomtest(b, b + c).proportion_ci(0.95)
        low, high = clopper_pearson_gap(1000, b, c)
        assert_allclose([low, high], (2 * np.array([exact.low, exact.high]) - 1) * (b + c) / 1000, atol=1e-10)


def test_the_score_statistic_is_that_of_the_constrained_likelihood():
    for n, b, c in ((50, 12, 2), (30, 0, 4), (40, 9, 9), (25, 25, 0), (200, 3, 0)):
        for gap in (-0.6, -0.1, 0.02, 0.3):

            def loss(q, n=n, b=b, c=c, gap=gap):
                chances = np.maximum([q + gap, q, 1 - 2 * q - gap], 1e-300)
                return -np.array([b, c, n - b - c]) @ np.log(chances)

            ends = max(0, -gap), (1 - gap) / 2
            q = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-12}).x
            z = (b - c - n * gap) / np.sqrt(n * (2 * q + gap - gap**2))
            assert_allclose(score_z(n, b, c, gap), z, rtol=2e-4)
    assert_allclose(score_z(100, 12, 5), 7 / np.sqrt(17))


@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-4])
def test_the_score_interval_inverts_its_statistic(alpha):
    n, b, c, rest = tables(1, 2, 9, 14)
    n, b, c = (x[rest == 0] for x in (n, b, c))
    low, high = score_interval(n, b, c, alpha)
    z = -norm.ppf(alpha / 2)
    inside = (low > -1) & (low < 1)
    assert_allclose(score_z(n, b, c, low)[inside], z, rtol=1e-6)
    inside = (high > -1) & (high < 1)
    assert_allclose(score_z(n, b, c, high)[inside], -z, rtol=1e-6)
    assert ((low <= (b - c) / n) & ((b - c) / n <= high)).all()
    assert score_interval(0, 0, 0) == (-1, 1)
    reference = brentq(lambda gap: score_z(1000, 80, 61, gap) - z, -0.5, 0.019)
    assert_allclose(score_interval(1000, 80, 61, alpha)[0], reference, atol=1e-11)


@pytest.mark.parametrize("alpha", LEVELS)
def test_the_interval_leaves_out_0_exactly_when_the_exact_test_decides(alpha):
    n, b, c, rest = tables(5, 14, 30)
    low, high = completion_interval(n, b, c, rest, alpha)
    side = curtailed_side(b, c, rest, -log(alpha))
    assert_array_equal(low > 0, side > 0)
    assert_array_equal(high < 0, side < 0)
    assert ((low <= high) & (low >= -1) & (high <= 1)).all()
    done = rest == 0
    assert (low <= (b - c) / n)[done].all()


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.05 / 9, 1e-3])
def test_without_help_both_parts_agree_with_the_exact_test_at_these_levels(alpha):
    n, b, c, rest = tables(30)
    side = curtailed_side(b, c, rest, -log(alpha))
    worst = -norm.ppf(alpha / 2) - 1e-9
    assert (score_z(n, b, c + rest)[side > 0] >= worst).all()
    low = clopper_pearson_gap(n, b, c, rest, alpha)[0]
    assert_array_equal(low > 1e-14, side > 0)


@pytest.mark.parametrize("alpha", [0.3, 0.05, 1e-3])
def test_bounds_only_move_inward_as_items_arrive(alpha):
    n, b, c, rest = tables(6, 13, 18)
    n, b, c, rest = (x[rest > 0] for x in (n, b, c, rest))
    low, high = completion_interval(n, b, c, rest, alpha)
    for win, loss in ((1, 0), (0, 1), (0, 0)):
        then_low, then_high = completion_interval(n, b + win, c + loss, rest - 1, alpha)
        assert (then_low >= low - 1e-12).all()
        assert (then_high <= high + 1e-12).all()


@pytest.mark.parametrize(("items", "discordance"), [(50, 0.04), (50, 0.3), (100, 0.3)])
def test_coverage_of_the_gap_by_enumeration(items, discordance):
    b, c = (x.ravel() for x in np.meshgrid(np.arange(items + 1), np.arange(items + 1)))
    b, c = b[b + c <= items], c[b + c <= items]
    for theta, at_least in ((0.5, 0.969), (0.9, 0.949), (1.0, 0.937)):
        chance = binom.pmf(b + c, items, discordance) * binom.pmf(b, b + c, theta)
        some = chance > 1e-12
        low, high = completion_interval(items, b[some], c[some], 0)
        gap = discordance * (2 * theta - 1)
        assert chance[some][(low <= gap) & (gap <= high)].sum() >= at_least


def plain_capital(differences, gap, bets):
    return np.mean([np.prod(1 + bet * (differences - gap) / (1 + gap)) for bet in bets])


def test_the_graded_interval_inverts_its_bets_in_any_order():
    rng = np.random.default_rng(2)
    values = np.array([-1, -0.5, -0.1, 0, 0.3, 1])
    counts = rng.multinomial(120, [0.1, 0.1, 0.2, 0.2, 0.3, 0.1], 6)
    missing = np.array([0, 0, 5, 5, 20, 60])
    low, high = graded_completion_interval(values, counts, missing)
    for pair in range(6):
        rows = np.repeat(values, counts[pair])
        for bound, sign in ((low[pair], 1), (high[pair], -1)):
            worst = np.r_[sign * rows, -np.ones(missing[pair])]
            assert plain_capital(worst, sign * bound, LAMBDAS) == pytest.approx(40, rel=1e-6)
        assert low[pair] <= (rows.sum() - missing[pair]) / (120 + missing[pair])
    assert (np.diff(high - low)[[1, 3, 4]] > 0).all()


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-3])
def test_the_graded_interval_leaves_out_0_exactly_when_the_bound_decides(alpha):
    rng = np.random.default_rng(3)
    values = np.array([-1, -0.25, 0, 0.5, 1])
    counts = rng.multinomial(300, [0.1, 0.2, 0.2, 0.3, 0.2], 200)
    counts[:100] = counts[:100, ::-1]
    missing = rng.integers(0, 12, 200)
    low, high = graded_completion_interval(values, counts, missing, alpha)
    for_a, for_b = graded_completion_bound(histogram_capital(values, counts), missing)
    assert_array_equal(low > 0, for_a >= -np.log(alpha))
    assert_array_equal(high < 0, for_b >= -np.log(alpha))
    assert (low > 0).any()
    assert (low <= high).all()
    # A pair decided exactly at its level, whatever the rounding of the root.
    own = np.exp(-for_a[for_a > 0.7])
    assert (graded_completion_interval(values, counts[for_a > 0.7], missing[for_a > 0.7], own)[0] > 0).all()
    swapped = graded_completion_interval(-values, counts, missing, alpha)
    assert_allclose(swapped, (-high, -low), atol=1e-9)


def test_the_graded_interval_covers_a_gap_and_limits():
    values, chances = np.array([-1, -0.5, 0, 0.5, 1]), np.array([0.05, 0.1, 0.5, 0.25, 0.1])
    counts = np.random.default_rng(4).multinomial(400, chances, 1000)
    low, high = graded_completion_interval(values, counts, 0, 0.2)
    gap = chances @ values
    assert ((low > gap) | (high < gap)).mean() <= 0.2
    nothing = graded_completion_interval([0.0], [[0]], [0])
    assert_allclose(nothing, [[-1], [1]])
    low, high = graded_completion_interval([-1.0], [[50]], [0])
    assert low[0] == -1
    assert -1 < high[0] < 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: completion_interval(10, 5, 3, 3), "b . c . missing must not exceed items"),
        (lambda: completion_interval(10, 5, -1, 0), "c must be non-negative"),
        (lambda: completion_interval(10, 5, 1, 0, 1.0), "alpha must lie strictly"),
        (lambda: score_interval(3, 2, 2), "b . c must not exceed n"),
        (lambda: score_z(3, 2, 1, 1.5), "gap must lie in"),
        (lambda: graded_completion_interval([0.5], [[-1]], [0]), "counts must be non-negative"),
        (lambda: graded_completion_interval([1.5], [[1]], [0]), "values must lie in"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

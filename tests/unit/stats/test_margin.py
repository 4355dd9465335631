"""Not worse by more than a margin: against integrals, enumeration of every outcome, and exact crossing probabilities."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multinomial

import stats


@pytest.mark.parametrize(
    ("n", "b", "c", "bound"),
    [
        (300, 6, 6, -0.03),
        (10, 0, 0, -0.03),
        (50, 3, 20, -0.1),
        (5000, 900, 800, -0.02),
        (40, 0, 40, -0.3),
        (40, 40, 0, 0.2),
        (0, 0, 0, -0.1),
    ],
)
@pytest.mark.parametrize("a", [1, 10])
def test_the_evidence_is_the_integral_of_the_bets(n, b, c, bound, a):
    def density(s):
        return (1 - s * s) ** (a - 1)

    def capital(s):
        up, tie = (1 - bound) / (1 + bound), -bound / (1 + bound)
        return (1 + s * up) ** b * (1 - s) ** c * (1 + s * tie) ** (n - b - c) * density(s)

    whole = quad(capital, 0, 1, limit=500, epsabs=0, points=[0.01, 0.05, 0.1, 0.3])[0]
    expected = np.log(whole / quad(density, 0, 1)[0])
    assert float(stats.excess_log_e(n, b, c, bound, f"beta({a},{a})")) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("mixture", ["beta(1,1)", "beta(10,10)", "grid98", "two_point(.4,.6)"])
def test_against_equality_it_is_the_half_of_the_usual_evidence(mixture):
    b, c = np.array([5, 1680, 0, 30]), np.array([0, 1454, 9, 30])
    halves = stats.log_e_halves(b, c, mixture)
    assert stats.excess_log_e(20_000, b, c, 0.0, mixture) == pytest.approx(halves[0], abs=1e-7)
    assert stats.excess_log_e(20_000, c, b, 0.0, mixture) == pytest.approx(halves[1], abs=1e-7)


def outcomes_of(items):
    """How many sequences of differences have b wins and c losses."""
    return Counter((o.count(1), o.count(-1)) for o in product((1, 0, -1), repeat=items))


@pytest.mark.parametrize(("discordance", "bound"), [(0.4, -0.2), (0.7, 0.3), (0.2, -0.2)])
def test_the_mean_over_every_outcome_is_one_at_the_bound_and_below_one_beyond_it(discordance, bound):
    def mean(gap, items=6):
        right, wrong = (discordance + gap) / 2, (discordance - gap) / 2
        total, graded = 0.0, 0.0
        for (b, c), outcomes in outcomes_of(items).items():
            p = outcomes * right**b * wrong**c * (1 - discordance) ** (items - b - c)
            total += p * np.exp(float(stats.excess_log_e(items, b, c, bound)))
            graded += p * np.exp(float(stats.graded_excess_log_e([1] * b + [-1] * c + [0] * (items - b - c), bound)))
        return total, graded

    assert mean(bound) == pytest.approx((1, 1), abs=1e-6)
    if discordance > abs(bound):
        assert max(mean(bound - 0.1 * discordance)) < 1
        assert min(mean(bound + 0.1 * discordance)) > 1


def crossing(items, discordance, gap, bound, threshold):
    """The exact probability that the evidence reaches a threshold within some items, over the lattice of (b, c)."""
    right, wrong, tie = (discordance + gap) / 2, (discordance - gap) / 2, 1 - discordance
    size = 60
    b, c = np.indices((size, size))
    weight, crossed = np.zeros((size, size)), 0.0
    weight[0, 0] = 1
    for n in range(1, items + 1):
        new = tie * weight
        new[1:] += right * weight[:-1]
        new[:, 1:] += wrong * weight[:, :-1]
        assert new[-1].sum() + new[:, -1].sum() < 1e-9
        valid = new > 1e-13
        reached = np.zeros((size, size), bool)
        reached[valid] = stats.excess_log_e(n, b[valid], c[valid], bound) >= threshold
        crossed += new[reached].sum()
        weight = np.where(reached | ~valid, 0, new)
    return crossed + items * size**2 * 1e-13


def test_a_false_pass_at_the_margin_stays_below_alpha_and_equal_models_pass():
    """4 % of the items discordant, margin 3 points: exact probabilities within 400 items; the median of equal models is below 340."""
    threshold = np.log(20)
    assert crossing(400, 0.04, -0.03, -0.03, threshold) <= 0.05
    assert crossing(340, 0.04, 0.0, -0.03, threshold) > 0.5


def test_the_score_test_has_its_size_and_missing_items_only_raise_p():
    """Exact size at N = 400 for two discordances; then every filling of the missing items against the worst one."""
    n = 400
    for discordance in (0.08, 0.2):
        b, c = np.indices((n // 2, n // 2))
        rejects = stats.excess_p(n, b, c, -0.03) <= 0.05
        weight = multinomial(n, [(discordance - 0.03) / 2, (discordance + 0.03) / 2, 1 - discordance]).pmf(
            np.stack([b, c, n - b - c], axis=-1)
        )
        assert 0.04 < weight[rejects].sum() < 0.0515
    items, missing = 12, 3
    for bound in (-0.3, -0.1, -0.03, 0.1):
        for b, c in product(range(items - missing + 1), repeat=2):
            if b + c > items - missing:
                continue
            worst = stats.excess_p(items - missing, b, c, bound, missing)
            filled = [
                stats.excess_p(items, b + x, c + y, bound)
                for x, y in product(range(missing + 1), repeat=2)
                if x + y <= missing
            ]
            assert worst > 0.5 or max(filled) <= worst + 1e-12


def test_the_bounds_are_where_the_evidence_leaves_the_threshold():
    n, b, c = np.array([300, 1319, 60]), np.array([6, 26, 30]), np.array([6, 30, 0])
    low = stats.excess_low_anytime(n, b, c)
    assert stats.excess_log_e(n, b, c, low) == pytest.approx(np.log(20), abs=1e-4)
    low = stats.excess_low(n, b, c, missing=5)
    assert stats.excess_p(n, b, c, low, 5) == pytest.approx(0.05, abs=1e-6)
    d = np.tile([0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1], 20)
    low = stats.graded_excess_low(d, 0.05, 4)
    assert float(stats.graded_excess_log_e(d, low, 4)) == pytest.approx(np.log(20), abs=1e-4)
    assert stats.graded_excess_low([], 0.05) == -1


def test_the_path_of_graded_scores_ends_at_the_value_of_all_items_and_skips_count_as_missing_ones():
    rng = np.random.default_rng(5)
    d = rng.uniform(-1, 1, 300).round(2)
    path = stats.graded_excess_log_e(d, -0.1, path=True)
    for k in (1, 2, 57, 300):
        assert path[k - 1] == pytest.approx(float(stats.graded_excess_log_e(d[:k], -0.1)))
    lost = np.concatenate([d, [-1.0, -1.0]])
    assert float(stats.graded_excess_log_e(d, -0.1, 2)) == pytest.approx(float(stats.graded_excess_log_e(lost, -0.1)))


def test_a_forecast_of_items():
    assert stats.excess_required_n(-0.03, 0.1, -0.03) == float("inf")
    needed = stats.items_to_excess(lambda x: float(stats.excess_log_e(200 * x, 4 * x, 4 * x, -0.03)), 200, np.log(20))
    grown = needed / 200
    assert float(stats.excess_log_e(200 * grown, 4 * grown, 4 * grown, -0.03)) == pytest.approx(np.log(20), abs=1e-3)
    assert stats.items_to_excess(lambda _: 0.0, 200, 3.0) == float("inf")

"""Not worse by more than a margin: against integrals, enumeration of every outcome, and exact crossing probabilities."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln, xlogy
from scipy.stats import binom, multinomial

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


def largest_chance(n, b, c, bound, points=2_000):
    """The largest probability, over a grid of q, of a score statistic at least as large: each table summed."""
    wins, losses = np.indices((n + 1, n + 1))
    wins, losses = wins[wins + losses <= n], losses[wins + losses <= n]
    tail = stats.score_z(n, wins, losses, bound) >= float(stats.score_z(n, b, c, bound)) - 1e-9
    wins, losses = wins[tail, None], losses[tail, None]
    q = (1 - abs(bound)) / 2 * np.sin(np.linspace(0, np.pi / 2, points)) ** 2
    right, wrong = q + max(bound, 0), q + max(-bound, 0)
    log = xlogy(wins, right) + xlogy(losses, wrong) + xlogy(n - wins - losses, np.maximum(1 - right - wrong, 0))
    log += gammaln(n + 1) - gammaln(wins + 1) - gammaln(losses + 1) - gammaln(n - wins - losses + 1)
    return np.exp(log).sum(axis=0).max()


def test_p_is_that_of_the_exact_unconditional_test():
    """The third is .0133 on a coarse grid of q; without ties, at q = .485, the probability of the tail is .01408."""
    p = stats.excess_p([25, 133, 300], [0, 0, 6], [0, 0, 6], [-0.1, -0.02, -0.03])
    assert p == pytest.approx([0.07179, 0.06809, 0.01408], abs=5e-6)
    z = float(stats.score_z(300, 6, 6, -0.03))
    wins, losses = np.indices((301, 301))
    tail = (wins + losses <= 300) & (stats.score_z(300, np.minimum(wins, 300 - losses), losses, -0.03) >= z - 1e-9)
    counts = np.stack([wins, losses, 300 - wins - losses], axis=-1)[tail]
    assert multinomial(300, [0.485, 0.515, 0]).pmf(counts).sum() == pytest.approx(0.01408, abs=5e-6)


@pytest.mark.parametrize("bound", [-0.6, -0.1, -0.03, -0.01, 0.0, 0.02, 0.3])
def test_p_is_never_below_the_exact_one_and_hardly_above(bound):
    rng = np.random.default_rng(7)
    for n in (1, 2, 7, 30, 61):
        for _ in range(6):
            b = int(rng.integers(0, n + 1))
            c = int(rng.integers(0, min(n - b, 1 + n // 8) + 1))
            p, exact = float(stats.excess_p(n, b, c, bound)), largest_chance(n, b, c, bound)
            if b - c > n * bound + 1e-9:
                assert exact * (1 - 1e-9) <= p <= exact * 1.0012  # of a grid, which misses the largest by a little
            else:
                assert p == 1


def test_p_of_many_items_is_above_each_exact_probability_summed_in_another_way():
    """N = 12,032, by scipy's binomial distribution for each number of losses."""
    n, b, c, bound = 12_032, 100, 110, -0.003
    z, p = float(stats.score_z(n, b, c, bound)), float(stats.excess_p(n, b, c, bound))
    largest = 0.0
    for q in (1e-5, 1e-4, 3e-4, 0.001, 0.01, 0.1, 0.45, 0.49, 0.495, 0.498):
        lost = np.arange(*binom.ppf([1e-13, 1 - 1e-13], n, q - bound).astype(int))
        low, high = np.full((2, lost.size), -1), n - lost + 1  # the fewest wins of the tail
        while (high - low > 1).any():
            middle = (low[0] + high) // 2
            inside = stats.score_z(n, np.clip(middle, 0, n - lost), lost, bound) >= z - 1e-9
            low, high = np.where(inside, low, middle), np.where(inside, middle, high)
        chance = binom.pmf(lost, n, q - bound) * binom.sf(high - 1, n - lost, q / (1 - q + bound))
        largest = max(largest, float(chance.sum()))
        assert chance.sum() <= p
    assert p <= largest * 1.05


def test_p_only_falls_as_missing_items_come():
    """Every filling of the missing items against the worst one; p has four digits."""
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
            assert max(filled) <= worst * (1 + 1e-4)


def test_counts_of_items_are_whole():
    with pytest.raises(ValueError, match="b must be whole numbers"):
        stats.excess_p(10, 0.5, 1, -0.1)


def test_the_bounds_are_where_the_evidence_leaves_the_threshold():
    n, b, c = np.array([300, 1319, 60]), np.array([6, 26, 30]), np.array([6, 30, 0])
    low = stats.excess_low_anytime(n, b, c)
    assert stats.excess_log_e(n, b, c, low) == pytest.approx(np.log(20), abs=1e-4)
    low = stats.excess_low(n, b, c, missing=5)
    assert low == pytest.approx(stats.completion_interval(n + 5, b, c, 5, 0.1)[0])
    assert ((stats.excess_p(n, b, c, low, 5) > 0.03) & (stats.excess_p(n, b, c, low, 5) < 0.05)).all()
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

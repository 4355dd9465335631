"""Power of the cluster-robust test, next to scipy's noncentral t, and what a pilot shows, next to integration."""

import numpy as np
import pytest
from scipy.stats import beta, nct, t

from stats.clusters.design import MANY, cluster_power, cluster_size_for_power, clusters_for_power
from stats.fixed_n.power import leader_power
from stats.planning.pilot import ADDED_WINS, PilotEffect


@pytest.mark.parametrize(
    ("clusters", "size", "icc"), [(3, 100, 0.02), (14, 8_571, 0.036), (50, 1, 0.0), (8, MANY, 0.1)]
)
def test_power_is_that_of_the_noncentral_t(clusters, size, icc):
    error = 0.5 * np.sqrt((1 - icc) / (clusters * size) + icc / clusters)
    expected = nct.sf(t.ppf(0.975, clusters - 1), clusters - 1, 0.066 / error)
    assert cluster_power(0.066, 0.5, clusters, size, icc) == pytest.approx(expected, abs=1e-9)


def test_fourteen_clusters_have_a_floor():
    """14 clusters, ICC .036, gap 6.6 points: .70 at 120,000 items, and no number reaches .80."""
    assert cluster_power(0.066, 0.487, 14, 120_000 / 14, 0.036) == pytest.approx(0.70, abs=0.01)
    assert cluster_size_for_power(0.066, 0.487, 14, 0.036) == np.inf
    needed = clusters_for_power(0.066, 0.487, MANY, 0.036)
    assert cluster_power(0.066, 0.487, needed, 1e9, 0.036) >= 0.8 > cluster_power(0.066, 0.487, needed - 1, 1e9, 0.036)


def test_sizes_and_numbers_are_the_least_that_suffice():
    size = cluster_size_for_power(0.05, 0.5, 30, 0.02)
    assert cluster_power(0.05, 0.5, 30, size, 0.02) >= 0.8 > cluster_power(0.05, 0.5, 30, size - 1, 0.02)
    number = clusters_for_power(0.05, 0.5, 40, 0.02)
    assert cluster_power(0.05, 0.5, number, 40, 0.02) >= 0.8 > cluster_power(0.05, 0.5, number - 1, 40, 0.02)


@pytest.mark.parametrize(
    "arguments", [(0, 0.5, 14, 100, 0), (0.9, 0.0, 2, 1, 0), (1e-9, 0.5, 2, 1e12, 0), (1.0, 0.5, 10**9, 1e9, 0)]
)
def test_extremes_have_a_power(arguments):
    assert 0 <= cluster_power(*arguments) <= 1


def test_a_pilot_is_shrunk_and_its_power_averaged():
    effect = PilotEffect(120, 25, 12)
    assert 0 < effect.gap < effect.pilot_gap
    rng = np.random.default_rng(3)
    share = beta.rvs(0.5 + 37, 0.5 + 83, size=4_000, random_state=rng)
    theta = beta.rvs(ADDED_WINS + 25, ADDED_WINS + 12, size=4_000, random_state=rng)
    gaps = share * (2 * theta - 1)
    assert effect.gap == pytest.approx(gaps.mean(), abs=0.003)
    assert effect.interval() == pytest.approx(tuple(np.quantile(gaps, [0.025, 0.975])), abs=0.01)
    better = np.maximum(theta, 1 - theta)
    sampled = [leader_power(300, d * p, d * (1 - p)) for d, p in zip(share[:800], better[:800], strict=True)]
    assert effect.test_power(300) == pytest.approx(np.mean(sampled), abs=0.03)
    needed = effect.items_for_test_power()
    assert effect.test_power(needed) == pytest.approx(0.8, abs=0.003)


@pytest.mark.full
def test_a_plan_from_a_pilot_does_not_take_its_gap_for_the_truth():
    """Pilots of 100 items, true gap 5 points, 20 % discordant: their own gap plans for a power of .61 in the mean."""
    rng = np.random.default_rng(4)
    b, c, _ = rng.multinomial(100, [0.125, 0.075, 0.8], 30).T
    own, averaged = [], []
    for wins, losses in zip(b.tolist(), c.tolist(), strict=True):
        gap, share = (wins - losses) / 100, (wins + losses) / 100
        items = 7.849 * (share - gap**2) / gap**2 if gap else 1e6
        own.append(leader_power(max(round(items), 1), 0.125, 0.075))
        averaged.append(leader_power(round(PilotEffect(100, wins, losses).items_for_test_power()), 0.125, 0.075))
    assert np.mean(own) < 0.65
    assert np.mean(averaged) > 0.75


@pytest.mark.parametrize("counts", [(1, 1, 0), (1, 0, 0), (40, 40, 0), (50, 0, 0), (10**6, 3, 2)])
def test_extreme_pilots_have_a_plan(counts):
    effect = PilotEffect(*counts)
    low, high = effect.interval()
    assert -1 <= low <= effect.gap <= high <= 1
    assert effect.items_for_test_power() > 0
    assert effect.items_for_cluster_power(14, 0.02) > 0

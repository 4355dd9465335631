"""Error rates of the cluster e-process, the order diagnostic and settled, watched at every step."""

import os

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

from stats.clusters.eprocess import cluster_e_process
from stats.clusters.robust import clustered_p, effective_clusters
from stats.evidence.eprocess import log_e_value
from stats.evidence.settled import settled_log_e, settled_start, settled_steps
from stats.families.error_control import family_weights, step_down
from stats.order import order_diagnostic

FULL = os.environ.get("RANKWATCH_SLOW") == "1"
ALPHA = 0.05

pytestmark = pytest.mark.slow


def bound(streams):
    """Largest rate of false decisions that a level-ALPHA procedure may show: two standard errors above ALPHA."""
    return ALPHA + 2 * np.sqrt(ALPHA * (1 - ALPHA) / streams)


@pytest.mark.parametrize("mixture", ["grid98", "beta(1,1)"])
def test_cluster_e_process_keeps_its_level_where_the_item_e_process_does_not(mixture):
    streams, clusters, size = (20_000, 30, 40) if FULL else (1_000, 16, 40)
    rng = np.random.default_rng(21)
    # Each cluster has a large gap of its own, symmetric around 0: no model is better on a new cluster.
    gap = rng.choice([-0.9, -0.3, 0.3, 0.9], (streams, clusters))
    b = rng.binomial(size, 0.5 + gap / 2)
    c = size - b
    n, s1 = np.full((streams, clusters), size), b - c
    decided = np.zeros(streams, dtype=bool)
    for closed in range(1, clusters + 1):
        decided |= cluster_e_process(n[:, :closed], s1[:, :closed], mixture=mixture)[0] >= -np.log(ALPHA)
    assert decided.mean() <= bound(streams)
    assert decided.mean() > 0.005
    by_item = log_e_value(b.cumsum(1), c.cumsum(1), mixture).max(1) >= -np.log(ALPHA)
    assert by_item.mean() > 4 * ALPHA


@pytest.mark.parametrize(("clusters", "error"), [(3, 0.73), (14, 0.23)])
def test_the_clustered_test_errs_where_one_cluster_in_ten_looks_unlike_the_others(clusters, error):
    """Equal models over all clusters: one in ten has a gap of -27 points, the others of 3; 100 items each."""
    rng = np.random.default_rng(4)
    gaps = np.where(rng.random((20_000, clusters)) < 0.9, 3.0, -27.0) + rng.normal(0, 0.3, (20_000, clusters))
    assert (clustered_p(np.full(gaps.shape, 100.0), gaps) <= ALPHA).mean() == pytest.approx(error, abs=0.01)


MMLU_PRO = np.array([1351, 1299, 1132, 1101, 969, 924, 844, 818, 798, 789, 717, 499, 410, 381])
"""Items of the fourteen categories of MMLU-Pro."""


def cluster_sizes(kind, clusters):
    """Sizes of clusters: equal, one with two thirds of the items, two with 40 % each, or at lognormal quantiles (sigma 1)."""
    if kind == "dominated":
        return np.r_[400 * (clusters - 1), np.full(clusters - 1, 200)]
    if kind == "two dominate":
        return np.r_[[800 * (clusters - 2)] * 2, np.full(clusters - 2, 400)]
    if kind == "lognormal":
        return np.ceil(200 * np.exp(norm.ppf((np.arange(clusters) + 0.5) / clusters))).astype(int)
    return MMLU_PRO if kind == "MMLU-Pro" else np.full(clusters, 200)


@pytest.mark.parametrize(
    ("kind", "clusters", "highest"),
    [
        *[("equal", clusters, 0.05) for clusters in (3, 5, 14, 50)],
        *[("dominated", clusters, 0.11) for clusters in (3, 5, 14, 50)],
        *[("two dominate", clusters, 0.23) for clusters in (5, 14, 50)],
        *[("lognormal", clusters, 0.09) for clusters in (5, 14, 50)],
        ("MMLU-Pro", 14, 0.06),
    ],
)
def test_the_clustered_test_errs_as_often_as_documented(kind, clusters, highest):
    streams = 20_000 if FULL else 4_000
    rng = np.random.default_rng(31)
    sizes = cluster_sizes(kind, clusters)
    gap = np.clip(rng.normal(0, np.sqrt(0.05 * 0.3), (streams, clusters)), -0.3, 0.3)
    wins = rng.binomial(sizes, (0.3 + gap) / 2)
    losses = rng.binomial(sizes - wins, (0.3 - gap) / 2 / (1 - (0.3 + gap) / 2))
    n, s1 = np.broadcast_to(sizes, wins.shape), wins - losses
    rate = (clustered_p(n, s1) <= ALPHA).mean()
    crossed = (
        np.sqrt(clusters / (clusters - 1) * ((s1 - n * (s1.sum(1) / n.sum(1))[:, None]) ** 2).sum(1)) + 1e-9
    )  # CR1
    unadjusted = (2 * student.sf(np.abs(s1.sum(1)) / crossed, clusters - 1) <= ALPHA).mean()
    error = np.sqrt(rate * (1 - rate) / streams)
    effective = float(effective_clusters(sizes))
    print(f"| {kind}, {clusters} | {effective:.1f} | {unadjusted:.3f} | {rate:.3f} ({error:.4f}) |")
    assert rate <= highest + 4 * np.sqrt(highest * (1 - highest) / streams)
    if kind == "equal":
        assert rate == pytest.approx(ALPHA, abs=4 * np.sqrt(ALPHA / streams))
        assert rate == pytest.approx(unadjusted, abs=0.001)


@pytest.mark.parametrize("shared_order", [True, False])
def test_order_diagnostic_keeps_its_level_over_the_life_of_a_benchmark(shared_order):
    streams, models, size = (5_000, 4, 1_100) if FULL else (300, 4, 300)
    rng = np.random.default_rng(22)
    cluster = rng.choice(6, size, p=[0.4, 0.2, 0.2, 0.1, 0.05, 0.05])
    model = np.repeat(np.arange(models), size)
    suspected = 0
    for _ in range(streams):
        one = rng.permutation(size)
        order = np.concatenate([one if shared_order else rng.permutation(size) for _ in range(models)])
        suspected += order_diagnostic(model, cluster[order], order, alpha=ALPHA).suspect
    assert suspected / streams <= bound(streams)


def test_order_diagnostic_finds_orders_that_break_the_guarantee():
    rng = np.random.default_rng(23)
    cluster = np.repeat(np.arange(14), 80)
    suspicions = {"blocks": 0, "lumps of ten": 0, "drift": 0}
    streams = 400 if FULL else 40
    for _ in range(streams):
        by_block = np.concatenate([np.flatnonzero(cluster == g) for g in rng.permutation(14)])
        lumps = rng.permutation(np.arange(1120).reshape(-1, 10)).ravel()
        drift = np.argsort(np.arange(1120) + rng.normal(0, 800, 1120))
        zeros = np.zeros(1120, dtype=int)
        suspicions["blocks"] += order_diagnostic(zeros, cluster[by_block]).suspect
        suspicions["lumps of ten"] += order_diagnostic(zeros, cluster[lumps]).suspect
        suspicions["drift"] += order_diagnostic(zeros, cluster[drift], drift).suspect
    assert min(suspicions.values()) > 0.95 * streams, suspicions


def test_settled_keeps_its_level_on_a_tied_benchmark():
    streams, items = (20_000, 240) if FULL else (1_500, 120)
    half = items // 6
    d = np.r_[np.ones(half), -np.ones(half), np.zeros(items - 2 * half)]
    order = np.random.default_rng(24).permuted(np.tile(d, (streams, 1)), axis=1)
    log_e = np.concatenate([settled_log_e(part, items)[0] for part in np.array_split(order, 10)])
    decided = (log_e.max(1) >= -np.log(ALPHA)).mean()
    assert 0.004 < decided <= bound(streams)


def tied_board(rng, models, items):
    """Return 0/1 scores, shape (models, items), of very different models with one total, and who skips which items because of them."""
    hard = rng.beta(0.7, 0.7, items)
    score = rng.random((models, items)) < hard
    for row in score:
        surplus = int(row.sum()) - items // 2
        swap = rng.choice(np.flatnonzero(row == (surplus > 0)), abs(surplus), replace=False)
        row[swap] = ~row[swap]
    skipped = (rng.random((models, items)) < 0.1) & ~score  # wrong answers come back null
    return score.astype(np.int64), skipped


@pytest.mark.parametrize("skips", [False, True])
def test_settled_keeps_its_level_over_a_family_of_tied_models_by_step_down(skips):
    streams, models, items = (2_000, 8, 300) if FULL else (100, 8, 150)
    rng = np.random.default_rng(25)
    i, j = np.triu_indices(models, 1)
    weights = family_weights(np.arange(1, i.size + 1), i.size)
    wrong = one = 0
    for _ in range(streams):
        score, skipped = tied_board(rng, models, items)
        order = rng.permutation(items)
        skipped = skipped[:, order] & skips
        low, high = (np.where(skipped, value, score[:, order]) for value in (0, 1))
        low, high = low[i] - high[j], high[i] - low[j]
        largest = settled_steps(settled_start(i.size), low, high, items).largest
        wrong += step_down(largest, weights).pair.size > 0
        one += largest[0] >= -np.log(ALPHA)
    assert wrong / streams <= bound(streams)
    assert one / streams <= bound(streams)
    if FULL:
        print(
            f"\nsettled, tied models, skips {skips}: family {wrong / streams:.4f}, one pair {one / streams:.4f} of {streams:,}"
        )

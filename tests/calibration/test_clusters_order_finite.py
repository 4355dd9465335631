"""Error rates of the cluster e-process, the order diagnostic and the finite benchmark, watched at every step."""

import os

import numpy as np
import pytest

from stats.cluster_eprocess import cluster_e_process
from stats.eprocess import log_e_value
from stats.order import order_diagnostic
from stats.settled import settled_log_e

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
    found = {"blocks": 0, "lumps of ten": 0, "drift": 0}
    streams = 400 if FULL else 40
    for _ in range(streams):
        by_block = np.concatenate([np.flatnonzero(cluster == g) for g in rng.permutation(14)])
        lumps = rng.permutation(np.arange(1120).reshape(-1, 10)).ravel()
        drift = np.argsort(np.arange(1120) + rng.normal(0, 800, 1120))
        zeros = np.zeros(1120, dtype=int)
        found["blocks"] += order_diagnostic(zeros, cluster[by_block]).suspect
        found["lumps of ten"] += order_diagnostic(zeros, cluster[lumps]).suspect
        found["drift"] += order_diagnostic(zeros, cluster[drift], drift).suspect
    assert min(found.values()) > 0.95 * streams, found


def test_finite_e_process_keeps_its_level_on_a_tied_benchmark():
    streams, items = (20_000, 240) if FULL else (1_500, 120)
    half = items // 6
    d = np.r_[np.ones(half), -np.ones(half), np.zeros(items - 2 * half)]
    order = np.random.default_rng(24).permuted(np.tile(d, (streams, 1)), axis=1)
    log_e = np.concatenate([settled_log_e(part, items)[0][:, :-1] for part in np.array_split(order, 10)])
    decided = (log_e.max(1) >= -np.log(ALPHA)).mean()
    assert 0.005 < decided <= bound(streams)

"""Error rates of the anytime-valid procedures, by simulation: every stream is watched at every item.

RANKWATCH_SLOW=1 runs at least 20,000 null streams per procedure; otherwise a tenth of them.
"""

import os
from functools import lru_cache

import numpy as np
import pytest

from stats import (
    boundary_u,
    confidence,
    empirical_bernstein,
    graded,
    hedged_betting,
    log_e_value,
    parse_mixture,
    required_n,
    spending_alpha,
)

pytestmark = pytest.mark.slow

FULL = os.environ.get("RANKWATCH_SLOW") == "1"
STREAMS = 20_000 if FULL else 2_000
ALPHA = 0.05


def assert_at_most(errors, level):
    rate = np.mean(errors)
    assert rate <= level + 2 * np.sqrt(level * (1 - level) / len(errors)), f"error rate {rate:.4f} at nominal {level}"


@lru_cache(maxsize=256)
def critical_difference(items, alpha, mixture):
    """Smallest |b - c| at which m = 0, ..., items discordant items decide: the e-process, tabulated."""
    m = np.arange(items + 1)
    u = boundary_u(m, alpha, mixture)
    never = items + 2.0
    d = np.where(np.isfinite(u), np.ceil(np.where(np.isfinite(u), u, 0) * np.sqrt(m) - 1e-9), never)
    return d + (d + m) % 2  # b - c has the parity of b + c


def ever_decided(d, alpha, mixture="beta(1,1)"):
    """Which streams of differences in {-1, 0, 1} (rows) decide at any item."""
    discordant = np.cumsum(d != 0, axis=1, dtype=np.int32)
    difference = np.abs(np.cumsum(d, axis=1, dtype=np.int32))
    table = critical_difference(d.shape[1], alpha, mixture)
    return (difference >= table[discordant]).any(axis=1)


def blocks(streams, size=500):
    return [min(size, streams - start) for start in range(0, streams, size)]


@pytest.mark.parametrize("mixture", ["beta(1,1)", "grid98"])
def test_the_tabulated_boundary_is_the_e_process(mixture):
    m = np.arange(1501)
    d = critical_difference(1500, ALPHA, mixture)
    assert (log_e_value(m, 0, mixture)[d > m] < -np.log(ALPHA)).all()
    m, d = m[d <= m], d[d <= m]
    assert (log_e_value((m + d) / 2, (m - d) / 2, mixture) >= -np.log(ALPHA)).all()
    assert (log_e_value((m + d) / 2 - 1, (m - d) / 2 + 1, mixture) < -np.log(ALPHA)).all()


@pytest.mark.parametrize("mixture", ["beta(1,1)", "grid98"])
def test_a_pair_of_equal_models(mixture):
    rng = np.random.default_rng(20)
    errors = np.concatenate(
        [
            ever_decided(rng.choice(np.array([-1, 0, 1], np.int8), (size, 3000), p=[0.15, 0.7, 0.15]), ALPHA, mixture)
            for size in blocks(STREAMS)
        ]
    )
    assert_at_most(errors, ALPHA)
    assert errors.mean() > 0.01  # it can err at all


def test_items_of_unequal_difficulty_and_models_of_equal_mean():
    # Each item favours one model or the other; in random order the gap is still 0 given the past.
    rng = np.random.default_rng(21)
    errors = []
    for size in blocks(STREAMS):
        difficulty, tilt = rng.random((2, size, 2000))
        shift = 0.4 * (tilt - 0.5)
        a = rng.random((size, 2000)) < np.clip(0.1 + 0.7 * difficulty + shift, 0, 1)
        b = rng.random((size, 2000)) < np.clip(0.1 + 0.7 * difficulty - shift, 0, 1)
        errors.append(ever_decided(a.astype(np.int8) - b, ALPHA))
    assert_at_most(np.concatenate(errors), ALPHA)


def test_family_of_all_pairs_of_equal_models():
    rng = np.random.default_rng(22)
    replicates = STREAMS // 45 + 1
    pairs = np.array(np.triu_indices(10, 1))
    level = spending_alpha(np.arange(1, 46), ALPHA)
    single, bonferroni, spending = [], [], []
    for _ in range(replicates):
        easy = rng.random(1500)
        right = (rng.random((10, 1500)) < 0.3 + 0.5 * easy).astype(np.int8)
        d = right[pairs[0]] - right[pairs[1]]
        single.append(ever_decided(d, ALPHA).any())
        bonferroni.append(ever_decided(d, ALPHA / 45).any())
        spending.append(
            any(ever_decided(d[j : j + 1], level[j])[0] for j in np.flatnonzero(ever_decided(d, ALPHA / 45)))
        )
    assert_at_most(bonferroni, ALPHA)
    assert_at_most(spending, ALPHA)
    assert np.mean(single) > 3 * ALPHA  # watching all pairs at a single pair's level is what must not be done


@pytest.mark.parametrize("shape", ["symmetric", "skewed"])
def test_graded_scores(shape):
    rng = np.random.default_rng(23)
    values = np.array([-1, -0.5, 0, 0.5, 1]) if shape == "symmetric" else np.array([-0.25, 0.75])
    weights = np.array([0.1, 0.2, 0.4, 0.2, 0.1]) if shape == "symmetric" else np.array([0.75, 0.25])
    increments = graded.log_increments(values)
    errors = []
    for size in blocks(STREAMS // 4, 250):
        d = rng.choice(values.size, (size, 400), p=weights)
        capital = graded.initial_capital((size,))
        largest = np.full(size, -np.inf)
        for item in range(400):
            capital = capital + increments[d[:, item]]
            largest = np.maximum(largest, graded.graded_log_e(capital))
        errors.append(largest >= -np.log(ALPHA))
    assert_at_most(np.concatenate(errors), ALPHA)


@pytest.mark.parametrize("gap", [0.0, 0.1, -0.4])
def test_uniform_coverage_of_the_gap_interval(gap):
    # The true gap leaves the interval exactly when the process inverted at it reaches 1/alpha.
    rng = np.random.default_rng(24)
    prior = parse_mixture("beta(1,1)")
    streams, items, discordance = STREAMS // 8, 300, 0.6
    p = [(discordance + gap) / 2, (discordance - gap) / 2, 1 - discordance]
    d = rng.choice(3, (streams, items), p=p)
    b, c = np.cumsum(d == 0, axis=1), np.cumsum(d == 1, axis=1)
    missed = np.zeros(streams, dtype=bool)
    for n in range(1, items + 1):
        counts = np.unique(np.stack([b[:, n - 1], c[:, n - 1]]), axis=1, return_inverse=True)
        wins, losses = counts[0].astype(float)
        log_e = confidence._process(np.full(wins.size, float(n)), wins, losses, prior)(np.full(wins.size, gap))
        missed |= (log_e >= -np.log(ALPHA))[counts[1].ravel()]
    assert_at_most(missed, ALPHA)


def test_uniform_coverage_of_the_graded_sequences():
    rng = np.random.default_rng(25)
    errors = []
    for size in blocks(STREAMS, 1000):
        low, high = empirical_bernstein(rng.beta(4, 2, (size, 500)), ALPHA)
        errors.append(((low > 2 / 3) | (high < 2 / 3)).any(axis=1))
    assert_at_most(np.concatenate(errors), ALPHA)
    short = []
    for _ in range(STREAMS // 20):
        x = (rng.random(120) < 0.1).astype(float)
        bounds = [hedged_betting(x[:n], ALPHA, breaks=200) for n in (20, 60, 120)]
        short.append(any(low > 0.1 or high < 0.1 for low, high in bounds))
    assert_at_most(short, ALPHA)


def test_stopping_time_beside_n_star():
    # Published pair with b, c = 181, 90 of 1,172: decided after about 1.15 N* on average (grid98).
    rng = np.random.default_rng(26)
    n, b, c = 1172, 181, 90
    n_star = float(required_n(n, b, c))
    horizon = int(5 * n_star)
    stops = []
    table = critical_difference(horizon, ALPHA, "grid98")
    for size in blocks(STREAMS // 4):
        d = rng.choice(np.array([1, -1, 0], np.int8), (size, horizon), p=[b / n, c / n, 1 - (b + c) / n])
        hit = np.abs(np.cumsum(d, axis=1)) >= table[np.cumsum(d != 0, axis=1)]
        stops.append(np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, horizon))
    assert np.concatenate(stops).mean() / n_star == pytest.approx(1.155, abs=0.06)

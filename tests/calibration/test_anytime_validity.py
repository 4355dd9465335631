"""Error rates of the anytime-valid procedures, by simulation: every stream is watched at every item.

RANKWATCH_SLOW=1 runs at least 20,000 null streams (families: 20,000 of 45 streams each) per procedure; otherwise a tenth
of them or fewer.
"""

import os
from functools import lru_cache

import numpy as np
import pytest

from stats import (
    boundary_u,
    empirical_bernstein,
    equal_models,
    hedged_betting,
    log_completion_bound,
    log_e_halves,
    log_e_value,
    parse_mixture,
    required_n,
    spending_alpha,
)
from stats.evidence import graded
from stats.intervals import confidence, sequences

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


@pytest.mark.parametrize("mixture", ["beta(1,1)", "grid98", "beta(2,2)", "two_point(.4,.6)"])
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
    replicates = STREAMS if FULL else STREAMS // 10
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
    for size in blocks(STREAMS if FULL else STREAMS // 4, 250):
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
    streams, items, discordance = STREAMS if FULL else STREAMS // 8, 300, 0.6
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


@pytest.mark.parametrize("mean", [0.1, 2 / 3])
def test_uniform_coverage_of_the_hedged_sequence(mean):
    # The mean leaves the set exactly when the capital at it reaches 1/alpha; the grid only rounds outward.
    rng = np.random.default_rng(27)
    missed = []
    for size in blocks(STREAMS, 500):
        x = rng.beta(4, 2, (size, 300)) if mean > 0.5 else (rng.random((size, 300)) < mean).astype(float)
        bets, _, _ = sequences._plug_in(x, 0, np.zeros(size), np.zeros(size), ALPHA)
        up, down = (gain.cumsum(axis=1) for gain in sequences._hedged_gains(x, bets, np.array(mean)))
        missed.append((np.maximum(up, down) - np.log(2) >= -np.log(ALPHA)).any(axis=1))
        if len(missed) == 1:  # the public function agrees with the capital it is judged by
            for row in range(20):
                low, high = hedged_betting(x[row], ALPHA)
                outside = np.maximum(up[row, -1], down[row, -1]) - np.log(2) >= -np.log(ALPHA)
                assert (low - 2e-3 < mean < high + 2e-3) or outside
    assert_at_most(np.concatenate(missed), ALPHA)


@pytest.mark.parametrize("gap", [0.0, -0.02])
def test_directional_evidence_for_a_model_that_is_not_better(gap):
    rng = np.random.default_rng(28)
    errors = []
    for size in blocks(STREAMS if FULL else STREAMS // 4):
        p = [0.15 + gap / 2, 0.7, 0.15 - gap / 2]
        d = rng.choice(np.array([1, 0, -1], np.int8), (size, 600), p=p)
        b, c = np.cumsum(d > 0, axis=1), np.cumsum(d < 0, axis=1)
        side = max(int(b.max()), int(c.max())) + 1
        table = log_e_halves(*np.indices((side, side)))[0]
        errors.append((table[b, c] >= -np.log(ALPHA)).any(axis=1))
    assert_at_most(np.concatenate(errors), ALPHA)


def test_completion_holds_in_an_order_that_fools_the_naive_monitor():
    # A's successes arrive first, B's last: the verdict by completion is that of the completed benchmark all the same.
    rng = np.random.default_rng(29)
    items = 400
    verdicts, naive = [], []
    for size in blocks(STREAMS if FULL else STREAMS // 4, 500):
        d = rng.choice(np.array([1, 0, -1], np.int8), (size, items), p=[0.15, 0.7, 0.15])
        late = np.argsort(rng.random((size, items)) - 0.5 * d, axis=1)
        d = np.take_along_axis(d, late, axis=1)
        b, c = np.cumsum(d > 0, axis=1), np.cumsum(d < 0, axis=1)
        missing = items - np.arange(1, items + 1)
        looks = np.arange(9, items, 10)
        bound = np.maximum(*log_completion_bound(b[:, looks], c[:, looks], missing[looks]))
        verdicts.append((bound >= -np.log(ALPHA)).any(axis=1))
        naive.append(ever_decided(d, ALPHA))
        final = log_e_value(b[:, -1], c[:, -1]) >= -np.log(ALPHA)
        assert not (verdicts[-1] & ~final).any()
    assert_at_most(np.concatenate(verdicts), ALPHA)
    assert np.concatenate(naive).mean() > 3 * ALPHA


def discordant_streams(n, b, c, horizon, streams, rng, null):
    """First item at which each stream decides (grid98), or 0; only discordant items are drawn, ties in between."""
    rate, win = (b + c) / n, 0.5 if null else b / (b + c)
    stops = np.zeros(streams, dtype=np.int64)
    most = int(horizon * rate + 6 * np.sqrt(horizon * rate)) + 10
    table = critical_difference(most, ALPHA, "grid98")[1:]
    size = max(1, 4_000_000 // most)
    for start in range(0, streams, size):
        rows = min(size, streams - start)
        difference = np.cumsum(2 * (rng.random((rows, most)) < win).astype(np.int16) - 1, axis=1, dtype=np.int32)
        hit = np.abs(difference) >= table
        first = np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, 0)
        item = first + np.where(first > 0, rng.negative_binomial(np.maximum(first, 1), rate), 0)
        stops[start : start + rows] = np.where(item <= horizon, item, 0)
    return stops


@pytest.mark.parametrize(
    ("b", "c", "published", "ratio"), [(115, 87, (0.033, 0.036, 0.040), 1.295), (181, 90, (0.025, 0.035, 0.039), 1.155)]
)
def test_reference_error_rates_and_stopping_times(b, c, published, ratio):
    rng = np.random.default_rng(26)
    n_star = float(required_n(1172, b, c))
    streams = STREAMS if FULL else STREAMS // 4
    stops = discordant_streams(1172, b, c, 100_000, streams, rng, null=True)
    for horizon, rate in zip((n_star, 5 * n_star, 100_000), published, strict=True):
        errors = (stops > 0) & (stops <= horizon)
        assert_at_most(errors, ALPHA)
        assert errors.mean() == pytest.approx(rate, abs=0.003 + 3 * np.sqrt(rate / streams))
    stops = discordant_streams(1172, b, c, int(5 * n_star), streams, rng, null=False)
    mean = np.where(stops > 0, stops, 5 * n_star).mean() / n_star
    assert mean == pytest.approx(ratio, abs=0.02 + 3 * 0.8 / np.sqrt(streams))


def test_all_pairs_of_ten_equal_models_need_their_whole_family():
    # Any of 45 pairs by n = 3000: thresholds 20, 9 x 20 and 45 x 20 err at about .68, .087 and .027.
    rng = np.random.default_rng(30)
    pairs = np.array(np.triu_indices(10, 1))
    replicates = 600 if FULL else 60
    errors = []
    for _ in range(replicates):
        right = equal_models(10, 0.7, 0.5, 3000, rng)
        d = right[pairs[0]] - right[pairs[1]]
        errors.append([ever_decided(d, ALPHA / m).any() for m in (1, 9, 45)])
    rates = np.mean(errors, axis=0)
    for rate, published in zip(rates, (0.68, 0.087, 0.027), strict=True):
        se = np.sqrt(published * (1 - published) * (1 / 150 + 1 / replicates))
        assert rate == pytest.approx(published, abs=3 * se + 0.02)
    assert_at_most([error[2] for error in errors], ALPHA)

"""Noise of items and repeats: against made data whose components are known."""

import numpy as np
import pytest

import stats


def made(rng, items, repeats, spread=0.8):
    """Scores 0 and 1 of items whose own probabilities vary."""
    p = np.clip(0.5 + spread * (rng.random(items) - 0.5), 0, 1)
    return (rng.random((items, repeats)) < p[:, None]).astype(float)


@pytest.mark.parametrize(("items", "repeats"), [(2000, 4), (1000, 8)])
def test_the_predicted_variance_is_that_of_new_runs_within_a_tenth(items, repeats):
    rng = np.random.default_rng(7)
    split = stats.noise_split(made(rng, items, repeats))
    for n, r in ((200, 1), (200, 16), (800, 2)):
        means = [made(rng, n, r).mean() for _ in range(4000)]
        assert split.variance(n, r) == pytest.approx(np.var(means), rel=0.1)


def test_the_components_and_unequal_repeats():
    rng = np.random.default_rng(3)
    scores = made(rng, 20_000, 3)
    p = 0.8**2 / 12
    split = stats.noise_split(scores)
    assert split.item_variance == pytest.approx(p, rel=0.05)
    assert split.repeat_variance == pytest.approx(0.25 - p, rel=0.05)
    assert split.gain_of_repeats() == pytest.approx((p + (0.25 - p) / 6) / (p + (0.25 - p) / 3), rel=0.05)
    scores[rng.random(scores.shape) < 0.4] = np.nan
    uneven = stats.noise_split(scores)
    assert uneven.item_variance == pytest.approx(p, rel=0.08)
    assert 1 < uneven.repeats < 3


def test_two_runs_of_one_model_differ_at_the_nominal_rate_and_a_broken_harness_is_found():
    rng = np.random.default_rng(5)
    ps = []
    for repeats in (1, 3):
        for _ in range(500):
            p = rng.random(150)
            first, second = ((rng.random((150, repeats)) < p[:, None]).astype(float) for _ in range(2))
            ps.append(stats.rerun_p(first, second))
    assert 0.03 < np.mean(np.array(ps) <= 0.05) < 0.07
    first = made(rng, 300, 2)
    broken = first * (rng.random((300, 1)) > 0.3)
    assert stats.rerun_p(first, broken) < 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.noise_split([[1], [0]]), "one repeat does not show its noise"),
        (lambda: stats.noise_split([1, 0]), r"scores must be of shape \(items, repeats\)"),
        (lambda: stats.noise_split([[1, np.inf], [0, 1]]), "scores must be finite"),
        (lambda: stats.rerun_p([[1]], [[1], [0]]), "must hold the same items"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

"""Forecasts next to what happens in simulated futures; tests/calibration/test_forecasts.py has real boards."""

import numpy as np
import pytest

from stats.evidence.eprocess import log_e_value
from stats.fixed_n.mcnemar import exact_p
from stats.planning.forecast import anytime_decision_probability, completion_decision_probability

THRESHOLD = np.log(20)
BINS = (0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.001)


def assert_calibrated(forecast, decided, near, least=300):
    """Assert that of the pairs with a forecast in a bin about so many are decided."""
    place = np.digitize(forecast, BINS)
    checked = 0
    for k in range(1, len(BINS)):
        inside = place == k
        if inside.sum() >= least:
            assert np.mean(decided[inside]) == pytest.approx(np.mean(forecast[inside]), abs=near), BINS[k - 1 : k + 1]
            checked += 1
    assert checked >= 5


def futures(streams, n, left, seed):
    """Counts after n items, and running counts over the items left, of pairs with every share of wins alike."""
    rng = np.random.default_rng(seed)
    theta = rng.random(streams)
    d = rng.random((streams, n + left)) < 0.3
    won = d & (rng.random(d.shape) < theta[:, None])
    return won.cumsum(1), (d & ~won).cumsum(1)


def test_the_exact_test_decides_as_often_as_forecast():
    b, c = futures(20_000, 60, 240, 1)
    forecast = completion_decision_probability(60, b[:, 59], c[:, 59], 240, THRESHOLD)
    assert_calibrated(forecast, exact_p(b[:, -1], c[:, -1]) <= 0.05, 0.05)


def test_the_e_process_decides_as_often_as_forecast():
    b, c = futures(6_000, 60, 240, 2)
    reached = log_e_value(b, c) >= THRESHOLD
    undecided = ~reached[:, :60].any(1)
    forecast = anytime_decision_probability(60, b[undecided, 59], c[undecided, 59], 240, THRESHOLD)
    assert_calibrated(forecast, reached[undecided].any(1), 0.07, 150)


def test_nothing_to_come_leaves_the_verdict():
    assert completion_decision_probability(100, [40, 10], [0, 10], 0, THRESHOLD).round(6).tolist() == [1, 0]
    assert anytime_decision_probability(100, [40, 10], [0, 10], 0, THRESHOLD).round(6).tolist() == [1, 0]
    assert (
        completion_decision_probability(100, 40, 0, 50, np.inf)
        == anytime_decision_probability(100, 40, 0, 50, np.inf)
        == 0
    )
    assert completion_decision_probability(100, 40, 0, 50, THRESHOLD, 100) < 0.01
    assert 0 <= anytime_decision_probability(0, 0, 0, 50, THRESHOLD) <= 1

"""Forecasts next to what happens: simulated futures, and the models of two boards at 10, 30 and 60 % of their items."""

import gzip
import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from stats.curtailed import curtailed_leader_log_p
from stats.eprocess import log_e_value
from stats.forecast import anytime_decision_probability, completion_decision_probability
from stats.mcnemar import exact_p

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


@pytest.mark.data
@pytest.mark.slow
def test_on_zeroeval_four_of_five_pairs_with_a_forecast_of_80_percent_are_decided():
    path = Path(os.environ.get("RANKWATCH_DATA", "")) / "zeroeval" / "events.jsonl.gz"
    if not path.exists():
        pytest.skip("RANKWATCH_DATA names no folder with zeroeval")
    boards = defaultdict(dict)
    with gzip.open(path, "rt") as lines:
        for line in lines:
            event = json.loads(line)
            boards[event["benchmark"]][event["item_id"], event["model"]] = event["score"]
    rng = np.random.default_rng(5)
    forecast, decided = [], []
    for scores in boards.values():
        items, models = (list(dict.fromkeys(key[side] for key in scores)) for side in (0, 1))
        x = np.array([[scores.get((i, m)) for m in models] for i in items], float)
        x = x[:, np.isnan(x).mean(0) < 0.01]
        x = x[~np.isnan(x).any(1)]
        first, second = np.triu_indices(x.shape[1], 1)
        threshold = np.log(first.size * 20)
        for _ in range(4):
            x = rng.permutation(x)
            d = x[:, first] - x[:, second]
            b, c = (d > 0).cumsum(0), (d < 0).cumsum(0)
            final = exact_p(b[-1], c[-1]) <= np.exp(-threshold)
            for n in (len(x) // 10, 3 * len(x) // 10, 6 * len(x) // 10):
                left = len(x) - n
                undecided = -curtailed_leader_log_p(b[n - 1], c[n - 1], left) < threshold
                forecast.append(completion_decision_probability(n, b[n - 1], c[n - 1], left, threshold)[undecided])
                decided.append(final[undecided])
    assert_calibrated(np.concatenate(forecast), np.concatenate(decided), 0.05)

"""Forecasts of a decision next to what happens: the models of real boards at 10, 30 and 60 % of their items, in ten random orders."""

import gzip
import json
import os
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from stats.evidence.curtailed import curtailed_leader_log_p
from stats.evidence.eprocess import log_e_value
from stats.fixed_n.mcnemar import exact_p
from stats.planning.forecast import anytime_decision_probability, completion_decision_probability

BINS = (0, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.001)
SHARES = (0.1, 0.3, 0.6)
ORDERS = 10
LEVELS = 20 * 2.0 ** np.arange(0, 25, 2)
"""1 / alpha of many families: near one threshold a board has few pairs, and the end of a pair is the same in every order."""

pytestmark = [pytest.mark.data, pytest.mark.slow]


def boards(name):
    """Scores of each benchmark of a data set, shape (items, models): models with 99 % of the items, and the items that all of them have."""
    path = Path(os.environ.get("RANKWATCH_DATA", "")) / name / "events.jsonl.gz"
    if not path.exists():
        pytest.skip(f"RANKWATCH_DATA names no folder with {name}")
    scores = defaultdict(dict)
    with gzip.open(path, "rt") as lines:
        for line in lines:
            event = json.loads(line)
            scores[event["benchmark"]][event["item_id"], event["model"]] = event["score"]
    for board in scores.values():
        items, models = (list(dict.fromkeys(key[side] for key in board)) for side in (0, 1))
        x = np.array([[board.get((i, m)) for m in models] for i in items], float)
        x = x[:, np.isnan(x).mean(0) < 0.01]
        yield x[~np.isnan(x).any(1)]


def completion(d, n, levels):
    """Forecast and outcome of the exact test at N, shape (levels, pairs) each; nan where a pair is decided already."""
    left = len(d) - n
    b, c = ((side * d[:n] > 0).sum(0) for side in (1, -1))
    final = exact_p(*((side * d > 0).sum(0) for side in (1, -1)))
    for level in levels:
        threshold = np.log(level)
        forecast = completion_decision_probability(n, b, c, left, threshold)
        yield np.where(-curtailed_leader_log_p(b, c, left) < threshold, forecast, np.nan), final <= 1 / level


def anytime(d, n, levels):
    """The same of the e-process."""
    b, c = ((side * d > 0).cumsum(0) for side in (1, -1))
    log_e = log_e_value(b, c)
    before, ever = log_e[:n].max(0), log_e.max(0)
    for level in levels:
        forecast = anytime_decision_probability(n, b[n - 1], c[n - 1], len(d) - n, np.log(level))
        yield np.where(before < np.log(level), forecast, np.nan), ever >= np.log(level)


def cases(name, process, levels):
    """Every forecast on a data set, as rows (share, pair, forecast, decided)."""
    rng = np.random.default_rng(5)
    rows = []
    for board, x in enumerate(boards(name)):
        first, second = np.triu_indices(x.shape[1], 1)
        tested = levels if levels is not None else [20 * first.size]
        for _ in range(ORDERS):
            shuffled = rng.permutation(x)
            d = shuffled[:, first] - shuffled[:, second]
            for share in SHARES:
                for forecast, decided in process(d, int(share * len(x)), tested):
                    k = np.flatnonzero(~np.isnan(forecast))
                    rows.append(np.column_stack([np.full(k.size, share), 1e6 * board + k, forecast[k], decided[k]]))
    return np.concatenate(rows)


def rates(rows):
    """Cases, pairs, mean forecast, rate and its standard error (pairs as clusters) in each bin."""
    found = {}
    place = np.digitize(rows[:, 2], BINS)
    for k in range(1, len(BINS)):
        _, pair, forecast, decided = rows[place == k].T
        if pair.size:
            rate = decided.mean()
            _, group = np.unique(pair, return_inverse=True)
            error = np.sqrt((np.bincount(group, decided - rate) ** 2).sum()) / pair.size
            found[BINS[k - 1]] = pair.size, group.max() + 1, forecast.mean(), rate, error
    return found


@pytest.mark.parametrize("levels", [None, LEVELS], ids=["alpha of the family", "many alphas"])
@pytest.mark.parametrize("process", [completion, anytime])
@pytest.mark.parametrize("name", ["zeroeval", "mmlu_pro"])
def test_forecasts_come_true_as_often_as_they_say(name, process, levels):
    rows = cases(name, process, levels)
    for share in SHARES:
        for low, (n, pairs, forecast, rate, error) in rates(rows[rows[:, 0] == share]).items():
            print(
                f"{name} {process.__name__} {share:.0%} from {low}: {n} of {pairs} pairs, {forecast:.3f}, {rate:.3f} ({error:.3f})"
            )
            if levels is not None or pairs > 300:
                # A twentieth, and what chance allows on as few pairs.
                assert rate == pytest.approx(forecast, abs=0.05 + 2 * error)
            if low == 0.8 and (levels is not None or pairs > 300):
                assert 0.75 <= rate <= 0.95

"""Boards whose items have 1 to 96 repeats, against numpy: `report` and `watch --once` take the mean of all of them."""

import json

import numpy as np
import pytest

from tests.commands import report, watch_once, write

BOARDS = 200


def board(rng):
    """Labels and scores of the repeats of each item of each model; about a tenth of the items have none."""
    models, items = int(rng.integers(2, 5)), int(rng.integers(5, 12))
    graded = rng.random() < 0.3
    most = int(rng.choice([2, 9, 96], p=[0.5, 0.45, 0.05]))
    runs = {}
    for model in range(models):
        for item in range(items):
            count = int(rng.integers(1, most + 1)) * (rng.random() < 0.9)
            labels = rng.choice(200, count, replace=False).tolist()
            scores = rng.random(count).round(6) if graded else (rng.random(count) < 0.4 + 0.1 * model).astype(float)
            runs[f"m{model}", f"i{item}"] = list(zip(labels, scores.tolist(), strict=True))
    return runs


def expected(runs):
    """Mean of each model; shared items and gap of each pair, by hand."""
    means = {}
    for (model, item), repeats in runs.items():
        if repeats:
            means.setdefault(model, {})[item] = np.mean([score for _, score in repeats])
    found = {model: float(np.mean(list(own.values()))) for model, own in means.items()}
    pairs = {}
    for a in means:
        for b in means.keys() - {a}:
            gaps = np.array([means[a][item] - means[b][item] for item in means[a].keys() & means[b].keys()])
            pairs[a, b] = (gaps.size, float(gaps.mean()) if gaps.size else None)
    return found, pairs


@pytest.fixture(scope="module")
def boards():
    rng = np.random.default_rng(96)
    return {f"board {k}": board(rng) for k in range(BOARDS)}


@pytest.fixture(scope="module")
def path(boards, tmp_path_factory):
    rng = np.random.default_rng(1)
    events = [
        {"benchmark": name, "model": model, "item_id": item, "repeat": label, "score": score}
        for name, runs in boards.items()
        for (model, item), repeats in runs.items()
        for label, score in repeats
    ]
    return write(tmp_path_factory.mktemp("boards") / "a.jsonl", [events[k] for k in rng.permutation(len(events))])


def check(boards, benchmarks):
    assert len(benchmarks) == BOARDS
    for benchmark in benchmarks:
        means, pairs = expected(boards[benchmark["benchmark"]])
        assert {m["model"]: m["mean"] for m in benchmark["models"]} == pytest.approx(means, abs=1e-12)
        assert len(benchmark["pairs"]) == len(means) * (len(means) - 1) // 2
        for row in benchmark["pairs"]:
            n, gap = pairs[row["model_a"], row["model_b"]]
            assert row["n"] == n
            assert row["gap"] == (None if gap is None else pytest.approx(gap, abs=1e-12))


def test_report_takes_the_mean_of_all_repeats(boards, path):
    check(boards, report(path)[0]["benchmarks"])


def test_watch_takes_the_mean_of_all_repeats_at_the_end(boards, path, tmp_path):
    check(boards, json.loads(watch_once(tmp_path / "one", path))["benchmarks"])
    check(boards, json.loads(watch_once(tmp_path / "two", path, "--repeats", "all"))["benchmarks"])

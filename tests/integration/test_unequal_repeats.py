"""Boards whose items have 1 to 96 repeats, against numpy: `report`, `watch --once` and `run` take the mean of all of them."""

import asyncio
import json
from itertools import permutations

import numpy as np
import pytest

from tests.commands import get, rankwatch, report, until, watch_once, write
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

BOARDS = 100


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
    model_means = {model: float(np.mean(list(own.values()))) for model, own in means.items()}
    pairs = {}
    for (a, one), (b, other) in permutations(means.items(), 2):
        gaps = np.array([one[item] - other[item] for item in one.keys() & other.keys()])
        pairs[a, b] = (gaps.size, float(gaps.mean()) if gaps.size else None)
    return model_means, pairs


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


@pytest.mark.kafka
@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
def test_a_worker_takes_the_mean_of_all_repeats_of_a_topic(kafka, topic, boards, path, tmp_path, declared):
    """Declared, items bet when their runs end; undeclared, the benchmark is held, and its figures are the same."""
    asyncio.run(kafka.create_topic(topic, 2))
    declarations = [{"declare": name, "repeats": "all", "order": "trusted"} for name in boards] if declared else []
    ends = [{"ended": name} for name in boards]
    lines = [*declarations, *map(json.loads, path.read_text().splitlines()), *ends]
    sent = write(tmp_path / "sent.jsonl", lines)
    rankwatch("send", sent, "--to", kafka.url(topic), "--data-dir", tmp_path / "positions")
    env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        workers.start()
        url = workers.read().url()

        def held():
            benchmarks = json.loads(get(f"{url}/api/v1/benchmarks?pairs=all&limit=1000")[1])["benchmarks"]
            whole = len(benchmarks) == BOARDS and all(m["run_ended"] for b in benchmarks for m in b["models"])
            return benchmarks if whole else None

        benchmarks = until(held, workers.logs())
        check(boards, benchmarks)
        reasons = [benchmark["order"]["reason"] for benchmark in benchmarks]
        assert all("(repeats: all)" in reason for reason in reasons if not declared)
        assert not any(reason for reason in reasons if declared)
        workers.stop()

"""Boards with weights, and a suite of them, through Kafka, workers and a reader: what `serve` shows is what `report` prints of the file."""

import asyncio
import json
import random

import pytest

from schemas.records.ownership import owner
from tests.commands import rankwatch, until
from tests.kafka.run_worker import RunReader, Workers
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.full]

PARTITIONS = 3
SKILLS = {"ash": 0.9, "birch": 0.8, "cedar": 0.55, "dune": 0.5}
SIZES = {"words": {"a": 90, "b": 20, "c": 10}, "digits": {"one": 60, "two": 30}}
CLUSTERS = {name: ",".join(f"{cluster}:{n}" for cluster, n in sizes.items()) for name, sizes in SIZES.items()}
FLAGS = [
    *("--weights", "words=equal-clusters", "--weights", "digits=one:2,two:1"),
    *(word for name, sizes in CLUSTERS.items() for word in ("--clusters", f"{name}={sizes}")),
    *("--family", "capacity:6"),
]
MEMBERS = "words:2,digits~0.25"

EXACT = ("model_a", "model_b", "n", "settled", "decided", "resolved")
CLOSE = ("gap", "sd", "p_a", "p_b", "p_clustered", "required_n", "resolution_ratio", "mde", "log_e", "p_anytime")


def results(path):
    """Scores of every model on every item, in random order."""
    rng = random.Random(4)
    lines = [
        {
            "benchmark": name,
            "item_id": f"{cluster}{k}",
            "model": model,
            "score": int(rng.random() < skill + 0.1 * (cluster in "bc")),
            "cluster": cluster,
        }
        for name, sizes in SIZES.items()
        for cluster, n in sizes.items()
        for k in range(n)
        for model, skill in SKILLS.items()
    ]
    rng.shuffle(lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return len(lines)


def boards(text):
    return {each["benchmark"]: each for each in json.loads(text)["benchmarks"]}


def test_serve_shows_weighted_boards_and_their_suite_as_report_does(kafka, topic, tmp_path):
    assert owner("words", PARTITIONS) != owner("digits", PARTITIONS), "the suite is one over two partitions"
    file = tmp_path / "results.jsonl"
    events = results(file)
    env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        asyncio.run(kafka.create_topic(topic, PARTITIONS))
        workers.start()
        reader = RunReader(kafka.url(topic), redis.url, tmp_path / "reader.log", RANKWATCH_SUITES=f"all={MEMBERS}")
        try:
            rankwatch("send", file, *FLAGS, "--to", kafka.url(topic), XDG_STATE_HOME=str(tmp_path / "sent"))

            def shown():
                status, _, body = reader.get("/api/v1/benchmarks?pairs=all") if reader.ready() else (0, {}, "")
                found = boards(body) if status == 200 else {}
                return found if found and found["all"]["events"] == events else None

            live = until(shown, f"the reader: {reader.log_text}\n{workers.logs()}")
        finally:
            reader.process.kill()
            reader.process.wait()
    arguments = (file, *FLAGS, "--suite", f"all={MEMBERS}", "--pairs", "all", "--format", "json")
    printed = boards(rankwatch("report", *arguments).stdout)
    assert live.keys() == printed.keys() == {"all", "words", "digits"}
    for name in SIZES:
        same(live[name], printed[name])
        assert any(pair["decided"]["anytime_family"] for pair in live[name]["pairs"])
    assert any(pair["decided"]["anytime_family"] for pair in printed["all"]["pairs"])
    same(live["all"], printed["all"])
    assert live["all"]["suite"] == printed["all"]["suite"]


def same(live, printed):
    for field in ("model", "rank", "unweighted_rank", "items"):
        assert [m[field] for m in live["models"]] == [m[field] for m in printed["models"]]
    for field in ("mean", "mean_low", "mean_high", "unweighted_mean"):
        assert [m[field] for m in live["models"]] == pytest.approx([m[field] for m in printed["models"]])
    assert live["weights"] == printed["weights"]
    for one, other in zip(live["pairs"], printed["pairs"], strict=True):
        assert {k: one[k] for k in EXACT} == {k: other[k] for k in EXACT}
        assert {k: one[k] for k in CLOSE} == pytest.approx({k: other[k] for k in CLOSE})

"""Battles in a service: over the topic, through a worker that is killed, to a reader, against the report of the same file."""

import asyncio
import json

import pytest

from tests.commands import rankwatch, until
from tests.kafka.run_worker import Workers, get
from tests.redis_server import RedisServer
from tests.unit.engine.test_battles import stream

pytestmark = pytest.mark.kafka

DECLARED = {"declare": "bench", "order": "trusted", "repeats": "all", "family": {"policy": "capacity", "size": 6}}


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.fault(
    "benchmarks",
    "battles over the topic, the worker killed between overlapping halves",
    "`report` on the same file gives the same ratings, pairs and ranks",
)
def test_a_killed_worker_loses_no_vote_and_counts_none_twice(kafka, topic, tmp_path):
    records = stream(5, 3_000, prompts=2_400, cluster=["x", "y", "z"], ties=0.1)
    whole = lines(tmp_path / "whole.jsonl", [DECLARED, *records, {"ended": "bench"}])
    parts = [
        lines(tmp_path / "first.jsonl", [DECLARED, *records[:1_500]]),
        # Some of the first part once more: duplicates.
        lines(tmp_path / "second.jsonl", [*records[1_000:], {"ended": "bench"}]),
    ]
    score = {"benchmark": "bench", "item_id": "1", "model": "m0", "score": 1}
    asyncio.run(kafka.create_topic(topic, 1))
    env = {"RANKWATCH_GROUP": topic}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        worker = workers.start()
        reader = workers.read()

        def send(path):
            rankwatch("send", path, "--to", kafka.url(topic), "--data-dir", tmp_path / "sent", "--again")

        def served(by=reader):
            status, _, body = get(f"{by.url()}/api/v1/benchmarks/bench")
            return json.loads(body)["benchmarks"][0] if status == 200 else {"events": 0, "rejected": 0, "models": []}

        def ended(report):
            return report["rejected"] == 1 and all(m["run_ended"] for m in report["models"])

        send(parts[0])
        until(lambda: served()["events"] > 0, "the first votes")
        workers.kill(worker)
        send(parts[1])
        send(lines(tmp_path / "score.jsonl", [score]))
        workers.start()
        until(lambda: ended(served()), f"the ends of the runs: {workers.logs()}")
        found = served()
        until(lambda: "rankwatch-unconfirmed" not in reader.get("/api/v1/summaries")[1], "the worker to store all")
        workers.stop()
        stored = served(workers.read())  # a second reader loads what the worker stored
    expected = json.loads(rankwatch("report", whole, "--format", "json", "--pairs", "adjacent").stdout)["benchmarks"][0]
    assert found["battles"] == stored["battles"] == expected["battles"]
    again = sum(first in records[1_000:1_500] for first in records[:1_500])
    assert found["duplicates"] + found["conflicts"] >= again
    assert found["pairs"] == stored["pairs"] == expected["pairs"]
    for rank in ("model", "rank", "rank_low", "rank_high", "mean", "items"):
        assert [m[rank] for m in found["models"]] == [m[rank] for m in expected["models"]]
    assert any(pair["decided"]["anytime_family"] for pair in found["pairs"])
    assert found["events"] == len(records) + 500

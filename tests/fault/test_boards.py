"""The life of a board in a service: changes go to the topic, workers and readers make them, and the commands show what is stored."""

import asyncio
import json

import pytest

from tests.commands import get, rankwatch, until
from tests.kafka.records import read_all
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

SCORES = [
    {"benchmark": "physics", "item_id": str(k), "model": model, "score": int(model == "ash")}
    for k in range(30)
    for model in ("ash", "birch")
]


def test_a_board_is_archived_deleted_and_begun_again_over_the_topic(kafka, topic, tmp_path):
    env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
    file, late = tmp_path / "physics.jsonl", tmp_path / "late.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in ({"declare": "physics", "items": 30}, *SCORES)))
    late.write_text(json.dumps(SCORES[0] | {"item_id": "late"}) + "\n")
    asyncio.run(kafka.create_topic(topic, 2))
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        worker = workers.start()

        def board(*arguments, code=0):
            places = "--broker", kafka.url(topic), "--redis-url", redis.url, "--topic", topic
            return rankwatch("board", *arguments, *places, code=code)

        def send(path):
            rankwatch("send", path, "--to", kafka.url(topic), "--data-dir", tmp_path / "sent", "--again")

        def stored():
            boards = json.loads(board("list", "--format", "json").stdout)["boards"]
            return boards[0] if boards else {"events": 0}

        send(file)
        until(lambda: stored()["events"] == len(SCORES), "the scores to be folded")
        assert board("archive", "physics").stdout == "physics: archived; later records of it are refused\n"
        assert stored()["state"] == "archived"
        assert "is archived already" in board("archive", "physics", code=1).stderr
        send(late)
        until(lambda: stored()["rejected"] == 1, "the late score to be refused")
        assert board("export", "physics").stdout.splitlines()[1:] == [
            json.dumps(each, separators=(",", ":")) for each in SCORES
        ]
        report = json.loads(get(f"{workers.read().url()}/api/v1/benchmarks/physics")[1])["benchmarks"][0]
        assert report["board"]["state"] == "archived"
        board("delete", "physics", "--yes")
        assert stored()["state"] == "deleted"
        until(
            lambda: len(kinds(kafka, topic)["invalidated"]) > 0, f"the decisions to be withdrawn: {kinds(kafka, topic)}"
        )
        published = kinds(kafka, topic)
        assert sorted(published["invalidated"]) == sorted(published["decided"] + published["settled"])
        board("reopen", "physics")
        send(file)
        until(lambda: stored()["events"] == len(SCORES), "the scores of the second generation")
        assert "generation 2" in board("show", "physics").stdout
        assert worker.code is None
        workers.stop()


def kinds(kafka, topic):
    """The claims of the published verdict changes, by kind."""
    found = {"decided": [], "settled": [], "invalidated": []}
    for record in asyncio.run(read_all(kafka, f"{topic}.verdicts")):
        change = json.loads(record.value)
        found[change["kind"]].append(change["procedure"])
    return found

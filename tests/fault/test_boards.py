"""The life of a board in a service: changes go to the topic, workers and readers make them, and the commands show what is stored."""

import asyncio
import json
from urllib.request import Request, urlopen

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


@pytest.mark.fault(
    "benchmarks",
    "a board archived, deleted, reopened and undone over the topic, the worker killed afterwards",
    "late scores are dead letters, its verdicts are withdrawn, the next generation is reported",
)
def test_a_board_is_archived_deleted_and_begun_again_over_the_topic(kafka, topic, tmp_path):
    env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
    env |= {"RANKWATCH_TOKEN": "secret", "RANKWATCH_ANONYMOUS_READ": "*"}
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
        posted = [each | {"model": "cedar"} for each in SCORES if each["model"] == "ash"]
        body = "".join(json.dumps(each) + "\n" for each in posted).encode()
        headers = {"Authorization": "Bearer secret", "Content-Type": "application/x-ndjson"}
        reader = workers.read()
        urlopen(Request(f"{reader.url()}/api/v1/events", body, headers), timeout=30).close()
        until(lambda: stored()["events"] == 90, "the scores over HTTP")
        since = "2026-01-01T00:00Z"
        assert (
            "none of the events of producer ci" in board("undo", "physics", "--producer", "ci", "--yes", code=1).stderr
        )
        undone = board("undo", "physics", "--producer", "operator", "--since", since, "--yes").stdout
        assert undone.startswith("physics: 30 events withdrawn, 60 stay")
        assert (stored()["events"], stored()["models"], stored()["generation"]) == (60, 2, 3)
        note = "generation 3: the events of producer operator since 2026-01-01T00:00:00Z were withdrawn at offset"

        def report():
            found = json.loads(get(f"{reader.url()}/api/v1/benchmarks/physics")[1])["benchmarks"][0]
            return found if found["events"] == 60 and "partial" not in found["board"]["note"] else None

        folded = until(report, "the reader to fold the undo")
        assert folded["board"]["note"].startswith(note)
        assert folded["pairs"][0]["decided"]["anytime_family"] is not None
        assert worker.code is None
        workers.kill(worker)
        worker = workers.start()  # it loads what was stored, and goes on
        send(late)
        until(lambda: stored()["events"] + stored()["rejected"] == 61, "the next worker to go on")
        assert note in board("show", "physics").stdout
        assert worker.code is None
        workers.stop()


def kinds(kafka, topic):
    """The claims of the published verdict changes, by kind."""
    found = {"decided": [], "settled": [], "invalidated": []}
    for record in asyncio.run(read_all(kafka, f"{topic}.verdicts")):
        change = json.loads(record.value)
        found[change["kind"]].append(change["procedure"])
    return found

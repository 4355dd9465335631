"""Dead letters of a service: what a closed board refused counts after it is restored and its records are sent again."""

import asyncio
import json

import pytest

from tests.commands import get, rankwatch, until
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.full]


def test_records_of_an_archived_board_are_listed_and_sent_again(kafka, topic, tmp_path):
    scores = [{"benchmark": "physics", "item_id": str(k), "model": "ash", "score": 1} for k in range(40)]
    files = {name: tmp_path / f"{name}.jsonl" for name in ("early", "late")}
    files["early"].write_text("".join(json.dumps(each) + "\n" for each in scores[:10]))
    files["late"].write_text("".join(json.dumps(each) + "\n" for each in scores[10:]))
    asyncio.run(kafka.create_topic(topic, 2))
    with (
        RedisServer(tmp_path) as redis,
        Workers(kafka.url(topic), redis.url, tmp_path, RANKWATCH_GROUP=topic) as workers,
    ):
        worker = workers.start()
        places = "--broker", kafka.url(topic), "--topic", topic

        def stored():
            listed = rankwatch("board", "list", "--format", "json", *places, "--redis-url", redis.url).stdout
            return next(iter(json.loads(listed)["boards"]), {"events": 0, "rejected": 0})

        def send(path):
            rankwatch("send", path, "--to", kafka.url(topic), "--data-dir", tmp_path / "sent", "--again")

        send(files["early"])
        until(lambda: stored()["events"] == 10, "the scores to be folded")
        rankwatch("board", "archive", "physics", *places, "--redis-url", redis.url)
        send(files["late"])
        until(lambda: stored()["rejected"] == 30, "the late scores to be refused")
        listed = rankwatch("dead-letters", "list", *places).stdout
        assert "30 of physics" in listed
        shown = rankwatch("dead-letters", "show", "--records", "--benchmark", "phys*", *places).stdout.splitlines()
        assert {json.loads(line)["item_id"] for line in shown} == {str(k) for k in range(10, 40)}
        rankwatch("board", "restore", "physics", *places, "--redis-url", redis.url)
        dry = rankwatch("dead-letters", "replay", "--reason", "archived", "--dry-run", *places).stdout
        assert "30 dead letters would be sent again" in dry
        assert stored()["events"] == 10
        for _ in range(2):
            rankwatch("dead-letters", "replay", "--reason", "archived", *places)

        def counted():
            (report,) = json.loads(get(f"{worker.url()}/api/v1/benchmarks/physics")[1])["benchmarks"]
            return report["events"], report["duplicates"]

        until(lambda: counted() == (70, 30), "the second replay to be folded")
        assert (
            rankwatch("dead-letters", "list", "--since", "2099-01-01T00:00:00Z", *places).stdout == "0 dead letters\n"
        )

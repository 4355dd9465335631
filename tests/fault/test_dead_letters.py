"""Dead letters of a service: what a closed board refused, sent again, and results of OpenTelemetry that cannot be used."""

import asyncio
import json
import urllib.request

import pytest

from tests.commands import get, rankwatch, until
from tests.integration.test_otlp import MAPPING, export
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer
from tests.unit.files.test_ingest_open_telemetry import case, logs, result

pytestmark = [pytest.mark.kafka, pytest.mark.full]


def test_records_of_an_archived_board_are_listed_and_sent_again(kafka, topic, tmp_path):
    scores = [{"benchmark": "physics", "item_id": str(k), "model": "ash", "score": 1} for k in range(40)]
    files = {name: tmp_path / f"{name}.jsonl" for name in ("early", "late")}
    files["early"].write_text("".join(json.dumps(each) + "\n" for each in scores[:10]))
    files["late"].write_text("".join(json.dumps(each) + "\n" for each in scores[10:]))
    asyncio.run(kafka.create_topic(topic, 2))
    (tmp_path / "otel.toml").write_text(MAPPING)
    env = {"RANKWATCH_GROUP": topic, "RANKWATCH_OTEL_MAP": str(tmp_path / "otel.toml")}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        workers.start()
        reader = workers.read()
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
            (report,) = json.loads(get(f"{reader.url()}/api/v1/benchmarks/physics")[1])["benchmarks"]
            return report["events"], report["duplicates"]

        until(lambda: counted() == (70, 30), "the second replay to be folded")
        assert (
            rankwatch("dead-letters", "list", "--since", "2099-01-01T00:00:00Z", *places).stdout == "0 dead letters\n"
        )
        results_of_opentelemetry(reader.url(), places)


def results_of_opentelemetry(url, places):
    """The copies of the results in logs and in traces count once; a result without an item, and one out of range, become dead letters."""
    assert [export(url, signal) for signal in ("logs", "traces")] == [200, 200]
    body = json.dumps(logs(result(), result(7.0) + case("q9"), result() + case("q9"))).encode()
    request = urllib.request.Request(f"{url}/v1/logs", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        assert json.load(response)["partialSuccess"]["rejectedLogRecords"] == "2"

    def counted():
        status, text = get(f"{url}/api/v1/benchmarks/bot")
        (report,) = json.loads(text)["benchmarks"] if status == 200 else [{}]
        return [report.get(name) for name in ("events", "duplicates", "rejected")]

    until(lambda: counted() == [21, 10, 2], "the results to be folded")
    shown = rankwatch("dead-letters", "show", "--benchmark", "bot", *places).stdout
    assert "item_id" in shown
    assert "OTLP logs" in shown
    (event,) = (
        json.loads(line)
        for line in rankwatch(
            "dead-letters", "show", "--records", "--benchmark", "bot", "--reason", "score", *places
        ).stdout.splitlines()
    )
    assert (event["item_id"], event["score"]) == ("q9", 7)

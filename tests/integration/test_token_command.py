"""`rankwatch token`, and a `watch` that uses its file."""

import asyncio
import json
import random
import stat
from urllib.request import Request, urlopen

import pytest
from aiokafka import AIOKafkaProducer

from tests.commands import Watch, events, get, rankwatch, until, write
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer


@pytest.fixture
def file(tmp_path):
    return tmp_path / "made/access.json"


def token(file, *arguments, code=0):
    return rankwatch("token", *arguments, "--file", file, code=code)


def test_a_token_is_shown_once_and_works_until_it_is_revoked(tmp_path, file):
    created = token(file, "create", "ci", "--scope", "read:mm*", "--expires", "1d")
    secret = created.stdout.strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret not in file.read_text()
    paths = [
        write(tmp_path / f"{n}.jsonl", events(random.Random(1), {"a": 0.9, "b": 0.2}, 5, benchmark=n))
        for n in ("mmlu", "gsm8k")
    ]
    with Watch(tmp_path / "data", *paths, "--items", 5, RANKWATCH_ACCESS_FILE=str(file)) as watch:

        def seen(secret):
            status, text = get(f"{watch.url}/api/v1/summaries", Authorization=f"Bearer {secret}")
            return [each["benchmark"] for each in json.loads(text)] if status == 200 else status

        until(lambda: seen(secret) == ["mmlu"], "the readable benchmark")
        assert get(f"{watch.url}/api/v1/summaries")[0] == 401
        other = token(file, "rotate", "ci", "--overlap", "1h").stdout.strip()
        assert seen(secret) == seen(other) == ["mmlu"]
        latest = token(file, "rotate", "ci").stdout.strip()
        assert (seen(secret), seen(other), seen(latest)) == (401, 401, ["mmlu"])
        listed = json.loads(token(file, "list", "--format", "json").stdout)["tokens"]
        assert [(each["name"], each["scopes"], each["state"]) for each in listed] == [("ci", ["read:mm*"], "valid")]
        assert listed[0]["expires"] is not None, "it lives as long as the first one"
        assert "revoked" in token(file, "revoke", "ci").stderr
        assert seen(latest) == 401
        assert watch.stop() == 0
        shown = "".join([*watch.lines, *watch.errors])
    assert not any(each in shown for each in (secret, other, latest))
    assert token(file, "list").stdout == "no tokens\n"


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["create", "ci"], 2, "give --scope"),
        (["create", "ci", "--scope", "all"], 2, "'all' is not a scope; use read, read:GLOB"),
        (["create", "a b", "--scope", "read"], 2, "'a b' is not a name"),
        (["create", "anonymous", "--scope", "read"], 2, "has a meaning of its own"),
        (["create", "ci", "--scope", "read", "--expires", "soon"], 2, "--expires 'soon': use a time such as 30d"),
        (["create", "ci", "--scope", "read", "--expires", "2020-01-01"], 2, "is past"),
        (["revoke", "ci"], 1, "there is no token of the name 'ci'"),
        (["rotate", "ci"], 1, "there is no token of the name 'ci'"),
        (["list"], 1, "does not exist"),
    ],
)
def test_a_wrong_call_names_what_to_do(file, arguments, code, reason):
    assert reason in token(file, *arguments, code=code).stderr
    assert not file.exists() or arguments[0] != "create"


def test_a_name_has_one_token(file):
    token(file, "create", "ci", "--scope", "read")
    assert "rankwatch token rotate ci" in token(file, "create", "ci", "--scope", "admin", code=1).stderr
    file.chmod(0o644)
    assert "chmod 600" in token(file, "create", "other", "--scope", "read", code=1).stderr
    refused = rankwatch("watch", "--data-dir", file.parent / "data", code=1, RANKWATCH_ACCESS_FILE=str(file))
    assert "open to other users (mode 0644)" in refused.stderr


def test_groups_are_set_listed_and_taken_away(file):
    assert "members of * may do: read" in token(file, "group", "*", "--scope", "read").stderr
    token(file, "group", "evaluation", "--scope", "write:mmlu*", "--scope", "declare:mmlu*")
    token(file, "create", "ci", "--scope", "read")
    listed = json.loads(token(file, "list", "--format", "json").stdout)
    assert listed["groups"] == [
        {"name": "*", "scopes": ["read"]},
        {"name": "evaluation", "scopes": ["write:mmlu*", "declare:mmlu*"]},
    ]
    assert "group evaluation" in token(file, "list").stdout
    token(file, "group", "evaluation")
    assert [each["name"] for each in json.loads(token(file, "list", "--format", "json").stdout)["groups"]] == ["*"]
    for name in ("a,b", " ", "a\nb"):
        assert "is no name of a group" in token(file, "group", name, "--scope", "read", code=2).stderr
    assert "is not a scope" in token(file, "group", "a", "--scope", "all", code=2).stderr


def test_a_file_has_to_be_named():
    assert "RANKWATCH_ACCESS_FILE" in rankwatch("token", "list", code=2).stderr


@pytest.mark.fault(
    "attacks", "a producer's name in a header of a real topic: signed, made up, absent", "named; claimed; unknown"
)
@pytest.mark.kafka
def test_the_service_names_who_sent_a_conflict(kafka, topic, tmp_path, file):
    """Through a real topic: a name that the reader signed, and one that another writer of the topic made up."""
    asyncio.run(kafka.create_topic(topic, 1))
    secret = token(file, "create", "second", "--scope", "write").stdout.strip()
    env = {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_ACCESS_FILE": str(file),
        "RANKWATCH_TOKEN": "s3cret",
    }
    score = {"benchmark": "b", "item_id": "1", "model": "m", "score": 1}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        worker = workers.start()
        reader = workers.read()
        until(lambda: workers.shares() == [{0}], "the partition")

        def post(key, **changed):
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
            request = Request(f"{reader.url()}/api/v1/events", json.dumps(score | changed).encode(), headers)
            with urlopen(request, timeout=60) as answer:
                assert json.load(answer)["accepted"] == 1

        async def write(headers):
            async with AIOKafkaProducer(bootstrap_servers=kafka.addresses) as producer:
                await producer.send_and_wait(topic, json.dumps(score | {"score": 0}).encode(), b"b", headers=headers)

        def conflicts():
            text = get(f"{worker.url()}/metrics", Authorization="Bearer s3cret")[1]
            lines = [line for line in text.splitlines() if line.startswith("rankwatch_conflicts_by_producer_total{")]
            return {line.split('"')[1]: float(line.split()[1]) for line in lines}

        post("s3cret")
        post(secret, score=0)
        asyncio.run(write([("rankwatch-producer", b"operator:" + b"0" * 32)]))
        asyncio.run(write([]))
        until(lambda: conflicts() == {"second": 1, "claimed:operator": 1, "": 1}, "the conflicts")

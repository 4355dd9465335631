"""A producer of unreadable records: its benchmark is set aside, no worker ends, and no other benchmark waits for longer than 5 s."""

import asyncio
import json
import os
import time
from urllib.parse import quote

import pytest

from monitor.store.redis_store import RedisStore
from tests.commands import PATIENCE, get, rankwatch, until
from tests.kafka.judge import caught_up
from tests.kafka.pulse import Pulse
from tests.kafka.records import read_all
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

PARTITIONS = 4
BAD = 700
SLOW = os.environ.get("RANKWATCH_SLOW") == "1"  # on a machine that does nothing else
LIMIT = 5.0
"""Seconds that a benchmark may wait because of another one."""


def events_of(redis, topic, partition, name):
    """How many events of a benchmark the store holds."""

    async def load():
        async with await RedisStore.open(redis.url, topic) as store:
            return {each.name: each.counters["events"] for each in (await store.load(partition)).benchmarks}

    return asyncio.run(load()).get(name, 0)


@pytest.mark.fault(
    "benchmarks",
    "700 unreadable records of one benchmark",
    "it is quarantined, as a reader shows; no worker ends, the others go on; a release with replay counts every readable event",
)
def test_a_flood_of_unreadable_records_ends_no_worker_and_can_be_released(kafka, topic, tmp_path):
    env = {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_KAFKA_SESSION_SECONDS": "6",
    }
    asyncio.run(kafka.create_topic(topic, PARTITIONS))
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        with Pulse(kafka, redis, topic, PARTITIONS) as pulse:
            workers.start(), workers.start()
            until(lambda: pulse.count > 5 and pulse.folded(), "the workers to fold")
            pulse.fresh()
            name = pulse.names[0]
            key = name.encode()
            good = [
                json.dumps({"benchmark": name, "item_id": f"later {k}", "model": "m", "score": 1}).encode()
                for k in range(10)
            ]
            # All of them have the key of the benchmark, and nothing else that names it.
            pulse.send([(0, key, b'{"score": NaN, ') for _ in range(BAD)] + [(0, key, value) for value in good])
            begin = time.monotonic()
            (entry,) = until(lambda: quarantined(redis, topic), "the benchmark to be set aside")
            time.sleep(max(0, LIMIT - (time.monotonic() - begin)))
            waits = pulse.waits()
            print(f"{BAD} unreadable records: longest waits {waits}")
            assert max(waits.values()) < (LIMIT if SLOW else PATIENCE), workers.logs()
            assert [worker.code for worker in workers.all] == [None, None], workers.logs()
            assert (entry["benchmark"], entry["partition"]) == (name, 0)
            assert 0 < len(asyncio.run(read_all(kafka, f"{topic}.dlq"))) <= 501 + pulse.count
            reader = workers.read()
            board = json.loads(reader.get(f"/api/v1/boards/{quote(name)}")[2])
            assert "too many of its records cannot be read" in board["set_aside"]

            def is_reported():  # the count of its records grows until all have been read
                said = json.loads(reader.get(f"/api/v1/boards/{quote(name)}")[2])["set_aside"]
                report = json.loads(reader.get(f"/api/v1/board?benchmark={quote(name)}")[2])["report"]
                return said in report["partial"]

            until(is_reported, "the report to show what is set aside")
            metrics = [get(f"{worker.url()}/metrics")[1] for worker in workers.all]
            assert sum(text.count('rankwatch_quarantined_benchmarks{partition="0"} 1.0') for text in metrics) == 1
            logged = [line for worker in workers.all for line in worker.lines("a benchmark is set aside")]
            assert [line["benchmark"] for line in logged] == [name]
            answer = rankwatch("quarantine", "list", "--redis-url", redis.url, "--topic", topic).stdout
            assert f"{name}: " in answer
            assert "too many of its records cannot be read" in answer
        asyncio.run(caught_up(kafka, redis, topic, PARTITIONS, workers.logs))
        arguments = "--broker", kafka.url(topic), "--redis-url", redis.url
        assert "sent again" in rankwatch("quarantine", "release", name, *arguments, "--replay").stdout
        until(lambda: not quarantined(redis, topic), "the benchmark to be released")
        expected = pulse.count + len(good)
        until(lambda: events_of(redis, topic, 0, name) == expected, f"{expected} events, with those set aside")
        workers.stop()
        assert "is not set aside" in rankwatch("quarantine", "release", name, *arguments, code=1).stderr


def quarantined(redis, topic):
    """What `rankwatch quarantine list` shows."""
    listed = rankwatch("quarantine", "list", "--redis-url", redis.url, "--topic", topic, "--format", "json")
    return json.loads(listed.stdout)["quarantine"]

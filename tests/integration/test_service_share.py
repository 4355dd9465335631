"""Three workers of the service share the load; one more, and one less, and no number is wrong."""

import asyncio
import random

import pytest

from tests.commands import PATIENCE, until
from tests.kafka.judge import caught_up, judge
from tests.kafka.run_worker import Workers
from tests.kafka.traffic import Feeder, stream
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

PARTITIONS = 6


def test_workers_share_the_partitions_as_they_come_and_go(kafka, topic, tmp_path):
    messages, events, bad = stream(random.Random(11), 9_000, PARTITIONS)
    env = {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_KAFKA_SESSION_SECONDS": "2",
    }
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        asyncio.run(kafka.create_topic(topic, PARTITIONS, max_message_bytes=8 << 20))

        def shared():
            """Whether each that runs has its share of the partitions, and all are served."""
            parts = workers.shares()
            return {len(part) for part in parts} == {PARTITIONS // len(parts)} and set.union(*parts) == set(
                range(PARTITIONS)
            )

        feeder = Feeder(kafka.addresses, topic, messages, pace=250)
        feeder.allow(0.05)
        feeder.rest(PATIENCE)
        _, two = workers.start(), workers.start()
        until(shared, "two workers to share")
        feeder.allow(0.5)  # goes on while they come and go
        workers.start()
        until(shared, "three workers to share")
        workers.kill(two)
        until(shared, "two workers to take over from the one that was killed")
        feeder.finish(PATIENCE)
        asyncio.run(caught_up(kafka, redis, topic, PARTITIONS, workers.logs))
        workers.stop()
        judged = judge(kafka, redis, topic, f"{topic}.verdicts", PARTITIONS)
        print(judged)
        assert (judged.events, judged.letters) == (events, bad)
        assert judged.latches > 50

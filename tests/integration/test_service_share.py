"""Three workers of the service share the load; one more, and one less, and no number is wrong."""

import asyncio
import random
import signal
from contextlib import ExitStack

import pytest

from tests.commands import PATIENCE, until
from tests.kafka.judge import caught_up, judge
from tests.kafka.run_worker import RunWorker
from tests.kafka.traffic import Feeder, stream
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

PARTITIONS = 6


def test_workers_share_the_partitions_as_they_come_and_go(kafka, topic, tmp_path):
    messages, events, bad = stream(random.Random(11), 9_000, PARTITIONS)
    with ExitStack() as stack:
        redis = stack.enter_context(RedisServer(tmp_path))
        asyncio.run(kafka.create_topic(topic, PARTITIONS, max_message_bytes=8 << 20))
        workers = []

        def start():
            env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
            env["RANKWATCH_KAFKA_SESSION_SECONDS"] = "2"
            path = tmp_path / f"worker {len(workers)}.log"
            worker = RunWorker(kafka.url(topic), redis.url, path, len(workers), **env)
            stack.callback(lambda: worker.code is None and (worker.process.kill(), worker.process.wait()))
            workers.append(worker)
            return worker

        def shared(*running):
            """Whether each of these has its share of the partitions, and all are served."""
            share = PARTITIONS // len(running)
            parts = [worker.partitions() for worker in running]
            return all(len(part) == share for part in parts) and set.union(*parts) == set(range(PARTITIONS))

        feeder = Feeder(kafka.addresses, topic, messages, pace=250)
        feeder.allow(0.05)
        feeder.rest(PATIENCE)
        one, two = start(), start()
        until(lambda: shared(one, two), "two workers to share")
        feeder.allow(0.5)  # goes on while they come and go
        three = start()
        until(lambda: shared(one, two, three), "three workers to share")
        two.signal(signal.SIGKILL)
        until(lambda: shared(one, three), "two workers to take over from the one that was killed")
        feeder.finish(PATIENCE)
        running = [one, three]
        said = lambda: "\n".join(worker.told[-2000:] for worker in running)  # noqa: E731
        asyncio.run(caught_up(kafka, redis, topic, PARTITIONS, said))
        for worker in running:
            worker.signal(signal.SIGTERM)
        assert [worker.process.wait(PATIENCE) for worker in running] == [0, 0], said()
        judged = judge(kafka, redis, topic, f"{topic}.verdicts", PARTITIONS)
        print(judged)
        assert (judged.events, judged.letters) == (events, bad)
        assert judged.latches > 50

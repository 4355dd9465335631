"""SIGTERM in every phase of the service: it ends within its time, and says nothing that is not so."""

import asyncio
import json
import random
import signal
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer

from schemas.records.ownership import owner
from tests.commands import PATIENCE, Watch, events, get, rankwatch, until, write
from tests.kafka.broker import KafkaCluster
from tests.kafka.fixtures import broker_or_skip
from tests.kafka.run_worker import RunWorker
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

DRAIN_SECONDS = 20
PARTITIONS = 4


def catches(process, number=signal.SIGTERM):
    """Whether a process has a handler for a signal."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    caught = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), 16)
    return bool(caught >> (number - 1) & 1)


class Scene:
    """A topic with events, a server, and workers."""

    def __init__(self, stack, kafka, topic, folder):
        self.kafka, self.topic, self.folder, self.stack = kafka, topic, folder, stack
        self.redis = stack.enter_context(RedisServer(folder))
        self.workers = []
        asyncio.run(kafka.create_topic(topic, PARTITIONS))
        asyncio.run(self.produce(50))

    async def produce(self, items):
        async with AIOKafkaProducer(bootstrap_servers=self.kafka.addresses) as producer:
            for name in ("one", "two", "three"):
                for item in range(items):
                    event = {"benchmark": name, "item_id": f"i{item} {time.monotonic_ns()}", "model": "m", "score": 1}
                    await producer.send(self.topic, json.dumps(event).encode(), partition=owner(name, PARTITIONS))

    def worker(self, url=None, *, fresh=False, **env):
        env = {"RANKWATCH_GROUP": self.topic, "RANKWATCH_KAFKA_SESSION_SECONDS": "2"} | env
        path = self.folder / f"worker {len(self.workers)}.log"
        worker = RunWorker(url or self.kafka.url(self.topic), self.redis.url, path, fresh=fresh, **env)
        self.workers.append(worker)
        self.stack.callback(self._end, worker)
        return worker

    @staticmethod
    def _end(worker):
        if worker.code is None:
            worker.process.kill()
            worker.process.wait()

    def idle(self, **env):
        worker = self.worker(**env)
        url = worker.url()
        until(lambda: get(f"{url}/readyz")[0] == 200, "the worker to be ready")
        return worker


@pytest.fixture
def scene(kafka, topic, tmp_path):
    with ExitStack() as stack:
        yield Scene(stack, kafka, topic, tmp_path)


def stops(worker, code=0, within=DRAIN_SECONDS):
    """Ask a worker to end, and return how long that took."""
    begin = time.monotonic()
    worker.signal(signal.SIGTERM)
    exit_code = worker.process.wait(PATIENCE)
    took = time.monotonic() - begin
    assert exit_code == code, f"exit {exit_code} after {took:.1f} s\n{worker.log_text}"
    assert "Traceback" not in worker.log_text, worker.log_text
    assert took < within
    print(f"ended after {took:.1f} s")


@pytest.mark.fault("processes", "SIGTERM during the imports", "exit 0 within its time")
def test_during_the_imports(scene, tmp_path):
    for delay in (0, 0.1, 0.3):
        worker = scene.worker(fresh=True)
        until(lambda worker=worker: catches(worker.process), "the first handler")
        time.sleep(delay)
        stops(worker)
    with Watch(tmp_path / "data", write(tmp_path / "events.jsonl", []), fresh=True) as watch:
        until(lambda: catches(watch.process), "the first handler")
        assert watch.stop() == 0, watch.errors


@pytest.mark.fault("processes", "SIGTERM while no broker answers", "the same")
def test_while_no_broker_answers(scene):
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections, and never says a word
        worker = scene.worker(f"kafka://127.0.0.1:{silent.getsockname()[1]}/events")
        until(lambda: catches(worker.process, signal.SIGINT), "the first handler")
        time.sleep(2)
        stops(worker)


@pytest.mark.fault("processes", "SIGTERM while Redis hangs", "the same")
def test_while_redis_hangs_as_the_state_is_loaded(scene):
    scene.redis.freeze()
    worker = scene.worker()
    until(lambda: "topic created" in worker.log_text, "the worker to come to the server")
    time.sleep(1)
    stops(worker)


def test_idle_and_ready(scene):
    worker = scene.idle()
    stops(worker)
    assert worker.lines("stopped")


@pytest.mark.fault("processes", "SIGTERM during a rebalance", "the same; the other worker takes over")
def test_while_partitions_move(scene):
    first = scene.idle()
    second = scene.worker()
    until(lambda: "rebalancing" in first.log_text, "a rebalance")
    stops(first)
    until(lambda: second.holds() == PARTITIONS, "the other worker to take over")
    stops(second)


@pytest.mark.fault("processes", "SIGTERM while Redis is away and records wait", "the same")
@pytest.mark.parametrize("how", ["frozen", "killed"])
def test_while_redis_is_away_and_there_is_something_to_fold(scene, how):
    worker = scene.idle(RANKWATCH_DRAIN_SECONDS="10")
    url = worker.url()
    scene.redis.freeze() if how == "frozen" else scene.redis.kill()
    asyncio.run(scene.produce(20))
    until(
        lambda: get(f"{url}/readyz") == (503, "the store does not answer\n"), "the worker to say that it is not ready"
    )
    assert get(f"{url}/healthz")[0] == 200
    stops(worker, within=10)


@pytest.mark.fault("processes", "SIGTERM while the broker is away", "the same")
def test_while_the_broker_is_away(tmp_path):
    broker_or_skip()
    with KafkaCluster() as kafka, ExitStack() as stack:
        scene = Scene(stack, kafka, "events", tmp_path)
        worker = scene.idle()
        kafka.brokers[0].kill()
        time.sleep(1)
        stops(worker)


@pytest.mark.fault("processes", "SIGTERM while `watch` folds its log again", "the same; nothing is lost")
def test_a_watch_that_reads_its_log_again(tmp_path):
    """The embedded monitor, asked to end while it folds a log that is longer than its state."""
    file = write(tmp_path / "events.jsonl", events(random.Random(1), {"a": 0.5, "b": 0.7}, 2_000))
    rankwatch("watch", file, "--once", "--order", "trusted", "--data-dir", tmp_path / "data")
    with Watch(tmp_path / "data", file, "--order", "trusted") as watch:
        until(lambda: watch.server, "the embedded server")
        assert watch.stop() == 0, watch.errors
    shown = json.loads(rankwatch("state", "show", "--data-dir", tmp_path / "data", "--format", "json").stdout)
    assert shown["partitions"][0]["events"] == 4_000

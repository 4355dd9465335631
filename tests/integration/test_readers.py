"""Readers behind a load balancer show every board on every reload, while workers are killed and partitions move.

Each answer names its offset, and equals a report of the log up to there. RANKWATCH_SLOW=1 raises the time from 15 s to 5 minutes.
"""

import asyncio
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from contextlib import ExitStack

import pytest

from monitor.store.layout import Keys, origin_secret_key
from tests.commands import PATIENCE, until
from tests.kafka.judge import caught_up
from tests.kafka.prefixes import Prefixes
from tests.kafka.run_worker import RunReader, Workers, get
from tests.kafka.traffic import Feeder, benchmarks, stream
from tests.ports import free_port, free_ports
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
SEED = int(os.environ.get("RANKWATCH_SEED", "19"))
EVENTS = 200_000 if SLOW else 12_000
SECONDS = 300.0 if SLOW else 15.0
PARTITIONS = 6
FAULTS = ("worker", "reader", "stopped reader", "frozen reader", "frozen worker")
HAPROXY = """
defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 30s
    timeout check 30s
    retries 5
    option redispatch 1
    retry-on conn-failure empty-response response-timeout 503
    option httpchk
    http-check send meth GET uri /readyz hdr Host 127.0.0.1
frontend page
    bind 127.0.0.1:{port}
    default_backend readers
backend readers
    balance roundrobin
    default-server check inter 500ms fall 6 rise 1
"""


@pytest.fixture
def balancer(tmp_path):
    """Return a function that starts HAProxy in front of ports, and returns its address."""
    executable = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if executable is None:
        pytest.skip("no haproxy on PATH (Debian: apt-get install haproxy)")
    started = []

    def start(ports):
        port = free_port()
        servers = "".join(f"    server reader{k} 127.0.0.1:{each}\n" for k, each in enumerate(ports))
        file = tmp_path / "haproxy.cfg"
        file.write_text(HAPROXY.format(port=port) + servers)
        with (tmp_path / "haproxy.log").open("w") as log:
            started.append(subprocess.Popen([executable, "-db", "-f", file], stdout=log, stderr=log))
        url = f"http://127.0.0.1:{port}"
        until(lambda: get(url + "/readyz")[0] == 200, "HAProxy: " + (tmp_path / "haproxy.log").read_text())
        return url

    yield start
    for process in started:
        process.kill()
        process.wait()


class Readers:
    """Two readers on ports of their own, to be killed, frozen and started again."""

    def __init__(self, broker_url, redis_url, folder, ports):
        self._urls, self._folder, self.ports = (broker_url, redis_url), folder, ports
        self.all, self.slots = [], [None] * len(ports)

    def start(self, slot):
        """Start the reader of a slot."""
        path = self._folder / f"reader {len(self.all)}.log"
        reader = RunReader(*self._urls, path, len(self.all), RANKWATCH_PORT=str(self.ports[slot]))
        self.slots[slot] = reader
        self.all.append(reader)
        return reader

    def close(self):
        """Kill what runs."""
        for reader in self.all:
            if reader.code is None:
                reader.process.kill()
                reader.process.wait()


class Visitor(threading.Thread):
    """Reloads pages through the load balancer, and keeps what it saw."""

    def __init__(self, url, names, seed):
        super().__init__(daemon=True)
        self._url, self._names, self._rng = url, names, random.Random(seed)
        self.answers, self.failures, self.cut = [], [], 0
        """`cut`: answers whose reader was killed between their first and their last byte, which no load balancer can repair."""
        self._end = threading.Event()
        self.start()

    def run(self):
        while not self._end.is_set():
            name = self._rng.choice([None, *self._names])
            path = "summaries" if name is None else f"benchmarks/{name.replace(' ', '%20')}?pairs=all"
            status, headers, body = get(f"{self._url}/api/v1/{path}")
            if status == 0 and body.startswith("IncompleteRead"):
                self.cut += 1
                status, headers, body = get(f"{self._url}/api/v1/{path}")
            if status == 200:
                self.answers.append((name, headers["rankwatch-offset"], body))
            else:
                self.failures.append((name, status, body[:300]))
            time.sleep(0.05)

    def stop(self):
        """End, and return what was seen."""
        self._end.set()
        self.join(PATIENCE)
        return self.answers


@pytest.mark.fault(
    "readers",
    "workers and readers killed, stopped and frozen under clients that reload",
    "every whole answer is the report of the log up to the offset that it names",
)
def test_every_reload_is_complete_while_workers_and_readers_are_killed(kafka, topic, tmp_path, balancer):
    rng = random.Random(SEED)
    messages, _, _ = stream(rng, EVENTS, PARTITIONS)
    names = list(benchmarks(PARTITIONS))
    env = {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_KAFKA_SESSION_SECONDS": "6",
    }
    with (
        RedisServer(tmp_path) as redis,
        Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers,
        ExitStack() as stack,
    ):
        asyncio.run(kafka.create_topic(topic, PARTITIONS, max_message_bytes=8 << 20))
        feeder = Feeder(kafka.addresses, topic, messages, len(messages) * 0.7 / SECONDS)
        feeder.allow(0.15)
        feeder.rest(PATIENCE)
        running = [workers.start() for _ in range(3)]
        until(lambda: all(worker.assigned() for worker in running), "three workers")
        readers = Readers(kafka.url(topic), redis.url, tmp_path, free_ports(2))
        stack.callback(readers.close)
        for slot in range(2):
            readers.start(slot)
        until(lambda: all(reader.ready() for reader in readers.slots), "two readers")
        visitors = [Visitor(url, names, k) for k, url in enumerate([balancer(readers.ports)] * 2)]
        # What was in the log when the visits began has every board.
        feeder.allow(0.7)
        begin, faults = time.monotonic(), []
        while time.monotonic() < begin + SECONDS:
            kind = FAULTS[len(faults) % len(FAULTS)]
            faults.append(kind)
            if kind == "worker":
                workers.kill(rng.choice(workers.running))
                workers.start()
            elif kind == "frozen worker":
                frozen = rng.choice(workers.running)
                frozen.signal(signal.SIGSTOP)
                time.sleep(2.5)
                frozen.signal(signal.SIGCONT)
            else:
                slot = rng.randrange(2)
                until(readers.slots[1 - slot].ready, "the other reader")
                if kind == "frozen reader":
                    readers.slots[slot].signal(signal.SIGSTOP)
                    time.sleep(1.5)
                    readers.slots[slot].signal(signal.SIGCONT)
                else:
                    readers.slots[slot].signal(signal.SIGKILL if kind == "reader" else signal.SIGTERM)
                    assert readers.slots[slot].process.wait(PATIENCE) == (-signal.SIGKILL if kind == "reader" else 0)
                    readers.start(slot)
                until(readers.slots[slot].ready, "the reader")
            time.sleep(1.0)
        feeder.finish(PATIENCE)
        asyncio.run(caught_up(kafka, redis, topic, PARTITIONS, workers.logs))
        answers = [answer for visitor in visitors for answer in visitor.stop()]
        failures = [failure for visitor in visitors for failure in visitor.failures]
        for reader in readers.slots:
            until(lambda: "rankwatch-unconfirmed" not in reader.get("/api/v1/summaries")[1], "the store to confirm")  # noqa: B023
            assert reader.get("/metrics")[2].count("rankwatch_reloads_total 0.0") == 1
        with redis.client() as server:
            secret = server.get(origin_secret_key(topic))
            log = server.hget(Keys(topic, 0).meta, "log").decode()
        assert not any("Traceback" in reader.log_text for reader in readers.all)
        readers.close()
        workers.stop()
        cut = sum(visitor.cut for visitor in visitors)
        print(f"seed {SEED}: {len(answers):,} answers, {len(failures)} failures, {cut} cut, faults: {faults}")
        Prefixes(kafka, topic, PARTITIONS, secret, log).check(answers)
        assert len(answers) > 2 * SECONDS
        assert not failures, failures[:5]
        assert cut <= len(visitors) * faults.count("reader")

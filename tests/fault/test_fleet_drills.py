"""A fleet of workers under a light load: killed, restarted one after the other, scaled, and next to a canary of another version.

Every partition has a pulse of events; what is measured is how long the oldest event that is not folded and stored has waited. Times are
printed, and asserted only with RANKWATCH_SLOW=1, which is for an idle machine: it has three workers, and two readers whose every answer is
looked at, and adds the drills that take longer.
"""

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.commands import PATIENCE, environment, get, rankwatch, until
from tests.kafka.judge import caught_up
from tests.kafka.pulse import Pulse
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
PARTITIONS = 6
SESSION = 3.0
LIMIT = 5.0
"""Seconds that a partition may wait whose worker ends, on a machine that does much else."""
OTHERS = 2.5
"""Seconds that a partition may wait whose worker stays; measured: 0.2 to 0.6 s."""


class Visitor(threading.Thread):
    """Asks readers for all boards, several times a second; counts the answers with every board, and keeps what the others lack."""

    def __init__(self, readers, names):
        super().__init__(daemon=True)
        self._readers, self._names = readers, set(names)
        self.complete, self.others = 0, []
        self._end = threading.Event()
        self.start()

    def run(self):
        while not self._end.wait(0.1):
            for reader in self._readers:
                status, _, body = reader.get("/api/v1/summaries")
                boards = {each["benchmark"] for each in json.loads(body)} if status == 200 else set()
                if boards >= self._names:
                    self.complete += 1
                else:
                    self.others.append((status, sorted(self._names - boards)))

    def stop(self):
        self._end.set()
        self.join(PATIENCE)
        print(f"readers: {self.complete} answers with all boards, others: {self.others}", flush=True)


class Fleet:
    """Workers with their instance names, and the pulse."""

    def __init__(self, stack, kafka, topic, folder):
        self.kafka, self.topic = kafka, topic
        asyncio.run(kafka.create_topic(topic, PARTITIONS))
        self.redis = stack.enter_context(RedisServer(folder))
        env = {
            "RANKWATCH_GROUP": topic,
            "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
            "RANKWATCH_KAFKA_SESSION_SECONDS": str(SESSION),
            "RANKWATCH_TOKEN": "secret",
            "RANKWATCH_ANONYMOUS_READ": "*",
        }
        self.env = env
        self.workers = stack.enter_context(Workers(kafka.url(topic), self.redis.url, folder, **env))
        self.pulse = stack.enter_context(Pulse(kafka, self.redis, topic, PARTITIONS))

    def start(self, number):
        """Start workers, and wait until they share the partitions."""
        for _ in range(number):
            self.workers.start()
        self.settled()

    def settled(self):
        """Wait until every partition has a worker, no two have the same, and nothing waits."""

        def shared():
            shares = self.workers.shares()
            if not all(worker.assigned() for worker in self.workers.running):
                return False
            return sum(map(len, shares)) == PARTITIONS == len(set().union(*shares)) and self.pulse.folded()

        until(shared, "the workers to share the partitions")

    @contextmanager
    def drill(self, what):
        """Measure the waits during a drill; yields a dict that gets them by partition."""
        time.sleep(1)
        self.pulse.fresh()
        waits = {}
        yield waits
        waits |= self.pulse.waits()
        print(f"\n{what}: " + ", ".join(f"{p}: {seconds:.2f} s" for p, seconds in sorted(waits.items())), flush=True)

    def right(self):
        """Stop, and count: every event is there once."""
        self.pulse.stop()
        asyncio.run(caught_up(self.kafka, self.redis, self.topic, PARTITIONS, self.workers.logs))
        self.workers.stop()
        assert "Traceback" not in self.workers.logs()


@pytest.fixture
def fleet(kafka, topic, tmp_path):
    with ExitStack() as stack:
        yield Fleet(stack, kafka, topic, tmp_path)


@pytest.mark.fault(
    "processes",
    "a fleet: a worker killed, one added, and a worker of another version started",
    "every event counts once; the other version never joins the group",
)
def test_killed_restarted_scaled_and_next_to_a_canary(fleet):
    workers = fleet.workers
    fleet.start(3 if SLOW else 2)
    readers = [workers.read(), workers.read()] if SLOW else []
    visitor = Visitor(readers, fleet.pulse.names.values())
    killed = workers.running[1]
    theirs = killed.partitions()

    with fleet.drill(f"one of {len(workers.running)} killed") as waits:
        workers.kill(killed)
        fleet.settled()
    within(waits, SESSION + 2)
    within({p: waits[p] for p in waits if p not in theirs}, OTHERS)

    with fleet.drill("another one comes") as waits:
        fleet.start(1)
    within(waits, OTHERS)
    if SLOW:
        rolled_and_scaled(fleet)
        withdrawn(fleet, readers)

    assigned = [worker.assigned() for worker in workers.running]
    with fleet.drill("a canary of another version, started five times") as waits:
        for _ in range(5 if SLOW else 1):
            canary(fleet)
    within(waits, OTHERS)
    assert [worker.assigned() for worker in workers.running] == assigned, "it has not joined the group"

    kept = [set(line["kept"]) for worker in workers.all for line in worker.lines("partitions assigned")]
    assert sum(map(bool, kept)) >= 2, "what stays is not loaded again"
    status, text = get(f"{workers.running[0].url()}/readyz")
    assert (status, text.startswith("ok: partitions ")) == (200, True)
    assert text.endswith(f" of {PARTITIONS}; benchmarks {len(workers.running[0].partitions())}\n")
    visitor.stop()
    # The board whose events are withdrawn begins again, and is empty until the first copies come.
    assert all(other == (200, [fleet.pulse.names[0]]) for other in visitor.others)
    fleet.right()


@pytest.mark.fault(
    "processes",
    "a worker with `RANKWATCH_INSTANCE` restarted",
    "it gets its partitions back; the other worker gets no assignment",
)
def test_a_worker_with_a_name_comes_back_to_its_partitions_and_interrupts_nobody(fleet):
    workers = fleet.workers
    long = {"RANKWATCH_KAFKA_SESSION_SECONDS": "30"}
    other, named = workers.start(**long), workers.start(**long, RANKWATCH_INSTANCE="two")
    fleet.settled()
    assigned, theirs = other.assigned(), named.partitions()
    with fleet.drill("a worker with a name restarted") as waits:
        workers.stop(named)
        back = workers.start(**long, RANKWATCH_INSTANCE="two")
        until(lambda: back.assigned() and fleet.pulse.folded(), "it to come back")
    assert back.partitions() == theirs
    assert other.assigned() == assigned
    within({p: waits[p] for p in waits if p not in theirs}, OTHERS)
    fleet.right()


def within(waits, seconds):
    """Assert that no partition has waited for longer; on a busy machine nothing is."""
    assert not SLOW or max(waits.values()) < seconds, waits


def rolled_and_scaled(fleet):
    """Restart the workers one after the other, then scale to four, to two and back to three."""
    workers = fleet.workers
    with fleet.drill("rolling restart") as waits:
        for worker in list(workers.running):
            workers.stop(worker)
            fleet.start(1)
    within(waits, LIMIT)
    for number in (2, 4, 2, 3):
        before = workers.running
        with fleet.drill(f"{len(before)} -> {number}") as waits:
            if number < len(before):
                workers.stop(*before[number:])
                fleet.settled()
            else:
                fleet.start(number - len(before))
        within(waits, LIMIT)


def withdrawn(fleet, readers):
    """Withdraw what a producer has sent to one board, while all boards get events."""
    name = fleet.pulse.names[0]
    events = [{"benchmark": name, "item_id": str(k), "model": "bad", "score": 1} for k in range(2_000)]
    body = "".join(json.dumps(each) + "\n" for each in events).encode()
    headers = {"Authorization": "Bearer secret", "Content-Type": "application/x-ndjson"}
    urlopen(Request(f"{readers[0].url()}/api/v1/events", body, headers), timeout=PATIENCE).close()

    def shown(reader):
        (board,) = json.loads(reader.get(f"/api/v1/benchmarks/{quote(name)}")[2])["benchmarks"]
        return (board["board"] or {"generation": 1})["generation"], sorted(model["model"] for model in board["models"])

    until(lambda: shown(readers[1]) == (1, ["bad", "m"]), "what the producer has sent")
    fleet.settled()
    places = "--broker", fleet.kafka.url(fleet.topic), "--redis-url", fleet.redis.url, "--topic", fleet.topic
    with fleet.drill(f"{len(events)} events of a producer withdrawn") as waits:
        start = time.monotonic()
        answer = rankwatch("board", "undo", name, "--producer", "operator", "--yes", *places).stdout
        until(lambda: [shown(reader) for reader in readers] == [(2, ["m"])] * 2, "both readers to show it")
        print(f"\n{answer.strip()}: {time.monotonic() - start:.1f} s until both readers show it")
    within(waits, OTHERS)


def canary(fleet):
    """Run a worker of another statistics version until it ends."""
    code = "import schemas.records.versions as versions; versions.STATISTICS_VERSION = 999\nfrom monitor.cli.app import app; app()"
    arguments = "run", "--broker", fleet.kafka.url(fleet.topic), "--redis-url", fleet.redis.url, "--port", "0"
    env = environment(**fleet.env, RANKWATCH_LINGER_SECONDS="0.5")
    ended = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert "statistics_version" in ended.stderr

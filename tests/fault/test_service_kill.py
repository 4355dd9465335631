"""Workers killed and frozen, Redis cut, the broker restarted: the state equals an offline fold of the log. Every fault is printed.

RANKWATCH_SLOW=1 raises the events from 20,000 to 60,000 and the faults from 9 to 36, over the server on PATH where there is one.
"""

import asyncio
import os
import random
import shutil
import signal
import time
from contextlib import ExitStack

import pytest

from tests.commands import PATIENCE
from tests.kafka.broker import KafkaCluster
from tests.kafka.clean_fold import assert_same_bytes
from tests.kafka.fixtures import broker_or_skip
from tests.kafka.judge import caught_up, judge
from tests.kafka.run_worker import RunWorker
from tests.kafka.traffic import Feeder, stream
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
EVENTS = 60_000 if SLOW else 20_000
ROUNDS = 4 if SLOW else 1
SEED = int(os.environ.get("RANKWATCH_SEED", "41"))
PARTITIONS = 4
SESSION = 2.0
TOPIC, VERDICTS = "events", "verdicts"
SECONDS_A_STEP = 3.0
FAULTS = (
    "before-relay",
    "redis",
    "before-script",
    "random",
    "zombie",
    "snapshot",
    "broker",
    "after-script",
    "random",
)
POINTS = ("before-relay", "before-script", "after-script", "snapshot")


class Service:
    """Two workers over a cluster and a Redis, a feeder, and what is done to them."""

    def __init__(self, cluster, redis, folder, feeder, rng):
        self.cluster, self.redis, self.folder, self.feeder, self.rng = cluster, redis, folder, feeder, rng
        self.all = []
        self.slots = [None, None]
        self.kills = 0
        self.unasked = []
        self.begin = time.monotonic()

    def clauses(self, text):
        print(
            f"seed {SEED} {time.monotonic() - self.begin:6.1f} s, {self.feeder.sent:,} messages sent: {text}",
            flush=True,
        )

    def start(self, slot, crash=""):
        more = {"RANKWATCH_KAFKA_SESSION_SECONDS": str(SESSION), "RANKWATCH_VERDICT_TOPIC": VERDICTS}
        more |= {"RANKWATCH_CRASH_AT": crash} if crash else {}
        path = self.folder / f"worker {len(self.all)}.log"
        worker = self.slots[slot] = RunWorker(self.cluster.url(TOPIC), self.redis.url, path, len(self.all), **more)
        self.all.append(worker)
        return worker

    def wait(self, reached, what, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < end, f"waited {seconds} s in vain for {what}\n" + "\n".join(
                w.log_text[-1500:] for w in self.slots
            )
            time.sleep(0.02)

    def mend(self):
        """Start again what has ended by itself, as a supervisor does."""
        for slot, worker in enumerate(self.slots):
            if worker.code is not None:
                assert "Traceback" not in worker.log_text, worker.log_text[-3000:]
                self.unasked.append((worker.code, worker.log_text.strip().splitlines()[-1][:300]))
                self.clauses(f"worker {worker.number} had ended by itself with {self.unasked[-1]}")
                self.start(slot)

    def ready(self, slot):
        worker = self.slots[slot]
        self.wait(lambda: worker.assigned() or worker.code is not None, "partitions for a new worker")

    def kill_at(self, slot, point):
        self.ready(slot)
        old = self.slots[slot]
        old.signal(signal.SIGTERM)
        began = time.monotonic()
        code = old.process.wait(PATIENCE)
        self.clauses(f"worker {old.number} was asked to end: {code} after {time.monotonic() - began:.1f} s")
        assert code == 0, old.log_text[-3000:]
        worker = self.start(slot, f"{point}:{self.rng.randint(1, 4) if point != 'before-relay' else 1}")
        self.ready(slot)
        end = time.monotonic() + PATIENCE
        while worker.code is None and time.monotonic() < end:
            self.feeder.trickle(20)
            time.sleep(0.1)
        assert worker.code == -signal.SIGKILL, f"{point}: {worker.code}\n{worker.log_text[-3000:]}"
        self.kills += 1
        self.clauses(f"kill {self.kills}: worker {worker.number} at {point}")
        self.start(slot)

    def kill(self, slot):
        worker = self.slots[slot]
        self.ready(slot)
        delay = self.rng.uniform(0, 1.2)
        time.sleep(delay)
        worker.signal(signal.SIGKILL)
        worker.process.wait()
        self.kills += 1
        self.clauses(f"kill {self.kills}: worker {worker.number}, {delay * 1000:.0f} ms after it was ready")
        self.start(slot)

    def zombie(self, slot):
        frozen, other = self.slots[slot], self.slots[1 - slot]
        share = PARTITIONS // 2
        self.wait(lambda: (frozen.holds(), other.holds()) == (share, share), "the workers to share the partitions")
        before = frozen.assigned()
        time.sleep(self.rng.uniform(0, 0.3))
        frozen.signal(signal.SIGSTOP)
        begin = time.monotonic()
        try:
            self.wait(lambda: other.holds() == PARTITIONS, "the other worker to take over")
            took = time.monotonic() - begin
            assert took > SESSION / 2
            time.sleep(1.0)
        finally:
            frozen.signal(signal.SIGCONT)
        self.wait(lambda: frozen.assigned() > before or frozen.code is not None, "the zombie to come back")
        stale = frozen.log_text.count("another writer moved the stored state")
        self.clauses(
            f"worker {frozen.number} frozen; the other had its partitions after {took:.1f} s; it came back "
            f"(exit {frozen.code}, {stale} of its writes refused)"
        )

    def lose(self):
        cut = self.rng.choice([1, 700, 20_000, 100_000])
        size = self.redis.lose(cut)
        self.clauses(f"Redis killed with {size:,} bytes in its file, {min(size, cut):,} of them cut off")

    def restart_broker(self):
        begin = time.monotonic()
        self.cluster.brokers[0].stop()
        self.cluster.start()
        self.clauses(f"the broker was away for {time.monotonic() - begin:.1f} s")

    def fault(self, kind):
        slot = self.rng.randrange(2)
        self.mend()
        if kind in POINTS:
            self.kill_at(slot, kind)
        elif kind == "random":
            self.kill(slot)
        elif kind == "zombie":
            self.zombie(slot)
        elif kind == "redis":
            time.sleep(self.rng.uniform(0.2, 1.5))
            self.lose()
        else:
            self.restart_broker()

    def retire(self):
        """End both workers in order."""
        for slot, worker in enumerate(self.slots):
            self.ready(slot)
            worker.signal(signal.SIGTERM)
        begin = time.monotonic()
        codes = [worker.process.wait(PATIENCE) for worker in self.slots]
        took = time.monotonic() - begin
        self.clauses(f"both workers ended {took:.1f} s after SIGTERM with {codes}")
        assert codes == [0, 0], "\n".join(worker.log_text[-3000:] for worker in self.slots)
        assert took < 20

    def finish(self):
        """Let two fresh workers come to the end of the log, and end them."""
        self.mend()
        self.retire()
        self.start(0)
        self.start(1)
        logs = lambda: "\n".join(worker.log_text[-2000:] for worker in self.slots)  # noqa: E731
        count = asyncio.run(caught_up(self.cluster, self.redis, TOPIC, PARTITIONS, logs))
        self.clauses(f"caught up: {count:,} records")
        self.retire()

    def close(self):
        for worker in self.all:
            if worker.code is None:
                worker.process.kill()
                worker.process.wait()


@pytest.mark.fault(
    "processes",
    "workers killed and frozen, Redis killed and cut, broker restarted, under load",
    "a clean fold of the topic gives the same counts, verdicts and stored bytes",
)
def test_no_fault_makes_the_service_lose_or_double_an_event(tmp_path):
    broker_or_skip()
    rng = random.Random(SEED)
    messages, events, bad = stream(rng, EVENTS, PARTITIONS)
    steps = FAULTS * ROUNDS
    with ExitStack() as stack:
        cluster = stack.enter_context(KafkaCluster())
        (tmp_path / "clean").mkdir()
        redis = stack.enter_context(RedisServer(tmp_path, executable=(SLOW and shutil.which("redis-server")) or None))
        clean = stack.enter_context(RedisServer(tmp_path / "clean"))
        asyncio.run(cluster.create_topic(TOPIC, PARTITIONS, max_message_bytes=8 << 20))
        pace = len(messages) / len(steps) / SECONDS_A_STEP
        feeder = Feeder(cluster.addresses, TOPIC, messages, pace)
        service = Service(cluster, redis, tmp_path, feeder, rng)
        stack.callback(service.close)
        service.clauses(f"{events:,} events in {len(messages):,} messages, {bad} bad places")
        feeder.allow(0.02)  # declarations among them, before the first worker
        feeder.rest(PATIENCE)
        service.start(0)
        service.start(1)
        service.ready(0)
        for kind in steps:
            feeder.allow(0.6 / len(steps))
            service.fault(kind)
            feeder.rest(PATIENCE)
        feeder.finish(PATIENCE)
        service.finish()
        service.clauses(f"{service.kills} kills, {len(service.unasked)} workers that ended by themselves")
        judged = judge(cluster, redis, TOPIC, VERDICTS, PARTITIONS)
        print(judged, assert_same_bytes(cluster, redis, clean, TOPIC, PARTITIONS), "keys as in a clean fold", sep="\n")
        # What was sent is what counts, whatever way it took.
        assert (judged.events, judged.letters) == (events, bad)
        assert judged.misrouted == judged.republished > events * 0.02
        assert judged.conflicts > events * 0.02
        assert judged.latches > 100

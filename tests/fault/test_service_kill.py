"""Workers killed and frozen, Redis cut, the broker restarted: the state equals an offline fold of the log. Every fault is printed.

RANKWATCH_SLOW=1 raises the events from 24,000 to 200,000 and the kills from 8 to 24.
"""

import asyncio
import os
import random
import signal
import time
from contextlib import ExitStack

import pytest
import redis as client
from aiokafka import AIOKafkaConsumer, TopicPartition

from monitor.engine.partition import Partition
from monitor.store.layout import Keys
from monitor.store.redis_store import RedisStore
from tests.commands import PATIENCE
from tests.kafka.broker import KafkaCluster
from tests.kafka.fixtures import broker_or_skip
from tests.kafka.records import read_all
from tests.kafka.run_worker import RunWorker
from tests.kafka.topic_oracle import PartitionFold, stored_state
from tests.kafka.traffic import Feeder, stream
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
EVENTS = 200_000 if SLOW else 24_000
ROUNDS = 3 if SLOW else 1
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
    "random",
    "broker",
    "after-script",
    "random",
    "redis",
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

    def say(self, text):
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
                w.told[-1500:] for w in self.slots
            )
            time.sleep(0.02)

    def mend(self):
        """Start again what has ended by itself, as a supervisor does."""
        for slot, worker in enumerate(self.slots):
            if worker.code is not None:
                self.unasked.append((worker.code, worker.told.strip().splitlines()[-1][:300]))
                self.say(f"worker {worker.number} had ended by itself with {self.unasked[-1]}")
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
        self.say(f"worker {old.number} was asked to end: {code} after {time.monotonic() - began:.1f} s")
        assert code == 0, old.told[-3000:]
        worker = self.start(slot, f"{point}:{self.rng.randint(1, 4) if point != 'before-relay' else 1}")
        end = time.monotonic() + PATIENCE
        while worker.code is None and time.monotonic() < end:
            self.feeder.trickle(20)
            time.sleep(0.1)
        assert worker.code == -signal.SIGKILL, f"{point}: {worker.code}\n{worker.told[-3000:]}"
        self.kills += 1
        self.say(f"kill {self.kills}: worker {worker.number} at {point}")
        self.start(slot)

    def kill(self, slot):
        worker = self.slots[slot]
        self.ready(slot)
        delay = self.rng.uniform(0, 1.2)
        time.sleep(delay)
        worker.signal(signal.SIGKILL)
        worker.process.wait()
        self.kills += 1
        self.say(f"kill {self.kills}: worker {worker.number}, {delay * 1000:.0f} ms after it was ready")
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
        stale = frozen.told.count("the stored state has moved")
        self.say(
            f"worker {frozen.number} frozen; the other had its partitions after {took:.1f} s; it came back "
            f"(exit {frozen.code}, {stale} of its writes refused)"
        )

    def lose(self):
        cut = self.rng.choice([1, 700, 20_000, 100_000])
        size = self.redis.lose(cut)
        self.say(f"Redis killed with {size:,} bytes in its file, {min(size, cut):,} of them cut off")

    def restart_broker(self):
        begin = time.monotonic()
        self.cluster.brokers[0].stop()
        self.cluster.start()
        self.say(f"the broker was away for {time.monotonic() - begin:.1f} s")

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
        self.say(f"both workers ended {took:.1f} s after SIGTERM with {codes}")
        assert codes == [0, 0], "\n".join(worker.told[-3000:] for worker in self.slots)
        assert took < 20

    def finish(self):
        """Let two fresh workers come to the end of the log, and end them."""
        self.mend()
        self.retire()
        self.start(0)
        self.start(1)
        asyncio.run(self._caught_up())
        self.retire()

    async def _caught_up(self):
        tps = [TopicPartition(TOPIC, p) for p in range(PARTITIONS)]
        end = time.monotonic() + 2 * PATIENCE
        with client.Redis(port=self.redis.port) as server:
            async with AIOKafkaConsumer(bootstrap_servers=self.cluster.addresses) as consumer:
                ends, offs = None, {}
                while offs != ends or ends != await consumer.end_offsets(tps):
                    assert time.monotonic() < end, f"at {offs} of {ends}\n" + "\n".join(
                        w.told[-2000:] for w in self.slots
                    )
                    await asyncio.sleep(0.1)
                    ends = await consumer.end_offsets(tps)
                    offs = {tp: int(server.hget(Keys(TOPIC, tp.partition).meta, "off") or 0) for tp in tps}
        self.say(f"caught up: {sum(ends.values()):,} records")

    def close(self):
        for worker in self.all:
            if worker.code is None:
                worker.process.kill()
                worker.process.wait()


async def stored(redis):
    """The partitions as the service has left them, and how many changes still wait to be published."""
    async with await RedisStore.open(redis.url, TOPIC) as store:
        partitions = [Partition.restore(await store.load(p)) for p in range(PARTITIONS)]
        return partitions, [await store.outbox_length(p) for p in range(PARTITIONS)]


def test_no_fault_makes_the_service_lose_or_double_an_event(tmp_path):
    broker_or_skip()
    rng = random.Random(SEED)
    messages, events, bad = stream(rng, EVENTS, PARTITIONS)
    steps = FAULTS * ROUNDS
    with ExitStack() as stack:
        cluster = stack.enter_context(KafkaCluster())
        redis = stack.enter_context(RedisServer(tmp_path))
        asyncio.run(cluster.create_topic(TOPIC, PARTITIONS, max_message_bytes=8 << 20))
        pace = len(messages) / len(steps) / SECONDS_A_STEP
        feeder = Feeder(cluster.addresses, TOPIC, messages, pace)
        service = Service(cluster, redis, tmp_path, feeder, rng)
        stack.callback(service.close)
        service.say(f"{events:,} events in {len(messages):,} messages, {bad} bad places")
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
        service.say(f"{service.kills} kills, {len(service.unasked)} workers that ended by themselves")
        judge(cluster, redis, events, bad)


def judge(cluster, redis, events, bad):
    """Compare what is stored and published with an offline fold of the topic."""
    folds = [PartitionFold(p, PARTITIONS) for p in range(PARTITIONS)]
    for record in asyncio.run(read_all(cluster, TOPIC)):
        folds[record.partition].record(record)
    partitions, waiting = asyncio.run(stored(redis))
    assert waiting == [0] * PARTITIONS
    expected = {}
    for fold, partition in zip(folds, partitions, strict=True):
        assert partition.counters == fold.counted()
        assert partition.origins == fold.origins
        assert set(partition.benchmarks) == set(fold.benchmarks)
        for name, benchmark in partition.benchmarks.items():
            found, wanted = stored_state(benchmark), fold.state(name)
            for part, value in wanted.items():
                assert found[part] == value, f"{name}: {part}"
            for (pair, procedure, kind), (identifier, *_) in wanted["latches"].items():
                expected[f"{TOPIC}/{fold.number}/{identifier}"] = (name, set(pair), procedure, kind)
    told = {change.id: change for p in partitions for b in p.benchmarks.values() for change in b.changes.values()}

    published = {}
    verdicts = asyncio.run(read_all(cluster, VERDICTS))
    for record in verdicts:
        identifier = dict(record.headers)["ce_id"].decode()
        assert published.setdefault(identifier, record.value) == record.value, (
            "a change came again, and was another one"
        )
        assert record.value.decode() == told[identifier.rsplit("/", 1)[1]].model_dump_json() or len(told) < len(
            expected
        )
    assert set(published) == set(expected)

    letters = asyncio.run(read_all(cluster, f"{TOPIC}.dlq"))
    places = {tuple(int(dict(r.headers)[name]) for name in ("partition", "offset", "index")) for r in letters}
    assert places == {(fold.number, *place) for fold in folds for place in fold.letters}

    # What was sent is what counts, whatever way it took.
    oracles = [oracle for fold in folds for oracle in fold.benchmarks.values()]
    assert sum(oracle.events for oracle in oracles) == events
    assert sum(len(fold.letters) for fold in folds) == bad
    misrouted, republished = (sum(fold.counters[name] for fold in folds) for name in ("misrouted", "republished"))
    assert misrouted == republished > events * 0.02
    conflicts = sum(oracle.conflicts for oracle in oracles)
    copies = sum(fold.counters["records"] for fold in folds)
    print(
        f"{copies:,} records, {misrouted:,} misrouted, {sum(o.duplicates for o in oracles):,} duplicates, {conflicts:,} conflicts, "
        f"{len(expected):,} latches ({sum(kind == 'reversed' for *_, kind in expected.values())} reversed), {len(verdicts):,} published, "
        f"{len(letters):,} dead letters"
    )
    assert conflicts > events * 0.02
    assert len(expected) > 100

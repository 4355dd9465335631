"""Workers killed at named points and at random, Redis killed with its file cut: the state equals an offline fold of the log."""

import asyncio
import json
import os
import random
import signal
import socket
import subprocess
import time
from contextlib import closing

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from monitor.engine.ownership import owner
from monitor.engine.partition import Partition
from monitor.store.embedded import find_executable
from monitor.store.redis_store import RedisStore
from tests.commands import PATIENCE, RANKWATCH, environment, events, rankwatch, until, write
from tests.oracle import Oracle

pytestmark = pytest.mark.kafka

PARTITIONS = 3
SEED = 20
SPECS = {
    "trusted one": {"order": "trusted"},
    "complete": {"items": 150},
    "undeclared": {},
    "trusted two": {"order": "trusted", "family": {"policy": "capacity", "size": 3}},
}
POISON = [b"{", b"\xff\xfe", b"", None, b'{"benchmark":"complete","item_id":"x","model":"m","score":1.2}', b"[1]"]
KILLS = ["before-script:1", "after-script:1", "snapshot:1", "before-script:1", "before-relay:1", "after-script:1"]
RANDOM_KILLS = int(os.environ.get("RANKWATCH_SLOW", "0")) * 15 + 3


class Redis:
    """A server of its own, that can be killed and come back with the end of its file cut off."""

    def __init__(self, folder):
        self.folder = folder
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
        }
        command = [find_executable(), *(part for name, value in options.items() for part in (f"--{name}", str(value)))]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def cut(self, length):
        self.process.kill()
        self.process.wait()
        (file,) = self.folder.glob("appendonlydir/*.incr.aof")
        os.truncate(file, max(0, file.stat().st_size - length))
        self.start()


class Worker:
    def __init__(self, kafka, topic, redis, folder, crash=None):
        self.log = (folder / f"worker {time.monotonic_ns()}.log").open("w+")
        more = {
            "RANKWATCH_KAFKA_SESSION_SECONDS": "1.5",
            "RANKWATCH_SNAPSHOT_SECONDS": "0.3",
            "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        }
        if crash:
            more["RANKWATCH_CRASH_AT"] = crash
        command = [
            RANKWATCH,
            "run",
            "--broker",
            kafka.url(topic),
            "--redis-url",
            redis.url,
            "--group",
            topic,
            "--port",
            "0",
        ]
        self.process = subprocess.Popen(command, env=environment(**more), stderr=self.log)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def told(self):
        self.log.seek(0)
        return self.log.read()


def stream(rng):
    """Events with duplicates, conflicts and skips among them."""
    made = []
    for benchmark in SPECS:
        skills = {model: rng.uniform(0.1, 0.95) for model in ("ada", "bob", "cy", "dee", "eve")}
        made += events(rng, skills, 150, benchmark=benchmark)
    rng.shuffle(made)
    for event in rng.sample(made, len(made) * 15 // 100):
        made.insert(rng.randrange(len(made)), {**event, "score": rng.choice([event["score"], 1, 0])})
    for event in rng.sample(made, 40):
        made.insert(0, {**event, "score": None})
    return made


async def disturb(addresses, topic, rng, made):
    """Put events on partitions that do not own them, and what is no event at all."""
    producer = AIOKafkaProducer(bootstrap_servers=addresses, acks="all", enable_idempotence=True)
    await producer.start()
    for event in rng.sample(made, len(made) * 3 // 100) + [dict(made[k], model="fay") for k in range(60)]:
        wrong = (owner(event["benchmark"], PARTITIONS) + 1) % PARTITIONS
        await producer.send_and_wait(topic, json.dumps(event).encode(), key=b"x", partition=wrong)
    for record in POISON * 4:
        await producer.send_and_wait(topic, record, key=b"poison", partition=rng.randrange(PARTITIONS))
    await producer.stop()


async def read(addresses, topic):
    """All records of a topic, by partition: (offset, value, headers)."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=addresses, auto_offset_reset="earliest")
    await consumer.start()
    parts = sorted(consumer.assignment())
    ends = await consumer.end_offsets(parts)
    found = {tp.partition: [] for tp in parts}
    while any([await consumer.position(tp) < ends[tp] for tp in parts]):
        for tp, records in (await consumer.getmany(timeout_ms=200)).items():
            found[tp.partition] += [(r.offset, r.value, dict(r.headers)) for r in records]
    await consumer.stop()
    return found


def offline(log):
    """Fold the log as it stands, with nothing of the engine: one oracle a benchmark, and how many records are no events."""
    oracles, rejected = {}, 0
    for partition, records in log.items():
        origins = {}
        for offset, value, headers in records:
            if "rankwatch-origin" in headers:
                source, *at = map(int, headers["rankwatch-origin"].split(b":"))
                if at <= origins.get(source, [-1, -1]):
                    continue
                origins[source] = at
            try:
                event = json.loads(value.decode())
                benchmark = event.get("declare") or event["benchmark"]
                assert event.get("score") in {0, 1, None}
            except (ValueError, TypeError, KeyError, AttributeError, AssertionError):
                rejected += 1
                continue
            if owner(benchmark, PARTITIONS) != partition:
                continue
            spec = SPECS[benchmark]
            if benchmark not in oracles:
                policy = spec.get("order", "completion" if "items" in spec else "none")
                size = spec.get("family", {}).get("size")
                oracles[benchmark] = Oracle(policy=policy, items=spec.get("items"), capacity=size)
            if "declare" not in event:
                oracles[benchmark].event(event, (offset, 0))
    return oracles, rejected


async def stored(redis, topic):
    store = await RedisStore.open(redis.url, topic)
    partitions = [Partition.restore(await store.load(p)) for p in range(PARTITIONS)]
    await store.close()
    return partitions


def compare(benchmark, oracle):
    counters = {k: v for k, v in benchmark.counters.items() if k != "rejected"}
    assert counters == {"events": oracle.events, "duplicates": oracle.duplicates, "conflicts": oracle.conflicts}
    names = [tuple(c) for c in benchmark.contestants]
    assert names == list(oracle.models)
    code = {1: None, 2: 0.0, 3: 1.0}
    got = {
        (row.item, row.repeat, names[k]): code[value]
        for r, row in enumerate(benchmark.rows)
        for k, value in enumerate(benchmark.matrix()[r].tolist())
        if value
    }
    assert got == oracle.scores
    pairs = {p: (names[i], names[j]) for j in range(len(names)) for i in range(j) for p in [j * (j - 1) // 2 + i]}
    for p, pair in pairs.items():
        assert [benchmark.n[p], benchmark.b[p], benchmark.c[p]] == oracle.counts[pair]
        assert benchmark.family_index[p] == oracle.family.get(pair, 0)
    found = {}
    for field, change in benchmark.changes.items():
        p, procedure, kind = field.split(":")
        pair = pairs[int(p)]
        swapped = pair[0] > pair[1]
        wins, losses = (change.evidence.c, change.evidence.b) if swapped else (change.evidence.b, change.evidence.c)
        side = 1 if (change.after == "a") != swapped else -1
        found[pair, procedure, kind] = ((int(change.id.split("-")[0]), 0), side, change.evidence.n, wins, losses)
    assert found == oracle.verdicts


def finished(redis, topic, ends):
    partitions = asyncio.run(stored(redis, topic))
    return all(partition.off == ends[partition.number] for partition in partitions)


def test_nothing_is_lost_or_doubled_whatever_is_killed(kafka, topic, tmp_path):
    rng = random.Random(SEED)
    redis = Redis(tmp_path)
    asyncio.run(kafka.create_topic(topic, PARTITIONS))
    workers = []
    try:
        made = stream(rng)
        declared = [{"declare": benchmark, **spec} for benchmark, spec in SPECS.items() if spec]
        file = write(tmp_path / "events.jsonl", declared)
        steps = len(KILLS) + RANDOM_KILLS

        def send(step):
            """Let the file grow, and send what is new of it, so that there is something to fold at each kill."""
            write(file, made[len(made) * step // steps : len(made) * (step + 1) // steps], "a")
            rankwatch("send", file, "--to", kafka.url(topic), "--data-dir", tmp_path / "sent")

        for step, point in enumerate(KILLS):
            send(step)
            worker = Worker(kafka, topic, redis, tmp_path, point)
            workers.append(worker)
            until(lambda worker=worker: worker.process.poll() is not None or time.sleep(0.1), point)
            assert worker.process.returncode == -signal.SIGKILL, worker.told()
            print(f"killed at {point}")
        asyncio.run(disturb(kafka.addresses, topic, rng, made))
        for kill in range(RANDOM_KILLS):
            send(len(KILLS) + kill)
            several = [Worker(kafka, topic, redis, tmp_path) for _ in range(2)]
            workers += several
            wait = rng.uniform(1.5, 4)
            time.sleep(wait)
            several[0].kill()
            several[1].kill()
            if kill % 2 == 0:
                cut = rng.choice([1, 700, 20_000])
                redis.cut(cut)
                print(f"killed Redis, {cut} bytes of its file cut")
            print(f"killed two workers after {wait:.2f} s")

        last = [Worker(kafka, topic, redis, tmp_path) for _ in range(2)]
        workers += last

        async def log_ends():
            return {
                partition: records[-1][0] + 1 for partition, records in (await read(kafka.addresses, topic)).items()
            }

        def settled():
            ends = asyncio.run(log_ends())  # copies of misrouted events still come
            return finished(redis, topic, ends) and ends == asyncio.run(log_ends())

        until(lambda: settled() or time.sleep(0.3), "the workers to finish")
        for worker in last:
            worker.process.terminate()
        assert [worker.process.wait(PATIENCE) for worker in last] == [0, 0], [worker.told() for worker in last]

        oracles, rejected = offline(asyncio.run(read(kafka.addresses, topic)))
        partitions = asyncio.run(stored(redis, topic))
        benchmarks = {name: benchmark for p in partitions for name, benchmark in p.benchmarks.items()}
        assert set(benchmarks) == set(oracles) == set(SPECS)
        for name, oracle in oracles.items():
            compare(benchmarks[name], oracle)
        assert sum(len(oracle.verdicts) for oracle in oracles.values()) > 20
        counted = sum(p.counters["rejected"] for p in partitions) + sum(
            b.counters["rejected"] for b in benchmarks.values()
        )
        assert counted == rejected == 4 * len(POISON)

        published = {}
        for records in asyncio.run(read(kafka.addresses, f"{topic}.verdicts")).values():
            for _, value, headers in records:
                assert published.setdefault(headers["ce_id"], value) == value
        changes = {
            f"{topic}/{p.number}/{change.id}": change.model_dump_json()
            for p in partitions
            for benchmark in p.benchmarks.values()
            for change in benchmark.changes.values()
        }
        assert {key.decode(): value.decode() for key, value in published.items()} == changes
    finally:
        for worker in workers:
            worker.kill() if worker.process.poll() is None else None
            worker.log.close()
        redis.process.kill()
        redis.process.wait()

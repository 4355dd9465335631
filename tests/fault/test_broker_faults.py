"""A network that is slow, silent and cut; workers that come and go; a broker that comes back empty. Every fault is printed.

After each the state, and what is published, are those of an offline fold of the topic, or the service says why it does not go on.
RANKWATCH_SLOW=1 lets workers come and go for two minutes instead of 20 s, and disturbs the network 23 times instead of 3.
"""

import asyncio
import os
import random
import time
from contextlib import ExitStack

import pytest

from tests.commands import PATIENCE, get, until
from tests.kafka.broker import KafkaCluster
from tests.kafka.fixtures import broker_or_skip
from tests.kafka.judge import caught_up, judge
from tests.kafka.run_worker import Workers
from tests.kafka.traffic import Feeder, stream
from tests.ports import free_ports
from tests.proxy import Proxy
from tests.redis_server import RedisServer

pytestmark = pytest.mark.kafka

SLOW = os.environ.get("RANKWATCH_SLOW") == "1"
SEED = int(os.environ.get("RANKWATCH_SEED", "51"))
SESSION = 2.0
LONG = 3 * PATIENCE
"""Seconds for all workers to start, on a machine that does much else."""
EVERY = 3.0
"""Seconds from one worker that comes or goes to the next."""


def settings(topic):
    return {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_KAFKA_SESSION_SECONDS": str(SESSION),
        "RANKWATCH_LINGER_SECONDS": "0.5",
    }


class Scene:
    """A topic with half of its declarations sent, a server, and a group of workers."""

    def __init__(self, stack, cluster, topic, folder, *, events, partitions, seconds, url=None):
        self.cluster, self.topic, self.partitions = cluster, topic, partitions
        self.rng = random.Random(SEED)
        messages, self.events, self.bad = stream(self.rng, events, partitions)
        self.redis = stack.enter_context(RedisServer(folder))
        asyncio.run(cluster.create_topic(topic, partitions, max_message_bytes=8 << 20))
        self.feeder = Feeder(cluster.addresses, topic, messages, len(messages) / seconds)
        self.workers = stack.enter_context(
            Workers(url or cluster.url(topic), self.redis.url, folder, **settings(topic))
        )
        self.begin = time.monotonic()

    def clauses(self, text):
        passed = time.monotonic() - self.begin
        print(f"seed {SEED} {passed:6.1f} s, {self.feeder.sent:,} messages sent: {text}", flush=True)

    def covered(self):
        """The shares of the workers, if every partition has one worker; None while it has not."""
        shares = self.workers.shares()
        return shares if sum(map(len, shares)) == self.partitions == len(set().union(*shares)) else None

    def right(self):
        """Let it come to the end of the topic, end it, and judge; what was sent is what counts, whatever way it took."""
        self.feeder.finish(PATIENCE)
        asyncio.run(caught_up(self.cluster, self.redis, self.topic, self.partitions, self.workers.logs))
        self.workers.stop()
        judged = judge(self.cluster, self.redis, self.topic, f"{self.topic}.verdicts", self.partitions)
        self.clauses(str(judged))
        assert (judged.events, judged.letters) == (self.events, self.bad)
        assert judged.latches > 20
        assert "Traceback" not in self.workers.logs()


@pytest.mark.fault(
    "processes",
    "a worker of two killed with a spare ready; then one comes, leaves or is killed every 3 s",
    "the spare takes over; every event counts once",
)
def test_a_spare_takes_over_and_then_somebody_comes_or_goes_every_three_seconds(kafka, topic, tmp_path):
    lasting = 120 if SLOW else 20
    with ExitStack() as stack:
        scene = Scene(
            stack, kafka, topic, tmp_path, events=24_000 if SLOW else 8_000, partitions=2, seconds=lasting * 1.2
        )
        workers, rng = scene.workers, scene.rng
        scene.feeder.allow(0.05)
        for _ in range(3):
            workers.start()
        # What was waited for is what counts: on a busy machine the group may rebalance before it is asked again.
        shares = until(
            lambda: all(w.assigned() for w in workers.running) and scene.covered(), "two workers and a spare", LONG
        )
        assert sorted(map(len, shares)) == [0, 1, 1], workers.logs()
        for worker in workers.running:
            until(
                lambda worker=worker: get(f"{worker.url()}/readyz")[0] == 200, "the spare to be ready like the others"
            )
        holder = workers.all[shares.index({1})]
        workers.kill(holder)
        until(scene.covered, "the spare to take over")
        scene.clauses(f"worker {holder.number} of two was killed, and the spare has its partition: {workers.shares()}")
        scene.feeder.allow(1)
        end = time.monotonic() + lasting
        while time.monotonic() < end:
            moment = time.monotonic()
            running = workers.running
            if len(running) == 1 or (len(running) == 2 and rng.random() < 0.5):
                scene.clauses(f"worker {workers.start().number} comes")
            else:
                leaving = rng.choice(running)
                killed = rng.random() < 0.5 or not leaving.assigned()
                workers.kill(leaving) if killed else workers.stop(leaving)
                scene.clauses(f"worker {leaving.number} {'is killed' if killed else 'leaves'}")
            time.sleep(max(0, EVERY - (time.monotonic() - moment)))
        scene.right()


@pytest.mark.fault(
    "kafka",
    "network to the broker slow and cut, a worker evicted; then the broker comes back empty",
    "every event counts once; then exit 1 with the reason, the state unchanged",
)
def test_a_network_to_the_broker_that_is_slow_silent_and_cut_and_a_broker_that_comes_back_empty(topic, tmp_path):
    broker_or_skip()
    with ExitStack() as stack:
        plain, proxied = free_ports(2)
        proxy = stack.enter_context(Proxy(proxied))
        cluster = stack.enter_context(
            KafkaCluster(
                port=plain,
                listeners={"FAR": (proxied, "PLAINTEXT")},
                extra={"advertised.listeners": f"PLAIN://127.0.0.1:{plain},FAR://127.0.0.1:{proxy.port}"},
            )
        )
        far = f"kafka://127.0.0.1:{proxy.port}/{topic}"
        scene = Scene(
            stack,
            cluster,
            topic,
            tmp_path,
            events=24_000 if SLOW else 5_000,
            partitions=4,
            seconds=60 if SLOW else 12,
            url=far,
        )
        proxy.block, proxy.delay = 32 << 10, 0.02
        scene.feeder.allow(0.05)
        scene.workers.start()
        scene.workers.start()
        until(scene.covered, "two workers to share", LONG)
        faults = ["cut", "evicted", "slower"] + SLOW * ["silent", "cut", "slower", "evicted"] * 5
        for fault in faults:
            scene.feeder.allow(0.9 / len(faults))
            disturb(scene, proxy, fault)
            scene.feeder.rest(PATIENCE)
            scene.clauses(f"{fault}; exits of workers: {[w.code for w in scene.workers.all]}")
        assert len(scene.workers.running) == 2
        scene.right()
        proxy.delay = 0
        comes_back_empty(scene)


def disturb(scene, proxy, fault):
    time.sleep(scene.rng.uniform(0, 0.5))
    if fault == "cut":
        proxy.cut()
    elif fault == "slower":
        proxy.delay = 0.2
        time.sleep(3)
        proxy.delay = 0.02
    else:  # for less than a session, or for longer
        proxy.hold()
        time.sleep(SESSION * (0.5 if fault == "silent" else 2))
        proxy.resume()


def comes_back_empty(scene):
    """The broker's data are gone: the worker says so and ends, and the same topic made anew is not taken for the old one."""
    before = scene.redis.contents("*:meta")
    worker = scene.workers.start()
    until(lambda: get(f"{worker.url()}/readyz")[0] == 200, "the worker to be ready")
    (broker,) = scene.cluster.brokers
    broker.kill()
    broker.wipe()
    scene.cluster.start()
    assert f"topic {scene.topic} is gone from 127.0.0.1" in ended(worker)
    asyncio.run(scene.cluster.create_topic(scene.topic, scene.partitions))
    assert "belongs to another log" in ended(scene.workers.start())
    assert scene.redis.contents("*:meta") == before, "the state is as it was"
    scene.clauses("broker's data wiped: two workers ended with exit 1 and the reason")


def ended(worker):
    """What a worker says last, that ends by itself with exit 1."""
    assert worker.process.wait(PATIENCE) == 1, worker.log_text
    assert "Traceback" not in worker.log_text, worker.log_text
    return worker.log_text.strip().splitlines()[-1]

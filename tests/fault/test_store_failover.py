"""A late replica takes the place of the server that the service writes to: the state goes back, and the log is folded again.

Behind Sentinels; with RANKWATCH_SLOW=1 in a Cluster too. Every fault is printed.
"""

import asyncio
import os
import random

import pytest

from monitor.store.layout import Keys
from tests.commands import PATIENCE, until
from tests.kafka.judge import caught_up, judge
from tests.kafka.run_worker import Workers
from tests.kafka.traffic import Feeder, stream
from tests.redis_server import RedisCluster, Sentinels, has_cli

pytestmark = pytest.mark.kafka

SEED = int(os.environ.get("RANKWATCH_SEED", "61"))
PARTITIONS = 3
# A replica may take over for ten times as long after it has lost its primary: the service goes on meanwhile, slowly on a busy machine.
TOPOLOGIES = {"Sentinels": lambda folder: Sentinels(folder, down_after=6000)}
if os.environ.get("RANKWATCH_SLOW") == "1" and has_cli():
    TOPOLOGIES["Cluster"] = lambda folder: RedisCluster(folder, replicas=1)


def off(connection, topic, partition):
    """How far the state of a partition is."""
    return int(connection.hget(Keys(topic, partition).meta, "off") or 0)


@pytest.mark.fault(
    "store",
    "a late replica takes over while the service folds",
    "the worker reads the older state and folds the log again; right",
)
@pytest.mark.parametrize("kind", TOPOLOGIES)
def test_a_late_replica_takes_over_while_the_service_folds(kafka, topic, tmp_path, kind):
    messages, events, bad = stream(random.Random(SEED), 6_000, PARTITIONS)
    env = {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_KAFKA_SESSION_SECONDS": "6",
    }
    asyncio.run(kafka.create_topic(topic, PARTITIONS, max_message_bytes=8 << 20))
    with TOPOLOGIES[kind](tmp_path) as servers, Workers(kafka.url(topic), servers.url, tmp_path, **env) as workers:
        feeder = Feeder(kafka.addresses, topic, messages, pace=400)
        feeder.allow(0.3)
        workers.start()
        workers.start()
        until(lambda: sorted(map(len, workers.shares())) == [1, 2], "the workers to share", 120)
        feeder.rest(PATIENCE)
        victim = servers.primary_of(Keys(topic, 0).meta)
        replica = servers.replica_of(victim)
        with victim.client() as connection, replica.client() as late:
            until(lambda: off(connection, topic, 0) > 20, "the service to fold")
            victim.forsake(replica)
            late.readonly() if kind == "Cluster" else None
            kept = off(late, topic, 0)
            feeder.allow(0.3)
            until(lambda: off(connection, topic, 0) > kept + 20, "the service to go on")
            reached = off(connection, topic, 0)
            victim.kill()
            print(
                f"seed {SEED}: primary killed at offset {reached} of partition 0, its replica has {off(late, topic, 0)}"
            )
            assert off(late, topic, 0) == kept
            until(lambda: late.info("replication")["role"] == "master", "the replica to take over")
        feeder.finish(PATIENCE)
        asyncio.run(caught_up(kafka, servers, topic, PARTITIONS, workers.logs))
        workers.stop()
        text = "".join(worker.log_text for worker in workers.all)
        met = ("another writer moved the stored state", "the server has lost writes")  # with a commit, or by looking
        assert any(each in text for each in met), "no worker met the older state"
        assert "Traceback" not in text
        judged = judge(kafka, servers, topic, f"{topic}.verdicts", PARTITIONS)
        print(judged)
        assert (judged.events, judged.letters) == (events, bad)
        assert judged.latches > 20

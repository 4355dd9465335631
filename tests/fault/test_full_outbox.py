"""A publisher that never answers: its changes wait up to the limit, only their partition is not folded then, and nothing is lost."""

import asyncio
import json

import pytest

from monitor.store.redis_store import RedisStore
from schemas.records.ownership import owner
from tests.commands import get, until
from tests.kafka.judge import caught_up
from tests.kafka.pulse import Pulse
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

pytestmark = [pytest.mark.kafka, pytest.mark.full]

PARTITIONS = 2
MODELS, ITEMS = 64, 60
LIMIT = 1_000


def results(name):
    """Half of the models are right on every item, and the other half on none: most pairs are decided."""
    yield {"declare": name, "order": "trusted"}
    for k in range(ITEMS):
        scores = [{"item_id": str(k), "model": f"m{m}", "score": m % 2} for m in range(MODELS)]
        yield {"events": [{"benchmark": name} | score for score in scores]}


@pytest.mark.fault(
    "readers",
    "a webhook that accepts nothing, until the outbox is full",
    "only that partition waits; no worker ends; without the webhook it goes on",
)
def test_a_full_outbox_stops_its_partition_only_and_loses_nothing(kafka, topic, tmp_path):
    asyncio.run(kafka.create_topic(topic, PARTITIONS))
    env = {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_OUTBOX_CHANGES": str(LIMIT),
        "RANKWATCH_STALL_SECONDS": "1",
    }
    nobody = {"RANKWATCH_WEBHOOK_URL": "http://127.0.0.1:9/hook", "RANKWATCH_PRIVATE_ADDRESSES": "*"}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        with Pulse(kafka, redis, topic, PARTITIONS) as pulse:
            worker = workers.start(**nobody)
            until(lambda: pulse.count > 5 and pulse.folded(), "the worker to fold")
            name = next(name for name in map("board {}".format, range(100)) if owner(name, PARTITIONS) == 0)
            pulse.send([(0, name.encode(), json.dumps(each).encode()) for each in results(name)])
            until(lambda: worker.lines("the fold waits for publishers"), "the outbox to be full")
            # Longer than the watchdog waits: the partition waits, which is no reason to end.
            until(lambda: pulse.waiting(0) > 4 and pulse.waiting(1) < 1, "the full partition alone to wait")
            assert worker.code is None, worker.log_text
            line = worker.lines("the fold waits for publishers")[0]
            assert (line["partition"], line["limit"]) == (0, LIMIT)
            assert "webhook" in line["publishers"]
            _, metrics = get(f"{worker.url()}/metrics")
            assert f'rankwatch_outbox_limit_entries{{partition="0"}} {LIMIT}.0' in metrics
            waiting = float(metrics.split('rankwatch_outbox_entries{partition="0"} ')[1].split()[0])
            assert LIMIT < waiting < LIMIT + MODELS**2 * 3
            workers.stop(worker)
            # Without the webhook what waits only for it is dropped, and the fold goes on.
            workers.start()
            until(pulse.folded, "the partition to be folded")
        asyncio.run(caught_up(kafka, redis, topic, PARTITIONS, workers.logs))
        workers.stop()
        assert events_of(redis, topic, name) >= MODELS * ITEMS


def events_of(redis, topic, name):
    async def load():
        async with await RedisStore.open(redis.url, topic) as store:
            return {each.name: each.counters["events"] for each in (await store.load(0)).benchmarks}

    return asyncio.run(load())[name]

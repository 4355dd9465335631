"""The page on recovery, step by step: its commands, and what it says comes back."""

import asyncio
import json
import os
import re
import shlex
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.admin import RecordsToDelete

from monitor.store.redis_store import RedisStore
from schemas.records.ownership import owner
from tests.commands import PATIENCE, rankwatch, until
from tests.kafka.judge import caught_up
from tests.kafka.records import read_all
from tests.kafka.run_worker import RunReader, worker_starter

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(os.environ.get("RANKWATCH_SLOW") != "1", reason="takes a minute; set RANKWATCH_SLOW=1"),
]

PAGE = Path(__file__).parents[2] / "docs/how-to/recover.md"
PARTITIONS = 2
HOME = owner("bench", PARTITIONS)
MODELS = {"good": 1, "bad": 0}


def shown(section):
    """The commands of a section of the page."""
    text = PAGE.read_text().split(f"## {section}\n" if section else "\n", 1)[1].split("\n## ")[0]
    return re.findall(r"^ *\$ (rankwatch .*)$", text, re.MULTILINE)


def items(first, last):
    """Messages of the models on some items."""
    for k in range(first, last):
        for model, score in MODELS.items():
            yield HOME, json.dumps({"benchmark": "bench", "item_id": str(k), "model": model, "score": score}).encode()


class Place:
    """The service of the page, with other addresses."""

    def __init__(self, kafka, start, topic, folder):
        self.kafka, self.start, self.topic, self.file = kafka, start, topic, folder / "state.jsonl"

    def send(self, *records):
        async def send():
            async with AIOKafkaProducer(bootstrap_servers=self.kafka.addresses) as producer:
                for partition, value in records:
                    await producer.send_and_wait(self.topic, value, partition=partition)

        asyncio.run(send())

    def run(self, command):
        """Run a shown command."""
        other = {"redis://localhost:6379": self.start.redis.url, "state.jsonl": str(self.file)}
        for old, new in {**other, "rankwatch.events": self.topic}.items():
            command = command.replace(old, new)
        return rankwatch(*shlex.split(command)[1:], RANKWATCH_TOPIC=self.topic)

    def worker(self, command):
        """Start the worker of a shown command."""
        words = shlex.split(command)
        assert words[:2] == ["rankwatch", "run"]
        assert words[-4:] == ["--broker", "kafka://localhost:9092", "--redis-url", "redis://localhost:6379"]
        assert words[2:-4] in ([], ["--accept-gap"])
        gap = {"accept_gap": "true"} if words[2:-4] else {}
        return self.start(topic=self.topic, linger_seconds="0.1", group=self.topic, **gap)

    @contextmanager
    def working(self, command):
        """A worker that has folded everything at the end of the block."""
        worker = self.worker(command)
        yield worker
        asyncio.run(caught_up(self.kafka, self.start.redis, self.topic, PARTITIONS, lambda: worker.log_text[-3000:]))
        worker.process.terminate()
        assert worker.process.wait(PATIENCE) == 0, worker.log_text

    def refusal(self, command):
        """What the worker of a command says that refuses to start."""
        worker = self.worker(command)
        assert worker.process.wait(PATIENCE) == 1, worker.log_text
        return worker.log_text

    def stored(self):
        """The counters of the benchmark, its gaps, and its verdicts: the time of each by its id."""

        async def load():
            async with await RedisStore.open(self.start.redis.url, self.topic) as store:
                (bench,) = (await store.load(HOME)).benchmarks
                times = (await store.commit_times(HOME))["bench"].changes
                return bench.counters, bench.gaps, {bench.changes[name].id: times[name] for name in bench.changes}

        return asyncio.run(load())

    def written(self, suffix, header):
        """A header of every record of an output topic."""
        records = asyncio.run(read_all(self.kafka, f"{self.topic}{suffix}"))
        return sorted(dict(record.headers)[header] for record in records)


@pytest.fixture
def place(kafka, topic, tmp_path):
    asyncio.run(kafka.create_topic(topic, PARTITIONS))
    with worker_starter(kafka, topic, tmp_path) as start:
        yield Place(kafka, start, topic, tmp_path)


@pytest.mark.fault(
    "store",
    "each step of [Recover from a loss](../how-to/recover.md): Redis lost, retention passed, topic lost",
    "the verdicts come back with their ids",
)
def test_what_the_page_says_comes_back_comes_back(place):
    (export,), (run,) = shown(""), shown("Redis is lost, the topic is complete")
    declared = {"declare": "bench", "order": "trusted"}
    astray = {"benchmark": "bench", "item_id": "astray", "model": "good", "score": 1}
    place.send(
        (HOME, json.dumps(declared).encode()),
        *items(0, 40),
        (1 - HOME, json.dumps(astray).encode()),
        (HOME, b'{"score": '),
    )
    with place.working(run):
        pass
    before, _, verdicts = place.stored()
    assert len(verdicts) >= 2
    assert (before["events"], before["duplicates"]) == (81, 0)
    place.run(export)
    exported = place.stored()
    offset = off(place)

    # Redis is lost under a running worker, and then while none runs.
    redis = place.start.redis
    with place.working(run) as worker:
        worker.url()
        redis.flush()
        reader = place.start(topic=place.topic, command=RunReader)
        place.send(*items(40, 42), (1 - HOME, json.dumps(astray).encode()))
        until(reader.ready, "a reader that starts without a signing key, and no worker is restarted")
        reader.process.terminate()
        assert reader.process.wait(PATIENCE) == 0, reader.log_text
    again, _, folded = place.stored()
    assert (scores(again), folded.keys()) == (scores(before) + 4, verdicts.keys())
    assert not set(folded.values()) & set(verdicts.values()), "times of the new fold"
    redis.flush()
    with place.working(run):
        pass
    later, _, folded = place.stored()
    assert (scores(later), folded.keys()) == (scores(again), verdicts.keys())
    assert later["duplicates"] > again["duplicates"], "copies of events that came to the wrong partition"
    published = place.written(".verdicts", "ce_id")
    assert {name: published.count(name) for name in published} == {
        f"{place.topic}/{HOME}/{each}".encode(): 3 for each in verdicts
    }
    letters = place.written(".dlq", "offset")
    assert (len(letters), len(set(letters))) == (3, 1)

    # Redis is lost, and the topic has lost its beginning.
    restore, run_again, accept = shown("Redis is lost, and the topic has lost its beginning")
    asyncio.run(delete(place, offset))
    redis.flush()
    assert "were deleted before they were folded" in place.refusal(run)
    with place.working(accept):
        pass
    counters, gaps, _ = place.stored()
    assert (scores(counters), [(gap.start, gap.end) for gap in gaps]) == (5, [(0, offset)])
    redis.flush()
    assert shown("The machine is lost") == [restore, run_again]
    place.run(restore)
    assert place.stored() == exported
    with place.working(run_again):
        pass
    counters, gaps, kept = place.stored()
    assert (scores(counters), gaps, kept) == (scores(again), [], verdicts), "with ids and times"

    # The topic is lost.
    export, restore, run = shown("The topic is lost, Redis is intact")
    asyncio.run(place.kafka.delete_topic(place.topic))
    assert re.search("was deleted and created again|does not exist|is gone", place.refusal(run))
    place.run(export)
    place.run(restore)
    place.topic += ".v2"
    asyncio.run(place.kafka.create_topic(place.topic, PARTITIONS))
    with place.working(run):
        place.send(*items(30, 50))
    counters, _, kept = place.stored()
    assert scores(counters) == scores(again) + 16
    assert counters["duplicates"] >= 24
    assert kept == verdicts


def scores(counters):
    """How many events count."""
    return counters["events"] - counters["duplicates"]


def off(place):
    """How far the partition of the benchmark is folded."""
    with place.start.redis.client() as server:
        return int(server.hget(f"{{{place.topic}:{HOME}}}:meta", "off"))


async def delete(place, before):
    """Delete the first records of the benchmark's partition, as retention does."""
    async with place.kafka.admin() as admin:
        await admin.delete_records({TopicPartition(place.topic, HOME): RecordsToDelete(before_offset=before)})

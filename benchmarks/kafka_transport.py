"""How much of bare aiokafka's reading speed the transport keeps: ``python -m benchmarks.kafka_transport``.

The same bytes are read from the same broker with the same fetch settings by a bare `getmany` loop and through Faust, in turn, and the
medians of the runs are compared. Nothing is decoded. An event is read when its record is in the loop's or the agent's hands.
"""

import argparse
import asyncio
import json
import random
import statistics
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from faust.types import TP

from monitor.logs.kafka_settings import KafkaSettings
from monitor.logs.worker import KAFKA_CHUNK_BYTES, WorkerApp, make_app
from tests.kafka.broker import KafkaCluster

EVENTS = 200_000
PACK = 100


def events(count: int) -> Iterator[bytes]:
    """Yield events such as a run of 29 models on MMLU-Pro writes."""
    choice = random.Random(20261)
    for number in range(count):
        item, model = divmod(number, 29)
        yield json.dumps(
            {
                "benchmark": "mmlu-pro",
                "item_id": f"mmlu-pro/test/{item}",
                "model": f"some-organisation/model-{model:02d}-instruct",
                "score": choice.randrange(2),
                "timestamp": f"2026-01-31T12:{number // 60000 % 60:02d}:{number // 1000 % 60:02d}.{number % 1000:03d}Z",
            }
        ).encode()


def packed(each: Iterator[bytes]) -> Iterator[bytes]:
    """Put `PACK` events into each message."""
    while group := [event for _, event in zip(range(PACK), each, strict=False)]:
        yield b'{"events": [' + b", ".join(group) + b"]}"


async def fill(addresses: str, topic: str, messages: Iterator[bytes]) -> int:
    """Write the messages to the topic's one partition; return how many there are."""
    async with AIOKafkaProducer(bootstrap_servers=addresses, linger_ms=20, max_batch_size=1 << 18) as producer:
        sent = [await producer.send(topic, message, key=b"mmlu-pro") for message in messages]
        await asyncio.gather(*sent)
    return len(sent)


async def bare(settings: KafkaSettings, topic: str, count: int) -> float:
    """Read all with `getmany`; return the seconds since the seek."""
    consumer = AIOKafkaConsumer(
        **settings.client_options(),
        isolation_level="read_committed",
        fetch_max_wait_ms=round(1000 * settings.fetch_wait_seconds),
        max_partition_fetch_bytes=settings.fetch_bytes,
    )
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    await consumer.start()
    consumer.seek(partition, 0)
    started = time.perf_counter()
    read = 0
    while read < count:
        found = await consumer.getmany(timeout_ms=200, max_records=WorkerApp.chunk_records)
        read += sum(map(len, found.values()))
    seconds = time.perf_counter() - started
    await consumer.stop()
    return seconds


async def through_faust(settings: KafkaSettings, topic: str, count: int) -> float:
    """Read all through the transport; return the seconds since the seek."""
    app = make_app(f"kafka://{settings.addresses}/{topic}", topic, app_id=uuid.uuid4().hex, kafka=settings)
    read = 0
    started = 0.0
    seconds: asyncio.Future[float] = asyncio.get_running_loop().create_future()

    async def stored_offsets(assigned: set[TP]) -> Mapping[TP, int]:
        nonlocal started
        started = time.perf_counter()
        return dict.fromkeys(assigned, 0)

    async def agent(stream: Any) -> None:  # noqa: ANN401 - a Faust stream of chunks
        nonlocal read
        async for chunk in stream:
            read += len(chunk.records)
            if read == count:
                seconds.set_result(time.perf_counter() - started)

    app.stored_offsets = stored_offsets
    app.agent(app.chunks, name="read")(agent)
    await app.start()
    taken = await seconds
    await app.stop()
    return taken


Reader = Callable[[KafkaSettings, str, int], Awaitable[float]]


def compare(addresses: str, topic: str, messages: Iterator[bytes], runs: int) -> dict[str, float]:
    """Let both read the same topic in turn; return the events a second of each in the median."""
    count = asyncio.run(fill(addresses, topic, messages))
    settings = KafkaSettings(addresses=addresses)
    readers: dict[str, Reader] = {"bare getmany": bare, "transport": through_faust}
    taken: dict[str, list[float]] = {name: [] for name in readers}
    for run in range(runs + 1):
        for name, reader in readers.items():
            seconds = asyncio.run(reader(settings, topic, count))
            if run:  # the first of each warms up
                taken[name].append(seconds)
    return {name: EVENTS / statistics.median(seconds) for name, seconds in taken.items()}


def main() -> None:
    """Print both speeds, for messages of one event and for packed ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each, in turn (default: 5)")
    runs = parser.parse_args().runs
    size = sum(map(len, events(EVENTS))) / EVENTS
    print(
        f"{EVENTS:,} events of {size:.0f} bytes, chunks of {WorkerApp.chunk_records:,} or {KAFKA_CHUNK_BYTES:,} bytes"
    )
    with KafkaCluster() as cluster:
        for title, pack in (("one event a message", iter), (f"{PACK} events a message", packed)):
            topic = uuid.uuid4().hex
            asyncio.run(cluster.create_topic(topic, 1))
            speeds = compare(cluster.addresses, topic, pack(events(EVENTS)), runs)
            bare_speed = speeds["bare getmany"]
            for name, speed in speeds.items():
                print(f"{title:22} {name:13} {speed:12,.0f} events/s  {speed / bare_speed:5.2f}")


if __name__ == "__main__":
    main()

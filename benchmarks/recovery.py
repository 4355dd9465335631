"""Recovery: from a cold start over a state of many events to the first new event that is folded and stored.

100 models; the state is written as a worker writes it and the server is stopped. Then the server starts again and reads its append-only
file, and a new process starts: it imports, connects, loads, builds the state, folds one new event and stores it. The table says how long
each of the two took, and the largest resident memory of the new process; once with the snapshot of pair sums that a worker saves every few
seconds, and once without, when the sums are made again from the scores.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import redis

from benchmarks.events import made_lines
from benchmarks.harness import Options, Table, run_command
from benchmarks.servers import redis_server
from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from monitor.store.redis_store import RedisStore

TOPIC = "bench"
MODELS = 100
CHUNK = 20_000

WORKER = """
import asyncio, sys
from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from monitor.store.redis_store import RedisStore
async def main():
    async with await RedisStore.open("redis://127.0.0.1:" + sys.argv[1], "bench") as store:
        state = Partition.restore(await store.load(0))
        off = state.off
        event = b'{"benchmark": "made", "item_id": "0", "model": "one more", "score": 1}'
        await store.commit(state.fold(Chunk(0, off, off + 1, [off], [event])))
asyncio.run(main())
"""


def measure(options: Options) -> Iterator[Table]:
    """Recover states of one million and of ten million events."""
    table = Table(
        f"Restart, {MODELS} models",
        ["events", "pair sums", "server reads its file, s", "worker to first new event, s", "worker MB"],
    )
    for events in (options.size(1_000_000, 20_000), options.size(10_000_000, 50_000)):
        with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
            folder = Path(name)
            with redis_server(directory=folder) as port:
                asyncio.run(write(port, events // MODELS))
            for title in ("from the snapshot", "from the scores"):
                starts, runs = [], []
                for _ in range(min(options.runs, 3)):
                    begin = time.perf_counter()
                    with redis_server(directory=folder) as port:
                        starts.append(time.perf_counter() - begin)
                        with redis.Redis(port=port) as client:
                            if title == "from the scores":
                                client.delete(*client.keys("*:pairs:*"))
                            runs.append(run_command([sys.executable, "-c", WORKER, str(port)]))
                table.rows.append(
                    (
                        events,
                        title,
                        round(statistics.median(starts), 2),
                        round(statistics.median(run.seconds for run in runs), 2),
                        round(statistics.median(run.megabytes for run in runs)),
                    )
                )
    yield table


async def write(port: int, items: int) -> None:
    """Fold and store events of all models, and save the pair sums."""
    state = Partition()
    lines = made_lines(MODELS, items)
    async with await RedisStore.open(f"redis://127.0.0.1:{port}", TOPIC) as store:
        while part := list(islice(lines, CHUNK)):
            off = state.off
            await store.commit(state.fold(Chunk(0, off, off + len(part), range(off, off + len(part)), part)))
        for each in state.benchmarks.values():
            assert await store.save_pairs(0, each.key, each.snapshot())

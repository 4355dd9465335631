"""Recovery: from a cold start over a state of many events to the first new event that is folded and stored.

100 models; the state is written as a worker writes it and the server is stopped. Then the server starts again and reads its append-only
file, and a new process starts: it imports, connects, loads, builds the state, folds one new event and stores it. The table says how long
each of the two took, and the largest resident memory of the new process; once with the snapshot of pair sums that a worker saves every few
seconds, and once without, when the sums are made again from the scores.
"""

import asyncio
import shutil
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
    for events in (options.size(1_000_000, 20_000), options.size(10_000_000, 50_000)):
        table = Table(
            f"Restart over {events:,} events, {MODELS} models",
            ["pair sums", "server reads its file, s", "worker to first new event, s", "worker MB"],
        )
        with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
            folder = Path(name) / "written"
            folder.mkdir()
            with redis_server(directory=folder) as port:
                asyncio.run(write(port, events // MODELS))
            for title, snapshot in (("from the snapshot", True), ("from the scores", False)):
                runs = [restarted(folder, snapshot=snapshot) for _ in range(min(options.runs, 3))]
                server, worker, megabytes = (statistics.median(column) for column in zip(*runs, strict=True))
                table.rows.append((title, round(server, 2), round(worker, 2), round(megabytes)))
        yield table


def restarted(written: Path, *, snapshot: bool) -> tuple[float, float, float]:
    """Start over a copy of what was written; return the seconds of the server, and seconds and megabytes of the worker."""
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
        copy = Path(name) / "copy"
        shutil.copytree(written, copy)
        begin = time.perf_counter()
        with redis_server(directory=copy) as port, redis.Redis(port=port) as client:
            server = time.perf_counter() - begin
            if not snapshot:
                client.delete(*client.keys("*:pairs:*"))
            run = run_command([sys.executable, "-c", WORKER, str(port)])
        return server, run.seconds, run.megabytes


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

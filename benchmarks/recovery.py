"""Recovery: from a cold start over a state of many events to the first new event that is folded and stored.

100 models; the state is written as a worker writes it, and the server is stopped. Then the server starts again and reads its
append-only file, and a new process starts: it imports, connects, loads, builds the state, folds one new event and stores it. The table
has the time of each of the two, and the largest resident memory of the new process: once with the snapshot of pair sums that a worker
saves every few seconds, and once without, when the sums are computed again from the scores. For the smallest size also from the log
only: an embedded monitor over the log of a data directory whose server is lost folds all of it again.
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
from monitor.engine.chunk_fold import Partition
from monitor.log.file.log import FileLog
from monitor.store.redis_store import RedisStore
from schemas.records.chunks import Chunk

TOPIC = "bench"
MODELS = 100
CHUNK = 20_000

WORKER = """
import asyncio, sys
from schemas.records.columns import Chunk
from monitor.engine.chunk_fold import Partition
from monitor.log.file.log import FileLog
from monitor.store.redis_store import RedisStore
async def main():
    async with await RedisStore.open("redis://127.0.0.1:" + sys.argv[1], "bench") as store:
        state = Partition.restore(await store.load(0))
        off = state.off
        event = b'{"benchmark": "made", "item_id": "0", "model": "one more", "score": 1}'
        await store.commit(state.fold(Chunk(0, off, off + 1, [off], [event])))
asyncio.run(main())
"""

MONITOR = """
import asyncio, sys
from pathlib import Path
from monitor.service.embedded import EmbeddedMonitor
from monitor.settings import Settings
async def main():
    async with EmbeddedMonitor(Settings(data_dir=Path(sys.argv[1])), serve=False) as monitor:
        await monitor.partitions[0].moved_beyond(monitor.log.durable_end)
asyncio.run(main())
"""


def measure(options: Options) -> Iterator[Table]:
    """Recover states of one, ten and fifty million events."""
    sizes = (1_000_000, 10_000_000, 50_000_000) if not options.quick else (20_000, 50_000)
    for events in sizes:
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
        if events == sizes[0]:
            runs = [from_log(events // MODELS) for _ in range(min(options.runs, 3))]
            worker, megabytes = (statistics.median(column) for column in zip(*runs, strict=True))
            table.rows.append(("from the log, no state", None, round(worker, 2), round(megabytes)))
        yield table


def from_log(items: int) -> tuple[float, float]:
    """Fold the whole log of a data directory again; return the seconds and megabytes of the monitor."""
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as name:
        asyncio.run(append(Path(name) / "log.jsonl", items))
        run = run_command([sys.executable, "-c", MONITOR, name])
        return run.seconds, run.megabytes


async def append(path: Path, items: int) -> None:
    """Write events of all models into a log."""
    log = FileLog.open(path)
    lines = made_lines(MODELS, items)
    while part := list(islice(lines, CHUNK)):
        await log.append(part)
    await log.close()


def restarted(written: Path, *, snapshot: bool) -> tuple[float, float, float]:
    """Start over a copy of the state; return the seconds of the server, and seconds and megabytes of the worker."""
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

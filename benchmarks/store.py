"""Redis: the size of a state, and the cost of a write, by the fsync policy of the append-only file.

Events are folded in chunks of 2,000 and each chunk is written by one run of the script before the next is folded.
"""

import asyncio
import statistics
import time
from collections.abc import Iterator, Sequence
from typing import Any

import redis

from benchmarks.events import lines_of, made_lines
from benchmarks.folding import CHUNK
from benchmarks.harness import Options, Table
from benchmarks.servers import redis_server
from monitor.engine.chunk_fold import Partition
from monitor.store.redis_store import RedisStore
from schemas.records.chunks import Chunk

TOPIC = "bench"


def measure(options: Options) -> Iterator[Table]:
    """Write the same events into fresh servers of both kinds."""
    what, lines = lines_of(options)
    wide = list(made_lines(1_000, options.size(300, 20)))
    table = Table(
        f"Fold and store, chunks of {CHUNK:,}",
        ["events", "appendfsync", "events/s", "script runs/s", "script ms", "commit ms, p50", "p99", "B an event, memory",
         "B an event, file", "B a pair, snapshot"],
    )  # fmt: skip
    for title, each in ((what, lines), ("made: 1,000 models", wide)):
        for fsync in ("always", "everysec"):
            runs = [stored(each, fsync) for _ in range(min(options.runs, 3))]
            table.rows.append((title, fsync, *(statistics.median(column) for column in zip(*runs, strict=True))))
    yield table


def stored(lines: Sequence[bytes], fsync: str) -> tuple[float, ...]:
    """Fold and store once; return a row of the table."""
    with redis_server(fsync) as port, redis.Redis(port=port) as client:
        before = client.info("memory")["used_memory"]
        state, seconds, commits = asyncio.run(fold_and_store(lines, port))
        script = client.info("commandstats")["cmdstat_evalsha"]
        memory = client.info("memory")["used_memory"] - before
        file = client.info("persistence")["aof_current_size"]
        snapshot = asyncio.run(save(state, port, client))
    events = len(lines)
    pairs = sum(int(each.pairs) for each in state.benchmarks.values())
    commits.sort()
    return (
        round(events / seconds),
        round(script["calls"] / seconds, 1),
        round(script["usec_per_call"] / 1000, 3),
        round(1000 * commits[len(commits) // 2], 2),
        round(1000 * commits[int(0.99 * len(commits))], 2),
        round(memory / events, 2),
        round(file / events, 2),
        round(snapshot / pairs, 1),
    )


async def fold_and_store(lines: Sequence[bytes], port: int) -> tuple[Partition, float, list[float]]:
    """Return the state, the seconds, and the seconds of each commit."""
    state, commits = Partition(), []
    async with await RedisStore.open(f"redis://127.0.0.1:{port}", TOPIC) as store:
        begin = time.perf_counter()
        for start in range(0, len(lines), CHUNK):
            part = lines[start : start + CHUNK]
            off = state.off
            delta = state.fold(Chunk(0, off, off + len(part), range(off, off + len(part)), part))
            ready = time.perf_counter()
            await store.commit(delta)
            commits.append(time.perf_counter() - ready)
        return state, time.perf_counter() - begin, commits


async def save(state: Partition, port: int, client: Any) -> int:  # noqa: ANN401 - a redis client
    """Save the pair sums; return their bytes."""
    async with await RedisStore.open(f"redis://127.0.0.1:{port}", TOPIC) as store:
        for each in state.benchmarks.values():
            await store.load(0)
            assert await store.save_pairs(0, each.key, each.snapshot())
    return sum(client.strlen(key) for key in client.keys("*:pairs:*"))

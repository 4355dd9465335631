"""Memory of a leaderboard with verdicts: of the worker, of Redis, and of an export, with what one latched verdict takes.

All models answer all items, in a trusted order and in packed messages of 100 events. The generated models differ much, so most pairs get a
verdict: a state with fewer is smaller. Each size is measured in a process of its own: it folds and stores, then another one loads what is
stored, and one exports it. Memory of Redis is that of the keys, without the outbox, which publishers empty.
"""

import asyncio
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import redis

from benchmarks.events import right_answers
from benchmarks.folding import declaration
from benchmarks.harness import Options, Table, run_command
from benchmarks.servers import redis_server
from monitor.engine.chunk_fold import Partition
from monitor.store.latches import LATCH_BYTES
from monitor.store.layout import Keys
from monitor.store.redis_store import RedisStore
from schemas.records.chunks import Chunk

TOPIC, NAME = "sizes", "made"
RUN_ITEMS = 100
SHAPES = ((29, 12_000), (100, 4_000), (200, 4_000), (400, 2_000))


def measure(options: Options) -> Iterator[Table]:
    """Measure each size once."""
    table = Table(
        "One benchmark in a trusted order, all events folded",
        ["models", "items", "events", "pairs", "latched changes", "worker MB", "after a restart", "Redis MB",
         "of it latches", "B a latched change", "export MB", "export takes, MB"],
    )  # fmt: skip
    shapes = ((10, 400), (20, 200)) if options.quick else SHAPES
    table.rows += [measured(models, items) for models, items in shapes]
    yield table


def measured(models: int, items: int) -> tuple[Any, ...]:
    """Return a row of the table."""
    with redis_server("everysec") as port, redis.Redis(port=port) as client, tempfile.TemporaryDirectory() as folder:
        folded = run_command([sys.executable, "-m", "benchmarks.sizes", "fold", str(port), str(models), str(items)])
        keys = Keys(TOPIC, 0)
        client.delete(keys.outbox)
        packed = [key for kind in ("latches", "terms", "latched_at") for key in client.keys(f"{keys.tag}:{kind}:*")]
        latches = client.strlen(packed[0]) // LATCH_BYTES
        size = sum(client.memory_usage(key, samples=0) for key in packed)
        memory = sum(client.memory_usage(key, samples=0) for key in client.scan_iter())
        loaded = run_command([sys.executable, "-m", "benchmarks.sizes", "load", str(port)])
        archive = Path(folder) / "state.jsonl"
        target = ["--redis-url", f"redis://127.0.0.1:{port}", "--topic", TOPIC]
        exported = run_command([sys.executable, "-m", "monitor", "state", "export", str(archive), *target])
        return (
            models,
            items,
            models * items,
            models * (models - 1) // 2,
            latches,
            round(folded.megabytes),
            round(loaded.megabytes),
            round(memory / 1e6, 1),
            round(size / 1e6, 1),
            round(size / latches),
            round(archive.stat().st_size / 1e6, 1),
            round(exported.megabytes),
        )


def runs(models: int, items: int) -> Iterator[bytes]:
    """Yield a declaration, then packed messages: every model answers a block of items before the next block."""
    yield declaration(NAME, order="trusted")
    right = right_answers(models, items)
    for start in range(0, items, RUN_ITEMS):
        for model in range(models):
            scores = enumerate(right[model, start : start + RUN_ITEMS].tolist(), start)
            events = [
                {"benchmark": NAME, "model": f"model-{model:04d}", "item_id": str(item), "score": score}
                for item, score in scores
            ]
            yield json.dumps({"events": events}).encode()


async def fold_and_store(port: int, models: int, items: int) -> None:
    """Fold everything, 20 records at a time, and save the pair sums."""
    state, chunk = Partition(), []

    async def fold(store: RedisStore) -> None:
        records = range(state.off, state.off + len(chunk))
        await store.commit(state.fold(Chunk(0, records.start, records.stop, records, chunk)), 1.5)
        chunk.clear()

    async with await RedisStore.open(f"redis://127.0.0.1:{port}", TOPIC) as store:
        await store.load(0)
        for record in runs(models, items):
            chunk.append(record)
            if len(chunk) == 20:
                await fold(store)
        if chunk:
            await fold(store)
        for each in state.benchmarks.values():
            await store.save_pairs(0, each.key, each.snapshot())


async def load_stored(port: int) -> None:
    """Load the state, as a restart does."""
    async with await RedisStore.open(f"redis://127.0.0.1:{port}", TOPIC) as store:
        Partition.restore(await store.load(0))


if __name__ == "__main__":
    what, *numbers = sys.argv[1:]
    asyncio.run((fold_and_store if what == "fold" else load_stored)(*map(int, numbers)))

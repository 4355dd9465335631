"""rankwatch's side of `counting`: `python -m benchmarks.own_counting FILE FOLDER PORT [DECLARATION]`."""

import asyncio
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from benchmarks.peer_counting import chunks, keep_digest
from monitor.engine.chunk_fold import Partition
from monitor.engine.state.benchmark import Benchmark
from monitor.store.redis_store import RedisStore
from schemas.records.chunks import Chunk
from stats.numerics.pairs import pair_members


async def folded(file: Path, port: int, declared: str) -> Benchmark:
    """Fold the events chunk by chunk, and store each chunk before the next one."""
    state = Partition()
    async with await RedisStore.open(f"redis://127.0.0.1:{port}", "counting") as store:
        for records in chain([[declared.encode()]] if declared else [], chunks(file)):
            end = state.off + len(records)
            await store.commit(state.fold(Chunk(0, state.off, end, range(state.off, end), records)))
    (benchmark,) = state.benchmarks.values()
    return benchmark


def counted(benchmark: Benchmark) -> Iterator[tuple[str, str, int, int]]:
    """Yield the pairs that met."""
    models = [contestant.model for contestant in benchmark.contestants]
    met = np.flatnonzero(benchmark.n)
    columns = (*pair_members(met), benchmark.b[met], benchmark.c[met])
    for i, j, wins, losses in zip(*(column.tolist() for column in columns), strict=True):
        a, b = models[i], models[j]
        yield (a, b, wins, losses) if a < b else (b, a, losses, wins)


if __name__ == "__main__":
    keep_digest(Path(sys.argv[2]), counted(asyncio.run(folded(Path(sys.argv[1]), int(sys.argv[3]), sys.argv[4]))))

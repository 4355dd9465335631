"""Memory of many boards, and of many items: what a worker holds at most, folded from run messages of up to 1,000 items, without a store.

Each row is a process of its own, and what it takes is counted above a process that folds nothing. No order policy is declared.
"""

import itertools
import json
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.harness import SEED, Options, Table, run_command
from monitor.engine.chunk_fold import Partition
from schemas.records.chunks import Chunk

RUN_NAMES, RECORDS = 1_000, 20
PROCESSOR_SECONDS = 3_600
SHAPES = ((10_000, 20, 50), (1, 2, 1_000_000), (1, 100, 1_000_000), (1, 100, 9_000_000))


def measure(options: Options) -> Iterator[Table]:
    """Measure each size once."""
    table = Table(
        "Many boards, and many items",
        ["boards", "models", "items", "scores", "worker MB", "kB a board", "B an item", "B a score", "processor s"],
    )
    empty, _ = folded(0, 1, 1)
    for boards, models, items in ((50, 5, 20), (1, 2, 5_000)) if options.quick else SHAPES:
        full, seconds = folded(boards, models, items)
        taken, scores = 1e6 * (full - empty), boards * models * items
        each = (round(taken / boards / 1e3, 1), round(taken / boards / items), round(taken / scores, 1))
        table.rows.append((boards, models, items, scores, round(full), *each, round(seconds, 1)))
    yield table


def folded(boards: int, models: int, items: int) -> tuple[float, float]:
    """Return the megabytes and the processor seconds of a process that folds boards of the same size."""
    run = run_command(
        [sys.executable, "-m", "benchmarks.memory", *map(str, (boards, models, items))], PROCESSOR_SECONDS
    )
    return run.megabytes, run.cpu_seconds


def fold_many(boards: int, models: int, items: int) -> None:
    """Fold boards, model by model, some records at a time."""
    state, rng = Partition(), np.random.default_rng(SEED)
    for board in range(boards):
        chunk: list[bytes] = []
        for model, start in itertools.product(range(models), range(0, items, RUN_NAMES)):
            names = [f"question-{item:08}" for item in range(start, min(items, start + RUN_NAMES))]
            scores = rng.integers(0, 2, len(names)).tolist()
            run = {"benchmark": f"made-{board}", "model": f"model-{model:04}", "item_ids": names, "scores": scores}
            chunk.append(json.dumps(run).encode())
            if len(chunk) == RECORDS or (model == models - 1 and start + RUN_NAMES >= items):
                records = range(state.off, state.off + len(chunk))
                state.fold(Chunk(0, records.start, records.stop, records, chunk))
                chunk = []


if __name__ == "__main__":
    fold_many(*map(int, sys.argv[1:]))

"""A partition that is fed records as a log would feed it, and streams made of tables of scores."""

import json

import numpy as np

from monitor.engine.chunk_fold import Partition
from schemas.records.chunks import Chunk
from tests.memory_store import MemoryStore

STRIDE = 10
"""Offsets that a record takes."""


def event(item, model, score, *, benchmark="bench", **fields):
    return {"benchmark": benchmark, "item_id": str(item), "model": model, "score": score, **fields}


class FoldLog:
    """Folds what it is sent, one call a chunk, and keeps the deltas; `store` holds what a store would."""

    def __init__(self, *declarations, limits=None):
        self.limits = limits
        self.partition, self.store, self.deltas = Partition(limits=limits), MemoryStore(), []
        if declarations:
            self.send(*declarations)

    def send(self, *records):
        """Fold records (dictionaries, or bytes as they are) as one chunk."""
        start = self.partition.off
        raw = [record if isinstance(record, bytes) else json.dumps(record).encode() for record in records]
        offsets = [start + STRIDE * k for k in range(len(raw))]
        delta = self.partition.fold(Chunk(0, start, start + STRIDE * len(raw), offsets, raw))
        self.deltas.append(delta)
        self.store.commit(delta)
        return delta

    def restart(self):
        """Go on from the store."""
        self.partition = Partition.restore(self.store.state, self.limits)

    def __getitem__(self, name):
        return self.partition.benchmarks[name]

    @property
    def bench(self):
        return self["bench"]

    @property
    def letters(self):
        return [letter for delta in self.deltas for letter in delta.dead_letters]

    @property
    def changes(self):
        """Verdict changes of "bench" by (procedure, kind), for a benchmark of two models."""
        return {tuple(field.split(":")[1:]): change for field, change in self.bench.changes.items()}


def counts_of(benchmark, first, second):
    """n, b, c of two models, as seen from the first (b: only the first is right)."""
    names = [(c.model, c.epoch) for c in benchmark.contestants]
    first, second = ((x, 0) if isinstance(x, str) else x for x in (first, second))
    i, j = names.index(first), names.index(second)
    low, high = min(i, j), max(i, j)
    pair = high * (high - 1) // 2 + low
    n, b, c = (int(array[pair]) for array in (benchmark.n, benchmark.b, benchmark.c))
    return (n, b, c) if i < j else (n, c, b)


def packed(scores, models, *, items=None, benchmark="bench", **fields):
    """One packed record of a table of scores (items x models; nan: absent), item by item."""
    names = range(len(scores)) if items is None else items
    rows = np.asarray(scores, float).tolist()
    events = [
        event(item, model, int(x) if x in {0.0, 1.0} else x, benchmark=benchmark, **fields)
        for item, row in zip(names, rows, strict=True)
        for model, x in zip(models, row, strict=True)
        if x == x  # noqa: PLR0124 - not nan
    ]
    return {"events": events}


def paired(wins, losses, ties=0):
    """Scores of two models, shape (items, 2), with these counts; ties are right for both."""
    return np.repeat([[1, 0], [0, 1], [1, 1]], [wins, losses, ties], axis=0)

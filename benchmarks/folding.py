"""Fold lines in memory, as a worker folds them from its log."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from monitor.engine.chunk_fold import Partition
from schemas.records.chunks import Chunk

CHUNK = 2_000


@dataclass
class Folded:
    """A state, and the processor seconds of its fold, which exclude other work on the machine."""

    partition: Partition
    seconds: float
    events: int

    @property
    def pair_updates(self) -> int:
        """Return how often a score met a score of another model on the same item: the sum of n over all pairs."""
        return sum(int(each.n.sum()) for each in self.partition.benchmarks.values())


def declaration(benchmark: str, **spec: object) -> bytes:
    """Return a line that declares a benchmark."""
    return json.dumps({"declare": benchmark, **spec}).encode()


def fold(lines: Sequence[bytes], chunk: int = CHUNK, partition: Partition | None = None) -> Folded:
    """Decode, check and fold the lines, chunk by chunk; nothing is stored."""
    partition = partition or Partition()
    begin = time.process_time()
    for start in range(0, len(lines), chunk):
        part = lines[start : start + chunk]
        off = partition.off
        partition.fold(Chunk(0, off, off + len(part), range(off, off + len(part)), part))
    return Folded(partition, time.process_time() - begin, len(lines))

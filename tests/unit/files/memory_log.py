"""A log in memory, folded by the real fold, and how a tailer is run on it."""

import asyncio
import json

from monitor.engine.chunk_fold import Partition
from monitor.files.tail import Tailer
from schemas.records.chunks import Chunk
from tests.unit.files.result_lines import event


class Log:
    """A log in memory, folded by the real fold."""

    def __init__(self):
        self.records = []
        self.partition = Partition()

    async def append(self, records):
        self.records += records
        return len(self.records)

    def fold(self):
        start = self.partition.off
        new = self.records[start:]
        return (
            self.partition.fold(Chunk(0, start, len(self.records), range(start, len(self.records)), new))
            if new
            else None
        )

    def tailer(self, *paths, **options):
        """Begin again, as after a restart: from the positions of the folded log."""
        self.fold()
        return Tailer(
            paths, self.append, self.partition.sources, known=self.partition.benchmarks, poll_interval=0.01, **options
        )

    @property
    def packed(self):
        return [json.loads(r) for r in self.records]

    @property
    def events(self):
        return [e for p in self.packed for e in p["events"]]

    @property
    def rejects(self):
        return [r for p in self.packed for r in p["rejected"]]

    def counters(self):
        self.fold()
        total = dict(self.partition.counters)
        for benchmark in self.partition.benchmarks.values():
            for name, count in benchmark.counters.items():
                total[name] = total.get(name, 0) + count
        return total


def once(log, *paths, **options):
    tailer = log.tailer(*paths, **options)
    asyncio.run(tailer.run_once())
    return tailer


def look(tailer, times=1):
    """Let a tailer look at its files, as it does at each interval."""

    async def passes():
        for _ in range(times):
            await tailer._append_new(final=False)

    asyncio.run(passes())


MANY = [event(i, model=f"m{i % 3}", score=i % 2, cluster="c") for i in range(3_000)]

"""Follow one partition without ever writing: load the stored state, fold the log from there, and compare with what the store confirms."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from monitor.engine.state.changes import Delta, record_digest
from monitor.service.folded_partition import FoldedPartition
from monitor.store.errors import StoreUnavailable
from monitor.store.layout import record_commit
from monitor.store.state_reader import StateReader, StoredPosition
from schemas.records.boards import Suspect
from schemas.records.chunks import Chunk
from schemas.records.text import shorten

KEPT_BYTES: Final = 32 << 20
"""Records that wait to be confirmed. If more are folded before, the state is loaded again once the store has got there."""


class PartitionReader(FoldedPartition):
    """The fold of one partition, and how much of it the store confirms."""

    # A reader may be ahead of the store: the worker is away, or the store lost its last writes. The log is the truth, so the worker then
    # comes to the same state. Unless the log itself lost records that only the reader has folded; so each record that the store names as
    # its last one is compared with the one that was folded at its offset.
    store: StateReader
    fold_seconds = 0.1  # who reads the state waits for the end of the fold

    def __init__(self, number: int, store: StateReader, **options: object) -> None:
        super().__init__(number, **options)  # type: ignore[arg-type]  # those of FoldedPartition
        self.store = store
        self._changed: dict[str, int] = {}
        """Benchmarks with verdict changes whose commit times are not loaded yet, and the offset after them."""
        self._unconfirmed: deque[Chunk] = deque()
        self._unconfirmed_bytes = 0
        self._unknown_until = 0
        """Records before this offset were folded and not kept, so the store's last record cannot be compared with them."""
        self._seen = 0
        """Where the store was when it was last compared: what it has is known, although this reader has not folded so far."""
        self._expected: tuple[int, str] | None = None  # the store's last record, while it is ahead of this reader
        self._set_aside: set[tuple[str, int]] = set()
        """Benchmarks that were set aside, with the offset from which on, also those that are released."""

    async def load(self) -> None:
        """Load the state from the store, and drop the state in memory."""
        stored = await self.store.load(self.number)
        await self._restore(stored)
        self.commit_times = await self.store.commit_times(self.number)
        self.committed = self.partition.off
        self._changed.clear()
        self._unconfirmed.clear()
        self._unconfirmed_bytes = self._unknown_until = 0
        self._expected, self._seen = None, 0
        self._set_aside.clear()
        self._note_set_aside(self.partition.quarantine)

    async def _go_back(self) -> None:
        with suppress(StoreUnavailable):  # it is loaded again before anything is shown
            await self.load()

    async def fold(self, chunk: Chunk) -> bool:
        """Fold a chunk that begins where the state ends; return False if the store has another record in it."""
        rest: Chunk | None = chunk
        while rest is not None:
            delta = await self._fold(rest)
            part, rest = rest.cut(delta.records)
            if not self._keep(part, delta):
                return False
        return True

    def _keep(self, chunk: Chunk, delta: Delta) -> bool:
        """Keep what has been folded until the store confirms it; return False if the store has another record in it."""
        self._note_set_aside(delta.suspects.values())
        record_commit(self.commit_times, delta, time.time())
        for deleted in delta.deleted:
            self._changed.pop(deleted.name, None)
        self._changed |= {benchmark.name: delta.off for benchmark in delta.benchmarks if benchmark.changes}
        self._unconfirmed.append(chunk._replace(origins=None, keys=None))  # these keep whole messages in memory
        self._unconfirmed_bytes += sum(map(len, chunk.records))
        if self._expected is not None and not self._agrees(self._expected):
            return False
        if self._expected is not None and self._expected[0] < chunk.end:
            self._expected = None
        while self._unconfirmed_bytes > KEPT_BYTES:
            dropped = self._drop()
            if dropped.end > max(self.committed, self._seen):
                self._unknown_until = dropped.end
        return True

    async def load_times(self) -> None:
        """Load the commit times of the verdict changes that the store confirms; until then the times of this reader's fold replace them."""
        confirmed = {name: after for name, after in self._changed.items() if after <= self.committed}
        if confirmed:
            stored = await self.store.commit_times(self.number, confirmed)
            for name, after in confirmed.items():
                if self._changed.get(name) == after:  # neither changed nor deleted meanwhile
                    del self._changed[name]
                    self.commit_times[name].changes |= stored[name].changes

    def compare(self, stored: StoredPosition) -> str | None:
        """Compare with how far the store is; return why the state has to be loaded again, or None."""
        ours = self.partition
        if [tuple(gap) for gap in ours.gaps] != list(stored.gaps):
            return "the state has a gap that this reader has folded otherwise"
        if stored.last is not None:
            if not self._agrees(stored.last):
                return "the log lost records that this reader has folded"
            if stored.last[0] >= ours.off:
                self._expected = stored.last
        if stored.off < self.committed:
            # The store lost its last writes. What it writes in their place is compared once it has got here again.
            self._unknown_until = max(self._unknown_until, self.committed)
        self.committed, self._seen = min(stored.off, ours.off), stored.off
        if self._unknown_until and stored.off >= self._unknown_until:
            return "the store has written again what it had lost, or this reader was far ahead of it"
        while self._unconfirmed and self._unconfirmed[0].end <= stored.off:
            self._drop()
        return None

    def compare_set_aside(self, stored: Iterable[tuple[str, int]]) -> str | None:
        """Compare with the benchmarks that the store has set aside; return why the state has to be loaded again, or None."""
        # A worker also sets a benchmark aside that crashed only its own fold: the log does not show that.
        for name, since in stored:
            if since < self.partition.off and (name, since) not in self._set_aside:
                return f"a worker has set {shorten(name)} aside, and this reader has folded its records"
        return None

    def _note_set_aside(self, suspects: Iterable[Suspect]) -> None:
        self._set_aside |= {(each.benchmark, each.since) for each in suspects if each.since is not None}

    def _agrees(self, last: tuple[int, str]) -> bool:
        """Return whether the record at an offset has a digest, as far as this reader still has the record."""
        offset, digest = last
        for chunk in self._unconfirmed:
            if chunk.start <= offset < chunk.end:
                place = bisect_left(chunk.offsets, offset)
                return (
                    place < len(chunk.offsets)
                    and chunk.offsets[place] == offset
                    and record_digest(chunk.records[place]) == digest
                )
        return self.last is None or self.last[0] != offset or self.last[1] == digest

    def _drop(self) -> Chunk:
        chunk = self._unconfirmed.popleft()
        self._unconfirmed_bytes -= sum(map(len, chunk.records))
        return chunk

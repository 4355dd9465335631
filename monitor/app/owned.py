"""One partition in this worker's hands: loaded, folded chunk by chunk, committed, relayed, and let go."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from monitor.engine.chunk import Chunk
from monitor.engine.delta import DeadLetter, Delta, Misrouted, PairSnapshot, StoredState
from monitor.engine.limits import Limits
from monitor.engine.partition import Partition
from monitor.publish.relay import Outbox, Publisher, Relay
from monitor.store.errors import StaleState
from schemas.changes import VerdictChange

log = structlog.get_logger()

OUTBOX_LIMIT = 50_000
"""Verdict changes that may wait for the publisher; beyond it the fold waits too, for none may be thrown away."""

_OUTBOX_LOOK_SECONDS = 0.2


class Store(Outbox, Protocol):
    """What a partition needs of the store."""

    async def load(self, partition: int) -> StoredState:
        """Return the stored state."""

    async def commit(self, delta: Delta) -> None:
        """Write a delta whole, or raise `StaleState`."""

    async def save_pairs(self, partition: int, key: str, snapshot: PairSnapshot) -> bool:
        """Keep a snapshot of pair sums."""

    async def outbox_length(self, partition: int) -> int:
        """Return how many verdict changes wait."""


class DeadLetters(Protocol):
    """Where records that could not be read are kept."""

    async def keep(self, partition: int, letters: Sequence[DeadLetter]) -> int:
        """Keep letters durably before the state moves on; return how many of them are new."""


Republish = Callable[[int, Sequence[Misrouted]], Awaitable[None]]
"""Publishes records of a partition to their owners, in order, and returns once all of them are durable."""


class Owned:
    """The state of one partition and everything that happens to it.

    Parameters
    ----------
    number : int
        The partition.
    store : Store
    publisher : Publisher
        Takes the verdict changes.
    dead_letters : DeadLetters
    first_offset : int
        Where the log begins for a partition that was never folded.
    owner : callable, optional
        From the name of a benchmark to its partition; None: all are ours.
    republish : callable, optional
        Takes what is misrouted; needed with `owner`.
    listener : callable, optional
        Called with each verdict change after it was published.
    limits : Limits, optional
    """

    partition: Partition

    def __init__(
        self,
        number: int,
        store: Store,
        publisher: Publisher,
        dead_letters: DeadLetters,
        *,
        first_offset: int = 0,
        owner: Callable[[str], int] | None = None,
        republish: Republish | None = None,
        listener: Callable[[VerdictChange], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.number = number
        self.committed = first_offset
        """The log has been folded, and the fold stored, up to here."""
        self.last: tuple[int, str] | None = None
        """Offset and digest of the last record that was folded, as of the loading."""
        self.dead_letters_kept = 0
        self._store, self._dead_letters, self._republish = store, dead_letters, republish
        self._first_offset, self._owner, self._limits = first_offset, owner, limits
        self.relay = Relay(store, number, publisher, listener)
        self._folding = asyncio.Lock()
        self._moved = asyncio.Event()
        self._saved: dict[str, int] = {}

    async def load(self) -> None:
        """Take the state from the store, instead of whatever was here."""
        stored = await self._store.load(self.number)
        self.last = stored.last
        self.partition = Partition.restore(stored, self._limits, self._owner)
        if self.partition.off == 0:
            self.partition.off = self._first_offset
        self.committed = self.partition.off
        self._saved = {name: benchmark.off for name, benchmark in self.partition.benchmarks.items()}

    async def fold(self, chunk: Chunk) -> bool:
        """Fold a chunk, and store what it changed.

        Returns
        -------
        bool
            Whether the log is read on behind this chunk; False: go to `partition.off`, where the state is now.
        """
        async with self._folding:
            if chunk.start != self.partition.off:
                return (
                    chunk.start < self.partition.off
                )  # read before a seek: what follows is on its way, or has to be asked for
            delta = self.partition.fold(chunk)
            try:
                await self._store_delta(delta)
            except StaleState as error:
                log.warning("the stored state has moved: loading it again", partition=self.number, reason=str(error))
                await self.load()
                return False
            self.committed = delta.off
            self._moved.set()
        if any(benchmark.changes for benchmark in delta.benchmarks):
            self.relay.wake()
            await self._room_in_outbox()
        return True

    async def _store_delta(self, delta: Delta) -> None:
        """Write everything that has to be durable before the offset moves, then the delta with the offset."""
        if delta.misrouted:
            assert self._republish is not None
            await self._republish(self.number, delta.misrouted)
        if delta.dead_letters:
            self.dead_letters_kept += await self._dead_letters.keep(self.number, delta.dead_letters)
        await self._store.commit(delta)

    async def _room_in_outbox(self) -> None:
        while await self._store.outbox_length(self.number) > OUTBOX_LIMIT:
            self.relay.wake()
            await asyncio.sleep(_OUTBOX_LOOK_SECONDS)

    async def moved_beyond(self, offset: int) -> None:
        """Wait until the log has been folded and stored up to an offset."""
        while self.committed < offset:
            self._moved.clear()
            await self._moved.wait()

    async def save_pairs(self) -> None:
        """Save the pair sums of benchmarks that have moved, so that a restart need not rebuild them."""
        for name, benchmark in list(self.partition.benchmarks.items()):
            if self._saved.get(name) != benchmark.off:
                snapshot = benchmark.snapshot()
                if await self._store.save_pairs(self.number, benchmark.key, snapshot):
                    self._saved[name] = snapshot.off

    async def let_go(self) -> None:
        """Finish the chunk in hand, relay what is in the outbox, and save the pair sums."""
        async with self._folding:
            await self.relay.drain()
            await self.save_pairs()

    def busy(self) -> asyncio.Lock:
        """Return the lock that is held while a chunk is on its way into the store."""
        return self._folding

    @property
    def rejected(self) -> int:
        """Records that could not be read, in whichever benchmark."""
        partition = self.partition
        return partition.counters["rejected"] + sum(b.counters["rejected"] for b in partition.benchmarks.values())

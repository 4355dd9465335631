"""One partition in this worker's hands: loaded, folded chunk by chunk, committed, relayed, and let go."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog

from monitor.engine.chunk import Chunk
from monitor.engine.limits import Limits
from monitor.engine.partition import Partition
from monitor.engine.state.delta import DeadLetter, Delta, Misrouted, PairSnapshot, StoredState
from monitor.publish.relay import Outbox, Publisher, Relay
from monitor.serve.metrics.process_metrics import ProcessMetrics
from monitor.store.commit_times import CommitTimes, record_commit
from monitor.store.errors import StaleState
from schemas.changes import VerdictChange

log = structlog.get_logger()

OUTBOX_LIMIT = 50_000
"""Verdict changes that may wait for the publisher; beyond it the fold waits too, for none may be thrown away."""

_OUTBOX_LOOK_SECONDS = 0.2

_TURNS_TO_SEND = 3
"""Turns of the event loop in which the client of the store puts a command on the wire: a fold that comes before holds it back."""


class Store(Outbox, Protocol):
    """What a partition needs of the store."""

    async def load(self, partition: int) -> StoredState:
        """Return the stored state."""

    async def commit(self, delta: Delta, at: float = 0.0) -> None:
        """Write a delta whole, with the time of the commit, or raise `StaleState`."""

    async def commit_times(self, partition: int) -> dict[str, CommitTimes]:
        """Return the stored commit times, by benchmark."""

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


class PartitionWorker:
    """The state of one partition and everything that happens to it.

    Parameters
    ----------
    number : int
        The partition.
    store : Store
    publishers : sequence of Publisher
        Take the verdict changes. The first one has to have them before the partition is let go; the others go on from where they were.
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
    process_metrics : ProcessMetrics, optional
    """

    partition: Partition

    def __init__(
        self,
        number: int,
        store: Store,
        publishers: Sequence[Publisher],
        dead_letters: DeadLetters,
        *,
        first_offset: int = 0,
        owner: Callable[[str], int] | None = None,
        republish: Republish | None = None,
        listener: Callable[[VerdictChange], None] | None = None,
        limits: Limits | None = None,
        process_metrics: ProcessMetrics | None = None,
    ) -> None:
        self.number = number
        self._process_metrics = process_metrics or ProcessMetrics()
        self.committed = first_offset
        """The log has been folded, and the fold stored, up to here."""
        self.last: tuple[int, str] | None = None
        """Offset and digest of the last record that was folded, as of the loading."""
        self.dead_letters_kept = 0
        self.commit_times: dict[str, CommitTimes] = {}
        """By benchmark, for the metrics."""
        self._store, self._dead_letters, self._republish = store, dead_letters, republish
        self._first_offset, self._owner, self._limits = first_offset, owner, limits
        self._relays = [
            Relay(store, number, publisher, listener if place == 0 else None, self._count_relayed(publisher.name))
            for place, publisher in enumerate(publishers)
        ]
        self.relay = self._relays[0]
        self._folding = asyncio.Lock()
        self._moved = asyncio.Event()
        self._commit: asyncio.Task[None] | None = None
        """Of the last chunk that was folded, while it is on its way: never more than one, and the store gets them in order."""
        self._outbox_most = OUTBOX_LIMIT
        """Verdict changes that may be in the outbox: asking the store after each chunk would be a round trip to wait for."""
        self._saved: dict[str, int] = {}

    async def load(self) -> None:
        """Take the state from the store, instead of whatever was here."""
        stored = await self._store.load(self.number)
        for relay in self._relays:  # not before: a state that is refused is left as it is
            await relay.join()
        self.last = stored.last
        self.partition = Partition.restore(stored, self._limits, self._owner)
        if self.partition.off == 0:
            self.partition.off = self._first_offset
        self.commit_times = await self._store.commit_times(self.number)
        self.committed = self.partition.off
        self._outbox_most = OUTBOX_LIMIT
        self._saved = {name: benchmark.off for name, benchmark in self.partition.benchmarks.items()}

    async def fold(self, chunk: Chunk, follows: Callable[[], bool] = lambda: False) -> bool:
        """Fold a chunk, and store what it changed.

        Parameters
        ----------
        chunk : Chunk
        follows : callable, optional
            Says whether the next chunk of this partition is at hand: then it may be folded while what this one changed is stored.

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
            with self._process_metrics.fold_seconds.time():
                delta = self.partition.fold(chunk)
            self._process_metrics.chunk_records.observe(len(chunk.records))
            try:
                await self._stored()
                await self._put_aside(delta)
                self._commit = asyncio.create_task(self._store_delta(delta))
                for _ in range(_TURNS_TO_SEND):
                    await asyncio.sleep(0)
                if not follows():
                    await self._stored()
            except StaleState as error:
                self._process_metrics.stale_commits.inc()
                log.warning("the stored state has moved: loading it again", partition=self.number, reason=str(error))
                await self.load()
                return False
        if changes := sum(len(benchmark.changes) for benchmark in delta.benchmarks):
            await self._room_in_outbox(changes)
        return True

    async def _stored(self) -> None:
        """Wait until the commit that is on its way, if any, has ended; raise what it met."""
        commit, self._commit = self._commit, None
        if commit is not None:
            await commit

    async def _put_aside(self, delta: Delta) -> None:
        """Make durable what has to be so before the offset moves."""
        if delta.misrouted:
            assert self._republish is not None
            await self._republish(self.number, delta.misrouted)
        if delta.dead_letters:
            self.dead_letters_kept += await self._dead_letters.keep(self.number, delta.dead_letters)

    async def _store_delta(self, delta: Delta) -> None:
        """Write the delta with the offset."""
        at = time.time()
        with self._process_metrics.commit_seconds.time():
            await self._store.commit(delta, at)
        self.committed = delta.off
        record_commit(self.commit_times, delta, at)
        self._moved.set()
        if any(benchmark.changes for benchmark in delta.benchmarks):
            self._wake()

    def _wake(self) -> None:
        for relay in self._relays:
            relay.wake()

    def _count_relayed(self, publisher: str) -> Callable[[int], None]:
        self._process_metrics.relay_failures.labels(publisher)
        counter = self._process_metrics.relayed.labels(publisher)

        def count(changes: int) -> None:
            counter.inc(changes)

        return count

    async def run_relays(self) -> None:
        """Relay to every publisher whenever the outbox may have grown, until cancelled; one that is slow does not hold up the others."""
        await asyncio.gather(*(relay.run() for relay in self._relays))

    async def outbox_length(self) -> int:
        """Return how many verdict changes wait for a publisher, and note it."""
        length = await self._store.outbox_length(self.number)
        self._process_metrics.outbox.labels(str(self.number)).set(length)
        return length

    async def _room_in_outbox(self, more: int) -> None:
        self._outbox_most += more
        while self._outbox_most > OUTBOX_LIMIT:
            self._outbox_most = await self.outbox_length()
            if self._outbox_most > OUTBOX_LIMIT:
                self._wake()
                await asyncio.sleep(_OUTBOX_LOOK_SECONDS)

    async def moved_beyond(self, offset: int) -> None:
        """Wait until the log has been folded and stored up to an offset."""
        while self.committed < offset:
            self._moved.clear()
            await self._moved.wait()

    async def save_pairs(self) -> None:
        """Save the pair sums of benchmarks that have moved, so that a restart need not rebuild them."""
        # Between the fold of a chunk and its commit they are ahead of the store, which then refuses them.
        async with self._folding:
            await self._save_pairs()

    async def _save_pairs(self) -> None:
        for name, benchmark in list(self.partition.benchmarks.items()):
            if self._saved.get(name) != benchmark.off:
                snapshot = benchmark.snapshot()
                if await self._store.save_pairs(self.number, benchmark.key, snapshot):
                    self._saved[name] = snapshot.off

    async def release(self) -> None:
        """Finish the chunk in hand, relay what is in the outbox, and save the pair sums."""
        async with self._folding:
            try:
                await self._stored()
            except StaleState as error:
                log.warning("the stored state has moved: it stands", partition=self.number, reason=str(error))
            await self.relay.drain()
            await self._save_pairs()

    def busy(self) -> asyncio.Lock:
        """Return the lock that is held while a chunk is on its way into the store."""
        return self._folding

    @property
    def rejected(self) -> int:
        """Records that could not be read, in whichever benchmark."""
        partition = self.partition
        return partition.counters["rejected"] + sum(b.counters["rejected"] for b in partition.benchmarks.values())

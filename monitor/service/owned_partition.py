"""Load, fold, commit, relay and release one partition."""

import asyncio
import contextlib
import shlex
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from typing import Final, NamedTuple, TypeVar

import structlog

from monitor.engine.limits import SNAPSHOT_PAIRS
from monitor.engine.state.changes import Delta
from monitor.notices import Notices
from monitor.publish.relay import Publisher, Relay
from monitor.service.folded_partition import FoldCrashed, FoldedPartition
from monitor.service.source_topic import SourceGap, gap_between
from monitor.store.errors import StaleState
from monitor.store.layout import record_commit
from monitor.store.redis_store import RedisStore
from schemas.records.boards import Suspect
from schemas.records.chunks import Chunk, DeadLetter, Misrouted
from schemas.records.packed import is_imported
from schemas.records.producers import ProducerOf, at_offset, in_header
from schemas.records.text import shorten
from schemas.results.changes import AnyChange, change_order

log = structlog.get_logger()

OUTBOX_CHANGES: Final = 250_000
"""Verdict changes that may wait for the publishers by default; beyond it the fold waits too, because none may be dropped."""

_SAVE_SECONDS: Final = 3.0  # how long saving may take when a partition is released: what is not saved is computed again

_DRAIN_SECONDS: Final = 5.0  # how long relaying may take then: the outbox keeps what is not relayed

_PAUSE_SECONDS: Final = 0.2  # how long saving may take ahead of a rebalance, for which the whole group waits

_OUTBOX_POLL_SECONDS = 0.2

_RELAY_SECONDS: Final = 4.0
"""How long the changes of a chunk that is stored in parts wait at most for its last part before they are relayed."""

_SLOW_SECONDS: Final = 5.0  # how long a chunk may take before it is reported, with the first few of its benchmarks

_NAMED: Final = 5

_TURNS_TO_SEND = 3
"""Turns of the event loop that the store's client needs to send a command; without them the next fold would delay it."""


KeepDeadLetters = Callable[[int, Sequence[DeadLetter]], Awaitable[int]]
"""Stores rejected records of a partition durably; returns how many are new."""

OfRecord = TypeVar("OfRecord", DeadLetter, Misrouted)
Republish = Callable[[int, Sequence[Misrouted]], Awaitable[None]]
"""Publishes records of a partition to their owners, in order; returns once all are durable."""


class Outlets(NamedTuple):
    """Where the verdict changes of a partition go."""

    publishers: Sequence[Publisher]  # the first one gets them before the partition is released, as far as 5 s go
    news: Sequence[Publisher] = ()  # get those that are news, after the others
    listener: Callable[[AnyChange], None] | None = None  # called with each after the first publisher has it
    most: int = OUTBOX_CHANGES  # changes that may wait for publishers; see `is_full`


class LogSpan(NamedTuple):
    """What the log has of a partition."""

    first: int = 0  # where it began; used for a partition that was never folded
    earliest: int | None = None  # where it begins now, if it may have lost its beginning
    end: int | None = None  # where it ends now: what a partition that was never folded has before it is no news
    accept_gap: bool = False  # whether to continue at `earliest` where the state has not got so far


class PartitionWorker(FoldedPartition):
    """Owns the state of one partition, and every step from a chunk to its relayed changes."""

    fold_seconds = 1.0  # what is folded is stored then

    def __init__(
        self,
        number: int,
        store: RedisStore,
        outlets: Outlets,
        keep_dead_letters: KeepDeadLetters,
        span: LogSpan = LogSpan(),  # noqa: B008 - it is never changed
        *,
        republish: Republish | None = None,
        producer_of: ProducerOf = in_header,
        notices: Notices | None = None,
        **options: object,
    ) -> None:
        super().__init__(number, **options)  # type: ignore[arg-type]  # those of FoldedPartition
        self.committed = span.first
        self.dead_letters_kept = 0
        self._store, self._keep_dead_letters, self._republish = store, keep_dead_letters, republish
        self._producer_of = producer_of
        self._span = span
        self._imported: set[int] | None = set() if outlets.news else None
        """Offsets of imported records with verdict changes; None if nobody asks."""
        self._loaded = span.first
        """Where the state was when it was last loaded: the marks of earlier records are not known."""
        self._earliest = span.first if span.earliest is None else span.earliest
        self._relays = [
            Relay(
                store,
                number,
                publisher,
                outlets.listener if place == 0 else None,
                self._relayed_counter(publisher.name),
                once=place >= len(outlets.publishers),
            )
            for place, publisher in enumerate((*outlets.publishers, *outlets.news))
        ]
        self._news_relays = self._relays[len(outlets.publishers) :]
        self.relay = self._relays[0]
        self.folding = asyncio.Lock()  # held while a chunk is folded and stored
        self.ending = False
        """Whether a fold ends with the part of a chunk that it is at; the next owner of the partition goes on."""
        self._moved = asyncio.Event()
        self._commit: asyncio.Task[None] | None = None
        """The commit of the last folded chunk, while it runs; there is never more than one, so the store gets them in order."""
        self._unannounced = False  # whether verdict changes are stored for which the relays were not woken
        self._outbox_limit = self._outbox_bound = outlets.most
        """Upper bound of the outbox length; asking the store after each chunk would cost a round trip."""
        self._notices, self._incidents = notices, notices or Notices(0)
        self._saved: dict[str, int] = {}
        self._quarantined: dict[str, Suspect] = {}  # the benchmarks in quarantine as of the last report

    async def load(self) -> None:
        """Load the state from the store, and drop the state in memory."""
        stored = await self._store.load(self.number)
        for relay in self._relays:  # after the load: a refused state stays unchanged
            await relay.join()
        if not stored.off and self._span.end is not None:
            for relay in self._news_relays:
                await relay.skip_to(self._span.end)
        self._loaded = stored.off or self._span.first
        await self._restore(stored)
        self._count_quarantine()
        if self.partition.off == 0:
            self.partition.off = self._span.first
        if self.partition.off < self._earliest:
            await self._skip_gap()
        self.commit_times = await self._store.commit_times(self.number)
        self.committed = self.partition.off
        self._outbox_bound = self._outbox_limit
        self._saved = {name: benchmark.off for name, benchmark in self.partition.benchmarks.items()}
        self._wake()  # a write that was taken for refused may have landed, with changes that nobody has relayed

    async def pause(self) -> None:
        """Finish the current commit before a rebalance, after which this worker may keep the partition."""
        async with self.folding:
            try:
                await self._wait_for_commit()
            except StaleState:
                self.torn = True
            await self._save_pairs(_PAUSE_SECONDS)

    async def is_current(self) -> bool:
        """Return whether the state in memory is the stored one: no chunk was interrupted, and no other worker has written since."""
        idle = not self.torn and self._commit is None and not self.folding.locked()
        return (
            idle
            and self.committed == self.partition.off
            and await self._store.is_unchanged(self.number, self.committed)
        )

    async def load_if_lost(self) -> bool:
        """Load the stored state if the server has lost writes, which the state in memory has; return whether it has."""
        async with self.folding:
            with contextlib.suppress(StaleState):
                await self._wait_for_commit()
                if self.torn or not await self._store.lost_writes({self.number: self.committed}):
                    return False
            log.warning(
                "the server has lost writes; loading its state again", partition=self.number, offset=self.committed
            )
            await self.load()
            return True

    async def _skip_gap(self) -> None:
        """Continue where the log begins now, if the operator accepts that records before it are lost; raise `SourceGap` if not."""
        partition, topic, earliest = self.partition, self._store.topic, self._earliest
        if not self._span.accept_gap:
            raise SourceGap(gap_between(topic, self.number, partition.off, earliest))
        log.warning(
            "continuing after a gap; every benchmark of this partition may be partial",
            partition=self.number,
            from_offset=partition.off,
            to_offset=earliest,
        )
        await self._store.commit(partition.skip(earliest), time.time())

    async def fold(
        self, chunk: Chunk, follows: Callable[[], bool] = lambda: False, is_revoked: Callable[[], bool] = lambda: False
    ) -> bool:
        """Fold a chunk, and store its changes; a chunk that is stored in parts may end with any of them."""
        async with self.folding:
            if chunk.start != self.partition.off:
                return chunk.start < self.partition.off  # read before a seek
            parts, started = [chunk], time.monotonic()
            woken = started
            try:
                while parts and not (self.ending or is_revoked()):
                    part = parts.pop()
                    try:
                        delta = await self._fold(part)
                    except FoldCrashed as crash:
                        parts += await self._contain(part, crash)
                        continue
                    part, rest = part.cut(delta.records)
                    parts += [] if rest is None else [rest]
                    wake = not parts or time.monotonic() - woken > _RELAY_SECONDS
                    woken = time.monotonic() if wake else woken
                    await self._store_in_turn(delta, part, wait=bool(parts) or not follows(), wake=wake)
                    if delta.change_count:
                        await self._check_outbox(delta.change_count)
                        if self.is_full:
                            break
            except StaleState as error:
                self._process_metrics.stale_commits.inc()
                log.warning(
                    "another writer moved the stored state; loading it again", partition=self.number, reason=str(error)
                )
                await self.load()
                return False
        self._report_slow(chunk, time.monotonic() - started)
        return not parts

    def _report_slow(self, chunk: Chunk, seconds: float) -> None:
        """Log a chunk that took long, with the benchmarks that it has moved."""
        if self._notices is not None and seconds > _SLOW_SECONDS:
            moved = [each.name for each in self.partition.benchmarks.values() if each.off > chunk.start]
            self._notices.log(
                "warning",
                "a chunk was slow",
                partition=self.number,
                offset=chunk.start,
                records=len(chunk.records),
                seconds=round(seconds, 2),
                benchmarks=[shorten(name) for name in moved[:_NAMED]],
            )

    async def _store_in_turn(self, delta: Delta, chunk: Chunk, *, wait: bool, wake: bool = True) -> None:
        """Start the commit of the delta of a chunk after the last one has ended; wait for it if asked, or if it is large."""
        # `wake`: the relays begin with its changes. They wait for the last part of a chunk, or some seconds: they take longer than the
        # fold.
        await self._wait_for_commit()
        await self._publish_rejected(delta, chunk)
        self._note_imports(delta, chunk)
        self._commit = asyncio.create_task(self._store_delta(delta, wake=wake))
        for _ in range(_TURNS_TO_SEND):
            await asyncio.sleep(0)
        if delta.is_large or wait:
            await self._wait_for_commit()

    async def _contain(self, chunk: Chunk, crash: FoldCrashed) -> list[Chunk]:
        """Return the smaller chunks to fold in place of one that crashes the fold, the first one last."""
        # A chunk of one record cannot be smaller: its benchmarks are set aside, or, if they were already, the record is rejected.
        if self.partition.off != chunk.start:  # the store has lost writes: the chunk does not follow its state
            raise StaleState(self.number, chunk.start, self.partition.off, "")
        cause = crash.__cause__
        assert cause is not None
        if len(chunk.records) > 1:
            first, second = chunk.cut(len(chunk.records) // 2)
            assert second is not None
            return [second, first]
        if not self._set_aside(chunk, cause):
            await self._store_in_turn(self.partition.pass_over(chunk, cause), chunk, wait=True)
            return []
        return [chunk]

    def _set_aside(self, chunk: Chunk, cause: BaseException) -> bool:
        try:
            return self.partition.set_aside(chunk, cause)
        except Exception:  # noqa: BLE001 - what crashes the fold may crash this too
            return False

    async def _go_back(self) -> None:
        await self._wait_for_commit()
        await self.load()

    async def _wait_for_commit(self) -> None:
        """Wait for the running commit, if any, and raise its error."""
        commit, self._commit = self._commit, None
        if commit is not None:
            await commit

    async def _publish_rejected(self, delta: Delta, chunk: Chunk) -> None:
        """Store misrouted and rejected records durably, before the offset moves; count conflicts by who sent them."""
        if delta.misrouted:
            assert self._republish is not None
            await self._republish(self.number, self._with_producers(delta.misrouted, chunk))
        if delta.dead_letters:
            letters = self._with_producers(delta.dead_letters, chunk)
            self.dead_letters_kept += await self._keep_dead_letters(self.number, letters)
            self._report_rejected(letters)
        for offset, count in Counter(o for each in delta.benchmarks for o in each.conflict_offsets).items():
            producer = at_offset(chunk, offset, self._producer_of)
            self._process_metrics.count_conflicts(producer, count)

    def _with_producers(self, records: Sequence[OfRecord], chunk: Chunk) -> list[OfRecord]:
        return [each._replace(producer=at_offset(chunk, each.offset, self._producer_of)) for each in records]

    def _report_rejected(self, letters: Sequence[DeadLetter]) -> None:
        """Log that records are rejected, with the wrong field of one of them; the rest may be a question of an evaluation."""
        if self._notices is not None:
            letter = letters[0]
            self._notices.log(
                "warning",
                "records rejected",
                benchmark=letter.benchmark and shorten(letter.benchmark),
                producer=letter.producer,
                partition=self.number,
                offset=letter.offset,
                field=shorten(letter.field),
                reason=shorten(letter.reason),
                records=len(letters),
            )

    def _note_imports(self, delta: Delta, chunk: Chunk) -> None:
        if self._imported is None:
            return
        for each in delta.benchmarks:
            for offset in {order[0] for order in each.changes.orders(each.changes)}:
                number = bisect_left(chunk.offsets, offset)
                if number < len(chunk.records) and is_imported(chunk.records[number]):
                    self._imported.add(offset)

    def is_import(self, offset: int) -> bool | None:
        """Return whether a record with verdict changes was imported; None if that is not known here."""
        if self._imported is not None and offset in self._imported:
            return True
        return None if offset < self._loaded else False

    async def _store_delta(self, delta: Delta, *, wake: bool) -> None:
        """Commit the delta with its offset."""
        at = time.time()
        with self._process_metrics.commit_seconds.time():
            await self._store.commit(delta, at)
        self.committed = delta.off
        self._report_quarantine(delta)
        record_commit(self.commit_times, delta, at)
        self._moved.set()
        self._unannounced |= delta.change_count > 0
        if self._unannounced and wake:
            self._wake()

    def _report_quarantine(self, delta: Delta) -> None:
        """Log what a stored chunk has set aside or released, and count it."""
        for name, suspect in delta.suspects.items():
            known = self._quarantined.get(name)
            if suspect.since is not None and (known is None or known.since != suspect.since):
                self._incidents.log(
                    "error",
                    "a benchmark is set aside",
                    benchmark=name,
                    partition=self.number,
                    offset=suspect.since,
                    reason=suspect.reason,
                    release=f"rankwatch quarantine release {shlex.quote(name)}",
                )
            elif suspect.since is None and known is not None:
                self._incidents.log(
                    "info", "a benchmark is released", benchmark=name, partition=self.number, set_aside=known.records
                )
        if delta.suspects:
            self._count_quarantine()

    def _count_quarantine(self) -> None:
        self._quarantined = {suspect.benchmark: suspect for suspect in self.partition.quarantine}
        self._process_metrics.quarantined.labels(str(self.number)).set(len(self._quarantined))

    def _wake(self) -> None:
        self._unannounced = False
        for relay in self._relays:
            relay.wake()

    def _relayed_counter(self, publisher: str) -> Callable[[int], None]:
        self._process_metrics.relay_failures.labels(publisher)  # so that it is exported as 0
        count: Callable[[int], None] = self._process_metrics.relayed.labels(publisher).inc
        return count

    async def run_relays(self) -> None:
        """Relay to every publisher until cancelled; a slow publisher does not delay the others."""
        await asyncio.gather(*(relay.run() for relay in self._relays))

    async def outbox_length(self) -> int:
        """Return how many verdict changes wait for a publisher, and update its metric."""
        length = self._outbox_bound = await self._store.outbox_length(self.number)
        self._process_metrics.outbox.labels(str(self.number)).set(length)
        return length

    @property
    def is_full(self) -> bool:
        """Whether so many verdict changes wait for publishers that nothing more is to be folded."""
        return self._outbox_bound > self._outbox_limit

    async def _check_outbox(self, more: int) -> None:
        """Count new verdict changes that wait for publishers, and report it if they near the limit."""
        self._outbox_bound += more
        if self._outbox_bound <= self._outbox_limit // 2:
            return
        await self.outbox_length()
        if self._commit is not None:  # what it announces may not be stored yet
            self._outbox_bound += more
        if self._outbox_bound <= self._outbox_limit // 2 or self._notices is None:
            return
        kind = "the fold waits for publishers" if self.is_full else "the outbox fills"
        if (omitted := self._notices.due(kind)) is not None:  # only then: the publishers cost a round trip each
            log.warning(
                kind,
                partition=self.number,
                changes=self._outbox_bound,
                limit=self._outbox_limit,
                publishers=await self._slowest(),
                omitted=omitted,
            )

    async def _slowest(self) -> list[str]:
        """Return the publishers that have accepted the fewest changes."""
        names = [relay.name for relay in self._relays]
        relayed = [change_order(await self._store.relayed(self.number, name)) for name in names]
        return [name for name, place in zip(names, relayed, strict=True) if place == min(relayed)]

    async def has_room(self) -> bool:
        """Return whether more may be folded, and relay what waits if not."""
        if self.is_full and await self.outbox_length() > self._outbox_limit:
            self._wake()
        return not self.is_full

    async def wait_for_room(self) -> None:
        """Wait until more may be folded."""
        while self.is_full:
            if not await self.has_room():
                await asyncio.sleep(_OUTBOX_POLL_SECONDS)

    async def moved_beyond(self, offset: int) -> None:
        """Wait until the log is folded and stored up to an offset."""
        while self.committed < offset:
            self._moved.clear()
            await self._moved.wait()

    async def save_pairs(self) -> int:
        """Save the pair sums of benchmarks that have moved, so that a restart need not rebuild them; return how many."""
        # Between the fold of a chunk and its commit the sums are ahead of the store, which would reject them.
        async with self.folding:
            return await self._save_pairs()

    async def _save_pairs(self, seconds: float = inf) -> int:
        """Save the pair sums of benchmarks that have moved, as many as take so long; return how many."""
        clock = asyncio.get_running_loop().time
        end, saved = clock() + seconds, 0
        if self.torn:
            return saved
        for name, benchmark in list(self.partition.benchmarks.items()):
            if clock() >= end:
                break
            if self._saved.get(name) != benchmark.off and benchmark.pairs <= SNAPSHOT_PAIRS:
                snapshot = benchmark.snapshot()
                if await self._store.save_pairs(self.number, benchmark.key, snapshot):
                    self._saved[name] = snapshot.off
                    saved += 1
        return saved

    async def release(self) -> None:
        """Finish the current chunk, relay the outbox, and save the pair sums; what takes too long is left to the next owner."""
        async with self.folding:
            try:
                await self._wait_for_commit()
            except StaleState as error:
                log.warning(
                    "another writer moved the stored state; keeping theirs", partition=self.number, reason=str(error)
                )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    await self.relay.drain()
            await self._save_pairs(_SAVE_SECONDS)

    @property
    def rejected(self) -> int:
        """Rejected records, over all benchmarks."""
        partition = self.partition
        return partition.counters["rejected"] + sum(b.counters["rejected"] for b in partition.benchmarks.values())

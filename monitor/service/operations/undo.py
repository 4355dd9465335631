"""Begin a board again without the events of a producer since a time, or of a model: the records that stay are copied to the end of the log.

The undo is a record of the log, and so are the copies: every fold of the log does the same, and needs nothing but the log. See
docs/decisions/0032-undo-by-copies.md.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import structlog

from monitor.engine.chunk_fold import Partition
from monitor.engine.decoder import BoardChanged, Declared, Decoder, Republished, RunEnded, SpanRead, Step
from schemas.records.boards import BoardEntry, Undo
from schemas.records.chunks import Chunk, Origin, Source
from schemas.records.columns import EventBatch
from schemas.records.events import Ended, EventFields, by_kind, models_of
from schemas.records.operations import BoardChange, Undone, encode_board_change
from schemas.records.packed import mark_imported
from schemas.records.text import Fault, shorten

_log = structlog.get_logger()

COPY_EVENTS: Final = 1_000
_COPY_BYTES: Final = 900_000  # by default a topic accepts messages of a little over a million bytes

_AT_ONCE: Final = 64
_POLL_SECONDS: Final = 0.1
_NAMED: Final = 5


class BoardError(Exception):
    """The state of a board does not allow what is asked for; the message has the reason and what to do."""


class LogRecord(NamedTuple):
    """A record of the log: who sent it, and when in milliseconds since 1970, as far as that is known."""

    offset: int
    value: bytes
    producer: str | None = None
    at: int | None = None
    origin: Origin | None = None
    lost: bool = False  # whether there is no record, because what the log held from here on was given up


class RecordLog(Protocol):
    """The records of the log that has a board."""

    named: bool  # whether the producer is a field of a record, and not a header

    async def bounds(self) -> tuple[int, int]:
        """Return the offset of the first record that the log still has, and its end."""

    def read(self, first: int, stop: int) -> AsyncIterator[Sequence[LogRecord]]:
        """Yield the records from an offset on, up to one, in parts."""

    async def append(self, values: Sequence[tuple[bytes, str | None]]) -> None:
        """Append records, each with the producer that it is from; they are durable on return."""


class FoldedBoard(NamedTuple):
    """What the fold holds of a board."""

    entry: BoardEntry
    fault: Callable[[BoardChange], Fault | None]
    counters: Mapping[str, int]


class _Marks(msgspec.Struct):
    """When a record of a file log was appended, and of a copy: the offset and the time of the record that it is from."""

    at: int | None = None
    copied: tuple[int, int | None] | None = None


_MARKS: Final = msgspec.json.Decoder(_Marks)


def marks_of(value: bytes) -> tuple[int | None, tuple[int, int | None] | None]:
    """Return the time at which a record was appended, by its own field, and the record that it is a copy of.

    >>> marks_of(b'{"at":7,"events":[]}'), marks_of(b'{"copied":[3,null],"events":[]}'), marks_of(b"nonsense")
    ((7, None), (None, (3, None)), (None, None))
    """
    if b'"copied":[' not in value and b'"at":' not in value:
        return None, None
    try:
        marks = _MARKS.decode(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None, None
    return marks.at, marks.copied


@dataclass
class Counts:
    """How many events an undo concerns."""

    kept: int = 0
    withdrawn: int = 0
    undated: int = 0  # events of the producer whose time is not known
    by_producer: Counter[str] = field(default_factory=Counter)
    gapped: bool = False  # whether the log lacks a part that was damaged

    @property
    def seen(self) -> int:
        """Events that the log has."""
        return self.kept + self.withdrawn


class Kept:
    """What stays of records, packed into copies."""

    def __init__(self) -> None:
        self.record: LogRecord | None = None
        self._first = 0  # offset of the first record
        self._declare: list[dict[str, Any]] = []
        self._events: list[EventFields] = []
        self._ended: list[dict[str, Any]] = []

    def joins(self, record: LogRecord) -> bool:
        """Return whether a record may share a copy with those before: it is of the same producer and time, and nothing has ended."""
        last = self.record
        if last is None:
            return True
        same = last.producer == record.producer and (last.producer is None or last.at == record.at)
        return same and not self._ended and len(self._events) < COPY_EVENTS

    @property
    def has_events(self) -> bool:
        """Whether there are events, which a declaration must not be moved ahead of."""
        return bool(self._events)

    def declare(self, declaration: dict[str, Any]) -> None:
        """Add a declaration."""
        self._declare.append(declaration)

    def add(self, events: Sequence[EventFields]) -> None:
        """Add events."""
        self._events += events

    def end(self, ended: dict[str, Any]) -> None:
        """Add the end of runs."""
        self._ended.append(ended)

    def note(self, record: LogRecord) -> None:
        """Note the record that was added last."""
        self._first = record.offset if self.record is None else self._first
        self.record = record

    def take(self, *, named: bool) -> Iterator[tuple[bytes, str | None]]:
        """Yield the copies, and hold nothing; `named`: the producer is a field of the record."""
        record, declare, events, ended = self.record, self._declare, self._events, self._ended
        self.record, self._declare, self._events, self._ended = None, [], [], []
        if record is None or not (declare or events or ended):
            return
        head: dict[str, Any] = {"producer": record.producer} if named and record.producer is not None else {}
        first = {"declare": declare} if declare else {}
        parts = list(_split([events[k : k + COPY_EVENTS] for k in range(0, len(events), COPY_EVENTS)] or [[]]))
        for place, part in enumerate(parts):
            # An interrupted undo goes on at the last copy: one whose others may be missing names the first of its records.
            is_last = place == len(parts) - 1
            marks = {"copied": (record.offset if is_last else self._first, record.at)}
            last = {"ended": ended} if ended and is_last else {}
            value = msgspec.json.encode({**head, **marks, **(first if place == 0 else {}), **by_kind(part), **last})
            yield mark_imported(value), record.producer


def _split(parts: Sequence[Sequence[EventFields]]) -> Iterator[Sequence[EventFields]]:
    """Yield lists of events that fit in a message each."""
    for part in parts:
        if len(part) > 1 and len(msgspec.json.encode(part)) > _COPY_BYTES:
            middle = len(part) // 2
            yield from _split([part[:middle], part[middle:]])
        else:
            yield part


class Withdrawing:
    """Reads the records of a board as the fold does, without the events that an undo withdraws."""

    def __init__(self, benchmark: str, undo: Undo) -> None:
        self.counts = Counts()
        self._undo = undo
        self._aliases: dict[str, str] = {}
        self._sources: dict[str, Source] = {}
        self._origins: dict[int, tuple[int, int]] = {}
        self._decoder = Decoder(lambda name: name == benchmark, self._sources, self._origins)
        self._closed = False

    def copies(self, records: Sequence[LogRecord], kept: Kept, *, named: bool) -> Iterator[tuple[bytes, str | None]]:
        """Yield copies of what stays of some records, in their order; the last ones stay in `kept`."""
        for record in records:
            if record.lost:
                self._decoder.gapped = self.counts.gapped = True
                continue
            if not kept.joins(record):
                yield from kept.take(named=named)
            origins = None if record.origin is None else [record.origin]
            chunk = Chunk(0, record.offset, record.offset + 1, [record.offset], [record.value], origins)
            for step in self._decoder.steps(chunk):
                self._follow(step)
                if self._closed:
                    continue
                match step:
                    case Declared(declaration):
                        self._aliases |= declaration.aliases
                        if kept.has_events:
                            yield from kept.take(named=named)
                        kept.declare(declaration.model_dump(mode="json"))
                    case EventBatch():
                        kept.add(self._kept_events(list(step.events), record))
                    case RunEnded(ended) if self._stays(ended, record):
                        kept.end(ended.model_dump(mode="json", exclude_none=True))
                    case _:
                        continue
                kept.note(record)

    def has_records(self, record: LogRecord) -> bool:
        """Return whether a record holds anything of the board."""
        chunk = Chunk(0, record.offset, record.offset + 1, [record.offset], [record.value])
        return any(isinstance(step, Declared | EventBatch | RunEnded) for step in self._decoder.steps(chunk))

    def _follow(self, step: Step) -> None:
        """Take over what decides whether later records count: as the fold does."""
        match step:
            case SpanRead(path, source):
                self._sources[path] = source
            case Republished(origin):
                self._origins[origin.partition] = origin.offset, origin.place
            case BoardChanged(change) if change.board in {"archive", "restore"}:
                self._closed = change.board == "archive"

    def _stays(self, ended: Ended, record: LogRecord) -> bool:
        return not self._is_withdrawn(record) and (ended.model is None or not self._has_model(ended.model))

    def _kept_events(self, events: list[EventFields], record: LogRecord) -> list[EventFields]:
        self.counts.by_producer[record.producer or ""] += len(events)
        if self._undo.model is not None:
            stay = [each for each in events if not any(map(self._has_model, models_of(each)))]
        else:
            stay = [] if self._is_withdrawn(record) else events
        self.counts.kept += len(stay)
        self.counts.withdrawn += len(events) - len(stay)
        if record.producer is not None and record.producer == self._undo.producer and record.at is None:
            self.counts.undated += len(events)
        return stay

    def _is_withdrawn(self, record: LogRecord) -> bool:
        undo = self._undo
        if undo.producer is None or record.producer != undo.producer:
            return False
        return undo.since is None or (record.at is not None and record.at >= undo.since)

    def _has_model(self, model: str) -> bool:
        """Return whether a name is of the model whose events are withdrawn."""
        withdrawn, aliases = self._undo.model, self._aliases
        return withdrawn is not None and aliases.get(model, model) == aliases.get(withdrawn, withdrawn)


class Undoing:
    """One undo of a board, or what is left of one that was interrupted."""

    def __init__(
        self, log: RecordLog, look: Callable[[], Awaitable[FoldedBoard]], change: BoardChange, seconds: float
    ) -> None:
        self._log, self._look, self._change, self._seconds, self._named = log, look, change, seconds, log.named
        self.benchmark = change.benchmark
        self.undo = Undo(change.producer, change.since, change.model)

    async def count(self) -> Counts:
        """Return how many events would be withdrawn, and would stay."""
        view = await self._look()
        fault = view.fault(self._change)
        if fault is not None:
            raise BoardError(fault.reason)
        begin, end = await self._log.bounds()
        reading = Withdrawing(self._change.benchmark, self.undo)
        async for records in self._log.read(max(begin, view.entry.first), end):
            for _ in reading.copies(records, Kept(), named=self._named):
                pass
        counts = reading.counts
        self._check(counts, begin, view.entry, view.counters.get("events", 0))
        return counts

    def _check(self, counts: Counts, begin: int, entry: BoardEntry, counted: int) -> None:
        name = shorten(self._change.benchmark)
        if (begin > entry.first or counts.gapped) and counts.seen < counted:
            lacks = "lacks what was damaged" if counts.gapped else f"begins at offset {begin:,}"
            raise BoardError(
                f"the log {lacks} and has {counts.seen:,} of the {counted:,} scores of {name}, so the board cannot be "
                "folded again from it; export the board, remove the wrong lines, delete and reopen it, and send the file"
            )
        if self.undo.since is not None and counts.undated:
            raise BoardError(
                f"{counts.undated:,} events of {shorten(self.undo.producer or '')} have no time, because an earlier version appended them; "
                "omit --since to withdraw all events of the producer"
            )
        if not counts.withdrawn:
            sent = ", ".join(f"{who or 'no name'} ({n:,})" for who, n in counts.by_producer.most_common(_NAMED))
            raise BoardError(
                f"{name} has none of {self.undo.describe()}, so there is nothing to withdraw; its events are of: {sent or 'nobody'}"
            )

    async def begin(self) -> Undone:
        """Append the undo, unless it has begun already, and wait until it is folded."""
        change, begun = self._change, (await self._look()).entry.unfinished
        if begun is not None and begun.same(self.undo):
            return Undone(None, None)
        counts = await self.count()
        record = encode_board_change(msgspec.structs.replace(change, kept=counts.kept))
        await self._log.append([(record, None)])
        if not await self._until(lambda entry: entry.unfinished is not None and entry.unfinished.same(self.undo)):
            raise BoardError(
                f"the undo of {shorten(change.benchmark)} is in the log, and no worker has folded it yet; run the command again once one "
                "has"
            )
        return Undone(counts.withdrawn, counts.kept)

    async def copy(self) -> int:
        """Copy the records that stay, end the undo, and return how many events they are; a second call goes on where the first ended."""
        view = await self._look()
        entry, undo = view.entry, view.entry.unfinished
        if undo is None or not undo.same(self.undo):
            raise BoardError(f"{shorten(entry.benchmark)} has no such undo that is unfinished")
        done = await self._copied(entry)
        reading, kept, waiting = Withdrawing(entry.benchmark, undo), Kept(), list[tuple[bytes, str | None]]()
        async for records in self._log.read(undo.former, entry.begun):
            ahead = [record for record in records if record.offset < done]
            for _ in reading.copies(ahead, Kept(), named=self._named):
                pass
            waiting += reading.copies(records[len(ahead) :], kept, named=self._named)
            while len(waiting) >= _AT_ONCE:
                await self._log.append(waiting[:_AT_ONCE])
                del waiting[:_AT_ONCE]
        if reading.counts.kept < undo.kept:
            raise BoardError(
                f"the log has {reading.counts.kept:,} of the {undo.kept:,} events of {shorten(entry.benchmark)} that stay; the rest has "
                "left it since the undo began, so the board stays partial: delete and reopen it, and send the results again"
            )
        ending = BoardChange("undone", entry.benchmark)
        await self._log.append([*waiting, *kept.take(named=self._named), (encode_board_change(ending), None)])
        return reading.counts.kept

    async def _copied(self, entry: BoardEntry) -> int:
        """Return the offset of the last record that was copied; 0 if none was."""
        last = 0
        _, end = await self._log.bounds()
        reading = Withdrawing(entry.benchmark, self.undo)
        async for records in self._log.read(entry.begun, end):
            for record in records:
                copied = marks_of(record.value)[1]
                # Copies of another board may be in the same log.
                if copied is not None and reading.has_records(record):
                    last = max(last, copied[0])
        return last

    async def ended(self) -> bool:
        """Return whether the end of the undo is folded in time."""
        return await self._until(lambda entry: entry.unfinished is None)

    async def _until(self, holds: Callable[[BoardEntry], bool]) -> bool:
        try:
            async with asyncio.timeout(self._seconds):
                while True:
                    if holds((await self._look()).entry):
                        return True
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            return False


class BackgroundUndoes:
    """The undoes that a server has begun, whose copies go on after the answer."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self, undoing: Undoing) -> Undone:
        """Begin an undo, and copy in the background; raise what `Undoing.begin` raises."""
        begun = await undoing.begin()
        self.go_on(undoing)
        return begun

    def go_on(self, undoing: Undoing) -> None:
        """Copy in the background what is left of an undo that has begun."""
        task = asyncio.create_task(_copy(undoing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Stop copying; the next start, or the same undo again, goes on."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(undoing: Undoing) -> None:
    try:
        events = await undoing.copy()
    except Exception as error:  # noqa: BLE001 - the board is partial, and its report has that
        _log.error(
            "an undo is interrupted; the same command goes on with it", benchmark=undoing.benchmark, reason=str(error)
        )
    else:
        _log.info("an undo has ended", benchmark=undoing.benchmark, copied_events=events)


def view_of(partition: Partition | None, benchmark: str) -> FoldedBoard:
    """Return a board of a partition in memory; one of a partition that this process does not fold cannot be undone here."""
    if partition is None:
        raise BoardError(
            f"this server does not fold the partition of {shorten(benchmark)}; send the undo to `rankwatch serve`"
        )
    board = partition.benchmarks.get(benchmark)
    return FoldedBoard(
        partition.boards.of(benchmark) or BoardEntry(benchmark),
        partition.board_fault,
        {} if board is None else board.counters,
    )

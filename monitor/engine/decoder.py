"""Decode the records of a chunk into steps for the fold, in the order of the log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from schemas.records.chunks import Chunk, DeadLetter, Misrouted, Origin, Source
from schemas.records.columns import EventBatch, EventList
from schemas.records.declaration import Declaration
from schemas.records.decode import (
    BOM,
    Decoded,
    check_object,
    decode_converted,
    decode_message,
    decode_next,
    decode_records,
    read_object,
)
from schemas.records.events import Ended, EventFields
from schemas.records.names import name_fault
from schemas.records.operations import BoardChange, Release, decode_operation
from schemas.records.packed import decode_packed, decode_packed_loosely
from schemas.records.run_columns import ItemColumns, RunEvents, RunFields, decode_run, decode_run_loosely
from schemas.records.text import Fault, Found, Reject

_RAW_LENGTH: Final = 2_000

T = TypeVar("T")

FileLine = tuple[str, int | None]  # a file and a line of it, where known


class Declared(NamedTuple):
    """A declaration, its place in the log, and the file and line it came from, where known."""

    declaration: Declaration
    offset: int
    place: int
    source: FileLine | None = None


class RunEnded(NamedTuple):
    """The end of runs, and its place in the log."""

    ended: Ended
    offset: int
    place: int


class SpanRead(NamedTuple):
    """A span of a watched file that continues the last one: the position of the source moves on."""

    path: str
    source: Source
    offset: int  # the place of the span in the log
    continued: bool  # whether it follows lines of the same contents
    results: bool  # whether any line of it can be read
    damaged: bool  # whether it has no line, because the file cannot be read on
    rejected: Sequence[Reject]
    found: Found | None


class SpanSkipped(NamedTuple):
    """A span of a watched file that was already read."""


class Republished(NamedTuple):
    """The first copy of a record that another partition republished."""

    origin: Origin


class Unreadable(NamedTuple):
    """A record of the log that cannot be read, or an event of one."""

    letter: DeadLetter
    benchmark: str | None  # the benchmark of this partition that it names or has as its key, if any


class Released(NamedTuple):
    """The end of a benchmark's quarantine."""

    benchmark: str


class BoardChanged(NamedTuple):
    """A change of a board by an operator, its place in the log, and its record."""

    change: BoardChange
    offset: int
    record: bytes


Step = (
    EventBatch
    | Declared
    | RunEnded
    | Unreadable
    | DeadLetter
    | Misrouted
    | SpanRead
    | SpanSkipped
    | Republished
    | Released
    | BoardChanged
)


def dead_letter(fault: Fault, offset: int, index: int, raw: bytes, source: FileLine | None = None) -> DeadLetter:
    """Return a record that the fold rejects as a dead letter."""
    path, line = source or ("log", None)
    text = raw[:_RAW_LENGTH].decode("utf-8", "replace")
    return DeadLetter(offset, index, path, line, fault.field, fault.found, fault.reason, fault.benchmark, text)


def contained(decode: Callable[..., T], *arguments: object) -> T | Fault:
    """Return what a decoder returns, or a fault if it crashes: an error in it must not end every worker that reads the record."""
    try:
        return decode(*arguments)
    except MemoryError:
        raise  # of the machine, not of the record
    except Exception as error:  # noqa: BLE001 - any error of the decoder
        kind = type(error).__name__
        return Fault(
            "record",
            kind,
            f"reading the record causes an error of rankwatch itself ({kind}); report it with the record",
        )


class Decoder:
    """Decodes chunks of one partition."""

    # Take its steps one by one: each may depend on the position that an earlier one moved in `sources` or `origins`. `gapped`: the log may
    # lack records ahead of these.

    def __init__(
        self,
        is_ours: Callable[[str], bool] | None,
        sources: Mapping[str, Source],
        origins: Mapping[int, tuple[int, int]],
        columns: ItemColumns | None = None,
        *,
        gapped: bool = False,
    ) -> None:
        self._is_ours, self._sources, self._origins = is_ours, sources, origins
        self._columns = columns or ItemColumns()
        self.gapped = gapped
        self._last_misrouted = (-1, -1)

    def steps(self, chunk: Chunk) -> Iterator[Step]:
        """Yield the steps of all records; those of one piece are decoded together."""
        if chunk.origins is None:
            events = contained(decode_records, chunk.records)
            if isinstance(events, list):
                yield from self.batches(events, chunk.offsets)
                return
        plain: list[int] = []
        for k, record in enumerate(chunk.records):
            origin = None if chunk.origins is None else chunk.origins[k]
            if origin is not None:
                # Copies from one partition arrive in its order.
                if (origin.offset, origin.place) <= self._origins.get(origin.partition, (-1, -1)):
                    continue
                yield Republished(origin)
            if b'"events"' in record:
                yield from self._plain(chunk, plain)
                plain = []
                yield from self._packed(chunk, k)
            elif b'"item_ids"' in record:
                yield from self._plain(chunk, plain)
                plain = []
                yield from self._run(chunk, k)
            else:
                plain.append(k)
        yield from self._plain(chunk, plain)

    def batches(
        self, events: Sequence[EventFields], offsets: Sequence[int], indices: Sequence[int] | None = None
    ) -> Iterator[EventBatch | Misrouted]:
        """Group events by benchmark, in their order; yield events of other partitions' benchmarks as misrouted."""
        indices = [0] * len(events) if indices is None else indices
        if isinstance(events, RunEvents) and (self._is_ours is None or self._is_ours(events.benchmark)):
            yield EventBatch(events.benchmark, events, offsets, indices)
            return
        events = events if isinstance(events, list) else list(events)
        names = {event.benchmark for event in events}
        foreign = set() if self._is_ours is None else {name for name in names if not self._is_ours(name)}
        if len(names) == 1 and not foreign:
            yield EventBatch(names.pop(), EventList(events), offsets, indices)
            return
        places: dict[str, list[int]] = {}
        for k, event in enumerate(events):
            if event.benchmark in foreign:
                yield self._misrouted(offsets[k], event.benchmark, msgspec.json.encode(event))
            else:
                places.setdefault(event.benchmark, []).append(k)
        for name, of in places.items():
            own = EventList([events[k] for k in of])
            yield EventBatch(name, own, [offsets[k] for k in of], [indices[k] for k in of])

    def declared(
        self, declaration: Declaration, offset: int, index: int, source: FileLine | None = None
    ) -> Declared | Misrouted:
        """Return the step of a declaration."""
        if self._is_ours is not None and not self._is_ours(declaration.declare):
            return self._misrouted(offset, declaration.declare, declaration.model_dump_json().encode())
        return Declared(declaration, offset, index, source)

    def run_ended(self, ended: Ended, offset: int, index: int) -> RunEnded | Misrouted:
        """Return the step of the end of runs."""
        if self._is_ours is not None and not self._is_ours(ended.ended):
            return self._misrouted(offset, ended.ended, ended.model_dump_json(exclude_none=True).encode())
        return RunEnded(ended, offset, index)

    def _misrouted(self, offset: int, benchmark: str, payload: bytes) -> Misrouted:
        last, place = self._last_misrouted
        self._last_misrouted = (offset, place + 1 if last == offset else 0)
        return Misrouted(*self._last_misrouted, benchmark, payload)

    def _plain(self, chunk: Chunk, places: list[int]) -> Iterator[Step]:
        """Decode records of one event or declaration each: all at once, or up to the next that is something else."""
        offsets, records = [chunk.offsets[k] for k in places], [chunk.records[k] for k in places]
        events = contained(decode_records, records)
        if not isinstance(events, list):
            events = contained(decode_converted, records)
        if isinstance(events, list):
            yield from self.batches(events, offsets)
            return
        rest, at = iter(records), 0
        while at < len(places):
            events = contained(decode_next, rest)
            if not isinstance(events, list):  # the decoder has crashed: one by one
                events, rest = [], iter(())
            if events:
                yield from self.batches(events, offsets[at : at + len(events)])
                at += len(events)
            if at < len(places):
                yield from self._message(chunk, places[at])
                at += 1

    def _message(self, chunk: Chunk, k: int) -> Iterator[Step]:
        """Decode a record of one event, declaration or end of runs, or one by which an operator acts."""
        record, offset = chunk.records[k], chunk.offsets[k]
        decoded = contained(decode_message, record)
        operation = decode_operation(record) if isinstance(decoded, Fault) else None
        if operation is None:
            yield from self._one(decoded, offset, 0, record, key=_key(chunk, k))
        elif self._is_ours is not None and not self._is_ours(operation.benchmark):
            yield self._misrouted(offset, operation.benchmark, record)
        elif isinstance(operation, Release):
            yield Released(operation.benchmark)
        else:
            yield BoardChanged(operation, offset, record)

    def _one(
        self,
        decoded: Decoded | Fault,
        offset: int,
        index: int,
        raw: bytes,
        source: FileLine | None = None,
        key: bytes | None = None,
    ) -> Iterator[Step]:
        if isinstance(decoded, Declaration):
            yield self.declared(decoded, offset, index, source)
        elif isinstance(decoded, Ended):
            yield self.run_ended(decoded, offset, index)
        elif isinstance(decoded, Fault):
            yield Unreadable(dead_letter(decoded, offset, index, raw, source), self._benchmark_of(decoded, key))
        else:
            yield from self.batches([decoded], [offset], [index])

    def _benchmark_of(self, fault: Fault, key: bytes | None) -> str | None:
        """Return the benchmark of this partition that an unreadable record names, else the one that is its key; None if neither is."""
        name = fault.benchmark
        if name is None and key is not None:
            text = key.decode("utf-8", "replace")
            name = text if name_fault(text) is None else None
        return name if name is not None and (self._is_ours is None or self._is_ours(name)) else None

    def _packed(self, chunk: Chunk, k: int) -> Iterator[Step]:
        offset, record = chunk.offsets[k], chunk.records[k]
        packed = contained(decode_packed, record)
        if packed is None or isinstance(packed, Fault):
            yield from self._packed_one_by_one(chunk, k)
            return
        if packed.item_id is not msgspec.UNSET:  # an event with a field "events"
            yield from self._message(chunk, k)
            return
        source = packed.source
        if source is not None:
            if not self._continues(source.path, source.generation, packed.start):
                yield SpanSkipped()
                return
            prefix = "" if self._follows_a_gap(source.path, source.generation, packed.start) else source.prefix
            known = self._sources.get(source.path)
            yield SpanRead(
                source.path,
                Source(source.generation, packed.end or 0, prefix, source.line),
                offset,
                known is not None and known.generation == source.generation and known.position > 0,
                bool(packed.events or packed.battles or packed.declare),
                packed.start == packed.end,
                packed.rejected,
                packed.found,
            )
        start = _first_index(packed.declare)
        lines = packed.declared_at[: len(packed.declare)]
        for index, (declared, line) in enumerate(zip_longest(packed.declare, lines, fillvalue=0)):
            file_line = (source.path, line) if source is not None and line else None
            yield from self._one(contained(check_object, declared), offset, min(index, start), record, file_line)
        events = [*packed.events, *packed.battles]
        if events:
            yield from self.batches(events, [offset] * len(events), range(start, start + len(events)))
        for index, ended in enumerate(packed.ended, start=start + len(events)):
            yield from self._one(contained(check_object, ended), offset, index, record)
        for index, reject in enumerate(packed.rejected, start=start + len(events) + len(packed.ended)):
            raw = reject.get("raw", "")[:_RAW_LENGTH]
            columns = (reject["source"], reject["line"], reject["field"], reject["found"], reject["reason"])
            yield DeadLetter(offset, index, *columns, reject.get("benchmark"), raw)

    def _packed_one_by_one(self, chunk: Chunk, k: int) -> Iterator[Step]:
        """Decode the valid parts of a packed record that has an invalid one."""
        offset, key = chunk.offsets[k], _key(chunk, k)
        data = contained(decode_packed_loosely, chunk.records[k])
        if data is None or isinstance(data, Fault):
            yield from self._message(chunk, k)
            return
        declared, battles, ended = (
            value if isinstance(value := data.get(name), list) else [] for name in ("declare", "battles", "ended")
        )
        start, events = _first_index(declared), [*data["events"], *battles]
        for index, item in enumerate(declared):
            yield from self._one(contained(check_object, item), offset, min(index, start), repr(item).encode(), key=key)
        for index, item in enumerate(events, start=start):
            yield from self._one(contained(read_object, item), offset, index, repr(item).encode(), key=key)
        for index, item in enumerate(ended, start=start + len(events)):
            yield from self._one(contained(check_object, item), offset, index, repr(item).encode(), key=key)

    def _run(self, chunk: Chunk, k: int) -> Iterator[Step]:
        """Decode a run message: the events of its columns, none of which is made here."""
        offset, record, key = chunk.offsets[k], chunk.records[k].removeprefix(BOM), _key(chunk, k)
        run = contained(decode_run, record)
        events = RunEvents.of(run, self._columns) if isinstance(run, RunFields) else None
        if events is None or not isinstance(run, RunFields):
            loose = contained(decode_run_loosely, record)
            if loose is None:
                yield from self._message(chunk, k)
            elif isinstance(loose, Fault):
                yield from self._one(loose, offset, 0, record, key=key)
            else:
                for index, (event, decoded) in enumerate(loose.events):
                    yield from self._one(decoded, offset, index, repr(event).encode(), key=key)
        elif self._is_ours is not None and not self._is_ours(run.benchmark):
            yield self._misrouted(offset, run.benchmark, record)
        else:
            yield EventBatch(run.benchmark, events, [offset] * len(events), range(len(events)))

    def _continues(self, path: str, generation: int, start: int | None) -> bool:
        """Return whether a span of a watched file starts where the last one ended, or starts a newer generation."""
        # What was between them may be in a gap of the log.
        known = self._sources.get(path)
        if known is None or start is None or generation > known.generation:
            return start == 0 or (self.gapped and start is not None)
        return generation == known.generation and (start == known.position or (self.gapped and start > known.position))

    def _follows_a_gap(self, path: str, generation: int, start: int | None) -> bool:
        """Return whether a span follows one that is in a gap: the bytes ahead of it have to be read again."""
        known = self._sources.get(path)
        follows = known is not None and known.prefix and (generation, start) == (known.generation, known.position)
        return start != 0 and not follows


def _key(chunk: Chunk, k: int) -> bytes | None:
    return None if chunk.keys is None else chunk.keys[k]


def _first_index(declared: Sequence[Any]) -> int:
    """Return the index of the first event of a record after these declarations."""
    # It is 0, and theirs too, unless one of them is a new version: then each has an index of its own, for the ids of its verdict changes.
    new = any(isinstance(each, dict) and each.get("version", 1) != 1 for each in declared)
    return len(declared) if new else 0

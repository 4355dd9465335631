"""Decode the records of a chunk into steps for the fold, in the order of the log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

import msgspec

from monitor.engine.chunk import Chunk, EventBatch, Origin
from monitor.engine.state.delta import DeadLetter, Misrouted, Refusal, RefusedLetter, Source
from schemas.decode import Decoded, Fault, check_object, decode_converted, decode_message, decode_records, read_object
from schemas.events import Declaration, Ended, EventFields
from schemas.packed import decode_packed, decode_packed_loosely

_RAW_LENGTH: Final = 2_000

FileLine = tuple[str, int | None]
"""A file and a line of it, where known."""


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
    offset: int
    """The place of the span in the log."""


class SpanSkipped(NamedTuple):
    """A span of a watched file that was already read."""


class Republished(NamedTuple):
    """The first copy of a record that another partition republished."""

    origin: Origin


Step = EventBatch | Declared | RunEnded | DeadLetter | Misrouted | SpanRead | SpanSkipped | Republished


def dead_letter(fault: Fault, offset: int, index: int, raw: bytes, source: FileLine | None = None) -> DeadLetter:
    """Return a record that the fold rejects as a dead letter."""
    path, line = source or ("log", None)
    text = raw[:_RAW_LENGTH].decode("utf-8", "replace")
    kind = RefusedLetter if isinstance(fault, Refusal) else DeadLetter
    return kind(offset, index, path, line, fault.field, fault.found, fault.reason, fault.benchmark, text)


class Decoder:
    """Decodes chunks of one partition.

    Take its steps one by one: each may depend on the position that an earlier one moved in `sources` or `origins`.
    """

    def __init__(
        self,
        is_ours: Callable[[str], bool] | None,
        sources: Mapping[str, Source],
        origins: Mapping[int, tuple[int, int]],
    ) -> None:
        self._is_ours, self._sources, self._origins = is_ours, sources, origins
        self._last_misrouted = (-1, -1)

    def steps(self, chunk: Chunk) -> Iterator[Step]:
        """Yield the steps of all records; at most 2,000 records at a time keep their events in the processor's cache."""
        if chunk.origins is None:
            events = decode_records(chunk.records)
            if events is not None:
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
                yield from self._packed(chunk.offsets[k], record)
            else:
                plain.append(k)
        yield from self._plain(chunk, plain)

    def batches(
        self, events: list[EventFields], offsets: Sequence[int], indices: Sequence[int] | None = None
    ) -> Iterator[EventBatch | Misrouted]:
        """Group events by benchmark, in their order; yield events of other partitions' benchmarks as misrouted."""
        indices = [0] * len(events) if indices is None else indices
        names = {event.benchmark for event in events}
        foreign = set() if self._is_ours is None else {name for name in names if not self._is_ours(name)}
        if len(names) == 1 and not foreign:
            yield EventBatch(names.pop(), events, offsets, indices)
            return
        places: dict[str, list[int]] = {}
        for k, event in enumerate(events):
            if event.benchmark in foreign:
                yield self._misrouted(offsets[k], event.benchmark, msgspec.json.encode(event))
            else:
                places.setdefault(event.benchmark, []).append(k)
        for name, of in places.items():
            yield EventBatch(name, [events[k] for k in of], [offsets[k] for k in of], [indices[k] for k in of])

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
        """Decode records of one event or declaration each: all at once, or one by one if any is something else."""
        offsets, records = [chunk.offsets[k] for k in places], [chunk.records[k] for k in places]
        events = decode_records(records)
        if events is None:
            events = decode_converted(records)
        if events is not None:
            yield from self.batches(events, offsets)
            return
        for offset, record in zip(offsets, records, strict=True):
            yield from self._one(decode_message(record), offset, 0, record)

    def _one(
        self,
        decoded: Decoded | Fault,
        offset: int,
        index: int,
        raw: bytes,
        source: FileLine | None = None,
    ) -> Iterator[Step]:
        if isinstance(decoded, Declaration):
            yield self.declared(decoded, offset, index, source)
        elif isinstance(decoded, Ended):
            yield self.run_ended(decoded, offset, index)
        elif isinstance(decoded, Fault):
            yield dead_letter(decoded, offset, index, raw, source)
        else:
            yield from self.batches([decoded], [offset], [index])

    def _packed(self, offset: int, record: bytes) -> Iterator[Step]:
        packed = decode_packed(record)
        if packed is None:
            yield from self._packed_one_by_one(offset, record)
            return
        if packed.item_id is not msgspec.UNSET:  # an event with a field "events"
            yield from self._one(decode_message(record), offset, 0, record)
            return
        source = packed.source
        if source is not None:
            if not self._continues(source.path, source.generation, packed.start):
                yield SpanSkipped()
                return
            yield SpanRead(source.path, Source(source.generation, packed.end or 0, source.prefix, source.line), offset)
        start = _first_index(packed.declare)
        lines = packed.declared_at[: len(packed.declare)]
        for k, (declared, line) in enumerate(zip_longest(packed.declare, lines, fillvalue=0)):
            file_line = (source.path, line) if source is not None and line else None
            yield from self._one(check_object(declared), offset, min(k, start), record, file_line)
        events = packed.events
        if events:
            yield from self.batches(events, [offset] * len(events), range(start, start + len(events)))
        for index, ended in enumerate(packed.ended, start=start + len(events)):
            yield from self._one(check_object(ended), offset, index, record)
        for index, reject in enumerate(packed.rejected, start=start + len(events) + len(packed.ended)):
            raw = reject.get("raw", "")[:_RAW_LENGTH]
            columns = (reject["source"], reject["line"], reject["field"], reject["found"], reject["reason"])
            yield DeadLetter(offset, index, *columns, reject.get("benchmark"), raw)

    def _packed_one_by_one(self, offset: int, record: bytes) -> Iterator[Step]:
        """Decode the valid parts of a packed record that has an invalid one."""
        data = decode_packed_loosely(record)
        if data is None:
            yield from self._one(decode_message(record), offset, 0, record)
            return
        declared, ended = (value if isinstance(value := data.get(name), list) else [] for name in ("declare", "ended"))
        start = _first_index(declared)
        for k, item in enumerate(declared):
            yield from self._one(check_object(item), offset, min(k, start), repr(item).encode())
        for index, item in enumerate(data["events"], start=start):
            yield from self._one(read_object(item), offset, index, repr(item).encode())
        for index, item in enumerate(ended, start=start + len(data["events"])):
            yield from self._one(check_object(item), offset, index, repr(item).encode())

    def _continues(self, path: str, generation: int, start: int | None) -> bool:
        """Return whether a span of a watched file starts where the last one ended, or starts a newer generation."""
        known = self._sources.get(path)
        if known is not None and (generation, start) == (known.generation, known.position):
            return True
        return start == 0 and (known is None or generation > known.generation)


def _first_index(declared: Sequence[Any]) -> int:
    """Return the index of the first event of a record after these declarations.

    It is 0, and theirs too, unless one of them is a new version: then each has an index of its own, for the ids of its verdict changes.
    """
    new = any(isinstance(each, dict) and each.get("version", 1) != 1 for each in declared)
    return len(declared) if new else 0

"""The packed record: several events in one record of the log. Writer and reader."""

import re
from collections.abc import Sequence
from functools import cache
from types import GenericAlias
from typing import Any, Final, NamedTuple

import msgspec
from pydantic_core import to_json

from schemas.records.declaration import Declaration
from schemas.records.decode import repeats_in_pack
from schemas.records.events import BattleFields, Ended, EventFields, by_kind
from schemas.records.repeated import decode_whole, is_once_in_array, shape_in_array
from schemas.records.text import Found, Reject, Sentence

_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_MOST_NESTED: Final = 150
_BEGIN: Final = re.compile(rb'\s*\{(?:"producer":"[^"\\]*",)?(?=")')

MOST_CHANGES: Final = 50_000
"""Verdict changes after which a fold ends with the current piece: storing them takes the server about half a second."""

WIDE: Final = 400  # contestants above which a piece could bring more changes than a fold may


class SourceSpan(msgspec.Struct, gc=False):
    """The watched file of a packed record, and its state at the end of the span."""

    # `path` is the path of the file, with the epoch that the command line gave it, if any: each epoch of a file has a place of its own.
    # `generation` grows by one each time bytes already read have changed; the file is then read again from 0. `prefix` is the BLAKE2b-128,
    # in hexadecimal, of all (decompressed) bytes up to the end of the span; `line` counts the lines up to there.
    path: str
    generation: int
    prefix: str
    line: int


class Packed(msgspec.Struct, gc=False):
    """Several events in one record; from a watched file, with the span of (decompressed) bytes that holds them."""

    # The declarations of `declare` hold before the events. `declared_at` are their lines in the file, 0 for one from the command line.
    # `rejected` are the records of the span that cannot be read. `found` holds from the span on.
    events: list[EventFields]
    source: SourceSpan | None = None
    start: int | None = msgspec.field(default=None, name="from")
    end: int | None = msgspec.field(default=None, name="to")
    declare: list[dict[str, Any]] = []
    declared_at: list[int] = []
    rejected: list[Reject] = []
    found: Found | None = None
    battles: list[BattleFields] = []  # battles; they come after the events
    ended: list[dict[str, Any]] = []  # ends of runs; they hold after the events and battles
    item_id: Any = msgspec.UNSET  # set: the record is one event, and its field `events` has no meaning


class Segment(NamedTuple):
    """Consecutive lines of a file: declarations, the events for which they hold, ends of runs, and the lines that cannot be read."""

    declarations: list[Declaration]
    events: Sequence[EventFields]  # a list, or the columns of a run (`schemas.records.run_columns`)
    rejects: list[Reject]
    # position after the segment, in (decompressed) bytes of lines; an event of columns, of which no line is written, counts as one
    end: int
    line: int  # number of its last line
    path: str = ""  # the file
    declared_at: tuple[int, ...] = ()  # the lines of the declarations
    raw: bytes | None = None  # the lines as they are in the file, if all of them are events
    begun: dict[str, dict[str, Any] | None] = {}  # noqa: RUF012 - never changed in place
    ended: Sequence[Ended] = ()  # ends of runs, after the events
    # what is missing of the file; set in one more segment at the end of a file that breaks off
    incomplete: Sentence | None = None

    @property
    def line_count(self) -> int:
        """How many lines the segment has, without blank ones."""
        return len(self.declarations) + len(self.events) + len(self.rejects) + len(self.ended)


_PACK_BEGIN: Final = re.compile(rb'\{(?:"producer":"[^"\\]*",)?(?:"imported":true,)?"events":\[')


@cache
def _decoder_of(kind: type[EventFields]) -> "msgspec.json.Decoder[Packed]":
    if kind is EventFields:
        return msgspec.json.Decoder(Packed)
    events = GenericAlias(list, (kind,))
    return msgspec.json.Decoder(
        msgspec.defstruct("Packed", [("events", events)], bases=(Packed,), kw_only=True, gc=False)
    )


def decode_packed(record: bytes) -> Packed | None:
    """Decode a packed record; None if any event in it is bad, or it is no packed record."""
    begin = _PACK_BEGIN.match(record)
    events = b"" if begin is None else record[begin.end() :]
    shape = shape_in_array(events)
    for kind in dict.fromkeys((EventFields if shape is None else shape.kind, EventFields)):
        try:
            packed = _decoder_of(kind).decode(record)
        except _BROKEN:
            continue
        # What an importer wrote from a file has no field twice.
        once = packed.source is not None or is_once_in_array(shape, kind, events, len(packed.events))
        return packed if once or not repeats_in_pack(record, packed.events, packed.battles) else None
    return None


def decode_packed_loosely(record: bytes) -> dict[str, Any] | None:
    """Decode a packed record without checking its events; None if it has a source or is no packed record."""
    try:
        data: Any = decode_whole(record)
    except (ValueError, RecursionError):
        return None
    is_packed = isinstance(data, dict) and isinstance(data.get("events"), list)
    return data if is_packed and not data.keys() & {"source", "item_id"} else None


def encode_events(events: Sequence[EventFields]) -> bytes:
    """Write a packed record of events alone, as a producer sends it.

    >>> encode_events([EventFields("quiz", "1", "m", True)])
    b'{"events":[{"benchmark":"quiz","item_id":"1","model":"m","score":true}]}'
    """
    return msgspec.json.encode(by_kind(events))


IMPORTED: Final = b'"imported":true,'
"""Of a record of results that existed already: its verdict changes are stored and published, and nobody is notified of them."""


IMPORTED_HEADER: Final = "Rankwatch-Imported"
"""Header of a request whose results existed already; its value is ``true``."""
OFFSET_HEADER: Final = "Rankwatch-Offset"  # of an answer: the offsets of the log that it shows
LAG_HEADER: Final = "Rankwatch-Lag"  # of an answer: how many folded offsets it lacks


def parse_offsets(text: str) -> dict[int, int]:
    """Parse the offset of each partition.

    >>> parse_offsets("0:7,3:120")
    {0: 7, 3: 120}
    """
    pairs = (part.split(":") for part in text.split(",") if part)
    return {int(partition): int(offset) for partition, offset in pairs}


def mark_imported(record: bytes) -> bytes:
    """Mark a record, whose first field may be its producer, as imported.

    >>> mark_imported(b'{"producer":"ci","events":[]}'), is_imported(mark_imported(b'{"events":[]}'))
    (b'{"producer":"ci","imported":true,"events":[]}', True)
    """
    begin = _BEGIN.match(record)
    return record if begin is None else record[: begin.end()] + IMPORTED + record[begin.end() :]


def is_imported(record: bytes) -> bool:
    """Return whether a record is marked as imported."""
    begin = _BEGIN.match(record)
    return begin is not None and record.startswith(IMPORTED, begin.end())


def encode_span(segment: Segment, source: SourceSpan, start: int, found: Found | None = None) -> bytes:
    """Write a packed record of a segment of a watched file, which begins at byte `start` of its (decompressed) contents."""
    given = [declaration for declaration in segment.begun.values() if declaration is not None]
    ended = [each.model_dump(mode="json", exclude_none=True) for each in segment.ended]
    rest = to_json(
        {
            "source": msgspec.structs.asdict(source),
            "from": start,
            "to": segment.end,
            "declare": [*given, *(declaration.model_dump(mode="json") for declaration in segment.declarations)],
            "declared_at": [0] * len(given) + list(segment.declared_at),
            "rejected": segment.rejects,
            **({} if found is None else {"found": msgspec.to_builtins(found)}),
            **({"ended": ended} if ended else {}),
        }
    )
    raw, kinds = segment.raw, by_kind(segment.events)
    if "battles" in kinds:
        return msgspec.json.encode(kinds)[:-1] + b"," + rest[1:]
    if raw is not None and _can_join(raw, len(segment.events)):
        events = raw[:-1].replace(b"}\n{", b"},{")
    else:
        events = msgspec.json.encode(segment.events)[1:-1]
    return b'{"events":[' + events + b"]," + rest[1:]


def _can_join(lines: bytes, count: int) -> bool:
    """Return whether `count` lines of one event each become a list of events when their newlines become commas."""
    # A line may end with a carriage return or a space. And an event is one level deeper in the list than in its file, while parsers
    # bound the depth: where the nesting may reach that bound, only the fields that count are written.
    nested = lines.count(b"[") + lines.count(b"{")
    return lines.count(b"}\n{") == count - 1 and nested <= count + _MOST_NESTED


def record_events(models: int) -> int | None:
    """Return how many events a record of so many models may have: each can decide the pairs of its model. None: as many as fit.

    A record is stored whole.

    >>> record_events(5_000)
    10
    >>> record_events(50)
    """
    return max(1, MOST_CHANGES // models) if models > WIDE else None

"""From bytes to checked events: a whole block at once, and one record at a time when something is wrong with it."""

import json
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from pydantic import ValidationError

from schemas.events import MAX_LINE_BYTES, Declaration, Event, EventFields
from schemas.names import name_fault
from schemas.text import printable, shorten

_EVENT: Final = msgspec.json.Decoder(EventFields)
_BROKEN: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
_NAMES: Final = tuple(map(attrgetter, ("benchmark", "item_id", "model", "cluster")))

_REMEDIES: Final = {
    "benchmark": "give the benchmark's name",
    "item_id": "give the item's id as a string",
    "model": "give the model's name",
    "score": "give a number in [0, 1], true, false, or null for a skipped item",
    "cluster": "give the cluster's name as a string, or leave it out",
    "repeat": "give a whole number from 0, or leave it out",
    "epoch": "give a whole number from 0, or leave it out",
}


class Fault(NamedTuple):
    """Why a record was not read: the field, what was found there, and what to do."""

    field: str
    found: str
    reason: str
    benchmark: str | None = None


def decode_block(block: bytes) -> list[EventFields] | None:
    r"""Decode complete JSON lines in one call.

    Parameters
    ----------
    block : bytes
        Lines, each ended by a newline.

    Returns
    -------
    list of EventFields, or None
        One per line, types checked; None when any line needs to be looked at by itself.

    Examples
    --------
    >>> decode_block(b'{"benchmark":"x","item_id":"1","model":"m","score":1}\n')
    [EventFields(benchmark='x', item_id='1', model='m', score=1.0, cluster=None, repeat=0, epoch=0)]
    >>> decode_block(b'{"benchmark":"x"}\n') is None
    True
    """
    if not block.isascii():
        try:
            block.decode()  # also what no field of an event holds
        except UnicodeDecodeError:
            return None
    *lines, rest = block.split(b"\n")
    return None if rest else decode_records(lines)


def decode_records(records: Sequence[bytes]) -> list[EventFields] | None:
    """Decode messages of one event each; None when any needs to be looked at by itself.

    Each is parsed by itself (joining them is no faster), so that no message can reach over its end into the next one.
    """
    if max(map(len, records), default=0) > MAX_LINE_BYTES:
        return None
    try:
        return list(map(_EVENT.decode, records))
    except _BROKEN:
        return None


def decode_message(record: bytes) -> EventFields | Declaration | Fault:
    """Decode one message: first as `decode_records` does, since what a message is must not depend on those around it."""
    events = decode_records([record])
    return decode_record(record) if events is None else events[0]


def decode_record(record: bytes) -> EventFields | Declaration | Fault:
    """Decode one record by the whole rule: an event, a declaration, or the reason why it is neither."""
    if len(record) > MAX_LINE_BYTES:
        return Fault(
            "record",
            f"{len(record):,} bytes",
            f"a record has at most {MAX_LINE_BYTES:,} bytes: leave out what is not a score",
        )
    try:
        data = json.loads(record.decode("utf-8"), parse_constant=float)
    except UnicodeDecodeError as error:
        return Fault(
            "record",
            f"byte 0x{record[error.start]:02x} at position {error.start}",
            "the record is not valid UTF-8: write the file as UTF-8",
        )
    except (ValueError, RecursionError) as error:
        reason = f"the record is not valid JSON ({_plain(error)}): write one JSON object a line"
        return Fault("record", shorten(record.decode("utf-8", "replace")), reason)
    return check_object(data)


def _plain(error: Exception) -> str:
    return (
        f"{error.msg} at column {error.colno}"
        if isinstance(error, json.JSONDecodeError)
        else "nested too deeply or not a number"
    )


def read_object(data: object) -> EventFields | Declaration | Fault:
    """Read one decoded JSON value as `decode_message` reads it as a message of its own."""
    try:
        return msgspec.convert(data, EventFields)
    except _BROKEN:
        return check_object(data)


def check_object(data: object) -> EventFields | Declaration | Fault:
    """Check one decoded JSON value by the whole rule."""
    if not isinstance(data, dict):
        return Fault("record", shorten(data), "a record is a JSON object with benchmark, item_id, model and score")
    try:
        if "declare" in data:
            return Declaration.model_validate(data)
        event = Event.model_validate(data)
    except ValidationError as error:
        return _fault(error, data)
    except RecursionError:
        return Fault("record", "deep nesting", "the record is nested too deeply")
    return EventFields(
        event.benchmark, event.item_id, event.model, event.score, event.cluster, event.repeat, event.epoch
    )


def _fault(error: ValidationError, data: dict[str, Any]) -> Fault:
    named = data.get("benchmark", data.get("declare"))
    benchmark = named if isinstance(named, str) and name_fault(named) is None else None
    details = error.errors(include_url=False)
    first = details[0]
    field = str(first["loc"][0]) if first["loc"] else "record"
    value = first["input"]
    found = f'"{shorten(value)}"' if isinstance(value, str) else shorten(value)
    found = "nothing" if first["type"] == "missing" else found
    reasons = [
        d["msg"].removeprefix("Value error, ") for d in details if (str(d["loc"][0]) if d["loc"] else "record") == field
    ]
    if field == "score" and len(reasons) > 1:
        reasons = reasons[:1]  # the other branch of the union (boolean) says nothing new
    remedy = _REMEDIES.get(field)
    reason = "; ".join(dict.fromkeys(reasons)).rstrip(".")
    # An unknown field is called as whoever sent it likes, and a reason may quote what was found.
    return Fault(shorten(field), found, printable(f"{reason}: {remedy}" if remedy else reason), benchmark)


def plain_text(data: bytes) -> bool:
    """Say whether no name in this JSON can hold a forbidden character: all of it is ASCII, and nothing is escaped.

    JSON itself keeps raw control characters out of its strings, all but DEL.

    Examples
    --------
    >>> plain_text(b'{"model": "m"}'), plain_text("ü".encode())
    (True, False)
    """
    return data.isascii() and b"\\" not in data and b"\x7f" not in data


class Checker:
    """Finds the decoded blocks in which an event breaks the rule for names; remembers the names it has passed."""

    _REMEMBERED: Final = 2_000_000

    def __init__(self) -> None:
        self._good: set[str | None] = set()

    def bad(self, events: Sequence[EventFields]) -> bool:
        """Say whether any event of a block has to be looked at by itself."""
        fresh: set[str | None] = set().union(*(map(name, events) for name in _NAMES))
        fresh -= self._good
        fresh.discard(None)
        if any(name is not None and name_fault(name) for name in fresh):
            return True
        if len(self._good) > self._REMEMBERED:
            self._good.clear()
        self._good |= fresh
        return False

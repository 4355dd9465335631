"""From bytes to checked events: a whole block at once, and one record at a time when something is wrong with it."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from schemas.events import MAX_LINE_BYTES, Declaration, Event, EventFields
from schemas.names import name_fault

_EVENTS: Final = TypeAdapter(list[EventFields])
_FOUND_LENGTH: Final = 80

_REMEDIES: Final = {
    "benchmark": "give the benchmark's name",
    "item_id": "give the item's id as a string",
    "model": "give the model's name",
    "score": "give a number in [0, 1], true, false, or null for a skipped item",
    "cluster": "give the cluster's name as a string, or leave it out",
    "repeat": "give a whole number from 0, or leave it out",
    "epoch": "give a whole number from 0, or leave it out",
    "timestamp": "give a time as RFC 3339, like 2026-01-31T12:00:00Z, or leave it out",
    "attributes": "give an object, or leave it out",
}


class Fault(NamedTuple):
    """Why a record was not read: the field, what was found there, and what to do."""

    field: str
    found: str
    reason: str
    benchmark: str | None = None


def shorten(value: object) -> str:
    """Show a value from outside in at most 80 printable characters."""
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= _FOUND_LENGTH else f"{text[:_FOUND_LENGTH]}... ({len(text):,} characters)"
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


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
    [{'benchmark': 'x', 'item_id': '1', 'model': 'm', 'score': 1}]
    >>> decode_block(b'{"benchmark":"x"}\n') is None
    True
    """
    lines = block.count(b"\n")
    # Joining lines by commas reads them all in one call. It is only done where every newline stands between two objects, so that no
    # record can reach over the end of its line.
    if block.count(b"}\n{") != lines - 1:
        return None
    try:
        events = _EVENTS.validate_json(b"[" + block[:-1].replace(b"}\n{", b"},{") + b"]")
    except ValidationError:
        return None
    return events if len(events) == lines else None


def decode_records(records: Sequence[bytes]) -> list[EventFields] | None:
    """Decode messages of one event each in one call; None when any needs to be looked at by itself."""
    try:
        events = _EVENTS.validate_json(b"[" + b",".join(records) + b"]")
    except ValidationError:
        return None
    return events if len(events) == len(records) else None


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
    return {
        "benchmark": event.benchmark,
        "item_id": event.item_id,
        "model": event.model,
        "score": event.score,
        "cluster": event.cluster,
        "repeat": event.repeat,
        "epoch": event.epoch,
    }


def _fault(error: ValidationError, data: dict[str, Any]) -> Fault:
    named = data.get("benchmark", data.get("declare"))
    benchmark = named if isinstance(named, str) and name_fault(named) is None else None
    details = error.errors(include_url=False)
    first = details[0]
    field = str(first["loc"][0]) if first["loc"] else "record"
    found = "nothing" if first["type"] == "missing" else shorten(first["input"])
    reasons = [
        d["msg"].removeprefix("Value error, ") for d in details if (str(d["loc"][0]) if d["loc"] else "record") == field
    ]
    if field == "score" and len(reasons) > 1:
        reasons = reasons[:1]  # the other branch of the union (boolean) says nothing new
    remedy = _REMEDIES.get(field)
    reason = "; ".join(dict.fromkeys(reasons)).rstrip(".")
    return Fault(field, found, f"{reason}: {remedy}" if remedy else reason, benchmark)


def good_score(score: object) -> bool:
    """Say whether a decoded JSON value is a score.

    Examples
    --------
    >>> [good_score(s) for s in (1, 0.25, True, None, 1.2, "1", float("nan"))]
    [True, True, True, True, False, False, False]
    """
    return score is None or (isinstance(score, int | float) and 0 <= score <= 1)


class Checker:
    """Finds the events of a decoded block that break the rule for names or scores; remembers the names it has passed."""

    _REMEMBERED: Final = 2_000_000

    def __init__(self) -> None:
        self._good: set[str] = set()

    def bad(self, events: Sequence[EventFields]) -> bool:
        """Say whether any event of a block has to be looked at by itself."""
        names = {e["item_id"] for e in events}
        names.update(e["model"] for e in events)
        names.update(e["benchmark"] for e in events)
        names.update(c for e in events if (c := e.get("cluster")) is not None)
        fresh = names - self._good
        if any(name_fault(name) for name in fresh):
            return True
        if len(self._good) > self._REMEMBERED:
            self._good.clear()
        self._good |= fresh
        return not _all_scores(e["score"] for e in events)


def _all_scores(scores: Iterable[object]) -> bool:
    try:
        return all(good_score(s) for s in set(scores))
    except TypeError:  # a list or an object has no hash, and is no score
        return False

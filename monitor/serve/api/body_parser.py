"""From the body of a request to events and declarations, or to what is wrong with each record of it."""

from typing import Any, Final, NamedTuple

import msgspec

from monitor.serve.api.problems import ProblemError
from schemas.api import RecordError
from schemas.decode import Checker, Fault, check_object, decode_block, decode_message, read_object
from schemas.events import Declaration, EventFields

MOST_ERRORS: Final = 100
"""Bad records that are named in one answer, and after which a body is not read on."""

_BLOCK_LINES: Final = 1_000
_ARRAY: Final = msgspec.json.Decoder(list[EventFields])
_ANY: Final = msgspec.json.Decoder(list[Any])
_BROKEN: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Records(NamedTuple):
    """What a body holds."""

    events: list[EventFields]
    declarations: list[Declaration]


class _Reader:
    def __init__(self) -> None:
        self.found = Records([], [])
        self.errors: list[RecordError] = []
        self.checker = Checker()

    def take(self, record: EventFields | Declaration | Fault, line: int) -> None:
        """Sort a record."""
        if isinstance(record, Fault):
            self.errors.append(RecordError(line=line, field=record.field, found=record.found, reason=record.reason))
        elif isinstance(record, Declaration):
            self.found.declarations.append(record)
        elif self.checker.bad([record]):
            self.take(check_object(msgspec.to_builtins(record)), line)
        else:
            self.found.events.append(record)

    @property
    def full(self) -> bool:
        """Whether enough is known to be wrong."""
        return len(self.errors) >= MOST_ERRORS

    def lines(self, body: bytes) -> None:
        """Read JSON lines; blank ones are passed over."""
        lines = body.split(b"\n")
        for start in range(0, len(lines), _BLOCK_LINES):
            block = lines[start : start + _BLOCK_LINES]
            events = decode_block(b"\n".join(block).strip() + b"\n")
            if events is not None and not self.checker.bad(events):
                self.found.events.extend(events)
                continue
            for number, line in enumerate(block, start + 1):
                if line.strip():
                    self.take(decode_message(line), number)
                if self.full:
                    return

    def array(self, body: bytes) -> None:
        """Read a JSON array."""
        try:
            events = _ARRAY.decode(body)
            if not self.checker.bad(events):
                self.found.events.extend(events)
                return
        except _BROKEN:
            pass
        try:
            values = _ANY.decode(body)
        except _BROKEN as error:
            raise ProblemError(422, f"the body is no JSON array of events: {error}") from None
        for number, value in enumerate(values, 1):
            self.take(read_object(value), number)
            if self.full:
                return


def read_records(body: bytes, media_type: str) -> Records:
    """Read a body whole, or refuse it whole.

    Parameters
    ----------
    body : bytes
    media_type : str
        ``application/x-ndjson`` or ``application/json``.

    Raises
    ------
    ProblemError
        422 with the bad records, by line (or place in the array).
    """
    reader = _Reader()
    if media_type == "application/json":
        reader.array(body)
    else:
        reader.lines(body)
    errors = reader.errors
    if errors:
        first = errors[0]
        more = " (the body was not read on)" if reader.full else ""
        raise ProblemError(
            422,
            f"{len(errors):,} bad record{'s' * (len(errors) > 1)}{more}, so nothing was taken; the first is line {first.line}: "
            f"{first.field}: found {first.found}: {first.reason}",
            errors,
        )
    return reader.found

"""Parse the body of a request into events and declarations, or list the records that are wrong."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from monitor.serve.api.intake import Submission
from monitor.serve.api.problems import ProblemError, fault_detail
from schemas.api import RecordError
from schemas.decode import Checker, Fault, check_object, decode_message, decode_records, read_object
from schemas.events import Declaration, EventFields

MAX_ERRORS: Final = 100
"""Bad records in one response; parsing stops there."""

_BLOCK_LINES: Final = 1_000
_EVENTS: Final = msgspec.json.Decoder(list[EventFields])
_VALUES: Final = msgspec.json.Decoder(list[Any])
_DECODE_ERRORS: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)

NumberedRecord = tuple[int, EventFields | Declaration | Fault]


def parse_body(body: bytes, media_type: str) -> Submission:
    """Parse a whole body, or refuse the whole body.

    Parameters
    ----------
    body : bytes
    media_type : str
        ``application/x-ndjson`` or ``application/json``.

    Raises
    ------
    ProblemError
        422 with the bad records, by line or by position in the array.
    """
    submission, errors, checker = Submission([], []), list[RecordError](), Checker()
    for events, records in _array(body) if media_type == "application/json" else _line_blocks(body):
        if events is not None and not checker.bad(events):
            submission.events.extend(events)
            continue
        for line, decoded in records:
            wrong_name = isinstance(decoded, EventFields) and checker.bad([decoded])
            record = check_object(msgspec.to_builtins(decoded)) if wrong_name else decoded
            if isinstance(record, Fault):
                errors.append(RecordError(line=line, field=record.field, found=record.found, reason=record.reason))
                if len(errors) == MAX_ERRORS:
                    raise _refusal(errors)
            elif isinstance(record, Declaration):
                submission.declarations.append(record)
            else:
                submission.events.append(record)
    if errors:
        raise _refusal(errors)
    return submission


def _line_blocks(body: bytes) -> Iterator[tuple[list[EventFields] | None, Iterable[NumberedRecord]]]:
    """Yield the events of each block of lines, or None where a line needs a closer look, and the lines one at a time."""
    lines = body.split(b"\n")
    for start in range(0, len(lines), _BLOCK_LINES):
        block = [
            (number, line) for number, line in enumerate(lines[start : start + _BLOCK_LINES], start + 1) if line.strip()
        ]
        yield decode_records([line for _, line in block]), ((number, decode_message(line)) for number, line in block)


def _array(body: bytes) -> Iterator[tuple[list[EventFields] | None, Iterable[NumberedRecord]]]:
    try:
        events = _EVENTS.decode(body)
    except _DECODE_ERRORS:
        events = None
    yield events, _array_records(body)


def _array_records(body: bytes) -> Iterator[NumberedRecord]:
    try:
        values = _VALUES.decode(body)
    except _DECODE_ERRORS:
        raise ProblemError(
            422, "The body is not a JSON array of events. Send an array, or JSON lines as application/x-ndjson."
        ) from None
    yield from ((number, read_object(value)) for number, value in enumerate(values, 1))


def _refusal(errors: list[RecordError]) -> ProblemError:
    count = "1 bad record" if len(errors) == 1 else f"{len(errors):,} bad records"
    stopped = " Parsing stopped there." if len(errors) == MAX_ERRORS else ""
    first = errors[0]
    return ProblemError(422, f"Nothing was stored: {count}.{stopped} Line {first.line}: {fault_detail(first)}", errors)

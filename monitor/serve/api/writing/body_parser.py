"""Parse the body of a request into events and declarations, or list the records that are wrong."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from monitor.serve.api.problems import ProblemError, fault_detail
from monitor.serve.api.writing.request import Submission
from schemas.records.declaration import Declaration
from schemas.records.decode import (
    BOM,
    Checker,
    Decoded,
    check_object,
    decode_array,
    decode_converted,
    decode_message,
    decode_records,
    is_blank,
    long_in_array,
    read_object,
)
from schemas.records.events import Ended, EventFields
from schemas.records.repeated import array_values
from schemas.records.text import Fault
from schemas.results.api import RecordError

MAX_ERRORS: Final = 100  # bad records in one response; parsing stops there

_BLOCK_LINES: Final = 1_000

NumberedRecord = tuple[int, Decoded | Fault]
Block = tuple[list[EventFields] | None, Sequence[int], Iterable[NumberedRecord]]
"""The events of some lines, or None where a line needs a closer look; the numbers of the lines; and the lines one at a time."""


def parse_body(body: bytes, media_type: str) -> Submission:
    """Parse a whole body, or refuse the whole body."""
    submission, errors, checker = Submission.empty(), list[RecordError](), Checker()
    converted = submission.converted
    body = body.removeprefix(BOM)
    blocks = _array(body, converted) if media_type == "application/json" else _line_blocks(body, converted)
    for events, numbers, records in blocks:
        if events is not None and not checker.bad(events):
            submission.events.extend(events)
            submission.event_lines.extend(numbers)
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
            elif isinstance(record, Ended):
                submission.ended.append(record)
                submission.ended_lines.append(line)
            else:
                submission.events.append(record)
                submission.event_lines.append(line)
    if errors:
        raise _refusal(errors)
    return submission


def _line_blocks(body: bytes, converted: set[str]) -> Iterator[Block]:
    lines = body.split(b"\n")
    for start in range(0, len(lines), _BLOCK_LINES):
        block = [
            (number, line)
            for number, line in enumerate(lines[start : start + _BLOCK_LINES], start + 1)
            if not is_blank(line)
        ]
        records = ((number, decode_message(line, converted)) for number, line in block)
        numbers, texts = [number for number, _ in block], [line for _, line in block]
        events = decode_records(texts)
        yield decode_converted(texts, converted) if events is None else events, numbers, records


def _array(body: bytes, converted: set[str]) -> Iterator[Block]:
    long = long_in_array(body)
    events = None if long else decode_array(body)
    yield events, range(1, 1 + len(events or ())), _array_records(body, converted, long)


def _array_records(body: bytes, converted: set[str], long: Mapping[int, Fault]) -> Iterator[NumberedRecord]:
    try:
        values = array_values(body)
    except (ValueError, RecursionError):
        raise ProblemError(
            422, "The body is not a JSON array of events. Send an array, or JSON lines as application/x-ndjson."
        ) from None
    yield from ((number, long.get(number) or read_object(value, converted)) for number, value in enumerate(values, 1))


def _refusal(errors: list[RecordError]) -> ProblemError:
    count = "1 bad record" if len(errors) == 1 else f"{len(errors):,} bad records"
    stopped = " Parsing stopped there." if len(errors) == MAX_ERRORS else ""
    first = errors[0]
    return ProblemError(422, f"Nothing was stored: {count}.{stopped} Line {first.line}: {fault_detail(first)}", errors)

"""Decode bytes to checked events: a whole block in one call, and record by record if something is wrong with it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from types import GenericAlias
from typing import Any, Final, TypeVar, get_type_hints

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from schemas.records.declaration import Declaration
from schemas.records.events import (
    BATTLE_MARK,
    MAX_LINE_BYTES,
    Battle,
    BattleFields,
    Ended,
    Event,
    EventFields,
    names_of,
)
from schemas.records.goals import LEAST_MARGIN
from schemas.records.lenient import Kinds, convert, convert_column, read_name
from schemas.records.names import name_fault
from schemas.records.repeated import (
    READ,
    Repeating,
    array_decoder_of,
    array_values,
    count_byte,
    decode_whole,
    decoder_of,
    has_each_once,
    is_once_in_array,
    parts_of,
    parts_of_lines,
    raw_fields,
    raw_values,
    repeated_among,
    repeats_a_field,
    repeats_in_array,
    shape_in_array,
    shape_of,
)
from schemas.records.text import Fault, printable, shorten

BOM: Final = b"\xef\xbb\xbf"  # the UTF-8 byte order mark, with which some programs begin a file or a message

_COLUMNS: Final[dict[str, Any]] = {
    field: GenericAlias(list, (kind,)) for field, kind in get_type_hints(EventFields, include_extras=True).items()
}


class _LooseFields(msgspec.Struct, gc=False):
    """An event whose values may have another type with a certain meaning; `declare` makes it another record."""

    benchmark: str | int | float
    item_id: str | int | float
    model: str | int | float
    score: str | int | float | bool | None
    cluster: str | int | float | None = None
    repeat: str | int | float | None = 0
    epoch: str | int | float | None = 0
    unit: str | int | float | None = None
    run: object = None
    role: object = None
    declare: object = msgspec.UNSET


_LOOSE: Final = msgspec.json.Decoder(_LooseFields)
_BROKEN: Final = (msgspec.MsgspecError, UnicodeError, RecursionError)
_NAME_FIELDS: Final = ("benchmark", "item_id", "model", "cluster", "unit")
_NAME_COLUMNS: Final = [place for place, field in enumerate(_COLUMNS) if field in _NAME_FIELDS]

OUT_OF_RANGE: Final = "is out of range"
_SCALED: Final = 2  # a score from it on, and up to the last of the scales, is most likely on another scale

_SCALES: Final = (5, 10, 100)
_NAME: Final = "a string of 1 to 200 printable characters"
_OBJECT: Final = "a JSON object with benchmark, item_id, model and score"
_PACKED: Final = (
    "the record packs several events, as only a message of a topic may; write each event on a line of its own"
)
_INDEX: Final = "a whole number from 0 to 2147483647, or omit it"
SCORES: Final = "a number from 0 to 1, true, false or null"
_EXPECTED: Final = {  # what each field may be, as an error names it
    "benchmark": _NAME,
    "item_id": _NAME,
    "model": _NAME,
    "model_a": _NAME,
    "model_b": _NAME,
    "winner": "a, b or tie",
    "position": "a or b for the model that was shown first, or omit it",
    "declare": _NAME,
    "cluster": f"{_NAME}, or omit it",
    "unit": f"{_NAME}, or omit it",
    "units": "an object with the unit of each item that has one",
    "score": SCORES,
    "repeat": _INDEX,
    "epoch": _INDEX,
    "alpha": "a number from 1e-100 to below 0.5",
    "power": "a number above 0.5 and below 1",
    "margin": f"a number from {LEAST_MARGIN} to below 1",
    "mixture": "beta(a,b), grid98 or two_point(a,b)",
    "family": "spending, or an object with models, with pairs, or with policy and size",
    "order": "completion, committed, trusted, none, or an object with policy and seed",
    "items": "a whole number from 1 to 1000000000",
    "item_ids": f"a list, each item id {_NAME}",
    "scores": "binary or graded",
    "repeats": "a whole number from 1 to 1000, or all",
    "anchor": _NAME,
    "missing": "worst or ignorable",
    "weights": "equal-clusters, or an object with a positive weight for each cluster",
    "clusters": "an object with the number of items of each cluster",
    "ended": _NAME,
    "run": _NAME,
    "state": "started, ended, cancelled or changed",
    "drift": "an object with runs_per_year, years, monitors, direction, judge, ...",
    "base": _INDEX,
}

_JSON_WORDS: Final = {None: "null", True: "true", False: "false"}
_NUMBER: Final = "is not a number", "use a number"
_WHOLE: Final = "is not a whole number", "use a whole number"
_REPEATED: Final = "repeated"
_TWICE: Final = "{name} comes twice in one object; keep one of the two"

_KINDS: Final = {
    "string_type": ("is not a string", "use a string"),
    "string_too_short": ("is too short", "use at least {min_length} character"),
    "string_too_long": ("is too long", "use at most {max_length} characters"),
    "string_pattern_mismatch": ("is not valid", "use a value that an earlier response returned"),
    "too_short": ("is empty", "add an entry"),
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": (OUT_OF_RANGE, "use a number"),
    "bool_type": _NUMBER,  # a score: the other branch of the union
    "bool_parsing": ("is not a boolean", "use true or false"),
    "greater_than": (OUT_OF_RANGE, "use a number above {gt}"),
    "greater_than_equal": (OUT_OF_RANGE, "use {ge} or more"),
    "less_than": (OUT_OF_RANGE, "use a number below {lt}"),
    "less_than_equal": (OUT_OF_RANGE, "use {le} or less"),
    "literal_error": ("is unknown", "use {expected}"),
    "tuple_type": ("is not a list", "use a list"),
    "model_type": ("is not an object", "use an object"),
    "json_invalid": ("is not valid JSON", "send valid JSON"),
}
"""By pydantic's kind of error: what is wrong with the value, and what to do about a field that `_EXPECTED` does not list."""


Model = TypeVar("Model", bound=BaseModel)

Decoded = EventFields | Declaration | Ended  # what a record may be


def decode_block(block: bytes) -> list[EventFields] | None:
    r"""Decode complete JSON lines in one call.

    >>> decode_block(b'{"benchmark":"x","item_id":"1","model":"m","score":1}\n')
    [EventFields(benchmark='x', item_id='1', model='m', score=1.0, cluster=None, repeat=0, epoch=0, unit=None, run=None, role=None)]
    >>> decode_block(b'{"benchmark":"x"}\n') is None
    True
    """
    if not block.isascii():
        try:
            block.decode()  # the decoder skips unknown fields without checking them
        except UnicodeDecodeError:
            return None
    if lines := _lines_of(block):
        shape = shape_of(EventFields, block[: block.find(b"\n")], count_byte(block), lines)
        if shape is not None and (events := _decode_lines(shape.kind, block, lines)) is not None:
            return events if shape.fits(parts_of_lines(block)) or not repeats_a_field(parts_of_lines(block)) else None
        if (events := _decode_lines(EventFields, block, lines)) is not None:
            return None if repeats_a_field(parts_of_lines(block)) else events
    *records, rest = block.split(b"\n")
    return None if rest else decode_records(records)


def _lines_of(block: bytes) -> int:
    """Return how many lines there are; 0 unless they may be decoded without cutting them first, as each object is on one of its own."""
    if len(block) > MAX_LINE_BYTES or not block.startswith(b"{") or BATTLE_MARK in block[: block.find(b"\n")]:
        return 0
    # No object has "}\n{" inside: where it is between all of them, and no other line ends, each is on a line of its own.
    lines = count_byte(block, b"\n")
    return lines if block.endswith(b"\n") and block.count(b"}\n{") == lines - 1 else 0


def _decode_lines(kind: type[EventFields], block: bytes, lines: int) -> list[EventFields] | None:
    """Decode so many lines in one call; None unless each is one event of a kind."""
    try:
        events: list[EventFields] = decoder_of(kind).decode_lines(block)
    except _BROKEN:
        return None
    return events if len(events) == lines else None


def decode_records(records: Sequence[bytes]) -> list[EventFields] | None:
    """Decode messages of one event each, or of one battle each; None if any needs a closer look."""
    # Each is parsed on its own, so that no message can reach into the next one. Joining them is no faster.
    if max(map(len, records), default=0) > MAX_LINE_BYTES:
        return None
    if not records:
        return []
    battles = BATTLE_MARK in records[0]
    kind: type[EventFields] = BattleFields if battles else EventFields
    parts = list(parts_of(records))
    colons = sum(count_byte(part.lines) for part in parts)
    shape = shape_of(kind, records[0], colons, len(records))
    with suppress(*_BROKEN):
        if shape is not None:
            events = list(map(decoder_of(shape.kind).decode, records))
            return events if shape.fits(parts) or not repeats_a_field(parts, kind) else None
    with suppress(*_BROKEN):
        events = list(map(decoder_of(kind).decode, records))
        return None if repeats_a_field(parts, kind) else events
    # A field of this name is no part of an event, and does not make it a battle.
    return _decode_marked(records) if battles else None


def long_in_array(body: bytes) -> dict[int, Fault]:
    """Return the faults of the values of a JSON array that are too long for a record, by their number from 1."""
    sizes = [len(memoryview(value)) for value in raw_values(body)] if len(body) > MAX_LINE_BYTES else []
    return {number: too_long(size) for number, size in enumerate(sizes, 1) if size > MAX_LINE_BYTES}


def decode_array(body: bytes) -> list[EventFields] | None:
    """Decode a JSON array of events; None if any needs a closer look."""
    shape = shape_in_array(body)
    for kind in dict.fromkeys((EventFields if shape is None else shape.kind, EventFields)):
        with suppress(*_BROKEN):
            events: list[EventFields] = array_decoder_of(kind).decode(body)
            return events if is_once_in_array(shape, kind, body, len(events)) or not repeats_in_array(body) else None
    return None


def repeats_in_pack(record: bytes, events: Sequence[EventFields], battles: Sequence[EventFields]) -> bool:
    """Return whether a packed record has a field twice, or one of its records one that is read."""
    parts = raw_fields(record)
    if parts is None:
        return True  # the whole rule has the fault
    if not has_each_once(record, parts):
        try:
            data = decode_whole(record)
        except (ValueError, RecursionError):
            return True
        if repeated_among(data, _PACK_PARTS) is not None:
            return True
    kinds: dict[str, Kinds] = {"declare": "declaration", "ended": "end"}
    for name, kind in kinds.items():
        if name in parts and any(_repeated_field(each, kind) is not None for each in array_values(bytes(parts[name]))):
            return True
    return _repeats_in(parts.get("events"), EventFields, len(events)) or _repeats_in(
        parts.get("battles"), BattleFields, len(battles)
    )


def _repeats_in(part: msgspec.Raw | None, kind: type[EventFields], count: int) -> bool:
    """Return whether one of so many events in a part of a packed record has a field twice."""
    if part is None or not count:
        return False
    array = bytes(part)
    return not is_once_in_array(shape_in_array(array, kind), kind, array, count) and repeats_in_array(array, kind)


_PACK_PARTS: Final = ("events", "battles", "declare", "ended")


def _decode_marked(records: Sequence[bytes]) -> list[EventFields] | None:
    try:
        events = list(map(decoder_of(EventFields).decode, records))
    except _BROKEN:
        return None
    return None if repeats_a_field(parts_of(records)) else events


def _decode_one(record: bytes) -> EventFields:
    if BATTLE_MARK in record:
        with suppress(*_BROKEN):
            return decoder_of(BattleFields).decode(record)
    return decoder_of(EventFields).decode(record)


def decode_next(records: Iterator[bytes]) -> list[EventFields]:
    """Decode messages of one event each, up to the first that needs a closer look; that one is taken too."""
    events: list[EventFields] = []
    try:
        for record in records:
            if len(record) > MAX_LINE_BYTES:
                break
            event = _decode_one(record)
            if repeats_a_field(parts_of([record]), type(event)):
                break
            events.append(event)
    except _BROKEN:
        pass
    return events


def decode_converted(records: Sequence[bytes], converted: set[str] | None = None) -> list[EventFields] | None:
    """Decode messages of one event each, and convert some of their values; None if any needs a closer look."""
    # They come to the same as one by one in `decode_message`, at a fraction of the cost.
    if max(map(len, records), default=0) > MAX_LINE_BYTES:
        return None
    clauses: set[str] = set()
    try:
        b"\n".join(records).decode()  # the decoder skips unknown fields without checking them
        loose = list(map(_LOOSE.decode, records))
    except _BROKEN:
        return None
    if any(each.declare is not msgspec.UNSET for each in loose) or repeats_a_field(parts_of(records)):
        return None
    events = events_of_columns(
        {field: convert_column(field, list(map(attrgetter(field), loose)), clauses) for field in _COLUMNS}
    )
    if events is not None and converted is not None:
        converted |= clauses
    return events


def events_of_columns(columns: Mapping[str, Sequence[Any]]) -> list[EventFields] | None:
    """Return events, given the values of every field, all of one length; None if any needs a closer look."""
    try:
        checked = [msgspec.convert(columns[field], column) for field, column in _COLUMNS.items()]
    except (*_BROKEN, OverflowError):
        return None
    if any(name and name_fault(name) for name in set().union(*(checked[k] for k in _NAME_COLUMNS))):
        return None
    return list(map(EventFields, *checked))


def is_blank(record: bytes) -> bool:
    """Return whether a record holds nothing but white space: every reader of lines skips it."""
    return not record.removeprefix(BOM).strip()


def decode_message(record: bytes, converted: set[str] | None = None) -> Decoded | Fault:
    """Decode one message, first as `decode_records` does: its meaning must not depend on the messages around it."""
    events = decode_records([record])
    return decode_record(record, converted) if events is None else events[0]


def decode_record(record: bytes, converted: set[str] | None = None) -> Decoded | Fault:
    """Decode one record by the whole rule: an event, a declaration, or a fault."""
    # A value of another type whose meaning is certain is converted (`schemas.records.lenient`), with a clause added to `converted`.
    if len(record) > MAX_LINE_BYTES:
        return too_long(len(record))
    record = record.removeprefix(BOM)
    try:
        data = decode_whole(record)
    except UnicodeDecodeError as error:
        return not_utf8(error)
    except (ValueError, RecursionError) as error:
        place = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        problem = "is nested too deeply" if isinstance(error, RecursionError) else f"is not valid JSON{place}"
        return Fault(
            "record", shorten(record.decode("utf-8", "replace")), f"the record {problem}; write one JSON object a line"
        )
    return check_object(data, converted)


def too_long(length: int) -> Fault:
    """Return the fault of a record of so many bytes."""
    found = f"{length:,} bytes"
    return Fault("record", found, f"the record has {found}, more than {MAX_LINE_BYTES:,}; remove what is not a score")


def not_utf8(error: UnicodeDecodeError) -> Fault:
    """Return the fault of a record that is not UTF-8."""
    found = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
    return Fault("record", found, f"{found} is not valid UTF-8; write the file as UTF-8")


def read_object(data: object, converted: set[str] | None = None) -> Decoded | Fault:
    """Check one decoded JSON value as `decode_message` checks a message."""
    for kind in () if isinstance(data, Repeating) else (EventFields, BattleFields):
        with suppress(*_BROKEN):
            return writable(msgspec.convert(data, kind))
    return check_object(data, converted)


def writable(event: EventFields) -> EventFields | Fault:
    """Return an event, or the fault of a run or role that no log can hold."""
    try:
        msgspec.json.encode((event.run, event.role))
    except UnicodeEncodeError:
        return Fault("run", "half a surrogate pair", "run or role holds half a surrogate pair; write whole characters")
    return event


def check_object(data: object, converted: set[str] | None = None) -> Decoded | Fault:
    """Check one decoded JSON value by the whole rule, as `decode_record` does."""
    if not isinstance(data, dict):
        array = isinstance(data, list)
        found = shorten(data if array else json.dumps(data, default=repr))
        split = "; write each object of the array on its own (jq -c '.[]' splits it)" if array and data else ""
        reason = f"{found} is not an object; use {_OBJECT}{split}"
        return Fault("record", found, reason)
    kind = _kind(data)
    if (name := _repeated_field(data, kind)) is not None:
        benchmark = None if name in _NAMING else _benchmark_of(data)
        return repeated_fault(name, benchmark)
    record: Decoded
    try:
        fields, clauses = convert(data, kind)
        if kind == "declaration":
            record = Declaration.model_validate(fields)
        elif kind == "end":
            record = Ended.model_validate(_of_a_run(fields))
        elif kind == "battle":
            battle = Battle.model_validate(fields)
            record = BattleFields(**battle.model_dump(exclude={"timestamp", "attributes"}))
        else:
            record = (_quick_event(fields) if clauses else None) or _whole_event(fields)
    except ValidationError as error:
        fault = _fault(error, data)
        packs = kind == "event" and "item_id" not in data and data.keys() & {"events", "item_ids"}
        return fault._replace(reason=_PACKED) if packs else fault
    except RecursionError:
        return Fault("record", "deep nesting", "the record is nested too deeply; remove what is not a score")
    if converted is not None:
        converted.update(clauses)
    return writable(record) if isinstance(record, EventFields) else record


def repeated_fault(name: str, benchmark: str | None = None) -> Fault:
    """Return the fault of a field that comes twice."""
    return Fault(shorten(name), "two values", _TWICE.format(name=shorten(name)), benchmark)


def _repeated_field(value: object, kind: Kinds) -> str | None:
    """Return a field that comes twice and has a meaning: any of a declaration, in depth; of others, those that are read."""
    if isinstance(value, Repeating):
        names = value.repeated if kind == "declaration" else value.repeated & {*READ, *_EXPECTED}
        if names:
            return min(names)
    if kind == "declaration" and isinstance(value, dict | list):
        inside = value.values() if isinstance(value, dict) else value
        return next((name for each in inside if (name := _repeated_field(each, kind)) is not None), None)
    return None


def _is_of_a_run(data: dict[str, Any]) -> bool:
    """Return whether a record is about a run of a sentinel."""
    return not data.keys() & {"item_id", "ended", "score"} and ({"run", "state"} <= data.keys() or "change" in data)


def _of_a_run(data: dict[str, Any]) -> dict[str, Any]:
    """Return the start or end of a run, or an announced change, as the record of an end.

    >>> _of_a_run({"run": "r1", "benchmark": "b", "model": "m", "state": "started"})
    {'run': 'r1', 'model': 'm', 'state': 'started', 'ended': 'b'}
    >>> _of_a_run({"change": "m", "benchmark": "b"})
    {'ended': 'b', 'model': 'm', 'state': 'changed'}
    """
    if not _is_of_a_run(data):
        return data
    rest = dict(data)
    if "benchmark" in rest:
        rest["ended"] = rest.pop("benchmark")
    if "change" in rest and "model" not in rest and "state" not in rest:
        rest |= {"model": rest.pop("change"), "state": "changed"}
    return rest


def _kind(data: dict[str, Any]) -> Kinds:
    """Return what a record is, by its fields."""
    if "declare" in data:
        return "declaration"
    if ("ended" in data and "item_id" not in data) or _is_of_a_run(data):
        return "end"
    names_two = data.keys() & {"model_a", "model_b"} and not data.keys() & {"model", "score"}
    return "battle" if names_two else "event"


def validate_body(model: type[Model], body: bytes, kind: Kinds | None) -> Model:
    """Validate a JSON object without a field twice; values are converted as in a record of the kind, if it is one."""
    body = body.removeprefix(BOM)
    try:
        data = decode_whole(body)
    except (ValueError, RecursionError):
        return model.model_validate_json(body)
    if (name := _repeated_field(data, "declaration")) is not None:
        fault = PydanticCustomError(_REPEATED, _TWICE, {"name": shorten(name)})
        raise ValidationError.from_exception_data(
            model.__name__, [InitErrorDetails(type=fault, loc=(name,), input="two values")]
        )
    if kind is None:
        return model.model_validate_json(body)
    return model.model_validate(convert(data, kind)[0] if isinstance(data, dict) else data)


def _quick_event(fields: dict[str, Any]) -> EventFields | None:
    """Return a converted record as an event, or None if the published model has to look at it."""
    try:
        event = msgspec.convert(fields, EventFields)
    except _BROKEN:
        return None
    return event if not any(name and name_fault(name) for name in names_of([event])) else None


def _whole_event(fields: dict[str, Any]) -> EventFields:
    event = Event.model_validate(fields)
    return EventFields(**event.model_dump(exclude={"timestamp", "attributes"}))


def _fault(error: ValidationError, data: dict[str, Any]) -> Fault:
    first = error.errors(include_url=False)[0]
    field = str(first["loc"][0]) if first["loc"] else "record"
    # An unknown field has any name.
    known = Ended.model_fields if _kind(data) == "end" else Declaration.model_fields
    item = "" if _kind(data) in {"declaration", "end"} else read_name(data.get("item_id"))
    return Fault(
        shorten(field),
        show_input(first),
        describe_error(first, known=known),
        _benchmark_of(data),
        item if item == "" or (isinstance(item, str) and name_fault(item) is None) else None,
        above_scale(first["input"]) if field == "score" else None,
    )


def above_scale(score: object) -> float | None:
    """Return a score that is most likely on a larger scale than from 0 to 1; None for any other value.

    >>> above_scale(100), above_scale(1.0001), above_scale(1e25), above_scale("100")
    (100.0, None, None, None)
    """
    number = isinstance(score, int | float) and not isinstance(score, bool)
    return float(score) if number and _SCALED <= score <= _SCALES[-1] else None  # type: ignore[operator, arg-type]


_NAMING: Final = ("benchmark", "declare", "ended")


def _benchmark_of(data: dict[str, Any]) -> str | None:
    """Return the benchmark of a record, if it names one."""
    named = next((data[name] for name in _NAMING if name in data), None)
    return named if isinstance(named, str) and name_fault(named) is None else None


def show_input(error: Mapping[str, Any]) -> str:
    """Show the value that a validation error is about."""
    if error["type"] == "missing":
        return "nothing"
    value = error["input"]
    if isinstance(value, str):
        return f'"{shorten(value)}"'
    return shorten(_JSON_WORDS.get(value, value) if value is None or isinstance(value, bool) else value)


def describe_error(
    error: Mapping[str, Any], field: str | None = None, known: Iterable[str] = Declaration.model_fields
) -> str:
    """Return a sentence for one entry of `ValidationError.errors()`: what is wrong, and what to do.

    >>> describe_error({"type": "less_than_equal", "loc": ("score",), "input": 1.2})
    '1.2 is out of range; use a number from 0 to 1, true, false or null'
    >>> describe_error({"type": "greater_than_equal", "loc": ("score",), "input": -1.0}).split("; ")[-1]
    'if scores go from -1 to 1, add 1 and halve them (for files: --scale=-1:1)'
    >>> describe_error({"type": "float_type", "loc": ("score",), "input": "85%"})
    '"85%" is not a number; use a number from 0 to 1, true, false or null; for files, `rankwatch map FILE` proposes how to read it'
    >>> describe_error({"type": "missing", "loc": ("model",), "input": {}})
    'the field is missing; add a string of 1 to 200 printable characters'
    """
    kind, context = error["type"], error.get("ctx", {})
    field = str(error["loc"][0]) if field is None and error["loc"] else field or ""
    expected = _EXPECTED.get(field)
    if kind == "missing":
        flag = " (for files: --benchmark NAME)" if field == "benchmark" else ""
        return f"the field is missing; add {expected or 'it'}{flag}"
    if kind == _REPEATED:
        return _TWICE.format_map(context)
    if kind == "extra_forbidden":
        return f"the field is unknown; remove it, or use one of {', '.join(known)}"
    if kind == "value_error":
        problem, remedy = printable(str(context["error"])), ""
        if "; " in problem:
            return problem
    else:
        clause, remedy = _KINDS.get(kind, ("is not valid", ""))
        problem, remedy = f"{show_input(error)} {clause}", remedy.format_map(context) if expected is None else ""
    if field == "score" and kind == "less_than_equal" and above_scale(error["input"]) is not None:
        largest = next(scale for scale in _SCALES if error["input"] <= scale)
        expected = f"{expected}; if scores go up to {largest}, divide them by {largest} (for files: --scale {largest})"
    if field == "score" and kind == "greater_than_equal" and error["input"] >= -1:
        expected = f"{expected}; if scores go from -1 to 1, add 1 and halve them (for files: --scale=-1:1)"
    if field == "score" and isinstance(error["input"], str):
        comma = "," in error["input"]
        hint = "write decimals with a point" if comma else "for files, `rankwatch map FILE` proposes how to read it"
        expected = f"{expected}; {hint}"
    return "; ".join(filter(None, (problem, f"use {expected}" if expected else remedy)))


def plain_text(data: bytes) -> bool:
    """Return whether no name in this JSON can hold a forbidden character: all of it is ASCII, and nothing is escaped.

    JSON allows no raw control character in a string except DEL.

    >>> plain_text(b'{"model": "m"}'), plain_text("ü".encode())
    (True, False)
    """
    return data.isascii() and b"\\" not in data and b"\x7f" not in data


class Checker:
    """Finds decoded events with a bad name; remembers the names it has passed."""

    _REMEMBERED: Final = 2_000_000

    def __init__(self) -> None:
        self._good: set[str | None] = set()

    def bad(self, events: Sequence[EventFields]) -> bool:
        """Return whether any event of a block has a bad name."""
        fresh = names_of(events) - self._good
        fresh.discard(None)
        if any(name is not None and name_fault(name) for name in fresh):
            return True
        if len(self._good) > self._REMEMBERED:
            self._good.clear()
        self._good |= fresh
        return False

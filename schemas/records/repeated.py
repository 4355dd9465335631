"""Find fields that come twice in one object: decoders keep the last value, so a parser that keeps the first one reads something else."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from schemas.records.events import BattleFields, EventFields, NameField
from schemas.records.names import MAX_INDEX

_BRACE, _COLON, _QUOTE, _SPACE, _NEWLINE = b'{:" \n'
_ESCAPED_LETTER: Final = re.compile(rb"\\u00[567]")
"""In JSON, a letter that needs no escape. A key that has one is the same key to a parser, and not to a search for its bytes."""

_BROKEN: Final = (msgspec.MsgspecError, ValueError, RecursionError)
READ: Final = frozenset(field.name for kind in (EventFields, BattleFields) for field in msgspec.structs.fields(kind))
_RAW_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode: Final = msgspec.json.Encoder().encode
_RAW_VALUES: Final = msgspec.json.Decoder(list[msgspec.Raw])
_PADDING: Final = b" " * 7 + b"\n"  # ahead of the first record: the word ahead of a colon may begin there
_PART: Final = 1 << 15
_TOGETHER: Final = 400  # records that are searched at once: their bytes fit the cache of the processor
_SHORT: Final = 2_000  # bytes that are counted sooner without numpy

_WORD: Final = 8
_KEYS: Final = {  # the last bytes of each key that is read, with its quotes, as a number, and the mask of those bytes
    name: (
        np.uint64(int.from_bytes(end.rjust(_WORD, b"\0"), "little")),
        np.uint64(sum(255 << 8 * k for k in range(_WORD - len(end), _WORD))),
    )
    for name in sorted(READ)
    for end in [f'"{name}"'.encode()[-_WORD:]]
}


_DEFAULTS: Final = (b"null", b"0")
_GIVEN: Final[dict[str, Any]] = {  # the types of optional fields without the default
    **dict.fromkeys(("cluster", "unit"), NameField),
    **dict.fromkeys(("repeat", "epoch"), Annotated[int, msgspec.Meta(ge=1, le=MAX_INDEX)]),
    "position": Literal["a", "b"],
    **dict.fromkeys(("run", "role"), str),
}


class Repeating(dict[str, Any]):
    """An object that has some field twice."""

    repeated: frozenset[str]


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) == len(pairs):
        return fields
    names = [name for name, _ in pairs]
    found = Repeating(fields)
    found.repeated = frozenset(name for name in fields if names.count(name) > 1)
    return found


_WHOLE_RULE: Final = json.JSONDecoder(parse_constant=float, object_pairs_hook=_object_of)


def decode_whole(record: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Return a JSON value whose objects remember which of their fields come twice."""
    return _WHOLE_RULE.decode(record.decode("utf-8"))


def array_values(body: bytes) -> list[Any]:
    """Return the values of a JSON array, by the whole rule."""
    values = decode_whole(body)
    if not isinstance(values, list):
        raise ValueError("the body is not an array")  # noqa: TRY004 - as for a body that is no JSON
    return values


def repeated_among(value: object, names: Collection[str]) -> str | None:
    """Return one of these fields that comes twice in a decoded JSON object."""
    found = value.repeated & set(names) if isinstance(value, Repeating) else ()
    return min(found, default=None)


def count_byte(data: bytes, byte: bytes = b":") -> int:
    """Return how many there are of a byte, sooner than `bytes.count` does."""
    if len(data) < _SHORT:
        return data.count(byte)
    text = np.frombuffer(data, np.uint8)
    parts = [text] if text.size <= _PART else [text[k : k + _PART] for k in range(0, text.size, _PART)]
    return sum([int(np.count_nonzero(part == byte[0])) for part in parts])


class Part(NamedTuple):
    """Some JSON objects, each on a line of its own; they are so few that the cache of the processor holds them."""

    lines: bytes
    size: int
    records: Sequence[bytes] = ()  # the objects, where some may be on several lines


# --- records of one shape -----------------------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """What proves that no event has a field twice: each has all of some fields, and there is no colon for another one."""

    kind: type[EventFields]  # what the events are decoded as: it requires the fields whose value is not the default
    # each, colons: how many fields an event has, and all of them
    each: int
    colons: int
    # the fields with the default as their value, each with its place among all: they are searched in the bytes
    defaults: dict[str, int]

    def fits(self, parts: Iterable[Part], begin: int = _NEWLINE) -> bool:
        """Return whether each event has the defaults; its bytes come after one of these bytes, which are nowhere else."""
        return not self.defaults or all(self._fits(part, begin) for part in parts)

    def _fits(self, part: Part, begin: int) -> bool:
        data = _PADDING + part.lines
        text = np.frombuffer(data, np.uint8)
        marks = np.flatnonzero((text == _COLON) | (text == begin))
        if marks.size != (self.each + 1) * part.size:
            return False
        rows = marks.reshape(part.size, self.each + 1)
        words, keys = _words(data), _KEYS
        return bool((text[rows[:, 0]] == begin).all()) and all(
            bool((words[rows[:, 1 + at] - _WORD] & keys[name][1] == keys[name][0]).all())
            for name, at in self.defaults.items()
        )


def shape_of(kind: type[EventFields], first: bytes, colons: int, count: int) -> Shape | None:
    """Return the shape of so many events with so many colons, if the first one has it; None if they have no such shape."""
    each, rest = divmod(colons, count)
    if rest:
        return None
    required, optional = _fields_of(kind)
    if each == len(required):
        return Shape(kind, each, colons, {})
    fields = raw_fields(first) if each <= len(required) + len(optional) else None
    if fields is None or len(fields) != each or not required <= fields.keys() <= required | optional.keys():
        return None
    defaults = {name: at for at, name in enumerate(fields) if name in optional and bytes(fields[name]) in _DEFAULTS}
    return Shape(_requiring(kind, frozenset(fields.keys() - required - defaults.keys())), each, colons, defaults)


def shape_in_array(data: bytes, kind: type[EventFields] = EventFields) -> Shape | None:
    """Return the shape of the first object in an array, if the colons are for some of them."""
    first = data[data.find(b"{") : data.find(b"}") + 1]
    colons, each = count_byte(data), first.count(b":")
    return None if not each or colons % each else shape_of(kind, first, colons, colons // each)


def is_once_in_array(shape: Shape | None, kind: type[EventFields], data: bytes, count: int) -> bool:
    """Return whether it is certain that no field comes twice in an array of so many events, which were decoded as a kind."""
    if shape is not None and kind is shape.kind and count * shape.each == shape.colons and not shape.defaults:
        return True
    # Each event begins with the only brace of its own where there are no more, and no other array follows where it is the only one.
    if count_byte(data, b"{") != count or count_byte(data, b"]") != 1 or not data.endswith((b"}]", b"}]}")):
        return False
    part = Part(data[data.find(b"{") :], count)
    if shape is not None and kind is shape.kind and count * shape.each == shape.colons and shape.fits([part], _BRACE):
        return True
    return not _suspects(part, BattleFields if issubclass(kind, BattleFields) else EventFields, _BRACE)


@cache
def _fields_of(kind: type[EventFields]) -> tuple[frozenset[str], dict[str, type]]:
    """Return the fields that a kind of event requires, and the others with the types of values that are not the default."""
    fields = msgspec.structs.fields(kind)
    optional = {field.name: _GIVEN.get(field.name, field.type) for field in fields if not field.required}
    return frozenset(field.name for field in fields) - optional.keys(), optional


@cache
def _requiring(kind: type[EventFields], names: frozenset[str]) -> type[EventFields]:
    """Return a kind of event that has a value for each of these fields which is not the default: it is written as any event is."""
    if not names:
        return kind
    optional = _fields_of(kind)[1]
    fields = [
        (field.name, optional[field.name])
        if field.name in names
        else (field.name, field.type)
        if field.required
        else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(kind)
    ]
    shaped: Any = msgspec.defstruct(
        kind.__name__,
        fields,
        bases=(kind,),
        namespace={"__eq__": _equal},
        kw_only=True,
        gc=False,
        omit_defaults=True,
        eq=False,
    )
    return shaped  # type: ignore[no-any-return]


def _equal(self: EventFields, other: object) -> bool:
    return isinstance(other, EventFields) and msgspec.to_builtins(self) == msgspec.to_builtins(other)


@cache
def decoder_of(kind: type[EventFields]) -> "msgspec.json.Decoder[EventFields]":
    """Return the decoder of a kind of event."""
    return msgspec.json.Decoder(kind)


@cache
def array_decoder_of(kind: type[EventFields]) -> "msgspec.json.Decoder[Any]":
    """Return the decoder of an array of a kind of event."""
    return msgspec.json.Decoder(GenericAlias(list, (kind,)))


# --- records of any shape -----------------------------------------------------------------------------------------------------------------


def parts_of(records: Sequence[bytes]) -> Iterator[Part]:
    """Yield parts of records."""
    for start in range(0, len(records), _TOGETHER):
        some = records[start : start + _TOGETHER]
        yield Part(b"\n".join(some), len(some), some)


def parts_of_lines(block: bytes) -> Iterator[Part]:
    """Yield parts of lines; a newline ends each part."""
    start = 0
    while start < len(block):
        end = block.find(b"\n", min(start + _PART, len(block) - 1))
        lines = block[start:end]
        yield Part(lines, 1 + count_byte(lines, b"\n"))
        start = end + 1


def repeats_a_field(parts: Iterable[Part], kind: type[EventFields] = EventFields) -> bool:
    """Return whether one of some JSON objects has a field twice that is read."""
    for part in parts:
        if (
            part.size > 1 and part.records and count_byte(part.lines, b"\n") >= part.size
        ):  # a record is on several lines
            part = Part(b"\n".join([each.replace(b"\n", b" ") for each in part.records]), part.size)  # noqa: PLW2901
        suspects = [0] if part.size == 1 else _suspects(part, kind)
        if suspects:
            records = part.records or part.lines.split(b"\n")
            if any(_has_repeated(records[k]) for k in suspects):
                return True
    return False


def repeats_in_array(body: bytes | msgspec.Raw, kind: type[EventFields] = EventFields) -> bool:
    """Return whether one of the JSON objects in an array has a field twice that is read."""
    values = raw_values(body)
    # Of a body that is no array the whole rule has the fault.
    return not values or repeats_a_field(parts_of(list(map(bytes, values))), kind)


def raw_values(body: bytes | msgspec.Raw) -> list[msgspec.Raw]:
    """Return the values of a JSON array as they are written; none if it is no array."""
    try:
        return _RAW_VALUES.decode(body)
    except _BROKEN:
        return []


def _suspects(part: Part, kind: type[EventFields], begin: int = _NEWLINE) -> list[int]:
    """Return the numbers of the objects that may have a field twice: all others have the key of none twice."""
    data = _PADDING + part.lines
    text = np.frombuffer(data, np.uint8)
    colons = np.flatnonzero(text == _COLON)
    before = text[colons - 1]
    unseen = colons[before <= _SPACE]  # a key may end ahead of the space
    if b"\\" in part.lines:
        escaped = [match.start() + _WORD for match in _ESCAPED_LETTER.finditer(part.lines)]
        unseen = np.concatenate([unseen, np.array(escaped, np.int64)])
    colons = colons[before == _QUOTE]
    words = _words(data)[colons - _WORD]
    required, optional = _fields_of(kind)
    found = [unseen]
    for name in (*required, *optional):
        key, mask = _KEYS[name]
        same = words & mask == key
        number = np.count_nonzero(same)
        # Every event has the fields that are required: as many keys as events are one each.
        if number > 1 and (number != part.size or name in optional or unseen.size):
            at = colons[same]
            # Two of one object have no beginning of another one between them.
            lines = np.searchsorted(np.flatnonzero(text == begin), at)
            found.append(at[1:][lines[1:] == lines[:-1]])
    suspects = np.concatenate(found)
    return np.unique(np.searchsorted(np.flatnonzero(text == begin), suspects) - 1).tolist() if suspects.size else []


def _words(data: bytes) -> NDArray[np.uint64]:
    """Return each eight bytes that follow one another as one number."""
    return np.ndarray((len(data) - _WORD + 1,), "<u8", data, 0, (1,))


def _has_repeated(record: bytes) -> bool:
    if not record or has_each_once(record, raw_fields(record)):
        return False
    try:
        return is_repeated(decode_whole(record))
    except (ValueError, RecursionError):
        return True  # the whole rule has the fault


def is_repeated(data: object) -> bool:
    """Return whether an object has a field twice that is read in events."""
    return isinstance(data, Repeating) and not data.repeated.isdisjoint(READ)


def has_each_once(record: bytes, fields: Mapping[str, msgspec.Raw] | None) -> bool:
    """Return whether an object has as many colons as its fields, each written once; False if that is not certain."""
    if fields is None or ":" in "".join(fields):
        return False
    return count_byte(_encode(fields)) == count_byte(record)


def raw_fields(record: bytes) -> dict[str, msgspec.Raw] | None:
    """Return the fields of a JSON object with the bytes of their values; None if it is none."""
    try:
        return _RAW_FIELDS.decode(record)
    except _BROKEN:
        return None

"""Read JSON documents whole: their size is bounded, and what is wrong with one is reported with what to do."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from monitor.files.streams.encodings import open_stream
from monitor.files.streams.paths import show
from monitor.files.streams.regular import Broken, Refusal, UnsafePathError, inside
from schemas.records.decode import BOM
from schemas.records.text import shorten

MAX_BYTES: Final = 1 << 30  # largest document that is read: a small gzip file could otherwise fill the memory
MAX_OBJECTS: Final = 25_000_000  # most braces and brackets that open in it: `{},` takes 64 bytes and more
MAX_VALUES: Final = 100_000_000  # most commas in it: `1.5,` takes 32 bytes

_JSON_STARTS: Final = frozenset({b"{", b"[", b'"'})
_LONGEST_NUMBER: Final = 100
_PIECE: Final = 1 << 22
_PLACE: Final = re.compile(r"(?:missing required field `(?P<field>[^`]+)`)?(?: - at )?(?:`\$\.?(?P<place>[^`]*)`)?$")

T = TypeVar("T")


def read_bytes(path: Path, note: Callable[[str], None] | None = None) -> bytes:
    """Return the contents of a file, gunzipped and as UTF-8; `note` takes a sentence about what of it is not read.

    Raise `Refusal` if it is too large, and `Broken` if it breaks off.
    """
    stream = open_stream(path, note)
    try:
        pieces: list[bytes] = []
        length = objects = values = 0
        while piece := stream.read(_PIECE):
            pieces.append(piece)
            length += len(piece)
            objects += piece.count(b"{") + piece.count(b"[")
            values += piece.count(b",")
            sizes = {"bytes": (length, MAX_BYTES), "objects": (objects, MAX_OBJECTS), "values": (values, MAX_VALUES)}
            if found := next((f"more than {most:,} {what}" for what, (size, most) in sizes.items() if size > most), ""):
                raise Refusal("file", found, f"the document has {found}; split it, or write events one a line")
        if stream.damage and stream.whole:  # copied again, it would be no better
            raise Refusal("file", shorten(stream.damage), f"{stream.damage}; {stream.remedy}")
        if stream.damage or stream.unfinished:
            raise Broken(stream.damage or stream.unfinished)
    finally:
        stream.close()
    return b"".join(pieces).removeprefix(BOM)


def decode_as(data: bytes, kind: type[T]) -> T:
    """Decode JSON, or what Python writes as such, which may hold NaN.

    Raise `msgspec.ValidationError` if it has other fields, and `ValueError` or `RecursionError` if it is not JSON.
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return msgspec.convert(json.loads(data, parse_int=_whole), kind)


def decode_document(data: bytes, kind: type[T], tool: str) -> T:
    """Decode a document, or a line, as the fields of it that are read.

    Raise `Refusal` if it has other fields, and `Broken` if it is not JSON.
    """
    try:
        return decode_as(data, kind)
    except msgspec.ValidationError as error:
        name = wrong_field(error)
        problem = f"its field {shorten(name)} is missing or wrong" if name else "it has another shape"
        reason = f"the file is not {tool} as far as known: {problem}; use a file as the tool writes it, or describe it with --map"
        raise Refusal("file", "a JSON document", reason) from error
    except (ValueError, RecursionError) as error:
        raise broken(data, error) from error


def wrong_field(error: msgspec.ValidationError) -> str | None:
    """Return the field that an error is about, with the path to it; None if it is the document.

    >>> try:
    ...     msgspec.json.decode(b'{"eval": [{}]}', type=msgspec.defstruct("Log", [("eval", list[msgspec.defstruct("Spec", ["task"])])]))
    ... except msgspec.ValidationError as error:
    ...     wrong_field(error)
    'eval[0].task'
    """
    match = _PLACE.search(str(error))
    return ".".join(name for name in (match["place"], match["field"]) if name) or None if match else None


DOCUMENT: Final = "the JSON document"  # a whole file, in a message about it


def broken(data: bytes, error: Exception, entry: str | None = None) -> Broken:
    """Return what is wrong with data that is not JSON: of a file, or of an entry of one."""
    what = entry or DOCUMENT
    if not data.strip():
        return Broken(f"{entry or 'the file'} is empty")
    if isinstance(error, json.JSONDecodeError) and error.msg == "Extra data":
        return Broken(f"{what} ends, and more follows it, at character {error.pos + 1:,}")
    if isinstance(error, UnicodeDecodeError):
        return Broken(
            f"{what} has byte 0x{data[error.start]:02x} at position {error.start:,}, which is not valid UTF-8"
        )
    if entry is None and data.lstrip()[:1] not in _JSON_STARTS:
        return Broken("the file is not JSON")
    return Broken(f"{what} is cut off or damaged")


def read_document(path: Path, kind: type[T], tool: str) -> T:
    """Read and decode a document; see `read_bytes` and `decode_document`."""
    return decode_document(read_bytes(path), kind, tool)


def read_beside(path: Path, kind: type[T], above: int = 0) -> T | None:
    """Read and decode a file that a harness writes next to its results; see `bytes_beside`."""
    data = bytes_beside(path, above)
    try:
        return None if data is None else decode_document(data, kind, "such a file")
    except (Broken, Refusal):
        return None


def bytes_beside(path: Path, above: int = 0) -> bytes | None:
    """Return the contents of a file that a harness writes next to its results; None if there is none that can be read.

    `above` is how many folders above it belong to the layout of the harness: none of those on the way down may be a link.
    Raise `Refusal` if the file is one, or no regular file.
    """
    try:
        return read_bytes(inside(path.parents[above], path.relative_to(path.parents[above])))
    except UnsafePathError as error:
        reason = f"{show(path)}, which belongs to the results: {error.strerror}"
        raise Refusal("file", show(path), reason) from None
    except (OSError, Broken):
        return None


_COLON: Final = ord(":")
_FLAGS: Final = msgspec.json.Decoder(dict[str, bool])


class _RepeatedFieldError(ValueError):
    pass


def read_verdicts(path: Path) -> tuple[dict[str, bool], dict[str, Any]]:
    """Read a document whose fields are items, as `read_unique` does: those that are true or false, and the others."""
    data = read_bytes(path)
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        import numpy as np  # noqa: PLC0415 - start-up: few documents are such lists

        flags = _FLAGS.decode(data)
        colons = np.count_nonzero(np.frombuffer(data, np.uint8) == _COLON)  # faster than `count` for so many
        if len(flags) == colons:  # a colon a field: none came twice
            return flags, {}
    fields = _unique_fields(data)
    others = {name: each for name, each in fields.items() if not isinstance(each, bool)}
    return {name: each for name, each in fields.items() if name not in others}, others


def read_unique(path: Path) -> dict[str, Any]:
    """Read a document whose fields are items, each of which may come once.

    Raise `Refusal` if an item comes twice, as the later one would replace the first, and `Broken` if it is not JSON.
    """
    return _unique_fields(read_bytes(path))


def _unique_fields(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data, object_pairs_hook=_unique, parse_int=_whole)
    except _RepeatedFieldError as error:
        name = shorten(str(error))
        reason = f"{name} comes twice in one object; keep one of the two"
        raise Refusal("item_id", name, reason) from None
    except (ValueError, RecursionError) as error:
        raise broken(data, error) from error
    return value if isinstance(value, dict) else {}


def _whole(text: str) -> float:
    """Return a whole number; Python refuses to convert one of thousands of digits."""
    return int(text) if len(text) <= _LONGEST_NUMBER else math.inf


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        raise _RepeatedFieldError(next(name for name, _ in pairs if name in seen or seen.add(name)))  # type: ignore[func-returns-value]
    return fields


def text_of(value: object) -> str | None:
    """Return text, or a whole number as text; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18 else None


def field_at(value: object, *names: str) -> Any:  # noqa: ANN401 - any JSON value
    """Return a field of a field of an object, None if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def item_of(text: str, longest: int = 120) -> str:
    """Return the id of an item that is named by a text: the text, or a hash of one that is long or has line breaks."""
    if 0 < len(text) <= longest and text.isprintable():
        return text
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def scalars(fields: object) -> Mapping[str, Any]:
    """Return the fields of an object that may name a cluster."""
    return fields if isinstance(fields, dict) else {}

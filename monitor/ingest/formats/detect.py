"""Detect the format of a file."""

import codecs
import json
import re
import zlib
from contextlib import suppress
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from typing import Final

from monitor.ingest.files.paths import PASSED_OVER
from monitor.ingest.files.streams import is_record, open_stream
from monitor.ingest.formats.choices import Choices
from monitor.ingest.formats.columns import ColumnError, Columns, flatten
from schemas.decode import BOM

TABLE_SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_HEAD_BYTES: Final = 4_096
_GZIP_WINDOW: Final = 31
_INSPECT: Final = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"')
_RESULT_FIELDS: Final = frozenset({"declare", "events", "benchmark", "model", "score", "doc_hash", "doc"})


class Format(Enum):
    """The format of a file: one module reads each."""

    LINES = auto()
    TABLE = auto()
    INSPECT = auto()
    PARQUET = auto()
    FOREIGN = auto()
    """No results: `foreign` has the reason."""


def format_of(path: Path) -> Format:
    """Return the format of a file, from its name and its first bytes.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    name = path.name.lower()
    head = read_head(path)
    if foreign(head) is not None:
        return Format.FOREIGN
    if name.endswith(TABLE_SUFFIXES):
        return Format.TABLE
    if name.endswith(".parquet") or head.startswith(b"PAR1"):
        return Format.PARQUET
    if name.endswith(".eval") or head.startswith(b"PK\x03\x04") or _INSPECT.match(head):
        return Format.INSPECT
    first, newline, _ = head.partition(b"\n")
    # JSON lines may have any name. Any other .json file is read as an Inspect log, which reports what is wrong with it.
    return Format.INSPECT if name.endswith(".json") and not (newline and is_record(first)) else Format.LINES


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, as they are in it.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES)


def foreign(head: bytes) -> str | None:
    """Return why a file that begins with these bytes, perhaps of gzip, cannot hold results in any format, and what to do; or None.

    Examples
    --------
    >>> foreign(b"<!DOCTYPE html>")
    'the file is an HTML page, not results; download the file itself, signed in where the site asks for it'
    >>> foreign(b'{"benchmark":"quiz"}') is None
    True
    """
    with suppress(zlib.error):
        head = zlib.decompressobj(_GZIP_WINDOW).decompress(head, _HEAD_BYTES)
    start = head.removeprefix(BOM).lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return "the file is an HTML page, not results; download the file itself, signed in where the site asks for it"
    if start.startswith(b"<?xml"):
        return "the file is an XML document, not results; convert it to JSON lines or a table"
    if not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"PAR1", b"PK")):
        even, odd = head[::2], head[1::2]
        for zeros, letters in ((odd, even), (even, odd)):
            if 2 * zeros.count(0) > len(zeros) > 1 and not letters.count(0):
                return "the text is UTF-16 without a byte order mark; write it as UTF-8"
    return None


def looks_like_results(path: Path, choices: Choices) -> bool:
    """Return whether a file in a folder holds results, as far as its first bytes show.

    Raises
    ------
    OSError
        If it cannot be read, though it is there and readable for this user.
    """
    name = path.name.lower()
    if name.endswith((".eval", ".parquet")):
        return True
    try:
        status = path.stat()
        head = _head(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except PASSED_OVER:
        return False
    if name.endswith(".json"):
        return _INSPECT.match(head) is not None
    first = head.partition(b"\n")[0]
    return _is_table(path, first, choices) if name.endswith(TABLE_SUFFIXES) else not _is_foreign(first, choices)


def _is_table(path: Path, header: bytes, choices: Choices) -> bool:
    from monitor.ingest.formats.tables import split_header  # noqa: PLC0415 - start-up: only tables need it

    return _has_columns(split_header(path, header), choices)


def _is_foreign(first: bytes, choices: Choices) -> bool:
    """Return whether the first JSON line is certainly not a result, but a question of a data set or the like."""
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return (
        isinstance(record, dict)
        and not record.keys() & _RESULT_FIELDS
        and not _has_columns(list(flatten(record)), choices)
    )


def _has_columns(names: list[str], choices: Choices) -> bool:
    try:
        Columns(names, choices, "any model")
    except ColumnError:
        return False
    return True


@lru_cache(maxsize=10_000)
def _head(path: Path, *_: int) -> bytes:
    """Return the first bytes of a file; a changed status reads them again."""
    stream = open_stream(path)
    try:
        return stream.read(_HEAD_BYTES)
    finally:
        stream.close()

"""Detect the format of a file."""

import codecs
import json
import re
import zlib
from contextlib import suppress
from dataclasses import replace
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from monitor.files.formats.choices import Choices
from monitor.files.formats.outline import has_path, outline
from monitor.files.formats.plugins import match
from monitor.files.formats.registry import Format, match_row
from monitor.files.streams.encodings import YAML_SUFFIXES, is_yaml, open_stream
from monitor.files.streams.paths import PASSED_OVER
from monitor.files.streams.regular import open_regular
from monitor.files.streams.stream import is_record
from monitor.files.tables.battle_columns import columns_of, is_battle, refusal_of
from monitor.files.tables.columns import ColumnError, WideTableError, flatten
from schemas.records.decode import BOM

TABLE_SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".xlsx")
_DOCUMENTS: Final = (".json", ".json.gz", *YAML_SUFFIXES)
_HEAD_BYTES: Final = 4_096
_GZIP_WINDOW: Final = 31
_INSPECT: Final = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"')
_ZIP: Final = b"PK\x03\x04"
_JSON: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{\s*"|\[\s*\{)')
"""How JSON begins that cannot be the first line of a table."""

_CONTROLS: Final = bytes({*range(32)} - set(b"\t\n\v\f\r\x1b"))  # control characters that text does not have

_LEAST_TEXT: Final = 0.95
"""Share of other bytes below which a file is no text: random bytes have 0.9. Fewer damaged bytes are rejected by line."""

_PAGE: Final = "the file is an HTML page, not results; download the file itself, signed in where the site asks for it"
_FOREIGN: Final = {  # how files begin that hold no results, and what to do
    b"<!doctype html": _PAGE,
    b"<html": _PAGE,
    b"<?xml": "the file is an XML document, not results; convert it to JSON lines or a table",
    b"\xd0\xcf\x11\xe0": "the file is a workbook of an old Excel (.xls), or has a password; save it as .xlsx without one, "
    "and give that file",
}

NO_BENCHMARK: Final = "no column names the benchmark; give each file by name, or add --benchmark NAME"

_JSON_BYTES: Final = 1 << 16
_LINE_BYTES: Final = 1 << 20
_BATTLES: Final = ("*.model_a", "*.model_b", "*.winner")
_EVENT_FIELDS: Final = frozenset({"benchmark", "item_id", "model", "score"})
_RESULT_FIELDS: Final = frozenset({"declare", "events", "benchmark", "model", "score", "doc_hash", "doc"})


class Kind(Enum):
    """The kind of a file without a format of its own in `registry`: one module reads each."""

    LINES = auto()
    TABLE = auto()
    INSPECT = auto()
    PARQUET = auto()
    ROWS = auto()  # an array of objects: battles, or results
    FOREIGN = auto()  # no results: `foreign` has the reason


def format_of(path: Path, *, own: bool = False) -> Kind | Format:
    """Return the format of a file, from its name and its first bytes; `own`: its columns are named, so it is no table of a harness."""
    head = read_head(path)
    text = _unpacked(head)
    if foreign(head) is not None:
        return Kind.FOREIGN
    if head.startswith(b"PAR1"):
        return Kind.PARQUET
    if head.startswith(_ZIP):
        return _zip_format(path, own=own)
    yaml = is_yaml(path)
    if not yaml and not _JSON.match(text):
        return _text_format(path, own=own)
    found = Kind.INSPECT if _INSPECT.match(text) else _json_format(path)
    if own and isinstance(found, Format) and found.row:
        return Kind.ROWS if yaml or text.removeprefix(BOM).lstrip().startswith(b"[") else Kind.LINES
    return found


def _zip_format(path: Path, *, own: bool) -> Kind | Format:
    """Return the format of a zip archive: a workbook, or a log."""
    stream = open_stream(path)
    stream.close()
    if not stream.whole:
        return Kind.INSPECT
    return (None if own else _table_format(path)) or Kind.TABLE


def _text_format(path: Path, *, own: bool) -> Kind | Format:
    """Return the format of a file that does not begin as JSON does."""
    name = path.name.lower()
    if not own and (found := _table_format(path)) is not None:
        return found
    if name.endswith(TABLE_SUFFIXES):
        return Kind.TABLE
    if name.endswith((".parquet", ".eval")):
        return Kind.PARQUET if name.endswith(".parquet") else Kind.INSPECT
    return _json_format(path)


def _table_format(path: Path) -> Format | None:
    """Return the harness that writes a table with these columns."""
    status = path.stat()
    return match_row(_columns_in(path, _head(path, _JSON_BYTES, status.st_ino, status.st_size, status.st_mtime_ns))[0])


def _columns_in(path: Path, head: bytes) -> tuple[list[str], dict[str, str]]:
    """Return the columns of a table that begins with these bytes, and the cells of its first row."""
    from monitor.files.tables.tables import split_head  # noqa: PLC0415 - start-up: only tables need it

    return split_head(path, head)


def _json_format(path: Path) -> Kind | Format:
    status = path.stat()
    return _json_format_of(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=10_000)
def _json_format_of(path: Path, *_: int) -> Kind | Format:
    """Return the format of JSON, in a document or a record a line; a changed status reads it again."""
    stream = open_stream(path.resolve())  # the walk has checked where a link leads
    try:
        head = stream.read(_JSON_BYTES).removeprefix(BOM).lstrip()
        first, newline = head.partition(b"\n")[:2]
        while not newline and len(head) < _LINE_BYTES and (more := stream.read(_JSON_BYTES)):
            head += more  # the fields of a long line may come late
            first, newline = head.partition(b"\n")[:2]
    finally:
        stream.close()
    one_record = is_record(first)
    value = json.loads(first) if one_record else outline(head[:_JSON_BYTES])
    if one_record and value.keys() >= _EVENT_FIELDS:
        return Kind.LINES
    if one_record or not path.name.lower().endswith(_DOCUMENTS):
        found = match(_as_leaves(value), lines=True)
        if found is not None:
            return found
    if not one_record and all(has_path(value, path) for path in _BATTLES):
        return Kind.ROWS
    found = match(_as_leaves(value), lines=False)
    if found is not None:
        return found
    if _row(value) is not None:
        return Kind.ROWS
    # JSON lines may have any name. Any other .json file is read as an Inspect log, which reports what is wrong with it.
    document = path.name.lower().endswith((*_DOCUMENTS, ".eval")) and not (newline and one_record)
    return Kind.INSPECT if document else Kind.LINES


def is_inspect(path: Path) -> bool:
    """Return whether a file begins as an archive, or as a log of Inspect: `Kind.INSPECT` is any other document too."""
    head = read_head(path)
    return head.startswith(_ZIP) or _INSPECT.match(_unpacked(head)) is not None


def _row(value: object) -> dict[str, Any] | None:
    """Return the first object of an array of objects, or the first row of a document of columns and data; None for anything else."""
    if isinstance(value, dict) and isinstance(value.get("columns"), list) and isinstance(value.get("data"), list):
        names = [
            str(each, "utf-8", "replace").strip('"') if isinstance(each, bytes) else str(each)
            for each in value["columns"]
        ]
        rows = [row for row in value["data"][:1] if isinstance(row, list)]
        return dict(zip(names, rows[0], strict=False)) if rows and names else None
    first = value[0] if isinstance(value, list) and value else None
    return first if isinstance(first, dict) and first else None


def _as_leaves(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Return an object with its booleans as `outline` has them."""
    if isinstance(value, dict):
        return {
            name: {True: b"true", False: b"false"}[each] if isinstance(each, bool) else each
            for name, each in value.items()
        }
    return value


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, as they are in it."""
    with open_regular(path) as file:
        return file.read(_HEAD_BYTES)


def _unpacked(head: bytes) -> bytes:
    """Return the first bytes of the contents of a file that begins with these, perhaps of gzip."""
    with suppress(zlib.error):
        return zlib.decompressobj(_GZIP_WINDOW).decompress(head, _HEAD_BYTES)
    return head


def foreign(head: bytes) -> str | None:
    """Return why a file that begins with these bytes, perhaps of gzip, cannot hold results in any format, and what to do; or None.

    >>> foreign(b"<!DOCTYPE html>")
    'the file is an HTML page, not results; download the file itself, signed in where the site asks for it'
    >>> foreign(b'{"benchmark":"quiz"}') is None
    True
    """
    packed, head = head, _unpacked(head)
    start = head.removeprefix(BOM).lstrip().lower()
    if head is not packed and head.startswith((b"PAR1", b"PK\x03\x04")):
        return "the file is a gzip of another packed file, which is not read; unpack it with gunzip"
    if (reason := next((reason for mark, reason in _FOREIGN.items() if start.startswith(mark)), None)) is not None:
        return reason
    if not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"PAR1", b"PK")):
        even, odd = head[::2], head[1::2]
        for zeros, letters in ((odd, even), (even, odd)):
            if 2 * zeros.count(0) > len(zeros) > 1 and not letters.count(0):
                return "the text is UTF-16 without a byte order mark; write it as UTF-8"
        if not _JSON.match(head) and len(head.translate(None, _CONTROLS)) < _LEAST_TEXT * len(head):
            return "the file is binary data, not results; use JSON lines, a table (CSV, TSV, Parquet) or the log of a harness"
    return None


def looks_like_results(path: Path, choices: Choices) -> bool | str | None:
    """Return whether a file in a folder holds results, as far as its first bytes show; text is the reason why it does not.

    None if it holds them and lacks a name for the benchmark: files of one shape take the name of their folder.
    """
    name = path.name.lower()
    if name.endswith((".eval", ".parquet")):
        return True
    try:
        stat = path.stat()
        status = stat.st_ino, stat.st_size, stat.st_mtime_ns
        head = _head(path, _HEAD_BYTES, *status)
        first = head.partition(b"\n")[0]
        table = name.endswith(TABLE_SUFFIXES) and not _JSON.match(head)
        found = (None if choices.columns else _table_format(path)) if table else _json_format(path)
        if found is None:
            return _is_table(path, head, choices)
    except PASSED_OVER:
        return False
    if found is Kind.ROWS:
        row = _row(outline(_head(path, _JSON_BYTES, *status)))
        names = list(flatten(row or {}))
        return is_battle(names) or refusal_of(names) or _has_columns(names, choices)
    if isinstance(found, Format):
        return True if found.refusal is None else found.refusal
    return _INSPECT.match(head) is not None if name.endswith((".json", ".json.gz")) else _is_lines(first, choices)


def _is_table(path: Path, head: bytes, choices: Choices) -> bool | str | None:
    names, first = _columns_in(path, head)
    if (found := refusal_of(names) or _has_columns(names, choices)) is not False:
        return found
    try:
        columns_of(names, choices, None, first=first)
    except WideTableError as error:
        return str(error)
    except ColumnError:
        return False
    return True


def _is_lines(first: bytes, choices: Choices) -> bool | str | None:
    """Return whether a first line may be a result; certainly none is a battle, or a question of a data set or the like."""
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return True
    if not isinstance(record, dict) or record.keys() & _RESULT_FIELDS:
        return True
    names = list(flatten(record))
    return refusal_of(names) or _has_columns(names, choices)


def _has_columns(names: list[str], choices: Choices) -> bool | str | None:
    """Return whether columns hold results; a text, or None, where only the benchmark is missing."""
    model = None if is_battle(names) else "any model"
    for named in (choices, replace(choices, benchmark=choices.benchmark or "any benchmark")):
        try:
            columns_of(names, named, model)
        except ColumnError:
            continue
        return True if named is choices else NO_BENCHMARK if model is None else None
    return False


@lru_cache(maxsize=10_000)
def _head(path: Path, size: int, *_: int) -> bytes:
    """Return the first bytes of a file; a changed status reads them again."""
    stream = open_stream(path.resolve())  # the walk has checked where a link leads
    try:
        return stream.read(size)
    finally:
        stream.close()

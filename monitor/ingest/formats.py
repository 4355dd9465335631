"""What kind of file a file is."""

import re
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from typing import Final

from monitor.ingest.choices import Choices
from monitor.ingest.columns import ColumnError, Columns
from monitor.ingest.streams import open_stream

TABLE_SUFFIXES: Final = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_HEAD_BYTES: Final = 4_096
_INSPECT: Final = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"')


class Format(Enum):
    """How a file is read."""

    LINES = auto()
    TABLE = auto()
    INSPECT = auto()
    PARQUET = auto()


def format_of(path: Path) -> Format:
    """Tell the format of a file, by what it is called and how it begins.

    Raises
    ------
    OSError
        If it cannot be read.
    """
    name = path.name.lower()
    if name.endswith((".eval", ".json")):
        return Format.INSPECT
    if name.endswith(TABLE_SUFFIXES):
        return Format.TABLE
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if name.endswith(".parquet") or head.startswith(b"PAR1"):
        return Format.PARQUET
    return Format.INSPECT if head.startswith(b"PK\x03\x04") or _INSPECT.match(head) else Format.LINES


def looks_like_results(path: Path, choices: Choices) -> bool:
    """Say whether a file that was found in a folder holds results, as far as its first bytes tell."""
    name = path.name.lower()
    if not name.endswith((".json", *TABLE_SUFFIXES)):
        return True
    try:
        status = path.stat()
        head = _head(path, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return False
    if name.endswith(".json"):
        return _INSPECT.match(head) is not None
    return is_table(path, head.partition(b"\n")[0], choices)


def is_table(path: Path, header: bytes, choices: Choices) -> bool:
    """Say whether the columns of a table can be told apart."""
    from monitor.ingest.tables import split_header

    try:
        Columns(split_header(path, header), choices, "any model")
    except ColumnError:
        return False
    return True


@lru_cache(maxsize=10_000)
def _head(path: Path, *_: int) -> bytes:
    """Read how a file begins; the status of the file says when it has to be read again."""
    stream = open_stream(path)
    try:
        return stream.read(_HEAD_BYTES)
    finally:
        stream.close()

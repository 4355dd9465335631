"""Open a file as text: plain, gunzipped, in UTF-16, YAML, or the table of a workbook."""

import codecs
import re
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Final

from monitor.files.streams.stream import GZIP_MAGIC, ConvertedStream, GzipStream, Stream, Utf16Stream

_ZIP_MAGIC: Final = b"PK\x03\x04"
_BOMS: Final = {codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE}

YAML_SUFFIXES: Final = (".yaml", ".yml", ".yaml.gz", ".yml.gz")
_JSON: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*(?:\{|\[\s*\{)\s*"')
_HEAD_BYTES: Final = 4_096

OpenStream = Callable[[Path], Stream]  # opens a file


def is_utf16(path: Path) -> bool:
    """Return whether the contents of a file begin with a byte order mark of UTF-16."""
    return _head(path)[: len(codecs.BOM_UTF16)] in _BOMS


def is_yaml(path: Path) -> bool:
    """Return whether a file is called YAML, and is no JSON."""
    return path.name.lower().endswith(YAML_SUFFIXES) and not _JSON.match(_head(path))


def open_stream(path: Path, note: Callable[[str], None] | None = None) -> Stream:
    """Open a file: gunzip it by its name or first bytes, decode UTF-16 with a byte order mark, write a workbook as CSV and YAML as JSON."""
    # `note` takes a sentence about what of the file is not read.
    stream = Utf16Stream(_open_bytes(path)) if is_utf16(path) else _open_bytes(path)
    if is_yaml(path):
        stream = ConvertedStream(stream, import_module("monitor.files.streams.yaml_text").text)
    if note is not None:
        stream.note = note
    return stream


def _head(path: Path) -> bytes:
    stream = _open_bytes(path)
    try:
        return b"" if stream.whole else stream.read(_HEAD_BYTES)
    finally:
        stream.close()


def _open_bytes(path: Path) -> Stream:
    if path.name.endswith(".gz"):
        return GzipStream(path)
    stream = Stream(path)
    magic = stream.peek(len(_ZIP_MAGIC), 0)
    if magic == _ZIP_MAGIC:
        status = stream.status()
        if _is_workbook(path, status.st_ino, status.st_size, status.st_mtime_ns):
            return ConvertedStream(stream, import_module("monitor.files.streams.workbook").lines)
    if not magic.startswith(GZIP_MAGIC):
        return stream
    stream.close()
    return GzipStream(path)


@lru_cache(maxsize=10_000)
def _is_workbook(path: Path, *_: int) -> bool:
    """Return whether a zip archive is a workbook; a changed status reads it again."""
    # Imported for a zip archive alone: most files are none.
    return bool(import_module("monitor.files.streams.workbook").is_workbook(path))

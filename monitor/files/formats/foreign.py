"""A file that holds no results: an HTML page, an XML document, or text in another encoding."""

from collections.abc import Iterator
from pathlib import Path

from monitor.files.formats.detect import foreign, read_head
from monitor.files.formats.log_file import LogFile
from monitor.files.streams.regular import Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream
from schemas.records.text import shorten


def open_log(log: LogFile) -> Stream:
    """Open a file as one reject."""
    return DocumentStream(log.path, lambda: _refuse(log.path))


def _refuse(path: Path) -> Iterator[bytes]:
    head = read_head(path)
    reason = foreign(head) or "the file has changed meanwhile; read it again"
    raise Refusal("file", shorten(head.decode("utf-8", "replace")), reason)
    yield b""

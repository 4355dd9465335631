"""A file that holds no results: an HTML page, an XML document, or text in another encoding."""

from collections.abc import Iterator
from pathlib import Path

from monitor.ingest.files.event_lines import Refusal
from monitor.ingest.files.streams import Stream
from monitor.ingest.files.translated import DocumentStream
from monitor.ingest.formats.detect import foreign, read_head
from monitor.ingest.formats.log_file import LogFile
from schemas.records.text import shorten


def open_log(log: LogFile) -> Stream:
    """Open a file as one reject."""
    return DocumentStream(log.path, lambda: _refuse(log.path))


def _refuse(path: Path) -> Iterator[bytes]:
    head = read_head(path)
    raise Refusal(
        "file", shorten(head.decode("utf-8", "replace")), foreign(head) or "the file has changed; read it again"
    )
    yield b""

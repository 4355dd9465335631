"""Tables of comma- or tab-separated values: a row for each item and model, or a row for each item with a column for each model."""

import csv
from pathlib import Path
from typing import Final

from monitor.ingest.files.event_lines import EventLineWriter
from monitor.ingest.files.streams import Stream, open_stream
from monitor.ingest.files.translated import TranslatedStream
from monitor.ingest.formats.columns import ColumnError, Columns
from monitor.ingest.formats.log_file import LogFile
from schemas.decode import BOM, Fault, not_utf8
from schemas.events import EventFields
from schemas.text import shorten

_SEPARATORS: Final = ",;\t"


def open_log(log: LogFile) -> Stream:
    """Open a table as event lines."""
    return TranslatedStream(open_stream(log.path), lambda header: _TableTranslator(header, log))


def split_header(path: Path, header: bytes) -> list[str]:
    """Return the column names in the first line of a table; none if the line is not a row."""
    text = header.removeprefix(BOM).decode("utf-8", "replace").rstrip("\r\n")
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=_separator(path, text)), [])]
    except csv.Error:
        return []


class _TableTranslator:
    """Translates the rows of a table."""

    def __init__(self, header: bytes, log: LogFile) -> None:
        self._writer = EventLineWriter()
        self._names = split_header(log.path, header)
        self._separator = _separator(log.path, header.decode("utf-8", "replace"))
        self._columns: Columns | None = None
        self._fault: Fault | None = None
        self._open_row: list[bytes] = []
        try:
            self._columns = Columns(self._names, log.choices, log.model)
            log.notices(self._columns.description)
        except ColumnError as error:
            self._fault = Fault("columns", "a table", str(error))
        self._header_next = True

    def line(self, line: bytes, number: int) -> bytes:
        """Translate a line; a row has several if a cell holds a newline."""
        if self._columns is None or (self._header_next and line.strip()):
            fault, self._fault, self._header_next = self._fault, None, False
            return self._writer.reject(fault, number, line) if fault is not None else b""
        self._open_row.append(line)
        if sum(part.count(b'"') for part in self._open_row) % 2:
            return b""
        row, self._open_row = b"\n".join(self._open_row), []
        return self._translate_row(self._columns, row, number)

    def last(self, line: bytes, number: int) -> bytes | None:
        """Translate the last line; None if it ends before the last column."""
        whole = line.count(b'"') % 2 == 0 and self._reaches_end(line.decode("utf-8", "replace"))
        return self.line(line, number) if whole and not self._open_row else None

    def end(self) -> Fault | None:
        """Return the fault of a file that ends within a quoted cell."""
        if not self._open_row:
            return None
        found = shorten(self._open_row[0].decode("utf-8", "replace"))
        return Fault(
            "record", found, 'a cell opens with " and is never closed; close it, and double each " within a quoted cell'
        )

    def _translate_row(self, columns: Columns, row: bytes, number: int) -> bytes:
        cells = self._checked_cells(row)
        if isinstance(cells, Fault):
            return self._writer.reject(cells, number, row)
        if not any(cells):
            return b""
        events = columns.events(dict(zip(self._names, cells, strict=True)))
        return b"".join(
            self._writer.event(event, number, row)
            if isinstance(event, EventFields)
            else self._writer.reject(event, number, row)
            for event in events
        )

    def _checked_cells(self, row: bytes) -> list[str] | Fault:
        try:
            cells = self._cells(row.decode("utf-8"))
        except UnicodeDecodeError as error:
            return not_utf8(error)
        except csv.Error:
            return Fault("record", "a row", "the row is not valid CSV; remove NUL characters and unescaped line breaks")
        if any(cells) and len(cells) != len(self._names):
            reason = f"the row has {len(cells):,} cells and the table {len(self._names):,} columns; quote cells that hold a separator"
            return Fault("record", f"{len(cells)} cells", reason)
        return cells

    def _reaches_end(self, text: str) -> bool:
        """Return whether a row reaches the last column; text that is not a row will not become one."""
        try:
            return len(self._cells(text)) >= len(self._names)
        except csv.Error:
            return True

    def _cells(self, text: str) -> list[str]:
        return next(csv.reader(text.rstrip("\r").splitlines(keepends=True), delimiter=self._separator), [])


def _separator(path: Path, header: str) -> str:
    if path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return "\t"
    return max(_SEPARATORS, key=header.count)

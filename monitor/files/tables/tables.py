"""Tables of comma- or tab-separated values: a row for each item and model, or a row for each item with a column for each model."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from monitor.files.formats.log_file import LogFile
from monitor.files.streams.encodings import open_stream
from monitor.files.streams.event_lines import EventLines, EventLineWriter
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import TranslatedStream
from monitor.files.tables.battle_columns import BattleColumns, columns_of
from monitor.files.tables.columns import ColumnError, Columns, WideTableError
from schemas.records.decode import BOM, not_utf8
from schemas.records.events import EventFields
from schemas.records.text import Fault, shorten

_SEPARATORS: Final = ",;\t"
_TOGETHER: Final = 1_000  # rows that are translated together

_PROMPTFOO: Final = frozenset({"Status", "Score", "Named Scores", "Grader Reason"})
_PROMPTFOO_REMEDY: Final = (
    "a table of promptfoo has columns of the same names for each provider; "
    "write the results with promptfoo eval -o results.json"
)
SUMMARY: Final = frozenset({"dataset", "version", "metric", "mode"})
"""Columns of a summary of OpenCompass, next to one for each model."""

SUMMARY_REMEDY: Final = (
    "a summary of OpenCompass has one score a dataset; run it with --dump-eval-details, and give its folder results"
)


def open_log(log: LogFile) -> Stream:
    """Open a table as event lines."""
    return TranslatedStream(open_stream(log.path, log.note), lambda header: _TableTranslator(header, log))


def split_header(path: Path, header: bytes) -> list[str]:
    """Return the column names in the first line of a table; none if the line is not a row."""
    text = header.removeprefix(BOM).decode("utf-8", "replace").rstrip("\r\n")
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=_separator(path, text)), [])]
    except csv.Error:
        return []


def split_head(path: Path, head: bytes) -> tuple[list[str], dict[str, str]]:
    """Return the column names of a table that begins with these bytes, and the cells of its first row as far as they are there."""
    first, _, rest = head.lstrip(b"\r\n").partition(b"\n")
    separator = _separator(path, first.decode("utf-8", "replace"))
    try:
        row = next(csv.reader(rest.decode("utf-8", "replace").splitlines(keepends=True), delimiter=separator), [])
    except csv.Error:
        row = []
    names = split_header(path, first)
    return names, dict(zip(names, row, strict=False))


class _TableTranslator:
    """Translates the rows of a table."""

    def __init__(self, header: bytes, log: LogFile) -> None:
        self._writer = EventLineWriter(log.note)
        self._log = log
        self._names = split_header(log.path, header)
        self._separator = _separator(log.path, header.decode("utf-8", "replace"))
        self._header: tuple[int, bytes] | None = None  # number and text of the line with the names, once it was read
        self._columns: Columns | BattleColumns | None = None
        self._wide: WideTableError | None = None  # why a table is refused, unless its first row gives a better reason
        self._refused = False
        self._open_row: list[bytes] = []

    def lines(self, lines: Sequence[bytes], number: int) -> bytes:
        """Translate lines; a row has several if a cell holds a newline."""
        parts, done = [], 0
        while done < len(lines):
            together = lines[done : done + _TOGETHER]
            usual = self._usual(together)
            if usual is None:
                usual = b"".join([self._line(line, place) for place, line in enumerate(together, number + done)])
            parts.append(usual)
            done += len(together)
        return EventLines.joined(parts)

    def _usual(self, lines: Sequence[bytes]) -> bytes | None:
        """Translate lines that are a row each column by column; None if any of them needs a closer look."""
        if not isinstance(self._columns, Columns) or self._refused or self._open_row:
            return None
        quoted = b'"' in b"".join(lines)
        if quoted and any(line.count(b'"') % 2 for line in lines):
            return None
        try:
            texts = (b"\n".join(lines) + b"\n").decode().splitlines(keepends=True)
            rows = list(csv.reader(texts, delimiter=self._separator))
        except (UnicodeDecodeError, csv.Error):
            return None
        whole = (
            len(texts) == len(rows) == len(lines) and {*map(len, rows)} == {len(self._names)} and all(map(any, rows))
        )
        if not whole:
            return None
        return self._writer.checked(self._columns.usual(dict(zip(self._names, zip(*rows, strict=True), strict=True))))

    def _line(self, line: bytes, number: int) -> bytes:
        if self._refused:
            return b""
        if self._header is None:
            self._header = (number, line) if line.strip() else None
            return b"" if self._header is None else self._check_header()
        self._open_row.append(line)
        if sum(part.count(b'"') for part in self._open_row) % 2:
            return b""
        row, self._open_row = b"\n".join(self._open_row), []
        return self._translate_row(row, number)

    def last(self, line: bytes, number: int) -> bytes | None:
        """Translate the last line; None if it ends before the last column."""
        whole = line.count(b'"') % 2 == 0 and self._reaches_end(line.decode("utf-8", "replace"))
        if not whole or self._open_row:
            return None
        if not line.rstrip().endswith(b'"'):
            self._log.note("no line end follows the last row; if the file was cut off, the last cell may be too")
        return self._line(line, number)

    def end(self) -> Fault | None:
        """Return the fault of a file that ends within a quoted cell, or before the first row of a table that is refused."""
        if not self._open_row:
            return None if self._wide is None or self._refused else _fault(self._wide)
        found = shorten(self._open_row[0].decode("utf-8", "replace"))
        return Fault(
            "record",
            found,
            'a cell opens with " and is never closed; close it, and double each " within a quoted cell',
            refuses=True,
        )

    def _check_header(self) -> bytes:
        """Refuse a table without the columns that are needed; one with columns that may be models waits for its first row."""
        if set(self._names) >= _PROMPTFOO and not self._log.choices.columns:
            return self._refuse(ColumnError(_PROMPTFOO_REMEDY))
        if set(self._names) >= SUMMARY and not self._log.choices.columns:
            return self._refuse(ColumnError(SUMMARY_REMEDY))
        try:
            columns_of(self._names, self._log.table_choices, self._log.model)
        except WideTableError as error:
            self._wide = error
        except ColumnError as error:
            return self._refuse(error)
        return b""

    def _refuse(self, error: ColumnError) -> bytes:
        assert self._header is not None, "the header comes first"
        self._refused = True
        return self._writer.reject(_fault(error), *self._header)

    def _translate_row(self, row: bytes, number: int) -> bytes:
        cells = self._checked_cells(row)
        if isinstance(cells, Fault):
            return self._writer.reject(cells, number, row) if self._wide is None else self._refuse(self._wide)
        if not any(cells):
            return b""
        cells_by_name = dict(zip(self._names, cells, strict=True))
        if self._columns is None:
            try:
                self._columns = columns_of(self._names, self._log.table_choices, self._log.model, first=cells_by_name)
            except ColumnError as error:
                return self._refuse(error)
            self._log.note_columns(self._columns)
        events = self._columns.events(cells_by_name)
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


def _fault(error: ColumnError) -> Fault:
    return Fault("columns", "a table", str(error), refuses=True)


def _separator(path: Path, header: str) -> str:
    if path.name.lower().removesuffix(".gz").endswith(".tsv"):
        return "\t"
    if path.name.lower().endswith(".xlsx"):
        return ","
    return max(_SEPARATORS, key=header.count)

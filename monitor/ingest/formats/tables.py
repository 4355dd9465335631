"""Tables of comma- or tab-separated values: a row an item and model, or a row an item and a column a model."""

import csv
from pathlib import Path
from typing import Final

from monitor.ingest.files.blocks import BOM
from monitor.ingest.files.translated import Lines
from monitor.ingest.formats.columns import ColumnError, Columns
from monitor.ingest.formats.log_file import Reading
from schemas.decode import Fault
from schemas.events import EventFields
from schemas.text import shorten

_SEPARATORS: Final = ",;\t"


def split_header(path: Path, header: bytes) -> list[str]:
    """Split the first line of a table into the names of its columns; a line that is no row has none."""
    text = header.removeprefix(BOM).decode("utf-8", "replace").rstrip("\r\n")
    try:
        return [name.strip() for name in next(csv.reader([text], delimiter=_separator(path, text)), [])]
    except csv.Error:
        return []


class Table:
    """Translates the rows of a table.

    Parameters
    ----------
    header : bytes
        Its first line.
    reading : Reading
    """

    def __init__(self, header: bytes, reading: Reading) -> None:
        path = reading.path
        self._lines = Lines()
        self._names = split_header(path, header)
        self._separator = _separator(path, header.decode("utf-8", "replace"))
        self._columns: Columns | None = None
        self._fault: Fault | None = None
        self._open: list[bytes] = []
        try:
            self._columns = Columns(self._names, reading.choices, reading.model)
            reading.notes(self._columns.told)
        except ColumnError as error:
            self._fault = Fault("columns", "a table", str(error))
        self._header = True

    def line(self, line: bytes, number: int) -> bytes:
        """Translate a line; a row may reach over several, where a cell holds a newline."""
        if self._columns is None or (self._header and line.strip()):
            fault, self._fault, self._header = self._fault, None, False
            return self._lines.reject(fault, number, line) if fault is not None else b""
        self._open.append(line)
        if sum(part.count(b'"') for part in self._open) % 2:
            return b""
        record, self._open = b"\n".join(self._open), []
        return self._row(self._columns, record, number)

    def last(self, line: bytes, number: int) -> bytes | None:
        """Translate the last line; None if it does not reach to the last column."""
        whole = line.count(b'"') % 2 == 0 and self._reaches(line.decode("utf-8", "replace"))
        return self.line(line, number) if whole and not self._open else None

    def end(self) -> Fault | None:
        """Say so if the file ended within a quoted cell."""
        if not self._open:
            return None
        found = shorten(self._open[0].decode("utf-8", "replace"))
        return Fault(
            "record", found, 'a quotation mark that is opened here is never closed: double each " within a quoted cell'
        )

    def _row(self, columns: Columns, record: bytes, number: int) -> bytes:
        try:
            cells = self._cells(record.decode("utf-8"))
        except UnicodeDecodeError as error:
            found = f"byte 0x{record[error.start]:02x} at position {error.start}"
            return self._lines.reject(
                Fault("record", found, "the row is not valid UTF-8: write the file as UTF-8"), number, record
            )
        except csv.Error as error:
            return self._lines.reject(
                Fault("record", "a row", f"{error}: write it as a row of the table"), number, record
            )
        if not any(cells):
            return b""
        if len(cells) != len(self._names):
            found = f"{len(cells)} cells"
            fault = Fault(
                "record", found, f"the table has {len(self._names)} columns: quote cells that hold a separator"
            )
            return self._lines.reject(fault, number, record)
        made = columns.events(dict(zip(self._names, cells, strict=True)))
        return b"".join(
            self._lines.event(event, number, record)
            if isinstance(event, EventFields)
            else self._lines.reject(event, number, record)
            for event in made
        )

    def _reaches(self, text: str) -> bool:
        """Whether a row reaches to the last column; one that is no row is not going to become one."""
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

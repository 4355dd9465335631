"""JSON arrays of objects, battles or results, and documents with the names of columns and a list for each row."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from monitor.files.formats.documents import broken, decode_document, read_bytes
from monitor.files.formats.log_file import LogFile
from monitor.files.streams.event_lines import EventLineWriter
from monitor.files.streams.regular import Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream
from monitor.files.tables.battle_columns import BattleColumns, columns_of, refusal_of, repeated_cell
from monitor.files.tables.columns import ColumnError, Columns, flatten
from schemas.records.repeated import array_values
from schemas.records.text import Fault

_BLOCK: Final = 2_000  # rows that are read at once
_SPACED: Final = re.compile(rb'"\s+:')


class Split(msgspec.Struct):
    """A table of Weights & Biases, MLflow or pandas: the names of the columns, and a list for each row."""

    columns: list[str]
    data: list[list[Any]]

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Return rows by the names of the columns."""
        return [dict(zip(self.columns, row, strict=False)) for row in self.data[start:stop]]

    def cells(self, names: Sequence[str], start: int, stop: int) -> dict[str, Sequence[Any]]:
        """Return the cells of some columns; raise `KeyError` where a row lacks one, or has more."""
        rows, place = self.data[start:stop], {name: k for k, name in enumerate(self.columns)}
        if {*map(len, rows)} != {len(self.columns)}:
            raise KeyError(names)
        return {name: [row[place[name]] for row in rows] for name in names}

    def fault(self, row: int, _: Columns | BattleColumns) -> Fault | None:
        """Return the fault of a row of more cells than columns."""
        cells, columns = len(self.data[row]), len(self.columns)
        if cells <= columns:
            return None
        reason = f"the row has {cells:,} cells and the table {columns:,} columns; give each cell a column"
        return Fault("record", f"{cells:,} cells", reason)


class _Objects(NamedTuple):
    """An array of objects."""

    data: list[dict[str, Any]]

    def rows(self, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
        """Return rows."""
        return self.data[start:stop]

    def cells(self, names: Sequence[str], start: int, stop: int) -> dict[str, Sequence[Any]]:
        """Return the cells of some columns; raise `KeyError` where a row lacks one."""
        return {name: [row[name] for row in self.data[start:stop]] for name in names}

    def fault(self, row: int, columns: Columns | BattleColumns) -> Fault | None:
        """Return the fault of an object that has a field twice."""
        return repeated_cell(self.data[row], columns)


def open_log(log: LogFile) -> Stream:
    """Open an array of objects, or a document of columns and data, as event lines."""
    return DocumentStream(log.path, lambda: _read(log))


def _read(log: LogFile) -> Iterator[bytes]:
    kind: Any = list[dict[str, Any]] | Split
    data = read_bytes(log.path)
    document = decode_document(data, kind, "an array of results")
    table = document if isinstance(document, Split) else _Objects(_whole(data, document))
    first = table.rows(0, 1)
    own = table.columns if isinstance(table, Split) else []
    shapes = {tuple(row): row for row in reversed(first if isinstance(table, Split) else table.data)}
    found = dict.fromkeys(name for row in reversed(shapes.values()) for name in flatten(row))
    known = set(own)
    names = [*own, *(name for name in found if name not in known)]
    try:
        columns = _columns(first, names, log)
    except ColumnError as error:
        raise Refusal("columns", "an array of objects", str(error)) from error
    log.note_columns(columns)
    writer = EventLineWriter(log.note)
    for start in range(0, len(table.data), _BLOCK):
        rows = range(start, min(start + _BLOCK, len(table.data)))
        faults = {row: fault for row in rows if (fault := table.fault(row, columns)) is not None}
        lines = None if faults else _usual(columns, table, start, writer)
        if lines is not None:
            yield lines
            continue
        for at, row in zip(rows, table.rows(start, start + _BLOCK), strict=True):
            for event in [faults[at]] if at in faults else columns.events(flatten(row)):
                yield writer.reject(event, at + 1) if isinstance(event, Fault) else writer.event(event, at + 1)


def _whole(data: bytes, rows: list[dict[str, Any]]) -> list[Any]:
    """Return objects that remember which of their fields come twice."""
    # As many colons after names as there are fields: none came twice.
    once = data.count(b'":') == sum(map(len, rows)) and not _SPACED.search(data)
    try:
        return rows if once else array_values(data)
    except (ValueError, RecursionError) as error:
        raise broken(data, error) from error


def _columns(first: Sequence[dict[str, Any]], names: list[str], log: LogFile) -> Columns | BattleColumns:
    if not log.choices.columns and (problem := refusal_of(names)):
        raise ColumnError(problem)
    if not first:
        raise ColumnError("the table has no rows; check that the run wrote results")
    objects = [name for name, value in first[0].items() if isinstance(value, dict)]
    return columns_of(names, log.table_choices, log.model, objects, flatten(first[0]))


def _usual(
    columns: Columns | BattleColumns, table: Split | _Objects, start: int, writer: EventLineWriter
) -> bytes | None:
    """Return the lines of rows; None if one of them needs a closer look."""
    if isinstance(columns, BattleColumns):
        return writer.plain(columns.usual(table.rows(start, start + _BLOCK)))
    try:
        return writer.checked(columns.usual(table.cells(columns.names, start, start + _BLOCK)))
    except KeyError:  # a field that is nested, or missing
        return None

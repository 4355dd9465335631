"""Parquet tables, read with pyarrow."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from monitor.files.formats.log_file import LogFile
from monitor.files.formats.result_writer import write_results
from monitor.files.streams.event_lines import EventLineWriter
from monitor.files.streams.regular import Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream, Piece
from monitor.files.tables.battle_columns import BattleColumns, columns_of
from monitor.files.tables.columns import ColumnError, Columns, WideTableError
from monitor.files.tables.parquet_memory import Table, open_table
from monitor.files.tools import lighteval
from schemas.records.text import Fault


def open_log(log: LogFile) -> Stream:
    """Open a Parquet table as event lines."""
    return DocumentStream(log.path, lambda: _read(log))


def _columns(table: Table, log: LogFile) -> Columns | BattleColumns:
    """Return the columns of a table; its first row is read only if columns may be models."""
    names = table.names
    if "models" not in log.choices.columns:
        with suppress(WideTableError):
            return columns_of(names, log.table_choices, log.model)
    first = next((row for batch in table.batches(names, 1) for row in batch.to_pylist()), None)
    return columns_of(names, log.table_choices, log.model, first=first)


def _read_lighteval(table: Table, log: LogFile) -> Iterator[Piece]:
    rows = (row for batch in table.batches(sorted(lighteval.COLUMNS)) for row in batch.to_pylist())
    yield from write_results(lighteval.TOOL, log, lighteval.results(log, rows))


def is_lighteval(path: Path) -> bool:
    """Return whether a table has the details of lighteval."""
    with open_table(path) as table:
        return set(table.names) >= lighteval.COLUMNS


def _read(log: LogFile) -> Iterator[Piece]:
    with open_table(log.path) as table:
        if set(table.names) >= lighteval.COLUMNS:
            yield from _read_lighteval(table, log)
            return
        try:
            columns = _columns(table, log)
        except ColumnError as missing:
            raise Refusal("columns", "a table", str(missing)) from missing
        log.note_columns(columns)
        writer, number = EventLineWriter(log.note), 0
        for batch in table.batches(columns.names):
            usual = columns.usual(batch.to_pydict()) if isinstance(columns, Columns) else None
            battles = columns.usual(batch.to_pylist()) if isinstance(columns, BattleColumns) else None
            if lines := writer.plain(battles) or writer.checked(usual):
                number += batch.num_rows
                yield lines
                continue
            for row in batch.to_pylist():
                number += 1
                for event in columns.events(row):
                    yield writer.reject(event, number) if isinstance(event, Fault) else writer.event(event, number)

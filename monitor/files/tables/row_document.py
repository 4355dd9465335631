"""JSON arrays of objects: battles, as Chatbot Arena publishes them, or results with a field for each part of an event."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from monitor.files.formats.documents import read_document
from monitor.files.formats.log_file import LogFile
from monitor.files.streams.event_lines import EventLineWriter, Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream
from monitor.files.tables.battle_columns import BattleColumns, columns_of, refusal_of
from monitor.files.tables.columns import ColumnError, Columns, flatten
from schemas.records.events import EventFields
from schemas.records.faults import Fault

_BLOCK: Final = 2_000  # rows that are read at once


def open_log(log: LogFile) -> Stream:
    """Open an array of objects as event lines."""
    return DocumentStream(log.path, lambda: _read(log))


def _read(log: LogFile) -> Iterator[bytes]:
    rows = read_document(log.path, list[dict[str, Any]], "an array of results")
    shapes = {tuple(row): row for row in reversed(rows)}
    names = list(dict.fromkeys(name for row in reversed(shapes.values()) for name in flatten(row)))
    try:
        columns = _columns(rows, names, log)
    except ColumnError as error:
        raise Refusal("columns", "an array of objects", str(error)) from error
    log.note_columns(columns)
    writer = EventLineWriter(log.note)
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        if (lines := writer.plain(_usual(columns, some))) is not None:
            yield lines
            continue
        for number, row in enumerate(some, start + 1):
            for event in columns.events(flatten(row)):
                yield writer.reject(event, number) if isinstance(event, Fault) else writer.event(event, number)


def _columns(rows: Sequence[dict[str, Any]], names: list[str], log: LogFile) -> Columns | BattleColumns:
    if not log.choices.columns and (problem := refusal_of(names)):
        raise ColumnError(problem)
    objects = [name for name, value in rows[0].items() if isinstance(value, dict)]
    return columns_of(names, log.table_choices, log.model, objects, flatten(rows[0]))


def _usual(columns: Columns | BattleColumns, rows: Sequence[dict[str, Any]]) -> Sequence[EventFields] | None:
    """Return the events of rows; None if one of them needs a closer look."""
    if isinstance(columns, BattleColumns):
        return columns.usual(rows)
    try:
        return columns.usual({name: [row[name] for row in rows] for name in columns.names})
    except KeyError:  # a field that is nested, or missing
        return None

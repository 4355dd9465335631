"""JSON arrays of battles, as Chatbot Arena publishes them."""

from collections.abc import Iterator
from typing import Any, Final

from monitor.ingest.files.event_lines import EventLineWriter, Refusal
from monitor.ingest.files.streams import Stream
from monitor.ingest.files.translated import DocumentStream
from monitor.ingest.formats.documents import read_document
from monitor.ingest.formats.log_file import LogFile
from monitor.ingest.formats.tabular.battle_columns import BattleColumns
from monitor.ingest.formats.tabular.columns import ColumnError, flatten
from schemas.records.decode import Fault

_BLOCK: Final = 2_000
"""Rows that are read at once."""


def open_log(log: LogFile) -> Stream:
    """Open an array of battles as event lines."""
    return DocumentStream(log.path, lambda: _read(log))


def _read(log: LogFile) -> Iterator[bytes]:
    rows = read_document(log.path, list[dict[str, Any]], "an array of battles")
    shapes = dict.fromkeys(map(tuple, rows))
    names = list(dict.fromkeys(name for shape in shapes for name in shape))
    try:
        columns = BattleColumns(names, log.choices, log.model)
    except ColumnError as error:
        raise Refusal("columns", "an array of battles", str(error)) from error
    log.notices(columns.description)
    log.note_unused("battles", *columns.choices_used)
    writer = EventLineWriter()
    for start in range(0, len(rows), _BLOCK):
        some = rows[start : start + _BLOCK]
        if (lines := writer.plain(columns.usual(some))) is not None:
            yield lines
            continue
        for number, row in enumerate(some, start + 1):
            for event in columns.events(flatten(row)):
                yield writer.reject(event, number) if isinstance(event, Fault) else writer.event(event, number)

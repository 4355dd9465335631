"""Open a file in its format. Each module is imported when a file needs it: together they would delay every command."""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from monitor.files.formats.detect import Kind
from monitor.files.formats.log_file import LogFile
from monitor.files.formats.registry import Format
from monitor.files.streams.event_lines import Refusal
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream

if TYPE_CHECKING:
    from monitor.files.formats.results import Tool
    from monitor.files.maps.table import FileMap

_KINDS = {
    Kind.INSPECT: "tools.inspect_log",
    Kind.PARQUET: "tables.parquet",
    Kind.TABLE: "tables.tables",
    Kind.ROWS: "tables.row_document",
    Kind.FOREIGN: "formats.foreign",
    Kind.LINES: "tables.json_lines",
}


def open_format(kind: Kind | Format, log: LogFile) -> Stream:
    """Open a file as a stream of event lines."""
    if isinstance(kind, Kind):
        stream: Stream = import_module(f"monitor.files.{_KINDS[kind]}").open_log(log)
        return stream
    if kind.refusal is not None:
        return DocumentStream(log.path, _refusing(Refusal("file", f"a file of {kind.name}", kind.refusal)))
    from monitor.files.formats.result_writer import open_tool  # noqa: PLC0415 - start-up: most files are events

    return open_tool(load_tool(kind), log, plugin=kind.name if kind.tool is not None else None)


def open_mapped(maps: "Sequence[FileMap]", log: LogFile) -> Stream:
    """Open a file as a stream of event lines, under the mappings that match it."""
    from monitor.files.formats.result_writer import open_tool  # noqa: PLC0415
    from monitor.files.maps.mapped import mapped_tool  # noqa: PLC0415 - start-up: few files have a mapping

    return open_tool(mapped_tool(maps, log.path), log)


def load_tool(kind: Format) -> "Tool":
    """Return the tool of a format that is read."""
    if kind.tool is not None:
        tool: Tool = kind.tool
        return tool
    loaded: Tool = getattr(import_module(f"monitor.files.tools.{kind.module}"), kind.attribute)
    return loaded


def _refusing(refusal: Refusal):  # type: ignore[no-untyped-def]  # noqa: ANN202
    def read():  # type: ignore[no-untyped-def]  # noqa: ANN202
        raise refusal
        yield b""

    return read

"""Read the first sheet of an Excel workbook that has a table, as lines of comma-separated values."""

import csv
import io
import os
import re
import struct
import zlib
from collections.abc import Generator, Iterator
from datetime import datetime, timedelta
from io import BufferedReader
from pathlib import Path
from posixpath import basename, join, normpath
from typing import Final
from xml.parsers import expat
from zipfile import BadZipFile, ZipFile

from monitor.files.streams.regular import open_regular
from monitor.files.streams.stream import ConversionError, Stream
from schemas.records.text import shorten

_WORKBOOK: Final = "xl/workbook.xml"
_MOST_BYTES: Final = 1 << 30  # of all parts that are read, and of the lines: a small file may unpack to far more
_MOST_HELD: Final = 1 << 27  # of a part that is held in memory: shared texts, styles, names of sheets
_MOST_ROWS, _MOST_COLUMNS, _MOST_SHEETS = 1 << 20, 1 << 14, 1 << 10  # as in Excel; it has no limit of sheets
_LONGEST_CELL, _LONGEST_ROW, _LONGEST_TAG = 1 << 20, 1 << 24, 1 << 20
_PIECE: Final = 1 << 12  # a row of references to long texts is much longer as a line
_REFERENCE: Final = re.compile(r"([A-Z]{1,3})[0-9]{1,7}")
_INTEGER: Final = re.compile(r"-?[0-9]+")
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_ESCAPE: Final = re.compile(r"_x([0-9A-Fa-f]{4})_")
_NOT_A_DATE: Final = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.|\*.')  # texts, colors and spaces in a number format

_DATES: Final = frozenset({*range(14, 23), *range(27, 37), 45, 47, *range(50, 59)})  # formats that Excel has built in
_EXACT: Final = 1 << 53  # whole numbers up to it are exact in a cell
_LISTED: Final = 5
_SAVE: Final = "save it again in Excel or LibreOffice, or export the sheet as CSV"


def is_workbook(path: Path) -> bool:
    """Return whether a zip archive is a workbook."""
    try:
        with BufferedReader(open_regular(path)) as file, ZipFile(file) as archive:
            return _WORKBOOK in archive.namelist()
    except (BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, struct.error):
        return False


class _Handler:
    """Takes the tags and texts of a part."""

    def start(self, name: str, have: dict[str, str]) -> None: ...
    def end(self, name: str) -> None: ...
    def text(self, text: str) -> None: ...


class _Parts:
    """The parts of a workbook; each is XML."""

    def __init__(self, archive: ZipFile) -> None:
        self._archive = archive
        self._left = _MOST_BYTES

    def hold(self, part: str, handler: _Handler) -> None:
        for _ in self.feed(part, handler, _MOST_HELD):
            pass

    def feed(self, part: str, handler: _Handler, most: int = _MOST_BYTES) -> Iterator[None]:
        """Parse a part piece by piece; what it declares as its size is the most that is unpacked."""
        if part not in self._archive.NameToInfo:
            raise ConversionError(f"its part {shorten(part)} is missing", _SAVE)
        info = self._archive.getinfo(part)
        if info.flag_bits & 1:
            raise ConversionError("it has a password", "save it again without one")
        self._left -= info.file_size
        if info.file_size > most or self._left < 0:
            found = f"{shorten(part)} unpacks to {info.file_size:,} bytes"
            raise ConversionError(
                f"{found}, more than the {most:,} that are read", "split the table, or export it as CSV"
            )
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = _refuse_doctype
        parser.StartElementHandler = lambda name, have: handler.start(_local(name), have)
        parser.EndElementHandler = lambda name: handler.end(_local(name))
        parser.CharacterDataHandler = handler.text
        fed = 0
        try:
            with self._archive.open(info) as file:
                while piece := file.read(_PIECE):
                    parser.Parse(piece, False)
                    fed += len(piece)
                    if fed - max(parser.CurrentByteIndex, 0) > _LONGEST_TAG:
                        raise ConversionError(f"{shorten(part)} has a tag of more than {_LONGEST_TAG:,} bytes", _SAVE)
                    yield
                parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError) as error:
            where = f"line {parser.ErrorLineNumber:,}, column {parser.ErrorColumnNumber + 1:,}"
            raise ConversionError(f"{shorten(part)} is not valid XML at {where}", _SAVE) from error
        yield


def _refuse_doctype(*_: object) -> None:
    raise ConversionError("a part has a DOCTYPE, which no workbook has", _SAVE)


def _local(name: str) -> str:
    return name.rpartition(" ")[2]


class _Directory(_Handler):
    """Names of parts, and of sheets."""

    def __init__(self) -> None:
        self.parts: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.sheets: list[tuple[bool, str, str]] = []  # whether each sheet is hidden, its name and its part
        self.from_1904 = False

    def start(self, name: str, have: dict[str, str]) -> None:
        if name == "Relationship" and have.get("TargetMode") != "External":
            target = normpath(join("/xl", have.get("Target", ""))).lstrip("/")
            self.parts[have.get("Id", "")] = target
            self.kinds.setdefault(basename(have.get("Type", "")), target)
        elif name == "workbookPr":
            self.from_1904 = have.get("date1904") in {"1", "true"}
        elif name == "sheet":
            identity = next((value for key, value in have.items() if _local(key) == "id"), "")
            hidden = have.get("state", "visible") != "visible"
            self.sheets.append((hidden, have.get("name", ""), self.parts.get(identity, "")))
            if len(self.sheets) > _MOST_SHEETS:
                raise ConversionError(f"it has more than {_MOST_SHEETS:,} sheets", "save the one with the table alone")


class _Texts(_Handler):
    """The texts that cells share."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._parts: list[str] = []
        self._inside = self._spoken = False

    def start(self, name: str, have: dict[str, str]) -> None:  # noqa: ARG002
        self._spoken |= name == "rPh"  # how a Japanese text is spoken
        self._inside = name == "t" and not self._spoken

    def end(self, name: str) -> None:
        self._inside = False
        self._spoken &= name != "rPh"
        if name == "si":
            self.texts.append(_unescape("".join(self._parts)))
            self._parts.clear()

    def text(self, text: str) -> None:
        if self._inside:
            self._parts.append(text)


class _Styles(_Handler):
    """Which styles of cells show a date."""

    def __init__(self) -> None:
        self.dates: list[bool] = []
        self._formats: set[str] = {str(number) for number in _DATES}
        self._cells = False

    def start(self, name: str, have: dict[str, str]) -> None:
        if name == "numFmt":
            shown = _NOT_A_DATE.sub("", have.get("formatCode", "").lower().partition(";")[0])
            if {*shown} & {*"dmyhs"}:
                self._formats.add(have.get("numFmtId", ""))
        self._cells |= name == "cellXfs"
        if name == "xf" and self._cells:
            self.dates.append(have.get("numFmtId", "") in self._formats)

    def end(self, name: str) -> None:
        self._cells &= name != "cellXfs"


class _Sheet(_Handler):
    """Writes the rows of a sheet as lines."""

    def __init__(self, texts: list[str], dates: list[bool], *, from_1904: bool) -> None:
        self._texts, self._dates, self._from_1904 = texts, dates, from_1904
        self._out = io.StringIO()
        self._writer = csv.writer(self._out, lineterminator="\n")
        self.columns: tuple[int, int] | None = None
        """First column of the table, and the one after its last: known from the first row with two cells."""
        self.above = self.outside = self.without_value = self.merged = 0
        self._row = self._next_row = self._column = self._length = self._written = 0
        self._cells: dict[int, str] = {}
        self._type = self._style = ""
        self._formula = self._inside = self._spoken = False
        self._parts: list[str] = []
        self._size = 0

    def take(self) -> bytes:
        """Return the lines since the last call."""
        lines = self._out.getvalue().encode()
        self._out.seek(0)
        self._out.truncate()
        self._written += len(lines)
        if self._written > _MOST_BYTES:
            raise ConversionError(f"its sheet has more than {_MOST_BYTES:,} bytes as CSV", "split the table")
        return lines

    def start(self, name: str, have: dict[str, str]) -> None:
        if name == "c":
            self._open_cell(have)
        elif name == "row":
            number = have.get("r", str(self._row + 1))
            self._next_row = int(number) if _COUNT.fullmatch(number) else 0
            if not self._row < self._next_row <= _MOST_ROWS:
                raise ConversionError(f"row {shorten(number)} follows row {self._row:,}", _SAVE)
            self._cells, self._column, self._length = {}, 0, 0
        elif name == "f":
            self._formula = True
        elif name == "mergeCell":
            self.merged += 1
        self._spoken |= name == "rPh"
        self._inside = name == "v" or (name == "t" and not self._spoken)

    def end(self, name: str) -> None:
        self._inside = False
        if name == "c":
            self._close_cell()
        elif name == "row":
            self._close_row()
        elif name == "rPh":
            self._spoken = False

    def text(self, text: str) -> None:
        if self._inside:
            self._size += len(text)
            if self._size > _LONGEST_CELL:
                raise ConversionError(
                    f"a cell of row {self._next_row:,} has more than {_LONGEST_CELL:,} characters", "shorten it"
                )
            self._parts.append(text)

    def _open_cell(self, have: dict[str, str]) -> None:
        place = have.get("r")
        column = self._column + 1
        if place is not None:
            letters = _REFERENCE.fullmatch(place)
            column = 0
            for letter in letters[1] if letters else "":
                column = 26 * column + ord(letter) - ord("A") + 1
        if not self._column < column <= _MOST_COLUMNS:
            where = f"cell {shorten(place)}" if place is not None else "a cell without a place"
            raise ConversionError(f"{where} in row {self._next_row:,} is out of order, or beyond column XFD", _SAVE)
        self._column, self._type, self._style = column, have.get("t", "n"), have.get("s", "")
        self._parts, self._size, self._formula = [], 0, False

    def _close_cell(self) -> None:
        text = self._value("".join(self._parts))
        if not text:
            self.without_value += self._formula and self._type != "str"
            return
        self._length += len(text)
        if len(text) > _LONGEST_CELL or self._length > _LONGEST_ROW:
            raise ConversionError(f"row {self._next_row:,} has more text than is read", "shorten its cells")
        self._cells[self._column] = text

    def _value(self, text: str) -> str:
        """Return what a cell holds, as a table of text would have it."""
        if self._type == "s":
            if not _COUNT.fullmatch(text) or int(text) >= len(self._texts):
                found = f"row {self._next_row:,} has a cell with the shared text {shorten(text)}"
                raise ConversionError(f"{found}, and there are {len(self._texts):,}", _SAVE)
            return self._texts[int(text)]
        if self._type in {"inlineStr", "str"}:
            return _unescape(text)
        if self._type == "b":
            return {"1": "true", "0": "false"}.get(text, text)
        return self._number(text) if self._type == "n" and _NUMBER.fullmatch(text) else text

    def _number(self, text: str) -> str:
        number = float(text)
        style = int(self._style) if _COUNT.fullmatch(self._style) else len(self._dates)
        if style < len(self._dates) and self._dates[style] and (shown := self._date(number)) is not None:
            return shown
        if _INTEGER.fullmatch(text):
            return text
        return str(int(number)) if abs(number) < _EXACT and number.is_integer() else repr(number)

    def _date(self, number: float) -> str | None:
        """Return a date or time of day; None for a number that is none."""
        start = datetime(1904, 1, 1) if self._from_1904 else datetime(1899, 12, 30)  # noqa: DTZ001 - it has no zone
        if not self._from_1904 and 1 <= number < 60:
            start += timedelta(days=1)  # Excel has a 29 February 1900
        try:
            moment = start + timedelta(milliseconds=round(number * 86_400_000))
        except OverflowError:
            return None
        if number < 0:
            return None
        if number < 1:
            return moment.time().isoformat()
        return moment.date().isoformat() if number.is_integer() else moment.isoformat()

    def _close_row(self) -> None:
        row, cells = self._next_row, self._cells
        if self.columns is None:
            if len(cells) > 1:
                self.columns = min(cells), max(cells) + 1
            else:
                self.above += len(cells)
                cells = {}
        # A line for each row: what is wrong in a line is in the row of its number, unless a cell has several lines.
        self._out.write("\n" * (row - self._row - 1))
        self._row = row
        inside = [cells.get(column, "") for column in range(*self.columns)] if self.columns and cells else []
        self.outside += len(cells) - sum(map(bool, inside))
        if any(inside):
            self._writer.writerow(inside)
        else:
            self._out.write("\n")


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_character, text) if "_x" in text else text


def _character(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return match[0] if 0xD800 <= code < 0xE000 else chr(code)


def lines(stream: Stream) -> Generator[bytes, None, None]:
    """Yield the lines of the first sheet with column names, and note what else the workbook holds."""
    try:
        with os.fdopen(os.dup(stream.file.fileno()), "rb") as file, ZipFile(file) as archive:
            yield from _sheet_lines(stream, archive)
    except ConversionError as error:
        raise ConversionError(f"the workbook cannot be read: {error.problem}", error.remedy) from error
    except (BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError, zlib.error, struct.error) as error:
        raise ConversionError("the workbook cannot be read: its zip archive is damaged", _SAVE) from error


def _sheet_lines(stream: Stream, archive: ZipFile) -> Generator[bytes, None, None]:
    parts, directory, texts, styles = _Parts(archive), _Directory(), _Texts(), _Styles()
    parts.hold("xl/_rels/workbook.xml.rels", directory)
    parts.hold(_WORKBOOK, directory)
    for kind, handler in (("sharedStrings", texts), ("styles", styles)):
        if kind in directory.kinds:
            parts.hold(directory.kinds[kind], handler)
    sheets = sorted(directory.sheets, key=lambda sheet: sheet[0])
    names = [name for _, name, _ in sheets]
    for place, (_, name, part) in enumerate(sheets):
        sheet = _Sheet(texts.texts, styles.dates, from_1904=directory.from_1904)
        try:
            for _ in parts.feed(part, sheet):
                if sheet.columns is not None and (text := sheet.take()):
                    yield text
        except ConversionError:
            if sheet.columns is not None:
                yield sheet.take()  # the rows ahead of what is wrong
            raise
        if sheet.columns is not None:
            _note(stream, sheet, name, names[:place] + names[place + 1 :])
            return
    listed = f"sheets: {_some(names)}" if names else "it has no sheet"
    raise ConversionError(
        f"no sheet has a row with two column names or more ({listed})", "give a workbook with a table"
    )


def _some(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(map(shorten, names[:_LISTED])) + (f" and {more:,} more" if more > 0 else "")


def _note(stream: Stream, sheet: _Sheet, name: str, others: list[str]) -> None:
    """Note what of a workbook was not read."""
    if others:
        stream.note(
            f"only its sheet {shorten(name)} is read, not {_some(others)}; save another as a workbook of its own to read it"
        )
    counts = {
        "rows of one cell above the column names are skipped": sheet.above,
        "cells outside the columns with names are skipped": sheet.outside,
        "formulas have no stored value and are read as empty cells; save the workbook again in Excel or LibreOffice": sheet.without_value,
        "areas of merged cells have a value in their first cell alone": sheet.merged,
    }
    for text, count in counts.items():
        if count:
            stream.note(f"{text} ({count:,}; sheet {shorten(name)})")

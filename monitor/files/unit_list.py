"""Read which items are one unit: a table, or JSON."""

import csv
import json
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any, Final

from monitor.files.streams.event_lines import prompt_id
from monitor.files.streams.paths import show
from schemas.records.lenient import read_name
from schemas.records.names import name_fault
from schemas.records.text import shorten

_LARGEST: Final = 50_000_000  # most bytes of a file of units

_ITEM_COLUMNS: Final = ("item", "item_id")


class UnitListError(ValueError):
    """A file of units that cannot be used: where, what is wrong, what to do."""


def read_units(path: Path) -> dict[str, str]:
    """Read the unit of each item."""
    name = show(path)
    with path.open("rb") as file:
        data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise UnitListError(f"{name}: the file has more than {_LARGEST:,} bytes; list only the items that have a unit")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnitListError(
            f"{name}: byte 0x{data[error.start]:02x} at position {error.start} is not valid UTF-8; write the file as UTF-8"
        ) from None
    read = {".csv": _from_table, ".json": _from_object, ".jsonl": _from_lines}.get(path.suffix.lower())
    if read is None:
        raise UnitListError(f"{name}: its name does not end in .csv, .json or .jsonl; rename it by what it holds")
    units: dict[str, str] = {}
    for where, named, unit in read(name, text):
        item = prompt_id(named) or named
        for field, value in (("item", item), ("unit", unit)):
            fault = name_fault(value) if isinstance(value, str) else "is not text"
            if fault:
                raise UnitListError(
                    f"{where}: {field} {shorten(value)}: the name {fault}; use 1 to 200 printable characters"
                )
        if units.setdefault(item, unit) != unit:
            both = f"{shorten(units[item])} and {shorten(unit)}"
            raise UnitListError(f"{where}: item {shorten(item)} is in two units, {both}; give each item one unit")
    if not units:
        raise UnitListError(f"{name}: there are no units; write one item a line, with its unit")
    return units


def _from_table(name: str, text: str) -> Iterator[tuple[str, Any, Any]]:
    rows = csv.reader(StringIO(text, newline=""))
    try:
        header = [column.strip().lower() for column in next(rows, [])]
        places = [
            header.index(next((each for each in names if each in header), "")) for names in (_ITEM_COLUMNS, ("unit",))
        ]
    except ValueError:
        raise UnitListError(f"{name}: the first line does not name the columns item and unit; add item,unit") from None
    try:
        for row in rows:
            if not any(row):
                continue
            where = f"{name}:{rows.line_num}"
            if len(row) <= max(places):
                raise UnitListError(f"{where}: the line has {len(row)} columns; write an item and its unit")
            item, unit = (row[place] for place in places)
            if unit:
                yield where, item, unit
    except csv.Error as error:
        raise UnitListError(f"{name}:{rows.line_num}: {error}; correct the quotes there") from None


def _from_object(name: str, text: str) -> Iterable[tuple[str, Any, Any]]:
    try:
        pairs = json.loads(text, object_pairs_hook=list)
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, list) or not all(isinstance(pair, tuple) for pair in pairs):
        raise UnitListError(f'{name}: the file is not a JSON object from item to unit; write {{"ITEM": "UNIT", ...}}')
    return ((name, item, read_name(unit)) for item, unit in pairs)


def _from_lines(name: str, text: str) -> Iterator[tuple[str, Any, Any]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{name}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise UnitListError(f"{where}: the line is not a JSON object; write one with item_id and unit")
        if record.get("unit") is not None and "item_id" in record:
            yield where, read_name(record["item_id"]), read_name(record["unit"])

"""Read `rankwatch.toml` next to the results: the declarations of their benchmarks.

    [benchmark."mmlu-pro"]
    items = 12032
    alpha = 0.01

A table holds the fields of a declaration (`schemas.records.declaration.Spec`). It may name a list of items by `item_file`: a file
with one id a line, or results. The path is relative to the file of the table, and stays below its folder.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from monitor.files.item_list import ItemListError, read_items
from monitor.files.streams.paths import show
from monitor.files.streams.regular import UnsafePathError, inside, parse_settings, read_settings
from schemas.records.declaration import Declaration, Spec
from schemas.records.decode import describe_error
from schemas.records.events import MAX_LINE_BYTES
from schemas.records.text import shorten

FILE: Final = "rankwatch.toml"
_TOML_PLACE: Final = re.compile(r"at line (\d+)")
_FIELDS: Final = (*Spec.model_fields, "item_file")


class DeclaredError(ValueError):
    """A file of declarations that cannot be used: file, table, key, what is wrong, what to do."""


def read_declared(paths: Iterable[str | Path]) -> dict[str, dict[str, Any]]:
    """Read the declarations next to results."""
    declarations: dict[str, dict[str, Any]] = {}
    origin: dict[str, Path] = {}
    folders = dict.fromkeys((path if path.is_dir() else path.parent).resolve() for path in map(Path, paths))
    for folder in folders:
        file = folder / FILE
        for name, fields in _read(file).items():
            if declarations.get(name, fields) != fields:
                raise DeclaredError(
                    f"{show(file)}: benchmark '{shorten(name)}' is declared differently in {show(origin[name])}; declare it in one file"
                )
            declarations[name], origin[name] = fields, file
    return declarations


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        data = read_settings(file)
    except (FileNotFoundError, IsADirectoryError):
        return {}
    except UnsafePathError as error:
        raise DeclaredError(f"{show(file)}: {error.strerror}") from None
    except OSError as error:
        raise DeclaredError(f"{show(file)}: {error.strerror or error}; make it readable for this user") from None
    return _parse(file, data)


def _parse(file: Path, data: bytes) -> dict[str, dict[str, Any]]:
    try:
        content = parse_settings(data)
    except UnicodeDecodeError:
        raise DeclaredError(f"{show(file)}: the file is not valid UTF-8; write it as UTF-8") from None
    except (ValueError, RecursionError) as error:
        place = _TOML_PLACE.search(str(error))
        line = f":{place[1]}" if place else ""
        raise DeclaredError(f"{show(file)}{line}: the file is not valid TOML; correct it there") from None
    tables = content.pop("benchmark", {})
    content.pop("map", None)  # how files are read: `formats.map_table`
    if content:
        raise DeclaredError(
            f"{show(file)}: unknown key '{shorten(next(iter(content)))}'; use only tables [benchmark.\"NAME\"] and [[map]]"
        )
    if not isinstance(tables, dict):
        raise DeclaredError(f'{show(file)}: benchmark is not a table; write [benchmark."NAME"]')
    return {name: _table(file, name, table) for name, table in tables.items()}


def _table(file: Path, name: str, table: object) -> dict[str, Any]:
    where = f'{show(file)}: [benchmark."{shorten(name)}"]'
    if not isinstance(table, dict):
        raise DeclaredError(f'{where}: {shorten(table)} is not a table; write [benchmark."NAME"]')
    for key in table:
        if key not in _FIELDS:
            raise DeclaredError(f"{where}: unknown key '{shorten(key)}'; use {', '.join(_FIELDS)}")
    fields = dict(table)
    item_file = fields.pop("item_file", None)
    if item_file is not None:
        if "item_ids" in fields:
            raise DeclaredError(f"{where}: item_file and item_ids both list the items; use one of the two")
        fields["item_ids"] = _read_item_file(file, where, item_file, name)
    try:
        declaration = Declaration.model_validate({"declare": name, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])).replace("declare", "name")
        raise DeclaredError(f"{where}: {f'{key}: ' if key else ''}{describe_error(first)}") from None
    if (size := len(declaration.model_dump_json().encode())) > MAX_LINE_BYTES:
        raise DeclaredError(
            f"{where}: the declaration has {size:,} bytes, and a record at most {MAX_LINE_BYTES:,}; use shorter item ids"
        )
    return fields


def _read_item_file(file: Path, where: str, name: object, benchmark: str) -> list[str]:
    if not isinstance(name, str) or name in {"", "-"}:
        raise DeclaredError(f"{where}: item_file: {shorten(name)} is not a path; name a file with one item id a line")
    path = file.parent / name
    try:
        return read_items(inside(file.parent, name), benchmark, declared=True)[0]
    except ItemListError as error:
        raise DeclaredError(f"{where}: item_file: {error}") from None
    except OSError as error:
        raise DeclaredError(f"{where}: item_file: {show(path)}: {error.strerror or error}") from None

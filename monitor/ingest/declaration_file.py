"""`rankwatch.toml` beside the results: what is declared of their benchmarks.

    [benchmark."mmlu-pro"]
    items = 12032
    alpha = 0.01

A table holds the fields of a declaration (`schemas.events.Spec`), and may name a list of items by `item_file`: a file with one id a
line, or results, by a path that is relative to the file of the table.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from monitor.ingest.files.paths import show
from monitor.ingest.item_list import ItemListError, read_items
from schemas.events import MAX_LINE_BYTES, Declaration, Spec
from schemas.text import shorten

FILE: Final = "rankwatch.toml"
_FIELDS: Final = (*Spec.model_fields, "item_file")


class DeclaredError(ValueError):
    """A file of declarations that cannot be used: file, table, key, and what to do."""


def read_declared(paths: Iterable[str | Path]) -> dict[str, dict[str, Any]]:
    """Read the declarations that lie beside results.

    Parameters
    ----------
    paths : iterable of path
        The PATH arguments of a command: looked at are the folders among them, and the folders of the files.

    Returns
    -------
    dict of str to dict
        By benchmark, the fields of its declaration as they would stand in an event, without the name.

    Raises
    ------
    DeclaredError
        At the first thing that is wrong, or if two files declare one benchmark differently.
    """
    found: dict[str, dict[str, Any]] = {}
    origin: dict[str, Path] = {}
    folders = dict.fromkeys((path if path.is_dir() else path.parent).resolve() for path in map(Path, paths))
    for folder in folders:
        file = folder / FILE
        if not file.is_file():
            continue
        for name, fields in _read(file).items():
            if name in found and found[name] != fields:
                raise DeclaredError(
                    f"{show(file)}: benchmark '{shorten(name)}': {show(origin[name])} declares it differently: let one file declare it"
                )
            found[name], origin[name] = fields, file
    return found


def _read(file: Path) -> dict[str, dict[str, Any]]:
    try:
        content = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError as error:
        raise DeclaredError(f"{show(file)}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DeclaredError(f"{show(file)}: not valid TOML: {shorten(str(error))}") from None
    tables = content.pop("benchmark", {})
    if content:
        raise DeclaredError(
            f"{show(file)}: unknown key '{shorten(next(iter(content)))}': the file holds tables [benchmark.\"NAME\"] and nothing else"
        )
    if not isinstance(tables, dict):
        raise DeclaredError(f'{show(file)}: benchmark is no table: write [benchmark."NAME"]')
    return {name: _table(file, name, table) for name, table in tables.items()}


def _table(file: Path, name: str, table: object) -> dict[str, Any]:
    where = f'{show(file)}: [benchmark."{shorten(name)}"]'
    if not isinstance(table, dict):
        raise DeclaredError(f'{where}: found {shorten(table)} where a table belongs: write [benchmark."NAME"]')
    for key in table:
        if key not in _FIELDS:
            raise DeclaredError(f"{where}: unknown key '{shorten(key)}': use {', '.join(_FIELDS)}")
    fields = dict(table)
    listed = fields.pop("item_file", None)
    if listed is not None:
        if "item_ids" in fields:
            raise DeclaredError(f"{where}: item_file: the items stand in item_ids already: give one of the two")
        fields["item_ids"] = _item_file(file, where, listed, name)
    try:
        declaration = Declaration.model_validate({"declare": name, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])).replace("declare", "name")
        message = first["msg"].removeprefix("Value error, ")
        raise DeclaredError(f"{where}: {f'{key}: ' if key else ''}{message}") from None
    if (size := len(declaration.model_dump_json().encode())) > MAX_LINE_BYTES:
        raise DeclaredError(
            f"{where}: the declaration has {size:,} bytes, and a record at most {MAX_LINE_BYTES:,}: use shorter item ids"
        )
    return fields


def _item_file(file: Path, where: str, listed: object, benchmark: str) -> list[str]:
    if not isinstance(listed, str) or listed in {"", "-"}:
        raise DeclaredError(
            f"{where}: item_file: found {shorten(listed)}: give the path of a file with one item id a line"
        )
    try:
        return read_items(file.parent / listed, benchmark)[0]
    except ItemListError as error:
        raise DeclaredError(f"{where}: item_file: {error}") from None
    except OSError as error:
        raise DeclaredError(f"{where}: item_file: {show(file.parent / listed)}: {error.strerror or error}") from None

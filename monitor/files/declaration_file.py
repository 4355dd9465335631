"""Read `rankwatch.toml` next to the results: the declarations of their benchmarks.

    [benchmark."mmlu-pro"]
    items = 12032
    alpha = 0.01

A table holds the fields of a declaration (`schemas.records.declaration.Spec`). It may name a list of items by `item_file`: a file
with one id a line, or results. The path is relative to the file of the table, and stays below its folder.
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from monitor.files.reject_limit import RejectedLine
from monitor.files.streams.paths import SUFFIXES, PathError, find_files, show
from monitor.files.streams.read import read_files
from monitor.files.streams.regular import UnsafePathError, inside, open_regular, parse_settings, read_settings
from schemas.records.columns import JoinedEvents
from schemas.records.declaration import Declaration, Spec
from schemas.records.decode import describe_error
from schemas.records.events import MAX_LINE_BYTES, EventFields
from schemas.records.names import name_fault
from schemas.records.packed import Segment
from schemas.records.run_columns import RunEvents
from schemas.records.text import shorten

_LARGEST: Final = 50_000_000  # most bytes of a list of ids; a declaration holds far less


class ItemListError(ValueError):
    """A list of items that cannot be used: where, what is wrong, what to do."""


class NoItemsError(ItemListError):
    """A list has no items."""


def check_items(items: Iterable[tuple[str, str]], *, declared: bool = False) -> list[str]:
    """Return ids that are all distinct names; `items` are pairs of a place and an id. See `read_items`."""
    seen: dict[str, str] = {}
    for where, item in items:
        shown = "the item" if declared else f"item '{shorten(item)}'"
        fault = name_fault(item)
        if fault:
            problem = "it is not a name" if declared else f"the name {fault}"
            raise ItemListError(f"{where}: {shown}: {problem}; use 1 to 200 printable characters")
        if item in seen:
            raise ItemListError(f"{where}: {shown} is repeated, first at {seen[item]}; list each item once")
        seen[item] = where
    if not seen:
        raise NoItemsError("there are no items; write one item id a line")
    return list(seen)


def read_items(path: Path, benchmark: str | None = None, *, declared: bool = False) -> tuple[list[str], str | None]:
    """Read the items of a benchmark."""
    if path.is_dir() or path.name.endswith(SUFFIXES):
        return _from_results(path, benchmark, declared=declared)
    name = "standard input" if str(path) == "-" else show(path)
    if str(path) == "-":
        data = sys.stdin.buffer.read(_LARGEST + 1)
    else:
        with open_regular(path) if declared else path.open("rb") as file:
            data = file.read(_LARGEST + 1) or b""
    if len(data) > _LARGEST:
        raise ItemListError(f"{name}: the file has more than {_LARGEST:,} bytes; use a list of item ids, one a line")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = "a byte" if declared else f"byte 0x{data[error.start]:02x}"
        raise ItemListError(f"{name}:{line}: {byte} is not valid UTF-8; write the file as UTF-8") from None
    lines = enumerate(text.replace("\r\n", "\n").split("\n"), 1)
    try:
        ids = check_items(((f"{name}:{number}", line) for number, line in lines if line), declared=declared)
    except NoItemsError as error:
        raise ItemListError(f"{name}: {error}") from None
    return ids, None


def _from_results(path: Path, benchmark: str | None, *, declared: bool) -> tuple[list[str], str]:
    items: dict[str, dict[str, None]] = {}
    try:
        for segment in read_files(find_files([path])):
            if segment.incomplete is not None:
                raise ItemListError(f"{show(segment.path)} is incomplete ({segment.incomplete}); complete the file")
            if segment.rejects:
                line = RejectedLine.of(segment.rejects[0])
                raise ItemListError(str(line._replace(reason="the value is not valid") if declared else line))
            for event in segment.events:
                items.setdefault(event.benchmark, {})[event.item_id] = None
    except PathError as error:
        raise ItemListError(str(error)) from None
    if benchmark is None and len(items) > 1:
        names = ", ".join(shorten(name) for name in sorted(items)[:10])
        raise ItemListError(
            f"{show(path)}: the results are of {len(items):,} benchmarks ({names}); choose one with --benchmark"
        )
    chosen = benchmark if benchmark is not None else next(iter(items), "")
    if chosen not in items:
        which = f" of {shorten(chosen)}" if chosen else ""
        raise ItemListError(f"{show(path)}: there are no results{which}; check the path, or use a list of item ids")
    return check_items(((show(path), item) for item in items[chosen]), declared=declared), chosen


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


Declare = Callable[[str, Declaration | None, bool, str | None], dict[str, Any] | None]
"""Returns what to declare of a benchmark: its name, what its file declares, whether one of its first scores is neither 0 nor 1, and the
file that has them, if they come from one."""

_benchmark: Final = attrgetter("benchmark")


def begin(segment: Segment, known: set[str], declare: Declare | None) -> Segment:
    """Return a segment with the declarations of the benchmarks that begin in it; add these to `known`."""
    names = benchmarks_of(segment.events)
    segment = with_own_declarations(segment, declare)
    known.update(declaration.declare for declaration in segment.declarations)
    fresh = names - known
    known |= fresh
    begun = {
        name: declare(name, None, has_graded(segment.events, name), segment.path) if declare else None
        for name in sorted(fresh)
    }
    return segment._replace(begun=begun)


def with_own_declarations(segment: Segment, declare: Declare | None) -> Segment:
    """Return a segment with what is declared in place of the declarations in its file."""
    if declare is None or not segment.declarations:
        return segment
    return segment._replace(declarations=[_replaced(each, segment, declare) for each in segment.declarations])


def benchmarks_of(events: Iterable[EventFields]) -> set[str]:
    """Return the benchmarks of events, which may be columns."""
    names: set[str] = set()
    for part in _parts(events):
        names |= {part.benchmark} if isinstance(part, RunEvents) else set(map(_benchmark, part))
    return names


def has_graded(events: Iterable[EventFields], benchmark: str) -> bool:
    """Return whether a score of the benchmark is neither 0 nor 1."""
    return any(
        part.benchmark == benchmark and part.graded
        if isinstance(part, RunEvents)
        else any(event.score not in (0, 1, None) for event in part if event.benchmark == benchmark)
        for part in _parts(events)
    )


def _parts(events: Iterable[EventFields]) -> Sequence[Iterable[EventFields]]:
    return events.parts if isinstance(events, JoinedEvents) else [events]


def _replaced(declaration: Declaration, segment: Segment, declare: Declare) -> Declaration:
    name = declaration.declare
    fields = declare(name, declaration, has_graded(segment.events, name), segment.path)
    return declaration if fields is None else Declaration.model_validate(fields)

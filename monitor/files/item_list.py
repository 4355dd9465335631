"""Read the items of a benchmark, from a list of ids or from results."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from monitor.files.reject_limit import RejectedLine
from monitor.files.streams.paths import SUFFIXES, PathError, find_files, show
from monitor.files.streams.read import read_files
from monitor.files.streams.regular import open_regular
from schemas.records.names import name_fault
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

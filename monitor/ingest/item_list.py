"""The items of a benchmark, from a list of ids or from results."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from monitor.ingest.files.paths import SUFFIXES, show
from schemas.names import name_fault
from schemas.text import shorten

_LARGEST: Final = 50_000_000
"""Bytes of a list of ids; a declaration holds far less."""


class ItemListError(ValueError):
    """A list of items that cannot be used: where, what was found, what to do."""


def check_items(items: Iterable[tuple[str, str]]) -> list[str]:
    """Return ids that are all distinct names; `items` are (where it stands, id).

    Raises
    ------
    ItemListError
        At the first id that is no name or stands twice, or if there are none.
    """
    seen: dict[str, str] = {}
    for where, item in items:
        fault = name_fault(item)
        if fault:
            raise ItemListError(f"{where}: item '{shorten(item)}': the name {fault}: use 1-200 printable characters")
        if item in seen:
            raise ItemListError(
                f"{where}: item '{shorten(item)}' stands twice, first at {seen[item]}: list each item once"
            )
        seen[item] = where
    if not seen:
        raise ItemListError("no items: give one item id a line")
    return list(seen)


def read_items(path: Path, benchmark: str | None = None) -> tuple[list[str], str | None]:
    """Read the items of a benchmark.

    Parameters
    ----------
    path : Path
        A file with one item id a line (``-``: standard input), taken as they stand, blank lines left out; or results (a folder, or a
        file that is called like one), of which the items are taken in the order of their first event.
    benchmark : str, optional
        Which benchmark of the results; needed if they hold several.

    Returns
    -------
    list of str, and str or None
        The ids, and the benchmark that results named.

    Raises
    ------
    ItemListError, OSError
        If there is no such list in there.
    """
    if path.is_dir() or path.name.endswith(SUFFIXES):
        return _from_results(path, benchmark)
    name = "standard input" if str(path) == "-" else show(path)
    if str(path) == "-":
        data = sys.stdin.buffer.read(_LARGEST + 1)
    else:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise ItemListError(f"{name}: more than {_LARGEST:,} bytes: give a list of item ids, one a line")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ItemListError(
            f"{name}:{line}: byte 0x{data[error.start]:02x} is not valid UTF-8: write the file as UTF-8"
        ) from None
    lines = enumerate(text.replace("\r\n", "\n").split("\n"), 1)
    try:
        return check_items((f"{name}:{number}", line) for number, line in lines if line), None
    except ItemListError as error:
        raise error if str(error).startswith(name) else ItemListError(f"{name}: {error}") from None


def _from_results(path: Path, benchmark: str | None) -> tuple[list[str], str]:
    from monitor.ingest.files.paths import PathError, find_files
    from monitor.ingest.files.segments import read_files

    found: dict[str, dict[str, None]] = {}
    try:
        for segment in read_files(find_files([path])):
            if segment.rejects:
                reject = segment.rejects[0]
                raise ItemListError(
                    f"{show(reject['source'])}:{reject['line']}: {reject['field']}: found {reject['found']}: {reject['reason']}"
                )
            for event in segment.events:
                found.setdefault(event.benchmark, {})[event.item_id] = None
    except PathError as error:
        raise ItemListError(str(error)) from None
    if benchmark is None and len(found) > 1:
        names = ", ".join(shorten(name) for name in sorted(found)[:10])
        raise ItemListError(f"{show(path)}: results of {len(found):,} benchmarks ({names}): say which with --benchmark")
    chosen = benchmark if benchmark is not None else next(iter(found), "")
    if chosen not in found:
        raise ItemListError(f"{show(path)}: no results{f' of {shorten(chosen)}' if chosen else ''} in there")
    return check_items((show(path), item) for item in found[chosen]), chosen

"""The contract of an importer: what every one keeps, ours and those of plugins. Call `check_importer` in a test of yours."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from monitor.files.importer import Importer
from monitor.files.streams.read import read_files
from schemas.records.events import EventFields
from schemas.records.text import Reject

_CUTS: Final = 8

Row = tuple[str, str, str, int, float | None]
"""Benchmark, item, model, repeat and score."""


def check_importer(path: Path, expected: Collection[Row], *, lines: bool) -> None:
    """Check that a file gives its events whole, cut at several places, doubled and empty; its content is restored.

    The file is as the harness writes it, and `expected` everything that it holds. `lines`: the harness appends a record a line, so that a
    file that is cut off gives the events ahead of the cut. Raise `AssertionError` with what the importer did not keep.
    """
    whole = {(*row[:4], None if row[4] is None else float(row[4])) for row in expected}
    events, rejects = read_one(path)
    _require(not rejects, f"the whole file has rejects: {rejects[:3]}")
    _require(_rows(events) == whole, f"the file gives other events: {sorted(_rows(events) ^ whole, key=str)[:5]}")
    _require(all(event.item_id and event.model for event in events), "an item or a model has no name")
    with _restored(path) as data:
        for end in range(0, len(data), max(1, len(data) // _CUTS)):
            path.write_bytes(data[:end])
            events, rejects = read_one(path)
            _require(
                _rows(events) <= whole if lines else not events or _rows(events) <= whole,
                f"a file that is cut off after {end:,} of {len(data):,} bytes gives events that the whole file does not have",
            )
            _require(all(each["reason"] for each in rejects), "a reject has no reason")
        path.write_bytes(data + data)
        events, rejects = read_one(path)
        _require(_rows(events) <= whole, "a file that holds everything twice gives other events")
        _require(bool(events or rejects), "a file that holds everything twice is dropped without a word")
        path.write_bytes(b"")
        _require(read_one(path)[0] == [], "an empty file has events")


def read_one(path: Path) -> tuple[list[EventFields], list[Reject]]:
    """Return the events and the rejects of a file."""
    importer = Importer()
    segments = list(read_files(importer.find([path]), opener=importer.open))
    return [e for each in segments for e in each.events], [r for each in segments for r in each.rejects]


def _rows(events: list[EventFields]) -> set[Row]:
    return {(e.benchmark, e.item_id, e.model, e.repeat, None if e.score is None else float(e.score)) for e in events}


def _require(kept: bool, problem: str) -> None:  # noqa: FBT001 - a condition
    if not kept:
        raise AssertionError(problem)


@contextmanager
def _restored(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    try:
        yield data
    finally:
        path.write_bytes(data)

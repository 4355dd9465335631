"""Keep the intact rest of a damaged log.

The new log has the same identity, and every record is at its place, so verdicts keep their ids. In place of each damaged part there is a
line that gives it up: who folds the log has a gap there.
"""

import json
import os
from collections.abc import Iterator
from itertools import count
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Final, NamedTuple

from monitor.log.errors import LogDamaged
from monitor.log.file import durable_file
from monitor.log.file.lines import LOST_LEAST, Lines
from monitor.log.file.log import lock_log

_CHECK_RECORDS: Final = 10_000
_CHECK_BYTES: Final = 1 << 20
_HEADER_LIMIT: Final = 200


class Salvaged(NamedTuple):
    """What came of a log."""

    records: int  # intact records
    lost: list[tuple[int, int]]  # where each damaged part begins and ends; empty if the log is whole
    kept: Path | None  # the damaged log under its new name; None if nothing was changed


def salvage(path: Path) -> Salvaged:
    """Give up the damaged parts of a log, and keep the damaged file under another name."""
    path = path.resolve(strict=True)
    lock = lock_log(path)
    try:
        file = durable_file.open_file(path, os.O_RDONLY)
        try:
            return _salvage(file, path)
        finally:
            os.close(file)
    finally:
        os.close(lock)


def _salvage(file: int, path: Path) -> Salvaged:
    header = _header(file, path)
    identity = json.loads(Lines("").decode([header[:-1]], 0)[1][0])["log"]
    lines, records, lost = Lines(identity), 0, []
    with mmap(file, 0, access=ACCESS_READ) as data:
        offset, (end, size) = len(header), durable_file.last_line_end(file)
        if end < size and not lines.is_torn(data[end : end + 64], size - end):
            end = size
        while offset < end:
            whole = max(offset, data.rfind(b"\n", offset, end) + 1)
            try:
                if whole == offset:
                    raise durable_file.damaged(path, offset)
                offsets, some = durable_file.read_lines(file, path, lines, offset, whole, _CHECK_RECORDS, _CHECK_BYTES)
                offset, records = offsets[-1], records + len(some)
            except LogDamaged:
                following = min(end, lines.find(data, min(offset + LOST_LEAST, end)))
                lost.append((offset, following))
                offset = following
        if not lost and data[: len(header)] == header:
            return Salvaged(records, [], None)
        return Salvaged(records, lost, _replace(path, _parts(data, header, lines, lost, end)))


def _header(file: int, path: Path) -> bytes:
    """Return the line of the header; where one byte of it is damaged, repaired: its checksum and those of all lines rest on it."""
    begin = os.pread(file, _HEADER_LIMIT, 0)
    try:
        _, first, _ = durable_file.read_header(file, path)
    except LogDamaged:
        length = len(Lines("").encode([json.dumps({"log": "0" * 32, "version": durable_file.VERSION}).encode()], 0))
        line = begin[: length - 1]
        for k in range(len(line)):
            for byte in range(256):
                repaired = line[:k] + bytes([byte]) + line[k + 1 :]
                if Lines("").decode([repaired], 0)[1]:
                    return repaired + b"\n"
        raise
    return os.pread(file, first, 0)


def _parts(data: mmap, header: bytes, lines: Lines, lost: list[tuple[int, int]], end: int) -> Iterator[bytes]:
    """Yield the new log."""
    yield header
    offset = len(header)
    for start, stop in [*lost, (end, end)]:
        while offset < start:
            part = data[offset : min(start, offset + _CHECK_BYTES)]
            yield part
            offset += len(part)
        if stop > start:
            yield lines.lost(stop - start, start)
            offset = stop


def _replace(path: Path, parts: Iterator[bytes]) -> Path:
    """Write the new log, keep the old one under the name that is returned, and put the new one in its place."""
    draft = path.with_name(f"{path.name}.new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as new:
        new.writelines(parts)
        new.flush()
        durable_file.sync(new.fileno())
    for number in count(1):
        kept = path.with_name(f"{path.name}.damaged-{number}")
        try:
            os.link(path, kept)
        except FileExistsError:
            continue
        draft.replace(path)
        durable_file.sync_directory(path.parent)
        return kept
    raise AssertionError("there is always another number")

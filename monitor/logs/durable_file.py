"""Create, repair, write and sync the file of a log."""

import fcntl
import json
import os
import sys
import uuid
from pathlib import Path

from monitor.logs.errors import LogDamaged

VERSION = 1
_HEADER_LIMIT = 4096
_BLOCK = 1 << 16


def create(path: Path) -> None:
    """Create a log with its header; after a crash the file is complete or absent."""
    draft = path.with_name(f"{path.name}.new")
    header = json.dumps({"log": uuid.uuid4().hex, "version": VERSION}).encode() + b"\n"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_at(file, header, 0)
        sync(file)
    finally:
        os.close(file)
    draft.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def read_header(file: int, path: Path) -> tuple[str, int]:
    """Return the log's identity and its first offset."""
    advice = "move the file away, or choose another --data-dir"
    line, newline, _ = os.pread(file, _HEADER_LIMIT, 0).partition(b"\n")
    try:
        header = json.loads(line)
        identity, version = uuid.UUID(hex=header["log"]).hex, header["version"]
    except (ValueError, KeyError, TypeError, AttributeError):
        newline = b""
    if not newline:
        raise LogDamaged(f"{path} does not begin with the header of a rankwatch log; {advice}")
    if version != VERSION:
        raise LogDamaged(
            f"{path} is a log of version {version}, and this program reads version {VERSION}; upgrade rankwatch, or {advice}"
        )
    return identity, len(line) + 1


def cut_torn_line(file: int) -> tuple[int, int]:
    """Cut off everything after the last newline; return the new end of the file and the number of bytes cut."""
    size = start = os.fstat(file).st_size
    newline = -1
    while newline < 0:  # the header ends with one
        stop, start = start, max(0, start - _BLOCK)
        newline = os.pread(file, stop - start, start).rfind(b"\n")
    end = start + newline + 1
    if end < size:
        os.ftruncate(file, end)
    # Lines that a killed process wrote may be in memory only. From here on they are read and counted.
    sync(file)
    return end, size - end


def write_at(file: int, data: bytes, position: int) -> None:
    """Write all of `data` at a position."""
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, position)
        view, position = view[written:], position + written


def sync(file: int) -> None:
    """Force the written data to the disk."""
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # fsync there leaves the data in the drive's cache
    else:
        os.fdatasync(file)

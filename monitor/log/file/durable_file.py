"""Create, repair, read, write and sync the file of a log."""

import fcntl
import json
import os
import stat
import sys
import uuid
from pathlib import Path

from monitor.log.errors import LogDamaged
from monitor.log.file.lines import Lines

VERSION = 2
_HEADER_LIMIT = 4096
_BLOCK = 1 << 16
_ADVICE = "move the file away, or choose another --data-dir"


def create(path: Path) -> None:
    """Create a log with its header; after a crash the file is complete or absent."""
    draft = path.with_name(f"{path.name}.new")
    header = Lines("").encode([json.dumps({"log": uuid.uuid4().hex, "version": VERSION}).encode()], 0)
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_at(file, header, 0)
        sync(file)
    finally:
        os.close(file)
    draft.rename(path)
    sync_directory(path.parent)


def open_file(path: Path, access: int) -> int:
    """Open the file of a log; never wait for the writer of a pipe."""
    file = os.open(path, access | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise LogDamaged(f"{path} is not a regular file; {_ADVICE}")
    return file


def read_header(file: int, path: Path) -> tuple[str, int, Lines]:
    """Return the log's identity, its first offset, and how its lines are written."""
    line, newline, _ = os.pread(file, _HEADER_LIMIT, 0).partition(b"\n")
    try:
        header = json.loads(Lines("").decode([line], 0)[1][0])
        identity, version = uuid.UUID(hex=header["log"]).hex, header["version"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        newline = b""
    if not newline:
        raise LogDamaged(
            f"{path} does not begin with the header of a rankwatch log, or the header is damaged; restore the file, {_ADVICE}"
        )
    if version != VERSION:
        raise LogDamaged(
            f"{path} is a log of version {version}, and this program reads version {VERSION}; upgrade rankwatch, or {_ADVICE}"
        )
    return identity, len(line) + 1, Lines(identity)


def cut_torn_line(file: int, path: Path, lines: Lines) -> tuple[int, int]:
    """Cut off an incomplete last line; return the new end of the file and the number of bytes cut."""
    end, size = last_line_end(file)
    if end < size:
        check_torn_line(file, path, lines, end, size)
        os.ftruncate(file, end)
    # Lines that a killed process wrote may be in memory only. From here on they are read and counted.
    sync(file)
    return end, size - end


def check_torn_line(file: int, path: Path, lines: Lines, start: int, size: int) -> None:
    """Raise `LogDamaged` if a last line without a newline is not what a crash in an append leaves."""
    if not lines.is_torn(os.pread(file, _HEADER_LIMIT, start), size - start):
        raise damaged(path, start)


def last_line_end(file: int) -> tuple[int, int]:
    """Return the offset after the last newline, and the size of the file."""
    size = start = os.fstat(file).st_size
    newline = -1
    while newline < 0:  # the header ends with one
        stop, start = start, max(0, start - _BLOCK)
        newline = os.pread(file, stop - start, start).rfind(b"\n")
    return start + newline + 1, size


def read_lines(
    file: int, path: Path, lines: Lines, offset: int, end: int, max_records: int, max_bytes: int
) -> tuple[list[int], list[bytes]]:
    """Read records from `offset` on, where a line begins before `end`; return one offset more than records."""
    # If the first line gives up a damaged part of the log, return where it begins and ends, and no records.
    available = end - offset
    data = os.pread(file, min(max_bytes, available), offset)
    cut = data.rfind(b"\n")
    while cut < 0:
        more = os.pread(file, min(max(len(data), 1), available - len(data)), offset + len(data))
        if not more:
            raise LogDamaged(
                f"{path} was shortened by another program: it ends inside the record at offset {offset}; restore the file"
            )
        data += more
        cut = data.find(b"\n")
    texts = data[:cut].split(b"\n", max_records)
    del texts[max_records:]
    offsets, records = lines.decode(texts, offset)
    if not records:
        if lines.is_lost(texts[0], offset):
            return [offset, offset + len(texts[0]) + 1], []
        raise damaged(path, offset)
    return offsets, records


def damaged(path: Path, offset: int) -> LogDamaged:
    """Return the error of a line that was changed after it was appended."""
    return LogDamaged(
        f"{path} is damaged at byte {offset}: the line there does not match its checksum, because the disk or another program changed it; "
        "restore the file from a backup, or keep the rest of it with `rankwatch state salvage`, which names what is lost"
    )


def write_at(file: int, data: bytes, position: int) -> None:
    """Write all of `data` at a position."""
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, position)
        view, position = view[written:], position + written


def sync_directory(path: Path) -> None:
    """Force the names in a directory to the disk."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def sync(file: int) -> None:
    """Force the written data to the disk."""
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # fsync there leaves the data in the drive's cache
    else:
        os.fdatasync(file)

"""The embedded log: one append-only file of JSON lines, written by one process and read by the same one.

The first line names the log; behind it every line is a record, and a record's offset is the position of its first byte.
What `FileLog.append` acknowledges is on the disk, and what `FileLog.read` returns is on the disk.
"""

import asyncio
import fcntl
import json
import os
import sys
import threading
import uuid
from collections.abc import Sequence
from itertools import accumulate
from operator import add
from pathlib import Path
from typing import Self

from monitor.crash_points import armed, crash_point
from monitor.engine.chunk import Chunk

VERSION = 1
_HEADER_LIMIT = 4096
_BLOCK = 1 << 16


class LogError(Exception):
    """Something about a file log that its owner has to decide."""


class LogLocked(LogError):  # noqa: N818 - the state of the log is its name
    """Another process appends to this log."""


class LogDamaged(LogError):  # noqa: N818
    """The file is not a log this version can read."""


class LogClosed(LogError):  # noqa: N818
    """The log takes no appends any more: it was closed, or its disk failed in a way that cannot be undone."""


class OffsetOutOfRange(LogError, ValueError):  # noqa: N818
    """An offset at which no record of this log begins."""


class FileLog:
    """An append-only file of records with one partition; open it with `FileLog.open`, use it from one event loop.

    Attributes
    ----------
    path
        The file.
    identity
        The name the log was given when it was created, 32 hexadecimal digits: two logs never share it.
    first_offset
        Offset of the first record.
    bytes_cut
        How many bytes of a torn last line were cut off on opening; 0 after an orderly stop.
    """

    def __init__(self, path: Path, file: int, lock: int) -> None:
        self.path = path
        self._file = file
        self._lock = lock
        self.identity, self.first_offset = _read_header(file, path)
        self._durable_end, self.bytes_cut = _cut_torn_line(file)
        self._waiting: list[tuple[bytes, asyncio.Future[int]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._grown = asyncio.Event()
        self._closed = False
        self._failure: str | None = None
        # A write may outlive the task that waits for it; the descriptor must not be closed under it.
        self._writing = threading.Lock()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open the log at `path`, or create it, and hold it alone until `close`.

        Parameters
        ----------
        path
            The file; its directory must exist. ``<path>.lock`` beside it holds the process id of whoever has the log.

        Raises
        ------
        LogLocked
            If another process has the log.
        LogDamaged
            If the file does not begin with the header of a log.
        OSError
            If the directory cannot be written.
        """
        path = Path(path).resolve()  # the lock lies beside the file itself, whatever leads to it
        lock = _acquire_lock(path)
        try:
            if not path.exists():
                _create(path)
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                return cls(path, file, lock)
            except BaseException:
                os.close(file)
                raise
        except BaseException:
            os.close(lock)
            raise

    @property
    def durable_end(self) -> int:
        """Offset right behind the last record that is on the disk: where the next one will begin."""
        return self._durable_end

    async def append(self, records: Sequence[bytes]) -> int:
        """Append `records` in order and return once they are on the disk.

        Appends that wait at the same time share one write and one sync. If the waiting task is cancelled, its records
        may or may not be in the log.

        Parameters
        ----------
        records
            One JSON text each, without a newline.

        Returns
        -------
        The offset right behind the last of `records`; for no records, `durable_end`.

        Raises
        ------
        ValueError
            If a record is empty or holds a newline; nothing is appended.
        OSError
            If the disk refused (full, a quota): nothing of this append is in the log, and later appends may succeed.
        LogClosed
            If the log is closed, or a sync failed: nothing more can be appended until it is opened again.
        """
        if self._closed or self._failure:
            raise LogClosed(self._failure or f"{self.path} is closed: open the log again to append")
        if not records:
            return self._durable_end
        block = b"\n".join(records) + b"\n"
        if block.count(b"\n") != len(records) or not all(records):
            number = next(i for i, record in enumerate(records) if not record or b"\n" in record)
            found = "holds a newline" if records[number] else "is empty"
            raise ValueError(f"records[{number}] {found}: a record is one JSON text on one line")
        acknowledged: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((block, acknowledged))
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush(), name="filelog-flush")
        return await acknowledged

    async def wait_beyond(self, offset: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - answers, not raises
        """Wait until there is a record at or behind `offset`; False if there is none after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                while self._durable_end <= offset:
                    await self._grown.wait()
        except TimeoutError:
            return False
        return True

    def check_offset(self, offset: int) -> None:
        """Raise `OffsetOutOfRange` unless a record begins at `offset` or `offset` is `durable_end`."""
        if not self.first_offset <= offset <= self._durable_end:
            raise OffsetOutOfRange(
                f"offset {offset} is outside {self.path}, which holds {self.first_offset} to {self._durable_end}: "
                "it was replaced or has lost its end; restore the file, or start over in an empty data directory"
            )
        # The byte before a record ends the line before it.
        if os.pread(self._file, 1, offset - 1) != b"\n":
            raise OffsetOutOfRange(
                f"offset {offset} is inside a record of {self.path}: give a position where a line begins"
            )

    def read(self, offset: int, max_records: int = 2000, max_bytes: int = 1 << 20) -> Chunk | None:
        """Read the records from `offset` on.

        Parameters
        ----------
        offset
            Where a record begins, or `durable_end`.
        max_records, max_bytes
            Bounds of the chunk, at least 1; a first record longer than `max_bytes` is still read whole.

        Returns
        -------
        One record or more (partition 0), or None if `offset` is `durable_end`.

        Raises
        ------
        OffsetOutOfRange
            If no record begins at `offset`.
        LogDamaged
            If the file has become shorter under us.
        """
        self.check_offset(offset)
        available = self._durable_end - offset
        if not available:
            return None
        data = os.pread(self._file, min(max_bytes, available), offset)
        cut = data.rfind(b"\n")
        while cut < 0:
            more = os.pread(self._file, min(len(data), available - len(data)), offset + len(data))
            if not more:
                raise LogDamaged(f"{self.path} ends inside the record at {offset}: something else has shortened it")
            data += more
            cut = data.find(b"\n")
        records = data[:cut].split(b"\n", max_records)
        del records[max_records:]
        offsets = list(map(add, accumulate(map(len, records), initial=offset), range(len(records) + 1)))
        return Chunk(partition=0, start=offset, end=offsets.pop(), offsets=offsets, records=records)

    async def close(self) -> None:
        """Let the appends under way finish, then give the log up; closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._flusher is not None and not self._flusher.done():
            await asyncio.wait((self._flusher,))
        with self._writing:
            os.close(self._file)
            self._file = -1  # a late read must fail, and not find another file under the number
        os.close(self._lock)

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = [(block, acknowledged) for block, acknowledged in self._waiting if not acknowledged.done()]
            self._waiting.clear()
            end = self._durable_end
            try:
                await loop.run_in_executor(None, self._write, b"".join(block for block, _ in group))
            except Exception as error:  # noqa: BLE001 - whatever it is, those who wait for it must hear it
                for _, acknowledged in group:
                    if not acknowledged.done():
                        acknowledged.set_exception(error)
                continue
            for block, acknowledged in group:
                end += len(block)
                if not acknowledged.done():
                    acknowledged.set_result(end)
            grown, self._grown = self._grown, asyncio.Event()
            grown.set()

    def _write(self, data: bytes) -> None:
        with self._writing:
            if self._failure:
                raise LogClosed(self._failure)
            start = self._durable_end
            try:
                if armed("append-torn"):
                    _write_at(self._file, data[: len(data) // 2], start)
                    crash_point("append-torn")
                _write_at(self._file, data, start)
                crash_point("append")
            except OSError as error:
                self._take_back(start)
                raise OSError(
                    error.errno, f"{error.strerror}; nothing of this append was kept", str(self.path)
                ) from error
            try:
                _sync(self._file)
            except OSError as error:
                # The kernel may now take the pages it failed to write for clean, so that the next sync succeeds without
                # them: no later acknowledgement would mean anything until the file is read back from the disk.
                self._take_back(start)
                self._fail(error)
                raise LogClosed(self._failure) from error
            self._durable_end = start + len(data)

    def _take_back(self, end: int) -> None:
        """Cut the file back to `end`, so that what was refused cannot come back after a crash."""
        try:
            os.ftruncate(self._file, end)
            _sync(self._file)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._failure = (
            f"{self.path} cannot be appended to any more, a write could not be brought to the disk ({error.strerror}): "
            "mend the disk, then start again"
        )


def _acquire_lock(path: Path) -> int:
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    except BlockingIOError:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(lock)
        raise LogLocked(
            f"another rankwatch (pid {holder}) is using {path.parent}: stop it, or choose another --data-dir"
        ) from None
    except BaseException:
        os.close(lock)
        raise
    return lock


def _create(path: Path) -> None:
    """Make a log that is there with its whole header or not at all, whenever the machine stops."""
    draft = path.with_name(f"{path.name}.new")
    header = json.dumps({"log": uuid.uuid4().hex, "version": VERSION}).encode() + b"\n"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write_at(file, header, 0)
        _sync(file)
    finally:
        os.close(file)
    draft.rename(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _read_header(file: int, path: Path) -> tuple[str, int]:
    """Return the log's identity and its first offset."""
    remedy = "move the file away, or choose another --data-dir"
    line, newline, _ = os.pread(file, _HEADER_LIMIT, 0).partition(b"\n")
    try:
        header = json.loads(line)
        identity, version = uuid.UUID(hex=header["log"]).hex, header["version"]
    except (ValueError, KeyError, TypeError, AttributeError):
        newline = b""
    if not newline:
        raise LogDamaged(f"{path} does not begin with the header of a rankwatch log: {remedy}")
    if version != VERSION:
        raise LogDamaged(
            f"{path} is a log of version {version}, this program reads version {VERSION}: upgrade it, or {remedy}"
        )
    return identity, len(line) + 1


def _cut_torn_line(file: int) -> tuple[int, int]:
    """Cut off what follows the last newline; return the end of the file then, and how many bytes were cut."""
    size = start = os.fstat(file).st_size
    newline = -1
    while newline < 0:  # the header ends with one
        stop, start = start, max(0, start - _BLOCK)
        newline = os.pread(file, stop - start, start).rfind(b"\n")
    end = start + newline + 1
    if end < size:
        os.ftruncate(file, end)
    # Whole lines that a killed process wrote may be in memory only; from here on they are read and counted.
    _sync(file)
    return end, size - end


def _write_at(file: int, data: bytes, position: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(file, view, position)
        view, position = view[written:], position + written


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)  # fsync there leaves the data in the drive's cache
    else:
        os.fdatasync(file)

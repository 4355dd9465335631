"""The embedded log: an append-only file of JSON lines that one process writes and reads.

The first line identifies the log. Every later line has one record and its checksum (`monitor.log.file.lines`); the offset of a record is
the position of its line. Records that `FileLog.append` acknowledged, and records that `FileLog.read` returns, are on the disk.
"""

import asyncio
import os
import threading
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final, Self

from monitor.crash_points import armed, crash_point
from monitor.durable import lock_file
from monitor.log.errors import LogClosed, LogLocked, OffsetOutOfRange
from monitor.log.file import durable_file
from schemas.records.chunks import Chunk

_CHECK_RECORDS: Final = 10_000
_CHECK_BYTES: Final = 1 << 20
_AFTER_CHANGE: Final = "restore it, or delete the state (the folder valkey next to it) to fold this log from its start"


class FileLog:
    """An append-only file of records with one partition; open it with `FileLog.open`, use it from one event loop."""

    def __init__(self, path: Path, file: int, lock: int) -> None:
        self.path = path
        self._file = file
        self._lock = lock
        self.identity, self.first_offset, self._lines = durable_file.read_header(file, path)
        self._durable_end, self.bytes_cut = durable_file.cut_torn_line(file, path, self._lines)
        self._waiting: list[tuple[Sequence[bytes], asyncio.Future[int]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._grown = asyncio.Event()
        self._closed = False
        self._failure: str | None = None
        # A write may outlive the task that waits for it; the descriptor must not be closed under it.
        self._writing = threading.Lock()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open or create the log at `path`, and lock it until `close`."""
        path = Path(path).resolve()  # links to one log share one lock
        lock = lock_log(path)
        try:
            if not path.exists():
                durable_file.create(path)
            file = durable_file.open_file(path, os.O_RDWR)
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
        """Offset after the last record on the disk, where the next record begins."""
        return self._durable_end

    async def append(self, records: Sequence[bytes]) -> int:
        """Append `records` in order and return once they are on the disk."""
        # Appends that wait at the same time share one write and one sync. If the waiting task is cancelled, its records may or may not be
        # in the log.
        if self._closed or self._failure:
            raise LogClosed(self._failure or f"{self.path} is closed; open the log again to append")
        if not records:
            return self._durable_end
        for number, record in enumerate(records):
            if not record or b"\n" in record:
                fault = "holds a newline" if record else "is empty"
                raise ValueError(f"records[{number}] {fault}: a record is one JSON text on one line")
        acknowledged: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting.append((tuple(records), acknowledged))
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush(), name="filelog-flush")
        return await acknowledged

    async def wait_beyond(self, offset: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - answers, not raises
        """Wait until there is a record at or after `offset`; return False if there is none after `timeout` seconds."""
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
                f"offset {offset} is outside {self.path}, which holds {self.first_offset} to {self._durable_end}, because it was replaced "
                f"or has lost its end; {_AFTER_CHANGE}"
            )
        # The byte before a record ends the line before it.
        if os.pread(self._file, 1, offset - 1) != b"\n":
            raise OffsetOutOfRange(
                f"offset {offset} is inside a record of {self.path}, because the file was replaced or changed; {_AFTER_CHANGE}"
            )

    def read(self, offset: int, max_records: int = 2000, max_bytes: int = 1 << 20) -> Chunk | None:
        """Read the records from `offset` on."""
        self.check_offset(offset)
        if offset == self._durable_end:
            return None
        offsets, records = durable_file.read_lines(
            self._file, self.path, self._lines, offset, self._durable_end, max_records, max_bytes
        )
        end = offsets.pop()
        if not records:
            return Chunk(partition=0, start=offset, end=end, offsets=[], records=[], lost=True)
        return Chunk(partition=0, start=offset, end=end, offsets=offsets, records=records)

    async def close(self) -> None:
        """Finish the appends under way, then close and unlock the file; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._flusher is not None and not self._flusher.done():
            await asyncio.wait((self._flusher,))
        with self._writing:
            os.close(self._file)
            self._file = -1  # a late read must fail, and not hit another file that got the number
        os.close(self._lock)

    async def _flush(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            group = [(records, acknowledged) for records, acknowledged in self._waiting if not acknowledged.done()]
            self._waiting.clear()
            end = self._durable_end
            try:
                await loop.run_in_executor(
                    None, self._write, list(chain.from_iterable(records for records, _ in group))
                )
            except Exception as error:  # noqa: BLE001 - every waiting append gets it
                for _, acknowledged in group:
                    if not acknowledged.done():
                        acknowledged.set_exception(error)
                continue
            for records, acknowledged in group:
                end += self._lines.size(records)
                if not acknowledged.done():
                    acknowledged.set_result(end)
            grown, self._grown = self._grown, asyncio.Event()
            grown.set()

    def _write(self, records: Sequence[bytes]) -> None:
        with self._writing:
            if self._failure:
                raise LogClosed(self._failure)
            start = self._durable_end
            data = self._lines.encode(records, start)
            try:
                if armed("append-torn"):
                    durable_file.write_at(self._file, data[: len(data) // 2], start)
                    crash_point("append-torn")
                durable_file.write_at(self._file, data, start)
                crash_point("append")
            except OSError as error:
                self._cut_back(start)
                raise OSError(
                    error.errno, f"{error.strerror}; nothing of this append was kept", str(self.path)
                ) from error
            try:
                durable_file.sync(self._file)
            except OSError as error:
                # The kernel may now treat the pages it failed to write as clean, so that the next sync succeeds without them. No later
                # acknowledgement would be true until the file is read back from the disk.
                self._cut_back(start)
                self._fail(error)
                raise LogClosed(self._failure) from error
            self._durable_end = start + len(data)

    def _cut_back(self, end: int) -> None:
        """Cut the file back to `end`, so that a rejected append cannot return after a crash."""
        try:
            os.ftruncate(self._file, end)
            durable_file.sync(self._file)
        except OSError as error:
            self._fail(error)

    def _fail(self, error: OSError) -> None:
        self._failure = (
            f"{self.path} accepts no more appends, because a write could not be synced to the disk ({error.strerror}); fix the disk, then "
            "start again"
        )


def check_log(path: Path) -> tuple[int, int]:
    """Read a log to its end, without the lock; return its records, and how many bytes were given up."""
    file = durable_file.open_file(path, os.O_RDONLY)
    try:
        _, offset, lines = durable_file.read_header(file, path)
        end, size = durable_file.last_line_end(file)
        count = lost = 0
        while offset < end:
            offsets, records = durable_file.read_lines(file, path, lines, offset, end, _CHECK_RECORDS, _CHECK_BYTES)
            lost += 0 if records else offsets[-1] - offset
            offset, count = offsets[-1], count + len(records)
        if end < size:
            durable_file.check_torn_line(file, path, lines, end, size)
        return count, lost
    finally:
        os.close(file)


def lock_log(path: Path) -> int:
    """Lock a log; return the descriptor that holds the lock. Raise `LogLocked` if another process has it."""
    lock = lock_file(f"{path}.lock")
    if lock is None:
        holder = Path(f"{path}.lock").read_text("ascii", "replace").strip() or "unknown"
        raise LogLocked(
            f"another rankwatch (pid {holder}) is using {path.parent}; stop it, or choose another --data-dir"
        )
    os.ftruncate(lock, 0)
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    return lock

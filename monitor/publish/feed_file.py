"""Append verdict changes to a feed file: one JSON object per line, each change once."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from schemas.results.changes import AnyChange, change_order, read_change


class FeedFile:
    """Appends verdict changes to a file; after a crash it skips those that the file already holds."""

    name = "feed"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = self._recover()

    def _recover(self) -> tuple[int, int]:
        """Cut a torn last line; return the order of the last change in the file."""
        if not self._path.exists():
            return (-1, -1)
        with self._path.open("rb+") as file:
            content = file.read()
            end = content.rfind(b"\n") + 1
            if end < len(content):
                file.truncate(end)
            last = content[:end].rstrip(b"\n").rpartition(b"\n")[2]
        if not last:
            return (-1, -1)
        try:
            return change_order(read_change(msgspec.json.decode(last)).id)
        except msgspec.MsgspecError as error:
            raise ValueError(
                f"{self._path}: the last line is not a verdict change; move the file away, and it is written again"
            ) from error

    async def publish(self, changes: Sequence[AnyChange]) -> None:
        """Write the changes that the file lacks, durably."""
        new = [change for change in changes if change_order(change.id) > self._last]
        if new:
            await asyncio.to_thread(self._write, b"".join(change.as_json() + b"\n" for change in new))
            self._last = change_order(new[-1].id)

    def _write(self, data: bytes) -> None:
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            end = os.fstat(file).st_size
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(file, view) :]
                os.fdatasync(file)
            except OSError as error:
                # A later retry must not append after half a line.
                with suppress(OSError):
                    os.ftruncate(file, end)
                raise OSError(
                    error.errno, f"{error.strerror}; fix the disk, then start again: nothing is lost", str(self._path)
                ) from error
        finally:
            os.close(file)

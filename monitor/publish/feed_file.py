"""The feed of verdict changes as a file: one JSON object a line, each change once."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from schemas.changes import VerdictChange


class FeedFile:
    """Appends verdict changes to a file; one that is already there (after a crash) is not written again."""

    name = "feed"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last = self._recover()

    @staticmethod
    def _order(change_id: str) -> tuple[int, int]:
        offset, _, sequence = change_id.partition("-")
        return int(offset), int(sequence)

    def _recover(self) -> tuple[int, int]:
        """Cut a torn last line, and find the last change that was written."""
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
            return self._order(VerdictChange.model_validate_json(last).id)
        except ValidationError as error:
            raise ValueError(
                f"{self._path}: the last line is no verdict change: move the file away, it is written anew"
            ) from error

    async def publish(self, changes: Sequence[VerdictChange]) -> None:
        """Write the changes that are not there yet, durably."""
        fresh = [change for change in changes if self._order(change.id) > self._last]
        if fresh:
            await asyncio.to_thread(
                self._write, b"".join(change.model_dump_json().encode() + b"\n" for change in fresh)
            )
            self._last = self._order(fresh[-1].id)

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
                # What is published again must not stand behind half a line.
                with suppress(OSError):
                    os.ftruncate(file, end)
                raise OSError(
                    error.errno, f"{error.strerror}; mend the disk, then start again: nothing is lost", str(self._path)
                ) from error
        finally:
            os.close(file)

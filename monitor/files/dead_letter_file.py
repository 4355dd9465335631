"""The file of rejected records, for a person to look at."""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

from schemas.records.chunks import DeadLetter

_BLOCK: Final = 1 << 16

Place = tuple[int, int]  # the place of a letter in the log: the offset of its record, and its index in the record


class DeadLetterFile:
    """An append-only file of dead letters as JSON lines, in the order of the log."""

    # Letters are on the disk when `write` returns, so the state may move on. After a crash the log is folded again from the stored state,
    # and letters that are already in the file are skipped.

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        fresh = not self.path.exists()
        self._file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if fresh:
                _sync_folder(self.path.parent)
            self._cut_torn_line()
            self.last, self._at_last = self._find_last()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def write(self, letters: Sequence[DeadLetter]) -> int:
        """Append the letters that are not in the file yet; return how many."""
        fresh = list(self._unwritten(letters))
        if not fresh:
            return 0
        data = b"".join(json.dumps(_row(letter)).encode("ascii") + b"\n" for letter in fresh)
        end = os.fstat(self._file).st_size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError as error:
            os.ftruncate(self._file, end)
            raise OSError(
                error.errno, f"{error.strerror}; fix the disk and start again, nothing is lost", str(self.path)
            ) from error
        for place in map(_place, fresh):
            self.last, self._at_last = place, self._at_last + 1 if place == self.last else 1
        return len(fresh)

    def _unwritten(self, letters: Iterable[DeadLetter]) -> Iterator[DeadLetter]:
        last, written = self.last, self._at_last
        for letter in letters:
            place = _place(letter)
            if last is not None and (place < last or (place == last and written > 0)):
                written -= place == last
                continue
            yield letter

    def _cut_torn_line(self) -> None:
        size = os.fstat(self._file).st_size
        torn = next(self._lines_backwards(), b"")
        if torn:
            os.ftruncate(self._file, size - len(torn))
            os.fsync(self._file)

    def _find_last(self) -> tuple[Place | None, int]:
        """Return the place of the last letter, and how many letters have it."""
        last, count = None, 0
        for line in self._lines_backwards():
            if not line:
                continue
            place = self._parse(line)
            if last is not None and place != last:
                break
            last, count = place, count + 1
        return last, count

    def _parse(self, line: bytes) -> Place:
        try:
            letter = json.loads(line)
            return int(letter["offset"]), int(letter["index"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{self.path} is not a file of dead letters; move it away, or choose another --data-dir"
            ) from error

    def _lines_backwards(self) -> Iterator[bytes]:
        """Yield the lines from the last to the first, beginning with the text after the last newline."""
        start = os.fstat(self._file).st_size
        rest = b""
        while start > 0:
            stop, start = start, max(0, start - _BLOCK)
            first, *lines = (os.pread(self._file, stop - start, start) + rest).split(b"\n")
            yield from reversed(lines)
            rest = first
        yield rest


def _row(letter: DeadLetter) -> dict[str, Any]:
    """Return the letter as the file has it: with its producer only where one is known."""
    row = letter._asdict()
    if letter.producer is None:
        del row["producer"]
    return row


def _place(letter: DeadLetter) -> Place:
    return letter.offset, letter.index


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

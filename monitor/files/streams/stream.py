"""Read the bytes of a file that may still be written: plain, gunzipped, or converted to text."""

import codecs
import json
import os
import zlib
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from monitor.files.streams.regular import open_regular
from schemas.records.decode import BOM

if TYPE_CHECKING:
    from schemas.records.columns import EventColumns

_RAW_BYTES: Final = 1 << 16
GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31  # zlib's number for a window of 32 KB with a gzip header and trailer around the data


def is_whole(line: bytes) -> bool:
    """Return whether a line without a newline is complete: a JSON object or array, which cannot go on."""
    try:
        return isinstance(json.loads(line.removeprefix(BOM)), dict | list)
    except (ValueError, RecursionError):
        return False


def is_record(line: bytes) -> bool:
    """Return whether a line is a whole JSON object."""
    try:
        return isinstance(json.loads(line.removeprefix(BOM)), dict)
    except (ValueError, RecursionError):
        return False


class Stream:
    """An open file, read from its start; at its end a later read may return more."""

    translated = whole = half_written = False
    note: Callable[[str], None]  # takes a sentence for the person who reads the file
    remedy = "copy the file again, or write it again"  # for damage

    def __init__(self, path: Path) -> None:
        self.note = _ignore
        self.file = open_regular(path)
        self.position = 0
        self.damage: str | None = None

    @property
    def unfinished(self) -> str | None:
        """What is missing at the end of the file, or None."""
        return None

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; none if there are no more for now."""
        data = self.file.read(size)
        self.position += len(data)
        return data

    def run(self) -> "EventColumns | None":
        """Return events whose lines need not be written, as a reader has no use for them; None if lines come next."""
        return None

    def finish(self) -> bytes:
        """Return what a complete file still holds; only translated streams keep anything back."""
        return b""

    def note_half_written(self) -> None:
        """Note that the last line is not read."""
        self.half_written = True
        self.note("the last line is half-written; it is read once it is complete")

    def status(self) -> os.stat_result:
        """Return the status of the open file, which may no longer be the one at its path."""
        return os.fstat(self.file.fileno())

    def peek(self, size: int, position: int) -> bytes:
        """Read up to `size` bytes of the file at `position` without moving."""
        return os.pread(self.file.fileno(), size, position)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _ignore(_: str) -> None:
    pass


class GzipStream(Stream):
    """The contents of a gzip file: all its members, one after the other, as far as they have been written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._raw = b""
        self._inflate = zlib.decompressobj(_GZIP_WINDOW)
        self._inside = False

    @property
    def unfinished(self) -> str | None:
        """Where the file breaks off inside a gzip member, or None."""
        return f"the gzip data breaks off at byte {self.position:,} of the file" if self._inside or self._raw else None

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes of the contents; none if there are no more for now, or ever (`damage`)."""
        while self.damage is None:
            if self._inside:
                if data := self._step(size):
                    return data
                if self._raw or not self._inside:
                    continue
            elif self._at_member():
                continue
            if self.damage is None and not self._more():
                return b""
        return b""

    def _more(self) -> bool:
        raw = self.file.read(_RAW_BYTES)
        self.position += len(raw)
        self._raw += raw
        return bool(raw)

    def _at_member(self) -> bool:
        """Skip the zeros that some programs pad with, up to the next member; return False if that needs more bytes."""
        self._raw = self._raw.lstrip(b"\0")
        if len(self._raw) >= len(GZIP_MAGIC) and not self._raw.startswith(GZIP_MAGIC):
            self._break("the bytes there are not gzip data")
            return False
        self._inside = len(self._raw) >= len(GZIP_MAGIC)
        return self._inside

    def _step(self, size: int) -> bytes:
        before = self._inflate.copy()
        try:
            data = self._inflate.decompress(self._raw, size)
        except zlib.error:
            data = _salvage(before, self._raw, size)
            self._break("a checksum or a code in it is wrong")
            return data
        if self._inflate.eof:
            self._raw = self._inflate.unused_data
            self._inflate, self._inside = zlib.decompressobj(_GZIP_WINDOW), False
        else:
            self._raw = self._inflate.unconsumed_tail
        return data

    def _break(self, reason: str) -> None:
        self.damage = f"the gzip data is damaged before byte {self.position:,} of the file ({reason})"


def _salvage(inflate: "zlib._Decompress", raw: bytes, size: int) -> bytes:
    """Return the bytes before the damage; zlib drops them if it meets the damage in the same call."""
    low, high = 0, size
    while high - low > 1:
        middle = (low + high) // 2
        try:
            inflate.copy().decompress(raw, middle)
        except zlib.error:
            high = middle
        else:
            low = middle
    data = inflate.decompress(raw, low) if low else b""
    # zlib looks ahead even when its output is full, so the last byte comes only if the input is fed byte by byte.
    rest = inflate.unconsumed_tail if low else raw
    for k in range(len(rest)):
        try:
            data += inflate.decompress(rest[k : k + 1])
        except zlib.error:
            break
    return data


class ConversionError(Exception):
    """What is wrong with a file of another encoding, and what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}; {remedy}")
        self.problem, self.remedy = problem, remedy


class ConvertedStream(Stream):
    """The contents of a file in an encoding that has to be read from its start, as text; such a file is written again as a whole."""

    whole = True

    def __init__(self, inner: Stream, convert: Callable[["ConvertedStream"], Generator[bytes, None, None]]) -> None:
        self.note, self.file, self.inner, self.damage = inner.note, inner.file, inner, None
        self._status = inner.status()  # any later change must be noticed
        self._pieces = convert(self)
        self.position = 0

    def read(self, size: int) -> bytes:
        """Return about `size` bytes of the text."""
        parts: list[bytes] = []
        length, self.position = 0, self._status.st_size
        try:
            while length < size and (part := next(self._pieces, b"")):
                parts.append(part)
                length += len(part)
        except ConversionError as error:
            self.damage, self.remedy = error.problem, error.remedy
        return b"".join(parts)

    def status(self) -> os.stat_result:
        """Return the status of the file when it was opened."""
        return self._status

    def close(self) -> None:
        """Close the file."""
        self._pieces.close()
        super().close()


class Utf16Stream(Stream):
    """The contents of a stream of UTF-16 text, as UTF-8 without a byte order mark."""

    def __init__(self, inner: Stream) -> None:
        self.note, self.file, self.inner = inner.note, inner.file, inner
        self._decoder = codecs.getincrementaldecoder("utf-16")()
        self._damage: str | None = None

    @property
    def position(self) -> int:  # type: ignore[override]
        """How many bytes of the file have been read."""
        return self.inner.position

    @property
    def damage(self) -> str | None:  # type: ignore[override]
        """Why nothing more can be read, or None."""
        return self._damage or self.inner.damage

    @property
    def unfinished(self) -> str | None:
        """What is missing at the end of the file, or None."""
        inside = self._decoder.getstate()[0]
        return self.inner.unfinished or ("the UTF-16 text breaks off inside a character" if inside else None)

    def read(self, size: int) -> bytes:
        """Read about `size` bytes of the contents; none if there are no more for now, or ever (`damage`)."""
        while self._damage is None and (data := self.inner.read(size)):
            try:
                text = self._decoder.decode(data)
            except UnicodeDecodeError as error:
                text = error.object[: error.start].decode(error.encoding)
                self._damage = f"the UTF-16 text is damaged before byte {self.position:,} of the file"
            if text:
                return text.encode()
        return b""

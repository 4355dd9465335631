"""The bytes of a file that may still be written: as they stand, or gunzipped."""

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

_RAW_BYTES: Final = 1 << 16
_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31
"""What zlib calls a window of 32 KB with a gzip header and trailer around the data."""


class Stream:
    """An open file, read from its start; at its end a later read may bring more.

    Attributes
    ----------
    position : int
        How many bytes of the file have been read, before any gunzipping.
    damage : str or None
        Why nothing more can be read, once that is so.
    translated : bool
        Whether the contents are not what stands in the file, but what that comes to (`monitor.ingest.files.translated`).
    whole : bool
        Whether any change of the file changes all of it, so that it has to be opened again.
    tell : callable
        Takes what whoever reads the file should know.
    """

    translated = whole = False
    tell: Callable[[str], None]

    def __init__(self, path: Path) -> None:
        self.tell = _to_nobody
        self.file = path.open("rb", buffering=0)
        self.position = 0
        self.damage: str | None = None

    @property
    def unfinished(self) -> str | None:
        """Say what is missing if nothing more came, or None."""
        return None

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; none where there are no more for now."""
        data = self.file.read(size)
        self.position += len(data)
        return data

    def finish(self) -> bytes:
        """Return what the rest comes to if nothing more is written; none for contents that are what stands in the file."""
        return b""

    def tell_half_written(self) -> None:
        """Tell that the last line is left alone."""
        self.tell("its last line is half-written, and is left unread until it ends")

    def status(self) -> os.stat_result:
        """Return the status of the open file, which may no longer be the one at its path."""
        return os.fstat(self.file.fileno())

    def peek(self, size: int, position: int) -> bytes:
        """Read up to `size` bytes of the file at `position` without moving."""
        return os.pread(self.file.fileno(), size, position)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


def _to_nobody(_: str) -> None:
    pass


class GzipStream(Stream):
    """The contents of a gzip file: of all its members, one after the other, as far as they have been written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._raw = b""
        self._inflate = zlib.decompressobj(_GZIP_WINDOW)
        self._inside = False

    @property
    def unfinished(self) -> str | None:
        """Say where the file breaks off inside a gzip member, or None."""
        return f"the gzip data breaks off at byte {self.position:,} of the file" if self._inside or self._raw else None

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes of the contents; none where there are no more for now, or ever (`damage`)."""
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
        """Go to the next member: past the zeros some programs pad with. False where more bytes are needed to tell."""
        self._raw = self._raw.lstrip(b"\0")
        if len(self._raw) >= len(_GZIP_MAGIC) and not self._raw.startswith(_GZIP_MAGIC):
            self._break("what begins there is not gzip data")
            return False
        self._inside = len(self._raw) >= len(_GZIP_MAGIC)
        return self._inside

    def _step(self, size: int) -> bytes:
        before = self._inflate.copy()
        try:
            data = self._inflate.decompress(self._raw, size)
        except zlib.error as error:
            data = _salvage(before, self._raw, size)
            self._break(str(error).rpartition(": ")[2])
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
    """Return what comes before the damage: zlib drops it when it meets the damage in the same call."""
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
    # With its output full zlib still looks ahead at what follows, so the last byte only comes by withholding that.
    rest = inflate.unconsumed_tail if low else raw
    for k in range(len(rest)):
        try:
            data += inflate.decompress(rest[k : k + 1])
        except zlib.error:
            break
    return data


def open_stream(path: Path) -> Stream:
    """Open a file, gunzipping it if its name or its first two bytes say so.

    Raises
    ------
    OSError
        If it cannot be opened.
    """
    if path.name.endswith(".gz"):
        return GzipStream(path)
    stream = Stream(path)
    if stream.peek(len(_GZIP_MAGIC), 0) != _GZIP_MAGIC:
        return stream
    stream.close()
    return GzipStream(path)

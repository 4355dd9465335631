"""Streams of event lines, translated from logs of other programs.

Such a log is read as if it were a file of event lines. Positions, hashes and sending only what is new therefore work for all formats, and a
log that is rewritten with the same scores in the same order has not changed.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Union

from monitor.files.streams.event_lines import RAW_BYTES, EventLines, EventLineWriter, Translator
from monitor.files.streams.regular import Broken, Refusal
from monitor.files.streams.stream import Stream
from schemas.records.text import Fault

if TYPE_CHECKING:
    from schemas.records.run_columns import RunEvents

MAX_SAMPLE_BYTES: Final = 1 << 26  # longest line of a log: with its transcript a sample is much longer than its score

ChooseTranslator = Callable[[bytes], Translator | None]
"""Returns the translator of a file from its first line, or None for a file of event lines."""

Piece = Union[bytes, "RunEvents"]  # event lines, or the columns of events


class TranslatedStream(Stream):
    """A file of lines, translated line by line as they are written."""

    def __init__(self, inner: Stream, choose: ChooseTranslator) -> None:
        self.note, self.file, self.inner, self.whole = inner.note, inner.file, inner, inner.whole
        self._choose = choose
        self._chosen = self._ended = self._skipping = False
        self._translator: Translator | None = None
        self._rest = bytearray()  # a line of 60 MB comes in a thousand pieces: bytes would be copied for each
        self._number = 0
        self._writer = EventLineWriter()

    @property
    def position(self) -> int:  # type: ignore[override]
        """How many bytes of the file have been read."""
        return self.inner.position

    @property
    def damage(self) -> str | None:  # type: ignore[override]
        """Why nothing more can be read, or None."""
        return self.inner.damage

    @property
    def remedy(self) -> str:  # type: ignore[override]
        """What to do about damage."""
        return self.inner.remedy

    @property
    def unfinished(self) -> str | None:
        """What is missing at the end of the file, or None."""
        return self.inner.unfinished

    @property
    def translated(self) -> bool:  # type: ignore[override]
        """Whether the lines are ours; known after the first line, or from the start of a workbook."""
        return self._translator is not None or self.whole

    def read(self, size: int) -> bytes:
        """Read about `size` bytes of the file, and return their event lines."""
        while not self._ended and (data := self.inner.read(size)):
            if lines := self._feed(data):
                return lines
        return b""

    def finish(self) -> bytes:
        """Return the event lines of the rest of a complete file."""
        if self._ended or self.damage or self.unfinished:
            return b""
        self._ended = True
        if not self._chosen:
            if not self._rest.strip():
                return b""
            self._decide(bytes(self._rest))
        rest, self._rest = bytes(self._rest), bytearray()
        if self._translator is None:
            return rest
        last = self._translator.last(rest, self._number + 1) if rest.strip() else b""
        if last is None:
            self.note_half_written()
        fault = self._translator.end()
        return (last or b"") + (self._writer.reject(fault, self._number) if fault is not None else b"")

    def close(self) -> None:
        """Close the file."""
        self.inner.close()

    def _feed(self, data: bytes) -> bytes:
        if not self._chosen:
            self._rest += data
            too_long = len(self._rest) > MAX_SAMPLE_BYTES
            if b"\n" not in data and not too_long:
                return b""
            first = bytes(self._rest).lstrip(b"\r\n").partition(b"\n")
            if not first[1] and not too_long:
                return b""
            data, self._rest = bytes(self._rest), bytearray()
            self._decide(first[0])
        return data if self._translator is None else self._translate(self._translator, data)

    def _decide(self, first: bytes) -> None:
        self._chosen = True
        self._translator = self._choose(first)

    def _translate(self, translator: Translator, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        if not lines:
            return self._keep(rest)
        lines[0] = bytes(self._rest) + lines[0]
        self._rest = bytearray()
        if self._skipping:
            self._skipping = False
            self._number += 1
            del lines[0]
        translated = translator.lines(lines, self._number + 1)
        self._number += len(lines)
        kept = self._keep(rest)
        return translated + kept if kept else translated

    def _keep(self, rest: bytes) -> bytes:
        """Keep an unfinished line; reject and skip one that is too long."""
        if self._skipping:
            return b""
        self._rest += rest
        if len(self._rest) <= MAX_SAMPLE_BYTES:
            return b""
        found = f"more than {MAX_SAMPLE_BYTES:,} bytes"
        fault = Fault("line", found, f"the line has {found}; check that the file is a log of samples")
        head, self._rest, self._skipping = bytes(self._rest[:RAW_BYTES]), bytearray(), True
        return self._writer.reject(fault, self._number + 1, head)


class DocumentStream(Stream):
    """A file that is read as a whole, and again after each change."""

    translated = whole = True

    def __init__(self, path: Path, read: Callable[[], Iterator[Piece]]) -> None:
        super().__init__(path)
        # The status when the file was opened: any later change must be noticed.
        self._status = os.fstat(self.file.fileno())
        self._pieces = self._until_end(read())
        self._next: Piece | None = None
        self._broken: str | None = None

    @property
    def unfinished(self) -> str | None:
        """Why the file is not complete, or None."""
        return self._broken

    def status(self) -> os.stat_result:
        """Return the status of the file when it was opened."""
        return self._status

    def read(self, size: int) -> bytes:
        """Return about `size` bytes of event lines."""
        first, self.position = self.position == 0, self._status.st_size
        parts: list[bytes] = []
        length = 0
        while length < size and (piece := self._take()):
            if not isinstance(piece, bytes):
                if parts:
                    self._next = piece  # the reader may take it as a run
                    break
                return EventLineWriter.run_lines(piece)
            parts.append(piece)
            length += len(piece)
            if first and not isinstance(piece, EventLines):
                break  # a declaration: the lines after it keep their events
        return EventLines.joined(parts)

    def run(self) -> "RunEvents | None":
        """Return events whose lines need not be written; None if lines come next."""
        self._next = piece = self._take()
        if isinstance(piece, bytes):
            return None
        self._next, self.position = None, self._status.st_size
        return piece

    def _take(self) -> Piece:
        piece, self._next = self._next, None
        return next(self._pieces, b"") if piece is None else piece

    def _until_end(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        try:
            yield from pieces
        except Refusal as refusal:
            yield EventLineWriter().reject(refusal.fault, 1)
        except Broken as broken:
            self._broken = str(broken)

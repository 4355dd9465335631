"""The lines that foreign formats are turned into, and streams of them.

A log of another program is read as if it were a file of event lines: its contents are what these lines come to. So all that holds for
such files (positions, hashes, reading each line exactly once, sending only what is new) holds for them too, and a log that was written anew
with the same scores in the same order has not changed.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from monitor.ingest.files.streams import Stream
from schemas.decode import Checker, Fault, check_object
from schemas.events import EventFields

REJECT: Final = b'{"rejected":'
"""How a line begins that stands for something that could not be read."""

MAX_SAMPLE_BYTES: Final = 1 << 26
"""Longest line of a log that is read: with its transcript a sample is much longer than its score."""

_RAW_BYTES: Final = 1 << 16
_RAW_KEPT: Final = 8_000


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure
    """A file that is not read at all: what was found, and what to do."""

    def __init__(self, field: str, found: str, reason: str, benchmark: str | None = None) -> None:
        super().__init__(f"{field}: found {found}: {reason}")
        self.fault = Fault(field, found, reason, benchmark)


class Broken(Exception):  # noqa: N818 - it may yet be mended
    """A file that breaks off, or is still being written: what is wrong with it."""


class Lines:
    """Writes event lines; one that no reader would take becomes a reject with the place in the log it came from."""

    def __init__(self) -> None:
        self._checker = Checker()

    def event(self, event: EventFields, number: int, raw: bytes = b"") -> bytes:
        """Write an event that stands at line (or sample, row) `number` of its log."""
        if self._checker.bad([event]):
            found = check_object(msgspec.structs.asdict(event))
            if isinstance(found, Fault):
                return self.reject(found, number, raw)
        return msgspec.json.encode(event) + b"\n"

    def declare(self, benchmark: str, items: int) -> bytes:
        """Write the declaration of an item count; a name that is none is refused by whoever reads it."""
        return msgspec.json.encode({"declare": _whole(benchmark), "items": items}) + b"\n"

    def reject(self, fault: Fault, number: int, raw: bytes = b"") -> bytes:
        """Write that something could not be read."""
        text = raw[:_RAW_KEPT].decode("utf-8", "replace")
        found = {name: _whole(value) for name, value in fault._asdict().items()}
        return REJECT + msgspec.json.encode({"line": number, "raw": text, **found}) + b"}\n"


def _whole(text: str | None) -> str | None:
    """Replace what has no place in UTF-8: logs may hold half a surrogate pair, escaped."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def read_reject(line: bytes) -> tuple[Fault, int, bytes]:
    """Read what `Lines.reject` wrote: the fault, the place in the log, and how the bytes there begin."""
    data: dict[str, Any] = msgspec.json.decode(line)["rejected"]
    number, raw = data.pop("line"), data.pop("raw")
    return Fault(**data), number, raw.encode()


class Translator(Protocol):
    """Turns the lines of a file into event lines; fed from the first line on."""

    def line(self, line: bytes, number: int) -> bytes:
        """Translate a line (without its newline): to none, one or more event lines, each ended by a newline."""
        ...

    def last(self, line: bytes, number: int) -> bytes | None:
        """Translate the last line, which has no newline; None if it is half-written."""
        ...

    def end(self) -> Fault | None:
        """Say what is wrong with a file that ended, if anything is."""
        ...


Choose = Callable[[bytes], Translator | None]
"""From the first line of a file to how it is read: None for as it stands."""


class LineStream(Stream):
    """The contents of a file of lines, translated line by line as they are written."""

    def __init__(self, inner: Stream, choose: Choose) -> None:
        self.tell, self.file, self.inner = inner.tell, inner.file, inner
        self._choose = choose
        self._chosen = self._ended = self._skipping = False
        self._translator: Translator | None = None
        self._rest = b""
        self._number = 0
        self._lines = Lines()

    @property
    def position(self) -> int:  # type: ignore[override]
        """How many bytes of the file have been read."""
        return self.inner.position

    @property
    def damage(self) -> str | None:  # type: ignore[override]
        """Why nothing more can be read, once that is so."""
        return self.inner.damage

    @property
    def unfinished(self) -> str | None:
        """Say what is missing if nothing more came, or None."""
        return self.inner.unfinished

    @property
    def translated(self) -> bool:  # type: ignore[override]
        """Whether the lines are ours; known once the first line was read."""
        return self._translator is not None

    def read(self, size: int) -> bytes:
        """Read about `size` bytes of the file, and return what they come to."""
        while not self._ended and (data := self.inner.read(size)):
            if contents := self._feed(data):
                return contents
        return b""

    def finish(self) -> bytes:
        """Return what the rest comes to if nothing more is written."""
        if self._ended or self.damage or self.unfinished:
            return b""
        self._ended = True
        if not self._chosen:
            if not self._rest.strip():
                return b""
            self._decide(self._rest)
        if self._translator is None:
            rest, self._rest = self._rest, b""
            return rest
        last = self._translator.last(self._rest, self._number + 1) if self._rest.strip() else b""
        if last is None:
            self.tell_half_written()
        fault = self._translator.end()
        return (last or b"") + (self._lines.reject(fault, self._number) if fault is not None else b"")

    def close(self) -> None:
        """Close the file."""
        self.inner.close()

    def _feed(self, data: bytes) -> bytes:
        if not self._chosen:
            data, self._rest = self._rest + data, b""
            first = data.lstrip(b"\r\n").partition(b"\n")
            if not first[1] and len(data) <= MAX_SAMPLE_BYTES:
                self._rest = data
                return b""
            self._decide(first[0])
        return data if self._translator is None else self._translate(self._translator, data)

    def _decide(self, first: bytes) -> None:
        self._chosen = True
        self._translator = self._choose(first)

    def _translate(self, translator: Translator, data: bytes) -> bytes:
        *whole, rest = data.split(b"\n")
        if not whole:
            return self._keep(rest)
        whole[0] = self._rest + whole[0]
        self._rest = b""
        contents = []
        for line in whole:
            self._number += 1
            if self._skipping:
                self._skipping = False
            else:
                contents.append(translator.line(line, self._number))
        return b"".join(contents) + self._keep(rest)

    def _keep(self, rest: bytes) -> bytes:
        if self._skipping:
            return b""
        self._rest += rest
        if len(self._rest) <= MAX_SAMPLE_BYTES:
            return b""
        fault = Fault(
            "line", f"more than {MAX_SAMPLE_BYTES:,} bytes", "no sample is that long: is the file what it is called?"
        )
        head, self._rest, self._skipping = self._rest[:_RAW_KEPT], b"", True
        return self._lines.reject(fault, self._number + 1, head)


class WholeStream(Stream):
    """The contents of a file that is read as a whole, anew whenever it has changed.

    Parameters
    ----------
    path : Path
    make : callable
        Begins to read the file, as event lines. That raises `Broken` where the file breaks off, and `Refusal` if it is not to be read.
    """

    translated = whole = True

    def __init__(self, path: Path, make: Callable[[], Iterator[bytes]]) -> None:
        super().__init__(path)
        # What is read is what the file was when it was opened: a later change has to be noticed as one.
        self._status = os.fstat(self.file.fileno())
        self._contents = make()
        self._broken: str | None = None

    @property
    def unfinished(self) -> str | None:
        """Say what is wrong with the file if it is not being written, or None."""
        return self._broken

    def status(self) -> os.stat_result:
        """Return the status of the file when it was opened."""
        return self._status

    def read(self, size: int) -> bytes:
        """Return about `size` bytes of event lines."""
        self.position = self._status.st_size
        data = b""
        try:
            while len(data) < size and (line := next(self._contents, b"")):
                data += line
        except Refusal as refusal:
            data += Lines().reject(refusal.fault, 1)
        except Broken as broken:
            self._broken = str(broken)
        return data

"""Read a file that may still be written in blocks of whole lines."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

from monitor.files.streams.encodings import OpenStream, open_stream
from monitor.files.streams.stream import is_whole
from schemas.records.decode import too_long
from schemas.records.events import MAX_LINE_BYTES
from schemas.records.text import Fault

if TYPE_CHECKING:
    from hashlib import blake2b

    from schemas.records.columns import EventColumns

BLOCK_BYTES: Final = 1 << 18
_HEAD_BYTES: Final = 8_000
_TAIL_BYTES: Final = 1 << 16


def new_hash() -> "blake2b":
    """Return a new hash of file contents: BLAKE2b-128."""
    return hashlib.blake2b(digest_size=16)


class Block(NamedTuple):
    """Whole lines of a file, each ended by a newline."""

    # `start` and `end` are positions in the (gunzipped) contents, `first_line` counts from 1. `data` holds the bytes from `start` to `end`,
    # with a newline added if the last line of the file has none. A block with a `fault` is one line that cannot be read, and `data` is its
    # beginning; if `start` is `end`, the file cannot be read from there on. `before` is the hash of everything before `start`, from a
    # reader that hashes. The lines of a log of another program are `translated`. A block with `events` has no lines: see `Stream.run`.
    start: int
    end: int
    first_line: int
    data: bytes
    fault: Fault | None = None
    before: "blake2b | None" = None
    translated: bool = False
    events: "EventColumns | None" = None


class BlockReader:
    """Reads a file block by block, as far as it has been written."""

    def __init__(
        self,
        path: Path,
        position: int = 0,
        *,
        block_bytes: int = BLOCK_BYTES,
        max_lines: int | None = None,
        hashing: bool = False,
        opener: OpenStream = open_stream,
    ) -> None:
        if not 0 < block_bytes <= MAX_LINE_BYTES:
            raise ValueError(f"block_bytes is {block_bytes}; use a size from 1 to {MAX_LINE_BYTES:,}")
        self.path, self.block_bytes, self.max_lines, self.hashing = path, block_bytes, max_lines, hashing
        self.stream = opener(path)
        self.position = self.line = 0
        self.hash = new_hash()
        self.passed = b""
        self._ahead = b""  # read, and next to be split
        self._rest = b""  # the beginning of a line without its end
        self._skipped = 0  # bytes of a too long line that were dropped after _rest
        self._before_long = self.hash
        self._cut_short = False  # the last line was returned without its newline
        self.damage_reported = False
        self._skip_to(position)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.stream.close()

    @property
    def incomplete(self) -> str | None:
        """What is missing of a file that was read as complete, or None."""
        half = "the last line is half-written" if self.stream.half_written else None
        return self.stream.damage or self.stream.unfinished or half

    def next(self, *, final: bool) -> Block | None:
        """Read the next block."""
        if not (self.hashing or self._ahead or self._rest) and (run := self.stream.run()) is not None:
            start, first = self.position, self.line + 1
            self.position += len(run)
            self.line += len(run)
            return Block(start, self.position, first, b"", events=run)
        while piece := self._ahead or self.stream.read(self.block_bytes) or (self.stream.finish() if final else b""):
            self._ahead = b""
            if self._cut_short:  # the last line goes on after all
                self._cut_short = False
                self.line -= 1
            first = piece.find(b"\n")
            if first < 0:
                self._keep(piece)
                continue
            length = len(self._rest) + self._skipped + first
            if length > MAX_LINE_BYTES + ((self._rest + piece[:first])[-1:] == b"\r"):
                self._ahead = piece[first + 1 :]
                return self._too_long(piece[: first + 1], length)
            end = piece.rfind(b"\n") + 1
            whole = end == len(piece) and not self._rest  # of a translated log, and perhaps with its events
            data, self._rest = piece if whole else self._rest + piece[:end], piece[end:]
            return self._whole(self._limit(data))
        return self._last(final=final)

    def _limit(self, data: bytes) -> bytes:
        if self.max_lines is None or data.count(b"\n") <= self.max_lines:
            return data
        after = data.split(b"\n", self.max_lines)[-1]
        self._ahead, self._rest = after + self._rest, b""
        return data[: -len(after)]

    def _keep(self, piece: bytes) -> None:
        """Keep a piece of an unfinished line; of a too long line keep only its beginning."""
        line = self._rest + piece
        if self._skipped:
            self._update(piece)
            self._skipped += len(piece)
        elif len(line) > MAX_LINE_BYTES + 1:
            self._before_long = self.hash.copy()
            self._update(line)
            self._rest, self._skipped = line[:_HEAD_BYTES], len(line) - _HEAD_BYTES
        else:
            self._rest = line

    def _too_long(self, end: bytes, length: int) -> Block:
        before = self._before_long if self._skipped else self.hash.copy()
        self._update(end if self._skipped else self._rest + end)
        head = (self._rest + end)[:_HEAD_BYTES]
        self._rest, self._skipped = b"", 0
        return self._block(head, length + end.endswith(b"\n"), 1, before, too_long(length))

    def _whole(self, data: bytes) -> Block:
        before = self.hash.copy() if self.hashing else None
        self._update(data)
        return self._block(data, len(data), data.count(b"\n"), before)

    def _block(self, data: bytes, size: int, lines: int, before: "blake2b | None", fault: Fault | None = None) -> Block:
        self.damage_reported = False
        block = Block(self.position, self.position + size, self.line + 1, data, fault, before, self.stream.translated)
        self.position += size
        self.line += lines
        return block

    def _last(self, *, final: bool) -> Block | None:
        """Return the rest at the end of the file: damage, or a line without a newline."""
        damage = self.stream.damage or (self.stream.unfinished if final else None)
        if damage is not None:
            if self.damage_reported:
                return None
            self.damage_reported = True
            read = "only what comes ahead of the damage" if self.position else "nothing of it"
            found = damage if self.stream.translated else f"{damage}, byte {self.position:,} of its contents"
            fault = Fault("file", found, f"{found}, and {read} is read; {self.stream.remedy}")
            return Block(self.position, self.position, self.line + 1, b"", fault, self.hash.copy())
        if not final or not self._rest:
            return None
        length = len(self._rest) + self._skipped
        if length > MAX_LINE_BYTES:
            return self._too_long(b"", length)
        if not is_whole(self._rest):
            if self._rest.strip():
                self.stream.note_half_written()
            return None
        self._cut_short = True
        before = self.hash.copy() if self.hashing else None
        self._update(self._rest)
        data, self._rest = self._rest, b""
        return self._block(data + b"\n", len(data), 1, before)

    def _update(self, data: bytes) -> None:
        if self.hashing:
            self.hash.update(data)

    def _skip_to(self, position: int) -> None:
        while self.position < position and (piece := self.stream.read(min(self.block_bytes, position - self.position))):
            piece, self._ahead = piece[: position - self.position], piece[position - self.position :]
            self.position += len(piece)
            self.line += piece.count(b"\n")
            self._update(piece)
            self.passed = (self.passed + piece)[-_TAIL_BYTES:]
        if self.passed and not self.passed.endswith(b"\n"):
            self.line += 1
            self._cut_short = True

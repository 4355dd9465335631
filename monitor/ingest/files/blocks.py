"""Blocks of whole lines from a file that may still be written."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeVar

from monitor.ingest.files.streams import Stream, open_stream
from schemas.decode import Fault
from schemas.events import MAX_LINE_BYTES

if TYPE_CHECKING:
    from hashlib import blake2b

BLOCK_BYTES: Final = 1 << 18
Open = Callable[[Path], Stream]
"""How a file is opened."""

BOM: Final = b"\xef\xbb\xbf"
_HEAD_BYTES: Final = 8_000
_TAIL_BYTES: Final = 1 << 16

T = TypeVar("T")


def is_record(line: bytes) -> bool:
    """Say whether a line is a whole JSON object, and not the beginning of one."""
    try:
        return isinstance(json.loads(line.removeprefix(BOM)), dict)
    except (ValueError, RecursionError):
        return False


def new_hash() -> "blake2b":
    """Begin the hash of a file's contents: BLAKE2b-128."""
    return hashlib.blake2b(digest_size=16)


class Block(NamedTuple):
    """Whole lines of a file, each ended by a newline.

    `start` and `end` are positions in the (gunzipped) contents, `first_line` counts from 1. `data` holds the bytes from `start` to `end`
    as they are, with a newline added if the last line of the file has none. With a `fault` the block is one line that cannot be read, and
    `data` is how it begins; if `start` is `end` it is the file that cannot be read from there on. `before` is the hash of everything
    before `start`, where the reader was asked for it. The lines of a file in a foreign format are `translated`.
    """

    start: int
    end: int
    first_line: int
    data: bytes
    fault: Fault | None = None
    before: "blake2b | None" = None
    translated: bool = False


class BlockReader:
    """Reads a file block by block, as far as it has been written.

    Parameters
    ----------
    path : Path
    position : int
        Where to begin, in bytes of the contents. What lies before is read too: `line` counts its lines, and `hash` hashes it.
    block_bytes : int
        About how much a block holds, at most `MAX_LINE_BYTES`.
    max_lines : int, optional
        How many lines a block holds at most.
    hashing : bool
        Whether blocks carry the hash of what lies before them.
    opener : callable
        Opens the file.

    Attributes
    ----------
    position, line : int
        How many bytes and lines of the contents have been handed out.
    hash : blake2b
        Of the contents before `position`.
    damage_told : bool
        Whether the damage at `position` has been handed out: it is told once.
    passed : bytes
        The end of what lies before the position that was asked for, up to 64 KB.

    Raises
    ------
    OSError
        If the file cannot be read.
    """

    def __init__(
        self,
        path: Path,
        position: int = 0,
        *,
        block_bytes: int = BLOCK_BYTES,
        max_lines: int | None = None,
        hashing: bool = False,
        opener: Open = open_stream,
    ) -> None:
        if not 0 < block_bytes <= MAX_LINE_BYTES:
            raise ValueError(f"block_bytes is {block_bytes}: give a size from 1 to {MAX_LINE_BYTES:,}")
        self.path, self.block_bytes, self.max_lines, self.hashing = path, block_bytes, max_lines, hashing
        self.stream = opener(path)
        self.position = self.line = 0
        self.hash = new_hash()
        self.passed = b""
        self._ahead = b""  # read, and next to be looked at
        self._rest = b""  # the beginning of a line whose end has not been seen
        self._skipped = 0  # how much of a line that is too long has been let go after _rest
        self._before_long = self.hash
        self._cut_short = False  # the last line was read although it has no newline
        self.damage_told = False
        self._pass_over(position)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self.stream.close()

    def next(self, *, final: bool) -> Block | None:
        """Read the next block.

        Parameters
        ----------
        final : bool
            Whether the file counts as complete: then a last line without a newline is read if it is a whole record (it may still be
            half-written otherwise), and a gzip file that breaks off is a fault.

        Returns
        -------
        Block or None
            None where there is nothing more to read, for now if not `final`.
        """
        while piece := self._ahead or self.stream.read(self.block_bytes) or (self.stream.finish() if final else b""):
            self._ahead = b""
            if self._cut_short:  # the line that was taken as the last one goes on
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
            data, self._rest = self._rest + piece[:end], piece[end:]
            return self._whole(self._limit(data))
        return self._last(final=final)

    def _limit(self, data: bytes) -> bytes:
        if self.max_lines is None or data.count(b"\n") <= self.max_lines:
            return data
        after = data.split(b"\n", self.max_lines)[-1]
        self._ahead, self._rest = after + self._rest, b""
        return data[: -len(after)]

    def _keep(self, piece: bytes) -> None:
        """Keep the piece of an unfinished line while the line may still be read; else let go of all but how it began."""
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
        reason = f"a line has at most {MAX_LINE_BYTES:,} bytes: leave out what is not a score"
        newline = end.endswith(b"\n")
        return self._block(head, length + newline, 1, before, Fault("record", f"a line of {length:,} bytes", reason))

    def _whole(self, data: bytes) -> Block:
        before = self.hash.copy() if self.hashing else None
        self._update(data)
        return self._block(data, len(data), data.count(b"\n"), before)

    def _block(self, data: bytes, size: int, lines: int, before: "blake2b | None", fault: Fault | None = None) -> Block:
        self.damage_told = False
        block = Block(self.position, self.position + size, self.line + 1, data, fault, before, self.stream.translated)
        self.position += size
        self.line += lines
        return block

    def _last(self, *, final: bool) -> Block | None:
        """Return what remains at the end of the file: damage, or a line without a newline."""
        damage = self.stream.damage or (self.stream.unfinished if final else None)
        if damage is not None:
            if self.damage_told:
                return None
            self.damage_told = True
            reason = "everything before it has been read: copy the file again, or write it anew"
            found = damage if self.stream.translated else f"{damage}, byte {self.position:,} of its contents"
            return Block(
                self.position, self.position, self.line + 1, b"", Fault("file", found, reason), self.hash.copy()
            )
        if not final or not self._rest:
            return None
        length = len(self._rest) + self._skipped
        if length > MAX_LINE_BYTES:
            return self._too_long(b"", length)
        if not is_record(self._rest):
            self._tell_half_written()
            return None
        self._cut_short = True
        before = self.hash.copy() if self.hashing else None
        self._update(self._rest)
        data, self._rest = self._rest, b""
        return self._block(data + b"\n", len(data), 1, before)

    def _tell_half_written(self) -> None:
        if self._rest.strip():
            self.stream.tell_half_written()

    def _update(self, data: bytes) -> None:
        if self.hashing:
            self.hash.update(data)

    def _pass_over(self, position: int) -> None:
        while self.position < position and (piece := self.stream.read(min(self.block_bytes, position - self.position))):
            piece, self._ahead = piece[: position - self.position], piece[position - self.position :]
            self.position += len(piece)
            self.line += piece.count(b"\n")
            self._update(piece)
            self.passed = (self.passed + piece)[-_TAIL_BYTES:]
        if self.passed and not self.passed.endswith(b"\n"):
            self.line += 1
            self._cut_short = True


def read_blocks(
    path: Path, position: int = 0, *, block_bytes: int = BLOCK_BYTES, final: bool = True
) -> Iterator[Block]:
    r"""Read a file from a position to its present end.

    Parameters
    ----------
    path : Path
        A file of lines, gzipped or not.
    position : int
        Where to begin, in bytes of the (gunzipped) contents.
    block_bytes : int
        About how much a block holds.
    final : bool
        Whether the file counts as complete (see `BlockReader.next`).

    Yields
    ------
    Block
        Blocks that join up; a line that is longer than `MAX_LINE_BYTES`, or damage, comes as a block with a fault.

    Raises
    ------
    OSError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b'{"a":1}\n{"a":2}')
    ...     file.flush()
    ...     [(block.start, block.end, block.data) for block in read_blocks(Path(file.name))]
    [(0, 8, b'{"a":1}\n'), (8, 15, b'{"a":2}\n')]
    """
    with BlockReader(path, position, block_bytes=block_bytes) as reader:
        while (block := reader.next(final=final)) is not None:
            yield block


def prefetch(items: Iterator[T], depth: int = 32) -> Iterator[T]:
    """Run an iterator in a thread of its own, at most `depth` items ahead of whoever takes them.

    Deep enough to last while whoever takes blocks folds them: the thread gets the interpreter a few times a fold at best.
    """
    queue: Queue[tuple[T] | BaseException | None] = Queue(depth)
    stopped = Event()

    def work() -> None:
        end: BaseException | None = None
        try:
            for item in items:
                queue.put((item,))
                if stopped.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - whoever takes the items has to hear of it
            end = error
        queue.put(end)

    thread = Thread(target=work, name="prefetch", daemon=True)
    thread.start()
    try:
        while (got := queue.get()) is not None:
            if isinstance(got, BaseException):
                raise got
            yield got[0]
    finally:
        stopped.set()
        while thread.is_alive():  # it may stand before a full queue
            try:
                queue.get(timeout=0.01)
            except Empty:
                continue
        thread.join()

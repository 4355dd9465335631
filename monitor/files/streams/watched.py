"""Watch one file: notice that it grew, and that its earlier bytes changed."""

import os
from pathlib import Path
from typing import Final, NamedTuple

from monitor.files.streams.blocks import BlockReader
from monitor.files.streams.encodings import OpenStream, open_stream
from schemas.records.chunks import Source
from schemas.records.declaration import Declaration
from schemas.records.decode import decode_record
from schemas.records.events import Ended
from schemas.records.text import Fault

_MARK_BYTES: Final = 1 << 10


class _Mark(NamedTuple):
    """The state of a file when it was last read, with its first bytes and the last bytes read."""

    device: int
    inode: int
    size: int
    modified: int
    head: bytes
    tail: bytes
    drained: bool


class WatchedFile:
    """A file, its open reader if there is one, and the generation of its contents."""

    def __init__(self, path: Path, *, block_bytes: int, max_lines: int, opener: OpenStream = open_stream) -> None:
        self.path = path
        self._opener = opener
        self._broken: tuple[int, ...] | None = None
        self.generation = 0
        self.benchmark: str | None = None
        self.bytes_read = 0
        self.models: set[str] = set()
        self._block_bytes, self.max_lines = block_bytes, max_lines
        self._reader: BlockReader | None = None
        self._mark: _Mark | None = None

    @property
    def is_open(self) -> bool:
        """Whether a reader is open."""
        return self._reader is not None

    def size(self) -> int:
        """Return the present size in bytes, 0 for a file that is gone."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def reader(self, source: Source | None, *, final: bool) -> BlockReader | None:
        """Return a reader at the end of what was read, or None if there is nothing new."""
        status = self.path.stat()
        mark = self._mark
        if mark is not None:
            same = _identity(status) == mark[:4]
            if same and mark.drained and not final:
                return None
            if not same and not self._continues(mark, status):
                self.close()
        if status.st_size == 0 and source is not None:
            return None  # emptied, most likely to be rewritten
        if self._reader is None:
            self._reader = self._open(source, status, final=final)
        return self._reader

    def remember(self, *, drained: bool) -> None:
        """Remember the state of the file; `drained` if everything readable has been read."""
        assert self._reader is not None
        stream = self._reader.stream
        status, self.bytes_read = stream.status(), stream.position
        head = stream.peek(min(_MARK_BYTES, stream.position), 0)
        start = max(0, stream.position - _MARK_BYTES)
        tail = stream.peek(stream.position - start, start)
        # A file that grew since its end was reached must be read again.
        drained = drained and status.st_size <= stream.position
        self._mark = _Mark(*_identity(status), head, tail, drained)

    def close(self) -> None:
        """Close the reader; the next one compares the bytes that it skips with the bytes that were read."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _continues(self, mark: _Mark, status: os.stat_result) -> bool:
        if self._reader is None:
            return True
        stream = self._reader.stream
        if stream.damage is not None or stream.whole:
            return False  # the change may have repaired it
        if (status.st_dev, status.st_ino) != mark[:2] or status.st_size < stream.position:
            return False
        start = max(0, stream.position - _MARK_BYTES)
        return stream.peek(len(mark.head), 0) == mark.head and stream.peek(len(mark.tail), start) == mark.tail

    def _open(self, source: Source | None, status: os.stat_result, *, final: bool) -> BlockReader | None:
        if source is None:
            return self._new_reader(0)
        identity = _identity(status)
        if identity == self._broken and not final:
            return None
        reader = self._new_reader(source.position)
        if reader.position == source.position and reader.hash.hexdigest() == source.prefix:
            self.generation = source.generation
            # Damage after the last line is recorded as one line more.
            reader.damage_reported = source.line > reader.line
            self.benchmark = _last_benchmark(reader.passed)
            return reader
        reader.close()
        if reader.stream.whole and reader.stream.unfinished and not final:
            self._broken = identity  # most likely it is being rewritten
            return None
        self.generation, self.benchmark = source.generation + 1, None
        return self._new_reader(0)

    def _new_reader(self, position: int) -> BlockReader:
        return BlockReader(
            self.path,
            position,
            block_bytes=self._block_bytes,
            max_lines=self.max_lines,
            hashing=True,
            opener=self._opener,
        )


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _last_benchmark(lines: bytes) -> str | None:
    for line in reversed(lines.split(b"\n")):
        record = decode_record(line) if line.strip() else None
        if isinstance(record, Declaration | Ended):
            return record.declare if isinstance(record, Declaration) else record.ended
        if record is not None and (record.benchmark is not None or not isinstance(record, Fault)):
            return record.benchmark
    return None

"""From blocks of lines to events, declarations and rejects, in the order of the file."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from monitor.ingest.files.blocks import BOM, Block, BlockReader, Open, prefetch
from monitor.ingest.files.streams import open_stream
from monitor.ingest.files.translated import REJECT, read_reject
from schemas.decode import Checker, Fault, decode_block, decode_record, plain_text
from schemas.events import Declaration, EventFields
from schemas.packed import Reject
from schemas.text import shorten

RAW_LENGTH: Final = 2_000
"""How much of a rejected line is kept, in characters."""

_TEXT_LENGTH: Final = 400
_GROUP: Final = 32
_FILE_BLOCK_BYTES: Final = 1 << 16


class Segment(NamedTuple):
    """A part of a file: its declarations hold before its events.

    `rejects` are the lines between that could not be read. `end` is the position behind the segment, in bytes of the contents.
    `declared_at` are the lines of the declarations, in the file `path`.
    """

    declarations: list[Declaration]
    events: list[EventFields]
    rejects: list[Reject]
    end: int
    line: int
    path: str = ""
    declared_at: tuple[int, ...] = ()

    @property
    def lines(self) -> int:
        """How many lines that are not blank the segment has."""
        return len(self.declarations) + len(self.events) + len(self.rejects)


class Decoded(NamedTuple):
    """A block that was decoded.

    `segments` follow each other without a gap. `lines` are the lines if all of them are good events, without what stands between them.
    `benchmark` is the one of the last line that names one.
    """

    segments: list[Segment]
    lines: bytes | None
    benchmark: str | None


def decode(block: Block, path: Path, checker: Checker, benchmark: str | None = None) -> Decoded:
    r"""Decode a block, at once where every line of it is a good event.

    Parameters
    ----------
    block : Block
    path : Path
        The file, as rejects name it.
    checker : Checker
        Remembers the names it has passed; one for many files.
    benchmark : str, optional
        Of the line before the block: a rejected line that names no benchmark is counted there, else with the next good line.

    Examples
    --------
    >>> line = b'{"benchmark":"x","item_id":"1","model":"m","score":1}\n'
    >>> decoded = decode(Block(0, len(line), 1, line), Path("a.jsonl"), Checker())
    >>> decoded.segments[0].events
    [EventFields(benchmark='x', item_id='1', model='m', score=1.0, cluster=None, repeat=0, epoch=0)]
    """
    if block.fault is not None:
        reject = _reject(block.fault, path, block.first_line, block.data, benchmark)
        return Decoded([Segment([], [], [reject], block.end, block.first_line, str(path))], None, benchmark)
    data = block.data
    events = _good(data, checker)
    if events is None and (clean := _clean(block)) != data:
        data = clean
        events = _good(data, checker)
    if events is None:
        return _Lines(block, path, checker, benchmark).decode()
    segment = Segment([], events, [], block.end, block.first_line + block.data.count(b"\n") - 1, str(path))
    return Decoded([segment], data, events[-1].benchmark)


def read_files(
    files: Sequence[Path], progress: Callable[[int, int], None] | None = None, opener: Open = open_stream
) -> Iterator[Segment]:
    """Read files from beginning to end, one after the other; a thread reads ahead.

    Parameters
    ----------
    files : sequence of Path
        As `find_files` lists them.
    progress : callable, optional
        Called with (bytes read, bytes of all files), before gunzipping.
    opener : callable
        Opens a file: `Importer.open` for logs in any format.

    Yields
    ------
    Segment
        In the order of the files and of their lines.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    total = sum(file.stat().st_size for file in files)
    checker = Checker()
    current, benchmark = None, None
    for path, block, done in prefetch(_blocks(files, opener)):
        if path is not current:
            current, benchmark = path, None
        segments, _, benchmark = decode(block, path, checker, benchmark)
        yield from segments
        if progress is not None:
            progress(done, total)


def _blocks(files: Sequence[Path], opener: Open) -> Iterator[tuple[Path, Block, int]]:
    before = 0
    for path in files:
        # Blocks that fit the cache together with what is decoded from them are decoded faster than larger ones.
        with BlockReader(path, block_bytes=_FILE_BLOCK_BYTES, opener=opener) as reader:
            while (block := reader.next(final=True)) is not None:
                yield path, block, before + reader.stream.position
            before += reader.stream.position


def _good(data: bytes, checker: Checker) -> list[EventFields] | None:
    """Return the events of lines if all of them are good, else None."""
    events = decode_block(data)
    return None if not events or (not plain_text(data) and checker.bad(events)) else events


def _clean(block: Block) -> bytes:
    """Take out what stands between the lines of some files: a byte order mark, carriage returns, blank lines."""
    data = block.data.removeprefix(BOM) if block.start == 0 else block.data
    return re.sub(rb"\r?\n[\r\n]*", b"\n", data).lstrip(b"\n")


def _reject(fault: Fault, path: Path, line: int, data: bytes, benchmark: str | None) -> Reject:
    return {
        "source": str(path),
        "line": line,
        "field": shorten(fault.field, _TEXT_LENGTH),
        "found": fault.found,
        "reason": shorten(fault.reason, _TEXT_LENGTH),
        "benchmark": fault.benchmark or benchmark,
        "raw": data[: 4 * RAW_LENGTH].decode("utf-8", "replace")[:RAW_LENGTH],
    }


class _Lines:
    """Decodes a block some line of which has to be looked at by itself."""

    def __init__(self, block: Block, path: Path, checker: Checker, benchmark: str | None) -> None:
        self.block, self.path, self.checker, self.benchmark = block, path, checker, benchmark
        self.segments: list[Segment] = []
        self.declarations: list[Declaration] = []
        self.declared_at: list[int] = []
        self.events: list[EventFields] = []
        self.rejects: list[Reject] = []
        self.unknown: list[Reject] = []

    def decode(self) -> Decoded:
        """Decode group by group, and within a group that is not good as a whole line by line."""
        block = self.block
        lines = block.data[:-1].split(b"\n")
        position = block.start
        for start in range(0, len(lines), _GROUP):
            group = lines[start : start + _GROUP]
            events = _good(b"\n".join(group) + b"\n", self.checker)
            if events is not None:
                self._names(events[0].benchmark)
                self.events += events
                self.benchmark = events[-1].benchmark
                position += sum(map(len, group)) + len(group)
                continue
            for number, line in enumerate(group, block.first_line + start):
                self._line(line.removeprefix(BOM) if position == 0 else line, number, position)
                position += len(line) + 1
        self._close(block.end, block.first_line + len(lines) - 1)
        return Decoded(self.segments, None, self.benchmark)

    def _line(self, line: bytes, number: int, position: int) -> None:
        line = line.strip(b" \t\r")
        if not line:
            return
        if self.block.translated and line.startswith(REJECT):
            fault, number, line = read_reject(line)
            self._fault(fault, line, number)
            return
        # What a line is must not depend on the lines around it: first as in a block, then by the whole rule.
        good = _good(line + b"\n", self.checker)
        found = good[0] if good is not None else decode_record(line)
        if isinstance(found, Fault):
            self._fault(found, line, number)
        elif isinstance(found, Declaration):
            if self.events:
                self._close(position, number - 1)
            self.declarations.append(found)
            self.declared_at.append(number)
            self._names(found.declare)
        else:
            self.events.append(found)
            self._names(found.benchmark)

    def _fault(self, fault: Fault, line: bytes, number: int) -> None:
        reject = _reject(fault, self.path, number, line, self.benchmark)
        self.rejects.append(reject)
        if fault.benchmark is not None:
            self._names(fault.benchmark)
        elif self.benchmark is None:
            self.unknown.append(reject)

    def _names(self, benchmark: str) -> None:
        self.benchmark = benchmark
        for reject in self.unknown:
            reject["benchmark"] = benchmark
        self.unknown = []

    def _close(self, end: int, line: int) -> None:
        at = (str(self.path), tuple(self.declared_at))
        self.segments.append(Segment(self.declarations, self.events, self.rejects, end, line, *at))
        self.declarations, self.events, self.rejects, self.declared_at = [], [], [], []

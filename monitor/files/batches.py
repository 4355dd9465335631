"""Read what is new in result files, batch by batch: the one reader of `watch` and `send`."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from monitor.files.declaration_file import Declare, begin
from monitor.files.epochs import Epochs
from monitor.files.streams.blocks import BlockReader, new_hash
from monitor.files.streams.encodings import OpenStream, open_stream
from monitor.files.streams.paths import origin
from monitor.files.streams.segments import decode
from monitor.files.streams.watched import WatchedFile
from schemas.records.chunks import Source
from schemas.records.decode import Checker
from schemas.records.packed import Segment, record_events
from schemas.records.text import Reject

_BLOCK_BYTES: Final = 1 << 17
_BLOCK_LINES: Final = 1_000
_OPEN_FILES: Final = 200


class Part(NamedTuple):
    """A segment of a batch, which begins at `start`, with the state of its file at the end of the segment."""

    segment: Segment
    start: int
    source: Source


class Batch(NamedTuple):
    """Consecutive parts of one file, and the name under which its place is stored."""

    path: Path
    parts: list[Part]
    place: str

    @property
    def source(self) -> Source:
        """The state of the file at the end of the batch."""
        return self.parts[-1].source

    @property
    def rejects(self) -> list[Reject]:
        """The lines that cannot be read."""
        return [reject for part in self.parts for reject in part.segment.rejects]

    @property
    def line_count(self) -> int:
        """How many lines the batch has, without blank ones."""
        return sum(part.segment.line_count for part in self.parts)


@dataclass
class Progress:
    """How far reading has come, in bytes of the files (before gunzipping)."""

    bytes_done: int = 0
    bytes_total: int = 0
    files: int = 0


class BatchReader:
    """Reads files in batches, each file from where its last batch ended."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        *,
        declare: Declare | None = None,
        known: Iterable[str] = (),
        epochs: Epochs | None = None,
        blocks: int = 8,
        opener: OpenStream = open_stream,
    ) -> None:
        self.progress = Progress()
        self.incomplete: dict[Path, str] = {}
        self._sources = dict(sources)
        self._declare, self._known, self.epochs = declare, set(known), epochs
        self._with_news: set[Path] = set()
        self._blocks, self._opener = blocks, opener
        self._checker = Checker()
        self._files: dict[Path, WatchedFile] = {}
        self._lock = threading.Lock()

    @property
    def files(self) -> Collection[Path]:
        """The files of the last pass."""
        return self._files.keys()

    async def read(self, files: Sequence[Path], *, final: bool) -> AsyncGenerator[Batch, None]:
        """Yield what is new in files, one file after the other, each up to its present size."""
        if self.epochs is not None:
            await asyncio.to_thread(self.epochs.begin, map(origin, files))
        await asyncio.to_thread(self._update, files)
        for path in files:
            file = self._files[path]
            size = file.size()
            try:
                while (batch := await asyncio.to_thread(self._next, file, final=final)) is not None:
                    yield batch
                    self.progress.bytes_done = sum(each.bytes_read for each in self._files.values())
                    if not final and file.bytes_read >= size:
                        break
            except (FileNotFoundError, PermissionError):
                if final:
                    raise
                file.close()  # the file may come back
            if final:
                file.close()

    def read_before(self) -> list[Path]:
        """Return the files that were read before, and of which nothing new has been read."""
        return [path for path in self._files if path not in self._with_news and self._place(path) in self._sources]

    def begin_again(self, place: str) -> Source:
        """Return the place of the next contents of a file that was emptied or removed."""
        self._sources[place] = Source(self._sources[place].generation + 1, 0, new_hash().hexdigest(), 0)
        return self._sources[place]

    def _place(self, path: Path) -> str:
        return origin(path) if self.epochs is None else self.epochs.place(origin(path))

    def close(self) -> None:
        """Close all files."""
        with self._lock:  # a cancelled task leaves its thread to finish
            for file in self._files.values():
                file.close()

    def _update(self, files: Sequence[Path]) -> None:
        """Add new files and drop those that are gone."""
        with self._lock:
            for path in self._files.keys() - set(files):
                self._files.pop(path).close()
            for path in files:
                if path not in self._files:
                    self._files[path] = WatchedFile(
                        path, block_bytes=_BLOCK_BYTES, max_lines=_BLOCK_LINES, opener=self._opener
                    )
            every = self._files.values()
            self.progress = Progress(sum(f.bytes_read for f in every), sum(f.size() for f in every), len(files))

    def _next(self, file: WatchedFile, *, final: bool) -> Batch | None:
        with self._lock:
            place = self._place(file.path)
            source = self._sources.get(place)
            reader = file.reader(source, final=final)
            if reader is None:
                return None
            self._files[file.path] = self._files.pop(file.path)
            for each in [each for each in self._files.values() if each.is_open][:-_OPEN_FILES]:
                each.close()
            parts: list[Part] = []
            blocks = 0.0
            while blocks < self._blocks and self._read_block(file, reader, parts, final=final):
                blocks += file.max_lines / _BLOCK_LINES
            file.remember(drained=not parts)
            if not parts:
                if final and reader.incomplete is not None:
                    self.incomplete[file.path] = reader.incomplete
                return None
            batch = Batch(file.path, parts, place)
            self._sources[place] = batch.source
            self._with_news.add(file.path)
            return batch

    def _read_block(self, file: WatchedFile, reader: BlockReader, parts: list[Part], *, final: bool) -> bool:
        """Add the next block to the parts; return False if there is none."""
        block = reader.next(final=final)
        if block is None:
            return False
        decoded = decode(block, file.path, self._checker, file.benchmark)
        file.benchmark = decoded.benchmark
        for clause in sorted(decoded.converted):
            reader.stream.note(clause)
        file.models.update(event.model for segment in decoded.segments for event in segment.events)
        file.max_lines = reader.max_lines = record_events(len(file.models)) or _BLOCK_LINES
        start, prefix = block.start, block.before
        for segment in decoded.segments:
            if segment.end == block.end:
                prefix = reader.hash
            elif prefix is not None:
                prefix.update(block.data[start - block.start : segment.end - block.start])
            assert prefix is not None, "a watched file is hashed"
            source = Source(file.generation, segment.end, prefix.hexdigest(), segment.line)
            dated = segment
            if self.epochs is not None:
                old = self._sources.get(self._place(file.path))
                dated = self.epochs(
                    segment, rewritten=start == 0 and old is not None and old.generation < file.generation
                )
            parts.append(Part(begin(dated, self._known, self._declare), start, source))
            start = segment.end
        return True

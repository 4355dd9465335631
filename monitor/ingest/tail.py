"""Follows files that are being written, and appends what is new in them to the log exactly once.

A record of the log says which span of which file it carries, and spans of one file join up. The fold takes a span only if it begins where
the last one ended, and moves the position of the file together with everything else it changes; after a restart reading goes on from
that position, so the log has to be folded to its end before a `Tailer` begins.

Files are read one after the other, sorted by path, each to its present end: the order in which `report` reads them, so that both reach the
same verdicts. A file that grows while it is read has its turn ended at the size it had when the turn began.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from monitor.crash_points import crash_point
from monitor.engine.state.delta import Source
from monitor.ingest.files.blocks import BlockReader
from monitor.ingest.files.segments import decode
from monitor.ingest.files.watched import WatchedFile
from monitor.ingest.importer import Importer
from monitor.ingest.packing import Declare, Packer
from monitor.ingest.reject_limit import RejectLimit
from schemas.decode import Checker
from schemas.packed import Reject

_BLOCK_BYTES: Final = 1 << 17
_BLOCK_LINES: Final = 1_000
_BLOCKS_AN_APPEND: Final = 8
_OPEN_FILES: Final = 200


@dataclass
class Progress:
    """How far reading has come: bytes before gunzipping of all files, and lines since the start of the process."""

    bytes_done: int = 0
    bytes_total: int = 0
    lines: int = 0
    rejected: int = 0
    files: int = 0


class _Batch(NamedTuple):
    """Records for one append, and where the file stands behind them."""

    records: list[bytes]
    source: Source
    lines: int
    rejects: list[Reject]


class Tailer:
    """Follows the files of paths.

    Once `run_once` or `follow` has ended with an exception, or was cancelled, make a new one from the positions that were folded.

    Parameters
    ----------
    paths : sequence of path
        Files and folders, as for `Importer.find`; folders are looked through again at each pass.
    append : async callable
        Appends records to the log, and returns once they are durable.
    sources : mapping of str to Source
        The position of each file, by absolute path, in the state that is the fold of the whole log.
    declare : callable, optional
        Gives the declaration to place before the first event of a benchmark that is neither known nor declared by a file. Called from
        another thread.
    known : iterable of str
        The benchmarks of that state.
    limit : RejectLimit, optional
        Stops the run when too many lines are rejected. They have been appended by then.
    poll_interval : float
        Seconds between two looks at the files.
    importer : Importer, optional
        How logs are found and read.

    Attributes
    ----------
    progress : Progress

    Raises
    ------
    PathError
        If a path cannot be read.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        append: Callable[[Sequence[bytes]], Awaitable[int]],
        sources: Mapping[str, Source],
        *,
        declare: Declare | None = None,
        known: Iterable[str] = (),
        limit: RejectLimit | None = None,
        poll_interval: float = 0.5,
        importer: Importer | None = None,
    ) -> None:
        self.progress = Progress()
        self._paths = paths
        self._importer = importer or Importer()
        self._append = append
        self._sources = dict(sources)
        self._packer = Packer(declare, known)
        self._limit = limit or RejectLimit()
        self._fresh = not sources
        self._poll_interval = poll_interval
        self._checker = Checker()
        self._files: dict[Path, WatchedFile] = {}
        self._reading = threading.Lock()
        self._found: list[Path] | None = self._importer.find(self._paths)

    async def run_once(self) -> None:
        """Read all files to their end, and count them as complete.

        Raises
        ------
        TooManyRejected
            If the limit is passed, or nothing at all could be read.
        OSError
            If a file cannot be read or the log not be written.
        """
        try:
            await self._pass(final=True)
        finally:
            self._close()
        if self._fresh:
            self._limit.finish()

    async def follow(self) -> None:
        """Read what is there and then what comes, until cancelled.

        A last line waits for its newline, and a gzip file for the rest of what it begins. Files may appear, grow, be replaced and vanish.

        Raises
        ------
        TooManyRejected
            If the limit is passed.
        OSError
            If a file cannot be read or the log not be written.
        """
        try:
            while True:
                await self._pass(final=False)
                await asyncio.sleep(self._poll_interval)
        finally:
            self._close()

    async def _pass(self, *, final: bool) -> None:
        found, self._found = self._found, None
        if found is None:
            found = await asyncio.to_thread(self._importer.find, self._paths, strict=False)
        await asyncio.to_thread(self._look, found)
        for path in found:
            file = self._files[path]
            try:
                await self._turn(file, final=final)
            except (FileNotFoundError, PermissionError):  # gone, or taken away: it may come back
                file.close()
            if final:
                file.close()

    def _look(self, found: list[Path]) -> None:
        """Take in files that are new and let go of those that vanished."""
        with self._reading:
            for path in self._files.keys() - set(found):
                self._files.pop(path).close()
            for path in found:
                if path not in self._files:
                    self._files[path] = WatchedFile(
                        path, block_bytes=_BLOCK_BYTES, max_lines=_BLOCK_LINES, opener=self._importer.open
                    )
            self.progress.files = len(found)
            self.progress.bytes_total = sum(file.size() for file in self._files.values())
            self.progress.bytes_done = sum(file.bytes_read for file in self._files.values())

    async def _turn(self, file: WatchedFile, *, final: bool) -> None:
        """Append what is new in a file, up to the size it has now."""
        size = file.size()
        while (batch := await asyncio.to_thread(self._read, file, final=final)) is not None:
            await self._append(batch.records)
            crash_point("import")
            self._sources[str(file.path)] = batch.source
            self.progress.lines += batch.lines
            self.progress.rejected += len(batch.rejects)
            self.progress.bytes_done = sum(each.bytes_read for each in self._files.values())
            self._limit.add(batch.lines, batch.rejects)
            if not final and file.bytes_read >= size:
                break

    def _read(self, file: WatchedFile, *, final: bool) -> _Batch | None:
        with self._reading:
            reader = file.reader(self._sources.get(str(file.path)), final=final)
            if reader is None:
                return None
            self._limit_open(file)
            batch = self._blocks(file, reader, final=final)
            file.remember(drained=batch is None)
            return batch

    def _blocks(self, file: WatchedFile, reader: BlockReader, *, final: bool) -> _Batch | None:
        path = str(file.path)
        records: list[bytes] = []
        rejects: list[Reject] = []
        source, lines = None, 0
        while len(records) < _BLOCKS_AN_APPEND and (block := reader.next(final=final)) is not None:
            decoded = decode(block, file.path, self._checker, file.benchmark)
            file.benchmark = decoded.benchmark
            start, running = block.start, block.before
            for segment in decoded.segments:
                if segment.end == block.end:
                    running = reader.hash
                elif running is not None:
                    running.update(block.data[start - block.start : segment.end - block.start])
                assert running is not None, "the reader hashes"
                source = Source(file.generation, segment.end, running.hexdigest(), segment.line)
                records.append(self._packer.pack(segment, path, start, source, decoded.lines))
                start = segment.end
                lines += segment.lines
                rejects += segment.rejects
        return None if source is None else _Batch(records, source, lines, rejects)

    def _limit_open(self, file: WatchedFile) -> None:
        """Keep the number of open files bounded: close the one that was read the longest ago."""
        self._files[file.path] = self._files.pop(file.path)
        opened = [each for each in self._files.values() if each.is_open]
        for each in opened[:-_OPEN_FILES]:
            each.close()

    def _close(self) -> None:
        with self._reading:  # a cancelled task leaves its thread to finish
            for file in self._files.values():
                file.close()

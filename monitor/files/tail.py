"""Follow result files while they are written, and append what is new to the log exactly once.

A record of the log names the span of the file it carries, and the spans of a file join up. The fold takes a span only if it begins where
the last one ended, and stores the new position of the file together with the scores. After a restart reading continues at the stored
position, so the log has to be folded to its end before a `Tailer` starts.

Files are read one after the other, in the order of the paths and sorted inside a folder, each to its present end. `report` reads them in
the same order, so both reach the same verdicts. A file that grows while it is read is read up to the size it had at the start of its turn.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from monitor.crash_points import crash_point
from monitor.files.batches import BatchReader, Part, Progress
from monitor.files.declaration_file import Declare
from monitor.files.epochs import Epochs
from monitor.files.importer import Importer
from monitor.files.reject_limit import RejectLimit
from monitor.files.streams.paths import named_path
from schemas.records.chunks import Source
from schemas.records.packed import Segment, SourceSpan, encode_span, mark_imported
from schemas.records.text import Found


class Tailer:
    """Appends what is new in files to the log."""

    # After `run_once` or `follow` has failed or was cancelled, start a new one from the positions that were folded.

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        append: Callable[[Sequence[bytes]], Awaitable[int]],
        sources: Mapping[str, Source],
        *,
        declare: Declare | None = None,
        known: Iterable[str] = (),
        epochs: Epochs | None = None,
        on_first_pass: Callable[[list[Path]], None] = lambda _: None,
        refused: Callable[[], Mapping[str, str]] = dict,
        notice: Callable[[str], None] = lambda _: None,
        limit: RejectLimit | None = None,
        poll_interval: float = 0.5,
        importer: Importer | None = None,
        waits: bool = False,
    ) -> None:
        self._paths, self._append = paths, append
        self._importer = importer or Importer()
        self._limit = limit or RejectLimit()
        self._poll_interval = poll_interval
        self._refused, self._notice = refused, notice
        self._left_out: set[str] = set()
        self._on_first_pass: Callable[[list[Path]], None] | None = on_first_pass
        self._reader = BatchReader(sources, declare=declare, known=known, epochs=epochs, opener=self._importer.open)
        self._files: list[Path] | None = self._importer.find(paths, strict=not waits)
        self._known_places = frozenset(sources)

    @property
    def progress(self) -> Progress:
        """How far reading has come."""
        return self._reader.progress

    @property
    def incomplete(self) -> dict[Path, str]:
        """What is missing of the files that were read as complete and break off."""
        return self._reader.incomplete

    @property
    def epochs(self) -> Epochs | None:
        """What gives events an epoch."""
        return self._reader.epochs

    @property
    def files(self) -> Collection[Path]:
        """The files that were read."""
        return self._reader.files

    async def run_once(self) -> None:
        """Read all files to their end, as complete files."""
        try:
            await self._append_new(final=True)
        finally:
            self._reader.close()
        self._limit.finish()

    async def follow(self, on_complete: Callable[[], Awaitable[None]] | None = None) -> None:
        """Read what is there and then what comes, until cancelled."""
        # An unfinished last line waits for its newline, an unfinished gzip file for its end. Files may appear, grow, be replaced and
        # vanish.
        try:
            if on_complete is not None:
                await self._append_new(final=True)
                await on_complete()
            while True:
                await self._append_new(final=False)
                await asyncio.sleep(self._poll_interval)
        finally:
            self._reader.close()

    async def _append_new(self, *, final: bool) -> None:
        files, self._files = self._files, None
        if files is None:
            files = await asyncio.to_thread(self._importer.find, self._paths, strict=False)
        await self._leave_out(files)
        async with aclosing(self._reader.read(files, final=final)) as batches:
            async for batch in batches:
                # A file that was there already, and of which nothing was read, is an import. What was added to another one is new.
                imported = self._on_first_pass is not None and batch.place not in self._known_places
                news = [self._importer.take_news(batch.path), *[None] * (len(batch.parts) - 1)]
                records = [
                    _record(batch.place, part, found, imported=imported)
                    for part, found in zip(batch.parts, news, strict=True)
                ]
                await self._append(records)
                crash_point("import")
                self._limit.add(batch.line_count, batch.rejects)
        if not final and (fault := self._limit.new_scale_fault()) is not None:
            self._notice(str(fault))
        if self._on_first_pass is not None:
            self._on_first_pass(self._reader.read_before())
            self._on_first_pass = None

    async def _leave_out(self, files: Collection[Path]) -> None:
        """Append that there is nothing in refused files any more that were among the paths and are gone."""
        for place, name in await asyncio.to_thread(self._gone, self._refused(), files):
            self._left_out.add(place)
            empty = self._reader.begin_again(place)
            span = SourceSpan(place, empty.generation, empty.prefix, empty.line)
            await self._append([encode_span(Segment([], [], [], 0, 0, name), span, 0)])

    def _gone(self, refused: Mapping[str, str], files: Collection[Path]) -> list[tuple[str, str]]:
        paths = [named_path(each)[1] for each in self._paths]
        return [
            (place, name)
            for place, name in refused.items()
            if place not in self._left_out
            and (path := Path(name)) not in files
            and any(path.is_relative_to(each) for each in paths)
            and not path.exists()
        ]


def _record(place: str, part: Part, found: Found | None, *, imported: bool) -> bytes:
    source = part.source
    span = SourceSpan(place, source.generation, source.prefix, source.line)
    record = encode_span(part.segment, span, part.start, found)
    return mark_imported(record) if imported else record

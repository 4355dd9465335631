"""Sends files of results somewhere else: each event at least once, and on a second run only what is new.

After each acknowledged delivery the position of every file is saved (`monitor.send.send_record`). A crash between the two
sends the last delivery again; the first score of a key wins, so that changes nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from monitor.engine.state.delta import Source
from monitor.ingest.files.blocks import Open
from monitor.ingest.files.segments import decode
from monitor.ingest.files.streams import open_stream
from monitor.ingest.files.watched import WatchedFile
from monitor.ingest.packing import Declare
from monitor.ingest.reject_limit import RejectLimit
from monitor.send.messages import Messages, Outgoing
from monitor.send.send_record import Sent
from schemas.decode import Checker
from schemas.packed import Reject

Deliver = Callable[[Sequence[Outgoing]], Awaitable[None]]
"""Delivers messages, those of one benchmark in the order given, and returns once they are durable."""

_BLOCK_BYTES: Final = 1 << 17
_BLOCK_LINES: Final = 1_000
_BLOCKS_A_DELIVERY: Final = 16


@dataclass
class Progress:
    """How far sending has come: bytes before gunzipping, of all files; the rest since the start of the process."""

    bytes_total: int
    bytes_done: int = 0
    events: int = 0
    rejected: int = 0
    benchmarks: set[str] = field(default_factory=set)
    changed: list[Path] = field(default_factory=list)
    """Files that are no longer what they were when they were sent: they are sent from the beginning."""


class _Delivery(NamedTuple):
    messages: list[Outgoing]
    source: Source
    bytes_read: int
    lines: int
    events: int
    rejects: list[Reject]


class Sender:
    """Sends files, one after the other, each to its present end.

    Parameters
    ----------
    files : sequence of Path
        As `Importer.find` lists them.
    deliver : callable
    sent : Sent
    declare : callable, optional
        Gives the declaration to place before the first event of a benchmark that neither a file has declared nor an earlier run has begun.
    limit : RejectLimit, optional
        Stops the run when too many lines are rejected. What is good among them has been sent by then.
    packed : bool
        Up to 1,000 events of one benchmark a message, instead of one.
    on_reject : callable, optional
        Called with each line that could not be read.
    on_progress : callable, optional
        Called after each delivery.
    opener : callable
        Opens a file: `Importer.open` for logs in any format.

    Attributes
    ----------
    progress : Progress
    """

    def __init__(
        self,
        files: Sequence[Path],
        deliver: Deliver,
        sent: Sent,
        *,
        declare: Declare | None = None,
        limit: RejectLimit | None = None,
        packed: bool = False,
        on_reject: Callable[[Reject], None] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
        opener: Open = open_stream,
    ) -> None:
        self.progress = Progress(bytes_total=sum(file.stat().st_size for file in files))
        self._files, self._deliver, self._sent = files, deliver, sent
        self._limit = limit or RejectLimit()
        self._on_reject, self._on_progress, self._opener = on_reject, on_progress, opener
        self._messages = Messages(declare, sent.benchmarks, packed=packed)
        self._checker = Checker()

    async def run(self) -> None:
        """Send what is new.

        Raises
        ------
        TooManyRejected
            If the limit is passed, or nothing at all could be read.
        OSError
            If a file cannot be read, or the record of what was sent not be written; and what `deliver` raises.
        """
        fresh, before = not self._sent.sources, 0
        for path in self._files:
            await self._send(path, before)
            before += path.stat().st_size
        if fresh:
            self._limit.finish()

    async def _send(self, path: Path, before: int) -> None:
        file = WatchedFile(path, block_bytes=_BLOCK_BYTES, max_lines=_BLOCK_LINES, opener=self._opener)
        source = self._sent.sources.get(str(path))
        reading = asyncio.create_task(asyncio.to_thread(self._read, file, source))
        try:
            if source is not None:
                await asyncio.wait((reading,))
                if file.generation != source.generation:
                    self.progress.changed.append(path)
            while (delivery := await reading) is not None:
                reading = asyncio.create_task(asyncio.to_thread(self._read, file, delivery.source))
                await self._deliver(delivery.messages)
                self._acknowledged(path, delivery, before)
        finally:
            await asyncio.wait((reading,))  # the thread has the file in its hands
            if not reading.cancelled():
                reading.exception()
            file.close()

    def _read(self, file: WatchedFile, source: Source | None) -> _Delivery | None:
        reader = file.reader(source, final=True)
        if reader is None:
            return None
        rejects: list[Reject] = []
        blocks = lines = events = 0
        while blocks < _BLOCKS_A_DELIVERY and (block := reader.next(final=True)) is not None:
            decoded = decode(block, file.path, self._checker, file.benchmark)
            file.benchmark = decoded.benchmark
            self._messages.add(decoded)
            for segment in decoded.segments:
                rejects += segment.rejects
                lines += segment.lines
                events += len(segment.events)
            source = Source(file.generation, block.end, reader.hash.hexdigest(), decoded.segments[-1].line)
            blocks += 1
        if not blocks or source is None:
            return None
        return _Delivery(self._messages.take(), source, reader.stream.position, lines, events, rejects)

    def _acknowledged(self, path: Path, delivery: _Delivery, before: int) -> None:
        self._sent.sources[str(path)] = delivery.source
        progress = self.progress
        for benchmark in {message.benchmark for message in delivery.messages}:
            progress.benchmarks.add(benchmark)
            self._sent.benchmarks.setdefault(benchmark, self._messages.begun[benchmark])
        self._sent.save()
        progress.bytes_done = before + delivery.bytes_read
        progress.events += delivery.events
        progress.rejected += len(delivery.rejects)
        if self._on_reject is not None:
            for reject in delivery.rejects:
                self._on_reject(reject)
        if self._on_progress is not None:
            self._on_progress(progress)
        self._limit.add(delivery.lines, delivery.rejects)

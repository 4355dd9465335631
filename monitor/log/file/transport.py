"""Read the application's `FileLog` as the Faust transport ``file://``; one message is one chunk.

Stock Faust spends about 0.1 ms on a message, so a message here carries up to 2,000 records. The application's own store supplies the
offsets that Faust would ask a broker for. tests/contract/test_faust_hooks.py pins the undocumented parts of Faust that this relies on.
"""
# Faust's interfaces have parameters that a file does not need.
# ruff: noqa: ARG002

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from faust.transport import base
from faust.types import TP

from monitor.log.chunk_consumer import ChunkConsumer
from monitor.log.file.log import FileLog
from schemas.records.chunks import Chunk

if TYPE_CHECKING:
    from monitor.log.faust_app import FaustApp

PARTITION = 0


class Consumer(ChunkConsumer):
    """Delivers the chunks of a `FileLog` in order, from the offset that the application has stored."""

    # One chunk waits in the stream's buffer, the next in this consumer, and no third is read before the agent asks for one. This is the
    # only backpressure.

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._log: FileLog = self.transport.log
        self._assigned: set[TP] = set()
        self._position: int | None = None
        self._growth: asyncio.Future[bool] | None = None

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Take the log's one partition, which no other consumer can have."""
        names = set(topics)
        if len(names) != 1:
            raise ValueError(f"topics are {sorted(names)}: a file log holds one topic; run one application per log")
        self._assigned = {TP(names.pop(), PARTITION)}
        # Faust's callbacks wait until this subscription is done, so they cannot be awaited here.
        self.add_future(self._assign())

    async def _assign(self) -> None:
        self.app.on_rebalance_start()
        await self.on_partitions_assigned(self.assignment(), self.app.consumer_generation_id)

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to the offset that the application has stored, or to the first record if it has none."""
        stored = await self.app.stored_offsets(self.assignment())
        offsets = {tp: stored.get(tp, self._log.first_offset) for tp in self._assigned}
        await self.seek_wait(offsets)
        return offsets

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Seek to an offset and drop the chunks that were read but not delivered to the agent."""
        for tp, offset in partitions.items():
            await self._seek(tp, offset)

    async def _seek(self, partition: TP, offset: int) -> None:
        self._log.check_offset(offset)
        if self._position is not None:
            # Streams drop messages of another generation: everything that was read before this seek.
            self.app.consumer_generation_id += 1
        self._position = offset
        if self._growth is not None:
            self._growth.cancel()

    async def _drain_messages(self, fetcher: base.Fetcher) -> None:
        # Faust's own loop loses a seek that comes while a message waits for a full buffer, and sleeps for a second whenever a buffer is
        # full.
        while not (self.should_stop or fetcher.should_stop):
            for tp, chunks in (await self._getmany(self._assigned, 0.0)).items():
                for chunk in chunks:
                    await self.callback(self._to_message(tp, chunk))

    async def _getmany(self, active_partitions: set[TP], timeout: float) -> dict[TP, list[Chunk]]:  # noqa: ASYNC109
        while True:
            position = self._position
            assert position is not None, "the fetcher starts after the first seek"
            chunk = self._log.read(position, self.app.chunk_records, self.app.chunk_bytes)
            if chunk is not None:
                self._position = chunk.end
                return {tp: [chunk] for tp in active_partitions}
            self._growth = asyncio.ensure_future(self._log.wait_beyond(position))
            try:
                await asyncio.wait((self._growth,))  # ends, too, when a seek cancels it
            finally:
                self._growth.cancel()
                self._growth = None

    def assignment(self) -> set[TP]:
        """Return the one partition, once subscribed."""
        return set(self._assigned)

    async def position(self, tp: TP) -> int | None:
        """Return the offset of the next chunk to be read."""
        return self._position

    def highwater(self, tp: TP) -> int:
        """Return the end of the log."""
        return self._log.durable_end

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """Return the end of the log."""
        return dict.fromkeys(partitions, self._log.durable_end)

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """Return the offset of the first record."""
        return dict.fromkeys(partitions, self._log.first_offset)

    def topic_partitions(self, topic: str) -> int:
        """Return 1."""
        return 1

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int:
        """Return the one partition."""
        return PARTITION

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        return False  # offsets are the store's


class Transport(base.Transport):  # type: ignore[misc]
    """Serves ``file:///absolute/path/log.jsonl``, the log that the application has open as its `file_log`."""

    Consumer = Consumer
    driver_version = "file"

    app: "FaustApp"

    @property
    def log(self) -> FileLog:
        """The application's log."""
        log = self.app.file_log
        path = Path(self.url[0].path).resolve()
        if log is None or log.path != path:
            current = "not set" if log is None else log.path
            raise ValueError(
                f"file_log is {current}; open {path} with FileLog.open and set app.file_log before the start"
            )
        return log

"""Follow all partitions of a topic from offsets of one's own: in no consumer group, and without a commit."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import time
from typing import Final, Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import NoOffsetForPartitionError
from aiokafka.errors import OffsetOutOfRangeError as FetchedOutOfRange
from faust.types import TP

from monitor.log.errors import OffsetOutOfRange
from monitor.log.kafka.records import chunks
from monitor.log.kafka.sender_check import SenderCheck
from monitor.log.kafka.settings import CHUNK_BYTES, CHUNK_RECORDS, KafkaSettings
from monitor.log.kafka.slices import read_in_slices
from monitor.log.kafka.topic_identity import TopicIdentity
from schemas.records.chunks import Chunk
from schemas.records.origins import OriginKey

_POLL_MS: Final = 200
_STOP_SECONDS: Final = 5.0


class KafkaFollower:
    """Reads chunks of the partitions of a topic; use it as an async context manager."""

    def __init__(
        self,
        settings: KafkaSettings,
        topic: str,
        partitions: int,
        folded: TopicIdentity,
        key: OriginKey,
        compare: Callable[[int], Awaitable[bool]],
    ) -> None:
        self._settings, self._topic, self._folded, self._key, self._compare = settings, topic, folded, key, compare
        self._tps = [TopicPartition(topic, number) for number in range(partitions)]
        self._positions: dict[int, int] = {}
        """Where the next chunk of each partition begins; one without a position is not read."""
        self._sought: set[int] = set()  # partitions that were sent to another offset since the last fetch

    async def __aenter__(self) -> Self:
        settings = self._settings
        self._kafka = AIOKafkaConsumer(
            **settings.client_options(),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            fetch_max_wait_ms=round(1000 * settings.fetch_wait_seconds),
            max_partition_fetch_bytes=settings.fetch_bytes,
        )
        try:
            await self._kafka.start()
        except BaseException:
            await self._kafka.stop()
            raise
        self._senders = SenderCheck(self._kafka, self._topic, self._folded)
        read_in_slices(self._kafka, CHUNK_RECORDS, self._senders.note)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._kafka.stop()
        except TimeoutError:
            pass  # the brokers do not answer, and know nothing of this consumer

    async def first_offsets(self) -> dict[int, int]:
        """Ask the brokers for the offset of the first record of each partition."""
        offsets = await self._kafka.beginning_offsets(self._tps)
        return {tp.partition: offset for tp, offset in offsets.items()}

    async def check_topic(self) -> None:
        """Raise `TopicChanged` if a broker knows another topic under the name; do nothing if none answers."""
        await self._senders.check()

    def begin(self, offsets: dict[int, int]) -> None:
        """Begin to read every partition, from its offset."""
        self._kafka.assign(self._tps)
        for number, offset in offsets.items():
            self.seek(number, offset)

    def seek(self, partition: int, offset: int) -> None:
        """Continue a partition at an offset."""
        self._positions[partition] = offset
        self._sought.add(partition)
        self._kafka.seek(self._tps[partition], offset)

    def end(self, partition: int) -> tuple[int, float] | None:
        """Return the end of a partition as of the last answer of its broker, and the age of that in seconds; None before the first."""
        if not self._positions:
            return None
        tp = self._tps[partition]
        end, at = self._kafka.highwater(tp), self._kafka.last_poll_timestamp(tp)
        return None if end is None or at is None else (end, max(0.0, time() - at / 1000))

    async def read(self, partitions: Iterable[int]) -> list[Chunk]:
        """Wait a moment for records of some partitions; return a few chunks, those of a partition in order."""
        tps = [self._tps[number] for number in partitions]
        if not tps:
            await asyncio.sleep(_POLL_MS / 1000)
            return []
        self._sought.clear()
        try:
            fetched = await self._kafka.getmany(*tps, timeout_ms=_POLL_MS, max_records=1)  # slice
        except (FetchedOutOfRange, NoOffsetForPartitionError) as error:
            raise self._out_of_range(error) from error
        if fetched:
            await self._senders.confirm(lambda: True, self._compare_one)
        read: list[Chunk] = []
        for tp, (records,) in fetched.items():
            if tp.partition in self._sought:
                continue  # loaded again after the fetch: the records do not follow that state
            start, end = self._positions[tp.partition], await self._kafka.position(tp)
            self._positions[tp.partition] = end
            read += chunks(records, tp.partition, start, end, CHUNK_BYTES, self._key)
        return read

    async def _compare_one(self, tp: TP) -> bool:
        return await self._compare(tp.partition)

    def _out_of_range(self, error: Exception) -> OffsetOutOfRange:
        ((tp, offset),) = error.args[0].items() if isinstance(error, FetchedOutOfRange) else ((error.args[0], "?"),)
        message = f"partition {tp.partition} of {self._topic} no longer holds offset {offset}"
        return OffsetOutOfRange(message, tp.partition)

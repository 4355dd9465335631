"""The records of a board's log, for an undo: a file log, or a partition of a topic."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from aiokafka import ConsumerRecord

from monitor.log.file.log import FileLog
from monitor.log.kafka.records import origin_of, partition_bounds, producer_of, reader, records_with_headers
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.kafka_producer import KafkaProducer, Message
from monitor.service.operations.undo import LogRecord, marks_of
from schemas.records.chunks import Chunk
from schemas.records.origins import OriginKey
from schemas.records.producers import in_packed_record

_READ_BYTES = 1 << 18
_READ_RECORDS = 1_000


class FileRecords:
    """The records of a file log: producer and time are fields of a record."""

    named = True

    def __init__(self, log: FileLog) -> None:
        self._log = log

    async def bounds(self) -> tuple[int, int]:
        """Return the offset of the first record, and the end."""
        return self._log.first_offset, self._log.durable_end

    async def read(self, first: int, stop: int) -> AsyncIterator[Sequence[LogRecord]]:
        """Yield the records from an offset on, up to one, in parts."""
        offset = max(first, self._log.first_offset)
        while offset < stop:
            chunk = self._log.read(offset, _READ_RECORDS, _READ_BYTES)
            if chunk is None:
                return
            offset = chunk.end
            yield (
                [LogRecord(chunk.start, b"", None, None, lost=True)]
                if chunk.lost
                else [
                    record
                    for record in map(_in_file, [chunk] * len(chunk.records), range(len(chunk.records)))
                    if record.offset < stop
                ]
            )
            await asyncio.sleep(0)

    async def append(self, values: Sequence[tuple[bytes, str | None]]) -> None:
        """Append records."""
        await self._log.append([value for value, _ in values])


def _in_file(chunk: Chunk, number: int) -> LogRecord:
    value = chunk.records[number]
    at, copied = marks_of(value)
    return LogRecord(chunk.offsets[number], value, in_packed_record(chunk, number), at if copied is None else copied[1])


class TopicRecords:
    """The records of the partition that owns a benchmark: the producer is a signed header, the time that of the message."""

    named = False

    def __init__(
        self, kafka: KafkaSettings, topic: str, partition: int, benchmark: str, producer: KafkaProducer, key: OriginKey
    ) -> None:
        self._kafka, self._topic, self._partition, self._benchmark = kafka, topic, partition, benchmark
        self._producer, self._key = producer, key

    async def bounds(self) -> tuple[int, int]:
        """Return the offset of the first record that the partition still has, and its end."""
        async with reader(self._kafka) as consumer:
            return (await partition_bounds(consumer, self._topic, [self._partition]))[self._partition]

    async def read(self, first: int, stop: int) -> AsyncIterator[Sequence[LogRecord]]:
        """Yield the records from an offset on, up to one, in parts."""
        part: list[LogRecord] = []
        async for record in records_with_headers(self._kafka, self._topic, self._partition, first, stop - 1):
            part.append(self._record(record))
            if len(part) == _READ_RECORDS:
                yield part
                part = []
        yield part

    def _record(self, record: ConsumerRecord) -> LogRecord:
        partition, value = self._partition, record.value or b""
        copied = marks_of(value)[1]
        at = record.timestamp if copied is None else copied[1]
        producer, origin = producer_of(record, partition, self._key), origin_of(record, partition, self._key)
        return LogRecord(record.offset, value, producer, at, origin)

    async def append(self, values: Sequence[tuple[bytes, str | None]]) -> None:
        """Append records."""
        key = self._benchmark.encode()
        messages = [
            Message(self._partition, key, value, self._key.producer_headers(who, self._partition, value))
            for value, who in values
        ]
        await self._producer.deliver(self._topic, messages)

"""Cut fetched Kafka records into chunks, and read a single record."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, overload

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition

from monitor.log.kafka.settings import KafkaSettings
from monitor.log.kafka.slices import Record
from schemas.records.chunks import ORIGIN_HEADER, Chunk, Origin
from schemas.records.origins import OriginKey
from schemas.records.producers import PRODUCER_HEADER

_VALUE: Final = attrgetter("value")
_HEADERS: Final = attrgetter("headers")


class _Keys(Sequence[bytes | None]):
    """The keys of records, each made when it is looked at: only those of unreadable records are."""

    def __init__(self, records: list[Record]) -> None:
        self._records = records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, place: int) -> bytes | None: ...
    @overload
    def __getitem__(self, place: slice) -> "_Keys": ...
    def __getitem__(self, place: int | slice) -> "bytes | _Keys | None":
        taken = self._records[place]
        return _Keys(taken) if isinstance(taken, list) else taken.key


def chunks(
    records: list[Record], partition: int, start: int, end: int, bound: int, key: OriginKey | None = None
) -> Iterator[Chunk]:
    """Cut records into consecutive chunks from `start` to `end`."""
    values = list(map(_VALUE, records))
    if None in values:
        values = [value or b"" for value in values]
    cut = 0
    if sum(map(len, values)) > bound:
        for number in _cuts(values, bound):
            following = records[number].offset
            yield _chunk(records[cut:number], values[cut:number], partition, start, following, key)
            start, cut = following, number
    yield _chunk(records[cut:] if cut else records, values[cut:] if cut else values, partition, start, end, key)


def _cuts(values: list[bytes], bound: int) -> Iterator[int]:
    cut = size = 0
    for number, value in enumerate(values):
        if size + len(value) > bound and number > cut:
            yield number
            cut, size = number, 0
        size += len(value)


def _chunk(
    records: list[Record], values: list[bytes], partition: int, start: int, end: int, key: OriginKey | None
) -> Chunk:
    first, last = records[0].offset, records[-1].offset
    without_gaps = last - first == len(records) - 1
    origins = producers = None
    if key is not None and any(map(_HEADERS, records)):
        origins = [origin_of(record, partition, key) for record in records]
        producers = [producer_of(record, partition, key) for record in records]
    return Chunk(
        partition=partition,
        start=start,
        end=end,
        offsets=range(first, last + 1) if without_gaps else [record.offset for record in records],
        records=values,
        origins=origins if origins is not None and any(origins) else None,
        keys=_Keys(records),
        producers=producers if producers is not None and any(producers) else None,
    )


def origin_of(record: Record, partition: int, key: OriginKey) -> Origin | None:
    """Return the origin of a republished record, None for any other."""
    for name, value in record.headers:
        if name == ORIGIN_HEADER:
            return key.verify(value or b"", partition, record.value or b"")
    return None


def producer_of(record: Record, partition: int, key: OriginKey) -> str | None:
    """Return who sent a record, if its header names a producer."""
    for name, value in record.headers:
        if name == PRODUCER_HEADER:
            return key.verify_producer(value or b"", partition, record.value or b"")
    return None


async def earliest_offsets(settings: KafkaSettings, topic: str) -> dict[int, int]:
    """Return the offset of the first record that each partition of a topic still holds."""
    consumer = AIOKafkaConsumer(topic, **settings.client_options(), enable_auto_commit=False)
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        offsets = await consumer.beginning_offsets(partitions) if partitions else {}
        return {tp.partition: offset for tp, offset in offsets.items()}
    finally:
        await consumer.stop()


async def records_between(
    settings: KafkaSettings, topic: str, partition: int, first: int, last: int
) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the records of a partition with their offsets from `first` to `last`, as far as the partition still holds them."""
    async for record in records_with_headers(settings, topic, partition, first, last):
        yield record.offset, record.value or b""


async def records_with_headers(
    settings: KafkaSettings, topic: str, partition: int, first: int = 0, last: int | None = None
) -> AsyncIterator[ConsumerRecord]:
    """Yield the records of a partition from the offset `first` to `last`, or to its present end."""
    tp = TopicPartition(topic, partition)
    async with reader(settings, reset="earliest") as consumer:
        consumer.assign([tp])
        begin, end = (await partition_bounds(consumer, topic, [partition]))[partition]
        stop = end if last is None else min(end, last + 1)
        consumer.seek(tp, max(first, begin))
        while await consumer.position(tp) < stop:
            for record in (await consumer.getmany(tp, timeout_ms=1_000, max_records=1_000)).get(tp, ()):
                if record.offset < stop:
                    yield record


@contextlib.asynccontextmanager
async def reader(settings: KafkaSettings, reset: str = "none") -> AsyncIterator[AIOKafkaConsumer]:
    """Open a consumer of committed records, without a group."""
    # `reset` is where it goes on if an offset is gone: "earliest", or "none", which is an error.
    consumer = AIOKafkaConsumer(
        **settings.client_options(), auto_offset_reset=reset, enable_auto_commit=False, isolation_level="read_committed"
    )
    try:
        await consumer.start()
        yield consumer
    finally:
        await consumer.stop()


async def partition_bounds(
    consumer: AIOKafkaConsumer, topic: str, partitions: Iterable[int]
) -> dict[int, tuple[int, int]]:
    """Return the first offset of each partition, and its end."""
    tps = [TopicPartition(topic, number) for number in partitions]
    first, end = await consumer.beginning_offsets(tps), await consumer.end_offsets(tps)
    return {tp.partition: (first[tp], end[tp]) for tp in tps}


async def record_at(consumer: AIOKafkaConsumer, topic: str, partition: int, offset: int) -> bytes | None:
    """Return the record at an offset; None if the partition ends before it, or there is a gap at the offset."""
    tp = TopicPartition(topic, partition)
    consumer.assign([tp])
    (end,) = (await consumer.end_offsets([tp])).values()
    if end <= offset:
        return None
    consumer.seek(tp, offset)
    record = await consumer.getone(tp)
    return (record.value or b"") if record.offset == offset else None


async def read_record(settings: KafkaSettings, topic: str, partition: int, offset: int) -> bytes | None:
    """Return the record at an offset, as `record_at`."""
    async with reader(settings) as consumer:
        return await record_at(consumer, topic, partition, offset)

"""Take fetched records in slices instead of one by one; the client spends most of its time per record on the object it makes of it.

The client has no interface for this; tests/contract/test_kafka_hooks.py pins the internals that this relies on.
"""
# ruff: noqa: SLF001

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException

from monitor.log.kafka.settings import CHUNK_BYTES


class Record(Protocol):
    """A record from the client's parser."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


class RecordSlices(PartitionRecords):  # type: ignore[misc]
    """The fetched records of one partition as an iterator of slices, where the client's own class yields records."""

    # It treats corrupt batches, control batches, aborted transactions and records before the requested offset as the client does.
    next_fetch_offset: int

    def __init__(self, fetched: PartitionRecords, most: int) -> None:
        super().__init__(
            fetched._tp,
            fetched._records,
            fetched._aborted_transactions,
            fetched.next_fetch_offset,
            None,
            None,
            fetched._check_crcs,
            fetched._isolation_level,
        )
        self._most = most

    def _unpack_records(self) -> Iterator[list[Record]]:
        part: list[Record] = []
        size, end = 0, self.next_fetch_offset
        for batch, dropped in self._batches():
            records = [] if dropped else list(batch)
            if records and records[0].offset < self.next_fetch_offset:
                # The batch with the requested offset may begin before it.
                records = [record for record in records if record.offset >= self.next_fetch_offset]
            part += records
            if batch.compression_type:  # what is fetched is bounded, and this may be many times as large
                size += sum([len(record.value or b"") for record in records])
            while len(part) >= self._most:
                full, part = part[: self._most], part[self._most :]
                # Whenever a slice is taken, the consumer compares its position with this and moves to it.
                self.next_fetch_offset = full[-1].offset + 1
                size = 0
                yield full
            # A compaction may have removed the last records of the batch, so its end may be after its last record.
            end = batch.next_offset
            if size > CHUNK_BYTES and part:
                self.next_fetch_offset, size = end, 0
                full, part = part, []
                yield full
        self.next_fetch_offset = end
        if part:
            yield part

    def _batches(self) -> Iterator[tuple[Any, bool]]:
        """Yield each batch, and whether its records are dropped."""
        while self._records.has_next():
            batch = self._records.next_batch()
            if self._check_crcs and not batch.validate_crc():
                raise CorruptRecordException(f"Invalid CRC - {self._tp}")
            aborted = False
            if self._isolation_level == READ_COMMITTED and batch.producer_id is not None:
                self._consume_aborted_up_to(batch.base_offset)
                if batch.is_control_batch and self._contains_abort_marker(batch):
                    self._aborted_producers.discard(batch.producer_id)
                aborted = batch.is_transactional and batch.producer_id in self._aborted_producers
            yield batch, aborted or batch.is_control_batch


def read_in_slices(consumer: AIOKafkaConsumer, most: int, on_fetched: Callable[[TopicPartition, int], object]) -> None:
    """Make `getmany` of a started consumer without partitions return slices instead of records."""
    # Each element is a list of up to `most` records, and ``max_records`` counts lists. `on_fetched` is called with the partition of fetched
    # records and the id of the broker that sent them, before `getmany` returns any of them.
    fetcher = consumer._fetcher
    fetch = fetcher._proc_fetch_request

    async def fetch_slices(assignment: object, node: int, request: object) -> bool:
        fetched: bool = await fetch(assignment, node, request)
        # The client handles the reply in one step, so nothing has read these records yet.
        for partition, result in fetcher._records.items():
            if isinstance(result, FetchResult) and not isinstance(result._partition_records, RecordSlices):
                result._partition_records = RecordSlices(result._partition_records, most)
                on_fetched(partition, node)
        return fetched

    fetcher._proc_fetch_request = fetch_slices

"""Records out of a fetch in runs, instead of one by one: what the client spends on a record is mostly the object that it makes of it.

The client has no interface for this: what is used of its inside is pinned by tests/contract/test_kafka_hooks.py.
"""
# ruff: noqa: SLF001

from collections.abc import Iterator
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import READ_COMMITTED, FetchResult, PartitionRecords
from aiokafka.errors import CorruptRecordException


class Record(Protocol):
    """A record as the client's parser gives it."""

    @property
    def offset(self) -> int:
        """Where it stands."""

    @property
    def value(self) -> bytes | None:
        """What it holds."""

    @property
    def headers(self) -> list[tuple[str, bytes | None]]:
        """Its headers."""


class RecordSlices(PartitionRecords):  # type: ignore[misc]
    """What a fetch brought of one partition: an iterator of runs, where the client's own is one of records.

    Corrupt batches, control batches, aborted transactions, and records before the offset that was asked for are treated as there.

    Parameters
    ----------
    fetched : PartitionRecords
        The client's own, of which nothing was taken.
    most : int
        Records in a run, at most.
    """

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
        run: list[Record] = []
        end = self.next_fetch_offset
        for batch, dropped in self._batches():
            records = [] if dropped else list(batch)
            if records and records[0].offset < self.next_fetch_offset:
                # The batch that holds the offset that was asked for may begin before it.
                records = [record for record in records if record.offset >= self.next_fetch_offset]
            run += records
            while len(run) >= self._most:
                part, run = run[: self._most], run[self._most :]
                # The consumer's position is compared with this, and moved to it, whenever a run is taken.
                self.next_fetch_offset = part[-1].offset + 1
                yield part
            # Not behind its last record: a compaction may have removed the ones that the batch ended with.
            end = batch.next_offset
        self.next_fetch_offset = end
        if run:
            yield run

    def _batches(self) -> Iterator[tuple[Any, bool]]:
        """Yield each batch, and whether its records are none for the reader."""
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


def read_in_slices(consumer: AIOKafkaConsumer, most: int) -> None:
    """Let `getmany` of a consumer that is started, and has no partition yet, give runs where it gives records.

    Each element is a list of up to `most` records, and ``max_records`` counts lists.
    """
    fetcher = consumer._fetcher
    fetch = fetcher._proc_fetch_request

    async def fetch_runs(*arguments: object) -> bool:
        brought: bool = await fetch(*arguments)
        # Nobody has seen them: what the client does from the answer on is one step.
        for result in fetcher._records.values():
            if isinstance(result, FetchResult) and not isinstance(result._partition_records, RecordSlices):
                result._partition_records = RecordSlices(result._partition_records, most)
        return brought

    fetcher._proc_fetch_request = fetch_runs

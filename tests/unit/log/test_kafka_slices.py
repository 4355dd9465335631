"""RecordSlices of records against the client's own reading of the same bytes."""

import random
import struct

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import READ_COMMITTED, READ_UNCOMMITTED, PartitionRecords
from aiokafka.errors import CorruptRecordException
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from monitor.log.kafka.slices import RecordSlices

PARTITION = TopicPartition("events", 0)
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CONTROL = 0x20


def sealed(batch):
    """Write the checksum anew over what was changed."""
    from aiokafka.record.util import calc_crc32c

    struct.pack_into(">I", batch, 17, calc_crc32c(bytes(batch[21:])))
    return bytes(batch)


def batch_of(base, records, *, compression=NONE, producer=-1, transactional=False, offsets=None, next_offset=None):
    """Return a batch of (value, headers) at `base`; `offsets` are relative to it, `next_offset` is where the next batch begins."""
    builder = DefaultRecordBatchBuilder(2, compression, int(transactional), producer, 0, 0, 1 << 20)
    for number, (value, headers) in enumerate(records):
        place = number if offsets is None else offsets[number]
        assert builder.append(place, 1_700_000_000_000, b"key", value, headers) is not None
    batch = bytearray(builder.build())
    struct.pack_into(">q", batch, 0, base)
    if next_offset is not None:
        struct.pack_into(">i", batch, 23, next_offset - base - 1)
    return sealed(batch)


def marker(base, producer, *, abort):
    """Return the control batch that ends a transaction."""
    builder = DefaultRecordBatchBuilder(2, NONE, 1, producer, 0, 0, 1 << 20)
    builder.append(0, 1_700_000_000_000, struct.pack(">hh", 0, 0 if abort else 1), struct.pack(">hi", 0, 0), [])
    batch = bytearray(builder.build())
    struct.pack_into(">q", batch, 0, base)
    batch[22] |= CONTROL
    return sealed(batch)


def made_log(seed):
    """Return batches, and the transactions that were aborted, as a broker tells them: (producer, first offset)."""
    choice = random.Random(seed)
    batches, aborted, open_since, offset = [], [], {}, choice.randrange(100)
    for _ in range(choice.randrange(1, 30)):
        kind = choice.random()
        if kind < 0.2 and open_since:
            producer = choice.choice(list(open_since))
            first = open_since.pop(producer)
            abort = choice.random() < 0.5
            if abort:
                aborted.append((producer, first))
            batches.append(marker(offset, producer, abort=abort))
            offset += 1
            continue
        size = choice.choice((1, 1, 2, 7, 40))
        places = sorted(choice.sample(range(size + 3), size)) if choice.random() < 0.3 else list(range(size))
        next_offset = offset + places[-1] + 1 + choice.choice((0, 0, 2))
        headers = [("rankwatch-origin", b"1:2:3"), ("none", None)] if choice.random() < 0.2 else []
        records = [(choice.choice((None, b"", b"%d" % choice.randrange(10**9))), headers) for _ in range(size)]
        producer = choice.randrange(3)
        transactional = kind > 0.6
        if transactional:
            open_since.setdefault(producer, offset)
        batches.append(
            batch_of(
                offset,
                records,
                compression=choice.randrange(5),
                producer=producer + 10 * (not transactional),
                transactional=transactional,
                offsets=places,
                next_offset=next_offset,
            )
        )
        offset = next_offset
    return batches, aborted, offset


def stock(data, aborted, start, level=READ_COMMITTED):
    return PartitionRecords(PARTITION, MemoryRecords(data), list(aborted), start, None, None, True, level)


def plain(record):
    return record.offset, record.value, tuple(record.headers)


@pytest.mark.parametrize("level", [READ_COMMITTED, READ_UNCOMMITTED])
def test_runs_hold_what_the_client_would_give_and_end_where_it_would_go_on(level):
    read = 0
    for seed in range(120):
        batches, aborted, end = made_log(seed)
        data = b"".join(batches)
        choice = random.Random(seed)
        start = choice.randrange(DefaultRecordBatch(batches[0]).base_offset, end)
        most = choice.choice((1, 2, 5, 13, 2000))
        # The broker sends from the batch on that holds the offset.
        kept = [batch for batch in batches if DefaultRecordBatch(batch).next_offset > start]
        data = b"".join(kept)
        single, runs = stock(data, aborted, start, level), RecordSlices(stock(data, aborted, start, level), most)
        received = []
        for run in runs:
            assert 0 < len(run) <= most
            received += map(plain, run)
            assert run[-1].offset < runs.next_fetch_offset
        assert received == [plain(record) for record in single]
        assert runs.next_fetch_offset == single.next_fetch_offset
        read += len(received)
    assert read > 2_000


def test_the_place_to_continue_from_is_after_each_run_and_before_the_next():
    data = batch_of(5, [(b"%d" % k, []) for k in range(10)], compression=GZIP)
    runs = RecordSlices(stock(data, [], 7), 3)
    places = [([record.offset for record in run], runs.next_fetch_offset) for run in runs]
    assert places == [([7, 8, 9], 10), ([10, 11, 12], 13), ([13, 14], 15)]


def test_nothing_of_a_corrupt_batch_is_given():
    good, bad = (batch_of(3 * k, [(b"%d" % n, []) for n in range(3)]) for k in range(2))
    broken = bytearray(bad)
    broken[-2] ^= 1
    runs = RecordSlices(stock(good + bytes(broken), [], 0), 3)
    assert [record.value for record in next(runs)] == [b"0", b"1", b"2"]
    assert runs.next_fetch_offset == 3
    with pytest.raises(CorruptRecordException, match="CRC"):
        next(runs)
    assert runs.next_fetch_offset == 3


@pytest.mark.parametrize("compression", [NONE, GZIP])
def test_what_is_compressed_comes_in_slices_of_bounded_size(compression):
    """A fetch of 4 MB of it held 24,000 records of 100 kB, which were decompressed at once."""
    value = b"x" * 100_000
    data = b"".join(batch_of(5 * k, [(value, [])] * 5, compression=compression) for k in range(20))
    runs = RecordSlices(stock(data, [], 2), 24_000)
    places = [(len(run), run[0].offset, runs.next_fetch_offset) for run in runs]
    if compression == NONE:  # what is fetched is bounded
        assert places == [(98, 2, 100)]
    else:
        assert places == [(43, 2, 45), (45, 45, 90), (10, 90, 100)]

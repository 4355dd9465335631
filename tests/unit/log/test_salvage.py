"""The intact rest of a damaged log: every record that is whole is kept at its place, and what is not is named."""

import asyncio
import itertools
import json
import random

import pytest

from monitor.log.errors import LogDamaged, LogLocked, OffsetOutOfRange
from monitor.log.file.log import FileLog, check_log
from monitor.log.file.salvage import salvage

RECORDS = [json.dumps({"number": number}).encode() for number in range(12)]


@pytest.fixture
def log(tmp_path):
    """The path of a log, and the offset and end of each of its records."""
    path = tmp_path / "log.jsonl"

    async def fill():
        log = FileLog.open(path)
        ends = [log.durable_end] + [await log.append([record]) for record in RECORDS]
        await log.close()
        return ends

    ends = asyncio.run(fill())
    return path, list(itertools.pairwise(ends))


def read(path):
    """The records by offset, and the parts that are lost, as a fold gets them; something may be appended, too."""
    records, lost = {}, []

    async def run():
        log = FileLog.open(path)
        offset = log.first_offset
        while (chunk := log.read(offset, 3)) is not None:
            records.update(zip(chunk.offsets, chunk.records, strict=True))
            lost.extend([(chunk.start, chunk.end)] if chunk.lost else [])
            offset = chunk.end
        assert await log.append([b"{}"]) > offset
        await log.close()

    asyncio.run(run())
    return records, lost


def changed(path, at, bit):
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.fault("log", "one bit changed in each byte, then `state salvage`", "every other record keeps its place")
def test_after_a_flipped_bit_in_each_byte_all_other_records_are_at_their_places(log):
    path, places = log
    whole, rng, first = path.read_bytes(), random.Random(15), log[1][0][0]
    for at in range(len(whole)):
        path.write_bytes(whole)
        damaged = changed(path, at, rng.randrange(8))
        done = salvage(path)
        assert done.kept.read_bytes() == damaged
        records, lost = read(path)
        wanted = {
            offset: record
            for (offset, end), record in zip(places, RECORDS, strict=True)
            if not any(start < end and offset < stop for start, stop in done.lost)
        }
        assert records == wanted
        assert done.records == len(wanted)
        if at < first:
            assert not done.lost, "a byte of the header is repaired"
        else:
            assert len(wanted) == len(RECORDS) - 1
            assert lost == done.lost
            assert lost[0][0] <= at < lost[0][1]
        done.kept.unlink()


@pytest.mark.fault(
    "log", "garbage, zeros, bytes removed, doubled or cut off, then `state salvage`", "no other record is read"
)
@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_to_the_bytes_no_other_record_is_read(log, seed):
    path, places = log
    rng, data, first = random.Random(seed), bytearray(path.read_bytes()), places[0][0]
    for _ in range(rng.randrange(1, 4)):
        at, size = rng.randrange(first, len(data)), rng.randrange(1, 120)
        kind = rng.choice(("garbage", "zeros", "removed", "doubled", "cut"))
        if kind == "garbage":
            data[at : at + size] = rng.randbytes(len(data[at : at + size]))
        elif kind == "zeros":
            data[at : at + size] = bytes(len(data[at : at + size]))
        elif kind == "removed":
            del data[at : at + size]
        elif kind == "doubled":
            data[at:at] = data[at : at + size]
        else:
            del data[at:]
        if len(data) <= first:
            break
    path.write_bytes(data)
    salvage(path)
    records, lost = read(path)
    known = {offset: record for (offset, _), record in zip(places, RECORDS, strict=True)}
    assert records.items() <= known.items()
    assert check_log(path)[1] == sum(end - start for start, end in lost)
    assert salvage(path).kept is None, "what is given up is whole"


def test_what_cannot_be_salvaged_stays_as_it_is(log, tmp_path):
    path, _ = log
    whole = path.read_bytes()
    assert salvage(path) == (len(RECORDS), [], None)
    changed(path, 3, 1)
    data = changed(path, 30, 1)
    with pytest.raises(LogDamaged, match="does not begin with the header"):
        salvage(path)
    assert path.read_bytes() == data
    path.write_bytes(whole)

    async def locked():
        log = FileLog.open(path)
        try:
            salvage(path)
        finally:
            await log.close()

    with pytest.raises(LogLocked):
        asyncio.run(locked())


@pytest.mark.parametrize(("change", "problem"), [(b"xyz" * 20, "is inside a record"), (b"", "is outside")])
def test_a_state_that_ends_in_the_lost_part_is_refused_with_what_helps(log, change, problem):
    path, _ = log
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(whole[:middle] + change + whole[middle + 60 * (not change) :])
    salvage(path)

    async def opened_log():
        return FileLog.open(path)

    opened = asyncio.run(opened_log())
    try:
        with pytest.raises(
            OffsetOutOfRange, match=rf"{problem} .*; restore it, or delete the state \(the folder valkey"
        ):
            opened.check_offset(len(whole))
    finally:
        asyncio.run(opened.close())

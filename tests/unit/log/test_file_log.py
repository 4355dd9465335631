import asyncio
import errno
import json
import os
import random
import re
import resource
import stat
import threading
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.log.errors import LogClosed, LogDamaged, LogLocked, OffsetOutOfRange
from monitor.log.file import durable_file
from monitor.log.file.lines import Lines
from monitor.log.file.log import FileLog, check_log
from monitor.log.file.salvage import salvage

AROUND = len(Lines("").encode([b""], 0))
"""Bytes of a line that are not the record's."""


def numbered(count, start=0):
    return [json.dumps({"number": number}).encode() for number in range(start, start + count)]


def written(path):
    """What the file holds, read without the log: (offset, record) of every line after the header."""
    position, lines, seed = 0, [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        crc, length, record = re.fullmatch(rb'\["([0-9a-f]{8})",([ 0-9]{10}),(.*)\]\n', line).groups()
        assert (int(crc, 16), int(length)) == (crc32(record, (seed + position) % 2**32), len(record))
        if not lines:
            seed = crc32(json.loads(record)["log"].encode())
        lines.append((position, record))
        position += len(line)
    return lines[1:]


def filled(path, *batches):
    async def fill():
        log = FileLog.open(path)
        ends = [await log.append(batch) for batch in batches]
        await log.close()
        return ends

    return asyncio.run(fill())


def opened(path, use):
    """`await use(log)` on the log at `path`."""

    async def run():
        log = FileLog.open(path)
        try:
            return await use(log)
        finally:
            await log.close()

    return asyncio.run(run())


def test_records_are_lines_and_offsets_their_positions(tmp_path):
    path = tmp_path / "log.jsonl"

    async def use(log):
        assert log.durable_end == log.first_offset
        assert log.read(log.first_offset) is None
        end = await log.append([b'{"a":1}', '{"b":"ü"}'.encode()])
        assert end == log.durable_end == path.stat().st_size
        assert await log.append([]) == end
        chunk = log.read(log.first_offset)
        assert list(zip(chunk.offsets, chunk.records, strict=True)) == written(path)
        assert (chunk.partition, chunk.start, chunk.end) == (0, log.first_offset, end)
        assert log.read(chunk.offsets[1]).records == ['{"b":"ü"}'.encode()]
        assert log.read(end) is None

    opened(path, use)


def test_identity_stays_with_the_file_and_only_the_owner_may_read_it(tmp_path):
    seen = []

    async def use(log):
        seen.append((log.identity, log.first_offset, log.durable_end, log.bytes_cut))

    path = tmp_path / "log.jsonl"
    opened(path, use)
    opened(path, use)
    assert seen[0] == seen[1]
    assert json.loads(path.read_bytes())[2] == {"log": seen[0][0], "version": 2}
    assert path.read_bytes().index(b"\n") + 1 == seen[0][1]
    opened(tmp_path / "other.jsonl", use)
    assert seen[2][0] != seen[0][0]
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=60),
    max_records=st.integers(1, 20),
    max_bytes=st.integers(1, 800),
)
def test_chunks_of_any_bounds_tile_the_log(tmp_path_factory, lengths, max_records, max_bytes):
    path = tmp_path_factory.mktemp("tile") / "log.jsonl"
    records = [bytes([97 + i % 26]) * length for i, length in enumerate(lengths)]
    filled(path, records)

    async def use(log):
        position, lines = log.first_offset, []
        while chunk := log.read(position, max_records, max_bytes):
            assert chunk.start == position == chunk.offsets[0]
            assert 1 <= len(chunk.records) <= max_records
            assert chunk.end - chunk.start <= max_bytes or len(chunk.records) == 1
            # No record was left out that would have fitted.
            following = next((len(r) + AROUND for o, r in written(path) if o == chunk.end), None)
            assert (
                following is None
                or len(chunk.records) == max_records
                or chunk.end + following - chunk.start > max_bytes
            )
            lines += zip(chunk.offsets, chunk.records, strict=True)
            position = chunk.end
        assert position == log.durable_end
        assert lines == written(path)
        assert [record for _, record in lines] == records

    opened(path, use)


def test_a_record_longer_than_every_bound_is_read_whole(tmp_path):
    long = b'"' + b"x" * 3_000_001 + b'"'
    filled(tmp_path / "log.jsonl", [b"1", long, b"2"])

    async def use(log):
        first = log.read(log.first_offset, max_bytes=10)
        assert first.records == [b"1"]
        second = log.read(first.end, max_bytes=10)
        assert second.records == [long]
        assert log.read(second.end).records == [b"2"]

    opened(tmp_path / "log.jsonl", use)


def test_only_positions_where_a_record_begins_can_be_read(tmp_path):
    path = tmp_path / "log.jsonl"
    filled(path, numbered(3))

    async def use(log):
        boundaries = {offset for offset, _ in written(path)} | {log.durable_end}
        for offset in range(-1, log.durable_end + 3):
            if offset in boundaries:
                log.read(offset)
            else:
                with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is"):
                    log.read(offset)

    opened(path, use)


@pytest.mark.parametrize("missing", [1, 2, 7, 13, 20, 30, 35])
def test_a_torn_last_line_is_cut_off(tmp_path, missing):
    path = tmp_path / "log.jsonl"
    whole, torn = filled(path, numbered(5), numbered(1, 5))
    os.truncate(path, torn - missing)

    async def use(log):
        assert log.bytes_cut == torn - missing - whole
        assert log.durable_end == whole == path.stat().st_size
        await log.append(numbered(1, 6))
        assert log.read(log.first_offset).records == [*numbered(5), *numbered(1, 6)]

    opened(path, use)


def test_a_torn_line_longer_than_one_read_is_cut_off(tmp_path):
    path = tmp_path / "log.jsonl"
    (whole,) = filled(path, numbered(2))
    with path.open("ab") as file:
        file.write(Lines("").encode([b"x" * 300_000], whole)[:200_001])

    async def use(log):
        assert (log.durable_end, log.bytes_cut) == (whole, 200_001)

    opened(path, use)


def test_what_a_killed_process_left_in_memory_is_synced_before_it_is_read(tmp_path, monkeypatch):
    path, syncs, sync = tmp_path / "log.jsonl", [], durable_file.sync
    whole = path.read_bytes() if filled(path, numbered(3), [b"3", b"4"]) else b""
    end = whole.index(b"\n", whole.index(b'"number": 2')) + 1
    path.write_bytes(whole[:end])
    with path.open("ab") as file:
        file.write(whole[end:])
    monkeypatch.setattr(durable_file, "sync", lambda file: (syncs.append(os.fstat(file).st_size), sync(file)))

    async def use(log):
        assert syncs == [log.durable_end]
        assert log.read(log.first_offset).records == [*numbered(3), b"3", b"4"]

    opened(path, use)


def test_appends_that_wait_together_share_a_sync(tmp_path, monkeypatch):
    path, syncs, sync = tmp_path / "log.jsonl", [], durable_file.sync

    def slow_sync(file):
        syncs.append(file)
        threading.Event().wait(0.01)
        sync(file)

    async def use(log):
        monkeypatch.setattr(durable_file, "sync", slow_sync)

        async def producer(name):
            ends = []
            for number in range(10):
                record = b'"%d-%d"' % (name, number)
                ends.append((await log.append([record]), record))
            return ends

        ends = [end for ends in await asyncio.gather(*map(producer, range(50))) for end in ends]
        assert sorted(ends) == [(offset + len(record) + AROUND, record) for offset, record in written(path)]
        # Ten rounds of fifty producers: a round is one group, give or take stragglers.
        assert 10 <= len(syncs) <= 20

    opened(path, use)


def test_nothing_is_acknowledged_or_read_before_it_is_synced(tmp_path, monkeypatch):
    path, sync = tmp_path / "log.jsonl", durable_file.sync
    reached, release = threading.Event(), threading.Event()

    def held_sync(file):
        reached.set()
        release.wait(10)
        sync(file)

    async def use(log):
        start = log.durable_end
        monkeypatch.setattr(durable_file, "sync", held_sync)
        append = asyncio.create_task(log.append([b"1"]))
        assert await asyncio.to_thread(reached.wait, 10)
        assert path.stat().st_size == start + 1 + AROUND
        assert not append.done()
        assert log.durable_end == start
        assert log.read(start) is None
        assert not await log.wait_beyond(start, 0.01)
        release.set()
        assert await log.wait_beyond(start, 10)
        assert await append == log.durable_end == start + 1 + AROUND

    opened(path, use)


def test_a_cancelled_append_leaves_the_others_alone(tmp_path):
    async def use(log):
        first, cancelled, third = (asyncio.create_task(log.append([record])) for record in (b"1", b"2", b"3"))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(first, third)
        assert log.read(log.first_offset).records == [b"1", b"3"]
        assert cancelled.cancelled()

    opened(tmp_path / "log.jsonl", use)


@pytest.mark.parametrize(
    ("record", "found"), [(b"1\n2", "holds a newline"), (b"", "is empty"), (b"\n", "holds a newline")]
)
def test_a_record_that_is_no_line_is_refused(tmp_path, record, found):
    async def use(log):
        with pytest.raises(ValueError, match=rf"records\[1\] {found}"):
            await log.append([b"0", record, b"3"])
        assert log.durable_end == log.first_offset

    opened(tmp_path / "log.jsonl", use)


@pytest.mark.parametrize("other", ["log.jsonl", "../{}/log.jsonl", "link/log.jsonl"])
def test_one_holder_at_a_time_whatever_path_leads_there(tmp_path, other):
    path = tmp_path / "log.jsonl"
    (tmp_path / "link").symlink_to(tmp_path)

    async def use(log):
        with pytest.raises(
            LogLocked, match=rf"another rankwatch \(pid {os.getpid()}\) is using {tmp_path}; stop it, or"
        ):
            FileLog.open(tmp_path / other.format(tmp_path.name))
        await log.append([b"1"])

    opened(path, use)

    async def after(log):
        assert log.read(log.first_offset).records == [b"1"]

    opened(path, after)


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "does not begin with the header"),
        (b"hello\n", "does not begin with the header"),
        (b'{"benchmark": "b", "model": "m"}\n', "does not begin with the header"),
        (b'["log", "version"]\n', "does not begin with the header"),
        (b"\x00" * 9000, "does not begin with the header"),
        (b'{"log": "%s", "version": 2}\n' % (b"ab" * 16), "does not begin with the header"),
        (
            Lines("").encode([b'{"log": "%s", "version": 3}' % (b"ab" * 16)], 0),
            "is a log of version 3, and this program reads version 2",
        ),
    ],
)
def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path, content, found):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    for _ in range(2):  # the refusal also gives the lock back
        with pytest.raises(LogDamaged, match=found):
            FileLog.open(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("use", [FileLog.open, check_log, salvage])
def test_a_pipe_is_no_log_and_nothing_waits_for_its_writer(tmp_path, use):
    path = tmp_path / "log.jsonl"
    os.mkfifo(path)
    with pytest.raises(LogDamaged, match=r"log\.jsonl is not a regular file; move the file away"):
        use(path)


@pytest.mark.fault("log", "disk full during an append of several producers", "all of it refused; later appends succeed")
def test_a_full_disk_refuses_the_group_whole_and_later_appends_succeed(tmp_path):
    path = tmp_path / "log.jsonl"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def use(log):
        end = await log.append(numbered(3))
        resource.setrlimit(resource.RLIMIT_FSIZE, (end + 10, hard))
        try:
            refused = await asyncio.gather(
                log.append(numbered(2, 3)), log.append(numbered(2, 5)), return_exceptions=True
            )
            assert path.stat().st_size == end
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        for error in refused:
            assert isinstance(error, OSError)
            assert error.errno == errno.EFBIG
            assert "nothing of this append was kept" in str(error)
        assert log.durable_end == end
        await log.append(numbered(1, 7))
        assert log.read(log.first_offset).records == [*numbered(3), *numbered(1, 7)]

    opened(path, use)


@pytest.mark.fault("log", "a sync of the disk fails", "nothing is acknowledged before the log is opened again")
def test_after_a_failed_sync_nothing_is_acknowledged_until_the_log_is_opened_again(tmp_path, monkeypatch):
    path, sync = tmp_path / "log.jsonl", durable_file.sync

    def fail_once(file):
        monkeypatch.setattr(durable_file, "sync", sync)
        raise OSError(errno.EIO, "Input/output error")

    async def use(log):
        end = await log.append(numbered(3))
        monkeypatch.setattr(durable_file, "sync", fail_once)
        with pytest.raises(LogClosed, match="could not be synced to the disk"):
            await log.append(numbered(2, 3))
        assert path.stat().st_size == end
        with pytest.raises(LogClosed, match="fix the disk, then start again"):
            await log.append(numbered(2, 3))
        assert log.durable_end == end
        assert log.read(log.first_offset).records == numbered(3)

    opened(path, use)

    async def again(log):
        await log.append(numbered(1, 9))
        assert log.read(log.first_offset).records == [*numbered(3), *numbered(1, 9)]

    opened(path, again)


def test_closing_lets_appends_finish_and_refuses_later_ones(tmp_path):
    path = tmp_path / "log.jsonl"

    async def use(log):
        append = asyncio.create_task(log.append([b"1"]))
        await asyncio.sleep(0)
        await log.close()
        assert append.done()
        assert written(path) == [(log.first_offset, b"1")]
        with pytest.raises(LogClosed, match="is closed; open the log again"):
            await log.append([b"2"])
        with (tmp_path / "unrelated").open("wb"), pytest.raises(OSError, match="Bad file descriptor"):
            log.read(log.first_offset)

    opened(path, use)


def read_all(path):
    """All records, by (offset, record), or the message of the error that ends the reading, after the records before it."""

    async def use(log):
        position, records = log.first_offset, []
        try:
            while chunk := log.read(position, 3):
                records += zip(chunk.offsets, chunk.records, strict=True)
                position = chunk.end
        except LogDamaged as error:
            return records, str(error)
        return records, ""

    try:
        return opened(path, use)
    except LogDamaged as error:
        return [], str(error)


@pytest.mark.fault("log", "each bit of a small log changed", "refused with the byte; the records before it are right")
def test_every_flipped_bit_is_refused_where_it_is(tmp_path):
    """In the header, in a record, in its checksum, in its length, in a newline: also in those of the last line."""
    path = tmp_path / "log.jsonl"
    filled(path, [b'{"a":1}', b'{"a":22}', b'{"a":3}'])
    whole, lines = path.read_bytes(), written(path)
    for at in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            # A newline that is gone joins two lines, and one that is new parts one.
            hit = max((offset for offset, _ in lines if offset <= at), default=None)
            message = f"is damaged at byte {hit}: .*restore the file" if hit else "does not begin with the header"
            with pytest.raises(LogDamaged, match=message):
                check_log(path)
            if bit == at % 8:
                records, refused = read_all(path)
                assert re.search(message, refused), (at, bit)
                assert records == [line for line in lines if hit and line[0] < hit and at < len(whole) - 1]
    path.write_bytes(whole)
    assert read_all(path) == (lines, "")
    assert check_log(path) == (3, 0)


@pytest.mark.fault("log", "garbage, and lines lost, repeated or exchanged", "refused with the byte")
def test_garbage_lost_repeated_and_exchanged_lines_are_refused(tmp_path):
    path, other = tmp_path / "log.jsonl", tmp_path / "other.jsonl"
    filled(path, [b'{"same":1}'] * 20)
    filled(other, [b'{"same":1}'] * 20)
    whole, lines = path.read_bytes(), written(path)
    (a, _), (b, _), (c, _) = lines[3:6]
    rng = random.Random(3)
    changed = {
        "lost": whole[:a] + whole[b:],
        "repeated": whole[:b] + whole[a:],
        "exchanged": whole[:a] + whole[b:c] + whole[a:b] + whole[c:],
        "of another log": whole[:a] + other.read_bytes()[a:b] + whole[b:],
        "zeros": whole[:a] + bytes(200) + whole[a + 200 :],
        "zeros at the end": whole[:-50] + bytes(50),
        "more at the end": whole + b"more",
        "a line more": whole + b'{"benchmark": "b"}\n',
    }
    changed |= {
        f"garbage {k}": whole[: (at := rng.randrange(len(whole) - 200))] + rng.randbytes(200) + whole[at + 200 :]
        for k in range(50)
    }
    changed |= {f"garbage at the end {k}": whole[:-k] + rng.randbytes(k) for k in range(1, 60)}
    for name, content in changed.items():
        path.write_bytes(content)
        records, message = read_all(path)
        assert message, name
        assert records == lines[: len(records)], name

import asyncio
import errno
import json
import os
import resource
import stat
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.logs import durable_file
from monitor.logs.errors import LogClosed, LogDamaged, LogLocked, OffsetOutOfRange
from monitor.logs.file_log import FileLog


def numbered(count, start=0):
    return [json.dumps({"number": number}).encode() for number in range(start, start + count)]


def written(path):
    """What the file holds, read without the log: (offset, record) of every line after the header."""
    position, lines = 0, []
    for line in path.read_bytes().splitlines(keepends=True):
        assert line.endswith(b"\n")
        lines.append((position, line[:-1]))
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
    assert json.loads(path.read_bytes()) == {"log": seen[0][0], "version": 1}
    assert path.read_bytes().index(b"\n") + 1 == seen[0][1]
    opened(tmp_path / "other.jsonl", use)
    assert seen[2][0] != seen[0][0]
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


@settings(max_examples=60, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=60),
    max_records=st.integers(1, 20),
    max_bytes=st.integers(1, 200),
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
            following = next((len(r) + 1 for o, r in written(path) if o == chunk.end), None)
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


@pytest.mark.parametrize("missing", [1, 2, 7, 13])
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
        file.write(b"x" * 200_001)

    async def use(log):
        assert (log.durable_end, log.bytes_cut) == (whole, 200_001)

    opened(path, use)


def test_what_a_killed_process_left_in_memory_is_synced_before_it_is_read(tmp_path, monkeypatch):
    path, syncs, sync = tmp_path / "log.jsonl", [], durable_file.sync
    filled(path, numbered(3))
    with path.open("ab") as file:
        file.write(b"3\n4\n")
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
        assert sorted(ends) == [(offset + len(record) + 1, record) for offset, record in written(path)]
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
        assert path.stat().st_size == start + 2
        assert not append.done()
        assert log.durable_end == start
        assert log.read(start) is None
        assert not await log.wait_beyond(start, 0.01)
        release.set()
        assert await log.wait_beyond(start, 10)
        assert await append == log.durable_end == start + 2

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
        (b'{"log": 7, "version": 1}\n', "does not begin with the header"),
        (b'["log", "version"]\n', "does not begin with the header"),
        (b"\x00" * 9000, "does not begin with the header"),
        (b'{"log": "%s", "version": 1}' % (b"ab" * 16), "does not begin with the header"),
        (b'{"log": "%s", "version": 2}\n' % (b"ab" * 16), "is a log of version 2, and this program reads version 1"),
    ],
)
def test_a_file_that_is_no_log_is_refused_and_left_alone(tmp_path, content, found):
    path = tmp_path / "log.jsonl"
    path.write_bytes(content)
    for _ in range(2):  # the refusal also gives the lock back
        with pytest.raises(LogDamaged, match=found):
            FileLog.open(path)
    assert path.read_bytes() == content


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

"""Kill the process inside an append, really, and open the log again."""

import asyncio
import json
import os
import signal
import sys

import pytest

from monitor.crash_points import VARIABLE
from monitor.log.file.log import FileLog
from tests import forked
from tests.fault.appender import BATCH, PRODUCERS

COMMAND = [sys.executable, "-m", "tests.fault.appender"]


def crash(path, point, count):
    """Append until killed; how many records of each producer were acknowledged."""
    environment = {**os.environ, VARIABLE: f"{point}:{count}"}
    ended = forked.run([*COMMAND, str(path)], env=environment, timeout=60)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    acknowledged = [0] * PRODUCERS
    for line in ended.stdout.splitlines():
        name, number = map(int, line.split())
        assert number == acknowledged[name]
        acknowledged[name] += BATCH
    return acknowledged


def recover(path):
    """Records of each producer in the log, the bytes cut, and whether it takes an append."""

    async def run():
        log = FileLog.open(path)
        before = log.durable_end
        assert path.stat().st_size == before
        await log.append([b'["after", 0]'])
        records, position = [], log.first_offset
        while chunk := log.read(position):
            records += map(json.loads, chunk.records)
            position = chunk.end
        assert records.pop() == ["after", 0]
        await log.close()
        return [[n for name, n in records if name == producer] for producer in range(PRODUCERS)], log.bytes_cut

    return asyncio.run(run())


@pytest.mark.fault("log", "killed inside an append, whole or torn", "every acknowledged record is there")
@pytest.mark.parametrize("count", [1, 2, 5, 12])
@pytest.mark.parametrize("point", ["append", "append-torn"])
def test_what_was_acknowledged_is_there_and_nothing_is_torn(tmp_path, point, count):
    path = tmp_path / "log.jsonl"
    acknowledged = crash(path, point, count)
    records, cut = recover(path)
    print(
        f"killed at {point}:{count}: acknowledged {acknowledged}, found {[len(numbers) for numbers in records]}, cut {cut}"
    )
    assert sum(acknowledged) >= (count - 1) * BATCH
    for acked, numbers in zip(acknowledged, records, strict=True):
        assert numbers == list(range(len(numbers)))
        assert acked <= len(numbers) <= acked + BATCH
    # The write at hand was not acknowledged to anyone: it is there whole, or up to a line.
    unacknowledged = sum(map(len, records)) - sum(acknowledged)
    assert unacknowledged > 0
    assert cut < 45 if point == "append-torn" else cut == 0


@pytest.mark.fault("log", "the same six times over one log", "no record is lost")
def test_a_log_killed_again_and_again_keeps_its_records(tmp_path):
    path, kept = tmp_path / "log.jsonl", 0
    for count, point in enumerate(["append", "append-torn"] * 3, start=1):
        acknowledged = crash(path, point, count)
        kept += sum(acknowledged)
        records = sum(map(len, recover_all(path)))
        assert records >= kept
        kept = records


def recover_all(path):
    async def run():
        log = FileLog.open(path)
        records, position = [], log.first_offset
        while chunk := log.read(position):
            records.append([json.loads(record) for record in chunk.records])
            position = chunk.end
        assert position == log.durable_end
        await log.close()
        return records

    return asyncio.run(run())

import gzip
import os

import pytest

from tests.unit.files.memory_log import MANY, Log, look, once
from tests.unit.files.result_lines import event, keys, lines


def replace(path, data):
    other = path.with_name("new")
    other.write_bytes(data)
    other.replace(path)


@pytest.mark.parametrize("write", [lambda p, d: p.write_bytes(d), replace])
@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("size", [10, 100, 200])
def test_changed_contents_are_read_again_from_the_start_as_a_new_generation(tmp_path, write, restart, size):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*(event(i) for i in range(100))))
    log = Log()
    tailer = log.tailer(path)
    look(tailer)
    write(path, lines(*(event(i, score=0) for i in range(size))))
    os.utime(path, ns=(1, 1))
    if restart:
        tailer._reader.close()
        tailer = log.tailer(path)
    look(tailer)
    tailer._reader.close()
    assert keys(log.events)[100:] == keys(event(i, score=0) for i in range(size))
    assert log.packed[-1]["source"]["generation"] == 1
    counters = log.counters()
    assert counters["skipped_spans"] == 0
    assert counters["conflicts"] == min(size, 100)
    assert log.partition.sources[str(path)].generation == 1


@pytest.mark.parametrize("restart", [False, True])
def test_the_same_contents_in_a_new_file_go_on_where_they_were(tmp_path, restart):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*MANY[:10]))
    log = Log()
    tailer = log.tailer(path)
    look(tailer)
    replace(path, lines(*MANY[:20]))
    if restart:
        tailer._reader.close()
        tailer = log.tailer(path)
    look(tailer)
    tailer._reader.close()
    assert keys(log.events) == keys(MANY[:20])
    assert log.packed[-1]["source"]["generation"] == 0


def test_a_file_that_is_emptied_and_filled_again_alike_is_not_read_again(tmp_path):
    path = tmp_path / "a.jsonl"
    log = Log()
    path.write_bytes(lines(*MANY[:10]))
    tailer = log.tailer(path)
    look(tailer)
    for data in (b"", lines(*MANY[:11])):
        path.write_bytes(data)
        look(tailer)
    tailer._reader.close()
    assert keys(log.events) == keys(MANY[:11])


def test_a_broken_gzip_is_reported_once_and_read_on_when_it_is_fixed(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    data = gzip.compress(lines(*MANY))
    path.write_bytes(data[: len(data) // 2])
    log = Log()
    for _ in range(3):
        once(log, path)
    assert [r["field"] for r in log.rejects] == ["file"]
    count = len(log.events)
    assert 0 < count < len(MANY)
    path.write_bytes(data)
    once(log, path)
    assert keys(log.events) == keys(MANY)
    assert log.counters()["skipped_spans"] == 0
    assert log.counters()["duplicates"] == 0


def test_a_damaged_gzip_that_is_followed_goes_on_when_it_is_mended(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    half = gzip.compress(lines(*MANY[:2_000]))
    data = half + gzip.compress(lines(*MANY[2_000:]))
    path.write_bytes(half + b"xx" + data[len(half) + 2 :])
    log = Log()
    tailer = log.tailer(path)
    look(tailer, 3)
    assert [r["field"] for r in log.rejects] == ["file"]
    path.write_bytes(data)
    os.utime(path, ns=(1, 1))
    look(tailer)
    tailer._reader.close()
    assert keys(log.events) == keys(MANY)

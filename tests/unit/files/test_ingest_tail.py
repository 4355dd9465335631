import asyncio
import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.files.reject_limit import RejectLimit, TooManyRejected
from monitor.files.streams.blocks import new_hash
from monitor.files.streams.paths import PathError
from monitor.files.streams.read import read_files
from schemas.records.decode import BOM
from tests.unit.files.memory_log import MANY, Log, look, once
from tests.unit.files.result_lines import event, keys, lines


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_all_of_a_file_is_appended_in_spans_that_join_up(tmp_path, pack):
    path = tmp_path / "a.jsonl"
    data = BOM + lines(*MANY[:1_500], b"{", {"declare": "late"}, *MANY[1_500:], b"x" * 2_000_000, {"declare": "last"})
    path.write_bytes(pack(data))
    log = Log()
    limit = RejectLimit()
    progress = once(log, path, limit=limit).progress
    assert keys(log.events) == keys(MANY)
    position = 0
    for packed in log.packed:
        assert packed["from"] == position
        position = packed["to"]
        prefix = new_hash()
        prefix.update(data[:position])
        assert packed["source"] == {
            "path": str(path),
            "generation": 0,
            "prefix": prefix.hexdigest(),
            "line": data[:position].count(b"\n"),
        }
        assert len(packed["events"]) <= 1_000
    assert position == len(data)
    assert [r["line"] for r in log.rejects] == [1501, 3003]
    assert log.counters()["skipped_spans"] == 0
    assert log.counters()["events"] == 3_000
    size = path.stat().st_size
    assert (progress.bytes_done, progress.bytes_total, progress.files) == (size, size, 1)
    assert (limit.lines, limit.rejected) == (3_004, 2)


def test_records_of_many_models_are_small(tmp_path):
    """Each event can decide the pairs of its model, and a record is stored whole."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*(event(str(k), f"m{m}") for k in range(6) for m in range(500))))
    log = Log()
    once(log, path)
    sizes = [len(packed["events"]) for packed in log.packed]
    assert sizes[0] == 1_000  # nothing is known of the file
    assert max(sizes[1:]) == 100
    assert log.counters()["events"] == 3_000


def test_good_blocks_are_taken_over_byte_for_byte(tmp_path):
    path = tmp_path / "a.jsonl"
    odd = [
        b'{"benchmark" : "b\\u0061r","item_id":"1", "model":"m","score":1.0e0,"extra":{"a":[1]}}',
        lines(MANY[0])[:-1],
    ]
    path.write_bytes(lines(*odd))
    log = Log()
    once(log, path)
    assert log.records[0].startswith(b'{"imported":true,"events":[' + b",".join(odd) + b"],")
    assert log.counters()["events"] == 2


@pytest.mark.parametrize("end", [b"\r\n", b" \n", b"\t\r\n", b"\n\n", b"\n\r\n"])
def test_no_line_end_reaches_into_the_packed_line(tmp_path, end):
    """A record of the log is one line; carriage returns and spaces before a newline are no part of an event."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*MANY[:30]).replace(b"\n", end))
    log = Log()
    once(log, path)
    assert not any(b"\n" in record for record in log.records)
    assert keys(log.events) == keys(MANY[:30])
    assert log.counters()["events"] == 30


@pytest.mark.parametrize("depth", [150, 190, 195, 196, 197, 198, 199, 200, 300])
def test_an_event_at_the_depth_that_parsers_allow_is_not_lost_in_its_packed_line(tmp_path, depth):
    path = tmp_path / "a.jsonl"
    deep = lines(event(1, attributes={"a": 0}))[:-1].replace(
        b'{"a": 0}', b'{"a": ' + b"[" * depth + b"]" * depth + b"}"
    )
    path.write_bytes(lines(deep, event(2)))
    log = Log()
    once(log, path)
    assert log.counters()["skipped_spans"] == 0
    assert log.counters()["events"] + log.counters()["rejected"] == 2
    assert log.partition.sources[str(path)].position == path.stat().st_size


def test_nothing_is_read_twice_however_often_it_starts(tmp_path):
    path = tmp_path / "a.jsonl"
    log = Log()
    for upto in (100, 100, 1_500, 3_000, 3_000):
        path.write_bytes(lines(*MANY[:upto]))
        once(log, tmp_path)
    assert keys(log.events) == keys(MANY)
    assert log.counters()["duplicates"] == 0


@given(
    st.lists(st.integers(0, 4_000), max_size=8).map(sorted),
    st.lists(st.booleans(), min_size=9, max_size=9),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_a_file_that_grows_in_any_pieces_gives_what_it_gives_as_a_whole(tmp_path_factory, cuts, restarts, gz):
    records = [event(i, score=i % 2) for i in range(30)]
    records[5:5] = [b"", b"{", b"\r", {"declare": "x"}, b"\xff"]
    data = BOM + lines(*records)[:-1]
    data = gzip.compress(data[:999]) + gzip.compress(data[999:]) if gz else data
    folder = tmp_path_factory.mktemp("grow")
    path = folder / ("a.jsonl.gz" if gz else "a.jsonl")
    path.write_bytes(b"")
    log = Log()
    tailer = log.tailer(path)
    for cut, restart in zip([*cuts, len(data)], restarts, strict=False):
        path.write_bytes(data[:cut])
        look(tailer)
        if restart:
            tailer._reader.close()
            tailer = log.tailer(path)
    tailer._reader.close()
    once(log, path)
    whole = list(read_files([path]))
    assert keys(log.events) == keys(e for s in whole for e in s.events)
    assert len(log.events) == 30
    assert [(r["line"], r["field"], r["benchmark"]) for r in log.rejects] == [
        (r["line"], r["field"], r["benchmark"]) for s in whole for r in s.rejects
    ]
    assert [d["declare"] for p in log.packed for d in p["declare"]] == ["x"]
    assert log.counters()["skipped_spans"] == 0
    contents = gzip.decompress(data) if gz else data
    assert log.partition.sources[str(path)].position == len(contents)


async def test_files_appear_and_vanish_while_they_are_followed(tmp_path):
    log = Log()
    async with asyncio.timeout(60):
        (tmp_path / "a.jsonl").write_bytes(lines(event(1)))
        tailer = log.tailer(tmp_path)
        following = asyncio.create_task(tailer.follow())

        async def until(count):
            async with asyncio.timeout(10):
                while len(log.events) < count:  # noqa: ASYNC110 - the log is watched from outside
                    await asyncio.sleep(0.005)

        await until(1)
        (tmp_path / "b.jsonl").write_bytes(lines(event(2)))
        await until(2)
        (tmp_path / "a.jsonl").unlink()
        (tmp_path / "b.jsonl").write_bytes(lines(event(2), event(3)))
        await until(3)
        (tmp_path / "a.jsonl").write_bytes(lines(event(1), event(4)))
        await until(4)
        (tmp_path / "b.jsonl").unlink()
        (tmp_path / "a.jsonl").unlink()
        await asyncio.sleep(0.05)
        (tmp_path / "c.jsonl").write_bytes(lines(event(5)))
        await until(5)
        assert tailer.progress.files == 1
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following

    assert keys(log.events) == keys(map(event, (1, 2, 3, 4, 5)))
    assert log.counters()["skipped_spans"] == 0


async def test_the_event_loop_runs_while_files_are_read(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(*(event(i, model="m" * 150) for i in range(60_000))))
    log = Log()
    reading = asyncio.create_task(log.tailer(tmp_path).run_once())
    turns = 0
    while not reading.done():
        await asyncio.sleep(0)
        turns += 1
    await reading
    assert len(log.events) == 60_000
    assert turns > 100


def test_links_to_a_file_are_the_same_source(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*MANY[:10]))
    (tmp_path / "b.jsonl").symlink_to(path)
    log = Log()
    once(log, tmp_path / "b.jsonl")
    once(log, tmp_path, path)
    assert keys(log.events) == keys(MANY[:10])
    assert list(log.partition.sources) == [str(path.resolve())]


def test_many_files_are_read_with_few_open(tmp_path, monkeypatch):
    monkeypatch.setattr("monitor.files.batches._OPEN_FILES", 3)
    log = Log()
    paths = [tmp_path / f"{k}.jsonl" for k in range(8)]
    for k, path in enumerate(paths):
        path.write_bytes(lines(event(k)))
    tailer = log.tailer(tmp_path)
    look(tailer, 2)
    for k, path in enumerate(paths):
        with path.open("ab") as file:
            file.write(lines(event(k + 10)))
    look(tailer)
    assert sum(file.is_open for file in tailer._reader._files.values()) == 3
    tailer._reader.close()
    assert keys(log.events) == keys(map(event, [*range(8), *range(10, 18)]))


def test_a_benchmark_that_is_not_known_is_declared_once_before_its_first_event(tmp_path):
    asked = []

    def declare(name, own, *_):
        asked.append((name, own is not None))
        return None if name == "none" or own else {"declare": name, "items": 9}

    path = tmp_path / "a.jsonl"
    log = Log()
    first = [
        event(benchmark="b"),
        event(benchmark="a"),
        {"declare": "own", "items": 5},
        event(benchmark="own"),
        event(benchmark="none"),
    ]
    path.write_bytes(lines(*first))
    once(log, path, declare=declare)
    path.write_bytes(lines(*first, event(2, benchmark="b"), event(benchmark="new")))
    once(log, path, declare=declare)
    assert asked == [("a", False), ("b", False), ("own", True), ("none", False), ("new", False)]
    assert [[(d["declare"], d["items"]) for d in p["declare"]] for p in log.packed] == [
        [("a", 9), ("b", 9)],
        [("own", 5)],
        [("new", 9)],
    ]
    log.fold()
    assert {n: b.spec.items for n, b in log.partition.benchmarks.items()} == {
        "a": 9,
        "b": 9,
        "own": 5,
        "none": None,
        "new": 9,
    }


def test_a_declaration_keeps_its_meaning_on_the_way_through_the_log(tmp_path):
    path = tmp_path / "a.jsonl"
    declared = {
        "declare": "bench",
        "items": 7,
        "order": "none",
        "family": {"policy": "capacity", "pairs": [["a", "b"]]},
    }
    path.write_bytes(lines(declared, event(1)))
    log = Log()
    once(log, path)
    log.fold()
    spec = log.partition.benchmarks["bench"].spec
    assert (spec.items, spec.order.policy, spec.family.pairs) == (7, "none", (("a", "b"),))


def test_a_reject_after_a_restart_belongs_to_the_benchmark_of_the_line_before_it(tmp_path):
    path = tmp_path / "a.jsonl"
    data = lines(event(benchmark="one"), event(benchmark="two"), b"[]")
    path.write_bytes(data)
    log = Log()
    once(log, path)
    path.write_bytes(data + lines(b"{", event(benchmark="three")))
    once(log, path)
    assert [(r["line"], r["benchmark"]) for r in log.rejects] == [(3, "two"), (4, "two")]


def test_too_many_rejects_stop_the_run_after_they_were_appended(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*MANY[:10], *[b"{"] * 30))
    log = Log()
    with pytest.raises(TooManyRejected, match="30 rejected of 40 lines"):
        once(log, path, limit=RejectLimit())
    assert len(log.rejects) == 30


def test_a_run_that_reads_mostly_bad_lines_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    log = Log()
    path.write_bytes(lines(b"{"))
    with pytest.raises(TooManyRejected, match=r"no line can be read \(rejected: 1\)"):
        once(log, path)
    path.write_bytes(lines(b"{", event(1)))
    once(log, path)
    path.write_bytes(lines(b"{", event(1), b"{", b"{", event(2)))
    with pytest.raises(TooManyRejected, match="2 of 3 lines cannot be read, more than half"):
        once(log, path)
    once(log, path)
    assert len(log.rejects) == 3
    assert log.counters()["events"] == 2


def test_a_path_that_is_not_there_is_an_error_at_once(tmp_path):
    with pytest.raises(PathError, match="does not exist"):
        Log().tailer(tmp_path / "a.jsonl")


KILLED = """
    import asyncio, json, sys
    from schemas.records.chunks import Source
    from monitor.files.tail import Tailer

    async def append(records):
        with open(sys.argv[2], "ab") as log:
            log.write(b"".join(record + b"\\n" for record in records))
        return 0

    sources = {path: Source(*source) for path, source in json.loads(sys.argv[3]).items()}
    asyncio.run(Tailer([sys.argv[1]], append, sources).run_once())
"""


@pytest.mark.full
def test_killed_right_after_an_append_nothing_is_lost_or_doubled(tmp_path):
    path, stored = tmp_path / "a.jsonl", tmp_path / "log"
    path.write_bytes(lines(*MANY * 8))
    stored.write_bytes(b"")
    log = Log()
    codes = []
    for _ in range(20):
        log.records = stored.read_bytes().splitlines()
        log.fold()
        arguments = [str(path), str(stored), json.dumps(log.partition.sources)]
        environment = os.environ | {"RANKWATCH_CRASH_AT": "import"}
        codes.append(
            subprocess.run(
                [sys.executable, "-c", textwrap.dedent(KILLED), *arguments], env=environment, check=False
            ).returncode
        )
        if codes[-1] == 0:
            break
    assert codes[-1] == 0
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert len(codes) > 3
    assert keys(log.events) == keys(MANY * 8)
    assert log.counters()["skipped_spans"] == 0

"""Events of another partition's benchmark: put aside here, folded once there, however often their copies come."""

import json
from types import SimpleNamespace

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.log.kafka.records import chunks
from schemas.records.chunks import ORIGIN_HEADER, Chunk, Origin
from schemas.records.origins import OriginKey
from tests.memory_store import MemoryStore


def owner(benchmark):
    return int(benchmark[-1])


def record(benchmark, item, score=1):
    return json.dumps({"benchmark": benchmark, "item_id": item, "model": "m", "score": score}).encode()


def chunk(partition, records, origins=None, start=0):
    return Chunk(partition, start, start + len(records), list(range(start, start + len(records))), records, origins)


def test_a_misrouted_event_is_put_aside_whole_and_never_folded():
    here = Partition(0, owner=owner)
    packed = json.dumps(
        {
            "declare": [{"declare": "bench-1", "items": 9}],
            "events": [
                json.loads(record("bench-1", "a")),
                json.loads(record("bench-0", "b")),
                json.loads(record("bench-1", "c")),
            ],
        }
    ).encode()
    delta = here.fold(chunk(0, [record("bench-0", "a"), packed, record("bench-2", "z"), b'{"declare":"bench-3"}']))
    assert set(here.benchmarks) == {"bench-0"}
    assert here.benchmarks["bench-0"].items == 2
    assert [(m.offset, m.place, m.benchmark) for m in delta.misrouted] == [
        (1, 0, "bench-1"),
        (1, 1, "bench-1"),
        (1, 2, "bench-1"),
        (2, 0, "bench-2"),
        (3, 0, "bench-3"),
    ]
    assert json.loads(delta.misrouted[2].payload) == {
        "benchmark": "bench-1",
        "item_id": "c",
        "model": "m",
        "score": 1.0,
    }
    assert here.counters["misrouted"] == 5


def test_a_copy_that_comes_again_changes_nothing():
    there, store = Partition(1, owner=owner), MemoryStore(1)
    copies = [record("bench-1", "a"), record("bench-1", "b"), record("bench-1", "b"), record("bench-1", "a", 0)]
    origins = [Origin(0, 5, 0), Origin(0, 5, 1), Origin(0, 7, 0), Origin(2, 1, 0)]
    store.commit(there.fold(chunk(1, copies, origins)))
    counters = dict(there.benchmarks["bench-1"].counters)
    assert counters == {"events": 4, "duplicates": 1, "conflicts": 1, "filled": 0, "rejected": 0}
    # The worker of partition 0 was killed before it could move on, and publishes from offset 5 again.
    there = Partition.restore(store.state, owner=owner)
    store.commit(there.fold(chunk(1, [*copies[:3], record("bench-1", "c")], [*origins[:3], Origin(0, 9, 0)], start=4)))
    assert there.benchmarks["bench-1"].counters == {**counters, "events": 5}
    assert there.counters["republished"] == 5
    assert store.state.origins == {0: (9, 0), 2: (1, 0)}


@pytest.mark.fault(
    "attacks", "origins made up, or of another key, topic, partition or record", "not believed; every event counts"
)
def test_a_forged_origin_hides_no_event_and_moves_nothing():
    """Made up, made for another record or partition, taken from another topic, or from a service without signatures."""
    key, later = OriginKey(b"secret", "log"), Origin(0, 10**9, 0)
    copy = record("bench-1", "z")
    forged = [
        later.encode(),
        later.encode() + b":" + b"0" * 32,
        OriginKey(b"another", "log").sign(later, 1, copy),
        OriginKey(b"secret", "another log").sign(later, 1, copy),
        key.sign(later, 2, copy),
        key.sign(later, 1, record("bench-1", "y")),
        key.sign(later, 1, copy).replace(b"0:1", b"0:2", 1),
        b"",
        b"::::",
        b"\xff" * 40,
    ]
    genuine = [record("bench-1", f"copy-{k}") for k in range(3)]
    there = Partition(1, owner=owner)
    records = [
        SimpleNamespace(offset=k, value=value, headers=[(ORIGIN_HEADER, header)])
        for k, (value, header) in enumerate(
            [
                *((record("bench-1", f"forged-{k}") if k > 5 else copy, header) for k, header in enumerate(forged)),
                *((value, key.sign(Origin(0, 5 + k, 0), 1, value)) for k, value in enumerate(genuine)),
                (genuine[1], key.sign(Origin(0, 6, 0), 1, genuine[1])),  # published again after a crash
            ]
        )
    ]
    (made,) = chunks(records, 1, 0, len(records), 1 << 20, key)
    there.fold(made)
    benchmark = there.benchmarks["bench-1"]
    assert {row.item for row in benchmark.rows} == {
        "z",
        *(f"forged-{k}" for k in range(6, len(forged))),
        *(f"copy-{k}" for k in range(3)),
    }
    assert benchmark.counters == {"events": 13, "duplicates": 5, "conflicts": 0, "filled": 0, "rejected": 0}
    assert there.counters["republished"] == 3
    assert there.origins == {0: (7, 0)}


def test_the_origin_is_read_and_a_foreign_text_is_none():
    assert Origin.parse(Origin(3, 120, 7).encode()) == Origin(3, 120, 7)
    assert all(Origin.parse(bad) is None for bad in (b"", b"1:2", b"a:b:c", b"-1:2:3", b"1:2:3:4", b"9" * 30 + b":1:1"))

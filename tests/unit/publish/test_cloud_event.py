"""A verdict change as a CloudEvent is a function of the log alone."""

import json

from monitor.engine.chunk_fold import Partition
from monitor.publish.verdict_topic import cloud_event
from schemas.records.chunks import Chunk

EVENTS = [
    {"benchmark": "bench", "item_id": str(i), "model": model, "score": score}
    for i in range(60)
    for model, score in (("a", 1), ("b", i % 10 == 0))
]
LOG = [json.dumps(r).encode() for r in ({"declare": "bench", "order": "trusted"}, *EVENTS)]


def messages(chunk_records):
    """Headers and bodies of all changes, the log folded in chunks."""
    partition, made = Partition(2), []
    for start in range(0, len(LOG), chunk_records):
        records = LOG[start : start + chunk_records]
        end = start + len(records)
        delta = partition.fold(Chunk(2, start, end, range(start, end), records))
        made += [change for benchmark in delta.benchmarks for change in benchmark.changes.values()]
    return [(cloud_event(change, "events", 2), change.as_json()) for change in made]


def test_the_same_bytes_however_the_log_is_replayed():
    once = messages(len(LOG))
    assert once
    assert messages(7) == once == messages(1)


def test_the_attributes_that_the_specification_requires():
    for headers, body in messages(len(LOG)):
        event, attributes = json.loads(body), dict(headers)
        assert attributes == {
            "ce_specversion": b"1.0",
            "ce_id": f"events/2/{event['id']}".encode(),
            "ce_source": b"/rankwatch/events",
            "ce_type": f"io.rankwatch.verdict.{event['kind']}".encode(),
            "content-type": b"application/json",
        }


def test_ids_differ_within_a_log():
    ids = [dict(headers)["ce_id"] for headers, _ in messages(len(LOG))]
    assert len(set(ids)) == len(ids)

"""Verdict changes over HTTP: pages that never move, and a stream that takes up where it was."""

import json
import random
import threading
from itertools import pairwise

import pytest

from monitor.serve.api.routes import changes as change_routes
from schemas.results.verdict_changes import VerdictChanges
from tests.commands import events
from tests.served import Served, Stream, folded

SKILLS = {f"m{k}": 0.1 + 0.15 * k for k in range(6)}
RECORDS = events(random.Random(1), SKILLS, 150)


def place(change):
    return tuple(map(int, change["id"].split("-")))


@pytest.fixture
def served():
    with Served(folded(RECORDS[:300], order="trusted")) as server:
        yield server


def latched(served):
    benchmarks = served.partitions[0].benchmarks.values()
    changes = [c.model_dump(mode="json") for benchmark in benchmarks for c in benchmark.changes.values()]
    return sorted(changes, key=place)


def pages(served, limit, **query):
    changes, after = [], ""
    while page := (
        answer := served.get(f"changes?limit={limit}{after}{''.join(f'&{k}={v}' for k, v in query.items())}").json
    )["changes"]:
        changes += page
        after = f"&after={answer['next']}"
    return changes


def test_pages_list_every_change_once_in_the_order_of_the_log(served):
    expected = latched(served)
    assert len(expected) > 10
    assert pages(served, 3) == pages(served, 1000) == pages(served, 7, benchmark="bench") == expected


def test_pages_go_on_while_the_state_grows(served):
    first = served.get("changes?limit=5").json
    served.post(RECORDS[300:])
    served.post(events(random.Random(2), SKILLS, 100, benchmark="other"))
    assert first["changes"] == latched(served)[:5]
    rest = served.get(f"changes?limit=1000&after={first['next']}").json
    assert first["changes"] + rest["changes"] == latched(served)
    assert served.get(f"changes?after={rest['next']}").json == {"changes": [], "next": rest["next"]}


def test_the_order_is_that_of_the_log_however_the_state_was_loaded(served):
    """A store returns its table of latches in any order."""
    expected = latched(served)
    assert pages(served, 4) == expected
    (benchmark,) = served.partitions[0].benchmarks.values()
    shuffled = list(benchmark.changes.items())
    random.Random(3).shuffle(shuffled)
    again = folded(RECORDS[:300], order="trusted")
    again.benchmarks["bench"].changes = VerdictChanges(dict(shuffled))
    served.partitions[:] = [again]
    assert pages(served, 4) == expected


def test_a_benchmark_that_is_not_there(served):
    assert served.get("changes?benchmark=none").status == 404
    assert served.get("changes?after=x").status == 422
    assert served.get("changes/stream?after=1-").status == 422
    assert served.get("changes/stream", Last_Event_ID="x").status == 422


def test_a_stream_begins_with_what_comes_next(served):
    before = latched(served)
    with Stream(served) as stream:
        assert "content-type: text/event-stream" in stream.head
        assert json.loads(stream.until("update")["data"]) == {"benchmark": "bench", "events": 300}
        served.post(RECORDS[300:])
        fresh = latched(served)[len(before) :]
        assert fresh
        for change in fresh:
            block = stream.until("change")
            assert (block["id"], json.loads(block["data"])) == (change["id"], change)
        assert json.loads(stream.until("update")["data"]) == {"benchmark": "bench", "events": 900}


@pytest.mark.parametrize("way", ["header", "parameter"])
def test_a_stream_continues_after_an_id(served, way):
    expected = latched(served)
    known = expected[4]["id"]
    query, headers = ("", {"Last_Event_ID": known}) if way == "header" else (f"&after={known}", {})
    with Stream(served, f"changes/stream?benchmark=bench{query}", **headers) as stream:
        assert [stream.until("change")["id"] for _ in expected[5:]] == [change["id"] for change in expected[5:]]


def test_a_stream_of_one_benchmark_has_no_other(served):
    with Stream(served, "changes/stream?benchmark=bench&after=0-0") as stream:
        served.post(events(random.Random(2), SKILLS, 100, benchmark="other"))
        served.post(RECORDS[300:])
        while (block := stream.until("update")) and json.loads(block["data"])["events"] < 900:
            assert json.loads(block["data"])["benchmark"] == "bench"


def test_many_streams_get_the_same(served):
    streams = [Stream(served) for _ in range(40)]
    received = [[] for _ in streams]

    def follow(stream, into):
        while (block := stream.until("change")) is not None:
            into.append(block["id"])

    threads = [threading.Thread(target=follow, args=pair) for pair in zip(streams, received, strict=True)]
    before = len(latched(served))
    for thread in threads:
        thread.start()
    served.post(RECORDS[300:])
    expected = [change["id"] for change in latched(served)[before:]]
    with Stream(served, f"changes/stream?after={latched(served)[before - 1]['id']}") as stream:
        assert [stream.until("change")["id"] for _ in expected] == expected
        stream.until("update")
    served.call(_pause(2 * 0.5))
    served.stop()
    for thread in threads:
        thread.join(60)
    assert received == [expected] * 40
    assert all(low < high for low, high in pairwise(map(tuple, (map(int, i.split("-")) for i in expected))))
    for stream in streams:
        stream.__exit__()


async def _pause(seconds):
    import asyncio

    await asyncio.sleep(seconds)


def test_a_quiet_stream_shows_that_it_is_alive(served, monkeypatch):
    monkeypatch.setattr(change_routes, "HEARTBEAT_SECONDS", 0.05)
    with Stream(served, "changes/stream?benchmark=bench") as stream:
        stream.until("update")
        assert stream.block() == {"": "alive"}


def test_streams_end_with_the_server(served):
    with Stream(served) as stream:
        stream.until("update")
        served.stop()
        assert stream.until("never") is None


def test_nobody_is_looked_out_for_once_everyone_has_gone(served):
    watcher = served.web.state.watcher
    with Stream(served) as stream:
        stream.until("update")
        assert watcher._polling is not None
    for _ in range(200):
        served.call(_pause(0.02))
        if watcher._polling is None:
            break
    assert watcher._polling is None

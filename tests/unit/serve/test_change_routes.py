"""Verdict changes over HTTP: pages that never move, and a stream that takes up where it was."""

import json
import random
import threading
from itertools import pairwise

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.serve.api.reading import state_watcher
from monitor.serve.api.reading.state_watcher import StateWatcher
from monitor.serve.api.routes import changes as change_routes
from monitor.serve.report_cache import ReportCache
from monitor.store.layout import CommitTimes
from monitor.view.partition_view import PartitionView
from schemas.records.chunks import Chunk
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
    changes = [c.as_dict() for benchmark in benchmarks for c in benchmark.changes.values()]
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


# --- several partitions -----------------------------------------------------------------------------------------------------------------


def partition(number, name, seed, items=100):
    """A partition of a topic, with one benchmark and some verdict changes."""
    partition = Partition(number)
    raw = [json.dumps(each).encode() for each in events(random.Random(seed), SKILLS, items, benchmark=name)]
    declaration = json.dumps({"declare": name, "order": "trusted"}).encode()
    partition.fold(Chunk(number, 0, len(raw) + 1, range(len(raw) + 1), [declaration, *raw]))
    return partition


def ids(changes):
    return [(change["benchmark"], change["id"]) for change in changes]


@pytest.fixture
def several():
    """Partitions 0 and 2 have a benchmark each, 1 has none."""
    with Served(partition(0, "first", 5), Partition(1), partition(2, "second", 6)) as server:
        yield server


def each_in_order(server):
    """The changes of each benchmark in the order of its partition."""
    found = {
        name: sorted((c.as_dict() for c in each.benchmarks[name].changes.values()), key=place)
        for each in server.partitions
        for name in each.benchmarks
    }
    assert all(len(changes) > 5 for changes in found.values())
    return found


@pytest.mark.parametrize("limit", [1, 4, 1000])
def test_pages_of_several_partitions_have_every_change_once_in_the_order_of_its_partition(several, limit):
    expected, found = each_in_order(several), pages(several, limit)
    assert len(found) == sum(map(len, expected.values()))
    for name, changes in expected.items():
        assert [change for change in found if change["benchmark"] == name] == changes
        assert pages(several, limit, benchmark=name) == changes


def test_a_cursor_of_several_partitions_goes_on_where_any_of_them_grows(several):
    seen = several.get("changes?limit=1000").json
    assert sorted(int(part.split(":")[0]) for part in seen["next"].split(",")) == [0, 2]
    several.partitions[1].fold(
        Chunk(1, 0, 602, range(602), [b'{"declare": "third", "order": "trusted"}']
              + [json.dumps(each).encode() for each in events(random.Random(7), SKILLS, 100, benchmark="third")])
    )  # fmt: skip
    fresh = several.get(f"changes?limit=1000&after={seen['next']}").json
    assert fresh["changes"] == each_in_order(several)["third"]
    assert several.get(f"changes?after={fresh['next']}").json == {"changes": [], "next": fresh["next"]}


def test_a_stream_of_several_partitions_resumes_at_any_of_its_ids(several):
    with Stream(several, "changes/stream?after=0:0-0") as stream:
        blocks = [stream.until("change") for _ in range(sum(map(len, each_in_order(several).values())))]
    whole = [(block["id"], json.loads(block["data"])["id"]) for block in blocks]
    for k in (0, len(whole) // 2, len(whole) - 2):
        with Stream(several, Last_Event_ID=whole[k][0]) as stream:
            rest = [stream.until("change") for _ in whole[k + 1 :]]
        assert [(block["id"], json.loads(block["data"])["id"]) for block in rest] == whole[k + 1 :]


def test_the_newest_of_several_partitions_are_the_last_that_were_stored():
    times = {"first": CommitTimes(), "second": CommitTimes()}
    parts = partition(0, "first", 5), partition(1, "second", 6)
    order = []
    for part, name, start in ((parts[0], "first", 100.0), (parts[1], "second", 100.5)):
        changes = sorted(part.benchmarks[name].changes.items(), key=lambda each: place(each[1].as_dict()))
        for k, (field, change) in enumerate(changes):
            times[name].changes[field] = start + k
            order.append((start + k, name, change.id))
    expected = [(name, id_) for _, name, id_ in sorted(order, reverse=True)]
    with Served(*parts, reports={"commit_times": lambda: times}) as server:
        for limit in (1, 3, 1000):
            answer = server.get(f"changes?newest=true&limit={limit}").json
            assert ids(answer["changes"]) == expected[:limit]
            assert server.get(f"changes?after={answer['next']}").json["changes"] == []


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("after=3-0", "is of another feed, of one benchmark or partition"),
        ("after=0:3-0,7:1-0", "the log has no partition 7"),
        ("after=0:3", "is not valid"),
        ("after=0:3-0,", "is not valid"),
        ("benchmark=first&after=0:3-0", "is of another feed, over all partitions"),
    ],
)
def test_a_cursor_that_is_not_of_the_feed(several, query, reason):
    for path in ("changes", "changes/stream"):
        answer = several.get(f"{path}?{query}")
        assert answer.status == 422
        assert reason in answer.text


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


async def test_a_stream_of_a_board_is_woken_by_that_board_only(monkeypatch):
    monkeypatch.setattr(state_watcher, "POLL_SECONDS", 0.01)
    partition = Partition()

    def send(name, item):
        record = json.dumps({"benchmark": name, "item_id": item, "model": "m", "score": 1}).encode()
        partition.fold(Chunk(0, partition.off, partition.off + 1, [partition.off], [record]))

    send("a", "1"), send("b", "1")
    watcher = StateWatcher(ReportCache(lambda: [PartitionView(partition)]))
    async with watcher.subscribe():
        version = watcher.version
        send("b", "2")
        assert not await watcher.wait(version, 0.2, "a")
        assert await watcher.wait(version, 5.0)
        assert dict(watcher.updates(version)) == {"b": b'event: update\ndata: {"benchmark":"b","events":2}\n\n'}
        assert dict(watcher.updates(version, "a")) == {}
        later = watcher.version
        partition.fold(Chunk(0, partition.off, partition.off + 1, [partition.off], [b'{"ended": "a"}']))
        assert await watcher.wait(version, 5.0, "a"), "the end of a run changes the board without an event"
        assert dict(watcher.updates(later, "a")) == {}


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

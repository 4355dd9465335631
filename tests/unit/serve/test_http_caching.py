"""Answers carry a validator and are compressed; a client that has one gets none; a slow one is given again while the next is computed."""

import asyncio
import gzip
import json
import threading

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.send.http import newest_epochs
from monitor.serve import cache
from monitor.serve.report_cache import ReportCache
from monitor.view.partition_view import PartitionView
from schemas.records.declaration import Declaration
from schemas.records.events import EventFields
from tests.commands import until
from tests.served import Served, folded

EVENTS = [{"benchmark": "b", "item_id": str(k), "model": m, "score": 1} for k in range(4) for m in "xy"]
MORE = [{"benchmark": "b", "item_id": "9", "model": "x", "score": 1}]
ROUTES = (
    "benchmarks",
    "benchmarks/b",
    "summaries",
    "board?benchmark=b",
    "pairs?benchmark=b",
    "matrix?benchmark=b",
    "items?benchmark=b",
    "categories?benchmark=b",
    "path?benchmark=b&model_a=x&model_b=y",
    "changes?benchmark=b",
)


@pytest.fixture
def served(server):
    return server.hold(folded(EVENTS))


@pytest.mark.parametrize("route", ROUTES)
def test_a_client_that_has_the_answer_gets_none(served, route):
    first = served.get(route)
    assert int(first.headers["Content-Length"]) == len(first.body), (
        "a client notices when a server dies within an answer"
    )
    tag = first.headers["ETag"]
    again = served.get(route, If_None_Match=f'"other", {tag}')
    assert (again.status, again.text, again.headers["ETag"]) == (304, "", tag)
    assert again.headers["Rankwatch-Offset"] == "0:8"
    assert served.get(route, If_None_Match='W/"other"').text == first.text


def test_every_server_gives_the_same_validator_until_the_answer_changes(served):
    with Served(folded(EVENTS)) as other:
        assert served.get("board?benchmark=b").headers["ETag"] == other.get("board?benchmark=b").headers["ETag"]
    tag = served.get("board?benchmark=b").headers["ETag"]
    served.post(MORE)
    assert served.get("board?benchmark=b", If_None_Match=tag).status == 200
    # Events of another benchmark leave this one unchanged: its validator holds, as of the later offset.
    tag = served.get("board?benchmark=b").headers["ETag"]
    served.post([{**MORE[0], "benchmark": "other"}])
    again = served.get("board?benchmark=b", If_None_Match=tag)
    assert (again.status, again.headers["Rankwatch-Offset"]) == (304, f"0:{served.partitions[0].off}")


def test_large_answers_are_compressed_for_clients_that_accept_it(served):
    plain = served.get("board?benchmark=b")
    for accepted, packed in (("br, gzip;q=0.5", True), ("gzip;q=0", False), ("identity", False)):
        answer = served.get("board?benchmark=b", Accept_Encoding=accepted)
        assert (answer.headers["Content-Encoding"] == "gzip") is packed
        assert int(answer.headers["Content-Length"]) == len(answer.body)
        body = gzip.decompress(answer.body) if packed else answer.body
        assert body.decode() == plain.text
        assert answer.headers["ETag"] == plain.headers["ETag"]
        assert set(answer.headers["Vary"].split(", ")) == {"Accept-Encoding", "Authorization"}
        metrics = served.request("GET", "/metrics", Accept_Encoding=accepted)
        assert (metrics.headers["Content-Encoding"] == "gzip") is packed
        assert int(metrics.headers["Content-Length"]) == len(metrics.body)
    assert served.get("caller", Accept_Encoding="gzip").headers["Content-Encoding"] is None


def test_only_answers_without_credentials_are_for_shared_caches():
    rules = {"token": "secret", "rules": {"anonymous_read": "b"}}
    for seconds, kept in ((0, "no-cache"), (30, "public, max-age=30")):
        with Served(folded(EVENTS), cache_seconds=seconds, **rules) as served:
            assert served.get("benchmarks/b").headers["Cache-Control"] == kept
            assert served.get("benchmarks/b?at_least=0:8").headers["Cache-Control"] == "no-cache"
            signed_in = served.get("benchmarks/b", Authorization="Bearer secret")
            assert (signed_in.status, signed_in.headers["Cache-Control"]) == (200, "no-store")
            refused = served.get("benchmarks/b", Authorization="Bearer wrong")
            assert (refused.status, refused.headers["Cache-Control"]) == (401, "no-store")
            assert "ETag" not in served.get("benchmarks/none").headers
            digest = served.get("benchmarks/b").headers["ETag"].removeprefix('W/"').removesuffix('"')
            named = f"benchmarks/b?digest={digest}"
            forever = "public, max-age=31536000, immutable" if seconds else "no-cache"
            assert served.get(named).headers["Cache-Control"] == forever
            assert served.get(named).text == served.get("benchmarks/b").text
            assert served.get(named, Authorization="Bearer secret").headers["Cache-Control"] == "no-store"
            served.post(MORE, Authorization="Bearer secret")
            other = served.get(named + "&at_least=0:9", Accept_Encoding="gzip")
            assert (other.status, other.headers["Cache-Control"], other.headers["ETag"]) == (404, "no-store", None)
            assert served.get("benchmarks/b").headers["ETag"][3:-1] in other.text


def many(names):
    partition = Partition()
    for name in names:
        events = [EventFields(benchmark=name, item_id="1", model=m, score=1) for m in "xy"]
        partition.fold_events([Declaration(declare=name, items=1)], events, [], partition.off + 2)
    return partition


@pytest.mark.parametrize("route", ["benchmarks", "summaries"])
def test_lists_are_paged_and_name_the_next_page(server, route):
    names = [f"b {k}" for k in range(7)]
    served = server.hold(many(reversed(names)))
    seen, cursor = [], ""
    while cursor is not None:
        page = served.get(f"{route}?limit=3{cursor and f'&cursor={cursor}'}")
        listed = page.json if route == "summaries" else page.json["benchmarks"]
        seen.append([each["benchmark"] for each in listed])
        cursor = page.headers["Rankwatch-Next-Cursor"]
    assert seen == [names[:3], names[3:6], names[6:]]
    assert served.get(f"{route}?limit=0").status == 422


class Slow:
    """Computing a report waits for the gate."""

    def __init__(self, monkeypatch):
        self.gate, self.calls = threading.Event(), 0
        self.gate.set()
        original = ReportCache.benchmark_report

        def report(reports, *arguments):
            self.calls += 1
            assert self.gate.wait(20)
            return original(reports, *arguments)

        monkeypatch.setattr(cache, "SLOW_SECONDS", -1.0)
        for limit in ("_QUICK_PAIRS", "_QUICK_NEIGHBOURS"):
            monkeypatch.setattr(f"monitor.serve.report_cache.{limit}", -1)
        monkeypatch.setattr(ReportCache, "benchmark_report", report)


def test_a_sender_is_not_answered_with_an_epoch_of_an_earlier_state(served, monkeypatch):
    monkeypatch.setattr(cache, "SLOW_SECONDS", -1.0)
    monkeypatch.setattr(cache, "REST", 1e9)
    assert newest_epochs(served.url, None, "b") == {"x": 0, "y": 0}
    served.post([each | {"epoch": 1} for each in MORE])
    assert served.get("benchmarks/b").headers["Rankwatch-Lag"], "an answer that rests is given again"
    assert newest_epochs(served.url, None, "b") == {"x": 1, "y": 0}


@pytest.mark.parametrize(
    "seconds", [-1.0, 60.0]
)  # a slow one is given again at once, a quick one when the next one takes long
def test_an_answer_is_given_again_as_of_its_offset_while_the_next_is_computed(served, monkeypatch, seconds):
    slow = Slow(monkeypatch)
    monkeypatch.setattr(cache, "SLOW_SECONDS", seconds)
    first = served.get("benchmarks/b")
    served.post(MORE)
    slow.gate.clear()
    again = served.get("benchmarks/b")
    end = served.partitions[0].off
    assert (again.text, again.headers["Rankwatch-Offset"]) == (first.text, "0:8")
    assert again.headers["Rankwatch-Lag"] == f"0:{end - 8}"
    assert served.get("benchmarks/b", If_None_Match=first.headers["ETag"]).headers["Rankwatch-Lag"]
    slow.gate.set()
    until(lambda: served.get("benchmarks/b").json["benchmarks"][0]["events"] == 9, "the next answer")
    now = served.get("benchmarks/b")
    assert (now.headers["Rankwatch-Offset"], now.headers["Rankwatch-Lag"]) == (f"0:{end}", None)
    assert slow.calls == 2


def test_a_request_for_an_offset_gets_no_earlier_answer(served, monkeypatch):
    Slow(monkeypatch)
    served.get("benchmarks/b")
    served.post(MORE)
    end = served.partitions[0].off
    answer = served.get(f"benchmarks/b?at_least=0:{end}")
    assert (answer.json["benchmarks"][0]["events"], answer.headers["Rankwatch-Offset"]) == (9, f"0:{end}")


def test_an_answer_that_is_too_old_is_not_given_again(served, monkeypatch):
    Slow(monkeypatch)
    monkeypatch.setattr(cache, "MOST_SECONDS", -1.0)
    served.get("benchmarks/b")
    served.post(MORE)
    assert served.get("benchmarks/b").json["benchmarks"][0]["events"] == 9


def test_requests_for_the_same_answer_share_one_computation(served, monkeypatch):
    slow = Slow(monkeypatch)
    slow.gate.clear()
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(served.get("benchmarks/b"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    until(lambda: slow.calls, "the first computation")
    slow.gate.set()
    for thread in threads:
        thread.join(20)
    assert {(each.status, each.headers["Rankwatch-Offset"]) for each in answers} == {(200, "0:8")}
    assert slow.calls == 1


def test_quick_answers_are_given_again_too_while_others_are_computed(served, monkeypatch):
    slow = Slow(monkeypatch)
    monkeypatch.setattr(cache, "SLOW_SECONDS", 60.0)
    monkeypatch.setattr(cache, "_AT_ONCE", 1)
    first = served.get("board?benchmark=b")
    served.post(MORE)
    slow.gate.clear()
    other = threading.Thread(target=lambda: served.get("benchmarks/b"))
    other.start()
    until(lambda: slow.calls, "another answer to be computed")
    again = served.get("board?benchmark=b")
    assert (again.text, again.headers["Rankwatch-Offset"]) == (first.text, "0:8")
    assert again.headers["Rankwatch-Lag"]
    slow.gate.set()
    other.join(20)
    until(lambda: served.get("board?benchmark=b").json["report"]["events"] == 9, "the next answer")
    assert served.get("board?benchmark=b").headers["Rankwatch-Lag"] is None


def test_quick_answers_are_given_again_when_computing_takes_too_much_of_the_time(served, monkeypatch):
    routes = "board?benchmark=b", "summaries"
    first = [served.get(route) for route in routes]
    served.post(MORE)
    end = served.partitions[0].off
    monkeypatch.setattr(cache, "_SHARE", -1.0)
    again = [served.get(route) for route in routes]
    assert [each.text for each in again] == [each.text for each in first]
    assert [each.headers["Rankwatch-Lag"] for each in again] == [f"0:{end - 8}"] * 2
    assert [each["events"] for each in served.get(f"summaries?at_least=0:{end}").json] == [9]
    assert served.get(f"board?benchmark=b&at_least=0:{end}").json["report"]["events"] == 9
    assert served.get("board?benchmark=b&new").status == 200, "nothing is kept of it"
    monkeypatch.undo()
    is_new = lambda: all(served.get(route).headers["Rankwatch-Lag"] is None for route in routes)  # noqa: E731
    until(is_new, "new answers")
    served.post([{**MORE[0], "item_id": "yet another"}])
    with monkeypatch.context() as old:
        old.setattr(served.reports.cache, "state_age", lambda: 1e9)
        assert served.get("board?benchmark=b").headers["Rankwatch-Lag"], "of an old state the fold comes first"
    until(is_new, "new answers")


async def test_others_have_their_turns_between_answers_that_are_computed_at_once():
    reports, order = ReportCache(lambda: [PartitionView(folded(EVENTS))]), []

    async def other():
        while order.count("answer") < 5:
            order.append("other")
            await asyncio.sleep(0)

    answers = [reports.read(lambda: order.append("answer"), ["b"]) for _ in range(5)]
    await asyncio.gather(*answers, other())
    assert "answer answer" not in " ".join(order)


def test_faults_are_not_kept_and_other_queries_are_other_answers(served):
    assert [served.get("pairs?benchmark=b&model=z").status for _ in range(2)] == [404, 404]
    served.post([{**MORE[0], "model": "z"}])
    assert served.get("pairs?benchmark=b&model=z").status == 200
    assert served.get("pairs?benchmark=b&limit=1").text != served.get("pairs?benchmark=b").text
    for order in ("limit=1&limit=2", "limit=2&limit=1"):  # the last one counts
        assert len(served.get(f"pairs?benchmark=b&{order}").json["pairs"]) == int(order[-1])
    served.hold(folded([{**each, "benchmark": "c"} for each in EVENTS]))
    assert served.get("pairs?benchmark=b").status == 404


def test_what_is_kept_is_bounded_whoever_asks_for_it(served, monkeypatch):
    kept = served.reports.cache
    monkeypatch.setattr(kept, "_most", 10_000)
    for k in range(1, 12):
        assert served.get(f"pairs?benchmark=b&limit={k}&x={'y' * 500}").status == 200
        assert 0 < kept._size == sum(each.size for each in kept._kept.values()) <= 10_000
    assert len(kept._kept) >= 1


def test_a_kept_answer_is_not_given_to_those_who_may_not_read_it():
    with Served(folded(EVENTS), token="secret", rules={"anonymous_read": "other"}) as served:
        assert json.loads(served.get("board?benchmark=b", Authorization="Bearer secret").text)["report"]["events"] == 8
        assert served.get("board?benchmark=b").status == 404

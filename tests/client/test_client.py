"""The client against real servers: it sends everything, and holds nothing up."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from rankwatch_client import Client, Stats
from rankwatch_client import client as client_module

from monitor.send.http import HttpDelivery
from monitor.send.messages import Outgoing
from tests.commands import Counted, events, pairs_of
from tests.ports import free_port
from tests.served import Served, folded

SOURCE = str(Path(__file__).parents[2] / "clients/python/src")
SKILLS = {"a": 0.9, "b": 0.5, "c": 0.1}
RECORDS = events(random.Random(1), SKILLS, 400)


def give(client, records):
    for record in records:
        client.score(record["item_id"], record["score"], benchmark=record["benchmark"], model=record["model"])


def test_every_score_arrives_in_order(served):
    with Client(served.url) as client:
        client.declare(benchmark="bench", items=400)
        give(client, RECORDS)
        assert client.flush(60)
        assert client.stats == Stats(1200, 0, 0, 0)
    (benchmark,) = served.get("benchmarks?pairs=all").json["benchmarks"]
    assert pairs_of(benchmark) == Counted(RECORDS).pairs()
    assert (benchmark["items"], benchmark["duplicates"], benchmark["order"]["policy"]) == (400, 0, "completion")
    rows = [event for record in served.log.records for event in json.loads(record)["events"]]
    assert [(e["item_id"], e["model"]) for e in rows] == [(r["item_id"], r["model"]) for r in RECORDS]


def test_all_fields_are_sent(served):
    with Client(served.url, benchmark="x", model="m") as client:
        client.score("1", True, cluster="law", repeat=2, epoch=1, unit="q")
        client.score(7, None)
        client.score("3", 0.25)
    (record,) = served.log.records
    assert json.loads(record)["events"] == [
        {
            "benchmark": "x",
            "item_id": "1",
            "model": "m",
            "score": 1.0,
            "cluster": "law",
            "repeat": 2,
            "epoch": 1,
            "unit": "q",
        },
        {"benchmark": "x", "item_id": "7", "model": "m", "score": None},
        {"benchmark": "x", "item_id": "3", "model": "m", "score": 0.25},
    ]


def test_scores_that_the_monitor_refuses_are_counted_and_logged(served, caplog):
    with Client(served.url, benchmark="bench", model="a") as client:
        client.score("1", 1)
        client.end_run()
        for item in "123":
            client.score(item, 1)
        assert client.flush(60)
        assert client.stats == Stats(sent=2, dropped=0, refused=2, pending=0)
    assert "refused scores: model: the run of a has ended; send changed scores under a new epoch" in caplog.text


async def test_scores_of_a_benchmark_that_is_set_aside_are_kept_and_reported_to_the_sender(served, caplog):
    (partition,) = served.partitions
    for offset in range(501):
        partition.quarantine.unreadable("bench", offset)
    with Client(served.url, benchmark="bench", model="a") as client:
        for item in "123":
            client.score(item, 1)
        assert client.flush(60)
        assert client.stats == Stats(sent=3, dropped=0, refused=0, pending=0)
    assert "has set 'bench' aside" in caplog.text
    notes = []
    deliver = HttpDelivery(served.url, on_note=notes.append)
    event = {"benchmark": "bench", "item_id": "4", "model": "a", "score": 1}
    for _ in range(2):
        await deliver([Outgoing("bench", json.dumps(event).encode())])
    deliver.close()
    assert notes == [
        f"{served.url}: bench is set aside there: its events are in the log, and count once an operator has released it"
    ]
    assert "bench" not in partition.benchmarks


def test_what_cannot_be_a_score_is_refused_alone(served, caplog):
    with Client(served.url, benchmark="x", model="m") as client:
        client.score("1", 2)
        client.score("1", float("inf"))
        client.score("1", "right")
        client.score("", 1)
        client.score("a\u202eb", 1)
        client.score("\ud800", 1)
        client.score("good", 1)
        client.score("2", 1, repeat=-1)
        assert client.flush(60)
        assert client.stats == Stats(sent=1, dropped=0, refused=7, pending=0)
    Client(served.url, benchmark="x").score("1", 1)
    assert "is out of range; use a number from 0 to 1" in caplog.text
    assert "the score has no model" in caplog.text
    assert [e["item_id"] for e in json.loads(served.log.records[-1])["events"]] == ["good"]


def test_a_score_of_nan_is_a_skipped_item(served):
    with Client(served.url, benchmark="x", model="m") as client:
        client.score("1", float("nan"))
        client.score("2", None)
        assert client.flush(60)
        assert client.stats == Stats(sent=2, dropped=0, refused=0, pending=0)
    assert [(e["item_id"], e["score"]) for e in json.loads(served.log.records[-1])["events"]] == [
        ("1", None),
        ("2", None),
    ]


def test_a_declaration_that_is_refused_keeps_no_score_back(served, caplog):
    served.post(RECORDS[:3])
    with Client(served.url) as client:
        client.declare(benchmark="bench", items=400)
        give(client, RECORDS[3:9])
        assert client.flush(60)
        assert client.stats.sent == 6
    assert "the declaration of 'bench' was refused" in caplog.text
    assert "send the whole declaration as version 2" in caplog.text


def test_the_end_of_a_run_comes_after_its_scores(served, caplog):
    with Client(served.url, benchmark="a/b 1 %", model="m") as client:
        client.score("1", 1)
        client.end_run()
        client.score("2", 1)
        client.score("1", 0, epoch=1)
        client.end_run(epoch=1, base=0)
        client.end_run(model="other")
        assert client.flush(60)
        assert client.stats == Stats(sent=2, dropped=0, refused=1, pending=0), "item 2 comes after the end"
    records = [json.loads(record) for record in served.log.records]
    ended = [record["ended"][0] for record in records if "ended" in record]
    assert ended == [
        {"model": "m", "epoch": 0, "ended": "a/b 1 %"},
        {"model": "m", "epoch": 1, "base": 0, "ended": "a/b 1 %"},
    ]
    assert [record["events"][0]["item_id"] for record in records if record["events"]] == ["1", "1"]
    assert (
        "the end of the run of 'other' on 'a/b 1 %' was refused: model: other has no scores in epoch 0" in caplog.text
    )
    Client(served.url, benchmark="x").end_run()
    assert "the end of a run has no benchmark or no model" in caplog.text
    assert served.get("benchmarks").json["benchmarks"][0]["rejected"] == 0


def test_a_monitor_that_is_away_is_waited_for_and_holds_nothing_up(monkeypatch):
    monkeypatch.setattr(client_module, "LONGEST_WAIT", 0.3)
    port = free_port()
    client = Client(f"http://127.0.0.1:{port}")
    give(client, RECORDS)
    assert client.stats == Stats(0, 0, 0, 1200)
    assert not client.flush(0.3)
    with Served(port=port) as served:
        assert client.flush(60)
        assert client.stats == Stats(1200, 0, 0, 0)
        assert Counted(RECORDS).pairs() == pairs_of(served.get("benchmarks?pairs=all").json["benchmarks"][0])
        client.close()


def test_what_there_is_no_room_for_is_counted(caplog):
    client = Client(f"http://127.0.0.1:{free_port()}", capacity=100)
    give(client, RECORDS)
    stats = client.stats
    assert stats.pending + stats.dropped == 1200
    assert 100 <= stats.pending <= 100 + client_module.BATCH
    client.close(0)
    assert client.stats == Stats(0, 1200, 0, 0)
    assert "1,200 scores were not sent: send the log of the evaluation with `rankwatch send`" in caplog.text
    client.score("late", 1, benchmark="x", model="m")
    assert client.stats.dropped == 1201
    client.close()


def test_a_log_that_takes_nothing_for_a_while(served, monkeypatch):
    served.log.fault = OSError("No space left on device")
    with Client(served.url) as client:
        rests = []
        client._rest = lambda seconds: (rests.append(seconds), time.sleep(0.02))
        give(client, RECORDS[:10])
        assert not client.flush(0.5)
        assert set(rests) == {5.0}, "as the monitor asks"
        served.log.fault = None
        assert client.flush(60)
        assert client.stats == Stats(10, 0, 0, 0)


def test_the_token_is_sent_and_not_logged(monkeypatch, caplog):
    monkeypatch.setenv("RANKWATCH_TOKEN", "s3cret ü")
    with Served(token="s3cret ü", loopback=False) as served:
        monkeypatch.setenv("RANKWATCH_URL", served.url)
        with Client() as client:
            give(client, RECORDS[:10])
            assert client.flush(60)
        refused = Client(token="s3cret wrong")
        give(refused, RECORDS[:10])
        assert refused.flush(60)
        assert refused.stats == Stats(0, 0, 10, 0)
    assert "The token is unknown" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    "url", [None, "", "localhost:8642", "ftp://localhost", "http://", "http://u:p@localhost", "http://h/?q=1"]
)
def test_a_url_that_cannot_be_right(url, monkeypatch):
    monkeypatch.delenv("RANKWATCH_URL", raising=False)
    with pytest.raises(ValueError, match=r"URL"):
        Client(url)


def test_early_stop_asks_the_monitor(server):
    served = server.hold(folded(RECORDS, items=400))
    client = Client(served.url, benchmark="bench", model="a")
    answer = client.early_stop()
    assert (answer.may_stop, answer.undecided) == (True, [])
    assert sorted(answer.decided) == ["b", "c"]
    assert not client.early_stop(model="none").may_stop
    assert "has no model 'none'" in client.early_stop(model="none").reason
    served.hold(folded(RECORDS[:30], items=400))
    answer = client.early_stop()
    assert not answer.may_stop
    assert {pair["other"] for pair in answer.undecided} == {"b", "c"}
    away = Client(f"http://127.0.0.1:{free_port()}", benchmark="bench", model="a").early_stop()
    assert not away.may_stop
    assert "no response" in away.reason


def test_threads_may_share_a_client(served):
    with Client(served.url) as client:
        threads = [threading.Thread(target=give, args=(client, RECORDS[k::8])) for k in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert client.flush(60)
        assert client.stats == Stats(1200, 0, 0, 0)
    assert pairs_of(served.get("benchmarks?pairs=all").json["benchmarks"][0]) == Counted(RECORDS).pairs()


PROGRAM = """
import os, sys
from rankwatch_client import Client
client = Client(sys.argv[1], benchmark="x", model="m", interval=5)
client.score("before", 1)
if sys.argv[2] == "fork":
    child = os.fork()
    client.score("child" if child == 0 else "parent", 1)
    if child:
        os.waitpid(child, 0)
"""


@pytest.mark.parametrize(("way", "expected"), [("plain", ["before"]), ("fork", ["before", "child", "parent"])])
def test_the_end_of_a_process_sends_what_is_left(served, way, expected):
    env = os.environ | {"PYTHONPATH": SOURCE}
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, served.url, way],
        env=env,
        timeout=60,
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stderr == ""
    assert sorted(e["item_id"] for r in served.log.records for e in json.loads(r)["events"]) == expected


def test_the_end_of_a_process_does_not_wait_for_ever():
    env = os.environ | {"PYTHONPATH": SOURCE}
    program = "from rankwatch_client import client\nclient.EXIT_SECONDS = 0.2\n" + PROGRAM.replace(
        "interval=5", "interval=0"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, f"http://127.0.0.1:{free_port()}", "plain"],
        env=env,
        timeout=60,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "scores were not sent" in ended.stderr


def test_it_needs_the_standard_library_alone():
    code = "import sys, rankwatch_client; print({m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names))"
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": SOURCE},
        timeout=60,
        check=True,
        capture_output=True,
        text=True,
    )
    assert ended.stdout.strip() in {"{'rankwatch_client', '__main__'}", "{'__main__', 'rankwatch_client'}"}

"""The end of runs, by each way in: the record in a file, `--ended`, HTTP and `send`; afterwards a run takes no new score."""

import asyncio
import json
import urllib.request

import pytest

from tests.commands import Watch, get, letters, rankwatch, until, watch_once, write
from tests.kafka.records import read_all
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

ITEMS = 40
REFUSED = "the run of a has ended; send changed scores under a new epoch"


def board(models="ab", items=ITEMS, **more):
    return [
        {"benchmark": "bench", "item_id": f"i{k}", "model": model, "score": int((model == "a") == (k % 10 > 0)), **more}
        for model in models
        for k in range(items)
    ]


def runs(text):
    """Whether each run has ended, and the status of the pairs."""
    benchmarks = json.loads(text)["benchmarks"]
    ended = {m["model"]: m["run_ended"] for b in benchmarks for m in b["models"]}
    return ended, {p["status"] for b in benchmarks for p in b["pairs"]}


def log_ends(data):
    """The ends of runs in a log."""
    found = (json.loads(line)[-1] for line in (data / "log.jsonl").read_text().splitlines())
    return [record for record in found if record.get("ended")]


def served(watch):
    return get(f"{watch.url}/api/v1/benchmarks?pairs=all")[1]


def test_watch_ends_every_run_once_its_files_are_read(tmp_path):
    folder, data = tmp_path / "results", tmp_path / "data"
    folder.mkdir()
    path = write(folder / "a.jsonl", board("a", 30))
    write(folder / "b.jsonl", board("b"))
    watch_once(data, folder, "--items", ITEMS)
    assert log_ends(data) == []
    first = rankwatch("watch", folder, "--once", "--ended", "--data-dir", data)
    assert "rankwatch: 2 runs ended\n" in first.stderr
    assert log_ends(data) == [{"ended": "bench", "model": "a"}, {"ended": "bench", "model": "b"}]
    log = (data / "log.jsonl").read_bytes()
    again = rankwatch("watch", folder, "--once", "--ended", "--data-dir", data)
    assert "rankwatch: 0 runs ended; 2 had ended before\n" in again.stderr
    assert (data / "log.jsonl").read_bytes() == log

    write(path, board("a")[30:], mode="a")
    write(folder / "c.jsonl", board("c"))
    later = rankwatch("watch", folder, "--once", "--ended", "--data-dir", data, "--format", "json")
    assert "rankwatch: 1 run ended; 2 had ended before\n" in later.stderr
    assert "10 records rejected; " in later.stderr
    assert {letter["reason"] for letter in letters(data)} == {REFUSED}
    assert runs(later.stdout)[0] == {"a": True, "b": True, "c": True}


def test_watch_ends_the_runs_of_the_epoch_that_it_gives(tmp_path):
    path, data = write(tmp_path / "a.jsonl", board()), tmp_path / "data"
    new = write(tmp_path / "b.jsonl", board("a"))
    watch_once(data, path, "--items", ITEMS)
    rankwatch("watch", new, "--once", "--ended", "--epoch", "next", "--data-dir", data)
    rankwatch("watch", new, "--once", "--ended", "--epoch", "next", "--data-dir", data)
    assert log_ends(data) == [{"ended": "bench", "model": "a", "epoch": 1}]


def test_aliases_end_the_run_of_the_model(tmp_path):
    path, data = write(tmp_path / "a.jsonl", [*board("a", 20), *board("x")[20:], *board("b")]), tmp_path / "data"
    rankwatch("watch", path, "--once", "--ended", "--data-dir", data, "--items", ITEMS, "--alias", "x=a")
    assert [record["model"] for record in log_ends(data)] == ["a", "b"]


def test_watch_ends_the_runs_while_it_follows(tmp_path):
    folder, data = tmp_path / "results", tmp_path / "data"
    folder.mkdir()
    records = board(items=30)
    path = write(folder / "a.jsonl", records[:-1])
    with path.open("a") as file:
        file.write(json.dumps(records[-1]))  # complete, but for its newline
    with Watch(
        data, folder, "--items", ITEMS, "--ended", "--missing", "ignorable", RANKWATCH_POLL_SECONDS="0.05"
    ) as watch:
        until(lambda: runs(served(watch)) == ({"a": True, "b": True}, {"decided"}), "the end of both runs")
        write(folder / "c.jsonl", board("c"))
        until(lambda: runs(served(watch))[0].get("c") is False, "a run that comes later")
        write(path, ["", *board("a")[30:]], mode="a")
        until(lambda: (data / "dead-letters.jsonl").exists() and len(letters(data)) == 10, "the refused scores")
        assert {letter["reason"] for letter in letters(data)} == {REFUSED}
        assert watch.stop() == 0
    assert len(log_ends(data)) == 2
    assert log_ends(data)[0] == {"ended": "bench", "model": "a"}


def test_ended_needs_files(tmp_path):
    refused = rankwatch("watch", "--ended", "--data-dir", tmp_path, code=2)
    assert "give the files or folders whose runs end" in refused.stderr


@pytest.mark.parametrize("how", ["record", "flag"])
def test_send_ends_runs_over_http(tmp_path, how):
    ends = [{"ended": "bench", "model": model} for model in "ab"] if how == "record" else []
    path, data = write(tmp_path / "a.jsonl", [*board(items=30), *ends]), tmp_path / "data"
    flags = ["--ended"] if how == "flag" else []
    with Watch(data) as watch:
        command = ["send", path, "--to", watch.url, "--items", ITEMS, "--data-dir", tmp_path / "sent", *flags]
        first = rankwatch(*command).stdout
        assert first.startswith(f"60 events of 1 benchmark sent to {watch.url}")
        assert ("; 2 runs ended" in first) == (how == "flag")
        until(lambda: runs(served(watch)) == ({"a": True, "b": True}, {"exhausted"}), "the end of both runs")
        assert rankwatch(*command).stdout == f"nothing new sent to {watch.url}\n"
        write(path, board("a")[30:], mode="a")
        done = rankwatch(*command)
        assert f"rankwatch: 10 records refused there: model: {REFUSED}\n" in done.stderr
        assert done.stdout.endswith("; 10 refused there\n")
        assert letters(data) == [], "what the answer lists is not stored"


def test_a_run_that_ended_in_a_file_takes_no_new_score(tmp_path):
    lines = [*board(items=30), {"ended": "bench", "model": "a"}, *board("a")[28:]]
    path = write(tmp_path / "a.jsonl", lines)
    done = rankwatch("report", path, "--items", ITEMS, code=1).stderr
    assert "10 of 72 lines, more than 10%, could not be read" in done
    assert done.count(f"model: {REFUSED}") == 1
    assert f"model: {REFUSED} (and 9 more)\n" in done
    data = tmp_path / "data"
    (benchmark,) = json.loads(watch_once(data, path, "--items", ITEMS, code=1))["benchmarks"]
    assert {letter["reason"] for letter in letters(data)} == {REFUSED}
    assert (len(letters(data)), benchmark["duplicates"], benchmark["rejected"]) == (10, 2, 10)
    again = write(tmp_path / "b.jsonl", board("a", epoch=1))
    (benchmark,) = json.loads(watch_once(data, again))["benchmarks"]
    assert {m["model"]: (m["epoch"], m["items"]) for m in benchmark["models"]} == {"a": (1, 40), "b": (0, 30)}


def test_a_run_that_ended_over_http_takes_no_new_score(tmp_path):
    def post(path, body, kind):
        request = urllib.request.Request(f"{watch.url}/api/v1/{path}", body, {"Content-Type": kind})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def send(records):
        return post("events", b"".join(json.dumps(r).encode() + b"\n" for r in records), "application/x-ndjson")

    data = tmp_path / "data"
    with Watch(data) as watch:
        send([{"declare": "bench", "items": ITEMS}, *board(items=30)])
        ended = post("benchmarks/bench/ended", b'{"model": "a"}', "application/json")
        assert (ended["in_force"], ended["runs"]) == (True, [{"model": "a", "epoch": 0}])
        answer = send(board("a")[28:])
        assert (answer["accepted"], [e["line"] for e in answer["rejected"]]) == (2, list(range(3, 13)))
        assert {error["reason"] for error in answer["rejected"]} == {REFUSED}
        assert runs(served(watch))[0] == {"a": True, "b": False}
        assert watch.stop() == 0
    # The end is in the log, and in the state.
    with Watch(data) as watch:
        assert runs(served(watch))[0] == {"a": True, "b": False}


@pytest.mark.kafka
@pytest.mark.parametrize("packed", [[], ["--packed"]], ids=["plain", "packed"])
def test_send_ends_runs_through_a_topic(kafka, topic, tmp_path, packed):
    asyncio.run(kafka.create_topic(topic, 2))
    path = write(tmp_path / "a.jsonl", board(items=30))
    flags = ["--to", kafka.url(topic), "--ended", "--data-dir", tmp_path / "positions", *packed]
    done = rankwatch("send", path, *flags, "--items", ITEMS, "--missing", "ignorable", "--goal", "best").stdout
    assert "60 events of 1 benchmark sent" in done
    assert "; 2 runs ended" in done
    env = {
        "RANKWATCH_GROUP": topic,
        "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts",
        "RANKWATCH_PRICES": "0.5",
    }
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        worker = workers.start()
        url = workers.read().url()

        def state():
            return runs(get(f"{url}/api/v1/benchmarks?pairs=all")[1])

        until(lambda: state() == ({"a": True, "b": True}, {"decided"}), workers.logs())
        write(path, board("a")[30:], mode="a")
        assert "has ended there, so new scores of it are refused" in rankwatch("send", path, *flags).stderr

        def dead():
            return asyncio.run(read_all(kafka, f"{topic}.dlq"))

        found = until(lambda: len(dead()) == 10 and dead(), workers.logs())
        assert {dict(record.headers)["reason"].decode() for record in found} == {REFUSED}
        workers.stop()
        (goal,) = [line for line in map(json.loads, worker.log_text.splitlines()) if line.get("event") == "goal"]
        assert (goal["goal"], goal["state"], goal["items_run"], goal["cost_run"]) == ("best", "met", 60, 30.0)


@pytest.mark.kafka
def test_a_reader_lists_what_it_refuses_and_a_worker_names_the_reader(kafka, topic, tmp_path):
    def post(url, *records):
        body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
        request = urllib.request.Request(f"{url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    asyncio.run(kafka.create_topic(topic, 2))
    late, unknown = board("a")[30:], {"ended": "bench", "model": "x"}
    env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        worker = workers.start()
        url = workers.read().url()
        assert post(url, *board(items=30), {"ended": "bench", "model": "a"})["ended"] == 1
        until(lambda: runs(get(f"{url}/api/v1/benchmarks?pairs=all")[1])[0] == {"a": True, "b": False}, "the end")
        answer = post(url, *late, unknown)
        assert (answer["accepted"], answer["ended"], len(answer["rejected"])) == (0, 0, 11)
        with pytest.raises(urllib.error.HTTPError) as refused:
            post(worker.url(), *late)
        with refused.value as answer:
            assert (answer.code, "use `rankwatch serve`" in json.load(answer)["detail"]) == (404, True)
        assert get(f"{worker.url()}/")[0] == 404
        assert "rankwatch_pairs" not in get(f"{worker.url()}/metrics")[1]
        workers.stop()


def partition(benchmark):
    from schemas.records.ownership import owner

    return owner(benchmark, 2)

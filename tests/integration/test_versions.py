"""Benchmarks that are declared again: by flags over the same data directory, over HTTP and over Kafka."""

import asyncio
import json

import numpy as np
import pytest

from tests.commands import Watch, changes, events, get, in_order, letters, rankwatch, report, until, watch_once, write
from tests.kafka.run_worker import Workers
from tests.redis_server import RedisServer

MODELS = {"strong": 0.9, "fair": 0.6, "weak": 0.3}
ASSUMED = "that the number of items, declared after the first score, was chosen without knowing any score"
PROCEDURES = ("anytime", "anytime_family")


@pytest.fixture
def board():
    return events(np.random.default_rng(3), MODELS, 120)


def first(records, items):
    return [e for e in records if int(e["item_id"].split()[1]) < items]


def decided(benchmark):
    return {(p["model_a"], p["model_b"]): [p["decided"][name] for name in PROCEDURES] for p in benchmark["pairs"]}


def only(text):
    (benchmark,) = json.loads(text)["benchmarks"]
    return benchmark


def standing(data):
    """Decisions in the feed that nothing has ended since."""
    now = {}
    for change in in_order(changes(data)):
        key = change["model_a"], change["model_b"], change["procedure"]
        now[key] = change["after"]
    return {key: side for key, side in now.items() if side}


def versions(data):
    """The declarations that a log holds as records of their own."""
    found = (json.loads(line)[-1] for line in (data / "log.jsonl").read_text().splitlines())
    return [record for record in found if isinstance(record.get("declare"), str)]


def test_a_benchmark_that_began_undeclared_is_declared_by_the_next_watch(tmp_path, board):
    data, fresh = tmp_path / "data", tmp_path / "fresh"
    path = write(tmp_path / "a.jsonl", board)
    said = rankwatch("watch", path, "--once", "--data-dir", data).stderr
    assert f"to declare it: rankwatch watch {path} --data-dir {data} --items bench=N" in said
    assert changes(data) == []
    again = rankwatch("watch", path, "--once", "--data-dir", data, "--items", 120, "--format", "json")
    assert (
        "bench: declared again, as version 2: order = completion (was none), items = 120 (was none); verdicts "
        f"now assume {ASSUMED}"
    ) in again.stderr
    (declared,) = versions(data)
    assert (declared["version"], declared["items"]) == (2, 120)
    expected = only(watch_once(fresh, path, "--items", 120))
    assert decided(only(again.stdout)) == decided(expected)
    assert standing(data) == standing(fresh) != {}
    assert {change["sentence"].endswith(f"{ASSUMED}.") for change in changes(data) if change["kind"] == "decided"} == {
        True
    }
    assert all(ASSUMED in pair["reason"] for pair in only(again.stdout)["pairs"])
    # The third time nothing changes, with the flag and without.
    log = (data / "log.jsonl").read_bytes()
    for flags in (["--items", 120], []):
        third = rankwatch("watch", path, "--once", "--data-dir", data, "--format", "json", *flags)
        assert (third.stdout, third.stderr) == (again.stdout, "")
    assert (data / "log.jsonl").read_bytes() == log
    assert letters(data) == []


def test_a_benchmark_that_grows_is_declared_larger(tmp_path, board):
    data, fresh, path = tmp_path / "data", tmp_path / "fresh", tmp_path / "a.jsonl"
    write(path, first(board, 60))
    watch_once(data, path, "--items", "bench=60")
    before = standing(data)
    assert before
    write(path, [e for e in board if e not in first(board, 60)], mode="a")
    held = only(watch_once(data, path))
    assert "120 items arrived and 60 were declared" in held["order"]["reason"]
    assert "(items: N)" in held["order"]["reason"]
    larger = rankwatch("watch", path, "--once", "--data-dir", data, "--items", "bench=120", "--format", "json")
    assert "items = 120 (was 60); decisions so far are superseded, and verdicts now assume" in larger.stderr
    whole = only(larger.stdout)
    assert decided(whole) == decided(only(watch_once(fresh, path, "--items", 120)))
    assert standing(data) == standing(fresh)
    kinds = [change["kind"] for change in changes(data)]
    assert kinds.count("invalidated") == len(before), "when there were too many items"
    assert "superseded" not in kinds

    # Declared first, the old decisions are superseded instead.
    other = tmp_path / "other"
    small = write(tmp_path / "small.jsonl", first(board, 60))
    watch_once(other, small, "--items", 60)
    watch_once(other, small, path, "--items", "bench=120")
    kinds = [change["kind"] for change in changes(other)]
    assert kinds.count("superseded") == len(before)
    assert "invalidated" not in kinds
    assert standing(other) == standing(fresh)


def test_fewer_items_than_have_scores_end_the_command_and_lose_nothing(tmp_path, board):
    data, path = tmp_path / "data", write(tmp_path / "a.jsonl", board)
    before = only(watch_once(data, path, "--items", 120))
    log = (data / "log.jsonl").read_bytes()
    refused = rankwatch("watch", path, "--once", "--data-dir", data, "--items", 100, code=2)
    assert (
        refused.stderr
        == "rankwatch: items: 'bench' has scores of 120 items, so it cannot have 100; declare at least 120\n"
    )
    assert (data / "log.jsonl").read_bytes() == log
    assert only(watch_once(data, path)) == before


@pytest.mark.parametrize(
    ("spoil", "flags", "reason"),
    [
        (
            {"item_id": "item 1", "repeat": 5},
            ["--repeats", "all"],
            "declare as many as the items have (repeats: R), or all (repeats: all)",
        ),
        ({"score": 0.5}, ["--scores", "graded"], "declare graded scores (scores: graded)"),
    ],
)
def test_what_holds_a_benchmark_is_declared_in_the_same_data_directory(tmp_path, board, spoil, flags, reason):
    data, path = tmp_path / "data", tmp_path / "a.jsonl"
    write(path, board[1:])
    watch_once(data, path, "--items", 120)
    write(path, [board[0] | spoil], mode="a")
    with Watch(data, path) as watch:
        held = until(lambda: only(get(f"{watch.url}/api/v1/benchmarks?pairs=all")[1])["order"]["reason"], "the hold")
        assert reason in held
    released = only(watch_once(data, path, *flags))
    expected = only(watch_once(tmp_path / "fresh", path, "--items", 120, *flags))
    assert decided(released) == decided(expected)
    assert released["order"] == expected["order"]


def test_a_version_survives_a_restart_and_a_move(tmp_path, board):
    data, path = tmp_path / "data", write(tmp_path / "a.jsonl", board)
    watch_once(data, path)
    declared = watch_once(data, path, "--items", 120)
    with Watch(data) as watch:
        assert only(get(f"{watch.url}/api/v1/benchmarks?pairs=all")[1])["pairs"] == only(declared)["pairs"]
        assert json.loads(get(f"{watch.url}/api/v1/declarations?benchmark=bench")[1])["version"] == 2
    rankwatch("state", "export", tmp_path / "state.jsonl", "--data-dir", data)
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "log.jsonl").write_bytes((data / "log.jsonl").read_bytes())
    rankwatch("state", "import", tmp_path / "state.jsonl", "--data-dir", moved)
    assert watch_once(moved, path) == declared
    # A log that is folded again from its beginning gives the same changes.
    again = tmp_path / "again"
    again.mkdir()
    (again / "log.jsonl").write_bytes((data / "log.jsonl").read_bytes())
    assert watch_once(again, path) == declared
    assert changes(again) == changes(data)


def test_a_committed_order_stays(tmp_path, board):
    data, path = tmp_path / "data", tmp_path / "a.jsonl"
    items = [f"item {k}" for k in range(120)]
    write(path, [{"declare": "bench", "order": {"policy": "committed", "seed": "s"}, "item_ids": items}, *board])
    watch_once(data, path)
    refused = rankwatch("watch", path, "--once", "--data-dir", data, "--items", "bench=130", code=2)
    assert "a committed order is declared before the first score and never changes" in refused.stderr
    watch_once(data, path)


def test_a_file_declares_its_next_version(tmp_path, board):
    records = [{"declare": "bench", "items": 60}, *first(board, 60)]
    records += [{"declare": "bench", "items": 120, "version": 2}, *[e for e in board if e not in first(board, 60)]]
    path = write(tmp_path / "a.jsonl", records)
    (found,) = report(path)[0]["benchmarks"]
    assert found["rejected"] == 0
    live = only(watch_once(tmp_path / "data", path))
    assert decided(live) == decided(
        only(watch_once(tmp_path / "fresh", write(tmp_path / "b.jsonl", board), "--items", 120))
    )
    assert decided(found) == decided(report(tmp_path / "b.jsonl", "--items", 120)[0]["benchmarks"][0])
    assert all(ASSUMED in pair["reason"] for each in (found, live) for pair in each["pairs"])


def test_send_over_http_declares_the_next_version(tmp_path, board):
    path = write(tmp_path / "a.jsonl", board)
    with Watch(tmp_path / "data") as watch:
        to = ("--to", watch.url)
        command = ("send", path, *to, "--data-dir", tmp_path / "sent")
        assert f"to declare it: rankwatch send {path} --to {watch.url} --items bench=N" in rankwatch(*command).stderr
        said = rankwatch(*command, "--items", 120)
        assert "bench: declared again, as version 2" in said.stderr
        assert rankwatch(*command, "--items", 120).stderr == ""

        def served():
            return only(get(f"{watch.url}/api/v1/benchmarks?pairs=all")[1])

        until(lambda: served()["order"]["policy"] == "completion", "the declaration")
        assert decided(served()) == decided(only(watch_once(tmp_path / "fresh", path, "--items", 120)))
        # A second sender does not know of version 2: it is told.
        refused = rankwatch("send", path, *to, "--data-dir", tmp_path / "other", "--items", 121, code=1)
        assert "send the whole declaration as version 3" in refused.stderr
        (tmp_path / "rankwatch.toml").write_text("[benchmark.bench]\nitems = 121\nversion = 3\n")
        rankwatch("send", path, *to, "--data-dir", tmp_path / "other")
        until(lambda: served()["models"][0]["coverage"] < 1, "version 3")
    assert letters(tmp_path / "data") == []


@pytest.mark.kafka
def test_a_worker_takes_the_next_version_from_a_topic(kafka, topic, board, tmp_path):
    asyncio.run(kafka.create_topic(topic, 2))
    path = write(tmp_path / "a.jsonl", board)
    send = ("send", path, "--to", kafka.url(topic), "--data-dir", tmp_path / "positions")
    rankwatch(*send)
    env = {"RANKWATCH_GROUP": topic, "RANKWATCH_VERDICT_TOPIC": f"{topic}.verdicts"}
    with RedisServer(tmp_path) as redis, Workers(kafka.url(topic), redis.url, tmp_path, **env) as workers:
        workers.start()
        url = workers.read().url()

        def benchmark():
            found = json.loads(get(f"{url}/api/v1/benchmarks?pairs=all")[1])["benchmarks"]
            return found[0] if found and found[0]["events"] == len(board) else None

        assert until(benchmark, workers.logs())["order"]["policy"] == "none"
        for number, items in ((2, 140), (3, 120)):
            assert f"declared again, as version {number}" in rankwatch(*send, "--items", items).stderr
        until(lambda: benchmark()["models"][0]["coverage"] == 1, workers.logs())
        last = benchmark()
        workers.stop()
        workers.start()
        url = workers.read().url()
        assert until(benchmark, workers.logs()) == last
        workers.stop()
    fresh = only(watch_once(tmp_path / "fresh", path, "--items", 120))
    assert decided(last) == decided(fresh)
    assert all(ASSUMED in pair["reason"] for pair in last["pairs"])

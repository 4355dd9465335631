"""Events over HTTP into a running `watch`: by `rankwatch send`, and posted by hand."""

import json
import random
import signal
import subprocess
import urllib.request

import pytest

from tests import forked
from tests.commands import (
    PATIENCE,
    RANKWATCH,
    Counted,
    Watch,
    by_oracle,
    environment,
    events,
    feed_latches,
    get,
    pairs_of,
    rankwatch,
    until,
    write,
)
from tests.ports import free_port

SKILLS = {"alpha": 0.9, "bravo": 0.6, "charlie": 0.15}


def benchmarks(url, **headers):
    return json.loads(get(f"{url}/api/v1/benchmarks?pairs=all", **headers)[1])["benchmarks"]


def event_count(url, **headers):
    return sum(b["events"] for b in benchmarks(url, **headers))


def post(url, records):
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    headers = {"Content-Type": "application/x-ndjson"}
    with urllib.request.urlopen(
        urllib.request.Request(f"{url}/api/v1/events", body, headers), timeout=PATIENCE
    ) as answer:
        return json.loads(answer.read())


def send(path, url, home, *arguments, **options):
    return rankwatch("send", path, "--to", url, *arguments, XDG_STATE_HOME=str(home), **options)


def test_files_are_sent_once_and_decided_there_as_here(tmp_path):
    records = events(random.Random(31), SKILLS, 300)
    path, home, data = write(tmp_path / "a.jsonl", records[:500]), tmp_path / "home", tmp_path / "data"
    with Watch(data) as watch:
        done = send(path, f"{watch.url}/", home, "--items", 300)
        assert done.stdout == f"500 events of 1 benchmark sent to {watch.url}\n"
        write(path, ["{", *records[500:]], mode="a")
        done = send(path, watch.url, home)
        assert done.stdout.startswith("400 events of 1 benchmark sent")
        assert f"{path}:501: record" in done.stderr
        assert send(path, watch.url, home).stdout.startswith("nothing new sent")
        until(lambda: event_count(watch.url) == 900, "all events")
        (benchmark,) = benchmarks(watch.url)
        assert pairs_of(benchmark) == Counted(records).pairs()
        assert benchmark["duplicates"] == 0
        assert watch.stop() == 0
    assert feed_latches(data) == by_oracle(records, policy="completion", items=300) != {}


def test_what_is_declared_otherwise_there_is_refused(tmp_path):
    path = write(tmp_path / "a.jsonl", events(random.Random(32), SKILLS, 10))
    with Watch(tmp_path / "data", "--items", 10) as watch:
        post(watch.url, events(random.Random(33), SKILLS, 5))
        until(lambda: event_count(watch.url) == 15, "the first events")
        assert benchmarks(watch.url)[0]["order"]["policy"] == "completion", "--items is for what is posted, too"
        refused = send(path, watch.url, tmp_path / "home", "--order", "trusted", code=1)
        assert "answered 409" in refused.stderr
        assert "send the whole declaration as version 2" in refused.stderr
        assert event_count(watch.url) == 15
        # What a file declares by itself, as a log does its item count, replaces nothing, also ahead of the first score.
        items = [f"item {k}" for k in range(12)]
        order = {"policy": "committed", "seed": "s"}
        post(watch.url, [{"declare": "race", "order": order, "item_ids": items, "goal": "best"}])
        until(lambda: get(f"{watch.url}/api/v1/boards/race")[0] == 200, "the declaration")
        log = [{"declare": "race", "items": 10, "order": {"policy": "completion"}}]
        log += [{"benchmark": "race", "item_id": item, "model": "m", "score": 1} for item in items[:3]]
        sent = send(write(tmp_path / "race.jsonl", log), watch.url, tmp_path / "home")
        assert "race: declared already; what its files declare is not used" in sent.stderr
        until(lambda: event_count(watch.url) == 18, "the scores of the race")
        spec = json.loads(get(f"{watch.url}/api/v1/boards/race")[1])["spec"]
        assert (spec["order"], spec["item_ids"], spec["goal"], spec["version"]) == (order, items, "best", 1)


def test_sending_waits_for_a_server_that_is_away(tmp_path):
    path, port = write(tmp_path / "a.jsonl", events(random.Random(34), SKILLS, 20)), free_port()
    arguments = [RANKWATCH, "send", path, "--to", f"http://127.0.0.1:{port}"]
    env = environment(XDG_STATE_HOME=str(tmp_path / "home"))
    with forked.start(arguments, env=env, stdout=subprocess.PIPE, text=True) as sending:
        with pytest.raises(subprocess.TimeoutExpired):
            sending.wait(1.5)
        with Watch(tmp_path / "data", "--port", port) as watch:
            assert sending.communicate(timeout=PATIENCE)[0].startswith("60 events of 1 benchmark sent")
            assert event_count(watch.url) == 60


def test_the_token_is_sent_and_never_shown(tmp_path):
    path = write(tmp_path / "a.jsonl", events(random.Random(35), SKILLS, 20))
    token = write(tmp_path / "token", ["s3cret"])
    with Watch(tmp_path / "data", RANKWATCH_TOKEN="s3cret") as watch:
        refused = send(path, watch.url, tmp_path / "home", code=1)
        assert "answered 401" in refused.stderr
        assert "--token-file" in refused.stderr
        assert send(path, watch.url, tmp_path / "home", "--token-file", token).stdout.startswith("60 events")
        more = write(tmp_path / "b.jsonl", events(random.Random(36), SKILLS, 20, start=20))
        done = send(more, watch.url, tmp_path / "home", RANKWATCH_TOKEN="s3cret")
        assert done.stdout.startswith("60 events")
        until(lambda: event_count(watch.url, Authorization="Bearer s3cret") == 120, "all events")
        assert "s3cret" not in "".join([done.stdout, done.stderr, refused.stderr, *watch.lines, *watch.errors])


@pytest.mark.parametrize(
    ("to", "advice"),
    [
        ("http://user:s3cret@localhost:1", "the URL contains a user or password"),
        ("http://", "use http[s]://host[:port]"),
        ("http://localhost:x", "--to: http://localhost:x"),
        ("http://localhost:1?token=s3cret", "use http[s]://host[:port]"),
        ("http://[::1", "--to: http://[::1: the host or the port is not valid"),
        ("ftp://user:s3cret@host/x?token=s3cret", "--to ftp://***@host/x?***: use kafka://"),
        ("user:s3cret@host", "--to ***@host: use kafka://"),
        ("kafka://user:s3cret@host/topic", "--to: kafka://***@host/topic contains a user or password"),
        ("kafka://host:x/topic", "--to: kafka://host:x/topic: a host or a port is not valid"),
    ],
)
def test_a_url_that_cannot_be_right(tmp_path, to, advice):
    refused = send(write(tmp_path / "a.jsonl", []), to, tmp_path / "home", code=2)
    assert advice in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "s3cret" not in refused.stderr


def test_once_needs_files(tmp_path):
    assert "give the files" in rankwatch("watch", "--once", "--data-dir", tmp_path / "data", code=2).stderr


def test_what_was_answered_survives_a_kill(tmp_path):
    records, data = events(random.Random(37), SKILLS, 120), tmp_path / "data"
    answered = []
    with Watch(data, "--items", 120) as watch:
        for k in range(0, 360, 30):
            assert post(watch.url, records[k : k + 30])["accepted"] == 30
            answered += records[k : k + 30]
        assert watch.stop(signal.SIGKILL) == -signal.SIGKILL
    with Watch(data) as watch:
        until(lambda: event_count(watch.url) == 360, "all events")
        (benchmark,) = benchmarks(watch.url)
        assert pairs_of(benchmark) == Counted(answered).pairs()
        assert benchmark["duplicates"] == 0
        assert watch.stop() == 0
    assert feed_latches(data) == by_oracle(records, policy="completion", items=120) != {}

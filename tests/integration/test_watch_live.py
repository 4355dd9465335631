"""`rankwatch watch` as a daemon: what it says, what it serves and to whom, and how it ends."""

import gzip
import json
import random
import re
import signal
import socket
import subprocess
from pathlib import Path

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
    watch_once,
    write,
)

SKILLS = {"alpha": 0.9, "bravo": 0.6, "charlie": 0.15}
HEAD = 'rankwatch_{}{{benchmark="bench"}}'


def metric(text, name):
    """The value of a series in the text format."""
    sample = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    assert sample, f"no series {name} in\n{text}"
    return float(sample[1])


def event_count(url):
    return sum(b["events"] for b in json.loads(get(f"{url}/api/v1/benchmarks")[1])["benchmarks"])


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    """A daemon over a folder in which a file grows, a gzipped one appears and a line is bad, with the events that it got."""
    base = tmp_path_factory.mktemp("live")
    folder = base / "results"
    folder.mkdir()
    records = events(random.Random(21), SKILLS, 90)
    path = write(folder / "a.jsonl", records[:120])
    with Watch(base / "data", folder, "--items", 90, RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: event_count(url) == 120, "the first events")
        with path.open("a") as file:
            line = json.dumps(records[120]) + "\n"
            file.write(line[:40])
            file.flush()
            write(folder / "b.jsonl", [*records[121:200], "{"])
            until(lambda: event_count(url) == 199, "a second file")
            file.write(line[40:])
        with gzip.open(folder / "c.jsonl.gz", "wt") as file:
            file.writelines(json.dumps(event) + "\n" for event in [*records[200:], records[0]])
        until(lambda: event_count(url) == 271, "the rest")
        yield watch, url, base, [*records[:120], *records[121:200], records[120], *records[200:], records[0]]


def test_verdicts_are_printed_as_they_are_reached(daemon):
    watch, *_ = daemon
    assert watch.lines[0] == "watching\n"
    watch.line(r"^decided: bench: alpha is better than charlie, family-wise at alpha = 0\.05, after \d+ items$")
    watch.line(r"^271 events, .* 1 rejected, caught up, http://127\.0\.0\.1:\d+")
    assert not any("\x1b" in line for line in watch.lines)


@pytest.mark.parametrize("made", [False, True])
def test_a_path_without_results_is_waited_for(tmp_path, made):
    folder = tmp_path / "results"
    if made:
        folder.mkdir()
    with Watch(tmp_path / "data", folder, "--items", 90, RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        folder.mkdir(exist_ok=True)
        write(folder / "a.jsonl", events(random.Random(21), SKILLS, 90)[:30])
        until(lambda: event_count(url) == 30, "the events of a file that came later")


def test_the_api_has_the_report(daemon):
    _, url, _, records = daemon
    status, text = get(f"{url}/api/v1/benchmarks?pairs=all")
    assert status == 200
    (benchmark,) = json.loads(text)["benchmarks"]
    counted = Counted(records)
    assert pairs_of(benchmark) == counted.pairs()
    assert (benchmark["events"], benchmark["duplicates"], benchmark["rejected"]) == (271, 1, 1)
    assert benchmark["order"] == {"policy": "completion", "suspect": False, "reason": None, "facts": []}
    assert json.loads(get(f"{url}/api/v1/benchmarks/bench?pairs=all")[1]) == json.loads(text)
    assert len(json.loads(get(f"{url}/api/v1/benchmarks")[1])["benchmarks"][0]["pairs"]) == 2
    status, text = get(f"{url}/api/v1/benchmarks/none")
    assert status == 404
    assert "'none' has no events" in json.loads(text)["detail"]


def test_the_metrics_are_the_numbers_of_the_report(daemon):
    _, url, _, records = daemon
    status, text = get(f"{url}/metrics")
    assert status == 200
    (benchmark,) = json.loads(get(f"{url}/api/v1/benchmarks?pairs=all")[1])["benchmarks"]
    expected = {"events_total": 271, "duplicates_total": 1, "conflicts_total": 0, "rejected_total": 1}
    expected |= {"items": 90, "models": 3, "pairs": 3, "held": 0}
    for name, value in expected.items():
        assert metric(text, HEAD.format(name)) == value
    counts = Counted(records).pairs()
    for pair in benchmark["pairs"]:
        a, b = sorted([pair["model_a"], pair["model_b"]])
        labels = f'benchmark="bench",model_a="{a}",model_b="{b}"'
        assert pair["adjacent"] or pair["decided"]["anytime_family"], "every pair is followed"
        n, wins, losses = counts[a, b]
        assert metric(text, f"rankwatch_pair_items{{{labels}}}") == n
        assert metric(text, f"rankwatch_pair_gap_ratio{{{labels}}}") == pytest.approx((wins - losses) / n)
        side = pair["decided"]["anytime_family"]
        assert metric(text, f'rankwatch_pair_decided{{{labels},procedure="anytime_family"}}') == (
            0 if side is None else 1 if pair[f"model_{side}"] == a else -1
        )
    assert metric(text, 'rankwatch_log_position{partition="0"}') == metric(text, 'rankwatch_log_end{partition="0"}')
    assert "item_id" not in text
    assert "item 1" not in text


def test_the_probes_answer(daemon):
    _, url, *_ = daemon
    assert get(f"{url}/healthz") == (200, "ok\n")
    assert get(f"{url}/readyz") == (200, "ok\n")


def test_a_foreign_host_name_is_refused(daemon):
    _, url, *_ = daemon
    for path in ("/api/v1/benchmarks", "/metrics"):
        assert get(url + path, Host="attacker.example")[0] == 400
        assert get(url + path, Host="localhost")[0] == 200


def test_nothing_listens_beyond_loopback(daemon):
    watch, url, *_ = daemon
    ports = {}
    for pid in (watch.process.pid, watch.server):
        inodes = {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir()}
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                _, local, _, state, *rest = line.split()
                if state == "0A" and f"socket:[{rest[5]}]" in inodes:
                    ports[local] = pid
    (address,) = ports
    assert address == f"0100007F:{int(url.rpartition(':')[2]):04X}"


def test_a_second_watch_of_the_directory_is_refused(daemon):
    _, url, base, _ = daemon
    ended = rankwatch("watch", base / "results", "--data-dir", base / "data", "--port", 0, code=1)
    assert "another rankwatch" in ended.stderr
    assert "--data-dir" in ended.stderr
    assert get(f"{url}/readyz")[0] == 200


def test_a_port_in_use_is_named(daemon, tmp_path):
    _, url, base, _ = daemon
    port = url.rpartition(":")[2]
    ended = rankwatch("watch", base / "results", "--data-dir", tmp_path / "data", "--port", port, code=1)
    assert f"cannot serve on 127.0.0.1:{port} (Address already in use)" in ended.stderr
    assert "--port" in ended.stderr


def test_line_ends_of_other_systems_do_not_end_it(tmp_path):
    records = events(random.Random(5), SKILLS, 20)
    folder = tmp_path / "results"
    folder.mkdir()
    path = folder / "a.jsonl"
    path.write_bytes(b"".join(json.dumps(record).encode() + b"\r\n" for record in records[:30]))
    write(folder / "b.jsonl", [{**record, "benchmark": "other"} for record in records])
    with Watch(tmp_path / "data", folder, RANKWATCH_POLL_SECONDS="0.05") as watch:
        until(lambda: event_count(watch.url) == 90, "both files")
        with path.open("ab") as file:
            file.write(b"".join(json.dumps(record).encode() + b"\r\n" for record in records[30:]))
        until(lambda: event_count(watch.url) == 120, "the lines that came later")
        assert watch.stop() == 0


def test_a_signal_ends_it_in_order_and_the_state_is_kept(tmp_path):
    records = events(random.Random(22), SKILLS, 60)
    path, data = write(tmp_path / "a.jsonl", records[:90]), tmp_path / "data"
    with Watch(data, path, "--items", 60, "--goal", "best", "--price", "0.1") as watch:
        until(lambda: event_count(watch.url) == 90, "the first events")
        server = watch.server
        assert watch.stop(signal.SIGTERM) == 0
        assert watch.errors == []
        last = " ".join("".join(watch.lines).split())
        assert "Run so far: 90 of 180 scores, 50.0 % saved. Cost: 9.00, 9.00 saved." in last
        assert not Path(f"/proc/{server}").exists()
    write(path, records[90:], mode="a")
    with Watch(data, path) as watch:
        until(lambda: event_count(watch.url) == 180, "all events")
        assert watch.stop(signal.SIGINT) == 0
    expected = by_oracle(records, policy="completion", items=60)
    assert expected
    assert feed_latches(data) == expected


def test_beyond_loopback_every_request_needs_the_token(tmp_path):
    path, data = write(tmp_path / "a.jsonl", events(random.Random(23), SKILLS, 5)), tmp_path / "data"
    refused = rankwatch("watch", path, "--data-dir", data, "--host", "0.0.0.0", "--port", 0, code=2)
    assert "RANKWATCH_TOKEN" in refused.stderr
    assert not data.exists()
    with Watch(data, path, "--host", "0.0.0.0", RANKWATCH_TOKEN="s3cret") as watch:
        url = watch.url.replace("0.0.0.0", "127.0.0.1")
        until(lambda: get(f"{url}/readyz")[0] == 200, "it to be ready")
        for route in ("/metrics", "/api/v1/benchmarks", "/api/v1/openapi.json", "/nowhere"):
            status, text = get(url + route)
            assert status == 401
            assert "Authorization: Bearer" in json.loads(text)["detail"]
            assert get(url + route, Authorization="Bearer wrong")[0] == 401
        assert get(f"{url}/metrics", Authorization="Bearer s3cret")[0] == 200
        assert get(f"{url}/healthz")[0] == 200
        assert not any("s3cret" in line for line in [*watch.lines, *watch.errors])
        assert watch.stop() == 0


def test_too_many_bad_lines_end_it(tmp_path):
    path = write(tmp_path / "a.jsonl", events(random.Random(24), SKILLS, 5))
    with Watch(tmp_path / "data", path) as watch:
        until(lambda: event_count(watch.url) == 15, "the first events")
        write(path, ["{"] * 40, mode="a")
        assert watch.ended() == 1
        assert "stopped at 40 rejected of 55 lines" in "".join(watch.errors)
        assert len((tmp_path / "data/dead-letters.jsonl").read_text().splitlines()) == 40


def test_a_reader_that_goes_away_does_not_harm_the_state(tmp_path):
    """As in `rankwatch watch ... | head -1`."""
    records = events(random.Random(25), SKILLS, 60)
    path, data = write(tmp_path / "a.jsonl", records), tmp_path / "data"
    arguments = ["watch", path, "--data-dir", data, "--port", "0", "--order", "trusted"]
    ours, theirs = socket.socketpair()
    with (
        ours,
        forked.start(
            [RANKWATCH, *map(str, arguments)], stdout=theirs, stderr=subprocess.PIPE, env=environment(), text=True
        ) as process,
    ):
        theirs.close()
        ours.recv(4)
        ours.close()
        assert process.communicate(timeout=PATIENCE)[1] == ""
        assert process.returncode == 1
    (benchmark,) = json.loads(watch_once(data, path, "--order", "trusted"))["benchmarks"]
    assert pairs_of(benchmark) == Counted(records).pairs()
    assert feed_latches(data) == by_oracle(records, policy="trusted")

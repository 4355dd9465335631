"""No room on the disk, and no descriptors left, done to a running `watch` by the limits of its process.

It says so, loses nothing that it had acknowledged, and goes on when there is room again, or ends and is started again; then what it
holds is the offline fold of what was sent. Every fault is printed.
"""

import json
import os
import random
import resource
import subprocess
import time
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path

import pytest

from monitor.publish.feed_file import FeedFile
from tests.commands import (
    PATIENCE,
    RANKWATCH,
    Counted,
    Watch,
    by_oracle,
    changes,
    environment,
    events,
    feed_latches,
    get,
    letters,
    pairs_of,
    until,
    watch_once,
    write,
)
from tests.fold_log import FoldLog, packed, paired
from tests.redis_server import RedisServer

pytestmark = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="the limits of another process are Linux's")

SKILLS = {"alpha": 0.95, "bravo": 0.8, "charlie": 0.5, "delta": 0.2}
ITEMS = 60
FULL = os.environ.get("RANKWATCH_SLOW") == "1"


def limit(pid, kind, value):
    """Set the soft limit of a process; None: as high as it may be."""
    _, hard = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (hard if value is None else value, hard))


def post(url, records):
    """Status and body of posting events."""
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    request = urllib.request.Request(f"{url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def events_in(url):
    return sum(b["events"] for b in json.loads(get(f"{url}/api/v1/benchmarks")[1])["benchmarks"])


def size(path):
    return path.stat().st_size if path.exists() else 0


def message(watch):
    """Its messages on standard error: a sentence, and no traceback."""
    text = "".join(watch.errors)
    assert "Traceback" not in text, text
    return text


def right(text, records, items=ITEMS):
    """The report, and nothing else, of these events."""
    (benchmark,) = json.loads(text)["benchmarks"]
    assert pairs_of(benchmark) == Counted(records).pairs()
    assert benchmark["events"] - benchmark["duplicates"] == len(records)
    assert benchmark["conflicts"] == 0


@pytest.mark.fault(
    "log", "no space for the log while events are posted", "503, nothing is kept; accepted once there is space"
)
def test_a_full_disk_refuses_what_is_posted_and_takes_it_when_there_is_room(tmp_path):
    """The log of a `watch` whose Redis has room; what was refused is not there, not even after a restart."""
    records, data = events(random.Random(91), SKILLS, ITEMS), tmp_path / "data"
    with RedisServer(tmp_path) as server:
        env = {"RANKWATCH_REDIS_URL": server.url}
        with Watch(data, "--items", ITEMS, **env) as watch:
            assert post(watch.url, records[:40])[0] == 200
            end = size(data / "log.jsonl")
            limit(watch.process.pid, resource.RLIMIT_FSIZE, end + 100)
            status, text = post(watch.url, records[40:80])
            print(f"no room in the log: {status} {text}")
            assert status == 503
            assert "The log cannot be written" in text
            assert size(data / "log.jsonl") == end
            assert get(f"{watch.url}/healthz")[0] == 200
            assert events_in(watch.url) == 40
            limit(watch.process.pid, resource.RLIMIT_FSIZE, None)
            assert post(watch.url, records[40:80])[0] == 200
            limit(watch.process.pid, resource.RLIMIT_FSIZE, size(data / "log.jsonl") + 1)
            assert post(watch.url, records[80:])[0] == 503
            assert watch.stop(9) == -9
        with Watch(data, **env) as watch:
            assert events_in(watch.url) == 80
            assert post(watch.url, records[80:])[0] == 200
            until(lambda: events_in(watch.url) == len(records), "all events")
            assert watch.stop() == 0
            message(watch)
    assert feed_latches(data) == by_oracle(records, policy="completion", items=ITEMS) != {}


@pytest.mark.fault(
    "log", "no space for log, feed, dead letters or the server's file", "exit 1 with the file; right after a restart"
)
@pytest.mark.parametrize("full", ["feed", "server", *(["log", "dead letters"] if FULL else [])])
def test_a_full_disk_ends_the_following_of_files_with_the_reason(tmp_path, full):
    """Whichever file has no room: exit 1 and a sentence; with room again a restart comes to what a run without the fault comes to."""
    records, data, path = events(random.Random(92), SKILLS, ITEMS), tmp_path / "data", tmp_path / "a.jsonl"
    flags = ("--items", ITEMS, "--max-rejected", "1")
    # Letters are written in ASCII, so a line of other letters is longer there than in the log.
    bad = ["模" * 2_000] * 12 if full == "dead letters" else []
    write(path, records[:40])
    with RedisServer(tmp_path) as server:
        env = {} if full == "server" else {"RANKWATCH_REDIS_URL": server.url}
        with Watch(data, path, *flags, RANKWATCH_POLL_SECONDS="0.05", **env) as watch:
            until(lambda: events_in(watch.url) == 40, "the first events")
            if full == "feed":
                # It is never longer than the log: a disk of its own, which is full.
                (data / "verdicts.jsonl").symlink_to("/dev/full")
            elif full == "server":
                (aof,) = (data / "valkey/appendonlydir").glob("*.incr.aof")
                limit(watch.server, resource.RLIMIT_FSIZE, size(aof) + 10)
            else:
                room = 110_000 if full == "dead letters" else 50
                limit(watch.process.pid, resource.RLIMIT_FSIZE, size(data / "log.jsonl") + room)
            write(path, [*bad, *records[40:]], mode="a")
            code = watch.ended()
            print(f"no room for the {full}: exit {code}: {message(watch).strip()}")
            assert code == 1
            assert message(watch).count("\n") == 1
            assert WORDS[full] in message(watch)
        if full == "feed":
            (data / "verdicts.jsonl").unlink()
        text = watch_once(data, path, "--pairs", "all", *flags, **env)
    right(text, records)
    assert feed_latches(data) == by_oracle(records, policy="completion", items=ITEMS) != {}
    assert len(letters(data)) == len(bad)


WORDS = {
    "log": "File too large; nothing of this append was kept",
    "dead letters": "dead-letters.jsonl",
    "feed": "verdicts.jsonl",
    "server": "the embedded Valkey has ended",
}


def descriptors(pid):
    return {int(fd.name) for fd in Path(f"/proc/{pid}/fd").iterdir()}


@pytest.mark.fault("log", "no descriptors left while `watch` runs", "exit 1 with the reason; right after a restart")
def test_running_out_of_descriptors_ends_it_with_the_reason(tmp_path):
    """A folder that cannot be listed or a file that cannot be opened is not passed over: exit 1, and a restart reads it."""
    records, data, folder = events(random.Random(93), SKILLS, ITEMS), tmp_path / "data", tmp_path / "results"
    folder.mkdir()
    write(folder / "a.jsonl", records[:40])
    with Watch(data, folder, "--items", ITEMS, RANKWATCH_POLL_SECONDS="0.05") as watch:
        until(lambda: events_in(watch.url) == 40, "the first events")
        # The descriptors that stay: the connection of the last question may still close and give its own back.
        stays = descriptors(watch.process.pid)
        for _ in range(50):
            stays &= descriptors(watch.process.pid)
            time.sleep(0.02)
        limit(watch.process.pid, resource.RLIMIT_NOFILE, next(fd for fd in count() if fd not in stays))
        # Each file stays open, so the limit is met even if a few descriptors come back.
        rest = records[40:]
        size = -(-len(rest) // 8)
        for k in range(8):
            write(folder / f"b{k}.jsonl", rest[k * size : (k + 1) * size])
        code = watch.ended()
        print(f"no descriptors: exit {code}: {message(watch).strip()}")
        assert code == 1
        assert "Too many open files" in message(watch)
    right(watch_once(data, folder, "--pairs", "all", "--items", ITEMS), records)
    assert feed_latches(data) == by_oracle(records, policy="completion", items=ITEMS) != {}


@pytest.mark.fault("log", "disk full within a line of the feed", "half a line is removed")
async def test_half_a_change_is_taken_back_before_it_is_published_again(tmp_path):
    """The feed of a process that goes on, or drains its outbox at its end, after the disk was full in the middle of a line."""
    log = FoldLog({"declare": "bench", "order": "trusted"}, packed(paired(40, 2), ["a", "b"]))
    found = sorted(log.bench.changes.values(), key=lambda c: tuple(map(int, c.id.split("-"))))
    feed = FeedFile(tmp_path / "verdicts.jsonl")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(OSError, match="nothing is lost"):
            await feed.publish(found)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert size(tmp_path / "verdicts.jsonl") == 0
    for _ in range(2):
        await feed.publish(found)
        assert [c["id"] for c in changes(tmp_path)] == [c.id for c in found] != []


@pytest.mark.fault("log", "too few descriptors at the start", "exit 1 with the reason")
@pytest.mark.parametrize(
    ("descriptors", "reason"), [(24, "ulimit -n"), *([(12, "Too many open files")] if FULL else [])]
)
def test_too_few_descriptors_at_the_start_are_reported(tmp_path, descriptors, reason):
    path = write(tmp_path / "a.jsonl", events(random.Random(94), SKILLS, 5))
    ended = subprocess.run(
        [RANKWATCH, "watch", str(path), "--once", "--data-dir", str(tmp_path / "data")],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
    )
    print(f"{descriptors} descriptors: exit {ended.returncode}: {ended.stderr.strip()[-300:]}")
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert ended.stderr.startswith("rankwatch: ")
    assert reason in ended.stderr

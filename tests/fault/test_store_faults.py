"""Everything that can be wrong with the server of the state, done to a running `watch`: it goes on, or it ends and is started again.

After each fault the reports, the latches and the feed are those of an offline fold of what was sent. Every fault is printed.
"""

import contextlib
import json
import os
import random
import time
import urllib.request
from contextlib import ExitStack

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.commands import PATIENCE, Counted, Watch, by_oracle, events, feed_latches, get, pairs_of, rankwatch, until
from tests.proxy import Proxy
from tests.redis_server import RedisServer

SKILLS = {"alpha": 0.95, "bravo": 0.8, "charlie": 0.5, "delta": 0.2}
STEP, STEPS = 12, 20
FULL = os.environ.get("RANKWATCH_SLOW") == "1"
"""Whether what the contract tests of the store see too is done to a whole `watch`."""
DELTA = b"EVALSHA"


def post(url, records):
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    request = urllib.request.Request(f"{url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        assert json.loads(answer.read())["accepted"] == len(records)


def report(url):
    benchmarks = json.loads(get(f"{url}/api/v1/benchmarks?pairs=all")[1])["benchmarks"]
    return benchmarks[0] if benchmarks else {"events": 0}


class Sent:
    """A `watch` over a server, and what was sent to it so far."""

    def __init__(self, data, server, port):
        self.data, self.server = data, server
        self.url = f"redis://127.0.0.1:{port}"
        self.records = events(random.Random(51), SKILLS, STEP * STEPS)
        self.count = 0
        self.watch = None

    def start(self):
        # No snapshot at all, or one at any moment: the state must not depend on it.
        self.watch = Watch(
            self.data,
            "--items",
            STEP * STEPS,
            RANKWATCH_REDIS_URL=self.url,
            RANKWATCH_SNAPSHOT_SECONDS="0.05",
            RANKWATCH_START_SECONDS="8",
        )
        return self.watch.url

    def stop(self):
        self.watch.__exit__()

    def more(self):
        """Send the next step; it is durable when this returns."""
        end = self.count + STEP * len(SKILLS)
        assert end <= len(self.records), "there are no more events"
        post(self.watch.url, self.records[self.count : end])
        self.count = end

    def stored(self):
        """Whether the stored state is the fold of the whole log; None while the server cannot say."""
        with contextlib.suppress(redis.RedisError):
            off = self.command("HGET", "{rankwatch.events:0}:meta", "off")
            return int(off or 0) == (self.data / "log.jsonl").stat().st_size
        return None

    def right(self, fault):
        """Wait until all of it is folded and stored, and compare."""
        begin = time.monotonic()
        until(lambda: self.watch.process.poll() is not None or self.stored(), fault)
        assert self.watch.process.poll() is None, f"{fault}: {self.watch.errors}"
        # An answer may be of an earlier state, for some time on a busy machine.
        until(lambda: report(self.watch.url)["events"] >= self.count, f"{fault}: an answer of the state that is stored")
        benchmarks = report(self.watch.url)
        counted = Counted(self.records[: self.count])
        assert (benchmarks["events"], benchmarks["duplicates"], benchmarks["conflicts"]) == (self.count, 0, 0), fault
        assert pairs_of(benchmarks) == counted.pairs(), fault
        print(f"{fault}: right again after {time.monotonic() - begin:.1f} s, {self.count} events")

    def command(self, *words):
        with redis.Redis(port=self.server.port) as client:
            return client.execute_command(*words)


def flush(sent):
    sent.command("FLUSHALL")
    begin = time.monotonic()
    until(sent.stored, "the loss to be noticed without another record")
    assert time.monotonic() - begin < 10


def forget_scripts(sent):
    sent.command("SCRIPT", "FLUSH")


def read_only(sent):
    sent.command("REPLICAOF", "127.0.0.1", "1")
    sent.more()
    time.sleep(0.5)
    assert not sent.stored()
    sent.command("REPLICAOF", "NO", "ONE")


def stalled(sent):
    sent.server.freeze()
    sent.more()
    time.sleep(5)
    sent.server.thaw()


def killed(sent):
    sent.server.kill()
    sent.more()
    time.sleep(0.5)
    sent.server.start()


def killed_and_cut(sent):
    sent.server.lose(3_000)
    until(sent.stored, "the loss to be noticed without another record")


def loading(sent):
    """A server that answers that it is still loading: 300 keys of others take it 4 ms each."""
    with redis.Redis(port=sent.server.port) as client:
        client.mset({f"other:{k}": random.Random(k).randbytes(2_000) for k in range(300)})
    sent.command("BGREWRITEAOF")
    until(lambda: sent.command("INFO", "persistence")["aof_rewrite_in_progress"] == 0, "the file to be rewritten")
    sent.server.kill()
    sent.server.start(wait=False, key_load_delay=4_000, loading_process_events_interval_bytes=1024)
    with redis.Redis(port=sent.server.port, retry=Retry(NoBackoff(), 0)) as client:
        assert "loading" in until(lambda: _answer(client), "an answer").lower()
    sent.more()
    sent.server.answers()


def _answer(client):
    try:
        client.execute_command("GET", "x")
    except redis.BusyLoadingError as error:
        return str(error)
    except redis.ConnectionError:
        return None
    return "it was faster"


FAULTS = {
    "FLUSHALL": flush,
    "SCRIPT FLUSH": forget_scripts,
    "READONLY": read_only,
    "stalled 5 s": stalled,
    "killed and started again": killed,
    "killed with the end of its file cut off": killed_and_cut,
    "LOADING": loading,
}


@pytest.mark.fault(
    "store",
    "`FLUSHALL`, `SCRIPT FLUSH`, read-only, stalled, killed, file cut, loading, replies and connections cut",
    "right again, without a restart",
)
def test_a_watch_survives_what_its_server_goes_through(tmp_path):
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(tmp_path))
        proxy = stack.enter_context(Proxy(server.port))
        sent = Sent(tmp_path / "data", server, proxy.port)
        sent.start()
        stack.callback(sent.stop)
        sent.more()
        sent.right("nothing yet")
        for name, fault in FAULTS.items():
            fault(sent)
            sent.more()
            sent.right(name)
        for number in range(3):
            proxy.cut_replies = DELTA
            sent.more()
            sent.right(f"connection cut after the script, {number + 1}")
            assert proxy.cuts == number + 1
        while sent.count < len(sent.records):
            sent.more()
            proxy.cut()
        sent.right("connections cut")
        assert sent.watch.stop() == 0
        sent.start()
        sent.right("started again")
        assert sent.watch.stop() == 0
        assert feed_latches(sent.data) == by_oracle(sent.records, policy="completion", items=STEP * STEPS)
        assert "Traceback" not in "".join(sent.watch.errors)


@pytest.mark.fault("store", "server full (`maxmemory`)", "exit 1 with what to do; right after a restart")
def test_a_full_server_ends_it_and_nothing_is_lost(tmp_path):
    with ExitStack() as stack:
        server = stack.enter_context(RedisServer(tmp_path))
        sent = Sent(tmp_path / "data", server, server.port)
        sent.start()
        stack.callback(sent.stop)
        sent.more()
        sent.right("nothing yet")
        sent.command("CONFIG", "SET", "maxmemory", "1")
        sent.more()
        assert sent.watch.ended() == 1
        message = "".join(sent.watch.errors)
        assert "is full, and nothing was written; give it more memory" in message
        assert "Traceback" not in message
        sent.command("CONFIG", "SET", "maxmemory", "0")
        sent.start()
        sent.right("OOM")
        assert sent.watch.stop() == 0


@pytest.mark.fault(
    "store",
    "wrong password, eviction, foreign key, other version, other log",
    "refused in one line; nothing is written except the name of the log",
)
@pytest.mark.parametrize(
    ("prepare", "login", "reason"),
    [
        (("CONFIG", "SET", "requirepass", "right"), ":wr0ng-s3cret@", "refuses the login"),
        (("SET", "{rankwatch.events:0}:meta", "mine"), "", "WRONGTYPE"),
    ]
    + FULL
    * [
        (("CONFIG", "SET", "requirepass", "right"), "", "refuses the login"),
        (("CONFIG", "SET", "maxmemory-policy", "allkeys-lru"), "", "maxmemory-policy allkeys-lru"),
        (("HSET", "{rankwatch.events:0}:meta", "off", "7", "state_version", "99"), "", "has state_version 99"),
        (("HSET", "{rankwatch.events:0}:meta", "log", "another"), "", "belongs to another log (another)"),
    ],
)
def test_a_server_that_cannot_be_trusted_is_refused_at_the_start(tmp_path, prepare, login, reason):
    with RedisServer(tmp_path) as server:
        with redis.Redis(port=server.port) as client:
            client.execute_command(*prepare)
        before = None if "requirepass" in prepare else server.contents()
        url = f"redis://{login}127.0.0.1:{server.port}"
        refused = rankwatch("watch", "--port", 0, "--data-dir", tmp_path / "data", code=1, RANKWATCH_REDIS_URL=url)
        assert reason in refused.stderr
        assert refused.stderr.startswith("rankwatch: ")
        assert refused.stderr.count("\n") == 1
        assert "s3cret" not in refused.stderr + refused.stdout
        if before is not None and "log" not in prepare:
            contents = server.contents()
            # Binding the log is all that was done.
            meta = contents.get(b"{rankwatch.events:0}:meta")
            if isinstance(meta, dict):
                meta.pop(b"log", None)
            assert contents == before

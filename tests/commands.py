"""Run the command line as a user does, in processes of its own; and count what the same files hold with plain dictionaries."""

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from itertools import combinations
from pathlib import Path

from tests import forked
from tests.forked import RANKWATCH
from tests.oracle import Oracle

PATIENCE = 120
"""Seconds after which a condition that is waited for counts as never coming true."""


def environment(**more):
    """The environment of a command: as here, without settings of ours, on a wide terminal without colour."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RANKWATCH_")}
    return kept | {"COLUMNS": "200", "NO_COLOR": "1"} | more


def rankwatch(*arguments, code=0, **env):
    """Run a command to its end; it has to exit with `code`."""
    ended = forked.run([RANKWATCH, *map(str, arguments)], env=environment(**env), timeout=2 * PATIENCE)
    assert ended.returncode == code, f"exit {ended.returncode}, not {code}\n{ended.stdout}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended


def report(*arguments, **options):
    """The parsed JSON of `report --format json`, and the text on standard error."""
    ended = rankwatch("report", *arguments, "--format", "json", **options)
    return json.loads(ended.stdout), ended.stderr


def watch_once(data_dir, *arguments, **options):
    """The output of `watch --once --format json`."""
    return rankwatch("watch", *arguments, "--once", "--format", "json", "--data-dir", data_dir, **options).stdout


def until(condition, what, patience=PATIENCE):
    """Wait until a condition holds, and return what it gives.

    It is asked less often the longer it takes: many conditions are requests that cost the process that is waited for as much as the test.
    """
    end, pause = time.monotonic() + patience, 0.01
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {patience} s in vain for {what}"
        time.sleep(pause)
        pause = min(1.05 * pause, 0.05)
    return value


class Watch:
    """A `watch` that runs until it is stopped; its output is collected as it comes."""

    def __init__(self, data_dir, *arguments, command=(RANKWATCH,), fresh=False, **env):
        command = [*command, "watch", "--port", "0", *map(str, arguments), "--data-dir", str(data_dir)]
        self.lines = []
        self.process = forked.start(
            command, fresh=fresh, env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.errors = []
        self._readers = [
            threading.Thread(target=lambda pipe, to: to.extend(pipe), args=pair, daemon=True)
            for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.ended()

    def line(self, pattern):
        """Wait for a line that matches."""

        def found():
            assert self.process.poll() is None or any(re.search(pattern, line) for line in self.lines), self.errors
            return next((match for line in list(self.lines) if (match := re.search(pattern, line))), None)

        return until(found, pattern)

    @property
    def url(self):
        """Where it serves."""
        return self.line(r"http://[^\s,]+").group()

    def stop(self, number=signal.SIGTERM):
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        """Wait for the end, and return the exit code."""
        code = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    @property
    def server(self):
        """The process id of its embedded server."""
        return until(lambda: _child(self.process.pid, "valkey-server"), "the embedded server")


def _child(parent, name):
    for children in Path(f"/proc/{parent}/task").glob("*/children"):
        for pid in children.read_text().split():
            with contextlib.suppress(OSError):
                if name in Path(f"/proc/{pid}/comm").read_text():
                    return int(pid)
    return None


def get(url, **headers):
    """Status and text of a GET request."""
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def write(path, records, mode="w"):
    """Write records as JSON lines; one that is text or bytes already is written unchanged."""
    with path.open(f"{mode}b") as file:
        for record in records:
            text = record if isinstance(record, str | bytes) else json.dumps(record)
            file.write((text.encode() if isinstance(text, str) else text) + b"\n")
    return path


def events(rng, models, items, *, benchmark="bench", start=0, **more):
    """Events of models, by item: each model is right with its own probability."""
    return [
        {"benchmark": benchmark, "item_id": f"item {item}", "model": model, "score": int(rng.random() < skill), **more}
        for item in range(start, start + items)
        for model, skill in models.items()
    ]


class Counted:
    """What events come to: first score wins, one dictionary look-up after the other. A score fills a skip unless the order is committed."""

    def __init__(self, records, *, fills=True):
        self.events = self.duplicates = self.conflicts = 0
        self.conflicts_by_model = defaultdict(int)
        first = {}
        for e in records:
            self.events += 1
            key = (e["item_id"], e.get("repeat", 0), e["model"], e.get("epoch", 0))
            score = None if e["score"] is None else float(e["score"])
            if key not in first or (fills and first[key] is None and score is not None):
                first[key] = score
            elif first[key] == score:
                self.duplicates += 1
            else:
                self.conflicts += 1
                self.conflicts_by_model[e["model"]] += 1
        latest = defaultdict(int)
        for _, _, model, epoch in first:
            latest[model] = max(latest[model], epoch)
        self.items = len({item for item, repeat, *_ in first if repeat == 0})
        self.scores = {model: {} for model in latest}
        for (item, repeat, model, epoch), score in first.items():
            if repeat == 0 and epoch == latest[model] and score is not None:
                self.scores[model][item] = score

    def pairs(self):
        """(n, b, c) of every two models, by the frozen set of their names; b counts for the first in name order."""
        pairs = {}
        for a, b in combinations(sorted(self.scores), 2):
            x, y = self.scores[a], self.scores[b]
            both = [(x[item], y[item]) for item in x.keys() & y.keys()]
            pairs[a, b] = (len(both), both.count((1.0, 0.0)), both.count((0.0, 1.0)))
        return pairs


def pairs_of(benchmark):
    """(n, b, c) of every listed pair of a report, in name order like `Counted.pairs`."""
    pairs = {}
    for pair in benchmark["pairs"]:
        a, b = pair["model_a"], pair["model_b"]
        counts = (pair["n"], pair["b"], pair["c"])
        pairs[min(a, b), max(a, b)] = counts if a < b else (counts[0], counts[2], counts[1])
    return pairs


def changes(data_dir):
    """The feed of verdict changes of a data directory."""
    path = data_dir / "verdicts.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def letters(data_dir):
    """The dead letters of a data directory."""
    return [json.loads(line) for line in (data_dir / "dead-letters.jsonl").read_text().splitlines()]


def in_order(changes):
    """Return changes whose ids increase along the feed: each is there once."""
    ids = [tuple(map(int, change["id"].split("-"))) for change in changes]
    assert ids == sorted(set(ids))
    return changes


def by_oracle(records, **declared):
    """Latches of an event-by-event fold in plain Python: pair in name order, procedure, kind -> better model, n, b, c.

    Under completion the board is one that a command declares.
    """
    oracle = Oracle(**{"known": declared.get("policy") == "completion", **declared})
    for place, event in enumerate(records):
        oracle.event(event, place)
    latches = {}
    for (((a, _), (b, _)), procedure, kind), (_, side, n, wins, losses) in oracle.verdicts.items():
        counts = (n, wins, losses) if a < b else (n, losses, wins)
        latches[min(a, b), max(a, b), procedure, kind] = (a if side > 0 else b, *counts)
    return latches


def as_latches(changes):
    """Verdict changes in the form of `by_oracle`."""
    return {
        (c["model_a"], c["model_b"], c["procedure"], c["kind"]): (
            c["model_a"] if (c["after"] or c["before"]) == "a" else c["model_b"],
            *(c["evidence"][name] for name in ("n", "b", "c")),
        )
        for c in changes
    }


def feed_latches(data_dir):
    """Return the latches in the feed of a data directory, in the form of `by_oracle`; each change is there once, in order."""
    return as_latches(in_order(changes(data_dir)))

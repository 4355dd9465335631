"""Run a `watch` for a while under a steady load, and look at what it holds: ``python -m tests.soak [--minutes N]``.

Events of more and more items are posted, every tenth one twice; one client scrapes, one asks for the report, one follows the stream of
changes. What may grow is what the events come to: the log by its bytes, the state by its scores. Memory beyond that, descriptors, and keys
of the server may not. At the end the counts have to be those of plain dictionaries, also after a kill and a restart.
"""

import argparse
import json
import random
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import redis

from tests.commands import PATIENCE, Counted, Watch, events, get, pairs_of, until

MODELS = {f"model {k}": 0.3 + 0.05 * k for k in range(10)}
STEP = 20
LOOKS_A_RUN, LOOK_SECONDS = 6, 15
"""At least so many looks, and one that often."""
ALLOWED_GROWTH = 40 << 20
"""Bytes of memory that may come on top of what was held at the first look, besides the state itself."""


def post(url, records):
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    request = urllib.request.Request(f"{url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        answer.read()


def report(url):
    (benchmark,) = json.loads(get(f"{url}/api/v1/benchmarks?pairs=all")[1])["benchmarks"]
    return benchmark


def resident(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


def keys(data):
    settings = dict(line.split(" ", 1) for line in (data / "valkey/valkey.conf").read_text().splitlines())
    options = {"unix_socket_path": str(data / "valkey/valkey.sock")}
    if settings["port"].strip('"') != "0":
        options = {"port": int(settings["port"].strip('"'))}
    with redis.Redis(password=settings["requirepass"].strip('"'), **options) as client:
        return client.dbsize()


class Look:
    """What a `watch` holds at a moment."""

    def __init__(self, watch, data, sent):
        self.sent = sent
        self.memory, self.server = resident(watch.process.pid), resident(watch.server)
        self.descriptors = len(list(Path(f"/proc/{watch.process.pid}/fd").iterdir()))
        self.keys = keys(data)
        self.log = (data / "log.jsonl").stat().st_size
        self.disk = sum(f.stat().st_size for f in data.rglob("*") if f.is_file())

    def __str__(self):
        return (
            f"{self.sent:>9,} events  {self.memory >> 20:>4} MB  server {self.server >> 20:>4} MB  {self.descriptors:>3} descriptors  "
            f"{self.keys:>3} keys  log {self.log / 1e6:>6.1f} MB  disk {self.disk / 1e6:>6.1f} MB"
        )


def follow(url, ending):
    """Read the stream of changes until the end."""
    with urllib.request.urlopen(f"{url}/api/v1/changes/stream?benchmark=bench", timeout=PATIENCE) as stream:
        while not ending.is_set():
            stream.readline()


def ask(url, ending):
    """Scrape, and look at the report, until the end."""
    while not ending.wait(0.5):
        assert get(f"{url}/metrics")[0] == 200
        assert report(url)["events"]


def soak(data, minutes):
    """Load one for so many minutes; return what was looked at, and what was sent."""
    rng, sent, looks, ending = random.Random(1), [], [], threading.Event()
    every = min(LOOK_SECONDS, 60 * minutes / LOOKS_A_RUN)
    with Watch(data, "--order", "trusted", fresh=True) as watch:
        url = watch.url
        post(url, sent := events(rng, MODELS, STEP))
        helpers = [threading.Thread(target=work, args=(url, ending), daemon=True) for work in (follow, ask)]
        for helper in helpers:
            helper.start()
        begin = looked = time.monotonic()
        while (now := time.monotonic()) - begin < 60 * minutes:
            some = events(rng, MODELS, STEP, start=len(sent) // len(MODELS))
            again = some if rng.random() < 0.1 else []
            post(url, [*some, *again])
            sent += some
            if not looks or now - looked > every:
                looked = now
                looks.append(Look(watch, data, len(sent)))
                print(looks[-1], flush=True)
            time.sleep(0.02)
        ending.set()
        until(lambda: report(url)["items"] == len(sent) // len(MODELS), "all items")
        assert pairs_of(report(url)) == Counted(sent).pairs()
        looks.append(Look(watch, data, len(sent)))
        assert watch.stop(9) == -9
    with Watch(data) as watch:
        until(lambda: get(f"{watch.url}/readyz")[0] == 200, "it to be ready")
        assert pairs_of(report(watch.url)) == Counted(sent).pairs()
        assert watch.stop() == 0
    print(looks[-1])
    return looks


def judge(looks):
    """Say what grew more than it may."""
    first, last = looks[min(2, len(looks) - 1)], looks[-1]
    scores = last.sent - first.sent
    # Items, scores, pairs and the strings of their names: 100 bytes an event is generous.
    for what, before, after in (
        ("memory", first.memory, last.memory),
        ("the server's memory", first.server, last.server),
    ):
        if after - before > ALLOWED_GROWTH + 100 * scores:
            yield f"{what} grew from {before >> 20} to {after >> 20} MB"
    if last.descriptors > first.descriptors + 5:
        yield f"descriptors grew from {first.descriptors} to {last.descriptors}"
    if last.keys > first.keys + 5:
        yield f"keys grew from {first.keys} to {last.keys}"
    if last.disk > 4 * last.log + (64 << 20):
        yield f"the directory has {last.disk:,} bytes beside a log of {last.log:,}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as folder:
        faults = list(judge(soak(Path(folder, "data"), minutes)))
    sys.exit("; ".join(faults) if faults else 0)


if __name__ == "__main__":
    main()

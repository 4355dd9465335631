"""Latency: from an event that was accepted to its verdict being visible.

The embedded monitor runs in a process of its own: log with fsync, fold, Valkey with fsync at every write, HTTP. A sender posts ten batches
a second; an event is accepted when the request is answered. A reader asks /metrics again and again; an event
is visible when its benchmark's count of events in the answer, from which the verdicts beside it were made, holds it. So the time of
the scrape itself is part of the latency. 29 models, order policy `trusted`.
"""

import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from itertools import islice

from benchmarks.events import MODELS, made_lines
from benchmarks.folding import declaration
from benchmarks.harness import Options, Table

BATCHES_A_SECOND = 10
COUNT = re.compile(rb'^rankwatch_events_total\{benchmark="made"\} (\S+)', re.MULTILINE)

MONITOR = """
import asyncio, sys
from pathlib import Path
from monitor.app import Monitor
from monitor.settings import Settings
async def main():
    async with Monitor(Settings(data_dir=Path(sys.argv[1]), port=0)) as monitor:
        print(monitor.web.url, flush=True)
        await monitor.failed()
asyncio.run(main())
"""


def measure(options: Options) -> Iterator[Table]:
    """Send at two rates, and look."""
    seconds = options.size(20, 3)
    table = Table(
        f"Accepted to visible in /metrics, {seconds} s at each rate",
        [
            "events/s asked",
            "events/s sent",
            "batches",
            "post ms, p50",
            "scrapes/s",
            "visible ms, p50",
            "p99",
            "largest",
        ],
    )
    for rate in (1_000, 20_000):
        table.rows.append(at_rate(rate, seconds))
    yield table


def at_rate(rate: int, seconds: int) -> tuple[float, ...]:
    """Run a monitor, a sender and a reader; return a row of the table."""
    with tempfile.TemporaryDirectory(prefix="rankwatch-bench-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-c", MONITOR, folder], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            assert process.stdout is not None
            while not (url := process.stdout.readline().strip()).startswith("http"):
                assert process.poll() is None, "the monitor has ended"
            return send_and_look(url, rate, seconds)
        finally:
            process.terminate()
            process.wait()


def send_and_look(url: str, rate: int, seconds: int) -> tuple[float, ...]:
    """Return a row of the table."""
    size = rate // BATCHES_A_SECOND
    lines = made_lines(MODELS, rate * seconds // MODELS + 1, by_item=True)
    batches = [b"\n".join(islice(lines, size)) for _ in range(seconds * BATCHES_A_SECOND)]
    post(url, declaration("made", order="trusted"))
    post(url, b"\n".join(made_lines(MODELS, 1)))
    seen: list[tuple[float, int]] = []
    done = threading.Event()
    reader = threading.Thread(target=look, args=(url, seen, done))
    reader.start()
    accepted, posts = [], []
    begin = time.perf_counter()
    for number, batch in enumerate(batches):
        time.sleep(max(0.0, begin + number / BATCHES_A_SECOND - time.perf_counter()))
        asked = time.perf_counter()
        post(url, batch)
        accepted.append(time.perf_counter())
        posts.append(accepted[-1] - asked)
    sent = size * len(batches) / (time.perf_counter() - begin)
    total = MODELS + size * len(batches)
    while not seen or seen[-1][1] < total:
        time.sleep(0.05)
        assert time.perf_counter() - accepted[-1] < 60, "what was accepted did not become visible within 60 s"
    done.set()
    reader.join()
    waits = sorted(visible(seen, MODELS + size * (k + 1)) - at for k, at in enumerate(accepted))
    scrapes = len(seen) / (seen[-1][0] - seen[0][0])
    return (
        rate,
        round(sent),
        len(batches),
        *(round(value, 1) for value in (1000 * sorted(posts)[len(posts) // 2], scrapes)),
        *(round(1000 * waits[min(len(waits) - 1, int(share * len(waits)))], 1) for share in (0.5, 0.99, 1)),
    )


def visible(seen: list[tuple[float, int]], count: int) -> float:
    """Return when that many events were first seen."""
    return next(at for at, found in seen if found >= count)


def post(url: str, body: bytes) -> None:
    """Post events, and wait until they are accepted."""
    request = urllib.request.Request(f"{url}/api/v1/events", body, {"Content-Type": "application/x-ndjson"})
    with urllib.request.urlopen(request) as answer:
        assert answer.status < 300, answer.read()


def look(url: str, seen: list[tuple[float, int]], done: threading.Event) -> None:
    """Scrape until told to end."""
    while not done.is_set():
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            found = COUNT.search(answer.read())
        seen.append((time.perf_counter(), int(float(found[1])) if found else 0))
        time.sleep(0.005)

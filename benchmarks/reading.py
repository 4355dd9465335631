"""Reading: the calls of the page, from 1,000 boards of 100 models and one of 1,000 models, while nothing and while new events are folded.

One process folds and serves the boards as `rankwatch serve` does, without Kafka and Redis. Each has ten items, so scores are few and pairs
many, and no verdicts. The feeder folds 2,000 events ten times a second, of the boards in turn, or as many as it can. One client in another
process sends one call after the other; the first call of a board computes the answer, later ones find it kept until the board changes. The
board of 1,000 models gets an event in each round of the feeder, so later answers about it are as of an earlier offset.
"""

import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from benchmarks.harness import SEED, Options, Table

SERVER = """
import asyncio, sys, time
from benchmarks.events import made_lines
from benchmarks.folding import declaration
from schemas.records.columns import Chunk
from monitor.engine.chunk_fold import Partition
from monitor.serve.access.rules import AccessRules
from monitor.serve.application import make_application
from monitor.serve.serving import Serving
from monitor.serve.report_cache import ReportCache
from monitor.serve.server import WebServer
from monitor.state_lock import StateLock

boards, models, wide, items = map(int, sys.argv[1:])
partition, state = Partition(), StateLock()

def chunk(lines):
    start = partition.off
    return Chunk(0, start, start + len(lines), list(range(start, start + len(lines))), lines)

def renamed(lines, name):
    return [line.replace(b'"benchmark": "made"', b'"benchmark": "' + name.encode() + b'"', 1) for line in lines]

def fold(lines):
    for k in range(0, len(lines), 2000):
        partition.fold(chunk(lines[k : k + 2000]))

plain = list(made_lines(models, items, by_item=True))
for k in range(boards):
    fold([declaration(f"board {k}", items=items * 1000), *renamed(plain, f"board {k}")])
large = list(made_lines(wide, items, by_item=True))
fold([declaration("wide", items=items * 1000), *renamed(large, "wide")])
late = [line.replace(b'"item_id": "', b'"item_id": "late ') for line in plain]

async def feed(loop_seconds, folded):
    k = 0
    while True:
        began = time.perf_counter()
        lines = []
        while len(lines) < 2000:
            name = f"board {k % boards}"
            part = late[(k // boards * models) % len(late) :][:models]
            lines += renamed(part, name)
            k += 1
        lines[-1] = renamed([late[k % len(late)]], "wide")[0]
        async with state.change():
            partition.fold(chunk(lines))
        folded[0] += len(lines)
        await asyncio.sleep(max(0.001, loop_seconds - (time.perf_counter() - began)))

async def main():
    reports = ReportCache(lambda: [partition], state=state)
    web = make_application(
        Serving(reports, lambda *_: (b"", "text/plain"), lambda: None, access=AccessRules(), loopback=True, low_coverage=0.9)
    )
    server = WebServer(web, "127.0.0.1", 0)
    await server.start()
    print(server.url, flush=True)
    feeder, folded, began = None, [0], 0.0
    while True:
        line = (await asyncio.to_thread(sys.stdin.readline)).strip()
        if line == "feed":
            began, feeder = time.perf_counter(), asyncio.create_task(feed(0.1, folded))
        if line == "rate":
            print(folded[0] / (time.perf_counter() - began), flush=True)
        if not line:
            return

asyncio.run(main())
"""

CALLS = {
    "list of the boards": "summaries",
    "board": "board?benchmark={}",
    "pairs of a model": "pairs?benchmark={}&model=model-0003&limit=1000",
    "items": "items?benchmark={}",
    "time": "moments?benchmark={}",
    "matrix": "matrix?benchmark={}",
    "changes": "changes?benchmark={}&newest=true&limit=200",
}


def measure(options: Options) -> Iterator[Table]:
    """Call every view, of boards at random and of the wide one, without and with new events."""
    boards, models, wide, items = options.size(1_000, 20), 100, options.size(1_000, 120), 10
    calls = options.size(200, 10)
    with server(boards, models, wide, items) as (url, process):
        for fed in (False, True):
            if fed:
                send(process, "feed")
                time.sleep(2)
            made = table(url, boards, wide, calls, fed=fed)
            if fed:
                made.notes.append(f"The feeder folded {float(send(process, 'rate', answer=True)):,.0f} events/s.")
            yield made


def table(url: str, boards: int, wide: int, calls: int, *, fed: bool) -> Table:
    """Measure every call."""
    words = "while events are folded" if fed else "while no event arrives"
    made = Table(f"Page calls {words}, ms", ["call", "of", "calls", "p50", "p99", "largest", "KB, gzip"])
    rng = Random(SEED)
    for call, path in CALLS.items():
        of = {f"{boards:,} boards of 100 models": lambda: f"board%20{rng.randrange(boards)}"}
        if "{}" in path:
            of[f"the board of {wide:,} models"] = lambda: "wide"
        for name, choose in of.items():
            number = calls if name.startswith(f"{boards:,}") else max(10, calls // 4)
            times, size = [], 0
            for _ in range(number):
                begin = time.perf_counter()
                size = fetch(url + "/api/v1/" + path.format(choose()))
                times.append(1_000 * (time.perf_counter() - begin))
            times.sort()
            at = lambda share, times=times: round(times[min(len(times) - 1, int(share * len(times)))], 1)  # noqa: E731
            made.rows.append((call, name, number, at(0.5), at(0.99), at(1), round(size / 1_000, 1)))
    return made


def fetch(url: str) -> int:
    """Get an answer; return its bytes on the wire."""
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={"Accept-Encoding": "gzip"}), timeout=120
    ) as answer:
        return len(answer.read())


@contextmanager
def server(*sizes: int) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """Run the server; gives its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, *map(str, sizes)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        process.terminate()
        process.wait()


def send(process: "subprocess.Popen[str]", word: str, *, answer: bool = False) -> str:
    """Send a word to the server; return its answer."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(word + "\n")
    process.stdin.flush()
    return process.stdout.readline() if answer else ""

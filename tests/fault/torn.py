"""Cut a server's file at every length, and start it twice: ``python -m tests.fault.torn [SERVER...]``.

A server is killed after many commits. For each length its file loses so many bytes; it is started, folded on, killed, started again and
folded to the end. What is loaded has to be the fold of the log up to its offset, or it is refused in one line. Without arguments: the
embedded server, and the one on PATH.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from monitor.engine.chunk_fold import Partition
from monitor.store.errors import StateRefused
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded_config import find_executable
from schemas.records.chunks import Chunk
from tests.kafka.topic_oracle import stored_state
from tests.redis_server import RedisServer

TOPIC = "torn"
BYTES = 2_000


def _log():
    """New items and models up to the end, with skips that are filled later, duplicates, conflicts, graded scores and repeats."""
    rng, made = random.Random(7), []
    for name, spec in {"trusted": {}, "complete": {"items": 40}, "graded": {"scores": "graded"}}.items():
        made.append({"declare": name, "order": "trusted" if "items" not in spec else "completion", **spec})
    for item in range(40):
        for k, model in enumerate(("ada", "bob", "cy", "d'}:{")[: 2 + item // 10]):
            for name in ("trusted", "complete", "graded"):
                score = round(rng.random() ** (k + 1), 3) if name == "graded" else int(rng.random() < 0.95 / (k + 1))
                score = None if rng.random() < 0.1 else score
                event = {
                    "benchmark": name,
                    "item_id": f"i{item}",
                    "model": model,
                    "score": score,
                    "cluster": f"c{item % 3}",
                }
                made.append(event)
                if rng.random() < 0.15:
                    made.append(rng.choice([e for e in made[-30:] if "score" in e]) | {"score": rng.randint(0, 1)})
    return [json.dumps(record).encode() for record in made]


LOG = _log()
HALF = len(LOG) // 2


def chunk(start, stop):
    return Chunk(0, start, stop, range(start, stop), LOG[start:stop])


def state(partition):
    """Everything that a state holds, as plain values."""
    benchmarks = partition.benchmarks.items()
    held = {name: (stored_state(each), each.spec, list(each.item_keys)) for name, each in benchmarks}
    changes = {name: {key: each.as_json() for key, each in held.changes.items()} for name, held in benchmarks}
    return partition.off, partition.counters, held, changes


@cache
def expected(off, look):
    """What the fold of the first records comes to."""
    partition = Partition(0)
    partition.fold(chunk(0, off))
    return look(partition)


async def fold(url, until, limit, look=state):
    """Go on from what is stored, which has to look as the fold of the log does; return how far it was at first."""
    async with await RedisStore.open(url, TOPIC) as store:
        partition = Partition.restore(await store.load(0))
        first = partition.off
        if first:
            assert look(partition) == expected(first, look), f"the state at {first} is not the fold of the log"
        while partition.off < until:
            await store.commit(partition.fold(chunk(partition.off, min(partition.off + limit, until))))
        return first


@dataclass(frozen=True)
class Killed:
    """A server that was killed after many commits: its files by their place, and the place of the one that it appends to."""

    executable: str
    files: dict[str, bytes]
    appended: str

    @classmethod
    def after_commits(cls, executable):
        """Let a server take some commits, and kill it."""
        with tempfile.TemporaryDirectory(prefix="rw-") as folder:
            with RedisServer(Path(folder), executable=executable) as server:
                asyncio.run(fold(server.url, len(LOG) // 3, 25))
                asyncio.run(fold(server.url, HALF, 120))
            every = [path for path in Path(folder).rglob("*") if path.is_file()]
            files = {str(path.relative_to(folder)): path.read_bytes() for path in every}
        (appended,) = (name for name in files if name.endswith(".aof"))
        return cls(executable, files, appended)

    def over(self, folder, content):
        """The server over its files in a folder, with other content of the one that it appends to."""
        for name, same in self.files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content if name == self.appended else same)
        return RedisServer(folder, executable=self.executable)

    @property
    def content(self):
        """The content of the file that it appends to."""
        return self.files[self.appended]

    @property
    def last_transaction(self):
        """How many bytes its last transaction has."""
        return len(self.content) - self.content.rindex(b"MULTI")


def go_on(server, rng, until, look=state):
    """Start a server twice, and fold on each time; return what it came to."""
    with server:
        asyncio.run(fold(server.url, HALF + rng.randint(-30, 60), rng.choice([15, 40, 90]), look))
    line = None
    try:
        with server:
            asyncio.run(fold(server.url, until, 60, look))
    except StateRefused as refused:
        line = str(refused)
    assert line is None or ("is damaged: " in line and "\n" not in line), line
    return "refused" if line else "right"


def trial(killed, length):
    """Cut a length and go on; return the length, what it came to, and why that is wrong."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="rw-", dir=memory) as folder:
        try:
            server = killed.over(Path(folder), killed.content[:-length])
            return length, go_on(server, random.Random(length), HALF + 100), ""
        except Exception as error:  # noqa: BLE001 - any other end is an outcome to report
            return length, "wrong", f"{type(error).__name__}: {error}"[:500]


def sweep(killed, lengths, jobs=2):
    """Try all lengths on a server; return what `trial` returns for each."""
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(partial(trial, killed), lengths, chunksize=25))


def version(executable):
    """Name a server as it names itself."""
    words = subprocess.run([executable, "--version"], capture_output=True, text=True, check=True).stdout
    name, number = words.split()[0], words.partition("v=")[2].split()[0]
    return f"{name} {number}"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fault.torn", description=__doc__)
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="paths of redis-server or valkey-server")
    parser.add_argument("--bytes", type=int, default=BYTES, help=f"longest cut; default: {BYTES}")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes; default: one a processor")
    options = parser.parse_args()
    on_path = shutil.which("redis-server")
    wrong = 0
    for executable in options.servers or dict.fromkeys(filter(None, (find_executable(), on_path))):
        start = time.monotonic()
        killed = Killed.after_commits(executable)
        tried = sweep(killed, range(1, options.bytes + 1), options.jobs)
        outcomes = Counter(outcome for _, outcome, _ in tried)
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(outcomes.items()))
        took = f"{time.monotonic() - start:.0f} s"
        cuts = f"cuts of 1 to {options.bytes:,} bytes (last transaction: {killed.last_transaction:,} bytes)"
        print(f"{version(executable)}: {cuts}, two restarts each: {counts}; {took}", flush=True)
        wrong += outcomes["wrong"]
        for length, outcome, reason in tried:
            if outcome == "wrong":
                print(f"    {length} bytes: {reason}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())

"""A server that cuts or changes what it stored: after two restarts the state is the fold of the log, or it is refused in one line.

Redis 7.0 cuts a torn append-only file inside a transaction; after a second restart what dangles runs together with later transactions.
"""

import asyncio
import contextlib
import json
import os
import random
import shutil
import time
from pathlib import Path

import pytest
import redis

from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from monitor.store.errors import StateRefused, StoreError
from monitor.store.redis_store import RedisStore
from tests.redis_server import RedisServer
from tests.stored_state import reports_and_changes

TOPIC = "torn"
FULL = os.environ.get("RANKWATCH_SLOW") == "1"
CUTS = [*range(1, 2_001 if FULL else 1), *(f"seed {seed}" for seed in range(200 if FULL else 12))]
"""Lengths that are cut off the file; or seeds of one, mostly within the last transaction."""


def log():
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


LOG = log()


def chunk(start, stop):
    return Chunk(0, start, stop, range(start, stop), LOG[start:stop])


def expected(off):
    """What the fold of the first records comes to."""
    partition = Partition(0)
    if off:
        partition.fold(chunk(0, off))
    return reports_and_changes([partition])


async def fold(url, until, limit):
    """Go on from what is stored; return how far it was at first."""
    async with await RedisStore.open(url, TOPIC) as store:
        partition = Partition.restore(await store.load(0))
        first = partition.off
        if first:
            assert reports_and_changes([partition]) == expected(first)
        while partition.off < until:
            await store.commit(partition.fold(chunk(partition.off, min(partition.off + limit, until))))
        return first


SERVERS = {
    Path(path).resolve(): path
    for path in (shutil.which("redis-server"), *os.environ.get("RANKWATCH_SERVERS", "").split(":"))
    if path
}
"""Servers beside the embedded one: the one on PATH, and those of the variable."""


@pytest.fixture(scope="module", params=[None, *SERVERS.values()], ids=["embedded", *SERVERS.values()])
def written(request, tmp_path_factory):
    """A server that was killed after many commits, and its folder."""
    folder = tmp_path_factory.mktemp("server")
    with RedisServer(folder, executable=request.param) as server:
        asyncio.run(fold(server.url, len(LOG) // 3, 25))
        asyncio.run(fold(server.url, len(LOG) // 2, 120))
    return folder, server.executable


@pytest.mark.parametrize("cut", CUTS)
def test_a_torn_file_and_two_restarts_double_nothing(written, tmp_path, cut):
    server, file = copied(written, tmp_path)
    rng, data = random.Random(cut), file.read_bytes()
    if isinstance(cut, str):
        cut = rng.randint(1, rng.choice([len(data) - data.rindex(b"MULTI")] * 2 + [40_000]))
    file.write_bytes(data[:-cut])
    with server:
        asyncio.run(fold(server.url, len(LOG) // 2 + rng.randint(-30, 60), rng.choice([7, 30, 90])))
    with server, refusal(StateRefused, "is damaged: "):
        asyncio.run(fold(server.url, len(LOG), 60))


@pytest.mark.parametrize("seed", range(1_000 if FULL else 12))
def test_a_flipped_bit_is_found_when_the_state_is_loaded(written, tmp_path, seed):
    server, file = copied(written, tmp_path)
    rng, data = random.Random(seed), bytearray(file.read_bytes())
    data[rng.randrange(len(data) // 2, len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)
    server.start(wait=False)
    try:
        if answers(server):  # else the server found it
            with refusal(StoreError):
                asyncio.run(fold(server.url, len(LOG), 60))
    finally:
        server.kill()


def copied(written, tmp_path):
    """A server over a copy of the folder, and the file in it that is appended to."""
    folder, executable = written
    shutil.copytree(folder, tmp_path / "server")
    (file,) = tmp_path.rglob("*.aof")
    return RedisServer(tmp_path / "server", executable=executable), file


def answers(server):
    """Whether a server answers, or has ended."""
    end = time.monotonic() + 30
    while server.process.poll() is None and time.monotonic() < end:
        with server.client() as connection, contextlib.suppress(redis.ConnectionError):
            return connection.ping()
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def refusal(kind, words=""):
    """Expect nothing, or a refusal in one line."""
    line = words
    try:
        yield
    except kind as refused:
        line = str(refused)
    assert words in line
    assert "\n" not in line

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

import pytest
import redis

from monitor.engine.chunk import Chunk
from monitor.engine.partition import Partition
from monitor.store.errors import StateRefused, StoreError
from monitor.store.redis_store import RedisStore
from tests.redis_server import RedisServer
from tests.stored_state import reports_and_changes

TOPIC = "torn"
TORN = int(os.environ.get("RANKWATCH_CUTS", "12"))
"""How many places the file is cut at; all of the last 2,000 bytes were tried once."""


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


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of a server that was killed after many commits."""
    folder = tmp_path_factory.mktemp("server")
    with RedisServer(folder) as server:
        asyncio.run(fold(server.url, len(LOG) // 3, 25))
        asyncio.run(fold(server.url, len(LOG) // 2, 120))
    return folder


@pytest.mark.parametrize("seed", range(TORN))
def test_a_torn_file_and_two_restarts_double_nothing(written, tmp_path, seed):
    folder = tmp_path / "server"
    shutil.copytree(written, folder)
    (file,) = folder.glob("appendonlydir/*.incr.aof")
    rng = random.Random(seed)
    cut = seed if TORN > 1_000 else rng.choice([rng.randint(1, 2_000), rng.randint(1, 40_000)])
    os.truncate(file, file.stat().st_size - cut)
    with RedisServer(folder) as server:
        asyncio.run(fold(server.url, len(LOG) // 2 + rng.randint(-30, 60), rng.choice([7, 30, 90])))
    with RedisServer(folder) as server:
        with refusal(StateRefused, "is damaged: ") as refused:
            asyncio.run(fold(server.url, len(LOG), 60))
        if not refused:
            asyncio.run(fold(server.url, len(LOG), 60))


@pytest.mark.parametrize("seed", range(TORN))
def test_a_flipped_bit_is_found_when_the_state_is_loaded(written, tmp_path, seed):
    folder = tmp_path / "server"
    shutil.copytree(written, folder)
    (file,) = folder.glob("appendonlydir/*.incr.aof")
    rng = random.Random(seed)
    data = bytearray(file.read_bytes())
    data[rng.randrange(len(data) // 2, len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)
    server = RedisServer(folder)
    server.start(wait=False)
    try:
        if answers(server):  # else the server found it
            with refusal(StoreError):
                asyncio.run(fold(server.url, len(LOG), 60))
    finally:
        server.kill()


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
    """Expect nothing, or a refusal in one line, which is then in the list."""
    lines = []
    try:
        yield lines
    except kind as refused:
        lines.append(str(refused))
    assert all(words in line and "\n" not in line for line in lines)

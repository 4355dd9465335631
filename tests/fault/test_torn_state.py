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


def short_log():
    """Records of two benchmarks in turn; the last one decides the second benchmark's pair."""
    made = [{"declare": name, "order": "trusted"} for name in ("one", "two")]
    for item in range(8):
        for name in ("one", "two"):
            made += [
                {"benchmark": name, "item_id": f"i{item}", "model": m, "score": int(m == "a" or name == "one")}
                for m in "ab"
            ]
    return [json.dumps(record).encode() for record in made]


SHORT = short_log()


def fold_short(partition, stop):
    start = partition.off
    return partition.fold(Chunk(0, start, stop, range(start, stop), SHORT[start:stop]))


def ends_of_commands(data):
    """Where each command of a file ends."""
    at = data.index(b"*")
    while at < len(data):
        words = int(data[at + 1 : (at := data.index(b"\r\n", at))])
        for _ in range(words):
            size = int(data[at + 3 : (at := data.index(b"\r\n", at + 2))])
            at += 2 + size
        at += 2
        yield at


async def go_on_without_a_load(server):
    """Fold a part of the lost chunk, restart the server, and go on with the rest; the state has to be right, or refused."""

    async def check(off):
        async with await RedisStore.open(server.url, TOPIC) as reader:
            with contextlib.suppress(StateRefused):
                stored = Partition.restore(await reader.load(0))
                partition = Partition(0)
                fold_short(partition, stored.off)
                assert stored.off == off
                assert reports_and_changes([stored]) == reports_and_changes([partition])
                latched = [change.id for bench in stored.benchmarks.values() for change in bench.changes.values()]
                assert sorted(latched) == sorted(change.id for _, change in await reader.read_outbox(0))

    server.start()
    async with await RedisStore.open(server.url, TOPIC) as store:
        partition = Partition.restore(await store.load(0))
        assert partition.off == len(SHORT) - 4
        await store.commit(fold_short(partition, len(SHORT) - 2))
        server.kill()
        server.start()
        await check(len(SHORT) - 2)
        with contextlib.suppress(StoreError):
            await store.commit(fold_short(partition, len(SHORT)))
            await check(len(SHORT))


def test_a_worker_that_goes_on_over_a_torn_transaction_loses_no_change(tmp_path):
    """A worker takes a shorter chunk after each cut of the last transaction, and does not load again after the second restart."""

    async def write(url):
        async with await RedisStore.open(url, TOPIC) as store:
            partition = Partition(0)
            for stop in (len(SHORT) - 4, len(SHORT)):
                delta = fold_short(partition, stop)
                await store.commit(delta)
            assert [len(benchmark.changes) for benchmark in delta.benchmarks] == [0, 1]

    (tmp_path / "server").mkdir()
    server = RedisServer(tmp_path / "server", executable=next(iter(SERVERS.values()), None))
    with server:
        asyncio.run(write(server.url))
    (file,) = tmp_path.rglob("*.incr.aof")
    data = file.read_bytes()
    last = data.rindex(b"*1\r\n$5\r\nMULTI")
    ends = [at for at in ends_of_commands(data) if last < at < len(data)]
    assert len(ends) > 10
    for cut in ends:
        file.write_bytes(data[: cut + 3])
        try:
            asyncio.run(go_on_without_a_load(server))
        finally:
            server.kill()


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

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

from monitor.engine.chunk_fold import Partition
from monitor.store.errors import StateRefused, StoreError
from monitor.store.redis_store import RedisStore
from monitor.store.server.embedded_config import find_executable
from schemas.records.chunks import Chunk
from tests.fault import torn
from tests.redis_server import RedisServer
from tests.stored_state import reports_and_changes

FULL = os.environ.get("RANKWATCH_SLOW") == "1"
SERVERS = {
    Path(path).resolve(): path
    for path in (shutil.which("redis-server"), *os.environ.get("RANKWATCH_SERVERS", "").split(":"))
    if path
}
"""Servers beside the embedded one: the one on PATH, and those of the variable."""


@pytest.fixture(scope="module", params=[find_executable(), *SERVERS.values()], ids=["embedded", *SERVERS.values()])
def killed(request):
    """A server that was killed after many commits."""
    return torn.Killed.after_commits(request.param)


@pytest.mark.fault(
    "store",
    "server killed, its file cut, started, folded on, killed and started again",
    "right, or refused in one line",
)
@pytest.mark.parametrize("seed", range(200 if FULL else 12))
def test_a_torn_file_and_two_restarts_double_nothing(killed, tmp_path, seed):
    """The seed decides the cut, mostly within the last transaction; what is loaded is compared by its reports, too."""
    rng = random.Random(f"seed {seed}")
    length = rng.randint(1, rng.choice([killed.last_transaction] * 2 + [len(killed.content) - 1]))
    torn.go_on(killed.over(tmp_path, killed.content[:-length]), rng, len(torn.LOG), reports)


@pytest.mark.fault("store", "the same for every cut of the last 2,000 bytes", "right, or refused in one line")
@pytest.mark.skipif(not FULL, reason="takes minutes: RANKWATCH_SLOW=1")
def test_no_cut_of_the_last_bytes_doubles_anything(killed):
    _, tried = torn.sweep(killed, range(1, torn.BYTES + 1))
    assert [each for each in tried if each[1] == "wrong"] == []


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
        async with await RedisStore.open(server.url, torn.TOPIC) as reader:
            with contextlib.suppress(StateRefused):
                stored = Partition.restore(await reader.load(0))
                partition = Partition(0)
                fold_short(partition, stored.off)
                assert stored.off == off
                assert reports_and_changes([stored]) == reports_and_changes([partition])
                latched = [change.id for bench in stored.benchmarks.values() for change in bench.changes.values()]
                assert sorted(latched) == sorted(change.id for _, change in await reader.read_outbox(0))

    server.start()
    async with await RedisStore.open(server.url, torn.TOPIC) as store:
        partition = Partition.restore(await store.load(0))
        assert partition.off == len(SHORT) - 4
        await store.commit(fold_short(partition, len(SHORT) - 2))
        server.kill()
        server.start()
        await check(len(SHORT) - 2)
        with contextlib.suppress(StoreError):
            await store.commit(fold_short(partition, len(SHORT)))
            await check(len(SHORT))


@pytest.mark.fault(
    "store",
    "file cut after each command of a transaction; a worker goes on with a shorter chunk",
    "right with every change on the outbox, or refused",
)
def test_a_worker_that_goes_on_over_a_torn_transaction_loses_no_change(tmp_path):
    """A worker takes a shorter chunk after each cut of the last transaction, and does not load again after the second restart."""

    async def write(url):
        async with await RedisStore.open(url, torn.TOPIC) as store:
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


@pytest.mark.fault("store", "one bit of the server's file changed", "right, or refused in one line")
@pytest.mark.parametrize("seed", range(1_000 if FULL else 12))
def test_a_flipped_bit_is_found_when_the_state_is_loaded(killed, tmp_path, seed):
    rng, data = random.Random(seed), bytearray(killed.content)
    data[rng.randrange(len(data) // 2, len(data))] ^= 1 << rng.randrange(8)
    server = killed.over(tmp_path, data).start(wait=False)
    try:
        if answers(server):  # else the server found it
            with refusal():
                asyncio.run(torn.fold(server.url, len(torn.LOG), 60, reports))
    finally:
        server.kill()


def reports(partition):
    return reports_and_changes([partition])


def answers(server):
    """Whether a server answers, or has ended."""
    end = time.monotonic() + 30
    while server.process.poll() is None and time.monotonic() < end:
        with server.client() as connection, contextlib.suppress(redis.ConnectionError):
            return connection.ping()
        time.sleep(0.02)
    return False


@contextlib.contextmanager
def refusal():
    """Expect nothing, or a refusal in one line."""
    line = ""
    try:
        yield
    except StoreError as refused:
        line = str(refused)
    assert "\n" not in line

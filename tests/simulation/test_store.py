"""The simulated server against a real one: replies, the bytes of the file, and what a torn file comes to after restarts."""

import asyncio
import random
import shutil
import subprocess

import pytest

from monitor.engine.state.changes import benchmark_key
from monitor.store.errors import StateRefused
from monitor.store.redis_store import RedisStore
from tests.redis_server import RedisServer
from tests.simulation.clock import VirtualLoop, virtual_time
from tests.simulation.network import Network
from tests.simulation.store import Server, Stream
from tests.store_model import Evaluation, one_row, verdict

REDIS = shutil.which("redis-server")
VERSION = subprocess.run([REDIS, "--version"], check=False, capture_output=True, text=True).stdout if REDIS else ""
is_redis_70 = pytest.mark.skipif("v=7.0." not in VERSION, reason="compares with a Redis 7.0, which Debian 12 has")


async def use(url, deltas):
    """Everything that a worker does with the store."""
    async with await RedisStore.open(url, "events", "writer") as store:
        await store.bind_log(0, "log")
        seen = [(await store.load(0)).off, await store.relayed(0, "kafka")]
        for delta in deltas:
            await store.commit(delta, 7.0)
            seen += [await store.outbox_length(0), await store.read_outbox(0, "0-0", 3)]
        if seen[-1]:
            await store.mark_relayed(0, "kafka", seen[-1][0][0])
        await store.forget_publisher(0, "kafka")
        state = await store.load(0)
        return [
            *seen,
            state.off,
            [(b.name, b.rows, b.counters, b.changes) for b in state.benchmarks],
            await store.answers(),
        ]


def simulated(server, work):
    """Run a coroutine on virtual time, with a simulated server at redis://store."""
    network = Network(random.Random(0))
    network.servers["store"] = server
    loop = VirtualLoop(network.connect)
    with virtual_time(loop, 0):
        try:
            return loop.run_until_complete(loop.spawn(work))
        finally:
            loop.end()


def contents(server):
    """Every key with its value, as `RedisServer.contents`."""
    plain = {
        Stream: lambda s: [
            (b"%d-%d" % i, dict(zip(f[::2], f[1::2], strict=True))) for i, f in zip(s.ids, s.fields, strict=True)
        ],
        bytearray: bytes,
        dict: dict,
    }
    return {key: plain[type(value)](value) for key, value in server.database.keys.items()}


@is_redis_70
def test_replies_and_the_file_are_those_of_a_real_server(tmp_path):
    model = Evaluation(3)
    deltas = [model.delta() for _ in range(6)]
    server = Server()
    ours = simulated(server, use("redis://store", deltas))
    with RedisServer(tmp_path, executable=REDIS) as real:
        theirs = asyncio.run(use(real.url, deltas))
        (file,) = tmp_path.glob("appendonlydir/*.incr.aof")
        written = file.read_bytes()
        assert real.contents() == contents(server)
    assert ours == theirs
    assert bytes(server.file) == written


@is_redis_70
@pytest.mark.parametrize("seed", range(6))
def test_a_torn_file_comes_to_the_same_after_two_restarts(tmp_path, seed):
    rng, model = random.Random(seed), Evaluation(seed)
    deltas = [model.delta() for _ in range(4)]
    server = Server()
    simulated(server, use("redis://store", deltas))
    cut = rng.randrange(1, len(server.file) // 2)
    with RedisServer(tmp_path, executable=REDIS):
        pass
    (file,) = tmp_path.glob("appendonlydir/*.incr.aof")
    server.cut(cut)
    file.write_bytes(server.file)
    for _ in range(2):
        server.kill()
        server.start()
        with RedisServer(tmp_path, executable=REDIS) as real:
            assert real.contents() == contents(server)
            with real.client() as client:
                client.hset("d", "e", "f")
                server._append([[b"HSET", b"d", b"e", b"f"]])
                with client.pipeline() as pipeline:
                    pipeline.hset("a", "b", "c").setrange("s", 2, "xy").execute()
                server._append([[b"HSET", b"a", b"b", b"c"], [b"SETRANGE", b"s", b"2", b"xy"]])
        assert file.read_bytes() == bytes(server.file)


def test_a_benchmark_ahead_of_its_partition_is_refused():
    """A transaction torn after its benchmark's part, which then runs with another transaction: all digests of the benchmark match."""
    server = Server()

    async def fold():
        async with await RedisStore.open("redis://store", "events") as store:
            await store.commit(one_row(0, changes=[("0:anytime:decided", verdict("3-0"))]))
            await store.commit(one_row(10))

    async def load():
        async with await RedisStore.open("redis://store", "events") as store:
            return await store.load(0)

    simulated(server, fold())
    meta = b"$4\r\nHSET\r\n$%d\r\n{events:0}:meta" % len("{events:0}:meta")
    server.cut(len(server.file) - server.file.rfind(meta, 0, server.file.rfind(meta)) - 30)
    server.kill()
    server.start()
    assert simulated(server, load()).off == 10
    server._append(
        [[b"HSET", b"other", b"x", b"y"], [b"HSET", b"other", b"z", b"y"]]
    )  # another partition's transaction
    server.kill()
    server.start()
    assert server.database.keys[b"{events:0}:spec:" + benchmark_key("mmlu-pro").encode()][b"off"] == b"20"
    with pytest.raises(StateRefused, match="the offset of benchmark 'mmlu-pro' does not match"):
        simulated(server, load())

"""A server that is busy with a script answers BUSY: the state waits for it, in single commands, pipelines and transactions."""

import asyncio

import pytest
from redis.exceptions import TimeoutError  # noqa: A004 - that of the client

from monitor.retries import RetryPolicy
from monitor.store.server import clients
from monitor.store.server.connection import Connection
from tests.redis_server import RedisServer

SPIN = "local t = redis.call('TIME') local n repeat n = redis.call('TIME') until n[1] * 1000000 + n[2] > t[1] * 1000000 + t[2] + 300000"
READ = (("GET", "key"),)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with RedisServer(tmp_path_factory.mktemp("busy"), **{"lua-time-limit": 10}) as server:
        yield server


@pytest.mark.fault("store", "server busy with a script (`BUSY`)", "waits; right")
@pytest.mark.parametrize("read", ["run", "fetch", "transact"])
async def test_a_busy_server_is_waited_for(server, read):
    connection = Connection(server.url, RetryPolicy(timeout=60))
    calls = {
        "run": lambda: connection.run(lambda: connection.client.get("key")),
        "fetch": lambda: connection.fetch(READ),
        "transact": lambda: connection.transact(READ),
    }
    script = asyncio.create_task(asyncio.to_thread(_spin, server))
    while not script.done() and not await _busy(connection):
        pass
    assert await calls[read]() in (None, [None])
    await script
    await connection.close()


async def test_the_reply_to_a_large_command_is_waited_for_longer(server, monkeypatch):
    monkeypatch.setattr(clients, "_BYTES_A_SECOND", 1e6)
    monkeypatch.setattr(clients, "ANSWER_SECONDS", 0.1)
    client = clients.make_clients(server.url).state
    assert await client.eval(SPIN, 0, "x" * 2_000_000) is None
    with pytest.raises(TimeoutError, match="reading"):
        await client.eval(SPIN, 0, "x")
    await client.aclose()


def _spin(server):
    with server.client() as client:
        client.eval(SPIN, 0)


async def _busy(connection):
    try:
        await connection.client.get("key")
    except Exception as error:  # noqa: BLE001 - redis-py has no class for it
        return "BUSY" in str(error)
    return False


async def test_a_connection_that_is_closed_before_a_command_is_sent_is_a_lost_one():
    """Its client waits a turn of the loop in between; the simulation (seed 2033) closed it then, and a worker crashed."""
    connection = clients.make_clients("redis://localhost:1").state.connection_pool.make_connection()
    with pytest.raises(ConnectionResetError):
        await connection._send_packed_command([b"PING"])

"""Read the facts that `rankwatch doctor` checks from a Redis server."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Final

from monitor.retries import RetryPolicy
from monitor.store.errors import StoreError
from monitor.store.server.connection import Command, Connection, cuts_transactions

_RETRY_SECONDS: Final = 5.0


@dataclass(frozen=True)
class ServerFacts:
    """A server's description of itself."""

    address: str
    version: str  # the Redis version, or the one the server is compatible with
    name: str
    role: str
    eviction: str  # ``maxmemory-policy``
    appendonly: bool
    appendfsync: str | None  # None if this user may not ask
    memory_ratio: float | None  # used memory over ``maxmemory``; None without a limit
    clock_skew: float  # seconds by which its clock is ahead of this machine's, give or take half of `round_trip`
    round_trip: float
    cuts_transactions: bool  # whether it may cut a torn append-only file inside a transaction


async def server_facts(url: str) -> list[ServerFacts]:
    """Read the facts of a server, or of each primary of a Cluster; retry each command for a few seconds."""
    connection = Connection(url, RetryPolicy(timeout=_RETRY_SECONDS))
    try:
        return [await _facts(connection, address, command) for address, command in await connection.primaries()]
    finally:
        await connection.close()


async def _facts(connection: Connection, address: str, command: Command) -> ServerFacts:
    info = await connection.run(partial(command, "INFO"))
    before, start = time.time(), time.monotonic()
    server_seconds, microseconds = await connection.run(partial(command, "TIME"))
    round_trip = time.monotonic() - start
    limit = int(info.get("maxmemory", 0))
    return ServerFacts(
        address=address,
        version=str(info.get("redis_version", "0")),
        name=str(info.get("server_name", "redis")),
        role=str(info.get("role", "master")),
        eviction=str(info.get("maxmemory_policy", "unknown")),
        appendonly=bool(info.get("aof_enabled")),
        appendfsync=await _setting(connection, command, "appendfsync"),
        memory_ratio=int(info.get("used_memory", 0)) / limit if limit else None,
        clock_skew=server_seconds + microseconds / 1e6 - (before + round_trip / 2),
        round_trip=round_trip,
        cuts_transactions=cuts_transactions(info),
    )


async def _setting(connection: Connection, command: Command, name: str) -> str | None:
    try:
        settings = await connection.run(partial(command, "CONFIG GET", name))
    except StoreError:  # many hosted servers forbid it
        return None
    return settings.get(name) if settings else None

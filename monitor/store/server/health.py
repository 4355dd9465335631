"""What a Redis server says of itself, for a person who sets it up."""

import time
from dataclasses import dataclass
from functools import partial

from monitor.store.errors import StoreError
from monitor.store.server.connection import Command, Connection, Retries


@dataclass(frozen=True)
class ServerFacts:
    """A server as it describes itself.

    Attributes
    ----------
    place : str
        Its address, without a password.
    version : str
        Of Redis, or the version of Redis that it stands for.
    name : str
        ``redis``, or what else it calls itself.
    role : str
        ``master``, or ``slave`` for a replica.
    eviction : str
        ``maxmemory-policy``.
    appendonly : bool
        Whether it keeps an append-only file.
    appendfsync : str or None
        When that is brought to the disk; None if this user may not ask.
    memory_ratio : float or None
        Used memory over ``maxmemory``; None without a limit.
    clock_skew : float
        Seconds that its clock is ahead of this machine's, give or take half of `round_trip`.
    round_trip : float
        Seconds that one command took.
    """

    place: str
    version: str
    name: str
    role: str
    eviction: str
    appendonly: bool
    appendfsync: str | None
    memory_ratio: float | None
    clock_skew: float
    round_trip: float


async def server_facts(url: str, seconds: float = 5.0) -> list[ServerFacts]:
    """Ask the server of a URL, or each primary of a Cluster, for up to `seconds` an answer.

    Raises
    ------
    StoreError
        If it does not answer, or refuses this user.
    ValueError
        If the URL cannot be read.
    """
    connection = Connection.to(url, Retries(deadline=seconds))
    try:
        return [await _facts(connection, where, command) for where, command in await connection.primaries()]
    finally:
        await connection.close()


async def _facts(connection: Connection, where: str, command: Command) -> ServerFacts:
    info = await connection.run(partial(command, "INFO"))
    before, start = time.time(), time.monotonic()
    there, microseconds = await connection.run(partial(command, "TIME"))
    took = time.monotonic() - start
    limit = int(info.get("maxmemory", 0))
    return ServerFacts(
        place=where,
        version=str(info.get("redis_version", "0")),
        name=str(info.get("server_name", "redis")),
        role=str(info.get("role", "master")),
        eviction=str(info.get("maxmemory_policy", "unknown")),
        appendonly=bool(info.get("aof_enabled")),
        appendfsync=await _setting(connection, command, "appendfsync"),
        memory_ratio=int(info.get("used_memory", 0)) / limit if limit else None,
        clock_skew=there + microseconds / 1e6 - (before + took / 2),
        round_trip=took,
    )


async def _setting(connection: Connection, command: Command, name: str) -> str | None:
    try:
        found = await connection.run(partial(command, "CONFIG GET", name))
    except StoreError:  # many a hosted server forbids it, or says nothing
        return None
    return found.get(name) if found else None

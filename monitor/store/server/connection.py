"""The way to the server: retries while it is away, and errors that say what to do."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Any, Final, Self, TypeVar

from redis import exceptions
from redis.asyncio import Redis

from monitor.store.errors import StateRefused, StoreError, StoreUnavailable
from monitor.store.server.clients import Clients, make_clients

T = TypeVar("T")
Calls = Sequence[tuple[str | int | bytes, ...]]
Command = Callable[..., Awaitable[Any]]

_OLDEST: Final = (6, 2)
_GLANCE_SECONDS: Final = 2.0
_REFUSED: Final = (exceptions.AuthenticationError, exceptions.AuthorizationError)
_PASSING: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.RedisClusterException,
    exceptions.TryAgainError,
)


@dataclass(frozen=True)
class Retries:
    """How long a server that does not answer is tried again, and how often; what a test replaces of time and chance.

    Attributes
    ----------
    deadline : float
        Seconds after which it is given up.
    first, longest : float
        Seconds of the first wait, and of the longest one; each wait is up to twice the one before.
    """

    deadline: float = 60.0
    first: float = 0.05
    longest: float = 2.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random

    def wait(self, attempt: int) -> float:
        """Return the seconds to wait after the given attempt, counted from 0."""
        return float(min(self.longest, self.first * 2.0 ** min(attempt, 30))) * (0.5 + self.jitter() / 2)


class Connection:
    """A client whose calls are tried again while the server is away."""

    def __init__(self, clients: Clients, retries: Retries) -> None:
        self._clients = clients
        self.client = clients.state
        self.where = clients.where
        self.retries = retries

    @classmethod
    def to(cls, target: str | Mapping[str, Any], retries: Retries) -> Self:
        """Prepare a connection, as `monitor.store.server.clients.make_clients`; nothing is sent yet."""
        return cls(make_clients(target), retries)

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work`, again while the server is away, until the deadline.

        Raises
        ------
        StoreUnavailable
            If the deadline passed.
        StateRefused
            If the server refuses this user.
        StoreError
            If the server answers with any other error.
        """
        retries = self.retries
        deadline = retries.clock() + retries.deadline
        attempt = 0
        while True:
            try:
                return await work()
            except (exceptions.RedisError, exceptions.RedisClusterException) as caught:
                # What goes wrong while connecting comes wrapped: a refused password is then a lost connection.
                fault = caught.__cause__ if isinstance(caught.__cause__, exceptions.RedisError) else caught
                if not _passes(fault):
                    raise _translated(fault, self.where) from fault
                wait = retries.wait(attempt)
                if retries.clock() + wait > deadline:
                    raise StoreUnavailable(
                        f"Redis at {self.where} does not answer after {retries.deadline:g} s ({fault}): is it running, "
                        "and is this its address?"
                    ) from fault
            # After a failover the old primary is still connected, and read-only.
            if isinstance(self.client, Redis):
                await self.client.connection_pool.disconnect(inuse_connections=False)
            await retries.sleep(wait)
            attempt += 1

    async def fetch(self, calls: Calls) -> list[Any]:
        """Run commands in one round trip; all of them are repeated when the connection is lost, so each must bear that."""

        async def once() -> list[Any]:
            async with self.client.pipeline(transaction=False) as pipeline:
                for call in calls:
                    pipeline.execute_command(*call)
                return list(await pipeline.execute())

        return await self.run(once)

    async def answers(self, key: str) -> bool:
        """Whether a key can be read now: asked once, and briefly."""
        try:
            async with asyncio.timeout(_GLANCE_SECONDS):
                await self.client.exists(key)
        except (exceptions.RedisError, exceptions.RedisClusterException, OSError):  # a TimeoutError is one
            return False
        return True

    async def scan(self, pattern: str) -> list[bytes]:
        """Return all keys that match a pattern, of every server."""

        async def once() -> list[bytes]:
            return [key async for key in self.client.scan_iter(match=pattern, count=1000)]

        return await self.run(once)

    async def primaries(self) -> list[tuple[str, Command]]:
        """Return each server that takes writes, with its address and what runs a command on it."""
        client = self.client
        if isinstance(client, Redis):
            return [(self.where, client.execute_command)]
        await self.run(client.initialize)
        nodes = sorted(client.get_primaries(), key=attrgetter("name"))
        return [(node.name, partial(client.execute_command, target_nodes=node)) for node in nodes]

    async def check_server(self) -> None:
        """Refuse a server that is too old, or that may throw keys away.

        Raises
        ------
        StateRefused
            With the command that mends it.
        """
        for where, command in await self.primaries():
            _check(where, await self.run(partial(command, "INFO")))

    async def close(self) -> None:
        """Close every connection."""
        for client in (self.client, *self._clients.finders):
            await client.aclose()


def _check(where: str, info: Mapping[str, Any]) -> None:
    version = str(info.get("redis_version", "0"))
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        raise StateRefused(f"Redis at {where} is version {version}: 6.2 or newer is needed, or any Valkey")
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        raise StateRefused(
            f"Redis at {where} has maxmemory-policy {policy}: under it the server may silently delete parts of the state. Run "
            "`redis-cli CONFIG SET maxmemory-policy noeviction` (and set it in the server's configuration file), then start again"
        )


def _passes(fault: Exception) -> bool:
    """Whether an error may go away by itself."""
    if isinstance(fault, _REFUSED):
        return False
    return isinstance(fault, _PASSING) or str(fault).startswith("BUSY ")


def _translated(fault: Exception, where: str) -> StoreError:
    if isinstance(fault, _REFUSED) or str(fault).startswith(("NOAUTH", "WRONGPASS")):
        return StateRefused(f"Redis at {where} refuses the login ({fault}): check the user and the password in its URL")
    if isinstance(fault, exceptions.NoPermissionError):
        return StateRefused(f"Redis at {where} forbids this user a command ({fault}): grant it with ACL SETUSER")
    if isinstance(fault, exceptions.OutOfMemoryError):
        return StoreError(
            f"Redis at {where} is full, and nothing was written: give it more memory (CONFIG SET maxmemory) or fewer other "
            "keys, then start again"
        )
    return StoreError(f"Redis at {where} answered with an error: {fault}")

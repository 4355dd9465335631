"""Send commands to the server, retry while it is away, and turn its errors into ours."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, Final, TypeVar

from redis import exceptions
from redis.asyncio import Redis

from monitor.retries import RetryPolicy
from monitor.store.errors import StateRefused, StoreError, StoreUnavailable
from monitor.store.server.clients import make_clients

T = TypeVar("T")
Calls = Sequence[tuple[str | int | bytes, ...]]
Command = Callable[..., Awaitable[Any]]

OLDEST_REDIS: Final = (6, 2)

_CUTS_WHOLE: Final = (9, 1, 2)
"""The Valkey from which on a torn file is cut before the transaction; 9.1.1 still cut inside it."""
_PROBE_SECONDS: Final = 2.0
_ERRORS: Final = (exceptions.RedisError, exceptions.RedisClusterException)
_LOGIN_ERRORS: Final = (exceptions.AuthenticationError, exceptions.AuthorizationError)
_TRANSIENT_ERRORS: Final = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.ReadOnlyError,
    exceptions.ClusterDownError,
    exceptions.RedisClusterException,
    exceptions.TryAgainError,
)
_OUR_SCRIPT: Final = "RANKWATCH "  # starts each error that commit.lua returns

_SLICE: Final = 500


_log = logging.getLogger(__name__)


def slices(values: Iterable[T]) -> Iterator[list[T]]:
    """Split values into lists that fit in one command or round trip."""
    rest = iter(values)
    while part := list(islice(rest, _SLICE)):
        yield part


class Connection:
    """A client that retries its calls while the server is away."""

    def __init__(self, target: str | Mapping[str, Any], retries: RetryPolicy) -> None:
        clients = make_clients(target)
        self.client, self.address, self._sentinels = clients.state, clients.address, clients.sentinels
        self._retries = retries
        self.cutting: list[str] = []
        """Servers that may cut a torn append-only file inside a transaction, as of `check_server`."""

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run `work`, and repeat it while the server is away; raise its error as a `StoreError`."""

        async def attempt() -> T:
            try:
                return await work()
            except _ERRORS:
                # After a failover the old primary is still connected, and read-only.
                if isinstance(self.client, Redis):
                    await self.client.connection_pool.disconnect(inuse_connections=False)
                raise

        try:
            return await self._retries.run(attempt, _is_transient)
        except _ERRORS as error:
            raise self._translate(_unwrap(error)) from error

    async def fetch(self, calls: Calls) -> list[Any]:
        """Run commands in one round trip; after a lost connection all of them run again, so each must be idempotent."""
        return await self._pipeline(calls, transaction=False)

    async def transact(self, calls: Calls) -> list[Any]:
        """Run commands as `fetch`, with no other client's command between them; their keys must share a slot."""
        return await self._pipeline(calls, transaction=True)

    async def _pipeline(self, calls: Calls, *, transaction: bool) -> list[Any]:
        async def once() -> list[Any]:
            async with self.client.pipeline(transaction=transaction) as pipeline:
                for call in calls:
                    pipeline.execute_command(*call)
                return list(await pipeline.execute())

        return await self.run(once)

    async def answers(self, key: str) -> bool:
        """Return whether the server answers a read of `key` now; there is no retry."""
        try:
            async with asyncio.timeout(_PROBE_SECONDS):
                await self.client.exists(key)
        except (*_ERRORS, OSError):  # a TimeoutError is one
            return False
        return True

    async def scan(self, pattern: str) -> list[bytes]:
        """Return all keys that match a pattern, of every server."""

        async def once() -> list[bytes]:
            return [key async for key in self.client.scan_iter(match=pattern, count=1000)]

        return await self.run(once)

    async def primaries(self) -> list[tuple[str, Command]]:
        """Return the address of each server that takes writes, and a function that runs a command on it."""
        client = self.client
        if isinstance(client, Redis):
            return [(self.address, client.execute_command)]
        await self.run(client.initialize)
        nodes = sorted(client.get_primaries(), key=attrgetter("name"))
        return [(node.name, partial(client.execute_command, target_nodes=node)) for node in nodes]

    async def check_server(self) -> None:
        """Raise `StateRefused` if a server is too old or may evict keys; note those that may cut a transaction."""
        for address, command in await self.primaries():
            info = await self.run(partial(command, "INFO"))
            _check_info(address, info)
            if cuts_transactions(info):
                self.cutting.append(f"{info.get('server_name', 'redis')} at {address}")

    async def close(self) -> None:
        """Close every connection."""
        for client in (self.client, *self._sentinels):
            await client.aclose()

    def _translate(self, error: Exception) -> StoreError:
        _log.debug("Redis at %s: %r", self.address, error)
        server = f"Redis at {self.address}"
        text = _text(error)
        if _is_transient(error):
            return StoreUnavailable(
                f"{server} does not answer after {self._retries.timeout:g} s; start it, or correct its address"
            )
        if isinstance(error, _LOGIN_ERRORS) or text.startswith(("NOAUTH", "WRONGPASS")):
            return StateRefused(f"{server} refuses the login; check the user and the password in its URL")
        if isinstance(error, exceptions.NoPermissionError):
            return StateRefused(f"{server} forbids this user a command or a key; grant it with ACL SETUSER")
        if isinstance(error, exceptions.OutOfMemoryError):
            return StoreError(
                f"{server} is full, and nothing was written; give it more memory (CONFIG SET maxmemory) or fewer other keys, then start "
                "again"
            )
        if text.startswith(_OUR_SCRIPT):
            return StoreError(f"{server} rejected a write: {text.removeprefix(_OUR_SCRIPT)}")
        code = text.partition(" ")[0]
        kind = code if code.isupper() else type(error).__name__
        return StoreError(f"{server} answered with the error {kind}; look it up in the server's log, then start again")


def _check_info(address: str, info: Mapping[str, Any]) -> None:
    version = str(info.get("redis_version", "0"))
    if is_too_old(version):
        raise StateRefused(f"Redis at {address} is version {version}; use 6.2 or newer, or any Valkey")
    policy = info.get("maxmemory_policy")
    if policy != "noeviction":
        raise StateRefused(
            f"Redis at {address} has maxmemory-policy {policy}, under which it may silently delete parts of the state; run "
            "`redis-cli CONFIG SET maxmemory-policy noeviction`, set it in the server's configuration file, then start again"
        )


def is_too_old(version: str) -> bool:
    """Return whether a Redis version lacks a command that the state needs."""
    return _numbers(version) < OLDEST_REDIS


def cuts_transactions(info: Mapping[str, Any]) -> bool:
    """Return whether a server may cut a torn append-only file inside a transaction, as docs/explanation/measured-faults.md lists them."""
    return _numbers(str(info.get("valkey_version", "0"))) < _CUTS_WHOLE


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def _unwrap(error: Exception) -> Exception:
    # Errors while connecting come wrapped: without this, a refused password is a lost connection.
    return error.__cause__ if isinstance(error.__cause__, exceptions.RedisError) else error


def _is_transient(error: Exception) -> bool:
    """Return whether an error may go away on its own."""
    error = _unwrap(error)
    if isinstance(error, _LOGIN_ERRORS):
        return False
    return isinstance(error, _TRANSIENT_ERRORS) or _text(error).startswith("BUSY ")


def _text(error: Exception) -> str:
    """Return what the server answered to the command itself, without what a pipeline or a transaction puts around it."""
    text = (
        str(error).rpartition("caused error: ")[2].lstrip("('\"")
    )  # redis-py writes the arguments of an error as a tuple
    return text.removeprefix("Transaction discarded because of: ")

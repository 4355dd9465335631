"""Make the Redis client for a URL: one server, the primary that Sentinels name, or a Cluster."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry as NoRetry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

Client = Redis | RedisCluster

ANSWER_SECONDS: Final = 15.0  # how long the reply to a small command may take before the connection is dropped

_BYTES_A_SECOND = 2e6
"""A reply may take longer by this rate: a commit of 500 MB keeps a server busy for 12 s, and longer where others use its cores."""

_SLICE_BYTES: Final = 1 << 18  # how much of a large command is sent in one turn of the event loop

_URL_RULE: Final = (
    "the Redis URL cannot be read; use redis://host:port/db, rediss://host:port/db (TLS), unix:///path, "
    "redis+sentinel://host:port[,host:port]/service or redis+cluster://host:port[,host:port], as in redis://localhost:6379/0"
)


class _InSlices(AbstractConnection):
    """Sends large commands in slices, and waits longer for their replies."""

    # asyncio copies 50 MB three times in one turn of the event loop, and others wait for 0.1 s.

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as the class that it extends
        super().__init__(*arguments, **options)
        self._answer_seconds = self.socket_timeout

    async def _send_packed_command(self, command: Iterable[bytes]) -> None:
        if self._writer is None:  # closed since it was chosen: the client takes such an error for a lost connection
            raise ConnectionResetError("the connection was closed")
        parts = list(command)
        size = sum(map(len, parts))
        if self._answer_seconds is not None:
            self.socket_timeout = self._answer_seconds + max(0, size - _SLICE_BYTES) / _BYTES_A_SECOND
        if size <= _SLICE_BYTES:
            await super()._send_packed_command(parts)
            return
        for part in parts:
            view = memoryview(part)
            for start in range(0, len(view), _SLICE_BYTES):
                self._writer.write(view[start : start + _SLICE_BYTES])
                await self._writer.drain()
                await asyncio.sleep(0)


def _in_slices(kind: type[AbstractConnection]) -> type[AbstractConnection]:
    """Return a kind of connection (TCP, TLS, Unix socket, of Sentinels) that sends in slices."""
    return type(f"{kind.__name__}InSlices", (_InSlices, kind), {})


def _sending_in_slices(client: Client) -> Client:
    if isinstance(client, RedisCluster):
        client.connection_kwargs["connection_class"] = _in_slices(client.connection_kwargs["connection_class"])
    else:
        pool = client.connection_pool
        pool.connection_class = _in_slices(pool.connection_class)
    return client


@dataclass(frozen=True)
class Clients:
    """The client that holds the state, and the clients that only locate its server."""

    state: Client
    address: str  # without a password
    sentinels: list[Redis] = field(default_factory=list)

    def __post_init__(self) -> None:
        _sending_in_slices(self.state)


def make_clients(target: str | Mapping[str, Any]) -> Clients:
    """Make the clients for a URL, or for keyword arguments of `redis.asyncio.Redis`; nothing is sent yet."""
    # Replies are read in the shape of RESP2, which every server speaks. `Connection` retries, because it knows the timeout.
    options: dict[str, Any] = {
        "protocol": 2,
        "retry": NoRetry(NoBackoff(), 0),
        "socket_timeout": ANSWER_SECONDS,
        "socket_connect_timeout": 5.0,
    }
    if not isinstance(target, str):
        address = target.get("unix_socket_path") or f"{target.get('host', 'localhost')}:{target.get('port', 6379)}"
        return Clients(Redis(**options, **target), str(address))
    try:
        kind = urlsplit(target).scheme.partition("+")[2]
        if kind == "sentinel":
            return _sentinel_clients(target, options)
        if kind == "cluster":
            return _cluster_clients(target, options)
        parts = urlsplit(target)
        address = f"{parts.hostname or 'localhost'}:{parts.port or 6379}{parts.path}"
        return Clients(Redis.from_url(target, **options), parts.path if parts.scheme == "unix" else address)
    except ValueError as error:
        raise ValueError(_URL_RULE) from error


def _sentinel_clients(url: str, options: dict[str, Any]) -> Clients:
    addresses, path, from_url = _parse(url, 26379)
    service, _, database = path.partition("/")
    if not service:
        raise ValueError("no service is named")
    login = {"username": from_url.pop("sentinel_username", None), "password": from_url.pop("sentinel_password", None)}
    tls = {name: value for name, value in from_url.items() if name.startswith("ssl")}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        addresses, sentinel_kwargs={**options, **tls, **login}, **options, **from_url, db=int(database or 0)
    )
    return Clients(sentinel.master_for(service), f"{_join(addresses)}/{path}", list(sentinel.sentinels))


def _cluster_clients(url: str, options: dict[str, Any]) -> Clients:
    addresses, path, from_url = _parse(url, 6379)
    if path not in {"", "0"}:
        raise ValueError("a Cluster has one database")
    nodes = [ClusterNode(host, port) for host, port in addresses]
    return Clients(RedisCluster(startup_nodes=nodes, **options, **from_url), _join(addresses))


def _parse(url: str, default_port: int) -> tuple[list[tuple[str, int]], str, dict[str, Any]]:
    """Return the addresses, the path, and the other parts of the URL as keyword arguments of a client."""
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[0]
    user, at, hosts = parts.netloc.rpartition("@")
    split = [urlsplit(f"//{host}") for host in hosts.split(",")]
    addresses = [(each.hostname, each.port or default_port) for each in split]
    if scheme not in {"redis", "rediss"} or not all(host for host, _ in addresses):
        raise ValueError("a host is missing, or the scheme is another one")
    options = parse_url(f"{scheme}://{user}{at}localhost?{parts.query}")
    from_url = {name: value for name, value in options.items() if name not in {"host", "connection_class"}}
    if scheme == "rediss":
        from_url["ssl"] = True
    return [(str(host), port) for host, port in addresses], parts.path.strip("/"), from_url


def _join(addresses: list[tuple[str, int]]) -> str:
    return ",".join(f"{host}:{port}" for host, port in addresses)

"""Which client a URL asks for: one server, the primary that Sentinels name, or a Cluster."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.cluster import ClusterNode
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry as NoRetry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

Client = Redis | RedisCluster

ANSWER_SECONDS: Final = 15.0
"""How long one reply may take before the connection is given up."""

_RULE: Final = (
    "the Redis URL cannot be read: use redis://host:port/db, rediss://host:port/db (TLS), unix:///path, "
    "redis+sentinel://host:port[,host:port]/service or redis+cluster://host:port[,host:port], as in redis://localhost:6379/0"
)


@dataclass(frozen=True)
class Clients:
    """The client of the state, and those that only find its server.

    Attributes
    ----------
    state
    where : str
        The address, without a password.
    finders : list of Redis
        Of the Sentinels.
    """

    state: Client
    where: str
    finders: list[Redis] = field(default_factory=list)


def make_clients(target: str | Mapping[str, Any]) -> Clients:
    """Make the clients for a URL, or for what keyword arguments of `redis.asyncio.Redis` name; nothing is sent yet.

    Raises
    ------
    ValueError
        If it is not such a URL; the message does not repeat it, for it may hold a password.
    """
    # Replies are read in the shape of RESP2, which every server speaks. Retrying is done by `Connection`, where the deadline is known.
    options: dict[str, Any] = {
        "protocol": 2,
        "retry": NoRetry(NoBackoff(), 0),
        "socket_timeout": ANSWER_SECONDS,
        "socket_connect_timeout": 5.0,
    }
    if not isinstance(target, str):
        return Clients(Redis(**options, **target), _place(target))
    try:
        kind = urlsplit(target).scheme.partition("+")[2]
        if kind == "sentinel":
            return _of_sentinel(target, options)
        if kind == "cluster":
            return _of_cluster(target, options)
        parts = urlsplit(target)
        place = f"{parts.hostname or 'localhost'}:{parts.port or 6379}{parts.path}"
        return Clients(Redis.from_url(target, **options), parts.path if parts.scheme == "unix" else place)
    except ValueError as fault:
        raise ValueError(_RULE) from fault


def _of_sentinel(url: str, options: dict[str, Any]) -> Clients:
    addresses, path, own = _read(url, 26379)
    service, _, database = path.partition("/")
    if not service:
        raise ValueError("no service is named")
    finding = {"username": own.pop("sentinel_username", None), "password": own.pop("sentinel_password", None)}
    tls = {name: value for name, value in own.items() if name.startswith("ssl")}
    sentinel = Sentinel(  # type: ignore[no-untyped-call]
        addresses, sentinel_kwargs={**options, **tls, **finding}, **options, **own, db=int(database or 0)
    )
    where = f"{_listed(addresses)}/{path}"
    return Clients(sentinel.master_for(service), where, list(sentinel.sentinels))


def _of_cluster(url: str, options: dict[str, Any]) -> Clients:
    addresses, path, own = _read(url, 6379)
    if path not in {"", "0"}:
        raise ValueError("a Cluster has one database")
    nodes = [ClusterNode(host, port) for host, port in addresses]
    return Clients(RedisCluster(startup_nodes=nodes, **options, **own), _listed(addresses))


def _read(url: str, default_port: int) -> tuple[list[tuple[str, int]], str, dict[str, Any]]:
    """Return the addresses, the path, and what else the URL says, as keyword arguments of a client."""
    parts = urlsplit(url)
    scheme = parts.scheme.partition("+")[0]
    user, at, hosts = parts.netloc.rpartition("@")
    split = [urlsplit(f"//{host}") for host in hosts.split(",")]
    addresses = [(each.hostname, each.port or default_port) for each in split]
    if scheme not in {"redis", "rediss"} or not all(host for host, _ in addresses):
        raise ValueError("a host is missing, or the scheme is another one")
    said = parse_url(f"{scheme}://{user}{at}localhost?{parts.query}")
    own = {name: value for name, value in said.items() if name not in {"host", "connection_class"}}
    if scheme == "rediss":
        own["ssl"] = True
    return [(str(host), port) for host, port in addresses], parts.path.strip("/"), own


def _listed(addresses: list[tuple[str, int]]) -> str:
    return ",".join(f"{host}:{port}" for host, port in addresses)


def _place(options: Mapping[str, Any]) -> str:
    return str(options.get("unix_socket_path") or f"{options.get('host', 'localhost')}:{options.get('port', 6379)}")

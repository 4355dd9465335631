"""Bound the open connections: of one client first, then of all."""

from collections import defaultdict
from ipaddress import IPv6Address, ip_address
from typing import Final, Protocol

CONNECTIONS: Final = 1_000  # most connections of all clients

CLIENT_CONNECTIONS: Final = 250
"""Most connections of one client: an IPv4 address, or the /64 network of an IPv6 address."""

_BEYOND: Final = 64  # connections beyond a limit that are kept until their request is refused with the reason

RETRY_SECONDS: Final = 5  # `Retry-After` of a request on a connection too many


class Connection(Protocol):
    """An open connection."""

    def close_now(self) -> None:
        """Close it without an answer."""


class Connections:
    """The open connections by client.

    A connection is idle while no request on it waits for its answer: it is silent, or the head of a request arrives slowly. When a client
    opens one too many, its longest idle connection is closed. When all clients together have too many, the longest idle one of the client
    with the most connections is. So connections that send nothing keep nobody out. Only when none is idle, the new one is refused.

    >>> class Fake:
    ...     def close_now(self):
    ...         print("closed")
    >>> connections, first, second = Connections(total=2, per_client=1), Fake(), Fake()
    >>> connections.add(first, "203.0.113.7")
    >>> connections.begin_request(first)
    >>> connections.add(second, "203.0.113.7")
    429
    >>> connections.end_request(first)
    >>> connections.add(Fake(), "203.0.113.7")
    closed
    """

    def __init__(self, total: int = CONNECTIONS, per_client: int = CLIENT_CONNECTIONS) -> None:
        self._total, self._per_client = total, per_client
        self._client_of: dict[Connection, str] = {}
        self._of_client: dict[str, set[Connection]] = defaultdict(set)
        self._idle: dict[str, dict[Connection, None]] = defaultdict(dict)
        """Idle connections of each client, the longest idle one first."""
        self._beyond: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._client_of)

    def add(self, connection: Connection, address: str) -> int | None:
        """Add a connection, closing an idle one if it is one too many; return the status that refuses its requests, or None."""
        client = client_of(address)
        status = None
        if len(self._of_client[client]) >= self._per_client and not self._close_idle(client):
            status = 429
        elif len(self._client_of) >= self._total and not self._close_idle(self._largest()):
            status = 503
        if status is None:
            self._client_of[connection] = client
            self._of_client[client].add(connection)
            self._idle[client][connection] = None
            return None
        if not self._of_client[client]:
            del self._of_client[client]
        if len(self._beyond) >= _BEYOND:
            oldest = next(iter(self._beyond))
            del self._beyond[oldest]
            oldest.close_now()
        self._beyond[connection] = None
        return status

    def begin_request(self, connection: Connection) -> None:
        """Record that a request on a connection waits for its answer."""
        client = self._client_of.get(connection)
        if client is not None:
            self._idle[client].pop(connection, None)

    def end_request(self, connection: Connection) -> None:
        """Record that a connection is idle."""
        client = self._client_of.get(connection)
        if client is not None:
            self._idle[client][connection] = None

    def remove(self, connection: Connection) -> None:
        """Forget a connection; a second call does nothing."""
        self._beyond.pop(connection, None)
        client = self._client_of.pop(connection, None)
        if client is None:
            return
        self._idle[client].pop(connection, None)
        self._of_client[client].discard(connection)
        if not self._of_client[client]:
            del self._of_client[client], self._idle[client]

    def _largest(self) -> str | None:
        """Return the client with the most connections among those with idle ones."""
        idle = [client for client, connections in self._idle.items() if connections]
        return max(idle, key=lambda client: len(self._of_client[client]), default=None)

    def _close_idle(self, client: str | None) -> bool:
        """Close the longest idle connection of a client; return whether it has one."""
        if client is None or not self._idle.get(client):
            return False
        connection = next(iter(self._idle[client]))
        self.remove(connection)
        connection.close_now()
        return True


def client_of(address: str) -> str:
    """Return the client that an address belongs to.

    >>> client_of("203.0.113.7"), client_of("2001:db8:1:2:a::1"), client_of("::ffff:203.0.113.7")
    ('203.0.113.7', '2001:db8:1:2::', '203.0.113.7')
    """
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(ip, IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or IPv6Address(int(ip) >> 64 << 64))

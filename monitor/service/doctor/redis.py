"""Check the server that keeps the state."""

from collections.abc import Iterator
from typing import Final

from monitor.service.doctor.finding import Finding, fault, ok, warning
from monitor.store.errors import StoreError
from monitor.store.server.connection import is_too_old
from monitor.store.server.health import ServerFacts, server_facts

_SKEW_SECONDS: Final = 2.0
_MEMORY_RATIO: Final = 0.8


async def check_redis(url: str) -> list[Finding]:
    """Check a server, or each primary of a Cluster."""
    try:
        return [finding for server in await server_facts(url) for finding in check_server(server)]
    except (StoreError, ValueError) as error:
        return [fault("Redis", "no answer, or not allowed", str(error))]


def check_server(server: ServerFacts) -> Iterator[Finding]:
    """Check the facts of one server."""
    round_trip = server.round_trip
    yield ok("Redis", f"{server.name} {server.version} at {server.address}, round trip {round_trip * 1000:.1f} ms")
    if is_too_old(server.version):
        yield fault("Redis version", server.version, "use Redis 6.2 or newer, or any Valkey")
    if server.cuts_transactions:
        yield warning(
            "Redis version",
            f"{server.name} {server.version} may cut a torn append-only file inside a transaction",
            "use Valkey 9.1.2 or newer: rankwatch checks the state at each load, and refuses one in which such a cut changed something",
        )
    if server.role != "master":
        yield fault("Redis role", "a replica", "give the URL of the primary: a replica takes no writes")
    if server.eviction == "noeviction":
        yield ok("maxmemory-policy", server.eviction)
    else:
        yield fault(
            "maxmemory-policy",
            server.eviction,
            "the server may silently delete parts of the state; run `redis-cli CONFIG SET maxmemory-policy noeviction`, and set it in the "
            "configuration file",
        )
    if server.memory_ratio is not None and server.memory_ratio > _MEMORY_RATIO:
        yield warning(
            "maxmemory",
            f"{server.memory_ratio:.0%} used",
            "raise it: a full server takes no writes, and the worker ends",
        )
    yield _check_durability(server)
    skew = server.clock_skew
    if abs(skew) > _SKEW_SECONDS + round_trip / 2:
        yield warning(
            "clock",
            f"{abs(skew):.1f} s {'earlier' if skew > 0 else 'later'} than the server's",
            "run NTP (chrony, systemd-timesyncd) on both: times in logs and metrics depend on it, statistics do not",
        )
    else:
        yield ok("clock", f"within {abs(skew) + round_trip / 2:.3f} s of the server's")


def _check_durability(server: ServerFacts) -> Finding:
    if not server.appendonly:
        return warning(
            "durability",
            "no append-only file",
            "set appendonly yes and appendfsync always: a restart loses the state, including events that Kafka no longer keeps",
        )
    if server.appendfsync is None:
        return warning(
            "durability",
            "append-only file; this user may not read appendfsync",
            "check that appendfsync is always or everysec",
        )
    fact = f"append-only file, appendfsync {server.appendfsync}"
    if server.appendfsync == "always":
        return ok("durability", fact)
    if server.appendfsync == "everysec":
        return ok("durability", f"{fact}: after a crash the last second of the log is read again")
    return warning("durability", fact, "run `redis-cli CONFIG SET appendfsync always`")

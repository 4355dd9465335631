"""Bound what each client may send: events and bytes a second, by token or by address."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from time import monotonic
from typing import Final

_MAX_CLIENTS: Final = 10_000
"""Clients whose sending is remembered; the one that sent nothing for longest is forgotten first."""

BURST_SECONDS: Final = 10.0  # for how long of silence a client may send at once


@dataclass(slots=True)
class _Account:
    """What a client may still send; below 0 it waits."""

    events: float
    bytes: float
    at: float


class ClientLimits:
    """An account for each client, which fills with time and from which its requests are paid.

    A request is admitted while its client has anything left, and may then take more than that: no request is too large to be sent ever, and
    the client waits for longer after a larger one.

    >>> now = [0.0]
    >>> limits = ClientLimits(events=100, clock=lambda: now[0])
    >>> limits.wait("ci"), limits.spend("ci", events=3_000), limits.wait("ci"), limits.wait("other")
    (0, None, 20, 0)
    >>> now[0] = 20.1
    >>> limits.wait("ci")
    0
    >>> limits.spend("nightly", events=30, quota=1), limits.wait("nightly", quota=1)
    (None, 20)
    """

    def __init__(
        self,
        events: float | None = None,
        bytes: float | None = None,  # noqa: A002 - the unit
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._events, self._bytes, self._clock = events, bytes, clock
        self._accounts: dict[str, _Account] = {}

    def change(self, events: float | None, bytes: float | None) -> None:  # noqa: A002 - the unit
        """Change what an account gets a second; if it differs, every account is full again."""
        if (events, bytes) != (self._events, self._bytes):
            self._events, self._bytes = events, bytes
            self._accounts.clear()

    def wait(self, client: str, quota: float | None = None) -> int:
        """Return after how many seconds a client may send; 0 for now. `quota`: events a second, in place of those of every client."""
        account = self._account(client, quota)
        return max(_seconds(account.events, quota or self._events), _seconds(account.bytes, self._bytes))

    def spend(self, client: str, *, events: int = 0, bytes: int = 0, quota: float | None = None) -> None:  # noqa: A002 - the unit
        """Record what a client has sent."""
        account = self._account(client, quota)
        if (quota or self._events) is not None:
            account.events -= events
        if self._bytes is not None:
            account.bytes -= bytes

    def _account(self, client: str, quota: float | None) -> _Account:
        """Return the account of a client as of now."""
        now, rate = self._clock(), quota or self._events or 0
        events, size = rate * BURST_SECONDS, (self._bytes or 0) * BURST_SECONDS
        account = self._accounts.pop(client, None) or _Account(events, size, now)
        passed, account.at = now - account.at, now
        account.events = min(events, account.events + passed * rate)
        account.bytes = min(size, account.bytes + passed * (self._bytes or 0))
        self._accounts[client] = account
        if len(self._accounts) > _MAX_CLIENTS:
            del self._accounts[next(iter(self._accounts))]
        return account


def _seconds(left: float, rate: float | None) -> int:
    """Return how long an account takes to be out of debt."""
    return 0 if rate is None or left >= 0 else ceil(-left / rate)

"""Relay the outbox of a partition to one publisher, at least once."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from monitor.crash_points import crash_point
from schemas.results.changes import AnyChange, change_order

_BATCH = 500

_START = "0-0"  # the id before every verdict change


class Outbox(Protocol):
    """The part of the store that the relay uses."""

    async def read_outbox(
        self, partition: int, after_id: str, count: int, block_ms: int
    ) -> Sequence[tuple[str, AnyChange]]:
        """Return entries after `after_id`, oldest first; wait up to `block_ms` for one."""

    async def relayed(self, partition: int, publisher: str) -> str:
        """Return the id of the last entry that a publisher has accepted."""

    async def mark_relayed(self, partition: int, publisher: str, identifier: str) -> None:
        """Record that a publisher has accepted all entries up to one."""


class Publisher(Protocol):
    """Publishes verdict changes; after a crash it gets some of them again, with the same ids."""

    name: str

    async def publish(self, changes: Sequence[AnyChange]) -> None:
        """Publish changes durably: after this returns they are not offered again."""


class Relay:
    """Passes the outbox of one partition to one publisher, in order.

    `listener` is called with each published change, `count_relayed` with the number of changes of each batch. `once`: what this process has
    had accepted is not offered again where the outbox has lost that, and gets the same changes again. Others drop ids that they have.
    """

    def __init__(
        self,
        outbox: Outbox,
        partition: int,
        publisher: Publisher,
        listener: Callable[[AnyChange], None] | None = None,
        count_relayed: Callable[[int], None] | None = None,
        *,
        once: bool = False,
    ) -> None:
        self._outbox, self._partition, self._publisher = outbox, partition, publisher
        self._listener, self._count_relayed = listener, count_relayed
        self.name = publisher.name
        self._once, self._accepted = once, _START
        self._wake = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    def wake(self) -> None:
        """Signal that the outbox may have grown."""
        self._wake.set()

    async def join(self) -> None:
        """Make the outbox keep the changes that this publisher has not accepted."""
        await self._outbox.relayed(self._partition, self._publisher.name)

    async def skip_to(self, offset: int) -> None:
        """Take the changes of records before an offset as accepted; the position is stored, so this holds after a crash."""
        await self._mark(f"{offset}-0")

    async def drain(self) -> int:
        """Relay the current contents of the outbox; return the number of changes."""
        async with self._one_at_a_time:
            return await self._drain()

    async def _drain(self) -> int:
        position = await self._outbox.relayed(self._partition, self._publisher.name)
        if self._once and change_order(position) < change_order(self._accepted):
            position = self._accepted
            await self._mark(position)
        relayed = 0
        while entries := await self._outbox.read_outbox(self._partition, position, _BATCH, 0):
            changes = [change for _, change in entries]
            crash_point("before-relay")
            await self._publisher.publish(changes)
            position = entries[-1][0]
            await self._mark(position)
            relayed += len(entries)
            if self._count_relayed is not None:
                self._count_relayed(len(entries))
            if self._listener is not None:
                for change in changes:
                    self._listener(change)
        return relayed

    async def _mark(self, identifier: str) -> None:
        self._accepted = max(self._accepted, identifier, key=change_order)  # first: the outbox may not answer
        await self._outbox.mark_relayed(self._partition, self._publisher.name, identifier)

    async def run(self) -> None:
        """Relay whenever the outbox may have grown, until cancelled."""
        while True:
            await self.drain()
            await self._wake.wait()
            self._wake.clear()

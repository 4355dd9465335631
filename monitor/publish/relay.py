"""The relay: from the outbox of a partition to one publisher, at least once."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from monitor.crash_points import crash_point
from schemas.changes import VerdictChange

_BATCH = 500


class Outbox(Protocol):
    """What the relay needs of the store."""

    async def read_outbox(
        self, partition: int, after_id: str, count: int, block_ms: int
    ) -> Sequence[tuple[str, VerdictChange]]:
        """Return entries behind `after_id`, oldest first; wait up to `block_ms` for one."""

    async def relayed(self, partition: int, publisher: str) -> str:
        """Return the id of the last entry that a publisher has taken."""

    async def mark_relayed(self, partition: int, publisher: str, identifier: str) -> None:
        """Remember that a publisher has taken everything up to an entry."""


class Publisher(Protocol):
    """Takes verdict changes; it is handed some of them again after a crash, and tells them by their ids."""

    name: str

    async def publish(self, changes: Sequence[VerdictChange]) -> None:
        """Take changes for good: when this returns they are never offered again."""


class Relay:
    """Hands the outbox of one partition to one publisher, in order.

    `listener` is called with each change after it was published, `taken` with the number of changes of a batch.
    """

    def __init__(
        self,
        outbox: Outbox,
        partition: int,
        publisher: Publisher,
        listener: Callable[[VerdictChange], None] | None = None,
        taken: Callable[[int], None] | None = None,
    ) -> None:
        self._outbox, self._partition, self._publisher = outbox, partition, publisher
        self._listener, self._taken = listener, taken
        self._wake = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    def wake(self) -> None:
        """Say that the outbox may have grown."""
        self._wake.set()

    async def join(self) -> None:
        """Have the outbox keep what this publisher has not taken yet."""
        await self._outbox.relayed(self._partition, self._publisher.name)

    async def drain(self) -> int:
        """Relay everything that is in the outbox now; return how many changes that were."""
        async with self._one_at_a_time:
            return await self._drain()

    async def _drain(self) -> int:
        position = await self._outbox.relayed(self._partition, self._publisher.name)
        relayed = 0
        while entries := await self._outbox.read_outbox(self._partition, position, _BATCH, 0):
            changes = [change for _, change in entries]
            crash_point("before-relay")
            await self._publisher.publish(changes)
            position = entries[-1][0]
            await self._outbox.mark_relayed(self._partition, self._publisher.name, position)
            relayed += len(entries)
            if self._taken is not None:
                self._taken(len(entries))
            if self._listener is not None:
                for change in changes:
                    self._listener(change)
        return relayed

    async def run(self) -> None:
        """Relay whenever the outbox may have grown, until cancelled."""
        while True:
            await self.drain()
            await self._wake.wait()
            self._wake.clear()

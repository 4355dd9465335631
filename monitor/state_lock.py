"""Keep the state unchanged while it is read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class StateLock(asyncio.Lock):
    """Held while the state changes, or while a thread reads it.

    Work on the event loop that takes no turn may read the state without the lock, unless it is `changing`: then it is between two offsets.
    Readers queue among themselves first, so a change waits for one of them at most, however many there are.

    Attributes
    ----------
    changing : bool
        Whether the holder changes the state.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changing = False
        self._readers = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def change(self) -> AsyncIterator[None]:
        """Hold the lock, and change the state inside the context."""
        async with self:
            self.changing = True
            try:
                yield
            finally:
                self.changing = False

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        """Hold the lock, and read the state inside the context."""
        async with self._readers, self:
            yield

"""Wake the streams when the state changes: one task polls it for all of them, and none while no stream is open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from monitor.engine.state.delta import BoardEntry
from monitor.serve.report_cache import ReportCache

POLL_SECONDS: Final = 0.5

_Seen = tuple[str, int] | tuple[str, int, BoardEntry | None]


class StateWatcher:
    """Polls the event counts of what is reported, and the boards of the benchmarks, while anything subscribes.

    Attributes
    ----------
    version : int
        Grows by one with each change.
    stopped : bool
        Whether the server stops; subscribers have to end.
    """

    def __init__(self, reports: ReportCache) -> None:
        self.version = 0
        self.stopped = False
        self._reports = reports
        self._subscribers = 0
        self._polling: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    @contextlib.asynccontextmanager
    async def subscribe(self) -> AsyncIterator[None]:
        """Keep the state polled inside the context."""
        self._subscribers += 1
        if self._polling is None:
            self._polling = asyncio.create_task(self._poll(self._seen()))
        try:
            yield
        finally:
            self._subscribers -= 1
            if not self._subscribers and self._polling is not None:
                self._polling.cancel()
                self._polling = None

    async def wait(self, version: int, seconds: float) -> bool:
        """Wait for a change after `version`, or the stop; return False on timeout."""
        try:
            async with asyncio.timeout(seconds):
                while self.version == version and not self.stopped:
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """Wake every subscriber so that it ends."""
        self.stopped = True
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _poll(self, seen: list[_Seen]) -> None:
        while True:
            await asyncio.sleep(POLL_SECONDS)
            now = self._seen()
            if now != seen:
                seen = now
                self.version += 1
                self._wake()

    def _seen(self) -> list[_Seen]:
        benchmarks = self._reports.benchmarks().items()
        own = ((name, benchmark.revision, benchmark.board) for name, benchmark in benchmarks)
        return [*self._reports.events().items(), *own]

"""A beat for everyone who follows the state: one task looks at it twice a second, however many follow, and none when nobody does."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from monitor.serve.report_cache import Board

LOOK_SECONDS: Final = 0.5


class Pulse:
    """Beats when a benchmark has moved.

    Attributes
    ----------
    beat : int
        Grows by one with each beat.
    ended : bool
        Whether the server stops: whoever follows has to end too.
    """

    def __init__(self, board: Board) -> None:
        self.beat = 0
        self.ended = False
        self._board = board
        self._followers = 0
        self._looking: asyncio.Task[None] | None = None
        self._beaten = asyncio.Event()

    @contextlib.asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Have the state looked at for as long as somebody follows."""
        self._followers += 1
        if self._looking is None:
            self._looking = asyncio.create_task(self._look(self._state()))
        try:
            yield
        finally:
            self._followers -= 1
            if not self._followers and self._looking is not None:
                self._looking.cancel()
                self._looking = None

    async def wait(self, beat: int, seconds: float) -> bool:
        """Wait until there has been a beat after `beat`, or the end; False if there was none in time."""
        try:
            async with asyncio.timeout(seconds):
                while self.beat == beat and not self.ended:
                    await self._beaten.wait()
        except TimeoutError:
            return False
        return True

    def end(self) -> None:
        """Tell everyone who follows to end."""
        self.ended = True
        self._wake()

    def _wake(self) -> None:
        self._beaten.set()
        self._beaten = asyncio.Event()

    async def _look(self, seen: list[tuple[str, int]]) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._state()
            if now != seen:
                seen = now
                self.beat += 1
                self._wake()

    def _state(self) -> list[tuple[str, int]]:
        return [(name, benchmark.counters["events"]) for name, benchmark in self._board.benchmarks().items()]

"""How a command that serves is asked to end, and ends in time."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from threading import Timer
from typing import Any, Final, NoReturn

_SHARE: Final = 0.95


class Stopping:
    """Notes that the process was asked to end, and sees to it that it does within its time.

    Parameters
    ----------
    seconds : float
        How long the end may take; then the process ends as it is, with exit 1. What it has not stored is folded again.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._asked = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._ask)

    def _ask(self) -> None:
        if not self._asked.is_set():
            # A thread: whatever holds the loop up must not hold this up.
            last = Timer(_SHARE * self._seconds, _give_up, [self._seconds])
            last.daemon = True
            last.start()
            self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether a signal has come."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Wait for a signal."""
        await self._asked.wait()

    async def unless_asked(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` to its end, or cancel it when a signal comes first; what it raises is raised here."""
        running = asyncio.ensure_future(work)
        asked = asyncio.create_task(self.wait())
        try:
            await asyncio.wait({running, asked}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            asked.cancel()
            if not running.done():
                running.cancel()
                await asyncio.wait({running})
        if not running.cancelled():
            running.result()


def _give_up(seconds: float) -> NoReturn:
    os.write(2, b"rankwatch: did not end within %d s of being asked to: ends now, as if it were killed\n" % seconds)
    os._exit(1)

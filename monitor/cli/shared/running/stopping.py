"""Stop a command that serves, within its time."""

import asyncio
import os
import signal
from collections.abc import Coroutine
from threading import Timer
from typing import Any, Final, NoReturn

_SHARE: Final = 0.95


class Stopping:
    """Waits for SIGINT or SIGTERM and limits how long the end may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._signal = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._request)

    def _request(self) -> None:
        if not self._signal.is_set():
            # A thread, because a blocked event loop must not delay it.
            timer = Timer(_SHARE * self._seconds, _give_up, [self._seconds])
            timer.daemon = True
            timer.start()
            self._signal.set()

    @property
    def requested(self) -> bool:
        """Whether a signal has come."""
        return self._signal.is_set()

    async def wait(self) -> None:
        """Wait for a signal."""
        await self._signal.wait()

    async def unless_requested(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run `work` to its end and raise its error, or cancel it when a signal comes first."""
        task = asyncio.ensure_future(work)
        requested = asyncio.create_task(self.wait())
        try:
            await asyncio.wait({task, requested}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            requested.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled():
            task.result()


def _give_up(seconds: float) -> NoReturn:
    os.write(2, b"rankwatch: did not end within %d s of the signal; exiting now, as if killed\n" % seconds)
    os._exit(1)

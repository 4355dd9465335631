"""Keep the state unchanged while it is read."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from time import monotonic
from typing import Any, Final, TypeVar

from monitor.background import in_background

_Result = TypeVar("_Result")

_TURN_SECONDS: Final = 0.1  # after so long a turn of the readers ends, if a change waits


class StateTorn(Exception):  # noqa: N818 - the state is its name
    """The fold of a chunk has ended within it, and the stored state is not loaded again: nobody may read what is in memory."""

    def __init__(self) -> None:
        super().__init__("The fold of the log has failed, and the stored state is not loaded again yet")


class StateLock(asyncio.Lock):
    """Held while the state changes, or while a thread reads it."""

    # Work on the event loop that takes no turn may read the state without the lock after `at_rest`, until its next await: while a chunk is
    # folded, the state is then between two pieces of it. Readers and changes take turns. A turn of the readers, one after another, ends
    # after 0.1 s and the reader under way, so a change waits no longer, however many they are.

    def __init__(self) -> None:
        super().__init__()
        self.changing = False
        self._rests = asyncio.Event()  # whether no thread changes the state
        self._rests.set()
        self._readers = asyncio.Lock()  # held by the reader under way
        self._waiting = 0  # readers that wait for another one
        self._turn_ends: float | None = None
        """When the turn of the readers ends, which have the lock until then; None without a turn."""
        self._brief: list[Callable[[], None]] = []  # brief work that waits for the end of the change

    @contextlib.asynccontextmanager
    async def change(self) -> AsyncIterator[None]:
        """Hold the lock, and change the state inside the context."""
        async with self:
            self.changing = True
            try:
                yield
            finally:
                self.changing = False
                self._rests.set()
                brief, self._brief = self._brief, []
                for work in brief:
                    work()

    async def in_thread(self, work: Callable[[], _Result]) -> _Result:
        """Run work in a thread that changes the state; call it inside of `change`. Afterwards those at `at_rest` go on first."""
        # What work leaves that fails is not at rest before the change ends: the state is loaded again by then, or torn.
        self._rests.clear()
        result = await in_background(work)
        self._rests.set()
        await asyncio.sleep(0)
        return result

    async def at_rest(self) -> None:
        """Wait until no thread changes the state: after this it may be read until the next await."""
        while not self._rests.is_set():
            await self._rests.wait()

    def check_at_rest(self) -> None:
        """Raise an error if a thread changes the state just now."""
        if not self._rests.is_set():
            raise RuntimeError("the state is read while a thread changes it")

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[None]:
        """Hold the lock, and read the state inside the context."""
        self._waiting += 1
        try:
            await self._readers.acquire()
        except BaseException:
            self._waiting -= 1
            self._end_turn()
            raise
        self._waiting -= 1
        try:
            if self._turn_ends is None:
                await self.acquire()
                self._turn_ends = monotonic() + _TURN_SECONDS
            yield
        finally:
            self._readers.release()
            self._end_turn()

    async def read_briefly(self, work: Callable[[], _Result]) -> _Result:
        """Run work that takes no turn and hardly any time: at once, or at the end of the change, ahead of all readers."""
        if not self.changing:
            return work()
        done: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        context = copy_context()
        self._brief.append(lambda: context.run(_settle, done, work))
        return await done

    def _end_turn(self) -> None:
        """Release the lock unless a reader is under way, or the next one has time left."""
        if self._turn_ends is None or self._readers.locked():
            return
        if not self._waiting or monotonic() >= self._turn_ends:
            self._turn_ends = None
            self.release()


def _settle(done: "asyncio.Future[Any]", work: Callable[[], Any]) -> None:
    """Give the result of work, or its error, to who waits for it."""
    if done.done():
        return
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - who waits gets it
        done.set_exception(error)

"""End tasks reliably, and keep long-lived objects out of garbage collections."""

import asyncio
import gc
from collections.abc import Iterable
from typing import Any, Final

_CANCEL_AGAIN_SECONDS: Final = 0.1
_YOUNG_OBJECTS: Final = 50_000
"""New objects before a garbage collection; a few chunks make that many, and free them without one."""


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended; ignore their results."""
    pending = set(tasks)
    while pending:
        # Cancel repeatedly: a client library between the task and its connection may swallow a cancellation.
        for task in pending:
            task.cancel()
        done, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_SECONDS)
        for task in done:
            task.cancelled() or task.exception()


def freeze_heap() -> None:
    """Exclude all current objects from later garbage collections: loaded state stays, and records come by the thousand."""
    gc.set_threshold(_YOUNG_OBJECTS)
    gc.unfreeze()
    gc.collect()
    gc.freeze()

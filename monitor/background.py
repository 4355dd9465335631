"""Run work in a thread that does not keep the process from ending."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

_Result = TypeVar("_Result")


async def in_background(work: Callable[[], _Result]) -> _Result:
    """Run work in a thread of its own, in the context of the caller; return what it returns, or raise what it raises."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[_Result] = loop.create_future()

    def end(result: _Result | None, error: BaseException | None) -> None:
        if not done.done():
            done.set_result(result) if error is None else done.set_exception(error)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001 - who waits gets it
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(end, result, error)

    Thread(target=copy_context().run, args=(run,), name="background", daemon=True).start()
    return await done

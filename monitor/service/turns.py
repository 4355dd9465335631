"""Run long work on the event loop in slices, and let requests and transfers have their turns in between."""

import asyncio
from typing import Final, TypeVar

from monitor.engine.pace import Pace
from monitor.engine.slices import Slices

_Result = TypeVar("_Result")

_SECONDS: Final = 0.02  # time after which others get a turn, once the slice has ended; most chunks take less

_TURNS: Final = 8  # passes of the event loop in a turn: a request needs a few from its connection to its answer


async def in_turns(work: Slices[_Result], pace: Pace) -> _Result:
    """Run all slices at their pace, and return the result."""
    clock = asyncio.get_running_loop().time
    end = clock() + _SECONDS
    while True:
        start = clock()
        try:
            whole = next(work)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        now = clock()
        pace.took(now - start, whole=whole)
        if now >= end:
            await _turn()
            end = clock() + _SECONDS


async def _turn() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)

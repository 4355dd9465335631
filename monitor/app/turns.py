"""Run long work on the event loop in slices, and let requests and transfers have their turns in between."""

import asyncio
from typing import Final, TypeVar

from monitor.engine.slices import Pace, Slices

_Result = TypeVar("_Result")

_SECONDS: Final = 0.02
"""Time after which others get a turn, once the slice has ended; most chunks take less."""

_TURNS: Final = 8
"""Passes of the event loop in a turn: a request needs a few from its connection to its answer."""


async def in_turns(work: Slices[_Result], pace: Pace, state: asyncio.Lock) -> _Result:
    """Run all slices at their pace and return the result; `state` is free only in turns in which it can be read."""
    clock = asyncio.get_running_loop().time
    while True:
        async with state:
            end, readable = clock() + _SECONDS, False
            while not readable:
                start = clock()
                try:
                    readable = next(work)
                except StopIteration as stop:
                    return stop.value  # type: ignore[no-any-return]
                now = clock()
                pace.took(now - start)
                if now < end:
                    readable = False
                elif not readable:
                    await _turn()
                    end = clock() + _SECONDS
        await _turn()


async def _turn() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)

"""Tasks are ended even when a library in between swallows a cancellation."""

import asyncio

from monitor.app.process import end_tasks


async def test_a_swallowed_cancellation_is_asked_for_again():
    swallowed = 0

    async def deaf():
        nonlocal swallowed
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if swallowed == 2:
                    raise
                swallowed += 1

    async def failing():
        await asyncio.sleep(0)
        raise OSError("the server has gone")

    tasks = [asyncio.create_task(each()) for each in (deaf, failing)]
    await asyncio.sleep(0.01)
    async with asyncio.timeout(30):
        await end_tasks(tasks)
    assert all(task.done() for task in tasks)
    assert swallowed == 2

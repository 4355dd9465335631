"""Tasks are ended even when a library in between swallows a cancellation."""

import asyncio

import pytest

from monitor.service.process import end_tasks, run_together


class Deaf:
    """Work that swallows its first two cancellations."""

    def __init__(self):
        self.swallowed, self.ended = 0, False

    async def __call__(self):
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if self.swallowed == 2:
                    self.ended = True
                    raise
                self.swallowed += 1


async def failing():
    await asyncio.sleep(0)
    raise OSError("the server has gone")


async def test_a_swallowed_cancellation_is_asked_for_again():
    deaf = Deaf()
    tasks = [asyncio.create_task(each()) for each in (deaf, failing)]
    await asyncio.sleep(0.01)
    async with asyncio.timeout(30):
        await end_tasks(tasks)
    assert all(task.done() for task in tasks)
    assert deaf.swallowed == 2


async def test_work_side_by_side_ends_with_the_first_error():
    deaf = Deaf()
    async with asyncio.timeout(30):
        with pytest.raises(OSError, match="the server has gone"):
            await run_together(deaf(), failing())
    assert deaf.ended


async def test_work_side_by_side_ends_as_a_whole_when_it_is_cancelled():
    deaf, other = Deaf(), Deaf()
    task = asyncio.create_task(run_together(deaf(), other()))
    await asyncio.sleep(0.01)
    async with asyncio.timeout(30):
        await end_tasks([task])
    assert deaf.ended
    assert other.ended
    assert task.cancelled()

"""The lock of the state is fair to the fold, however many readers wait."""

import asyncio

from monitor.state_lock import StateLock


async def test_a_change_waits_for_one_reader_at_most():
    lock, order = StateLock(), []

    async def read(number):
        async with lock.read():
            order.append(number)
            await asyncio.sleep(0.01)

    readers = [asyncio.create_task(read(number)) for number in range(6)]
    await asyncio.sleep(0.015)
    assert len(order) < 6
    before = len(order)
    async with lock.change():
        assert lock.changing
        assert len(order) <= before + 1
    await asyncio.gather(*readers)
    assert sorted(order) == list(range(6))
    assert not lock.locked()

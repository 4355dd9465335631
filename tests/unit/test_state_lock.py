"""The lock of the state is fair: changes and readers take turns, and brief work waits for neither's queue."""

import asyncio
from contextlib import suppress

import pytest

from monitor import state_lock
from monitor.state_lock import StateLock


async def _started(lock, order, count):
    """Start readers of 10 ms each, which note their number; return when the first one reads."""
    reading = asyncio.Event()

    async def read(number):
        async with lock.read():
            order.append(number)
            reading.set()
            await asyncio.sleep(0.01)

    readers = [asyncio.create_task(read(number)) for number in range(count)]
    await reading.wait()
    assert order == [0]
    return readers


@pytest.mark.parametrize(("seconds", "ahead"), [(0.0, {1}), (0.025, {1, 2, 3, 4}), (5.0, {6})])
async def test_readers_take_turns_with_changes(monkeypatch, seconds, ahead):
    monkeypatch.setattr(state_lock, "_TURN_SECONDS", seconds)
    lock, order = StateLock(), []
    readers = await _started(lock, order, 6)
    async with lock.change():
        assert lock.changing
        assert len(order) in ahead
    await asyncio.gather(*readers)
    assert order == list(range(6))
    assert not lock.locked()


async def test_cancelled_readers_keep_no_lock():
    lock, order = StateLock(), []
    for cancelled in ([0], [1], [0, 1, 2], [2, 0]):
        order.clear()
        readers = await _started(lock, order, 3)
        for number in cancelled:
            readers[number].cancel()
        async with asyncio.timeout(5), lock.change():
            pass
        await asyncio.gather(*readers, return_exceptions=True)
        assert not lock.locked()
        assert set(order) >= {0, 1, 2} - set(cancelled)


async def test_a_reader_that_is_cancelled_as_its_turn_comes_passes_the_lock_on():
    lock, order = StateLock(), []
    first, second = await _started(lock, order, 2)
    first.add_done_callback(lambda _: second.cancel())
    await asyncio.gather(first, second, return_exceptions=True)
    assert not lock.locked()
    async with asyncio.timeout(5), lock.change():
        pass


async def test_brief_work_waits_for_the_end_of_a_change_and_for_no_reader():
    lock, order = StateLock(), []
    assert await lock.read_briefly(lambda: 1) == 1

    def brief():
        assert not lock.changing
        order.append("brief")
        return 2

    async with lock.change():
        waiting = [asyncio.create_task(lock.read_briefly(brief)), asyncio.create_task(lock.read_briefly(lambda: 1 / 0))]
        cancelled = asyncio.create_task(lock.read_briefly(lambda: order.append("cancelled")))
        await asyncio.sleep(0)
        reader = asyncio.create_task(_note(lock, order))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.sleep(0)
        assert order == []
    await reader
    assert order == ["brief", "read"]
    assert await waiting[0] == 2
    with pytest.raises(ZeroDivisionError):
        await waiting[1]
    with suppress(asyncio.CancelledError):
        await cancelled


async def _note(lock, order):
    async with lock.read():
        order.append("read")


async def test_brief_work_is_done_when_a_change_fails():
    lock, waiting = StateLock(), []

    async def fail():
        async with lock.change():
            waiting.append(asyncio.create_task(lock.read_briefly(lambda: 3)))
            await asyncio.sleep(0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await waiting[0] == 3

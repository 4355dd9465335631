"""The retry policy, on a clock that only its own waits move."""

import asyncio
import logging
import time

import pytest
from prometheus_client import REGISTRY

from monitor.retries import RetryPolicy


class AwayError(Exception):
    pass


def is_away(error):
    return isinstance(error, AwayError)


@pytest.fixture
def waits(monkeypatch):
    waits, sleep, monotonic = [], asyncio.sleep, time.monotonic

    async def wait(seconds):
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", wait)
    monkeypatch.setattr(time, "monotonic", lambda: monotonic() + sum(waits))
    return waits


class Work:
    """Fails with each of `errors`, then returns "done"."""

    def __init__(self, *errors):
        self.errors, self.calls = list(errors), 0

    async def __call__(self):
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_waits_double_with_jitter_up_to_the_longest(waits):
    policy = RetryPolicy(timeout=None, first_wait=1, longest_wait=10)
    assert await policy.run(Work(*[AwayError()] * 6), is_away) == "done"
    for low, wait in zip((1, 2, 4, 8, 10, 10), waits, strict=True):
        assert low <= wait <= min(low + 1, 10)


async def test_the_last_error_is_raised_after_the_timeout(waits):
    work = Work(*map(AwayError, range(10_000)))
    with pytest.raises(AwayError) as last:
        await RetryPolicy(timeout=30, longest_wait=2).run(work, is_away)
    assert last.value.args == (work.calls - 1,)
    assert 30 <= sum(waits) <= 32


async def test_without_a_timeout_it_retries_until_cancelled(waits):
    work = Work(*[AwayError()] * 2_000)
    assert await RetryPolicy(timeout=None).run(work, is_away) == "done"
    assert sum(waits) > 3_600


async def test_other_errors_are_not_retried(waits):
    with pytest.raises(KeyError):
        await RetryPolicy().run(Work(AwayError(), KeyError("x")), is_away)
    assert len(waits) == 1


async def test_a_cancellation_is_not_retried():
    started = asyncio.Event()
    calls = []

    async def work():
        calls.append(1)
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(RetryPolicy(timeout=None).run(work, lambda error: True))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(calls) == 1


async def test_a_wait_is_cancelled():
    failed = asyncio.Event()

    async def work():
        failed.set()
        raise AwayError

    task = asyncio.create_task(RetryPolicy(first_wait=60, longest_wait=60).run(work, is_away))
    await failed.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_server_names_the_wait(waits):
    assert await RetryPolicy(timeout=30).run(Work(AwayError()), lambda error: 7.0) == "done"
    assert waits == [7.0]


async def test_a_named_wait_beyond_the_timeout_gives_up(waits):
    with pytest.raises(AwayError):
        await RetryPolicy(timeout=30).run(Work(AwayError()), lambda error: 3600.0)
    assert waits == []


async def test_a_failed_check_ends_the_retries(waits):
    def check():
        raise RuntimeError("the server has ended")

    with pytest.raises(RuntimeError, match="has ended"):
        await RetryPolicy(check=check).run(Work(AwayError()), is_away)
    assert waits == []


async def test_retries_are_neither_logged_nor_counted_by_the_library(waits, capsys, caplog):
    with caplog.at_level(logging.DEBUG, "stamina"):
        await RetryPolicy().run(Work(AwayError()), is_away)
    assert "".join(capsys.readouterr()) == ""
    assert caplog.records == []
    assert not [metric for metric in REGISTRY.collect() if "stamina" in metric.name]

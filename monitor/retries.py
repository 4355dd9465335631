"""Retry work against a server that is away. One policy serves Redis, Kafka, the webhook and delivery over HTTP."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

import stamina
from stamina.instrumentation import set_on_retry_hooks

# By default stamina logs each retry, over the live screen, and counts it in the global Prometheus registry. Callers report their own.
set_on_retry_hooks(())

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy:
    """How long and how often work is retried; each wait doubles, with jitter."""

    timeout: float | None = 60.0  # seconds after which the last error is raised; None retries until cancelled
    # first_wait, longest_wait: bounds of a wait, in seconds
    first_wait: float = 0.05
    longest_wait: float = 2.0
    check: Callable[[], None] = lambda: None  # runs before each wait; raises if waiting is in vain

    async def run(self, work: Callable[[], Awaitable[T]], retry_on: Callable[[Exception], bool | float]) -> T:
        """Run `work` until it succeeds, fails with an error that is not retried, or the timeout passes."""

        def wait_after(error: BaseException) -> bool | float:
            if not isinstance(error, Exception):  # a cancellation
                return False
            wait = retry_on(error)
            if wait is False or (wait is not True and self.timeout is not None and wait > self.timeout):
                return False
            self.check()
            return wait

        async for attempt in stamina.retry_context(
            wait_after,
            attempts=None,
            timeout=self.timeout,
            wait_initial=self.first_wait,
            wait_max=self.longest_wait,
            wait_jitter=self.first_wait,
        ):
            with attempt:
                return await work()
        raise AssertionError("the last attempt returns or raises")


METADATA_LAG: Final = RetryPolicy(timeout=10.0, longest_wait=0.5)
"""For a broker that has just started, or a topic that was just created: one broker's metadata may lag, and each request asks any."""


async def while_metadata_lags(work: Callable[[], Awaitable[T]], *errors: type[Exception]) -> T:
    """Run `work` until it succeeds; repeat it for 10 s after these errors, which a broker that does not know a topic yet causes."""
    return await METADATA_LAG.run(work, lambda error: isinstance(error, errors))

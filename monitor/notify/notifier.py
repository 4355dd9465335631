"""Collect verdict changes and states for a moment, and send them to one target as few notifications."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from time import monotonic
from typing import Final, NamedTuple

import structlog

from monitor.notify.notification import Notification, Wording, pairs_of
from monitor.notify.targets import Target
from monitor.outbound import NotAcceptedError
from monitor.retries import RetryPolicy
from monitor.view.values import BoardNews, PairNames
from schemas.results.changes import AnyChange

log = structlog.get_logger()

WINDOW_SECONDS: Final = 60.0
_RETRIES: Final = RetryPolicy(timeout=None, first_wait=1.0, longest_wait=60.0)
"""Retries for ever: the relay remembers where to continue."""

ReadNews = Callable[[str, "frozenset[PairNames]"], Awaitable[BoardNews | None]]
"""Returns the board of a benchmark for changes of some pairs; None if it is not here any more."""


class _Waiting(NamedTuple):
    """Changes of a partition, or notifications, that wait to be sent, and who waits for them."""

    origin: str
    changes: Sequence[AnyChange]
    done: "asyncio.Future[None]"
    notifications: Sequence[Notification] = ()


class Notifier:
    """Sends notifications to one target: at most `per_minute` in a minute."""

    # The changes of all partitions that arrive within `wait` seconds are worded together. Where that makes more notifications than may be
    # sent now, one digest takes their place.

    def __init__(
        self,
        target: Target,
        wording: Wording,
        news: ReadNews,
        count_failure: Callable[[], None],
        *,
        wait: float = 10.0,
        per_minute: int = 3,
        window: float = WINDOW_SECONDS,
        retries: RetryPolicy = _RETRIES,
    ) -> None:
        self.target = target
        self._wording, self._news, self._count_failure = wording, news, count_failure
        self._wait, self._per_minute, self._window, self._retries = wait, per_minute, window, retries
        self._waiting: list[_Waiting] = []
        self._sent: deque[float] = deque()
        self._flushing: asyncio.Task[None] | None = None

    def change(self, wait: float, per_minute: int) -> None:
        """Take other limits, from the next batch on."""
        self._wait, self._per_minute = wait, per_minute

    async def send(self, origin: str, changes: Sequence[AnyChange]) -> None:
        """Send what changes are news for; return once the target has accepted it."""
        await self._enter(_Waiting(origin, changes, asyncio.get_running_loop().create_future()))

    async def announce(self, notifications: Sequence[Notification]) -> None:
        """Send notifications of states; return once the target has accepted them."""
        await self._enter(_Waiting("", (), asyncio.get_running_loop().create_future(), notifications))

    async def _enter(self, entry: _Waiting) -> None:
        self._waiting.append(entry)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())
        try:
            await entry.done
        finally:
            # A partition that moves takes what is not under way with it: its next worker sends that.
            if entry in self._waiting:
                self._waiting.remove(entry)

    async def close(self) -> None:
        """Stop sending; what is not accepted stays in the outbox."""
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)

    async def _flush(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._wait)
            await self._until_allowed()
            batch, self._waiting = self._waiting, []
            try:
                await self._send(await self._worded(batch))
            except BaseException as error:
                for entry in batch:
                    if not entry.done.done():
                        entry.done.set_exception(error) if isinstance(error, Exception) else entry.done.cancel()
                raise
            for entry in batch:
                if not entry.done.done():
                    entry.done.set_result(None)

    async def _worded(self, batch: Sequence[_Waiting]) -> list[Notification]:
        by_board: dict[tuple[str, str], list[AnyChange]] = {}
        for entry in batch:
            for change in entry.changes:
                by_board.setdefault((change.benchmark, entry.origin), []).append(change)
        notifications: list[Notification] = []
        for (benchmark, origin), changes in by_board.items():
            news = await self._news(benchmark, frozenset(pairs_of(changes)))
            notifications += self._wording.of_benchmark(origin, changes, news)
        return notifications + [each for entry in batch for each in entry.notifications]

    async def _send(self, notifications: Sequence[Notification]) -> None:
        if len(notifications) > self._allowance():
            notifications = [self._wording.digest(notifications)]
        for notification in notifications:

            async def deliver(notification: Notification = notification) -> None:
                try:
                    await asyncio.to_thread(self.target.deliver, notification)
                except NotAcceptedError as error:
                    self._count_failure()
                    log.warning("a notification was not accepted; retrying", target=self.target.name, reason=str(error))
                    raise

            self._sent.append(monotonic())
            await self._retries.run(deliver, _wait_after)

    def _allowance(self) -> int:
        """Return how many notifications may be sent now."""
        while self._sent and self._sent[0] <= monotonic() - self._window:
            self._sent.popleft()
        return max(0, self._per_minute - len(self._sent))

    async def _until_allowed(self) -> None:
        if not self._allowance():
            await asyncio.sleep(max(0.0, self._sent[0] + self._window - monotonic()))


def _wait_after(error: Exception) -> bool | float:
    """Return how long to wait after an error; False for one that is not retried."""
    if not isinstance(error, NotAcceptedError):
        return False
    return True if error.wait is None else min(error.wait, WINDOW_SECONDS)


class NotificationPublisher:
    """Passes the verdict changes of one partition that are news to a notifier."""

    def __init__(
        self,
        notifier: Notifier,
        origin: str,
        is_import: Callable[[int], Awaitable[bool]],
        count_left_out: Callable[[int], None],
    ) -> None:
        self.name = notifier.target.name
        self._notifier, self._origin, self._is_import, self._count_left_out = (
            notifier,
            origin,
            is_import,
            count_left_out,
        )

    async def publish(self, changes: Sequence[AnyChange]) -> None:
        """Send what is news; return once it is accepted."""
        offsets = {int(change.id.partition("-")[0]) for change in changes}
        imported = {offset for offset in sorted(offsets) if await self._is_import(offset)}
        news = [change for change in changes if int(change.id.partition("-")[0]) not in imported]
        if len(news) < len(changes):
            self._count_left_out(len(changes) - len(news))
        if news:
            await self._notifier.send(self._origin, news)

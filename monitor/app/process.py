"""What every way of running has in common: partitions in hand, the tasks around them, and the surfaces."""

import asyncio
import contextlib
import gc
from abc import abstractmethod
from collections import ChainMap
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from monitor.app import systemd
from monitor.app.partition_worker import PartitionWorker
from monitor.ingest.reject_limit import TooManyRejected
from monitor.logs.errors import LogError
from monitor.logs.faust_app import FaustApp
from monitor.publish.relay import Publisher
from monitor.publish.webhook import Webhook
from monitor.serve.api.intake import Intake
from monitor.serve.application import make_application
from monitor.serve.metrics.collector import MetricsCollector, WorkerInfo
from monitor.serve.metrics.process_metrics import ProcessMetrics
from monitor.serve.report_cache import ReportCache
from monitor.serve.server import WebServer
from monitor.settings import LOOPBACK, Settings
from monitor.store.errors import StoreError
from monitor.store.redis_store import RedisStore

_LOOK_SECONDS = 2.0
"""How often the store and the brokers are asked whether they answer."""


def startup_errors() -> tuple[type[Exception], ...]:
    """Return what can go wrong from outside, and says itself what to do."""
    return (LogError, StoreError, TooManyRejected, OSError, ValueError)


_AGAIN_SECONDS = 0.1


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks, and wait until they have ended; how they end is of no interest any more."""
    pending = set(tasks)
    while pending:
        # Again, and not once: a client library between the task and its connection may swallow a cancellation.
        for task in pending:
            task.cancel()
        done, pending = await asyncio.wait(pending, timeout=_AGAIN_SECONDS)
        for task in done:
            task.cancelled() or task.exception()


_YOUNG_OBJECTS = 50_000
"""New objects before the garbage collector looks at them: those of a few chunks, which go without it, are no reason to."""


def settle_heap() -> None:
    """Leave what is in memory now out of later garbage collections: what is loaded stays, and records come by the thousand."""
    gc.set_threshold(_YOUNG_OBJECTS)
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class MonitorProcess:
    """A process that owns partitions; use it as an async context manager.

    Attributes
    ----------
    reports : ReportCache
        Reports of the benchmarks of the partitions in hand.
    owned : dict of int to PartitionWorker
        The partitions in hand.
    web : WebServer or None
        Once it serves.
    """

    mode: str
    store: RedisStore
    _faust: FaustApp

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.partitions: dict[int, PartitionWorker] = {}
        self.reports = ReportCache(
            lambda: [owned.partition for owned in self.partitions.values()],
            lambda: ChainMap(*(owned.commit_times for owned in self.partitions.values())),
        )
        self.web: WebServer | None = None
        self.process_metrics = ProcessMetrics()
        self._store_answers = True
        self._cleanup = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[Any]] = []

    async def __aenter__(self) -> Self:
        self._cleanup.callback(gc.unfreeze)
        self._cleanup.callback(gc.set_threshold, *gc.get_threshold())
        try:
            await self._start()
            self._tasks += [asyncio.create_task(self._look_around()), asyncio.create_task(systemd.keep_alive())]
            settle_heap()
            systemd.notify(systemd.READY)
        except BaseException:
            await self._cleanup.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        systemd.notify(systemd.STOPPING)
        await self._cleanup.aclose()

    @abstractmethod
    async def _start(self) -> None:
        """Start everything; what has to be undone goes to `_cleanup`."""

    @abstractmethod
    def _waiting_for(self) -> str | None:
        """Say what it is waiting for, or None when it is ready."""

    @abstractmethod
    def _log_ends(self) -> dict[int, int]:
        """Return where the log of each partition in hand ends."""

    @abstractmethod
    def _intake(self) -> Intake:
        """Return where events that are posted go."""

    @abstractmethod
    def _log_partitions(self) -> int:
        """Return how many partitions the log has."""

    async def _look(self) -> None:
        """Ask what this process depends on whether it answers."""
        answers = self._store_answers = await self.store.answers()
        self.process_metrics.store_up.set(answers)
        if not answers:
            return
        # Only to show it: a store that goes away meanwhile is no fault of the look, and must not hold up the next one.
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                for owned in list(self.partitions.values()):
                    await owned.outbox_length()

    async def _look_around(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(_LOOK_SECONDS)

    async def _publishers(self, first: Publisher, partition: int) -> list[Publisher]:
        """Return who takes the verdict changes of a partition: `first`, and the webhook if one is set."""
        settings = self.settings
        if settings.webhook_url is None:
            await self.store.forget_publisher(partition, Webhook.name)
            return [first]
        webhook = Webhook(
            settings.webhook_url.get_secret_value(),
            settings.webhook_format,
            settings.webhook_secret.get_secret_value() if settings.webhook_secret else None,
            f"{settings.topic}/{partition}",
            self.process_metrics.relay_failures.labels(Webhook.name).inc,
        )
        return [first, webhook]

    async def _start_web(self) -> None:
        settings = self.settings
        worker = WorkerInfo(
            mode=self.mode,
            topic=settings.topic,
            group=settings.group,
            webhook=settings.webhook_url is not None,
            partitions=self._log_partitions,
            log_end=self._log_ends,
            ready=lambda: self._waiting_for() is None,
        )
        token = settings.token.get_secret_value() if settings.token else None
        web = make_application(
            self.reports,
            MetricsCollector(self.reports, worker, self.process_metrics.registry).scrape,
            self._waiting_for,
            token=token,
            loopback=settings.host in LOOPBACK,
            low_coverage=settings.low_coverage,
            intake=self._intake(),
            body_bytes=settings.max_body_bytes,
        )
        self.web = WebServer(web, settings.host, settings.port)
        self._cleanup.push_async_callback(self.web.stop)
        await self.web.start()

    async def _snapshots(self) -> None:
        while True:
            await asyncio.sleep(self.settings.snapshot_seconds)
            for owned in list(self.partitions.values()):
                await owned.save_pairs()

    def _watchers(self) -> list[asyncio.Task[Any]]:
        """Begin to watch what else may fail; the tasks never end well."""
        return []

    async def failed(self) -> None:
        """Wait until the fold, a relay or something else that is needed fails, and raise the reason."""
        own = [asyncio.create_task(self._faust.wait_failed()), *self._watchers()]
        try:
            done, _ = await asyncio.wait([*own, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in own:
                task.cancel()
        for task in done:
            task.result()

    async def _end_tasks(self) -> None:
        await end_tasks(self._tasks)

    @property
    def rejected(self) -> int:
        """Records that could not be read, in whichever partition."""
        return sum(owned.rejected for owned in self.partitions.values())

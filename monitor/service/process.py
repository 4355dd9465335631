"""Run partitions with their background tasks and the web server: the parts that `watch`, `run` and `serve` share."""

import asyncio
import contextlib
import gc
import sys
from abc import abstractmethod
from collections import ChainMap
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from time import monotonic
from typing import Any, Final, Self

from fastapi import FastAPI
from faust.types import TP

from monitor.files.reject_limit import TooManyRejected
from monitor.instruments import ProcessMetrics
from monitor.log.errors import LogError
from monitor.log.faust_app import FaustApp
from monitor.notices import Notices
from monitor.notify.notification import Wording
from monitor.notify.notifier import NotificationPublisher, Notifier
from monitor.notify.states import StateWatch
from monitor.notify.targets import ALERTMANAGER, PUBLISHERS, targets
from monitor.outbound import Allowed
from monitor.publish.relay import Publisher
from monitor.publish.webhook import Webhook
from monitor.serve.access.audit import Audit
from monitor.serve.access.limits import ClientLimits
from monitor.serve.access.rules import AccessRules
from monitor.serve.api.writing.request import Intake
from monitor.serve.log_position import FoldedLog, WholeLog
from monitor.serve.metrics.catalogue import READ_SIDE, Mode
from monitor.serve.metrics.collector import MetricsCollector, WorkerInfo
from monitor.serve.report_cache import ReportCache
from monitor.serve.server import WebServer
from monitor.serve.serving import FileResults, ReadFile, ReadOtlp, Scrape, Serving
from monitor.service import systemd
from monitor.service.folded_partition import FoldedPartition
from monitor.service.loops import load_loops
from monitor.service.owned_partition import PartitionWorker
from monitor.service.state_notices import StateNotices
from monitor.settings import LOOPBACK, Settings
from monitor.state_lock import StateLock, StateTorn
from monitor.store.errors import StoreError
from monitor.store.redis_store import RedisStore
from monitor.store.state_reader import StateReader
from monitor.view.partition_view import PartitionView
from monitor.view.values import BoardNews, PairNames
from schemas.records.packed import is_imported
from schemas.records.suites import parse_suites

_PROBE_SECONDS: Final = 2.0  # how often the store and the brokers are probed

_COMPARE_SECONDS: Final = 2.0
"""How often the offsets of all partitions are compared with the stored ones: the next record, which would show it, may come in hours."""

_CANCEL_AGAIN_SECONDS: Final = 0.1
_SWITCH_SECONDS: Final = (
    0.001  # after so long the thread that folds passes the interpreter's lock on; an answer takes it a few times
)
_YOUNG_OBJECTS: Final = 50_000
"""New objects before a garbage collection; a few chunks make that many, and free them without one."""


def startup_errors() -> tuple[type[Exception], ...]:
    """Return the errors with causes outside the program; their messages hold the fix."""
    return (LogError, StoreError, TooManyRejected, OSError, ValueError)


class ServedProcess:
    """A process that serves the fold of partitions; use it as an async context manager."""

    mode: Mode
    group = ""
    store: StateReader
    _access: AccessRules

    def __init__(self, settings: Settings, *, shown: Callable[[str], bool] | None = None) -> None:
        self.settings = settings
        self._state = StateLock()  # held while the state of a partition changes
        self.reports = ReportCache(
            lambda: [PartitionView(folded.readable) for folded in self._folded()],
            lambda: ChainMap(*(folded.commit_times for folded in self._folded())),
            self._state,
            lambda: {folded.number: folded.committed for folded in self._folded()},
            shown,
        )
        self._show_as_set()
        self.web: WebServer | None = None
        self.process_metrics = ProcessMetrics()
        self._store_answers = True
        self._limits = ClientLimits(settings.client_events_per_second, settings.client_bytes_per_second)
        self._cleanup = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[Any]] = []

    def reload(self, changed: Mapping[str, Any]) -> None:
        """Take new values of settings that may change while it runs: those of `monitor.settings.RELOADED`."""
        settings = self.settings = self.settings.model_copy(update=dict(changed))
        self._limits.change(settings.client_events_per_second, settings.client_bytes_per_second)
        if changed.keys() & {"suites", "suite_missing", "distinct_items", "prices"}:
            self._show_as_set()

    def _show_as_set(self) -> None:
        """Report the suites and the prices of the settings."""
        settings = self.settings
        parse = partial(parse_suites, missing=settings.suite_missing, distinct=settings.distinct_items)
        suites = parse(settings.suites) if self.mode in READ_SIDE else []
        self.reports.show_as(suites, settings.prices)

    def _comes_first(self, benchmark: str) -> bool:
        """Return whether the models and pairs of a benchmark come first in the metrics."""
        return any(fnmatchcase(benchmark, each.strip()) for each in self.settings.metrics_first.split(","))

    @abstractmethod
    def _folded(self) -> Sequence[FoldedPartition]:
        """Return the current partitions."""

    async def __aenter__(self) -> Self:
        self._cleanup.callback(gc.unfreeze)
        self._cleanup.callback(gc.set_threshold, *gc.get_threshold())
        self._cleanup.callback(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(_SWITCH_SECONDS)
        await asyncio.to_thread(load_loops)
        gc.freeze()  # what imports made; to look through it takes 0.1 s, in which no probe would be answered
        try:
            self._access = access_rules(self.settings)
            await self._start()
            self._tasks += [asyncio.create_task(self._probe_repeatedly()), asyncio.create_task(systemd.keep_alive())]
            freeze_heap()
            systemd.notify(systemd.READY)
        except BaseException:
            await self._cleanup.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        systemd.notify(systemd.STOPPING)
        await self._cleanup.aclose()

    @abstractmethod
    async def _start(self) -> None:
        """Start everything; register the cleanup in `_cleanup`."""

    @abstractmethod
    def _waiting_for(self) -> str | None:
        """Return the reason why it is not ready, or None."""

    def _not_ready(self) -> str | None:
        """Return the reason why it is not ready, or None; also where its state cannot be shown."""
        return next((str(StateTorn()) for folded in self._folded() if folded.torn), None) or self._waiting_for()

    def _holds(self) -> str:
        """Return what `/readyz` answers when it is ready."""
        return "ok"

    @abstractmethod
    def _log_ends(self) -> dict[int, int]:
        """Return the end of the log of each current partition."""

    @abstractmethod
    def _log_partitions(self) -> int:
        """Return the partition count of the log."""

    def _folded_log(self) -> FoldedLog:
        """Return how far the log is folded."""
        return WholeLog(lambda: {folded.number: folded.off for folded in self._folded()})

    async def _probe(self) -> None:
        """Probe the servers that this process depends on."""
        self._store_answers = await self.store.answers()
        self.process_metrics.store_up.set(self._store_answers)

    async def _probe_repeatedly(self) -> None:
        while True:
            await self._probe()
            await asyncio.sleep(_PROBE_SECONDS)

    async def _start_web(self) -> None:
        settings = self.settings
        worker = WorkerInfo(
            mode=self.mode,
            topic=settings.topic,
            group=self.group,
            webhook=settings.webhook_url is not None,
            partitions=self._log_partitions,
            log_end=self._log_ends,
            ready=lambda: self._not_ready() is None,
            series=lambda: self.settings.metrics_series,
            first=self._comes_first,
        )
        scrape = MetricsCollector(self.reports, worker, self.process_metrics.registry).scrape
        self.web = WebServer(
            self._application(scrape), settings.host, settings.port, settings.connections, settings.client_connections
        )
        self._cleanup.push_async_callback(self.web.stop)
        await self.web.start()

    @abstractmethod
    def _application(self, scrape: Scrape) -> FastAPI:
        """Return what it serves."""

    def _read_side(
        self, scrape: Scrape, intake: Intake, watched: Sequence[str] = (), topic: str | None = None
    ) -> Serving:
        """Return page, API, metrics and probes; what is posted goes to the intake. The page names the paths or the topic that are read."""
        settings = self.settings
        return Serving(
            self.reports,
            scrape,
            self._not_ready,
            self._folded_log(),
            access=self._access,
            loopback=settings.host in LOOPBACK,
            low_coverage=settings.low_coverage,
            cache_seconds=settings.cache_seconds,
            intake=intake,
            read_otlp=_otlp_reader(settings),
            read_file=_file_reader(settings),
            body_bytes=settings.max_body_bytes,
            limits=self._limits,
            audit=self._audit(),
            holds=self._holds,
            count_quota=lambda quota: self.process_metrics.quota_refusals.labels(quota).inc(),
            watched=watched,
            topic=topic,
        )

    def _audit(self) -> Audit:
        return Audit(self.settings.audit_file, self.settings.audit_bytes)

    def _watchers(self) -> list[asyncio.Task[Any]]:
        """Return tasks that watch other parts; a task ends only by raising."""
        return []

    async def failed(self) -> None:
        """Wait until the fold, a relay or another needed part fails, and raise its error."""
        own = self._watchers()
        try:
            done, _ = await asyncio.wait([*own, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in own:
                task.cancel()
        for task in done:
            task.result()


class MonitorProcess(ServedProcess):
    """A process that owns partitions: it folds their log, and stores and publishes the result."""

    store: RedisStore
    _faust: FaustApp
    _notices: Notices | None = None

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.group = settings.group
        self.partitions: dict[int, PartitionWorker] = {}
        self._notifiers: list[Notifier] = []
        self._state_notices: list[StateNotices] = []

    async def __aenter__(self) -> Self:
        wording = Wording(self._page, self.settings.runbooks_url)
        for target in targets(self.settings):
            failures = self.process_metrics.relay_failures.labels(target.name)
            notifier = Notifier(
                target,
                wording,
                self._news,
                failures.inc,
                wait=self.settings.notify_wait_seconds,
                per_minute=self.settings.notify_per_minute,
            )
            self._notifiers.append(notifier)
            self._cleanup.push_async_callback(notifier.close)
        await super().__aenter__()
        held, stalled = self.settings.notify_held_seconds, self.settings.notify_stalled_seconds
        self._state_notices = [
            StateNotices(notifier, StateWatch(wording, held, stalled), self.store, self._folded)
            for notifier in self._notifiers
            if notifier.target.name != ALERTMANAGER  # there the rules of Prometheus notify
        ]
        self._tasks += [asyncio.create_task(each.run()) for each in self._state_notices]
        return self

    def reload(self, changed: Mapping[str, Any]) -> None:
        """Take new values; those of notifications too."""
        super().reload(changed)
        settings = self.settings
        for notifier in self._notifiers:
            notifier.change(settings.notify_wait_seconds, settings.notify_per_minute)
        for notices in self._state_notices:
            notices.change(settings.notify_held_seconds, settings.notify_stalled_seconds)

    def _folded(self) -> Sequence[PartitionWorker]:
        return list(self.partitions.values())

    async def _probe(self) -> None:
        await super()._probe()
        if not self._store_answers:
            return
        # For the metrics only: a store that goes away meanwhile must not fail or delay the probes.
        with contextlib.suppress(StoreError, TimeoutError):
            async with asyncio.timeout(_PROBE_SECONDS):
                for worker in self._folded():
                    await worker.outbox_length()

    async def _publishers(self, first: Publisher, partition: int) -> list[Publisher]:
        """Return the publishers of a partition: `first`, and the webhook if one is set."""
        settings, publishers = self.settings, [first]
        unused = {Webhook.name, *PUBLISHERS} - {notifier.target.name for notifier in self._notifiers}
        if settings.webhook_url is not None:
            publishers.append(
                Webhook(
                    settings.webhook_url.get_secret_value(),
                    settings.webhook_format,
                    settings.webhook_secret.get_secret_value() if settings.webhook_secret else None,
                    f"{settings.topic}/{partition}",
                    self.process_metrics.relay_failures.labels(Webhook.name).inc,
                    Allowed(settings.private_addresses),
                )
            )
            unused.remove(Webhook.name)
        for name in sorted(unused):
            await self.store.forget_publisher(partition, name)
        return publishers

    def _news_publishers(self, partition: int) -> list[Publisher]:
        """Return the publishers of the notifications that are set."""
        return [
            NotificationPublisher(
                notifier,
                f"{self.settings.topic}/{partition}",
                partial(self._is_import, partition),
                self.process_metrics.notifications_omitted.labels(notifier.target.name).inc,
            )
            for notifier in self._notifiers
        ]

    async def _is_import(self, partition: int, offset: int) -> bool:
        """Return whether the record at an offset was imported; a record that is gone was not."""
        worker = self.partitions.get(partition)
        known = None if worker is None else worker.is_import(offset)
        if known is not None:
            return known
        record = await self._record(partition, offset)
        return record is not None and is_imported(record)

    @abstractmethod
    async def _record(self, partition: int, offset: int) -> bytes | None:
        """Return a record of the log, or None if it cannot be read."""

    async def _news(self, benchmark: str, pairs: frozenset[PairNames]) -> BoardNews | None:
        try:
            return await self.reports.read(lambda: self.reports.news(benchmark, pairs), [benchmark])
        except StateTorn:
            return None

    def _page(self) -> str | None:
        """Return the address of the page, for links."""
        own = self.web.url if self.web is not None and self.mode == "watch" else None
        return self.settings.public_url or own

    async def _snapshots(self) -> None:
        while True:
            await asyncio.sleep(self.settings.snapshot_seconds)
            started = monotonic()
            saved = sum([await worker.save_pairs() for worker in list(self.partitions.values())])
            if saved and self._notices is not None:
                self._notices.log("info", "pair sums saved", benchmarks=saved, seconds=round(monotonic() - started, 3))

    def _watchers(self) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(self._faust.wait_failed()), asyncio.create_task(self._compare_with_store())]

    async def _compare_with_store(self) -> None:
        """Go back to the stored state where the server has lost writes, by a failover or a restart."""
        while True:
            await asyncio.sleep(_COMPARE_SECONDS)
            lost: list[int] = []
            with contextlib.suppress(StoreError):  # the probes report it, and the next commit meets it
                await self.store.keep_origin_key()
                lost = await self.store.lost_writes(
                    {number: worker.committed for number, worker in self.partitions.items()}
                )
            for number in lost:
                worker = self.partitions.get(number)
                if worker is not None and await worker.load_if_lost():
                    await self._faust.consumer.seek_wait({TP(self.settings.topic, number): worker.partition.off})

    @property
    def rejected(self) -> int:
        """Rejected records, over all partitions."""
        return sum(worker.rejected for worker in self.partitions.values())


def access_rules(settings: Settings) -> AccessRules:
    """Return who may read, write and declare."""
    token = settings.token.get_secret_value() if settings.token else None
    return AccessRules(
        token,
        settings.access_file,
        settings.anonymous_read,
        settings.trusted_proxies,
        settings.proxy_user_header,
        settings.proxy_groups_header,
    )


def _otlp_reader(settings: Settings) -> ReadOtlp | None:
    """Return what reads exports of OpenTelemetry, if they are mapped."""
    if settings.otel_map is None:
        return None
    from monitor.service.otlp_reader import OtlpReader  # noqa: PLC0415 - start-up: few servers read them

    return OtlpReader(settings.otel_map).read


def _file_reader(settings: Settings) -> ReadFile:
    """Return what reads posted files; it is loaded with the first of them."""

    def read(name: str, body: bytes, model: str | None) -> FileResults:
        from monitor.service.file_reader import FileReader  # noqa: PLC0415 - start-up: it loads every format, and few servers get files

        return FileReader(settings.max_body_bytes)(name, body, model)

    return read


async def end_tasks(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended; ignore their results."""
    pending = set(tasks)
    while pending:
        # Cancel repeatedly: a client library between the task and its connection may swallow a cancellation.
        for task in pending:
            task.cancel()
        done, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_SECONDS)
        for task in done:
            task.cancelled() or task.exception()


async def run_together(*work: Coroutine[Any, Any, None]) -> None:
    """Run until one of several coroutines ends or raises, then end the others."""
    # A task group would cancel each of them only once, see `end_tasks`, and then wait without end for one that has swallowed it.
    tasks = [asyncio.create_task(each) for each in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ending = asyncio.ensure_future(end_tasks(tasks))
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):  # cancelled again
                await asyncio.shield(ending)
    for task in done:
        task.result()


def freeze_heap() -> None:
    """Exclude all current objects from later garbage collections: loaded state stays, and records come by the thousand."""
    gc.set_threshold(_YOUNG_OBJECTS)
    gc.collect()
    gc.freeze()


def thaw_heap() -> None:
    """Include all objects again, because loaded state goes."""
    gc.unfreeze()

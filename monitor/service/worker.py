"""Fold the partitions of a Kafka topic that the consumer group assigns to this worker; the state is in Redis."""

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping
from functools import partial
from time import monotonic
from typing import Any

import structlog
from aiokafka.errors import KafkaError
from fastapi import FastAPI
from faust.types import TP

from monitor.log.errors import LogError
from monitor.log.faust_app import make_app
from monitor.log.kafka.records import read_record
from monitor.log.kafka.settings import KafkaSettings
from monitor.notices import Notices
from monitor.publish.dead_letter_topic import DeadLetterTopic
from monitor.publish.kafka_errors import broker_error
from monitor.publish.kafka_producer import KafkaProducer
from monitor.publish.republisher import Republisher
from monitor.publish.verdict_topic import VerdictTopic
from monitor.retries import RetryPolicy
from monitor.serve.application import make_worker_application
from monitor.serve.metrics.catalogue import Mode
from monitor.serve.serving import Scrape, Serving
from monitor.service.owned_partition import LogSpan, Outlets, PartitionWorker
from monitor.service.process import MonitorProcess, end_tasks, freeze_heap, thaw_heap
from monitor.service.source_topic import SourceTopic, linger
from monitor.settings import LOOPBACK, Settings
from monitor.state_lock import StateTorn
from monitor.store.redis_store import RedisStore
from schemas.records.ownership import owner

log = structlog.get_logger()

_WATCH_SECONDS = 1.0
_COMPARE_SECONDS = 5.0

_OF_GOAL = {"goal", "state", "reason", "items_run", "items_full", "saved_ratio", "cost_run", "cost_saved"}
"""What the log has of a goal at the stop."""

READY_LAG = 20_000  # records that may wait to be folded while a worker reports that it is ready


class Stalled(LogError):  # noqa: N818
    """There are records to fold, but none is folded."""


class ClusterWorker(MonitorProcess):
    """Folds the partitions that the group assigns, and releases those that it revokes."""

    mode: Mode = "run"
    _notices: Notices

    def __init__(self, settings: Settings, kafka: KafkaSettings) -> None:
        super().__init__(settings)
        self._kafka = kafka
        self._source = SourceTopic(settings, kafka)
        self._relays: dict[int, asyncio.Task[None]] = {}
        self._paused: set[int] = set()  # partitions that are not read until their publishers have caught up
        self._assigned = False
        self._notices = Notices()
        self._broker_up = self.process_metrics.add_broker()

    async def _start(self) -> None:
        settings = self.settings
        options = self._kafka.client_options()
        async with asyncio.timeout(settings.start_seconds):
            await self._source.provide()
        assert settings.redis_url is not None, "the command asks for it"
        self.store = await RedisStore.open(
            settings.redis_url.get_secret_value(), settings.topic, retries=RetryPolicy(timeout=settings.start_seconds)
        )
        self._cleanup.push_async_callback(self.store.close)
        for server in self.store.cutting_servers:
            log.info("a server that may cut its file inside a transaction; each load looks for that", server=server)
        compression = None if settings.kafka_compression == "none" else settings.kafka_compression
        self._producer = KafkaProducer(options, compression=compression, timeout=settings.start_seconds)
        await self._cleanup.enter_async_context(self._producer)
        self._letters = DeadLetterTopic(self._producer, settings.topic)
        self._origin_key = await self.store.origin_key(self._source.identity)
        self._republish = Republisher(self._producer, settings.topic, self._source.partitions, self._origin_key)

        self._make_faust()
        await self._start_web()
        await self._check_before_joining()
        self._cleanup.push_async_callback(self._stop_folding)
        try:
            await self._faust.start()
        except KafkaError as error:  # the brokers went away after the topics were checked
            raise broker_error(error, self._kafka.addresses) from error
        self._tasks.append(asyncio.create_task(self._snapshots()))

    async def _check_before_joining(self) -> None:
        """Check what would be refused after the group was joined: a worker that refuses must not interrupt those that do not."""
        # It stays up for `linger_seconds` first, so that an alert can fire, and a supervisor does not start it in a tight loop.
        source = self._source

        async def check() -> None:
            numbers = range(source.partitions)
            await source.check_states(await self.store.check_states(numbers, source.identity))

        await self._linger(check())

    async def _linger(self, failed: Awaitable[None]) -> None:
        await linger(failed, self.process_metrics, self.settings.linger_seconds, self._kafka.addresses)

    def _make_faust(self) -> None:
        settings = self.settings
        url = f"kafka://{self._kafka.addresses}/{settings.topic}"
        app = self._faust = make_app(url, settings.topic, app_id=settings.group, kafka=self._kafka)

        app.on_reconnected = self._compare
        app.origin_key, app.topic_folded = self._origin_key, self._source.topic

        def has_passed(generation: int) -> bool:
            return bool(generation != app.consumer_generation_id)

        async def fold(stream: Any) -> None:  # noqa: ANN401 - a Faust stream of chunks
            async for chunk in stream:
                worker = self.partitions.get(chunk.partition)
                if worker is None:
                    continue
                tp = TP(settings.topic, chunk.partition)
                follows = partial(app.consumer.has_read_on, tp)
                is_revoked = partial(has_passed, app.consumer_generation_id)
                if not await worker.fold(chunk, follows, is_revoked):
                    await app.consumer.seek_wait({tp: worker.partition.off})
                if worker.is_full:
                    app.consumer.pause_partitions({tp})
                    self._paused.add(chunk.partition)

        app.on_assigned, app.on_revoked, app.stored_offsets = self._take, self._pause, self._offsets
        app.fold_by(fold)

    async def _stop_folding(self) -> None:
        # Stopping Faust cancels the agent wherever it waits, so let the current chunk be committed first.
        self._faust.flow_control.suspend()
        for worker in self.partitions.values():
            worker.ending = True
        try:
            async with asyncio.timeout(0.4 * self.settings.drain_seconds):
                await self._faust.settled()
        except TimeoutError:
            log.warning("the current chunk was not finished in time; the next owner of the partition folds it again")
        await self._faust.stop()
        await end_tasks(self._tasks)
        self._log_goals(0.1 * self.settings.drain_seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2 * self.settings.drain_seconds):
                await self._release()

    def _log_goals(self, seconds: float) -> None:
        """Log the goal of each benchmark: whether it is met, and what was run and saved; what takes longer is omitted."""
        end = monotonic() + seconds
        try:
            benchmarks = self.reports.benchmarks()
        except StateTorn:
            return
        with_goal = [name for name, each in sorted(benchmarks.items()) if each.spec.goal is not None]
        for position, name in enumerate(with_goal):
            if monotonic() > end:
                log.info("goals omitted: the stop has no more time", goals=len(with_goal) - position)
                return
            report = self.reports.goal(name)
            if report is not None:
                log.info(
                    "goal",
                    benchmark=name,
                    **{k: v for k, v in report.as_dict().items() if k in _OF_GOAL and v is not None},
                )

    async def _take(self, partitions: set[TP]) -> None:
        """Keep the partitions that stay, drop those that have gone, and load those that have come."""
        started = monotonic()
        numbers = {tp.partition for tp in partitions}
        kept = {number for number in numbers & self.partitions.keys() if await self.partitions[number].is_current()}
        gone = sorted(self.partitions.keys() - kept)
        moved = [self._drop(number) for number in gone]
        if gone or numbers - kept:
            self.reports.clear()
        if gone:
            thaw_heap()
        await asyncio.gather(*(worker.release() for worker in moved))
        partitions = {tp for tp in partitions if tp.partition not in kept}
        if partitions or not kept:
            await self._load(partitions)
        self._assigned = True
        seconds = round(monotonic() - started, 3)
        log.info("partitions assigned", partitions=sorted(numbers), kept=sorted(kept), dropped=gone, seconds=seconds)

    async def _load(self, partitions: set[TP]) -> None:
        """Load partitions that have come to this worker."""
        consumer = self._faust.consumer
        if not partitions and consumer.topic_partitions(self.settings.topic) is None:
            # A spare worker waits for partitions, but not of a topic that is gone. A broker that has just started may not know it yet.
            await self._source.check_exists()
        first = dict(await consumer.earliest_offsets(*partitions))
        ends = await consumer.highwaters(*partitions)
        await consumer.check_topic()
        for tp in sorted(partitions):
            number = tp.partition
            await self.store.bind_log(number, self._source.identity)
            worker = PartitionWorker(
                number,
                self.store,
                Outlets(
                    await self._publishers(
                        VerdictTopic(self._producer, self.settings.topic, number, self.settings.verdict_topic), number
                    ),
                    self._news_publishers(number),
                    most=self.settings.outbox_changes,
                ),
                self._letters.keep,
                LogSpan(earliest=first[tp], end=ends[tp], accept_gap=self.settings.accept_gap),
                republish=self._republish,
                notices=self._notices,
                owner=lambda benchmark: owner(benchmark, self._source.partitions),
                process_metrics=self.process_metrics,
                state=self._state,
            )
            await worker.load()
            # Retention may have passed while the load waited for the store.
            first |= await consumer.earliest_offsets(tp)
            await self._source.check_last_record(number, worker.last, first[tp])
            self.partitions[number] = worker
            self.process_metrics.add_partition(number, self.settings.outbox_changes)
            self._relays[number] = asyncio.create_task(worker.run_relays())
        freeze_heap()

    async def _compare(self, tp: TP) -> bool:
        """Compare the last folded record with the log; return False if the brokers do not answer, raise `SourceGap` if they differ."""
        worker = self.partitions.get(tp.partition)
        if worker is None:
            return True
        try:
            async with asyncio.timeout(_COMPARE_SECONDS):
                first = await self._faust.consumer.earliest_offsets(tp)
                await self._source.check_last_record(tp.partition, worker.last, first[tp])
        except (KafkaError, TimeoutError):
            return False
        return True

    async def _pause(self, partitions: set[TP]) -> None:  # noqa: ARG002 - it is always all of them
        """Store what is folded ahead of a rebalance; most partitions stay, and are not loaded again."""
        await asyncio.gather(*(worker.pause() for worker in self.partitions.values()))

    def _drop(self, number: int) -> PartitionWorker:
        """Give a partition up, and return its worker, which is to be released."""
        self._relays.pop(number).cancel()
        self.process_metrics.remove_partition(number)
        return self.partitions.pop(number)

    async def _release(self) -> None:
        """Release every partition: relay its outbox, save its pair sums, drop it."""
        relays = list(self._relays.values())
        workers = [self._drop(number) for number in list(self.partitions)]
        self.reports.clear()
        await end_tasks(relays)
        for worker in workers:
            await worker.release()

    async def _offsets(self, partitions: set[TP]) -> Mapping[TP, int]:
        return {tp: self.partitions[tp.partition].partition.off for tp in partitions if tp.partition in self.partitions}

    def _application(self, scrape: Scrape) -> FastAPI:
        """Return what it serves: probes and its own metrics; readers have the rest."""
        return make_worker_application(
            Serving(
                self.reports,
                scrape,
                self._not_ready,
                access=self._access,
                audit=self._audit(),
                loopback=self.settings.host in LOOPBACK,
                low_coverage=self.settings.low_coverage,
                holds=self._holds,
            )
        )

    def _log_partitions(self) -> int:
        return self._source.partitions

    async def _record(self, partition: int, offset: int) -> bytes | None:
        try:
            return await read_record(self._kafka, self.settings.topic, partition, offset)
        except KafkaError:
            return None  # a notification too many is better than one that is lost

    def _log_ends(self) -> dict[int, int]:
        consumer, topic = self._faust.consumer, self.settings.topic
        ends = {number: consumer.highwater(TP(topic, number)) for number in self.partitions}
        return {number: end for number, end in ends.items() if end is not None}

    @property
    def lag(self) -> int:
        """Records in the logs of the assigned partitions that are not folded yet."""
        return sum(max(0, end - self.partitions[number].committed) for number, end in self._log_ends().items())

    def _waiting_for(self) -> str | None:
        if not self._assigned:
            return "waiting for partitions to be assigned"
        if not self._store_answers:
            return "the store does not answer"
        lag = self.lag
        return f"catching up: {lag:,} records are not folded yet" if lag > READY_LAG else None

    def _report_lag(self, ends: Mapping[int, int]) -> None:
        lags = {number: end - self.partitions[number].committed for number, end in ends.items()}
        if (total := sum(lags.values())) > READY_LAG:
            worst = max(lags, key=lags.__getitem__)
            self._notices.log("warning", "lag", records=total, partition=worst, of_it=lags[worst])

    def _holds(self) -> str:
        numbers = ", ".join(map(str, sorted(self.partitions))) or "none"
        benchmarks = sum(len(worker.partition.benchmarks) for worker in self.partitions.values())
        return f"ok: partitions {numbers} of {self._source.partitions}; benchmarks {benchmarks:,}"

    async def _probe(self) -> None:
        await super()._probe()
        self._broker_up.set(await self._producer.answers())

    async def failed(self) -> None:
        """Wait until a needed part fails, and raise its error; a gap in the log stays in the metrics for `linger_seconds` first."""
        await self._linger(super().failed())

    def _watchers(self) -> list[asyncio.Task[Any]]:
        return [*super()._watchers(), asyncio.create_task(self._watch())]

    async def _watch(self) -> None:
        """Raise if a relay fails, if there are records to fold but none is folded, or if the topic is another one."""
        seen: dict[int, tuple[int, float]] = {}
        while True:
            await asyncio.sleep(_WATCH_SECONDS)
            await self._faust.consumer.check_topic()
            now = monotonic()
            for number, task in list(self._relays.items()):
                if task.done() and not task.cancelled():
                    task.result()
                    log.error("a relay has ended", partition=number)
            ends = self._log_ends()
            self._report_lag(ends)
            for number, worker in list(self.partitions.items()):
                moved, since = seen.get(number, (-1, now))
                paused = number in self._paused  # it may have room by now: the probe also asks
                if paused and await worker.has_room():
                    self._faust.consumer.resume_partitions({TP(self.settings.topic, number)})
                    self._paused.discard(number)
                if paused or worker.committed != moved or ends.get(number, 0) <= worker.committed:
                    seen[number] = (worker.committed, now)
                elif now - since > self.settings.stall_seconds:
                    raise Stalled(
                        f"partition {number} of {self.settings.topic} has been at offset {worker.committed:,} of {ends[number]:,} for "
                        f"{now - since:.0f} s: this worker ends, so that another one can take the partition"
                    )

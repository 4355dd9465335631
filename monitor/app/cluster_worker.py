"""The service: any number of workers over one Kafka topic, their state in one Redis."""

import asyncio
import contextlib
from collections.abc import Mapping
from functools import partial
from time import monotonic
from typing import Any

import structlog
from aiokafka.errors import KafkaError
from faust.types import TP

from monitor.app.intake import KafkaIntake
from monitor.app.partition_worker import PartitionWorker
from monitor.app.process import MonitorProcess, end_tasks, settle_heap
from monitor.engine.ownership import owner
from monitor.engine.state.keys import record_digest
from monitor.logs.errors import LogError, OffsetOutOfRange
from monitor.logs.faust_app import make_app
from monitor.logs.kafka_records import read_record
from monitor.logs.kafka_settings import KafkaSettings
from monitor.publish.dead_letter_limit import DeadLetterLimit
from monitor.publish.dead_letter_topic import SUFFIX, DeadLetterTopic
from monitor.publish.kafka_errors import broker_error
from monitor.publish.kafka_producer import KafkaProducer
from monitor.publish.republisher import Republisher
from monitor.publish.topics import Topic, Topics
from monitor.publish.verdict_topic import VerdictTopic
from monitor.retries import RetryPolicy
from monitor.settings import Settings
from monitor.store.redis_store import RedisStore

log = structlog.get_logger()

_LOOK_SECONDS = 1.0

LATE_RECORDS = 20_000
"""Records that may wait to be folded while a worker calls itself ready."""


class SourceGap(LogError):  # noqa: N818 - the state of the log is its name
    """The log is not the one that the state was folded from, or no longer holds what comes next."""


class Stalled(LogError):  # noqa: N818
    """There is something to fold, and nothing is folded."""


class ClusterWorker(MonitorProcess):
    """One worker: it folds the partitions that the group gives it, and lets go of those that it takes.

    Parameters
    ----------
    settings : Settings
        With `broker_url`-like addresses already in `kafka`, and a `redis_url`.
    kafka : KafkaSettings
        How to reach the brokers.
    """

    mode = "run"

    def __init__(self, settings: Settings, kafka: KafkaSettings) -> None:
        super().__init__(settings)
        self._kafka = kafka
        self._relays: dict[int, asyncio.Task[None]] = {}
        self._assigned = False
        self._broker_up = self.process_metrics.add_broker()

    # --- start and stop ---------------------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        settings = self.settings
        options = self._kafka.client_options()
        async with asyncio.timeout(settings.start_seconds), Topics(options) as topics:
            events = await self._provide_topics(topics)
            self._identity = await self._log_identity(topics, events)
        assert settings.redis_url is not None, "the command asks for it"
        retries = RetryPolicy(timeout=settings.start_seconds)
        self.store = await RedisStore.open(settings.redis_url.get_secret_value(), settings.topic, retries=retries)
        self._cleanup.push_async_callback(self.store.close)
        packing = None if settings.kafka_compression == "none" else settings.kafka_compression
        self._producer = KafkaProducer(options, compression=packing, retries=retries)
        await self._cleanup.enter_async_context(self._producer)
        self._partition_count = events.partitions
        self._letters = DeadLetterTopic(self._producer, settings.topic, lambda: DeadLetterLimit(settings.max_rejected))
        self._republish = Republisher(self._producer, settings.topic, events.partitions)

        self._make_faust()
        self._cleanup.push_async_callback(self._stop_folding)
        await self._faust.start()
        self._tasks.append(asyncio.create_task(self._snapshots()))
        await self._start_web()

    async def _provide_topics(self, topics: Topics) -> Topic:
        """See that all topics are there, and return that of the events."""
        settings = self.settings
        keep = settings.topic_retention_seconds
        if settings.create_topics == "all":
            replicas = settings.topic_replicas or min(3, await topics.brokers())
            wanted = Topic(settings.topic, settings.topic_partitions, replicas)
            events = await topics.provide(settings.topic, wanted, retention_seconds=keep)
        else:
            events = await topics.require(settings.topic)
        for name in (settings.verdict_topic, settings.topic + SUFFIX):
            await topics.provide(name, events, create=settings.create_topics != "none", retention_seconds=keep)
        return events

    @staticmethod
    async def _log_identity(topics: Topics, events: Topic) -> str:
        """Name the log: another cluster, or another number of partitions, is another log."""
        return f"kafka:{await topics.cluster()}:{events.name}:{events.partitions} partitions"

    def _make_faust(self) -> None:
        settings = self.settings
        url = f"kafka://{self._kafka.addresses}/{settings.topic}"
        app = self._faust = make_app(url, settings.topic, app_id=settings.group, kafka=self._kafka)

        async def fold(stream: Any) -> None:  # noqa: ANN401 - a Faust stream of chunks
            async for chunk in stream:
                owned = self.partitions.get(chunk.partition)
                tp = TP(settings.topic, chunk.partition)
                if owned is not None and not await owned.fold(chunk, partial(app.consumer.has_read_on, tp)):
                    await app.consumer.seek_wait({tp: owned.partition.off})

        app.on_assigned, app.on_revoked, app.stored_offsets = self._take, self._release, self._offsets
        app.agent(app.chunks, name="fold")(fold)

    async def _stop_folding(self) -> None:
        # Stopping Faust cancels the agent wherever it waits: let the chunk in hand be committed first.
        self._faust.flow_control.suspend()
        try:
            async with asyncio.timeout(0.4 * self.settings.drain_seconds):
                await self._faust.settled()
        except TimeoutError:
            log.warning("the chunk in hand was not finished in time: it is folded again by whoever takes the partition")
        await self._faust.stop()
        await self._end_tasks()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.2 * self.settings.drain_seconds):
                await self._release(set())

    # --- partitions -------------------------------------------------------------------------------------------------------------------

    async def _take(self, partitions: set[TP]) -> None:
        """Load the partitions that the group has given to this worker."""
        await self._release(partitions)
        consumer = self._faust.consumer
        if not partitions:
            await self._check_spare()
        first = await consumer.earliest_offsets(*partitions)
        for tp in sorted(partitions):
            number = tp.partition
            await self.store.bind_log(number, self._identity)
            owned = PartitionWorker(
                number,
                self.store,
                await self._publishers(
                    VerdictTopic(self._producer, self.settings.topic, number, self.settings.verdict_topic), number
                ),
                self._letters,
                first_offset=first[tp],
                owner=self._owner,
                republish=self._republish,
                process_metrics=self.process_metrics,
            )
            await owned.load()
            await self._check_last(owned, first[tp])
            self.partitions[number] = owned
            self.process_metrics.add_partition(number)
            self._relays[number] = asyncio.create_task(owned.run_relays())
        settle_heap()
        self._assigned = True
        log.info("partitions assigned", partitions=sorted(tp.partition for tp in partitions))

    def _owner(self, benchmark: str) -> int:
        return owner(benchmark, self._partition_count)

    async def _check_spare(self) -> None:
        """Refuse to wait for partitions of a topic that has gone: a spare is given none, but there are some."""
        topic = self.settings.topic
        if self._faust.consumer.topic_partitions(topic) is not None:
            return
        # To be sure: a broker that has just started may not know of it yet.
        async with Topics(self._kafka.client_options()) as topics:
            if await topics.find(topic) is None:
                raise SourceGap(
                    f"topic {topic} is gone from {self._kafka.addresses}: the brokers have lost it, or it was deleted; bring it back "
                    "with its records, or make it anew and delete the state"
                )

    async def _check_last(self, owned: PartitionWorker, first: int) -> None:
        """Refuse a topic that holds another record where the last one was folded: it was made anew under the same name."""
        if owned.last is None or owned.last[0] < first:
            return
        offset, digest = owned.last
        record = await read_record(self._kafka, self.settings.topic, owned.number, offset)
        if record is None or record_digest(record) != digest:
            found = "nothing" if record is None else "another record"
            raise SourceGap(
                f"partition {owned.number} of {self.settings.topic} holds {found} at offset {offset}, where the last record was folded: "
                "the topic was made anew, or cut; use another topic name or delete the state, and the log is folded from its beginning"
            )

    async def _release(self, partitions: set[TP]) -> None:  # noqa: ARG002 - it is always all of them
        """Finish with every partition in hand: relay its outbox, save its pair sums, drop it."""
        relays, self._relays = self._relays, {}
        await end_tasks(relays.values())
        owned, self.partitions = self.partitions, {}
        self.reports.clear()
        for each in owned.values():
            self.process_metrics.remove_partition(each.number)
            await each.release()

    async def _offsets(self, partitions: set[TP]) -> Mapping[TP, int]:
        return {tp: self.partitions[tp.partition].partition.off for tp in partitions if tp.partition in self.partitions}

    # --- what is known ----------------------------------------------------------------------------------------------------------------

    def _intake(self) -> KafkaIntake:
        return KafkaIntake(self._producer, self.settings.topic, self._partition_count)

    def _log_partitions(self) -> int:
        return self._partition_count

    def _log_ends(self) -> dict[int, int]:
        consumer, topic = self._faust.consumer, self.settings.topic
        ends = {number: consumer.highwater(TP(topic, number)) for number in self.partitions}
        return {number: end for number, end in ends.items() if end is not None}

    @property
    def lag(self) -> int:
        """Records that are in the log of the partitions in hand, and not folded yet."""
        return sum(max(0, end - self.partitions[number].committed) for number, end in self._log_ends().items())

    def _waiting_for(self) -> str | None:
        if not self._assigned:
            return "waiting for partitions to be assigned"
        if not self._store_answers:
            return "the store does not answer"
        late = self.lag > LATE_RECORDS
        return f"catching up: {self.lag:,} records are not folded yet" if late else None

    # --- watching ---------------------------------------------------------------------------------------------------------------------

    async def _look(self) -> None:
        await super()._look()
        self._broker_up.set(await self._producer.answers())

    async def failed(self) -> None:
        """Wait as `MonitorProcess.failed` does; a gap in the log is shown for a while before it is raised, so that it can be alerted on."""
        try:
            await super().failed()
        except (SourceGap, OffsetOutOfRange) as error:
            self.process_metrics.source_gap.set(1)
            log.error("the log cannot be read on", reason=str(error), ends_in_seconds=self.settings.linger_seconds)  # noqa: TRY400
            await asyncio.sleep(self.settings.linger_seconds)
            raise
        except KafkaError as error:
            raise broker_error(error, self._kafka.addresses) from error

    def _watchers(self) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(self._watch())]

    async def _watch(self) -> None:
        """Fail when a relay fails, or when there is something to fold and nothing is folded."""
        seen: dict[int, tuple[int, float]] = {}
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = monotonic()
            for number, task in list(self._relays.items()):
                if task.done() and not task.cancelled():
                    task.result()
                    log.error("a relay has ended", partition=number)
            ends = self._log_ends()
            for number, owned in list(self.partitions.items()):
                moved, since = seen.get(number, (-1, now))
                if owned.committed != moved or ends.get(number, 0) <= owned.committed:
                    seen[number] = (owned.committed, now)
                elif now - since > self.settings.stall_seconds:
                    raise Stalled(
                        f"partition {number} of {self.settings.topic} stands at offset {owned.committed:,} of {ends[number]:,} since "
                        f"{now - since:.0f} s: this worker ends, so that another may take it"
                    )

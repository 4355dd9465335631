"""Check that the topic of the events is the one that the state was folded from; create missing topics."""

import asyncio
from collections.abc import Awaitable, Mapping

import structlog
from aiokafka.errors import KafkaError

from monitor.engine.state.changes import record_digest
from monitor.instruments import ProcessMetrics
from monitor.log.errors import LogError, OffsetOutOfRange, TopicChanged, outside
from monitor.log.kafka.records import partition_bounds, read_record, reader, record_at
from monitor.log.kafka.settings import KafkaSettings
from monitor.log.kafka.topic_identity import TopicIdentity, topic_identity
from monitor.publish.dead_letter_topic import SUFFIX
from monitor.publish.kafka_errors import broker_error
from monitor.publish.topics import Topic, Topics
from monitor.retries import while_metadata_lags
from monitor.settings import Settings
from monitor.store.errors import StateRefused
from monitor.store.state_reader import StoredPosition


class SourceGap(LogError):  # noqa: N818 - the state of the log is its name
    """The log is not the one that the state was folded from, or no longer holds the next record."""


def gap_between(topic: str, partition: int, off: int, earliest: int) -> str:
    """Return why a state that is folded up to `off` cannot go on with a partition that begins at `earliest`."""
    reach = f"is folded up to offset {off:,}" if off else "is empty"
    return (
        f"partition {partition} of {topic} begins at offset {earliest:,}, and the state {reach}: records {off:,} to {earliest - 1:,} were "
        "deleted before they were folded; import a `state export`, fold a topic that has them, or start with --accept-gap: every benchmark "
        "of this partition then reports permanently that it may be partial"
    )


class SourceTopic:
    """The topic that a worker or a reader folds."""

    partitions: int  # its partition count, after `provide` or `require`
    topic: TopicIdentity  # its id and partition count
    # identifies the log: another cluster, another partition count, or a topic that was created again, is another log
    identity: str

    def __init__(self, settings: Settings, kafka: KafkaSettings) -> None:
        self._settings, self._kafka, self._name = settings, kafka, settings.topic

    async def provide(self) -> None:
        """Require or create the topic of the events and the output topics, as the setting `create_topics` requires."""
        settings, retention = self._settings, self._settings.topic_retention_seconds
        async with Topics(self._kafka.client_options()) as topics:
            if settings.create_topics == "all":
                replicas = settings.topic_replicas or min(3, await topics.brokers())
                wanted = Topic(self._name, settings.topic_partitions, replicas)
                events = await topics.provide(self._name, wanted, retention_seconds=retention)
            else:
                events = await topics.require(self._name)
            for name in (settings.verdict_topic, self._name + SUFFIX):
                await topics.provide(name, events, create=settings.create_topics != "none", retention_seconds=retention)
            await self._identify(topics, events)

    async def require(self) -> None:
        """Require the topic of the events, and create nothing."""
        async with Topics(self._kafka.client_options()) as topics:
            await self._identify(topics, await topics.require(self._name))

    async def _identify(self, topics: Topics, events: Topic) -> None:
        self.partitions = events.partitions
        without_id = f"kafka:{await topics.cluster()}:{self._name}:{events.partitions} partitions"
        self.topic = TopicIdentity((await self._ask()).id, events.partitions)
        self.identity = f"{without_id}, id {self.topic.id}" if self.topic.id else without_id

    async def _ask(self) -> TopicIdentity:
        """Return the identity of the topic; raise `SourceGap` if no broker answers within 10 s."""

        async def ask() -> TopicIdentity:
            identity = await topic_identity(self._kafka, self._name)
            if identity is None:
                raise SourceGap(
                    f"no broker at {self._kafka.addresses} describes topic {self._name}; check that it exists"
                )
            return identity

        return await while_metadata_lags(ask, SourceGap)

    async def check_exists(self) -> None:
        """Raise `SourceGap` if the topic is still gone after 10 s."""
        async with Topics(self._kafka.client_options()) as topics:

            async def check() -> None:
                if await topics.find(self._name) is None:
                    raise SourceGap(
                        f"topic {self._name} is gone from {self._kafka.addresses}: it was deleted, or the brokers lost it; create a topic "
                        "under another name, and move the state there with `rankwatch state export` and `state import --new-log`"
                    )

            await while_metadata_lags(check, SourceGap)

    async def check_last_record(self, partition: int, last: tuple[int, str] | None, first_offset: int) -> None:
        """Raise `SourceGap` if the partition holds another record at the offset of the last folded one."""
        if last is None or last[0] < first_offset:
            return
        self._compare(partition, last, await read_record(self._kafka, self._name, partition, last[0]))

    def _compare(self, partition: int, last: tuple[int, str], record: bytes | None) -> None:
        """Raise `SourceGap` unless a record is the last folded one."""
        offset, digest = last
        if record is None or record_digest(record) != digest:
            content = "nothing" if record is None else "another record"
            raise SourceGap(
                f"partition {partition} of {self._name} holds {content} at offset {offset}, where the last record was folded, because the "
                "topic was created again or truncated; use another topic name, or delete the state and fold the log from its beginning"
            )

    async def check_states(self, states: Mapping[int, StoredPosition]) -> None:
        """Check that the topic continues every state, before the group is joined."""
        async with reader(self._kafka) as consumer:
            bounds = await partition_bounds(consumer, self._name, states)
            for number, state in states.items():
                first, end = bounds[number]
                if state.off < first and not self._settings.accept_gap:
                    raise SourceGap(gap_between(self._name, number, state.off, first))
                if state.off > end:
                    raise OffsetOutOfRange(outside(self._name, number, state.off, f"which holds {first} to {end}"))
                if state.last is not None and first <= state.last[0]:
                    self._compare(number, state.last, await record_at(consumer, self._name, number, state.last[0]))


log = structlog.get_logger()


async def linger(failed: Awaitable[None], process_metrics: ProcessMetrics, seconds: float, addresses: str) -> None:
    """Await a failure and raise it; a log or a state that is refused stays in the metrics and the log for some seconds first."""
    # An alert can fire meanwhile, and a supervisor does not start the process in a tight loop.
    try:
        await failed
    except (SourceGap, OffsetOutOfRange, TopicChanged, StateRefused) as error:
        refused = "state" if isinstance(error, StateRefused) else "log"
        process_metrics.source_gap.set(refused == "log")
        log.error("refused", what=refused, reason=str(error), ends_in_seconds=seconds)  # noqa: TRY400
        await asyncio.sleep(seconds)
        raise
    except KafkaError as error:
        raise broker_error(error, addresses) from error

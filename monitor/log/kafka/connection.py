"""Connect a Faust consumer to Kafka, and look its partitions up."""
# Faust's interfaces have parameters that Kafka does not need.
# ruff: noqa: ARG002

import asyncio
from collections.abc import Mapping
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from faust.exceptions import ConsumerNotStarted
from faust.types import TP

from monitor.log.chunk_consumer import ChunkConsumer
from monitor.log.kafka.sender_check import SenderCheck
from monitor.log.kafka.settings import KafkaSettings
from monitor.log.kafka.slices import read_in_slices

STOP_SECONDS: Final = 5.0
HEARTBEAT_SECONDS: Final = 0.5
"""A worker learns of a rebalance with a heartbeat, and the whole group waits for the last one."""

# A paused worker stays in its group. The watchdog handles one that makes no progress; one that hangs sends no heartbeats.
NEVER_MS: Final = 2**31 - 1


class KafkaConnection(ChunkConsumer):
    """A consumer's connection to the brokers."""

    _started_kafka: AIOKafkaConsumer | None = None
    _senders: SenderCheck

    @property
    def _settings(self) -> KafkaSettings:
        settings = self.app.kafka
        assert settings is not None, "make_app sets it for kafka://"
        return settings

    @property
    def _kafka(self) -> AIOKafkaConsumer:
        if self._started_kafka is None:
            raise ConsumerNotStarted("the consumer is not connected; start the application first")
        return self._started_kafka

    async def on_start(self) -> None:
        """Connect to the brokers."""
        settings = self._settings
        # The assignor keeps its assignment in its class, so two workers in a process must not share one.
        assignor = type("Sticky", (StickyPartitionAssignor,), {})
        kafka = AIOKafkaConsumer(
            **settings.client_options(),
            group_id=self.app.conf.id,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            partition_assignment_strategy=(assignor,),
            max_poll_interval_ms=NEVER_MS,
            session_timeout_ms=round(1000 * settings.session_seconds),
            heartbeat_interval_ms=round(1000 * min(settings.session_seconds / 4, HEARTBEAT_SECONDS)),
            group_instance_id=settings.instance,
            rebalance_timeout_ms=round(1000 * settings.rebalance_seconds),
            fetch_max_wait_ms=round(1000 * settings.fetch_wait_seconds),
            max_partition_fetch_bytes=settings.fetch_bytes,
        )
        try:
            await kafka.start()
        except BaseException:
            await kafka.stop()
            raise
        self._senders = SenderCheck(kafka, self.app.topic_name, self.app.topic_folded)
        read_in_slices(kafka, self.app.chunk_records, self._senders.note)
        self._started_kafka = kafka

    async def on_stop(self) -> None:
        """Commit the progress, and leave the group."""
        await super().on_stop()
        if self._started_kafka is None:
            return
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._kafka.stop()
        except TimeoutError:
            self.log.warning(
                "the brokers did not answer when this worker left the group; the group waits for its session to time out"
            )

    def assignment(self) -> set[TP]:
        """Return the partitions of this worker."""
        return {TP(*tp) for tp in self._kafka.assignment()}

    def highwater(self, tp: TP) -> int | None:
        """Return the end of the partition as of the last fetch; None before the first, and while nobody has it in a rebalance."""
        partition = TopicPartition(*tp)
        end: int | None = self._kafka.highwater(partition) if partition in self._kafka.assignment() else None
        return end

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """Fetch the ends of partitions from the brokers."""
        offsets = await self._kafka.end_offsets([TopicPartition(*tp) for tp in partitions]) if partitions else {}
        return {TP(*tp): offset for tp, offset in offsets.items()}

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """Fetch the offsets of the first records of partitions from the brokers."""
        offsets = await self._kafka.beginning_offsets([TopicPartition(*tp) for tp in partitions]) if partitions else {}
        return {TP(*tp): offset for tp, offset in offsets.items()}

    async def check_topic(self) -> None:
        """Raise `TopicChanged` if a broker knows another topic under the name than the application's; do nothing if none answers."""
        await self._senders.check()

    def topic_partitions(self, topic: str) -> int | None:
        """Return the partition count of the topic, or None while it is unknown."""
        partitions = self._kafka.partitions_for_topic(topic)
        return len(partitions) if partitions else None

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        """Return None: this application uses `schemas.records.ownership.owner`."""
        return None

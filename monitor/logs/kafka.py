"""The Faust transport ``kafka://host:port[,host:port]/topic``: one message is one chunk of records of one partition.

Stock Faust spends about 0.1 ms on a message, so a message here carries up to 6,000 records. It is registered under the name `kafka`
in the group ``faust.transports`` of entry points, which Faust lets go before its own transports; what Faust brings along is still
there as ``aiokafka://``. Unlike Faust's, this consumer lives in the application's event loop: no chunk is handed from thread to
thread, and a worker that hangs stops its heartbeats. Whatever is relied on beyond Faust's documentation is pinned by
tests/contract/test_kafka_hooks.py.

Offsets are the application's own (`FaustApp.stored_offsets`). What is committed to Kafka is for lag monitors; it is never read.
"""
# Faust's interfaces have room for what Kafka does not need.
# ruff: noqa: ARG002

import asyncio
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import ConsumerStoppedError, KafkaError, NoOffsetForPartitionError
from aiokafka.errors import OffsetOutOfRangeError as FetchedOutOfRange
from faust.exceptions import ConsumerNotStarted
from faust.transport import base
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from monitor.engine.chunk import Chunk
from monitor.logs.errors import OffsetOutOfRange
from monitor.logs.kafka_records import chunks
from monitor.logs.kafka_settings import KafkaSettings
from monitor.logs.kafka_slices import Record, read_in_slices

if TYPE_CHECKING:
    from monitor.logs.faust_app import FaustApp

POLL_SECONDS: Final = 0.2
COMMIT_SECONDS: Final = 2.0
STOP_SECONDS: Final = 5.0
# A paused worker stays in its group; one that makes no progress is its watchdog's affair, and one that hangs sends no heartbeats.
NEVER_MS: Final = 2**31 - 1
MAX_REQUEST_BYTES: Final = 64 << 20


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Tells the consumer of rebalances."""

    def __init__(self, consumer: "Consumer") -> None:
        self._consumer = consumer

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Let go of all partitions; the group waits for this."""
        self._consumer.app.on_rebalance_start()
        await self._consumer.on_partitions_revoked({TP(*tp) for tp in revoked})

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Take what the group has agreed on."""
        # Not Kafka's generation: that one may meet a number which a seek has used.
        self._consumer.app.consumer_generation_id += 1
        await self._consumer.on_partitions_assigned(
            {TP(*tp) for tp in assigned}, self._consumer.app.consumer_generation_id
        )


class Consumer(base.Consumer):  # type: ignore[misc]
    """Delivers the chunks of the partitions assigned, each partition's in order from the offset that the application has stored.

    One chunk waits in the stream's buffer and the next in the hand of this consumer; what is fetched beyond is bounded by
    `KafkaSettings.fetch_bytes` a partition. A partition paused with `pause_partitions` is not read; a rebalance ends the pause.
    """

    app: "FaustApp"
    _started_kafka: AIOKafkaConsumer | None = None

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        # Where the next chunk of a partition is read from: empty from the revocation until the stored offsets are known.
        self._position: dict[TP, int] = {}
        self._committed: dict[TP, int] = {}
        self._readable = asyncio.Event()
        self._loading = asyncio.Lock()
        self._rebalances = 0
        self._committing: asyncio.Task[bool] | None = None

    @property
    def _settings(self) -> KafkaSettings:
        settings = self.app.kafka
        assert settings is not None, "make_app sets it for kafka://"
        return settings

    @property
    def _kafka(self) -> AIOKafkaConsumer:
        if self._started_kafka is None:
            raise ConsumerNotStarted("the consumer is not connected: start the application first")
        return self._started_kafka

    async def on_start(self) -> None:
        """Connect to the brokers."""
        settings = self._settings
        # The assignor keeps what it was assigned in its class: two workers in a process must not share one.
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
            heartbeat_interval_ms=round(1000 * settings.session_seconds / 4),
            rebalance_timeout_ms=round(1000 * settings.rebalance_seconds),
            fetch_max_wait_ms=round(1000 * settings.fetch_wait_seconds),
            max_partition_fetch_bytes=settings.fetch_bytes,
        )
        try:
            await kafka.start()
        except BaseException:
            await kafka.stop()
            raise
        read_in_slices(kafka, self.app.chunk_records)
        self._started_kafka = kafka

    async def on_stop(self) -> None:
        """Tell the broker how far it got, and leave the group."""
        await super().on_stop()
        if self._started_kafka is None:
            return
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._kafka.stop()
        except TimeoutError:
            self.log.warning("the brokers did not answer on leaving the group: it will miss this worker by its silence")

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group.

        Raises
        ------
        ValueError
            If a topic does not exist.
        """
        names = set(topics)
        if missing := names - await self._kafka.topics():
            raise ValueError(
                f"topic {', '.join(sorted(missing))} does not exist at {self._settings.addresses}, or may not be described: "
                "create it with the number of partitions it shall keep"
            )
        self._kafka.subscribe(topics=list(names), listener=Listener(self))

    # --- rebalances -----------------------------------------------------------------------------------------------------------

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Read nothing more, let the chunk in hand be finished, and tell the application; within half the rebalance's time."""
        self._rebalances += 1
        self._forget()
        await super().on_partitions_revoked(revoked)  # stops the flow and empties the buffers
        if not revoked or self.app.should_stop:
            return
        try:
            async with asyncio.timeout(self._settings.rebalance_seconds / 2):
                await self.app.settled()
                async with self._loading:
                    await self.app.on_revoked(revoked)
        except TimeoutError:
            self.log.warning("a chunk was not finished when its partitions went to other workers: theirs will stand")
        except Exception as error:  # noqa: BLE001 - whatever it is, aiokafka would only log it
            await self.app.crash(error)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Go on with what the group has agreed on; a spare, which gets nothing, is told so here."""
        await super().on_partitions_assigned(assigned, generation_id)
        if assigned or self.app.should_stop:
            return
        try:  # Faust seeks in no partition, so nobody would tell the application.
            async with self._loading:
                await self.app.on_assigned(set())
        except Exception as error:  # noqa: BLE001 - whatever it is, aiokafka would only log it
            await self.app.crash(error)

    def _forget(self) -> None:
        # Streams drop messages of another generation: all that was read until now, wherever it waits.
        self.app.consumer_generation_id += 1
        self._position.clear()
        self.app.progress.next.clear()
        self.app.progress.done.clear()
        self._committed.clear()
        self._readable.clear()

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Let the application load its state, then go to the offsets that it has stored, or to the beginning of a partition.

        Raises
        ------
        OffsetOutOfRange
            If a stored offset is outside its partition.
        TimeoutError
            If the application does not load its state in time.
        """
        rebalances = self._rebalances
        # Faust gives up without a word when its own time is over.
        async with asyncio.timeout(0.9 * self.app.conf.broker_request_timeout), self._loading:
            if rebalances != self._rebalances:
                return {}
            assigned = self.assignment()
            await self.app.on_assigned(assigned)
            stored = await self.app.stored_offsets(assigned)
            offsets = {**await self.earliest_offsets(*(assigned - stored.keys())), **stored}
            await self._check(offsets)
        if rebalances != self._rebalances:
            return {}
        self._go_on(offsets)
        return offsets

    # --- seeks ----------------------------------------------------------------------------------------------------------------

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Go to an offset; whatever was read before and is not yet in the agent's hands never gets there.

        Nothing is done for a partition that is not assigned, or not loaded yet: it begins at the stored offset. An offset outside
        its partition is found out when it is read, and ends the application with `OffsetOutOfRange`.
        """
        if known := {tp: offset for tp, offset in partitions.items() if tp in self._position}:
            self._go_on(known)

    async def _seek(self, partition: TP, offset: int) -> None:
        await self.seek_wait({partition: offset})

    def _go_on(self, offsets: Mapping[TP, int]) -> None:
        self.app.consumer_generation_id += 1
        self.app.progress.next.update(offsets)
        self._rewind()
        self._readable.set()

    def _rewind(self) -> None:
        """Read again, of all partitions, what was read and has not got to the agent: it is dropped with its generation."""
        self._position.update(self.app.progress.next)
        for tp, offset in self._position.items():
            self._kafka.seek(TopicPartition(*tp), offset)

    async def _check(self, offsets: Mapping[TP, int]) -> None:
        first, end = await asyncio.gather(self.earliest_offsets(*offsets), self.highwaters(*offsets))
        for tp, offset in offsets.items():
            if not first[tp] <= offset <= end[tp]:
                raise OffsetOutOfRange(_outside(tp, offset, f"which holds {first[tp]} to {end[tp]}"))

    # --- reading --------------------------------------------------------------------------------------------------------------

    async def _drain_messages(self, fetcher: base.Fetcher) -> None:
        # Faust's own loop tracks offsets for its commits, and sleeps for a second whenever a buffer is full.
        try:
            while not (self.should_stop or fetcher.should_stop):
                read = await self._getmany(self._position.keys() - self._paused_partitions, POLL_SECONDS)
                # Now, before anything can be sought, they get the generation they were read in.
                messages = [self._to_message(tp, chunk) for tp, several in read.items() for chunk in several]
                for message in messages:
                    await self.callback(message)
        except (ConsumerStoppedError, asyncio.CancelledError):
            if not self.app.should_stop:  # on a cancellation in a rebalance, Faust crashes the fetcher
                raise

    async def _getmany(self, active_partitions: set[TP], timeout: float) -> dict[TP, list[Chunk]]:  # noqa: ASYNC109
        if not active_partitions:
            await (
                asyncio.sleep(timeout) if self._position else self._readable.wait()
            )  # all paused, or none to read yet
            return {}
        generation = self.app.consumer_generation_id
        try:
            fetched = await self._kafka.getmany(
                *(TopicPartition(*tp) for tp in active_partitions),
                timeout_ms=round(1000 * timeout),
                max_records=1,  # run
            )
        except (FetchedOutOfRange, NoOffsetForPartitionError) as error:
            # A partition that comes back while this waits begins at no offset, or at what was committed, until it is sought.
            if generation == self.app.consumer_generation_id:
                raise _explained(error) from error
        if generation != self.app.consumer_generation_id:
            self._rewind()
            return {}
        # Of a partition just read, the position is known: nothing is waited for.
        return {TP(*tp): self._cut(TP(*tp), run, await self._kafka.position(tp)) for tp, (run,) in fetched.items()}

    def _cut(self, tp: TP, records: list[Record], end: int) -> list[Chunk]:
        start, self._position[tp] = self._position[tp], end
        return list(chunks(records, tp.partition, start, end, self.app.chunk_bytes))

    def _to_message(self, tp: TP, chunk: Chunk) -> ConsumerMessage:
        return ConsumerMessage(
            topic=tp.topic,
            partition=tp.partition,
            offset=chunk.start,
            timestamp=0.0,
            timestamp_type=0,
            headers=None,
            key=None,
            value=chunk,
            checksum=None,
            tp=tp,
            generation_id=self.app.consumer_generation_id,
        )

    def on_buffer_full(self, tp: TP) -> None:
        """Do nothing: the consumer waits for the buffer with the next chunk in hand."""

    def on_buffer_drop(self, tp: TP) -> None:
        """Do nothing, as `on_buffer_full`."""

    # --- what is known of the partitions ------------------------------------------------------------------------------------------

    def assignment(self) -> set[TP]:
        """Return the partitions of this worker."""
        return {TP(*tp) for tp in self._kafka.assignment()}

    async def position(self, tp: TP) -> int | None:
        """Return the offset of the next chunk to be read, or None while that is not known."""
        return self._position.get(tp)

    def has_read_on(self, tp: TP) -> bool:
        """Whether the chunk behind the one that the agent has is at hand."""
        return self._position.get(tp, 0) > self.app.progress.next.get(tp, 0)

    def highwater(self, tp: TP) -> int | None:
        """Return the end of the partition as of the last fetch, or None before the first."""
        end: int | None = self._kafka.highwater(TopicPartition(*tp))
        return end

    async def highwaters(self, *partitions: TP) -> Mapping[TP, int]:
        """Return where the next records will be, asking the brokers."""
        found = await self._kafka.end_offsets([TopicPartition(*tp) for tp in partitions]) if partitions else {}
        return {TP(*tp): offset for tp, offset in found.items()}

    async def earliest_offsets(self, *partitions: TP) -> Mapping[TP, int]:
        """Return the offsets of the first records kept, asking the brokers."""
        found = await self._kafka.beginning_offsets([TopicPartition(*tp) for tp in partitions]) if partitions else {}
        return {TP(*tp): offset for tp, offset in found.items()}

    def topic_partitions(self, topic: str) -> int | None:
        """Return how many partitions the topic has, or None while that is not known."""
        found = self._kafka.partitions_for_topic(topic)
        return len(found) if found else None

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int | None:
        """Return None: this application asks `monitor.engine.ownership.owner`."""
        return None

    async def create_topic(self, *args: object, **kwargs: object) -> None:
        """Do nothing: topics are the operator's."""

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    # --- advisory commits ---------------------------------------------------------------------------------------------------------

    async def commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:  # noqa: ANN401, FBT001, FBT002
        """Tell the brokers what the agent has finished, for those who watch the lag; Faust calls this every few seconds.

        Returns
        -------
        Whether they took it: it does no harm if not.
        """
        done = self.app.progress.done
        offsets = {tp: end for tp, end in done.items() if tp in self._position and self._committed.get(tp) != end}
        return bool(offsets) and await self._commit(offsets)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._tell(offsets))
        # What takes longer is not cancelled: aiokafka goes on with it behind a shield, and its failure would be a traceback in the log.
        done, _ = await asyncio.wait([self._committing], timeout=COMMIT_SECONDS)
        return bool(done) and self._committing.result()

    async def _tell(self, offsets: Mapping[TP, int]) -> bool:
        try:
            await self._kafka.commit({TopicPartition(*tp): offset for tp, offset in offsets.items()})
        except KafkaError as error:
            self.log.info("the brokers were not told of the progress: %r", error)
            return False
        self._committed.update(offsets)
        return True


def _explained(error: FetchedOutOfRange | NoOffsetForPartitionError) -> Exception:
    if isinstance(error, NoOffsetForPartitionError):
        return RuntimeError(f"{error}: it is read before it was sought")
    ((tp, offset),) = error.args[0].items()
    return OffsetOutOfRange(_outside(tp, offset, "which no longer holds it"))


def _outside(tp: TP, offset: int, holds: str) -> str:
    return (
        f"offset {offset} is outside partition {tp.partition} of {tp.topic}, {holds}: its retention has passed, or the topic was "
        "made anew; import the state from an export, or start over under another topic name"
    )


class Producer(driver.Producer):  # type: ignore[misc]
    """Writes with ``acks=all`` and without doubles of its own; what is awaited is in the log."""

    app: "FaustApp"

    def _new_producer(self, transactional_id: str | None = None) -> AIOKafkaProducer:
        settings = self.app.kafka
        assert settings is not None, "make_app sets it for kafka://"
        return AIOKafkaProducer(
            **settings.client_options(), acks="all", enable_idempotence=True, max_request_size=MAX_REQUEST_BYTES
        )


class Transport(driver.Transport):  # type: ignore[misc]
    """``kafka://host:port[,host:port]/topic``; how to reach the brokers is in `FaustApp.kafka`."""

    Consumer = Consumer
    Producer = Producer

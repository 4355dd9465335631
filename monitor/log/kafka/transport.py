"""Read Kafka as the Faust transport ``kafka://host:port[,host:port]/topic``; one message is one chunk of a partition.

The entry point ``kafka`` in the group ``faust.transports`` takes precedence over Faust's own transport, which stays available as
``aiokafka://``. Stock Faust spends about 0.1 ms on a message, so a message here carries up to 24,000 records. Unlike Faust's, this consumer
runs in the application's event loop: chunks do not cross threads, and a worker that hangs stops its heartbeats.
tests/contract/test_kafka_hooks.py pins the undocumented parts of Faust and aiokafka that this relies on.

Offsets are the application's own (`FaustApp.stored_offsets`). Commits to Kafka serve lag monitors only and are never read.
"""
# Faust's interfaces have parameters that Kafka does not need.
# ruff: noqa: ARG002

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aiokafka import TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.errors import ConsumerStoppedError, KafkaError, NoOffsetForPartitionError
from aiokafka.errors import OffsetOutOfRangeError as FetchedOutOfRange
from faust.transport import base
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from monitor.log.errors import OffsetOutOfRange, outside
from monitor.log.kafka.connection import KafkaConnection
from monitor.log.kafka.records import chunks
from monitor.log.kafka.slices import Record
from monitor.retries import while_metadata_lags
from schemas.records.chunks import Chunk

POLL_SECONDS: Final = 0.2
COMMIT_SECONDS: Final = 2.0


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    """Passes rebalances on to the consumer."""

    def __init__(self, consumer: "Consumer") -> None:
        self._consumer = consumer

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        """Stop with all partitions, and store what is folded; the group waits for this."""
        self._consumer.app.on_rebalance_start()
        await self._consumer.on_partitions_revoked({TP(*tp) for tp in revoked})

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        """Take the partitions that the group has assigned."""
        # Not Kafka's generation, which may repeat a number that a seek has used.
        self._consumer.app.consumer_generation_id += 1
        await self._consumer.on_partitions_assigned(
            {TP(*tp) for tp in assigned}, self._consumer.app.consumer_generation_id
        )


class Consumer(KafkaConnection):
    """Delivers the chunks of each assigned partition in order, from the offset that the application has stored."""

    # One chunk waits in the stream's buffer and the next in this consumer; `KafkaSettings.fetch_bytes` bounds what else is fetched of a
    # partition. A partition paused with `pause_partitions` is not read; a rebalance ends the pause.

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        # Where the next chunk of each partition begins; empty from a revocation until the stored offsets are known.
        self._position: dict[TP, int] = {}
        self._committed: dict[TP, int] = {}
        self._readable = asyncio.Event()
        self._loading = asyncio.Lock()
        self._rebalances = 0
        self._committing: asyncio.Task[bool] | None = None

    async def subscribe(self, topics: Iterable[str]) -> None:
        """Join the group."""
        names = set(topics)

        async def check() -> None:
            if missing := names - await self._kafka.topics():
                raise ValueError(
                    f"topic {', '.join(sorted(missing))} does not exist at {self._settings.addresses}, or this user may not describe it: "
                    "create it with its permanent partition count, or grant Describe"
                )

        # aiokafka raises a bare KafkaError when the broker that it asks knows no broker yet.
        await while_metadata_lags(check, ValueError, KafkaError)
        self._kafka.subscribe(topics=list(names), listener=Listener(self))

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        """Stop reading, wait for the current chunk, and call `on_revoked`, all within half of the rebalance's time."""
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
            self.log.warning("a chunk was not finished when its partitions went to other workers; they fold it again")
        except Exception as error:  # noqa: BLE001 - aiokafka would only log it
            await self.app.crash(error)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        """Continue with the partitions that the group has assigned; call `on_assigned` for a spare worker, which gets none."""
        self._senders.keep_connections(assigned)
        await super().on_partitions_assigned(assigned, generation_id)
        if assigned or self.app.should_stop:
            return
        try:  # Faust seeks in no partition, so `seek_to_committed` does not call it.
            async with self._loading:
                await self.app.on_assigned(set())
        except Exception as error:  # noqa: BLE001 - aiokafka would only log it
            await self.app.crash(error)

    def _forget(self) -> None:
        # Streams drop messages of another generation: everything that was read until now.
        self.app.consumer_generation_id += 1
        self._position.clear()
        self.app.progress.next.clear()
        self.app.progress.done.clear()
        self._committed.clear()
        self._readable.clear()

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Let the application load its state, then seek to its stored offsets, or to the beginning of a partition without one."""
        rebalances = self._rebalances
        # Faust gives up silently when its own timeout passes.
        async with asyncio.timeout(0.9 * self.app.conf.broker_request_timeout), self._loading:
            if rebalances != self._rebalances:
                return {}
            assigned = self.assignment()
            await self.app.on_assigned(assigned)
            stored = await self.app.stored_offsets(assigned)
            offsets = {**await self.earliest_offsets(*(assigned - stored.keys())), **stored}
            await self._check_range(offsets)
        if rebalances != self._rebalances:
            return {}
        self._continue_at(offsets)
        return offsets

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        """Seek to an offset and drop the chunks that were read but not delivered to the agent."""
        # A partition that is not assigned, or not loaded yet, begins at its stored offset instead. An offset outside its partition ends the
        # application with `OffsetOutOfRange` at the next read.
        if known := {tp: offset for tp, offset in partitions.items() if tp in self._position}:
            self._continue_at(known)

    async def _seek(self, partition: TP, offset: int) -> None:
        await self.seek_wait({partition: offset})

    def _continue_at(self, offsets: Mapping[TP, int]) -> None:
        self.app.consumer_generation_id += 1
        self.app.progress.next.update(offsets)
        self._rewind()
        self._readable.set()

    def _rewind(self) -> None:
        """Read again the chunks of all partitions that the agent has not got; they are dropped with their generation."""
        self._position.update(self.app.progress.next)
        for tp, offset in self._position.items():
            self._kafka.seek(TopicPartition(*tp), offset)

    async def _check_range(self, offsets: Mapping[TP, int]) -> None:
        first, end = await asyncio.gather(self.earliest_offsets(*offsets), self.highwaters(*offsets))
        for tp, offset in offsets.items():
            if not first[tp] <= offset <= end[tp]:
                await self.check_topic()
                raise OffsetOutOfRange(outside(tp.topic, tp.partition, offset, f"which holds {first[tp]} to {end[tp]}"))

    async def _drain_messages(self, fetcher: base.Fetcher) -> None:
        # Faust's own loop tracks offsets for its commits, and sleeps for a second whenever a buffer is full.
        try:
            while not (self.should_stop or fetcher.should_stop):
                fetched = await self._getmany(self._position.keys() - self._paused_partitions, POLL_SECONDS)
                # All messages get the generation they were read in, before any seek.
                messages = [self._to_message(tp, chunk) for tp, part in fetched.items() for chunk in part]
                for message in messages:
                    await self.callback(message)
        except (ConsumerStoppedError, asyncio.CancelledError):
            if not self.app.should_stop:  # on a cancellation in a rebalance, Faust crashes the fetcher
                raise

    async def _getmany(self, active_partitions: set[TP], timeout: float) -> dict[TP, list[Chunk]]:  # noqa: ASYNC109
        if not active_partitions:
            # All are paused, or none is loaded yet.
            await (asyncio.sleep(timeout) if self._position else self._readable.wait())
            return {}
        generation = self.app.consumer_generation_id
        try:
            fetched = await self._kafka.getmany(
                *(TopicPartition(*tp) for tp in active_partitions),
                timeout_ms=round(1000 * timeout),
                max_records=1,  # slice
            )
            if fetched:
                await self._senders.confirm(
                    lambda: generation == self.app.consumer_generation_id, self.app.on_reconnected
                )
        except (FetchedOutOfRange, NoOffsetForPartitionError) as error:
            await self.check_topic()
            # A partition that returns during the wait has no offset, or the committed one, until the seek.
            if generation == self.app.consumer_generation_id:
                raise _read_error(error) from error
        if generation != self.app.consumer_generation_id:
            self._rewind()
            return {}
        # The position of a partition just read is known, so this does not wait.
        return {
            TP(*tp): self._cut(TP(*tp), records, await self._kafka.position(tp)) for tp, (records,) in fetched.items()
        }

    def _cut(self, tp: TP, records: list[Record], end: int) -> list[Chunk]:
        start, self._position[tp] = self._position[tp], end
        return list(chunks(records, tp.partition, start, end, self.app.chunk_bytes, self.app.origin_key))

    def on_buffer_full(self, tp: TP) -> None:
        """Do nothing: the consumer holds the next chunk until the buffer has room."""

    def on_buffer_drop(self, tp: TP) -> None:
        """Do nothing, as `on_buffer_full`."""

    async def position(self, tp: TP) -> int | None:
        """Return the offset of the next chunk to read, or None while it is unknown."""
        return self._position.get(tp)

    def has_read_on(self, tp: TP) -> bool:
        """Return whether the chunk after the agent's current one is already read."""
        return self._position.get(tp, 0) > self.app.progress.next.get(tp, 0)

    async def commit(self, topics: Any = None, start_new_transaction: bool = True) -> bool:  # noqa: ANN401, FBT001, FBT002
        """Commit what the agent has finished, for lag monitors; Faust calls this every few seconds."""
        done = self.app.progress.done
        offsets = {tp: end for tp, end in done.items() if tp in self._position and self._committed.get(tp) != end}
        return bool(offsets) and await self._commit(offsets)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        if self._committing is None or self._committing.done():
            self._committing = asyncio.create_task(self._send_commit(offsets))
        # A slow commit is not cancelled: aiokafka shields it, and would log its failure with a traceback.
        done, _ = await asyncio.wait([self._committing], timeout=COMMIT_SECONDS)
        return bool(done) and self._committing.result()

    async def _send_commit(self, offsets: Mapping[TP, int]) -> bool:
        try:
            await self._kafka.commit({TopicPartition(*tp): offset for tp, offset in offsets.items()})
        except KafkaError as error:
            self.log.info("the brokers did not accept a commit: %s", type(error).__name__)
            return False
        self._committed.update(offsets)
        return True


def _read_error(error: FetchedOutOfRange | NoOffsetForPartitionError) -> Exception:
    if isinstance(error, NoOffsetForPartitionError):
        return RuntimeError("a partition was read before its seek")
    ((tp, offset),) = error.args[0].items()
    return OffsetOutOfRange(outside(tp.topic, tp.partition, offset, "which no longer holds it"))


class Transport(driver.Transport):  # type: ignore[misc]
    """Serves ``kafka://host:port[,host:port]/topic``, with the connection settings of `FaustApp.kafka`."""

    Consumer = Consumer

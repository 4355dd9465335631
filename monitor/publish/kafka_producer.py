"""Deliver messages to Kafka: in order, acknowledged by all in-sync replicas, and never past a message that failed."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal, NamedTuple, Self, TypeVar

from aiokafka import AIOKafkaProducer
from aiokafka import errors as kafka

from monitor.publish.kafka_errors import BrokerError, broker_error, is_transient
from monitor.retries import RetryPolicy

T = TypeVar("T")
Compression = Literal["gzip", "snappy", "lz4", "zstd"]

BATCH_BYTES: Final = 256 << 10
_REQUEST_SECONDS: Final = 20.0


class Message(NamedTuple):
    """A message for one partition."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


class KafkaProducer:
    """An idempotent producer that all publishers share; use it as an async context manager."""

    # Each batch of a partition is sent after the previous one is acknowledged. A delivery that fails has therefore delivered a prefix, and
    # a reader that counts messages by their order (`schemas.records.chunks.Origin`) never skips one. Batches are made from the messages of
    # one call, without lingering: callers collect what is worth sending together.

    def __init__(
        self, options: Mapping[str, Any], *, compression: Compression | None = None, timeout: float = 60.0
    ) -> None:
        self._options = dict(options)
        self._compression = compression
        # A new leader is elected within a second, and the fold waits for each delivery.
        self._retries = RetryPolicy(timeout=timeout, longest_wait=0.2)
        self._client: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._closed = False
        self.addresses = options["bootstrap_servers"]

    async def __aenter__(self) -> Self:
        try:
            await self._retry(self._connected)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections permanently; deliveries under way fail."""
        self._closed = True
        await self._disconnect()

    async def _disconnect(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            with contextlib.suppress(kafka.KafkaError):  # its sender may have ended with one
                await client.stop()

    async def partitions(self, topic: str) -> int:
        """Return the partition count of a topic. It must exist: some brokers create the topics they are asked about."""

        async def count() -> int:
            return len(await (await self._connected()).partitions_for(topic))

        return await self._retry(count)

    async def answers(self, seconds: float = 2.0) -> bool:
        """Return whether a broker answers now; there is no retry."""
        if self._client is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._client.client.fetch_all_metadata()
        except (kafka.KafkaError, OSError, TimeoutError):
            return False
        return True

    async def deliver(self, topic: str, messages: Iterable[Message]) -> dict[int, int]:
        """Deliver messages to all in-sync replicas; those of one partition in the given order."""
        by_partition: dict[int, list[Message]] = {}
        for message in messages:
            by_partition.setdefault(message.partition, []).append(message)
        if not by_partition:
            return {}
        count = await self.partitions(topic)
        if max(by_partition) >= count:
            raise ValueError(
                f"partition is {max(by_partition)}, but {topic} now has {count}: if the topic was created again, start again"
            )
        results = await asyncio.gather(
            *(self._deliver_partition(topic, *item) for item in by_partition.items()), return_exceptions=True
        )
        ends: dict[int, int] = {}
        for partition, result in zip(by_partition, results, strict=True):
            if isinstance(result, BaseException):
                raise result
            ends[partition] = result
        return ends

    async def _deliver_partition(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        done = end = 0

        async def deliver_batch() -> tuple[int, int]:
            return await self._deliver_batch(topic, partition, islice(messages, done, None))

        while done < len(messages):
            count, end = await self._retry(deliver_batch)
            done += count
        return end

    async def _deliver_batch(self, topic: str, partition: int, messages: Iterable[Message]) -> tuple[int, int]:
        """Deliver as many messages as fit in one batch; return their number, and the offset after them."""
        client = await self._connected()
        batch, count = client.create_batch(), 0
        for _, key, value, headers in messages:
            if batch.append(timestamp=None, key=key, value=value, headers=list(headers)) is None:
                break
            count += 1
        try:
            sent = await (await client.send_batch(batch, topic, partition=partition))
        except kafka.KafkaError:
            # This client's batch numbers now have a gap, and the broker would refuse all later batches.
            if self._client is client:
                await self._disconnect()
            raise
        return count, sent.offset + count if sent.offset >= 0 else 0

    async def _connected(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._closed:
                raise BrokerError(f"the producer for {self.addresses} is closed; make another one to deliver more")
            if self._client is None:
                self._client = await self._connect()
            return self._client

    async def _connect(self) -> AIOKafkaProducer:
        client = AIOKafkaProducer(
            **self._options,
            acks="all",
            enable_idempotence=True,
            compression_type=self._compression,
            max_batch_size=BATCH_BYTES,
            request_timeout_ms=int(_REQUEST_SECONDS * 1000),
        )
        try:
            await asyncio.wait_for(client.start(), _REQUEST_SECONDS)
        except BaseException:
            await client.stop()
            raise
        return client

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await self._retries.run(work, is_transient)
        except (kafka.KafkaError, TimeoutError) as error:
            raise broker_error(error, self.addresses) from error

"""Messages to Kafka: in order, acknowledged by all in-sync replicas, and nothing behind a message that did not arrive."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice
from time import monotonic
from typing import Any, Final, Literal, NamedTuple, Self

from aiokafka import AIOKafkaProducer
from aiokafka import errors as kafka

Compression = Literal["gzip", "snappy", "lz4", "zstd"]

BATCH_BYTES: Final = 256 << 10
_AGAIN_SECONDS: Final = 0.2
_REQUEST_SECONDS: Final = 20.0
# What a sender that has ended makes of the batches that were waiting for it: a new one may still deliver them.
_PASSING: Final = (
    kafka.InvalidProducerEpoch,
    kafka.KafkaTimeoutError,
    kafka.OutOfOrderSequenceNumber,
    kafka.ProducerClosed,
    kafka.UnknownProducerId,
)


class BrokerError(OSError):
    """Kafka cannot be reached, or does not take what it is given; the message says what to do about it."""


class Message(NamedTuple):
    """A message for one partition."""

    partition: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes]] = ()


class KafkaProducer:
    """An idempotent producer that is shared by everything that publishes; use it as an async context manager.

    A batch of a partition is sent once the one before has been acknowledged, so that what arrives of a delivery that fails is the
    beginning of it: whoever counts messages by their order (`monitor.engine.chunk.Origin`) never misses one behind a gap. Batches are made
    of what one call brings, so there is no lingering: what is worth waiting for, the caller has already collected.

    Parameters
    ----------
    options : mapping
        How to reach the brokers: what every client of aiokafka takes (bootstrap_servers, security_protocol, ssl_context, sasl_...).
    compression : str, optional
        gzip, snappy, lz4 or zstd.
    patience : float
        Seconds for which a delivery is tried again while brokers are away.

    Raises
    ------
    BrokerError
        If no broker can be reached within the patience, or they refuse this user.
    """

    def __init__(
        self, options: Mapping[str, Any], *, compression: Compression | None = None, patience: float = 60.0
    ) -> None:
        self._options = dict(options)
        self._compression = compression
        self._patience = patience
        self._client: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()
        self._ended = False

    @property
    def addresses(self) -> str:
        """The brokers that were named, ``host:port[,host:port]``."""
        return addresses(self._options)

    async def __aenter__(self) -> Self:
        try:
            await self._until(monotonic() + self._patience, self._connected)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, for good; what is being delivered fails."""
        self._ended = True
        await self._let_go()

    async def _let_go(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            with contextlib.suppress(kafka.KafkaError):  # its sender may have ended with one
                await client.stop()

    async def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has. It must exist: some brokers create what they are asked for."""

        async def count() -> int:
            return len(await (await self._connected()).partitions_for(topic))

        return int(await self._until(monotonic() + self._patience, count))

    async def answers(self, seconds: float = 2.0) -> bool:
        """Say whether a broker answers now; it is asked once."""
        if self._client is None:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._client.client.fetch_all_metadata()
        except (kafka.KafkaError, OSError, TimeoutError):
            return False
        return True

    async def deliver(self, topic: str, messages: Iterable[Message]) -> None:
        """Deliver messages; those of one partition in the order given.

        Returns once all of them are on all in-sync replicas.

        Raises
        ------
        BrokerError
            If that cannot be done; then of each partition's messages only some first ones may have arrived, the last of these twice.
        ValueError
            If the topic has no such partition.
        """
        lanes: dict[int, list[Message]] = {}
        for message in messages:
            lanes.setdefault(message.partition, []).append(message)
        if not lanes:
            return
        count = await self.partitions(topic)
        if max(lanes) >= count:
            raise ValueError(
                f"partition is {max(lanes)}, and {topic} has {count}: was it created anew? Start again, to take its count anew"
            )
        ended = await asyncio.gather(*(self._lane(topic, *lane) for lane in lanes.items()), return_exceptions=True)
        for fault in ended:
            if fault is not None:
                raise fault

    async def _lane(self, topic: str, partition: int, messages: Sequence[Message]) -> None:
        done = 0
        while done < len(messages):
            start = done

            async def batch(start: int = start) -> int:
                return await self._batch(topic, partition, messages, start)

            done += await self._until(monotonic() + self._patience, batch)

    async def _batch(self, topic: str, partition: int, messages: Sequence[Message], start: int) -> int:
        """Deliver as many messages as one batch holds; return how many that were."""
        client = await self._connected()
        batch, count = client.create_batch(), 0
        for message in islice(messages, start, None):
            if (
                batch.append(timestamp=None, key=message.key, value=message.value, headers=list(message.headers))
                is None
            ):
                break
            count += 1
        try:
            await (await client.send_batch(batch, topic, partition=partition))
        except kafka.KafkaError:
            # The numbers of this client's batches have a gap now, and the broker would refuse all that follow.
            if self._client is client:
                await self._let_go()
            raise
        return count

    async def _connected(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._ended:
                raise BrokerError(f"the producer for {self.addresses} is closed: nothing can be delivered any more")
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

    async def _until(self, deadline: float, work: Callable[[], Awaitable[int | None]]) -> Any:  # noqa: ANN401 - what work returns
        while True:
            try:
                return await work()
            except (kafka.KafkaError, TimeoutError) as error:
                if not _may_pass(error) or monotonic() + _AGAIN_SECONDS > deadline:
                    raise explain(error, self.addresses) from error
            await asyncio.sleep(_AGAIN_SECONDS)


def addresses(options: Mapping[str, Any]) -> str:
    """Return the brokers that the options of a client name."""
    named = options["bootstrap_servers"]
    return named if isinstance(named, str) else ",".join(named)


def _may_pass(error: Exception) -> bool:
    return isinstance(error, (TimeoutError, *_PASSING)) or bool(getattr(error, "retriable", False))


def explain(error: Exception, where: str) -> BrokerError:
    """Say what an error of a client means, and what to do."""
    name, text = type(error).__name__, str(error)
    found = text if text.startswith(name) else f"{name}: {text}".removesuffix(": ")
    for kinds, sentence in _MEANING:
        if isinstance(error, kinds):
            return BrokerError(f"Kafka at {where}: {sentence} ({found})")
    return BrokerError(f"Kafka at {where}: {found}")


_MEANING: Final[Sequence[tuple[tuple[type[Exception], ...], str]]] = (
    (
        (kafka.AuthenticationFailedError, kafka.UnsupportedSaslMechanismError, kafka.IllegalSaslStateError),
        "the brokers refuse the login: check the SASL mechanism, the user and the password",
    ),
    (
        (kafka.TopicAuthorizationFailedError, kafka.ClusterAuthorizationFailedError),
        "this user may not do that: grant it Describe and Write on the topics with kafka-acls.sh",
    ),
    (
        (kafka.MessageSizeTooLargeError,),
        "a message is larger than the topic takes: set its max.message.bytes to 1048588 or more with kafka-configs.sh",
    ),
    (
        (kafka.NotEnoughReplicasError, kafka.NotEnoughReplicasAfterAppendError),
        "fewer replicas are in sync than the topic's min.insync.replicas: bring the missing brokers back",
    ),
    (
        (kafka.UnknownTopicOrPartitionError, kafka.LeaderNotAvailableError, kafka.NotLeaderForPartitionError),
        "the topic, or the leader of a partition of it, is not there: create the topic, or bring the missing brokers back",
    ),
    (
        (kafka.KafkaConnectionError, kafka.KafkaTimeoutError, kafka.RequestTimedOutError, TimeoutError),
        "no answer: is it running, is this its address, and are TLS, the SASL mechanism, the user and the password right?",
    ),
)

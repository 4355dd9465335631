"""Make sure that fetched records are of the topic that the state was folded from, before any of them is folded.

Records are fetched by the name of the topic. A broker that sent some is asked for the topic's id afterwards: if it is the right one, they
cannot be of a topic that was created later, however long this process or the network was paused before the fetch. A new leader may lack
records, so after a reconnect the last folded record is compared too. tests/contract/test_kafka_hooks.py pins the internals of the client.
"""
# ruff: noqa: SLF001

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.client import ConnectionGroup
from faust.types import TP

from monitor.log.kafka.topic_identity import TopicIdentity, ask_identity, check_identity

_RETRY_SECONDS: Final = 0.1


class SenderCheck:
    """The brokers that sent records to a started consumer, and the connections over which they did."""

    def __init__(self, kafka: AIOKafkaConsumer, topic: str, folded: TopicIdentity | None) -> None:
        self._kafka, self._topic, self._folded = kafka, topic, folded
        self._senders: set[int] = set()
        """Brokers that have sent records since they were last asked for the identity of the topic."""
        self._connections: dict[TP, object] = {}  # the connection over which each partition was read last
        self._reconnected: set[TP] = set()
        """Partitions that were read over another connection since their last folded record was compared."""

    def note(self, partition: TopicPartition, node: int) -> None:
        """Record that a broker has sent records of a partition."""
        self._senders.add(node)
        tp, connection = TP(*partition), self._kafka._client._conns.get((node, ConnectionGroup.DEFAULT))
        if self._connections.setdefault(tp, connection) is not connection:
            self._connections[tp] = connection
            self._reconnected.add(tp)

    def keep_connections(self, partitions: set[TP]) -> None:
        """Forget the connections of all other partitions: what is folded of them is compared when they are loaded again."""
        for tp in self._connections.keys() - partitions:
            del self._connections[tp]
        self._reconnected &= partitions

    async def check(self, node: int | None = None) -> bool:
        """Compare the topic as one broker knows it, by default any; return whether it has answered."""
        now = await ask_identity(self._kafka._client, self._topic, node)
        if now is not None and self._folded is not None:
            check_identity(self._topic, self._folded, now)
        return now is not None

    async def confirm(self, wanted: Callable[[], bool], compare: Callable[[TP], Awaitable[bool]]) -> None:
        """Check every broker that has sent records, and compare the last folded record of each reconnected partition."""
        if self._folded is None:
            return
        senders: list[int | None] = list(self._senders)
        self._senders.clear()
        for sender in senders:
            asked = sender
            # One that has gone away since cannot answer; another one then can.
            while wanted() and not await self.check(asked):
                await asyncio.sleep(_RETRY_SECONDS)
                asked = None
        while self._reconnected and wanted():
            tp = next(iter(self._reconnected))
            if await compare(tp):
                self._reconnected.discard(tp)
            else:
                await asyncio.sleep(_RETRY_SECONDS)

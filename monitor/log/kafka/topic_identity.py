"""Ask a broker for the identity of a topic: one that was deleted and created again under its name has another id.

The client knows versions of the request without ids only. tests/contract/test_kafka_hooks.py pins the internals that this relies on.
"""
# ruff: noqa: SLF001

import asyncio
from io import BytesIO
from typing import Any, Final, NamedTuple

from aiokafka.client import AIOKafkaClient
from aiokafka.conn import CloseReason
from aiokafka.errors import KafkaError
from aiokafka.protocol.abstract import AbstractType
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import (
    Boolean,
    CompactArray,
    CompactString,
    Int16,
    Int32,
    Schema,
    TaggedFields,
    UnsignedVarInt32,
)

from monitor.log.errors import TopicChanged
from monitor.log.kafka.settings import KafkaSettings

_SECONDS: Final = 5.0
_CONNECTION: Final = 2
"""Connections of their own: a broker answers the requests of a connection in order, and a fetch may wait there for records."""


class TopicIdentity(NamedTuple):
    """What identifies a topic besides its name; an empty id and 0 partitions are unknown, as with brokers before Kafka 2.8."""

    id: str
    partitions: int


class _Uuid(AbstractType[bytes]):  # type: ignore[misc]
    """Sixteen bytes."""

    @classmethod
    def encode(cls, value: bytes) -> bytes:
        return value

    @classmethod
    def decode(cls, data: BytesIO) -> bytes:
        return data.read(16)


class _Answer(Response):  # type: ignore[misc]
    """The answer about one topic as far as the number of its partitions; the rest is not decoded."""

    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        (
            "brokers",
            CompactArray(
                ("node_id", Int32),
                ("host", CompactString()),
                ("port", Int32),
                ("rack", CompactString()),
                ("tags", TaggedFields),
            ),
        ),
        ("cluster_id", CompactString()),
        ("controller_id", Int32),
        ("topics", UnsignedVarInt32),
        ("error_code", Int16),
        ("name", CompactString()),
        ("topic_id", _Uuid),
        ("is_internal", Boolean),
        ("partitions", UnsignedVarInt32),
    )


class _Question(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 10
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _Answer
    SCHEMA = Schema(
        ("topics", CompactArray(("topic_id", _Uuid), ("name", CompactString()), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicRequest(Request[_Question]):  # type: ignore[misc]
    """A Metadata request of version 10, the first with topic ids."""

    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[_Question]) -> _Question:
        topics: list[tuple[bytes, str, dict[int, bytes]]] = [(bytes(16), self._topic, {})]
        return request_struct_class(topics, False, False, False, {})


async def ask_identity(client: AIOKafkaClient, topic: str, node: int | None = None) -> TopicIdentity | None:
    """Ask a broker, by default any, for the identity of a topic; return None if it does not answer, or knows no such topic."""
    node = client.get_random_node() if node is None else node
    if node is None:
        return None
    try:
        async with asyncio.timeout(_SECONDS):
            answer: Any = await client.send(node, _TopicRequest(topic), group=_CONNECTION)
    except NotImplementedError:  # the broker has no such version
        return TopicIdentity("", 0)
    except TimeoutError:
        connection = client._conns.get((node, _CONNECTION))
        if connection is not None:  # renewed by the next question
            connection.close(reason=CloseReason.CONNECTION_TIMEOUT)
        return None
    except KafkaError:
        return None
    if answer.error_code:
        return None
    return TopicIdentity(answer.topic_id.hex() if any(answer.topic_id) else "", answer.partitions - 1)


async def topic_identity(settings: KafkaSettings, topic: str) -> TopicIdentity | None:
    """Connect, and ask as `ask_identity`."""
    client = AIOKafkaClient(**settings.client_options())
    try:
        await client.bootstrap()
        return await ask_identity(client, topic)
    except KafkaError:  # no broker can be reached
        return None
    finally:
        await client.close()


def check_identity(topic: str, folded: TopicIdentity, now: TopicIdentity) -> None:
    """Raise `TopicChanged` if a topic is not the one that is folded, or has another number of partitions.

    >>> check_identity("events", TopicIdentity("", 2), TopicIdentity("0f", 2))
    """
    if folded.id and now.id and folded.id != now.id:
        raise TopicChanged(
            f"topic {topic} was deleted and created again: its id is {now.id}, and the state was folded from {folded.id}; nothing of the "
            "new topic was folded. Use another topic name for it; `rankwatch state export` and `state import --new-log` move the state "
            "there"
        )
    if folded.partitions and now.partitions and folded.partitions != now.partitions:
        raise TopicChanged(
            f"the partition count of topic {topic} is now {now.partitions}, and its state was folded with {folded.partitions}: it decides "
            "where each benchmark is, and is permanent. Create a topic with the new count under another name, and move the state there "
            f"with `rankwatch state export` and `state import --partitions {now.partitions}`"
        )

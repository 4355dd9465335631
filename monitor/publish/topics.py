"""Describe topics, and create missing ones.

The setting `create_topics` decides which. The topic of the events is not created by default: its partition count permanently decides where
each benchmark lives, and its retention is the operator's choice. The output topics (verdicts, dead letters) are created at the start with
the partitions and replicas of the topic of the events, and the creation is logged. If the brokers or the setting forbid it, the error has
the command that creates the topic.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self

import structlog
from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from monitor.publish.kafka_errors import broker_error
from monitor.retries import while_metadata_lags

log = structlog.get_logger()

_CONFIG: Final = {"cleanup.policy": "delete"}
_LEADER_SECONDS: Final = 0.05
_REQUEST_MS: Final = 10_000


class TopicMissing(ValueError):  # noqa: N818 - the state of the topic is its name
    """A topic does not exist; the message has the command that creates it."""


@dataclass(frozen=True)
class Topic:
    """A topic, from the brokers' description."""

    name: str
    partitions: int
    replicas: int  # of the partition with the fewest
    without_leader: tuple[int, ...] = ()  # partitions that cannot be read or written at present
    config: Mapping[str, str] = field(default_factory=dict)  # its settings; empty if this user may not read them


class Topics:
    """Describes and creates topics; use it as an async context manager."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._brokers = options["bootstrap_servers"]
        self._admin = AIOKafkaAdminClient(**options, request_timeout_ms=_REQUEST_MS)

    async def __aenter__(self) -> Self:
        try:
            with self._our_errors():
                await self._admin.start()
        except BaseException:
            await self._admin.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._admin.close()

    async def brokers(self) -> int:
        """Return the number of brokers that are up."""
        return len((await self._cluster())["brokers"])

    async def cluster(self) -> str:
        """Return the id of the cluster."""
        return str((await self._cluster())["cluster_id"])

    async def _cluster(self) -> dict[str, Any]:
        with self._our_errors():
            description: dict[str, Any] = await self._admin.describe_cluster()
            return description

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        try:
            yield
        except (kafka.KafkaError, TimeoutError) as error:
            raise broker_error(error, self._brokers) from error

    async def find(self, name: str) -> Topic | None:
        """Describe a topic; return None if it does not exist or this user may not describe it."""
        with self._our_errors():
            # Ask for all topics, because some brokers create a topic they are asked about.
            described = await while_metadata_lags(self._admin.describe_topics, kafka.NodeNotReadyError)
            topics = {topic["topic"]: topic for topic in described}
            if name not in topics:
                return None
            config = await self._config(name)
        parts = topics[name]["partitions"]
        return Topic(
            name,
            len(parts),
            min(len(part["replicas"]) for part in parts),
            tuple(sorted(part["partition"] for part in parts if part["leader"] < 0)),
            config,
        )

    async def _config(self, name: str) -> dict[str, str]:
        (answer,) = await self._admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        (resource,) = answer.to_object()["resources"]
        return {entry["config_names"]: entry["config_value"] for entry in resource["config_entries"]}

    async def require(self, name: str) -> Topic:
        """Describe a topic; raise `TopicMissing` if it still does not exist after 10 s."""

        async def find() -> Topic:
            topic = await self.find(name)
            if topic is None:
                raise TopicMissing(self._missing(name, 8, min(3, await self.brokers())))
            return topic

        return await while_metadata_lags(find, TopicMissing)

    async def provide(
        self, name: str, like: Topic, *, create: bool = True, retention_seconds: float | None = None
    ) -> Topic:
        """Describe a topic; create it with the partitions and replicas of `like` if it does not exist."""
        topic = await self.find(name)
        if topic is not None:
            return topic
        config = dict(_CONFIG)
        if retention_seconds is not None:
            config["retention.ms"] = str(round(1000 * retention_seconds))
        command = self._missing(name, like.partitions, like.replicas, config)
        if not create:
            raise TopicMissing(command)
        new = NewTopic(name, like.partitions, like.replicas, topic_configs=config)
        with self._our_errors():
            code = await while_metadata_lags(lambda: self._create(new), kafka.NotControllerError)
        if code not in (0, kafka.TopicAlreadyExistsError.errno):  # another worker may have created it meanwhile
            raise TopicMissing(f"{command} (the brokers rejected its creation: {kafka.for_code(code).__name__})")
        log.info("topic created", topic=name, partitions=like.partitions, replicas=like.replicas)
        return await self._wait_for_leaders(name)

    async def _create(self, topic: NewTopic) -> int:
        """Create a topic; return the brokers' code, or raise `NotControllerError` while no broker is known to be the controller."""
        try:
            answer = await self._admin.create_topics([topic])
        except AttributeError as error:  # the client asks the controller for its number, even without one
            if error.name == "nodeId":
                raise kafka.NotControllerError from error
            raise
        code: int = answer.topic_errors[0][1]
        if code == kafka.NotControllerError.errno:
            raise kafka.NotControllerError
        return code

    async def _wait_for_leaders(self, name: str) -> Topic:
        """Wait until every partition of a new topic has a leader."""
        while (topic := await self.find(name)) is None or topic.without_leader:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(_LEADER_SECONDS)
        return topic

    def _missing(self, name: str, partitions: int, replicas: int, config: Mapping[str, str] = _CONFIG) -> str:
        settings = " ".join(f"--config {key}={value}" for key, value in config.items())
        return (
            f"topic {name} does not exist at {self._brokers}, or this user may not describe it; create it with: "
            f"kafka-topics.sh --bootstrap-server {self._brokers} --create --topic {name} "
            f"--partitions {partitions} --replication-factor {replicas} {settings}"
        )

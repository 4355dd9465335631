"""The topics: which are there, how they are set up, and who makes those that are not.

The topic of the events is not made here unless that is asked for (the setting `create_topics`): how many partitions it has decides for good
where each benchmark lives, and how long it is kept is for whoever runs the brokers to say. The topics that come out of the monitor
(verdicts, dead letters) are made at the start where they are missing, once, as the topic of the events is (partitions, replicas), and that
is logged: whoever starts the service wants it to run, and a topic that nobody has asked for holds nothing else. Where the brokers forbid
it, or `create_topics` does, the message says the command.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

import structlog
from aiokafka import errors as kafka
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from monitor.publish.kafka_errors import addresses, broker_error

log = structlog.get_logger()

_CONFIG: Final = {"cleanup.policy": "delete"}
_LEADER_SECONDS: Final = 0.05


class TopicMissing(ValueError):  # noqa: N818 - the state of the topic is its name
    """A topic does not exist; the message has the command that makes it."""


@dataclass(frozen=True)
class Topic:
    """A topic as the brokers describe it.

    Attributes
    ----------
    name : str
    partitions : int
    replicas : int
        Of the partition that has the fewest.
    without_leader : tuple of int
        Partitions that cannot be read or written now.
    config : mapping of str to str
        Its settings; empty if this user may not read them.
    """

    name: str
    partitions: int
    replicas: int
    without_leader: tuple[int, ...] = ()
    config: Mapping[str, str] = field(default_factory=dict)


class Topics:
    """Looks topics up and makes them; use it as an async context manager.

    Parameters
    ----------
    options : mapping
        How to reach the brokers, as for `KafkaProducer`.

    Raises
    ------
    BrokerError
        If no broker answers, or they refuse this user.
    """

    def __init__(self, options: Mapping[str, Any], request_seconds: float = 10.0) -> None:
        self._where = addresses(options)
        self._admin = AIOKafkaAdminClient(**options, request_timeout_ms=int(request_seconds * 1000))

    async def __aenter__(self) -> Self:
        try:
            await self._admin.start()
        except (kafka.KafkaError, TimeoutError) as error:
            await self._admin.close()
            raise broker_error(error, self._where) from error
        except BaseException:
            await self._admin.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._admin.close()

    async def brokers(self) -> int:
        """Return how many brokers are up."""
        try:
            return len((await self._admin.describe_cluster())["brokers"])
        except kafka.KafkaError as error:
            raise broker_error(error, self._where) from error

    async def cluster(self) -> str:
        """Return the id of the cluster."""
        try:
            return str((await self._admin.describe_cluster())["cluster_id"])
        except kafka.KafkaError as error:
            raise broker_error(error, self._where) from error

    async def find(self, name: str) -> Topic | None:
        """Describe a topic; None if there is none, or this user may not see it."""
        try:
            # Asked for all topics, for some brokers create the one they are asked for.
            found = {topic["topic"]: topic for topic in await self._admin.describe_topics()}.get(name)
            if found is None:
                return None
            config = await self._config(name)
        except kafka.KafkaError as error:
            raise broker_error(error, self._where) from error
        parts = found["partitions"]
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
        """Describe a topic that has to be there.

        Raises
        ------
        TopicMissing
            If it is not.
        """
        topic = await self.find(name)
        if topic is None:
            raise TopicMissing(self._how_to_make(name, 8, min(3, await self.brokers())))
        return topic

    async def provide(
        self, name: str, like: Topic, *, create: bool = True, retention_seconds: float | None = None
    ) -> Topic:
        """Describe a topic; make it, with the partitions and replicas of `like`, if it is not there.

        Parameters
        ----------
        name : str
        like : Topic
        create : bool
            Whether it may be made.
        retention_seconds : float, optional
            How long a topic that is made keeps its records; default: as the brokers do.

        Returns
        -------
        Topic
            Every partition of one that was made has a leader.

        Raises
        ------
        TopicMissing
            If it is not, and may not be made.
        """
        topic = await self.find(name)
        if topic is not None:
            return topic
        config = dict(_CONFIG)
        if retention_seconds is not None:
            config["retention.ms"] = str(round(1000 * retention_seconds))
        how = self._how_to_make(name, like.partitions, like.replicas, config)
        if not create:
            raise TopicMissing(how)
        try:
            answer = await self._admin.create_topics(
                [NewTopic(name, like.partitions, like.replicas, topic_configs=config)]
            )
        except kafka.KafkaError as error:
            raise broker_error(error, self._where) from error
        (code, message) = next((entry[1], entry[2]) for entry in answer.topic_errors)
        if code not in (0, kafka.TopicAlreadyExistsError.errno):  # another worker may have been faster
            raise TopicMissing(f"{how} (it could not be made: {message or kafka.for_code(code).__name__})")
        log.info("topic made", topic=name, partitions=like.partitions, replicas=like.replicas)
        return await self._led(name)

    async def _led(self, name: str) -> Topic:
        """Wait until a topic that was made just now can be used."""
        while (topic := await self.find(name)) is None or topic.without_leader:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(_LEADER_SECONDS)
        return topic

    def _how_to_make(self, name: str, partitions: int, replicas: int, config: Mapping[str, str] = _CONFIG) -> str:
        settings = " ".join(f"--config {key}={value}" for key, value in config.items())
        return (
            f"topic {name} does not exist at {self._where}, or this user may not see it; make it: kafka-topics.sh --bootstrap-server "
            f"{self._where} --create --topic {name} --partitions {partitions} --replication-factor {replicas} {settings}"
        )

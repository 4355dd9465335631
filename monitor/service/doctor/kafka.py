"""Check the brokers and the topics of the service."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from monitor.publish.dead_letter_topic import SUFFIX
from monitor.publish.kafka_errors import BrokerError
from monitor.publish.topics import Topic, TopicMissing, Topics
from monitor.service.doctor.finding import Finding, fault, ok, warning

_DAY_MS: Final = 86_400_000
_LONGEST_MESSAGE: Final = 1_048_588
"""The default limit of a broker; the longest record that is read (1,000,000 bytes) fits."""


async def check_kafka(options: Mapping[str, Any], name: str, verdicts: str) -> list[Finding]:
    """Check the brokers, the topic of the events and the topics that the service writes."""
    brokers = options["bootstrap_servers"]
    try:
        async with Topics(options) as topics:
            count = await topics.brokers()
            findings = [ok("Kafka", f"answers at {brokers}; brokers up: {count}")]
            try:
                events = await topics.require(name)
            except TopicMissing as error:
                return [*findings, fault(f"topic {name}", "does not exist", str(error))]
            findings += check_topic(events, count, brokers)
            for output in (verdicts, name + SUFFIX):
                exists = await topics.find(output) is not None
                fact = "exists" if exists else "does not exist yet: the service creates it, if create_topics allows"
                findings.append(ok(f"topic {output}", fact))
            return findings
    except BrokerError as error:
        return [fault("Kafka", "no answer, or not allowed", str(error))]


class _ConfigCommand(NamedTuple):
    brokers: str
    topic: str

    def set(self, setting: str) -> str:
        return (
            f"kafka-configs.sh --bootstrap-server {self.brokers} --alter --entity-type topics --entity-name {self.topic} "
            f"--add-config {setting}"
        )


def check_topic(topic: Topic, brokers: int, where: str) -> Iterator[Finding]:
    """Check the topic of the events."""
    yield ok(f"topic {topic.name}", "exists")
    yield from _check_partitions(topic)
    if not topic.config:
        yield warning(
            "topic settings",
            "this user may not read them",
            "grant it DescribeConfigs on the topic, then run this again",
        )
        return
    command = _ConfigCommand(where, topic.name)
    yield _check_replicas(topic, brokers, command)
    yield from _check_config(topic.config, command)
    yield ok(
        "partitioner",
        "Java, aiokafka and `rankwatch send` put keys on the right partition; for librdkafka (confluent-kafka, kcat, Go) set "
        "partitioner=murmur2_random, otherwise the service publishes each event again",
    )


def _check_partitions(topic: Topic) -> Iterator[Finding]:
    if topic.without_leader:
        numbers = ", ".join(map(str, topic.without_leader))
        yield fault("leaders", f"partitions without a leader: {numbers}", "bring the missing brokers back")
    if topic.partitions == 1:
        yield warning(
            "partitions",
            "1",
            "create the topic with more (8 or more) before the first run: one worker serves a partition, and the count is permanent once "
            "scores are stored",
        )
    else:
        yield ok("partitions", f"{topic.partitions}: as many workers can share the load")


def _check_replicas(topic: Topic, brokers: int, command: _ConfigCommand) -> Finding:
    replicas, needed = topic.replicas, int(topic.config.get("min.insync.replicas", 1))
    fact = f"{replicas}, min.insync.replicas {needed}, brokers up {brokers}"
    if needed > replicas:
        fix = command.set(f"min.insync.replicas={max(1, replicas - 1)}")
        return fault("replicas", fact, f"nothing can be written: {fix}")
    if needed > brokers:
        return fault("replicas", fact, "nothing can be written; bring more brokers back")
    if replicas == 1:
        return warning(
            "replicas",
            fact,
            "use 3 replicas and min.insync.replicas 2 on 3 brokers: now the loss of one disk loses acknowledged events",
        )
    if needed == 1:
        fix = command.set("min.insync.replicas=2")
        return warning("replicas", fact, f"a single broker may acknowledge an event, and lose it: {fix}")
    if needed == replicas:
        fix = command.set(f"min.insync.replicas={replicas - 1}")
        return warning("replicas", fact, f"no event is accepted while one broker is away: {fix}")
    return ok("replicas", fact)


def _check_config(config: Mapping[str, str], command: _ConfigCommand) -> Iterator[Finding]:
    policy = config.get("cleanup.policy", "delete")
    if policy == "delete":
        yield ok("cleanup.policy", policy)
    else:
        fix = command.set("cleanup.policy=delete")
        yield fault("cleanup.policy", policy, f"compaction keeps one event per benchmark and deletes the others: {fix}")
    yield _check_retention(config, command)
    longest = int(config.get("max.message.bytes", _LONGEST_MESSAGE))
    if longest < _LONGEST_MESSAGE:
        fix = command.set(f"max.message.bytes={_LONGEST_MESSAGE}")
        yield warning(
            "max.message.bytes", f"{longest:,}", f"lines of up to 1,000,000 bytes and batches of 256 KB are sent: {fix}"
        )
    else:
        yield ok("max.message.bytes", f"{longest:,}")


def _check_retention(config: Mapping[str, str], command: _ConfigCommand) -> Finding:
    milliseconds, size = int(config.get("retention.ms", -1)), int(config.get("retention.bytes", -1))
    fact = "for ever" if milliseconds < 0 else f"{milliseconds / _DAY_MS:,.3g} days"
    if size >= 0:
        fix = command.set("retention.bytes=-1")
        return warning(
            "retention",
            f"{fact}, but at most {size:,} bytes per partition",
            f"a burst may delete events before they are read: {fix}",
        )
    if 0 <= milliseconds < _DAY_MS:
        fix = command.set(f"retention.ms={7 * _DAY_MS}")
        return warning(
            "retention",
            fact,
            f"events deleted while the service is stopped are lost, and it then refuses to start: {fix}",
        )
    return ok("retention", fact)

"""Whether everything around the service is set up as it needs it: judgements of facts, each with what to do."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from monitor.publish.topics import Topic
from monitor.store.server.health import ServerFacts

Level = Literal["ok", "warning", "fault"]

_DAY_MS: Final = 86_400_000
_LONGEST_MESSAGE: Final = 1_048_588
"""What a broker takes unless told otherwise: the longest record that is read (1,000,000 bytes) fits."""
_OLDEST_REDIS: Final = (6, 2)
_SKEW_SECONDS: Final = 2.0
_MEMORY_RATIO: Final = 0.8
_FREE_BYTES: Final = 1 << 30


class Finding(NamedTuple):
    """One line: what was looked at, what was found, and what to do about it (empty where all is well)."""

    level: Level
    subject: str
    found: str
    advice: str = ""


def judge_topic(topic: Topic, brokers: int, where: str) -> Iterator[Finding]:
    """Judge the topic of the events.

    Parameters
    ----------
    topic : Topic
    brokers : int
        How many are up.
    where : str
        ``host:port`` of some of them, for the commands that are advised.
    """
    yield Finding("ok", f"topic {topic.name}", "exists")
    yield from _judge_partitions(topic)
    if not topic.config:
        yield Finding(
            "warning",
            "topic settings",
            "may not be read",
            "grant this user DescribeConfigs on the topic, and look again",
        )
        return
    yield from _judge_replicas(topic, brokers, _Alter(where, topic.name))
    yield from _judge_config(topic.config, _Alter(where, topic.name))
    yield Finding(
        "ok",
        "partitioner",
        "Java, aiokafka and rankwatch send put keys where they belong; with librdkafka (confluent-kafka, kcat, Go) set "
        "partitioner=murmur2_random, or the service has to publish each event again",
    )


class _Alter(NamedTuple):
    where: str
    topic: str

    def to(self, setting: str) -> str:
        return (
            f"kafka-configs.sh --bootstrap-server {self.where} --alter --entity-type topics --entity-name {self.topic} "
            f"--add-config {setting}"
        )


def _judge_partitions(topic: Topic) -> Iterator[Finding]:
    if topic.without_leader:
        numbers = ", ".join(map(str, topic.without_leader))
        yield Finding("fault", "leaders", f"partitions without a leader: {numbers}", "bring the missing brokers back")
    if topic.partitions == 1:
        yield Finding(
            "warning",
            "partitions",
            "1",
            "one worker serves everything; the count cannot be changed once scores are stored, so make the topic with more "
            "(8 or more) before the first run",
        )
    else:
        yield Finding("ok", "partitions", f"{topic.partitions}: so many workers can share the load")


def _judge_replicas(topic: Topic, brokers: int, alter: _Alter) -> Iterator[Finding]:
    replicas, needed = topic.replicas, int(topic.config.get("min.insync.replicas", 1))
    found = f"{replicas}, min.insync.replicas {needed}, brokers up {brokers}"
    if needed > replicas:
        yield Finding(
            "fault",
            "replicas",
            found,
            f"nothing can be written; {alter.to(f'min.insync.replicas={max(1, replicas - 1)}')}",
        )
    elif needed > brokers:
        yield Finding("fault", "replicas", found, "nothing can be written until more brokers are back")
    elif replicas == 1:
        yield Finding(
            "warning",
            "replicas",
            found,
            "the loss of one disk loses events that were acknowledged; use 3, and min.insync.replicas 2, on 3 brokers",
        )
    elif needed == 1:
        yield Finding(
            "warning",
            "replicas",
            found,
            f"an event may be acknowledged by one broker alone, and lost with it; {alter.to('min.insync.replicas=2')}",
        )
    elif needed == replicas:
        yield Finding(
            "warning",
            "replicas",
            found,
            f"no event is taken while one broker is away; {alter.to(f'min.insync.replicas={replicas - 1}')}",
        )
    else:
        yield Finding("ok", "replicas", found)


def _judge_config(config: Mapping[str, str], alter: _Alter) -> Iterator[Finding]:
    policy = config.get("cleanup.policy", "delete")
    if policy == "delete":
        yield Finding("ok", "cleanup.policy", policy)
    else:
        yield Finding(
            "fault",
            "cleanup.policy",
            policy,
            f"compaction keeps one event a benchmark and deletes the others; {alter.to('cleanup.policy=delete')}",
        )
    yield _judge_retention(config, alter)
    longest = int(config.get("max.message.bytes", _LONGEST_MESSAGE))
    if longest < _LONGEST_MESSAGE:
        yield Finding(
            "warning",
            "max.message.bytes",
            f"{longest:,}",
            f"a line of up to 1,000,000 bytes, and batches of 256 KB, are sent; {alter.to(f'max.message.bytes={_LONGEST_MESSAGE}')}",
        )
    else:
        yield Finding("ok", "max.message.bytes", f"{longest:,}")


def _judge_retention(config: Mapping[str, str], alter: _Alter) -> Finding:
    milliseconds, size = int(config.get("retention.ms", -1)), int(config.get("retention.bytes", -1))
    found = "for ever" if milliseconds < 0 else f"{milliseconds / _DAY_MS:,.3g} days"
    if size >= 0:
        return Finding(
            "warning",
            "retention",
            f"{found}, but at most {size:,} bytes a partition",
            f"a burst may delete events before they are read; {alter.to('retention.bytes=-1')}",
        )
    if 0 <= milliseconds < _DAY_MS:
        return Finding(
            "warning",
            "retention",
            found,
            "what is deleted before a stopped service goes on is lost, and it refuses to start then; "
            f"{alter.to(f'retention.ms={7 * _DAY_MS}')}",
        )
    return Finding("ok", "retention", found)


def judge_server(server: ServerFacts) -> Iterator[Finding]:
    """Judge the server that keeps the state."""
    yield Finding(
        "ok", "Redis", f"{server.name} {server.version} at {server.address}, {server.round_trip * 1000:.1f} ms away"
    )
    if tuple(int(part) for part in server.version.split(".")[:2]) < _OLDEST_REDIS:
        yield Finding("fault", "Redis version", server.version, "use Redis 6.2 or newer, or any Valkey")
    if server.role != "master":
        yield Finding("fault", "Redis role", "a replica", "give the URL of the primary: a replica takes no writes")
    if server.eviction == "noeviction":
        yield Finding("ok", "maxmemory-policy", server.eviction)
    else:
        yield Finding(
            "fault",
            "maxmemory-policy",
            server.eviction,
            "parts of the state may be deleted silently: redis-cli CONFIG SET maxmemory-policy noeviction, and in its configuration file",
        )
    if server.memory_ratio is not None and server.memory_ratio > _MEMORY_RATIO:
        yield Finding(
            "warning",
            "maxmemory",
            f"{server.memory_ratio:.0%} used",
            "raise it: a full server takes no writes, and the service waits",
        )
    yield _judge_durability(server)
    skew = server.clock_skew
    if abs(skew) > _SKEW_SECONDS + server.round_trip / 2:
        yield Finding(
            "warning",
            "clock",
            f"{abs(skew):.1f} s {'behind' if skew > 0 else 'ahead of'} the server's",
            "no statistic depends on it, but the times in logs and metrics do: run NTP (chrony, systemd-timesyncd) on both",
        )
    else:
        yield Finding("ok", "clock", f"within {abs(skew) + server.round_trip / 2:.3f} s of the server's")


def _judge_durability(server: ServerFacts) -> Finding:
    if not server.appendonly:
        return Finding(
            "warning",
            "durability",
            "no append-only file",
            "a restart loses the state, and what Kafka no longer keeps with it: set appendonly yes, appendfsync always",
        )
    match server.appendfsync:
        case "always":
            return Finding("ok", "durability", "append-only file, appendfsync always")
        case "everysec":
            return Finding(
                "ok",
                "durability",
                "append-only file, appendfsync everysec: a crash costs reading a second of the log again",
            )
        case None:
            return Finding(
                "warning",
                "durability",
                "append-only file; appendfsync may not be read",
                "see that it is always, or everysec",
            )
        case other:
            return Finding(
                "warning",
                "durability",
                f"append-only file, appendfsync {other}",
                "redis-cli CONFIG SET appendfsync always",
            )


def judge_folder(folder: Path) -> Iterator[Finding]:
    """Try to write in a folder, or in the one in which it would be made."""
    existing = folder.absolute()
    while not existing.exists():
        existing = existing.parent
    try:
        with tempfile.NamedTemporaryFile(dir=existing) as file:
            file.write(b"rankwatch")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        advice = "give this user the right to write there, or choose another --data-dir"
        yield Finding("fault", "data directory", f"{folder}: {error.strerror}", advice)
        return
    free = shutil.disk_usage(existing).free
    found = f"{folder}{'' if existing == folder.absolute() else ' (to be made)'}, {free / 1e9:,.1f} GB free"
    if free < _FREE_BYTES:
        yield Finding("warning", "data directory", found, "make room: when it is full, nothing more is taken in")
    else:
        yield Finding("ok", "data directory", found)


async def look_at_kafka(options: Mapping[str, Any], name: str, verdicts: str) -> list[Finding]:
    """Ask the brokers for the topic of the events and for those that the service writes, and judge them."""
    from monitor.publish.dead_letter_topic import SUFFIX
    from monitor.publish.kafka_errors import BrokerError, addresses
    from monitor.publish.topics import TopicMissing, Topics

    where = addresses(options)
    try:
        async with Topics(options) as topics:
            brokers = await topics.brokers()
            findings = [Finding("ok", "Kafka", f"answers at {where}; brokers up: {brokers}")]
            try:
                events = await topics.require(name)
            except TopicMissing as error:
                return [*findings, Finding("fault", f"topic {name}", "not there", str(error))]
            findings += judge_topic(events, brokers, where)
            for written in (verdicts, name + SUFFIX):
                there = await topics.find(written) is not None
                found = "exists" if there else "not there yet: made at the start of the service, where it may"
                findings.append(Finding("ok", f"topic {written}", found))
            return findings
    except BrokerError as error:
        return [Finding("fault", "Kafka", "no answer, or not allowed", str(error))]


async def look_at_redis(url: str) -> list[Finding]:
    """Ask the server, or each primary of a Cluster, and judge it."""
    from monitor.store.errors import StoreError
    from monitor.store.server.health import server_facts

    try:
        return [finding for server in await server_facts(url) for finding in judge_server(server)]
    except (StoreError, ValueError) as error:
        return [Finding("fault", "Redis", "no answer, or not allowed", str(error))]

"""`rankwatch doctor` against a real Apache Kafka and a real server for the state."""

from contextlib import asynccontextmanager

import pytest
from redis.asyncio import Redis

from monitor.store.server.embedded import EmbeddedValkey
from tests.commands import rankwatch
from tests.kafka.records import fresh_topic
from tests.store_model import short_directory

pytestmark = pytest.mark.kafka


@asynccontextmanager
async def valkey(**config):
    """A server with some settings changed, and its URL."""
    with short_directory() as directory:
        server = EmbeddedValkey(directory)
        async with server:
            client = Redis(**server.options)
            for name, value in config.items():
                await client.config_set(name.replace("_", "-"), value)
            await client.aclose()
            yield f"unix://{server.options['unix_socket_path']}?password={server.options['password']}"


def lines_of(ended):
    """Level and text of each finding."""
    return [
        tuple(line.split(None, 1))
        for line in ended.stdout.splitlines()
        if line.startswith(("ok ", "warning ", "FAULT "))
    ]


async def test_good_settings_have_no_fault(kafka, tmp_path):
    topic = fresh_topic()
    await kafka.create_topic(topic, 4)
    async with valkey() as url:
        ended = rankwatch(
            "doctor", "--broker", kafka.addresses, "--topic", topic, "--redis-url", url, "--data-dir", tmp_path
        )
    assert [text.split()[0] for level, text in lines_of(ended) if level != "ok"] == ["replicas"], (
        "of which there is one here"
    )
    for subject in (
        "Kafka",
        f"topic {topic}",
        "partitions",
        "cleanup.policy",
        "retention",
        "Redis",
        "clock",
        "data directory",
    ):
        assert any(level == "ok" and text.startswith(subject) for level, text in lines_of(ended)), subject


async def test_bad_settings_are_reported_each_with_its_remedy(kafka, tmp_path):
    topic = fresh_topic()
    await kafka.create_topic(topic, 1, cleanup_policy="compact", retention_ms=60_000, max_message_bytes=10_000)
    async with valkey(maxmemory_policy="allkeys-lru", appendfsync="no") as url:
        ended = rankwatch("doctor", "--broker", kafka.url(topic), "--redis-url", url, "--data-dir", tmp_path, code=1)
    levels = {text.split("  ")[0]: level for level, text in lines_of(ended)}
    assert levels["cleanup.policy"] == levels["maxmemory-policy"] == "FAULT"
    for subject in ("partitions", "retention", "max.message.bytes", "durability"):
        assert levels[subject] == "warning"
    assert f"--entity-name {topic} --add-config cleanup.policy=delete" in ended.stdout
    assert "CONFIG SET maxmemory-policy noeviction" in ended.stdout


def test_nothing_there(kafka, tmp_path):
    missing = ("--topic", "nowhere", "--redis-url", "redis://127.0.0.1:1", "--data-dir", tmp_path)
    ended = rankwatch("doctor", "--broker", kafka.addresses, *missing, code=1)
    assert "--create --topic nowhere" in ended.stdout
    assert "does not answer" in ended.stdout
    assert "no answer" in rankwatch("doctor", "--broker", "127.0.0.1:1", "--data-dir", tmp_path, code=1).stdout


def test_the_embedded_default_needs_neither(tmp_path):
    ended = rankwatch("doctor", "--data-dir", tmp_path)
    assert all(level == "ok" for level, _ in lines_of(ended))

"""What `run` finds at its start: topics that are missing, that it makes, or that cannot be read."""

import json
import signal
import urllib.error
import urllib.request

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaConnectionError

from monitor.engine.state.changes import record_digest
from monitor.log.kafka.settings import KafkaSettings
from monitor.publish.kafka_errors import BrokerError
from monitor.publish.topics import Topics
from monitor.service.source_topic import SourceGap, SourceTopic
from monitor.service.worker import ClusterWorker
from monitor.settings import Settings
from tests.commands import PATIENCE, get, until
from tests.kafka.records import options
from tests.kafka.run_worker import RunReader, worker_starter

pytestmark = pytest.mark.kafka


@pytest.fixture
def start(kafka, topic, tmp_path):
    """Starts a worker on the test's topic."""
    with worker_starter(kafka, topic, tmp_path) as starter:
        yield starter


def redis_off(start, topic):
    """How far the state of partition 0 is."""
    meta = start.redis.contents(f"{{{topic}:0}}:meta")
    return next((int(fields.get(b"off", 0)) for fields in meta.values()), 0)


def ended(worker):
    """What a worker says last, that ends by itself with exit 1."""
    assert worker.process.wait(PATIENCE) == 1, worker.log_text
    assert "Traceback" not in worker.log_text
    return worker.log_text.strip().splitlines()[-1]


def post(url, text):
    """The status of a POST."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, text.encode(), {"Content-Type": "application/x-ndjson"}), timeout=PATIENCE
        ) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


async def config(kafka, name):
    async with Topics(options(kafka)) as topics:
        return await topics.find(name)


async def test_a_missing_topic_is_not_made_unless_that_is_asked_for(kafka, topic, start):
    assert f"--create --topic {topic} " in ended(start())
    assert await config(kafka, topic) is None
    worker = start(create_topics="all", topic_partitions="3", topic_retention_seconds="86400")
    until(lambda: get(f"{worker.url()}/readyz")[0] == 200, "the worker to be ready")
    for name in (topic, f"{topic}.dlq", f"{topic}.verdicts"):
        settings = await config(kafka, name)
        assert (settings.partitions, settings.replicas) == (3, 1)
        assert (settings.config["retention.ms"], settings.config["cleanup.policy"]) == ("86400000", "delete")
    assert worker.holds() == 3
    until(lambda: "rankwatch_broker_up 1.0" in get(f"{worker.url()}/metrics")[1], "the brokers to be seen")
    assert "rankwatch_source_gap 0.0" in get(f"{worker.url()}/metrics")[1]


async def test_what_the_service_writes_is_not_made_where_that_is_forbidden(kafka, topic, start):
    await kafka.create_topic(topic, 2)
    assert f"--create --topic {topic}.verdicts --partitions 2" in ended(start(create_topics="none"))
    assert await config(kafka, f"{topic}.verdicts") is None


async def test_settings_are_read_again_at_sighup(kafka, topic, start, tmp_path):
    file = tmp_path / "rankwatch.toml"
    file.write_text("linger_seconds = 1\n")
    await kafka.create_topic(topic, 1)
    worker = start(config=str(file))
    reader = start(config=str(file), command=RunReader)
    until(reader.ready, "the reader to be ready")
    url = f"{reader.url()}/api/v1/events"
    events = "\n".join(json.dumps({"benchmark": "b", "item_id": str(i), "model": "m", "score": 1}) for i in range(100))
    assert [post(url, events) for _ in range(2)] == [200, 200]
    suite = f"{reader.url()}/api/v1/benchmarks/overall"
    assert get(suite)[0] == 404

    limits = "linger_seconds = 2\nclient_events_per_second = 1\npoll_seconds = 3\nmetrics_series = 7\n"
    file.write_text(f'{limits}[suites]\noverall = ["b", "c"]\n[prices]\nm = 0.5\n')
    worker.signal(signal.SIGHUP)
    reader.signal(signal.SIGHUP)
    until(lambda: reader.lines("settings reloaded"), "the reader to read the settings")
    (line,) = until(lambda: worker.lines("settings reloaded"), "the settings to be read")
    shown = {"suites": {"overall": ["b", "c"]}, "prices": {"m": 0.5}, "metrics_series": 7}
    assert line["changed"] == {"linger_seconds": 2.0, "client_events_per_second": 1.0} | shown
    assert line["need_a_restart"] == ["poll_seconds"]
    assert [post(url, events) for _ in range(2)] == [200, 429]
    until(lambda: get(suite)[0] == 200, "the suite")
    assert "rankwatch_series_budget 7.0" in get(f"{reader.url()}/metrics")[1]

    file.write_text("linger_seconds = -1\n")
    worker.signal(signal.SIGHUP)
    (line,) = until(lambda: worker.lines("settings not reloaded"), "the settings to be refused")
    assert line["reason"] == f"{file}: linger_seconds -1: use a number from 0 to 3600"
    assert get(f"{worker.url()}/healthz")[0] == 200


@pytest.mark.fault("kafka", "brokers go away during the start", "exit 1 with their names")
async def test_brokers_that_go_away_during_the_start_are_named(kafka, topic, start, monkeypatch):
    """After the topics were checked, and before the consumer is connected."""

    async def away(_):
        raise KafkaConnectionError("closed")

    await kafka.create_topic(topic, 1)
    monkeypatch.setattr(AIOKafkaConsumer, "start", away)
    settings = Settings(topic=topic, group=topic, verdict_topic=f"{topic}.verdicts", redis_url=start.redis.url)
    with pytest.raises(BrokerError, match=f"Kafka at {kafka.addresses}: no answer"):
        async with ClusterWorker(settings, KafkaSettings(addresses=kafka.addresses)):
            pass


@pytest.mark.fault("kafka", "a topic that is not the one of the state", "refused at the start")
async def test_a_log_that_is_not_the_one_of_the_state_is_refused(kafka, topic, start):
    """Made anew with the same records, with fewer of them, and with another number of partitions; or another record where it ended."""

    async def make(partitions, *values):
        await kafka.create_topic(topic, partitions)
        async with AIOKafkaProducer(bootstrap_servers=kafka.addresses) as producer:
            for value in values:
                await producer.send_and_wait(topic, value, partition=0)

    await make(1, b"one", b"two")
    worker = start()
    until(lambda: redis_off(start, topic) == 2, "both records to be folded")
    worker.process.terminate()
    assert worker.process.wait(PATIENCE) == 0, worker.log_text
    for partitions, values, message in (
        (1, (b"one", b"two"), "belongs to another log"),  # the same records
        (1, (b"one",), "belongs to another log"),
        (2, (b"one", b"two"), "belongs to another log"),
    ):
        await kafka.delete_topic(topic)
        await make(partitions, *values)
        assert message in ended(start(linger_seconds="0.5"))
        assert redis_off(start, topic) == 2, "the state is as it was"
    source = SourceTopic(Settings(topic=topic), KafkaSettings(addresses=kafka.addresses))
    await source.check_last_record(0, (1, record_digest(b"two")), 0)
    await source.check_last_record(0, (1, record_digest(b"other")), 2)
    for offset, content in ((1, "another record"), (2, "nothing")):
        with pytest.raises(SourceGap, match=f"holds {content} at offset {offset}, where the last record was folded"):
            await source.check_last_record(0, (offset, record_digest(b"other")), 0)


@pytest.mark.smoke
async def test_what_producers_compress_is_read_and_what_is_sent_can_be_compressed(kafka, topic, start):
    codecs = ["gzip", "snappy", "lz4", "zstd"]
    await kafka.create_topic(topic, 1)

    for codec in codecs:
        event = {"benchmark": "b", "item_id": codec, "model": "m", "score": 1}
        async with AIOKafkaProducer(bootstrap_servers=kafka.addresses, compression_type=codec) as producer:
            await producer.send_and_wait(topic, json.dumps(event).encode(), partition=0)
    worker = start(fresh=True, kafka_compression="zstd")
    until(lambda: redis_off(start, topic) == len(codecs), "every record to be folded")
    assert worker.code is None

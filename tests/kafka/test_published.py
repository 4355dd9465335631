"""What the service writes to Kafka: verdicts, dead letters, misrouted events; and the topics for it."""

import asyncio
import json

import pytest
from aiokafka.partitioner import DefaultPartitioner

from monitor.engine.chunk_fold import Partition
from monitor.publish.dead_letter_topic import DeadLetterTopic
from monitor.publish.kafka_errors import BrokerError
from monitor.publish.kafka_producer import BATCH_BYTES, KafkaProducer, Message
from monitor.publish.republisher import Republisher
from monitor.publish.topics import TopicMissing, Topics
from monitor.publish.verdict_topic import VerdictTopic
from monitor.retries import RetryPolicy
from schemas.records.chunks import ORIGIN_HEADER, Chunk, DeadLetter, Misrouted
from schemas.records.origins import OriginKey
from schemas.records.ownership import owner
from tests.kafka.records import fresh_topic, options, read_all

pytestmark = pytest.mark.kafka

SOME = 60_000
"""Messages that take longer to deliver than the broker is left alone."""


def letter(offset, index=0, **more):
    fields = {"source": "log", "line": None, "field": "score", "found": "2", "raw": '{"score": 2}'}
    fields |= {"reason": "größer als 1", "benchmark": "bench"}
    return DeadLetter(offset, index, **fields | more)


def changes_of(partition_number, benchmarks):
    """Real verdict changes, by the real fold."""
    events = [
        {"benchmark": name, "item_id": str(i), "model": model, "score": score}
        for name in benchmarks
        for i in range(60)
        for model, score in (("a", 1), ("b", i % 10 == 0))
    ]
    log = [json.dumps(r).encode() for r in (*({"declare": name, "order": "trusted"} for name in benchmarks), *events)]
    partition = Partition(partition_number)
    delta = partition.fold(Chunk(partition_number, 0, len(log), range(len(log)), log))
    return [change for benchmark in delta.benchmarks for change in benchmark.changes.values()]


async def test_messages_arrive_in_order_each_on_its_partition(kafka):
    topic = fresh_topic()
    await kafka.create_topic(topic, 3)
    # Larger than some batches together; one message is larger than a batch.
    wanted = [Message(k % 3, b"%d" % k, b"%d" % k * 40, [("n", b"%d" % k)]) for k in range(20_000)]
    wanted.append(Message(1, b"large", b"x" * 3 * BATCH_BYTES))
    async with KafkaProducer(options(kafka)) as producer:
        await producer.deliver(topic, wanted)
        assert await producer.partitions(topic) == 3
    received = [(r.partition, r.key, r.value, list(r.headers)) for r in await read_all(kafka, topic)]
    assert received == [(p, k, v, list(h)) for n in range(3) for p, k, v, h in wanted if p == n]


async def test_compressed_messages_arrive(kafka):
    topic = fresh_topic()
    await kafka.create_topic(topic)
    async with KafkaProducer(options(kafka), compression="gzip") as producer:
        await producer.deliver(topic, [Message(0, b"k", b"%d" % k) for k in range(100)])
    assert [r.value for r in await read_all(kafka, topic)] == [b"%d" % k for k in range(100)]


async def test_a_partition_that_is_not_there(kafka):
    topic = fresh_topic()
    await kafka.create_topic(topic, 2)
    async with KafkaProducer(options(kafka)) as producer:
        with pytest.raises(ValueError, match=r"partition is 2.* has 2"):
            await producer.deliver(topic, [Message(2, b"", b"")])


async def test_after_a_message_that_is_too_large_others_are_delivered(kafka):
    topic = fresh_topic()
    await kafka.create_topic(topic, max_message_bytes=20_000)
    async with KafkaProducer(options(kafka)) as producer:
        await producer.deliver(topic, [Message(0, b"", b"before")])
        messages = [Message(0, b"", b"x" * 30_000), Message(0, b"", b"after")]
        with pytest.raises(BrokerError, match=r"max\.message\.bytes"):
            await producer.deliver(topic, messages)
        await producer.deliver(topic, [Message(0, b"", b"after")])
    assert [r.value for r in await read_all(kafka, topic)] == [b"before", b"after"]


async def test_what_is_closed_stays_closed(kafka):
    topic = fresh_topic()
    await kafka.create_topic(topic)
    async with KafkaProducer(options(kafka)) as producer:
        pass
    with pytest.raises(BrokerError, match="is closed"):
        await producer.deliver(topic, [Message(0, b"", b"")])


async def test_no_broker_is_a_fault_that_says_so():
    producer = KafkaProducer({"bootstrap_servers": "127.0.0.1:1"}, timeout=0.5)
    with pytest.raises(BrokerError, match=r"127\.0\.0\.1:1: no answer"):
        async with producer:
            pass


async def test_a_broker_that_goes_away_and_comes_back(own_kafka):
    """Killed while messages are under way: all of them arrive, and a repeated message never overtakes the one it followed."""
    topic = fresh_topic()
    await own_kafka.create_topic(topic)
    async with KafkaProducer(options(own_kafka)) as producer:
        sending = asyncio.create_task(producer.deliver(topic, [Message(0, b"", b"%d" % k * 50) for k in range(SOME)]))
        await asyncio.sleep(0.2)
        (broker,) = own_kafka.brokers
        broker.kill()
        assert not sending.done()
        await asyncio.to_thread(own_kafka.start)
        await sending
    numbers = [int(r.value[: len(r.value) // 50]) for r in await read_all(own_kafka, topic)]
    assert list(dict.fromkeys(numbers)) == list(range(SOME))


async def test_verdicts_are_cloud_events_of_their_benchmark(kafka):
    topic, names = fresh_topic("verdicts"), ["bench", "größe", "c"]
    await kafka.create_topic(topic, 4)
    changes = changes_of(2, names)
    assert {change.benchmark for change in changes} == set(names)
    async with KafkaProducer(options(kafka)) as producer:
        verdicts = VerdictTopic(producer, "events", 2, topic)
        await verdicts.publish(changes)
        await verdicts.publish(changes)
    records = await read_all(kafka, topic)
    assert len(records) == 2 * len(changes)
    seen = {}
    for record in records:
        headers, body = dict(record.headers), json.loads(record.value)
        assert record.key.decode() == body["benchmark"]
        assert record.partition == DefaultPartitioner()(record.key, list(range(4)), list(range(4)))
        assert headers["ce_id"].decode() == f"events/2/{body['id']}"
        seen.setdefault(headers["ce_id"], []).append((record.key, record.value, record.headers))
    assert all(first == second for first, second in seen.values())


async def test_dead_letters_say_where_and_why(kafka):
    topic = fresh_topic()
    await kafka.create_topic(topic + ".dlq", 2)
    async with KafkaProducer(options(kafka)) as producer:
        letters = DeadLetterTopic(producer, topic)
        first = [letter(7), letter(7, 3, benchmark=None, raw="\ud800"), letter(9, line=4, source="/f")]
        assert await letters.keep(5, first) == 3
        assert await letters.keep(5, [letter(7), letter(9), letter(10)]) == 1, "what came again is not kept again"
        assert await letters.keep(1, [letter(7)]) == 1, "each partition counts for itself"
    first, second, third, *others = await read_all(kafka, topic + ".dlq")
    assert {r.partition for r in (first, second, third, *others)} == {1}
    assert (first.key, first.value) == (b"bench", b'{"score": 2}')
    assert {name: value.decode() for name, value in first.headers} == {
        "reason": "größer als 1",
        "field": "score",
        "found": "2",
        "topic": topic,
        "partition": "5",
        "offset": "7",
        "index": "0",
    }
    assert (second.key, second.value, dict(second.headers)["index"]) == (None, b"\\ud800", b"3")
    assert (dict(third.headers)["source"], dict(third.headers)["line"]) == (b"/f", b"4")
    assert [dict(r.headers)["offset"] for r in others] == [b"10", b"7"]


async def test_misrouted_events_reach_their_owners_in_order(kafka):
    topic, names = fresh_topic(), [f"b{k}" for k in range(20)]
    await kafka.create_topic(topic, 4)
    misrouted = [
        Misrouted(offset, place, names[(offset + place) % 20], b"%d:%d" % (offset, place))
        for offset in range(500)
        for place in range(3)
    ]
    key = OriginKey(b"secret", "log")
    async with KafkaProducer(options(kafka)) as producer:
        await Republisher(producer, topic, 4, key)(1, misrouted)
    records = await read_all(kafka, topic)
    assert len(records) == len(misrouted)
    last = {}
    for record in records:
        origin = key.verify(dict(record.headers)[ORIGIN_HEADER], record.partition, record.value)
        assert record.partition == owner(record.key.decode(), 4)
        assert record.value == b"%d:%d" % (origin.offset, origin.place)
        assert origin.partition == 1
        assert last.get(record.partition, (-1, -1)) < (origin.offset, origin.place)
        last[record.partition] = (origin.offset, origin.place)


async def test_topics_are_made_as_the_topic_of_the_events_is(kafka):
    topic = fresh_topic()
    await kafka.create_topic(topic, 3)
    async with Topics(options(kafka)) as topics:
        events = await topics.require(topic)
        assert (events.partitions, events.replicas, events.without_leader) == (3, 1, ())
        with pytest.raises(TopicMissing, match=rf"--create --topic {topic}\.dlq --partitions 3 --replication-factor 1"):
            await topics.provide(topic + ".dlq", events, create=False)
        assert await topics.find(topic + ".dlq") is None
        made = await topics.provide(topic + ".dlq", events)
        assert made.partitions == 3
        again = await topics.provide(topic + ".dlq", events)
        assert (again.partitions, again.config["cleanup.policy"]) == (3, "delete")


@pytest.mark.parametrize("comes", [True, False])
async def test_a_topic_waits_for_a_controller_before_it_is_made(kafka, monkeypatch, comes):
    topic = fresh_topic()
    await kafka.create_topic(topic, 1)
    monkeypatch.setattr("monitor.retries.METADATA_LAG", RetryPolicy(timeout=10 if comes else 1.5))
    async with Topics(options(kafka)) as topics:
        events = await topics.require(topic)
        client = topics._admin._client
        update, asked = client.force_metadata_update, []

        async def without_controller():
            """The metadata of a cluster that elects one: after a few answers there is a controller, or never."""
            await update()
            asked.append(client.cluster.controller)
            if len(asked) < 4 or not comes:
                client.cluster.controller = None

        client.force_metadata_update, client.cluster.controller = without_controller, None
        if comes:
            assert (await topics.provide(topic + ".dlq", events)).partitions == 1
        else:
            with pytest.raises(BrokerError, match="no broker is the controller"):
                await topics.provide(topic + ".dlq", events)
    assert len(asked) >= 3


async def test_a_topic_that_a_broker_does_not_know_yet_is_asked_for_again(kafka):
    name = fresh_topic("late")
    async with Topics(options(kafka)) as topics:
        required = asyncio.create_task(topics.require(name))
        await asyncio.sleep(0.5)
        assert not required.done()
        await kafka.create_topic(name, 2)
        assert (await asyncio.wait_for(required, 10)).partitions == 2


async def test_the_topic_of_the_events_is_never_made(kafka, monkeypatch):
    monkeypatch.setattr("monitor.retries.METADATA_LAG", RetryPolicy(timeout=0.1))
    name = fresh_topic("missing")
    async with Topics(options(kafka)) as topics:
        with pytest.raises(
            TopicMissing, match=f"topic {name} does not exist.*kafka-topics.sh .*--create --topic {name}"
        ):
            await topics.require(name)
        assert await topics.find(name) is None

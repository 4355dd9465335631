"""What the Kafka transport does beyond the contract of every log, against a real Apache Kafka."""

import asyncio
import random

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import RecordsToDelete
from faust.types import TP

from monitor.log.errors import OffsetOutOfRange, TopicChanged
from monitor.log.kafka.settings import KafkaSettings
from monitor.log.kafka.topic_identity import TopicIdentity, topic_identity
from monitor.retries import RetryPolicy
from monitor.service.source_topic import SourceGap
from schemas.records.chunks import Origin
from schemas.records.origins import OriginKey
from tests.kafka.workers import Store, Worker, numbers, produce, producing, until

pytestmark = pytest.mark.kafka

KEY = OriginKey(b"secret", "log")


async def test_a_message_without_a_value_is_an_empty_record_and_a_copy_names_its_origin(kafka, topic):
    await kafka.create_topic(topic)
    async with producing(kafka) as producer:
        await producer.send_and_wait(topic, b"1", key=b"k", headers=[("trace", b"x")])
        await producer.send_and_wait(topic, None, key=b"k")
        await producer.send_and_wait(topic, b"3", headers=[("rankwatch-origin", KEY.sign(Origin(7, 120, 2), 0, b"3"))])
        await producer.send_and_wait(topic, b"4", headers=[("rankwatch-origin", b"nonsense")])
    store = Store()
    worker = Worker(kafka, topic, store)
    worker.app.origin_key = KEY
    async with worker:
        await until(lambda: store.offsets.get(0) == 4)
    assert store.records[0] == [b"1", b"", b"3", b"4"]
    origins = [o for _, chunk in store.chunks for o in chunk.origins or [None] * len(chunk.records)]
    assert origins == [None, None, Origin(7, 120, 2), None]


async def test_offsets_without_records_leave_no_gap_between_chunks(kafka, topic):
    """Transactions put markers between the records; what was aborted is never seen."""

    await kafka.create_topic(topic)
    expected = []
    async with producing(kafka, transactional_id=topic) as producer:
        for number in range(12):
            await producer.begin_transaction()
            for part in range(7):
                await producer.send(topic, b"%d-%d" % (number, part), partition=0)
            if number % 3:
                await producer.commit_transaction()
                expected += [b"%d-%d" % (number, part) for part in range(7)]
            else:
                await producer.abort_transaction()
    store = Store()
    async with Worker(kafka, topic, store) as worker:
        await until(lambda: len(store.records.get(0, ())) == len(expected))
        end = (await worker.app.consumer.highwaters(TP(topic, 0)))[TP(topic, 0)]
    assert store.records[0] == expected
    assert store.rejected == 0
    chunks = [chunk for _, chunk in store.chunks]
    for chunk in chunks:
        assert chunk.start <= chunk.offsets[0]
        assert chunk.offsets[-1] < chunk.end
        assert list(chunk.offsets) == sorted(set(chunk.offsets))
    assert chunks[-1].end == end == 12 * 8
    assert len({offset for chunk in chunks for offset in chunk.offsets}) == len(expected)

    # From the middle, at an offset that holds no record.
    middle = Store()
    middle.offsets[0] = 15
    async with Worker(kafka, topic, middle):
        await until(lambda: middle.offsets[0] == end)
    assert middle.records[0] == expected[7:]
    assert middle.chunks[0][1].start == 15


async def test_a_chunk_keeps_its_bound_of_bytes_and_a_large_record_comes_alone(kafka, topic):
    await kafka.create_topic(topic, max_message_bytes=20 << 20)
    sizes = [300, 400, 400, 100, 12_000_000, 10, 990, 1000, 1]
    async with producing(kafka, max_request_size=16 << 20) as producer:
        for size in sizes:
            await producer.send_and_wait(topic, b"x" * size)
    store = Store()
    worker = Worker(kafka, topic, store)
    worker.app.chunk_bytes = 1000
    async with worker:
        await until(lambda: store.offsets.get(0) == len(sizes))
    assert [len(record) for record in store.records[0]] == sizes
    assert store.rejected == 0
    assert all(sum(map(len, chunk.records)) <= 1000 or len(chunk.records) == 1 for _, chunk in store.chunks)


async def test_a_seek_in_one_partition_loses_and_repeats_nothing_in_the_others(kafka, topic):
    await kafka.create_topic(topic, 4)
    await produce(kafka, topic, 400, partitions=4)
    choice = random.Random(4)
    seen = {partition: [] for partition in range(4)}
    store = Store()
    worker = Worker(kafka, topic, store)
    back = 30

    def commit(_, chunk):
        assert chunk.start == store.offsets.get(chunk.partition, 0)
        store.offsets[chunk.partition] = chunk.end
        seen[chunk.partition] += zip(chunk.offsets, chunk.records, strict=True)

    async def seek_now_and_then(chunk):
        nonlocal back
        if back and choice.random() < 0.3:
            back -= 1
            sought = choice.choice([other for other in range(4) if other != chunk.partition])
            store.offsets[sought] = choice.randrange(store.offsets.get(sought, 0) + 1)
            await worker.app.consumer.seek(TP(topic, sought), store.offsets[sought])

    store.commit = commit
    worker.before_commit = seek_now_and_then
    async with worker:
        await until(lambda: not back and all(store.offsets.get(partition) == 400 for partition in range(4)))
    for read in seen.values():
        assert all(record == b"%d" % offset for offset, record in read)
        assert {offset for offset, _ in read} == set(range(400))


async def test_what_is_paused_is_not_read_until_it_is_resumed(kafka, topic):
    await kafka.create_topic(topic, 2)
    await produce(kafka, topic, 100, partitions=2)
    store = Store()
    worker = Worker(kafka, topic, store)

    async def pause_the_first(partitions):
        await worker.on_assigned(partitions)
        worker.app.consumer.pause_partitions({TP(topic, 0)})

    worker.app.on_assigned = pause_the_first
    async with worker:
        await until(lambda: store.offsets.get(1) == 100)
        await asyncio.sleep(0.3)
        assert 0 not in store.offsets
        worker.app.consumer.resume_partitions({TP(topic, 0)})
        await until(lambda: store.offsets.get(0) == 100)
    assert store.records == {0: numbers(100), 1: numbers(100)}


@pytest.mark.fault("kafka", "retention has passed the next offset at the start", "refused")
async def test_offsets_that_retention_has_passed_are_refused(kafka, topic):
    await kafka.create_topic(topic)
    await produce(kafka, topic, 100)
    async with kafka.admin() as admin:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=50)})
    store = Store()
    store.offsets[0] = 49
    app = Worker(kafka, topic, store).app
    await app.start()
    with pytest.raises(OffsetOutOfRange, match=rf"offset 49 is outside partition 0 of {topic}, which holds 50 to 100"):
        await asyncio.wait_for(app.wait_failed(), 10)
    await app.stop()
    assert store.chunks == []


@pytest.mark.fault("kafka", "retention overtakes a running consumer", "it ends with the reason")
async def test_retention_that_overtakes_a_reader_ends_it(kafka, topic):
    await kafka.create_topic(topic)
    await produce(kafka, topic, 100)
    store = Store()
    worker = Worker(kafka, topic, store, fetch_bytes=300)
    await worker.app.start()
    await until(lambda: bool(worker.mine))
    worker.app.consumer.pause_partitions({TP(topic, 0)})
    await asyncio.sleep(0.5)
    async with kafka.admin() as admin:
        await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=100)})
    await worker.app.consumer.seek(TP(topic, 0), 20)
    worker.app.consumer.resume_partitions({TP(topic, 0)})
    with pytest.raises(OffsetOutOfRange, match=r"offset 20 is outside partition 0 of .*, which no longer holds it"):
        await asyncio.wait_for(worker.app.wait_failed(), 10)
    await worker.app.stop()


@pytest.mark.parametrize("moment", ["at the start", "while it reads"])
async def test_an_offset_that_another_topic_does_not_hold_is_no_matter_of_retention(kafka, topic, moment):
    """Before, a topic that was created again was recognized only once it held as many records as were folded."""
    await kafka.create_topic(topic)
    await produce(kafka, topic, 100)
    identity = await topic_identity(KafkaSettings(addresses=kafka.addresses), topic)
    store = Store()
    store.offsets[0] = 1000 if moment == "at the start" else 100
    worker = Worker(kafka, topic, store)
    worker.app.topic_folded = identity._replace(id="0" * 32)
    await worker.app.start()
    if moment == "while it reads":
        await until(lambda: bool(worker.mine))
        async with kafka.admin() as admin:
            await admin.delete_records({TopicPartition(topic, 0): RecordsToDelete(before_offset=100)})
        await worker.app.consumer.seek(TP(topic, 0), 20)
    with pytest.raises(TopicChanged, match=f"topic {topic} was deleted and created again"):
        await asyncio.wait_for(worker.app.wait_failed(), 30)
    await worker.app.stop()
    assert store.chunks == []


async def test_a_topic_that_exists_a_moment_later_is_read(kafka, topic, monkeypatch):
    """The metadata of a broker may lag when a topic was just created."""
    store, asked = Store(), asyncio.Event()
    ask = AIOKafkaConsumer.topics

    async def topics(consumer):
        names = await ask(consumer)
        asked.set()
        return names

    async def create():
        await asked.wait()
        await kafka.create_topic(topic)

    monkeypatch.setattr(AIOKafkaConsumer, "topics", topics)
    creation = asyncio.create_task(create())
    async with Worker(kafka, topic, store):
        await creation
        await produce(kafka, topic, 10)
        await until(lambda: store.offsets.get(0) == 10)
    assert store.records == {0: numbers(10)}


async def test_a_topic_that_does_not_exist_is_refused_and_not_made(kafka, topic, monkeypatch):
    monkeypatch.setattr("monitor.retries.METADATA_LAG", RetryPolicy(timeout=0.1))
    app = Worker(kafka, topic, Store()).app
    await app.start()
    with pytest.raises(ValueError, match=f"topic {topic} does not exist at .*: create it"):
        await asyncio.wait_for(app.wait_failed(), 10)
    await app.stop()
    async with kafka.admin() as admin:
        assert topic not in await admin.list_topics()


async def test_progress_is_reported_to_the_broker_and_never_read_back(kafka, topic):
    await kafka.create_topic(topic)
    await produce(kafka, topic, 100)
    first = Store()
    async with Worker(kafka, topic, first):
        await until(lambda: first.offsets.get(0) == 100)
    async with AIOKafkaConsumer(bootstrap_servers=kafka.addresses, group_id=topic) as watcher:
        assert await watcher.committed(TopicPartition(topic, 0)) == 100
    second = Store()
    second.offsets[0] = 30
    async with Worker(kafka, topic, second):
        await until(lambda: second.offsets[0] == 100)
    assert second.records[0] == numbers(100)[30:]


async def test_a_topic_is_identified_by_what_the_broker_says_of_it_and_not_by_its_name(kafka, topic):
    settings = KafkaSettings(addresses=kafka.addresses)
    assert await topic_identity(settings, topic) is None
    await kafka.create_topic(topic, 3)
    first = await topic_identity(settings, topic)
    assert (len(first.id), first.partitions) == (32, 3)
    assert await topic_identity(settings, topic) == first
    await kafka.delete_topic(topic)
    await kafka.create_topic(topic, 3)
    second = await topic_identity(settings, topic)
    assert (second.partitions, second.id != first.id) == (3, True)


@pytest.mark.fault("kafka", "topic exchanged under a running consumer", "no record of the new topic is folded")
async def test_no_record_of_another_topic_reaches_the_agent(kafka, topic):
    await kafka.create_topic(topic)
    await produce(kafka, topic, 100)
    identity = await topic_identity(KafkaSettings(addresses=kafka.addresses), topic)
    for folded in (identity, TopicIdentity("", 0), identity._replace(id="")):
        store = Store()
        worker = Worker(kafka, topic, store)
        worker.app.topic_folded = folded
        async with worker:
            await until(lambda store=store: store.offsets.get(0) == 100)
    for folded, message in (
        (identity._replace(id="0" * 32), f"topic {topic} was deleted and created again"),
        (
            identity._replace(partitions=2),
            f"the partition count of topic {topic} is now 1, and its state was folded with 2",
        ),
    ):
        store = Store()
        app = Worker(kafka, topic, store).app
        app.topic_folded = folded
        await app.start()
        with pytest.raises(TopicChanged, match=message):
            await asyncio.wait_for(app.wait_failed(), 10)
        await app.stop()
        assert store.chunks == []


@pytest.mark.fault(
    "kafka", "connections to the broker lost", "the last folded record is compared first; another one is refused"
)
async def test_after_a_reconnect_what_was_folded_is_compared_before_more_is_delivered(kafka, topic):
    await kafka.create_topic(topic)
    await produce(kafka, topic, 50)
    identity = await topic_identity(KafkaSettings(addresses=kafka.addresses), topic)
    store, compared, answers = Store(), [], [False, True, SourceGap("lost")]
    worker = Worker(kafka, topic, store)
    worker.app.topic_folded = identity

    async def compare(tp):
        compared.append((tp.partition, store.offsets[0]))
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def reconnect():
        client = worker.app.consumer._kafka._client
        for connection in list(client._conns.values()):
            connection.close()

    worker.app.on_reconnected = compare
    await worker.app.start()
    await until(lambda: store.offsets.get(0) == 50)
    assert compared == []
    reconnect()
    await produce(kafka, topic, 50)
    await until(lambda: store.offsets.get(0) == 100)
    assert compared == [(0, 50)] * 2, "asked again until it could be compared"
    await produce(kafka, topic, 50)
    await until(lambda: store.offsets.get(0) == 150)
    reconnect()
    await produce(kafka, topic, 50)
    with pytest.raises(SourceGap, match="lost"):
        await asyncio.wait_for(worker.app.wait_failed(), 10)
    await worker.app.stop()
    assert (store.offsets[0], compared[2:]) == (150, [(0, 150)])

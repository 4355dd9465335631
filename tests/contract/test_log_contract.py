"""What the application may rely on whatever log it reads: every transport is run through the same suite."""

import asyncio
import json
import random
import uuid
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer

from monitor.log.errors import OffsetOutOfRange
from monitor.log.faust_app import make_app
from monitor.log.file.log import FileLog
from monitor.log.kafka.settings import KafkaSettings

TOPIC = "events"


class EmbeddedLog:
    """The file log, as the suite sees a log: something that can be appended to and that applications read."""

    needs = "tmp_path"
    seeks = 300

    @classmethod
    async def open(cls, directory):
        log = cls()
        log._log = FileLog.open(directory / "a log; with, 100% #odd? names.jsonl")
        return log

    async def append(self, records):
        await self._log.append(records)

    def make_app(self):
        app = make_app(self._log.path.as_uri(), TOPIC, app_id="contract")
        app.file_log = self._log
        return app

    def outside(self):
        """Offsets that no chunk ends at."""
        return [self._log.first_offset + 1, self._log.durable_end + 1000]

    async def close(self):
        await self._log.close()


class KafkaLog:
    """A topic of its own with one partition, in a real Apache Kafka."""

    needs = "kafka"
    seeks = 100  # each is a fetch

    @classmethod
    async def open(cls, cluster):
        log = cls()
        log._topic = TOPIC + uuid.uuid4().hex
        log._url = cluster.url(log._topic)
        log._length = 0
        await cluster.create_topic(log._topic)
        log._producer = AIOKafkaProducer(bootstrap_servers=cluster.addresses)
        await log._producer.start()
        return log

    async def append(self, records):
        sent = [await self._producer.send(self._topic, record, partition=0) for record in records]
        self._length = (await sent[-1]).offset + 1

    def make_app(self):
        settings = KafkaSettings.from_url(self._url, fetch_wait_seconds=0.02)
        return make_app(self._url, self._topic, app_id=self._topic, kafka=settings)

    def outside(self):
        return [self._length + 1, self._length + 1000]

    async def close(self):
        await self._producer.stop()


@pytest.fixture(params=[EmbeddedLog, pytest.param(KafkaLog, marks=pytest.mark.kafka)])
def open_log(request):
    needed = request.getfixturevalue(request.param.needs)

    @asynccontextmanager
    async def opened():
        log = await request.param.open(needed)
        try:
            yield log
        finally:
            await log.close()

    return opened


class Reader:
    """An application under test: collects what its agent is given, and lets a test hold the agent."""

    def __init__(self, log, stored=None, chunk_records=10, on_chunk=None):
        self.app = log.make_app()
        self.app.chunk_records = chunk_records
        self.chunks = []
        self.let = asyncio.Event()
        self.let.set()
        self._arrived = asyncio.Condition()
        self._stored = stored

        async def stored_offsets(assigned):
            assert [(tp.topic, tp.partition) for tp in assigned] == [(self.app.chunks.get_topic_name(), 0)]
            return {} if self._stored is None else dict.fromkeys(assigned, self._stored)

        self.app.stored_offsets = stored_offsets

        async def collect(stream):
            async for chunk in stream:
                async with self._arrived:
                    self.chunks.append(chunk)
                    self._arrived.notify_all()
                if on_chunk is not None:
                    await on_chunk(self, chunk)
                await self.let.wait()

        self.app.fold_by(collect)

    @property
    def records(self):
        return [record for chunk in self.chunks for record in chunk.records]

    async def until(self, reached):
        async with asyncio.timeout(20), self._arrived:
            await self._arrived.wait_for(lambda: reached(self))

    async def seek(self, offset):
        (tp,) = self.app.consumer.assignment()
        await self.app.consumer.seek(tp, offset)

    async def position(self):
        (tp,) = self.app.consumer.assignment()
        return await self.app.consumer.position(tp)

    async def __aenter__(self):
        await self.app.start()
        return self

    async def __aexit__(self, *exception):
        async with asyncio.timeout(30):
            await self.app.stop()


def numbered(count, start=0):
    return [json.dumps({"number": number}).encode() for number in range(start, start + count)]


async def test_records_arrive_once_and_in_order_appended_before_and_while_reading(open_log):
    async with open_log() as log:
        await log.append(numbered(25))
        async with Reader(log) as reader:
            await reader.until(lambda r: len(r.records) == 25)
            for start in range(25, 100, 5):
                await log.append(numbered(5, start))
            await reader.until(lambda r: len(r.records) >= 100)
            assert reader.records == numbered(100)


async def test_chunks_follow_each_other_and_keep_their_bound(open_log):
    async with open_log() as log:
        await log.append(numbered(95))
        async with Reader(log) as reader:
            await reader.until(lambda r: len(r.records) == 95)
            assert [len(chunk.records) for chunk in reader.chunks] == [10] * 9 + [5]
            for chunk, following in zip(reader.chunks, reader.chunks[1:], strict=False):
                assert chunk.end == following.start
            for chunk in reader.chunks:
                assert chunk.partition == 0
                assert len(chunk.offsets) == len(chunk.records)
                marks = [*chunk.offsets, chunk.end]
                assert marks[0] == chunk.start
                assert marks == sorted(set(marks))


async def test_a_chunk_has_so_many_records_by_default(open_log):
    async with open_log() as log:
        most = log.make_app().chunk_records
        assert most == {"EmbeddedLog": 2_000, "KafkaLog": 24_000}[type(log).__name__]
        await log.append(numbered(2 * most + 500))
        reader = Reader(log, chunk_records=most)
        async with reader:
            await reader.until(lambda r: len(r.records) == 2 * most + 500)
            assert [len(chunk.records) for chunk in reader.chunks] == [most, most, 500]


async def test_reading_begins_at_the_stored_offset(open_log):
    async with open_log() as log:
        await log.append(numbered(60))
        async with Reader(log) as first:
            await first.until(lambda r: len(r.records) == 60)
        middle = first.chunks[2]
        async with Reader(log, stored=middle.offsets[4]) as second:
            await second.until(lambda r: len(r.records) == 36)
            assert second.records == numbered(36, 24)
        async with Reader(log, stored=first.chunks[-1].end) as third:
            await log.append(numbered(1, 60))
            await third.until(lambda r: r.records)
            assert third.records == numbered(1, 60)


async def test_restarting_at_what_was_stored_loses_and_repeats_nothing(open_log):
    async with open_log() as log:
        await log.append(numbered(200))
        records, stored = [], None
        for folded in (1, 3, 7, 1, 5, 3):
            # Less is stored than was read: the rest of it has to come again.
            async with Reader(log, stored=stored) as reader:
                await reader.until(lambda r, folded=folded: len(r.chunks) >= folded)
            chunks = reader.chunks[:folded]
            records += [record for chunk in chunks for record in chunk.records]
            stored = chunks[-1].end
        assert records == numbered(200)


@pytest.mark.parametrize("target", [0, 2, 5, 30])
async def test_a_seek_of_the_agent_discards_what_was_read_ahead(open_log, target):
    """Backwards, to the same chunk, forwards beyond what is buffered."""

    async with open_log() as log:
        await log.append(numbered(500))
        async with Reader(log) as whole:
            await whole.until(lambda r: len(r.records) == 500)
        goal = whole.chunks[target].start

        async def seek_once(reader, chunk):
            if len(reader.chunks) == 6:
                await until_position_rests(reader)
                await reader.seek(goal)

        async with Reader(log, on_chunk=seek_once) as reader:
            await reader.until(lambda r: len(r.chunks) > 6 and r.chunks[-1].end == whole.chunks[-1].end)
            assert reader.records == numbered(60) + numbered(500 - 10 * target, 10 * target)


async def until_position_rests(reader):
    """Wait until the reader has read ahead as far as it will."""
    before = None
    while before != (before := await reader.position()):  # noqa: ASYNC110 - nothing announces an absence
        await asyncio.sleep(0.02)


async def test_after_any_seek_the_next_chunk_is_the_one_sought(open_log):
    """Seeks from outside, at any moment: while a chunk is fetched, buffered, handed over, or none is there."""

    choice = random.Random(20261)
    async with open_log() as log:
        await log.append(numbered(300))
        async with Reader(log) as whole:
            await whole.until(lambda r: len(r.records) == 300)
        offsets = [offset for chunk in whole.chunks for offset in chunk.offsets]

        async def dawdle(reader, chunk):
            for _ in range(choice.randrange(4)):
                await asyncio.sleep(0)

        async with Reader(log, on_chunk=dawdle) as reader:
            for _ in range(log.seeks):
                for _ in range(choice.randrange(40)):
                    await asyncio.sleep(0)
                number = choice.randrange(300)
                seen = len(reader.chunks)
                await reader.seek(offsets[number])
                await reader.until(lambda r, seen=seen: len(r.chunks) > seen)
                chunk = reader.chunks[seen]
                assert chunk.start == offsets[number]
                assert chunk.records == numbered(min(10, 300 - number), number)


async def test_a_seek_wakes_a_reader_at_the_end(open_log):
    async with open_log() as log:
        await log.append(numbered(10))
        async with Reader(log) as reader:
            await reader.until(lambda r: r.records)
            await asyncio.sleep(0.05)
            await reader.seek(reader.chunks[0].offsets[7])
            await reader.until(lambda r: len(r.chunks) == 2)
            assert reader.chunks[1].records == numbered(3, 7)
            await log.append(numbered(1, 10))
            await reader.until(lambda r: len(r.chunks) == 3)
            assert reader.chunks[2].records == numbered(1, 10)


async def test_an_agent_that_does_not_ask_stops_the_reading(open_log):
    async with open_log() as log:
        await log.append(numbered(1000))
        reader = Reader(log)
        reader.let.clear()
        async with reader:
            await reader.until(lambda r: r.chunks)
            await until_position_rests(reader)
            ahead = await reader.position()
            assert len(reader.chunks) == 1
            reader.let.set()
            await reader.until(lambda r: len(r.records) == 1000)
            # One with the agent, one in its buffer, one in hand.
            assert ahead <= reader.chunks[2].end


@pytest.mark.parametrize("state", ["idle", "held", "busy"])
async def test_it_stops_in_time_and_leaves_nothing_running(open_log, state):
    async with open_log() as log:
        await log.append(numbered(1000 if state != "idle" else 5))
        ours = asyncio.all_tasks()
        reader = Reader(log, chunk_records=1 if state == "busy" else 10)
        if state == "held":
            reader.let.clear()
        async with reader:
            await reader.until(lambda r: r.chunks)
            if state != "busy":
                await until_position_rests(reader)
        assert not reader.app.crashed
        seen = len(reader.chunks)
        await asyncio.sleep(0.05)
        assert len(reader.chunks) == seen
        assert asyncio.all_tasks() == ours


async def test_a_failing_agent_ends_the_application_and_skips_nothing(open_log):
    async with open_log() as log:
        await log.append(numbered(100))

        async def fail(reader, chunk):
            if len(reader.chunks) == 3:
                raise ArithmeticError("no such fold")

        async with Reader(log, on_chunk=fail) as reader:
            with pytest.raises(ArithmeticError, match="no such fold"):
                await asyncio.wait_for(reader.app.wait_failed(), 5)
            await asyncio.sleep(0.05)
            assert reader.records == numbered(30)


async def test_an_offset_outside_the_log_is_refused_with_a_reason(open_log):
    async with open_log() as log:
        await log.append(numbered(20))
        for offset in log.outside():
            async with Reader(log, stored=offset) as reader:
                with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is"):
                    await asyncio.wait_for(reader.app.wait_failed(), 5)
                assert reader.chunks == []


async def test_a_store_that_does_not_answer_ends_the_application(open_log):
    async with open_log() as log:
        reader = Reader(log)

        async def unreachable(assigned):
            raise ConnectionError("the store is away")

        reader.app.stored_offsets = unreachable
        async with reader:
            with pytest.raises(ConnectionError, match="the store is away"):
                await asyncio.wait_for(reader.app.wait_failed(), 5)


async def test_without_stored_offsets_it_does_not_start(open_log):
    async with open_log() as log:
        app = log.make_app()
        with pytest.raises(ValueError, match="stored_offsets is not set"):
            await app.start()
        await app.stop()

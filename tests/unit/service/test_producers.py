"""Who sent what: from the token of a request to the dead letters and the counted conflicts, and never into the fold."""

import json

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.files.dead_letter_file import DeadLetterFile
from monitor.instruments import ProcessMetrics
from monitor.log.kafka.records import chunks
from monitor.publish.dead_letter_topic import DeadLetterTopic
from monitor.publish.republisher import Republisher
from monitor.serve.api.writing.request import Submission
from monitor.service.intake import FileIntake, KafkaIntake
from monitor.service.owned_partition import Outlets, PartitionWorker
from schemas.records.chunks import Chunk, Origin
from schemas.records.events import Ended, EventFields
from schemas.records.origins import OriginKey
from schemas.records.producers import PRODUCER_HEADER, at_offset, in_header, in_packed_record
from tests.unit.service.test_partition_worker import Nobody, SlowStore

KEY = OriginKey(b"secret", "log")


def submission(producer, *scores):
    events = [EventFields(benchmark="b", item_id=str(k), model="m", score=s) for k, s in enumerate(scores)]
    return Submission.empty()._replace(events=events, producer=producer)


class Taking:
    """Takes what an intake appends, to a file or a topic."""

    def __init__(self):
        self.taken = []

    async def append(self, records):
        self.taken += records
        return 1

    async def deliver(self, topic, messages):
        self.taken += messages
        return {}


async def appended(submission):
    log = Taking()
    await FileIntake(log, lambda _: True, lambda: 0).append(submission)
    return log.taken[0]


async def test_the_producer_changes_nothing_that_is_folded():
    folded = []
    for producer in (None, "ci", "someone-else"):
        record = await appended(submission(producer, 1, 0, 1))
        partition = Partition()
        delta = partition.fold(Chunk(0, 0, 9, [0], [record], producers=[producer]))
        shown = delta.benchmarks[0]
        folded.append((shown.counters, partition.benchmarks["b"].scores.tobytes(), shown.spec, delta.counters))
        assert in_packed_record(Chunk(0, 0, 9, [0], [record]), 0) == producer
    assert folded[0] == folded[1] == folded[2]


async def test_the_record_of_a_conflict_is_known():
    partition = Partition()
    records = [
        await appended(submission(name, *scores)) for name, scores in {"a": (1, 1), "b": (1, 0), "c": (0, 0)}.items()
    ]
    chunk = Chunk(0, 0, 30, [0, 10, 20], records)
    delta = partition.fold(chunk)
    assert delta.benchmarks[0].conflict_offsets == [10, 20, 20]
    assert [at_offset(chunk, offset, in_packed_record) for offset in (0, 10, 20, 15, 30)] == ["a", "b", "c", None, None]


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b'{"producer":"',
        b'{"producer":""}',
        b'{"producer":"a b"}',
        b'{"producer":"\xff"}',
        b'{"events":[],"producer":"ci"}',
        b'{"producer":"' + b"x" * 101 + b'"}',
    ],
)
def test_other_records_name_no_producer(record):
    assert in_packed_record(Chunk(0, 0, 1, [0], [record]), 0) is None


class Record:
    """A record as the Kafka client returns it."""

    def __init__(self, value, *headers, offset=0):
        self.value, self.headers, self.offset = value, list(headers), offset


def read(*records, partition=3, key=KEY):
    (chunk,) = chunks(list(records), partition, 0, len(records), 1 << 20, key)
    return [in_header(chunk, k) for k in range(len(records))]


@pytest.mark.fault(
    "attacks",
    "name of a producer in a header: forged, or of another record, partition or log",
    "shown as claimed, or not at all",
)
async def test_a_header_is_believed_if_a_server_signed_it():
    producer = Taking()
    await KafkaIntake(producer, "topic", 4, lambda _: True, None, KEY).append(submission("ci", 1))
    (message,) = producer.taken
    (header,) = message.headers
    place = message.partition
    assert header[0] == PRODUCER_HEADER
    assert read(Record(message.value, header), partition=place) == ["ci"]
    assert read(Record(message.value, header), Record(b"x", offset=1), partition=place) == ["ci", None]
    assert read(Record(message.value, header), partition=place + 1) == ["claimed:ci"], "of another partition"
    assert read(Record(b"other", header), partition=place) == ["claimed:ci"], "of another record"
    assert read(Record(message.value, header), partition=place, key=OriginKey(b"secret", "other log")) == ["claimed:ci"]
    forged = (PRODUCER_HEADER, b"operator" + header[1][2:])
    assert read(Record(message.value, forged), partition=place) == ["claimed:operator"]
    assert KEY.verify(header[1], place, message.value) is None, "it is no origin"


@pytest.mark.parametrize(
    "value", [b"", b":", b"ci:", b":ci", b"ci", b"a b", b"\xff", b"x" * 200, b"claimed:ci", b"a\nb", None]
)
def test_what_any_writer_may_write_is_marked(value):
    (shown,) = read(Record(b"r", (PRODUCER_HEADER, value)))
    assert shown is None or shown.startswith("claimed:")


def test_a_signed_origin_is_no_producer():
    signed = KEY.sign(Origin(1, 2, 3), 3, b"r")
    assert read(Record(b"r", (PRODUCER_HEADER, signed))) == [None]


async def test_without_a_token_no_record_names_a_producer():
    producer = Taking()
    await KafkaIntake(producer, "topic", 4, lambda _: True, None, KEY).append(submission(None, 1))
    assert list(producer.taken[0].headers) == []
    assert b"producer" not in await appended(submission(None, 1))


def test_producers_beyond_a_number_share_a_series():
    metrics = ProcessMetrics()
    for k in range(1_000):
        metrics.count_conflicts(f"claimed:{k}", 1)
    metrics.count_conflicts(None, 5)
    (family,) = [f for f in metrics.registry.collect() if f.name == "rankwatch_conflicts_by_producer"]
    samples = {s.labels["producer"]: s.value for s in family.samples if s.name.endswith("_total") and s.value}
    assert len(samples) == 201
    assert samples["other"] == 805


async def test_copies_for_the_owner_of_a_benchmark_keep_their_producer():
    producer, published = Taking(), ["b", "c"]
    worker = PartitionWorker(
        3,
        SlowStore(),
        Outlets([Nobody()]),
        Nobody().keep,
        owner=lambda _: 1,
        republish=Republisher(producer, "topic", 4, KEY),
    )
    await worker.load()
    records = [b'{"benchmark":"%s","item_id":"1","model":"m","score":1}' % name.encode() for name in published * 2]
    sent = ["ci", "claimed:operator", None, "ci"]
    await worker.fold(Chunk(3, 0, 4, range(4), records, producers=sent))
    copies = [Record(each.value, *each.headers) for each in producer.taken]
    read_back = [read(copy, partition=each.partition) for copy, each in zip(copies, producer.taken, strict=True)]
    assert read_back == [[who] for who in sent]
    assert read(copies[0], partition=producer.taken[0].partition + 1) == ["claimed:ci"], "signed for its partition"
    assert all(KEY.verify(each.headers[0][1], each.partition, each.value) for each in producer.taken)


async def test_dead_letters_and_conflicts_name_who_sent_them(tmp_path):
    letters, metrics = [], ProcessMetrics()

    class Letters(Nobody):
        async def keep(self, _partition, new):
            letters.extend(new)
            return len(new)

    worker = PartitionWorker(
        0, SlowStore(), Outlets([Nobody()]), Letters().keep, producer_of=in_packed_record, process_metrics=metrics
    )
    await worker.load()
    ends = Submission.empty()._replace(ended=[Ended(ended="b")], producer="first")
    records = [await appended(each) for each in (submission("first", 1), ends, submission("second", 0, 1))]
    await worker.fold(Chunk(0, 0, 30, [0, 10, 20], [*records]))
    assert [(letter.offset, letter.producer) for letter in letters] == [(20, "second")], (
        "a score of a run that has ended"
    )
    (family,) = [f for f in metrics.registry.collect() if f.name == "rankwatch_conflicts_by_producer"]
    assert {s.labels["producer"]: s.value for s in family.samples if s.name.endswith("_total") and s.value} == {
        "second": 1
    }

    with DeadLetterFile(tmp_path / "letters") as file:
        file.write([*letters, letters[0]._replace(offset=30, producer=None)])
    rows = [json.loads(line) for line in (tmp_path / "letters").read_text().splitlines()]
    assert [row.get("producer", "absent") for row in rows] == ["second", "absent"]
    message = DeadLetterTopic(None, "topic")._message(0, letters[0], 1)
    assert dict(message.headers)["producer"] == b"second"

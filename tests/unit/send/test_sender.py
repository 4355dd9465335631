"""Sending files: everything once while nothing fails, only what is new on a second run, and in an order that the fold can use."""

import asyncio
import gzip
import json
from types import SimpleNamespace

import pytest

from monitor.engine.chunk_fold import Partition
from monitor.files.batches import BatchReader
from monitor.files.reject_limit import RejectLimit, TooManyRejected
from monitor.files.streams.encodings import open_stream
from monitor.send.messages import PACK_BYTES, PACK_EVENTS
from monitor.send.send_record import SendRecord
from monitor.send.sender import Delivery, Sender
from schemas.records.chunks import Chunk
from schemas.records.events import Ended
from tests.unit.files.result_lines import event, lines

URL = "kafka://localhost:9092/events"


class Destination:
    """Keeps what is delivered; fails from a given delivery on."""

    def __init__(self, folder, failing_from=None):
        self.folder, self.failing_from = folder, failing_from
        self.deliveries = []

    async def deliver(self, messages):
        if self.failing_from is not None and len(self.deliveries) >= self.failing_from:
            raise ConnectionError("gone")
        self.deliveries.append(messages)

    def send(
        self,
        *files,
        forget=False,
        packed=False,
        declare=None,
        opener=open_stream,
        limit=None,
        ends=(),
        on_reject=lambda _: None,
    ):
        record = SendRecord.load(URL, self.folder, forget=forget)
        reader = BatchReader(record.sources, declare=declare, known=record.benchmarks, opener=opener)
        limit = limit or RejectLimit()

        async def deliveries():
            async for batch in reader.read(files, final=True):
                yield Delivery(batch.path, batch.source, [part.segment for part in batch.parts], batch.place)

        def delivered(delivery):
            rejects = [reject for segment in delivery.segments for reject in segment.rejects]
            for reject in rejects:
                on_reject(reject)
            limit.add(sum(segment.line_count for segment in delivery.segments), rejects)

        sender = Sender(self.deliver, record, packed=packed, on_delivered=delivered)

        async def run():
            await sender.run(deliveries())
            return await sender.end(ends)

        try:
            ended = asyncio.run(run())
        finally:
            reader.close()
        return SimpleNamespace(
            events=sender.events,
            benchmarks=sender.benchmarks,
            changed=sender.changed,
            ended=ended,
            late=sender.late,
            rejected=limit.rejected,
            progress=reader.progress,
        )

    @property
    def messages(self):
        return [message for delivery in self.deliveries for message in delivery]

    @property
    def values(self):
        return [json.loads(message.value) for message in self.messages]

    def folded(self):
        values = [message.value for message in self.messages]
        partition = Partition()
        partition.fold(Chunk(0, 0, len(values), range(len(values)), values))
        return partition


@pytest.fixture
def destination(tmp_path):
    return Destination(tmp_path / "state")


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_bytes(
        lines(*(event(i, model=f"m{k}", benchmark=f"b{i % 3}", score=k % 2) for i in range(3_000) for k in range(4)))
    )
    return path


def test_each_line_is_a_message_as_it_stands(destination, results):
    progress = destination.send(results)
    assert [message.value for message in destination.messages] == results.read_bytes().splitlines()
    assert all(json.loads(m.value)["benchmark"] == m.benchmark for m in destination.messages)
    assert (progress.events, progress.rejected, progress.benchmarks) == (12_000, 0, {"b0", "b1", "b2"})
    assert progress.progress.bytes_done == progress.progress.bytes_total == results.stat().st_size


def test_a_second_run_sends_what_is_new(destination, results):
    destination.send(results)
    assert destination.send(results).events == 0
    more = lines(event("new"), event("newer"))
    with results.open("ab") as file:
        file.write(more)
    before = len(destination.messages)
    assert destination.send(results).events == 2
    assert [message.value for message in destination.messages[before:]] == more.splitlines()


def test_the_end_of_a_run_is_sent_once(destination, results):
    ends = [Ended(ended="b0", model="m1"), Ended(ended="b1", model="m0", epoch=2, base=1)]
    first = destination.send(results, ends=ends[:1])
    assert (first.ended, destination.values[-1]) == (ends[:1], {"ended": "b0", "model": "m1"})
    second = destination.send(results, ends=ends)
    assert (second.ended, second.events, second.late) == (ends[1:], 0, set())
    assert destination.values[-1] == {"ended": "b1", "model": "m0", "epoch": 2, "base": 1}
    with results.open("ab") as file:
        file.write(lines(event("new", model="m1", benchmark="b0"), event("new", model="m0", benchmark="b1")))
    assert destination.send(results, ends=ends).late == {("b0", "m1", 0)}
    assert destination.send(results, ends=ends, forget=True).ended == ends


def test_forgetting_sends_everything_again(destination, results):
    destination.send(results)
    assert destination.send(results, forget=True).events == 12_000


def test_a_run_that_fails_is_gone_on_with(tmp_path, results):
    failing = Destination(tmp_path / "state", failing_from=0)
    with pytest.raises(ConnectionError):
        failing.send(results)
    results.write_bytes(results.read_bytes() * 8)
    failing.failing_from = 3
    with pytest.raises(ConnectionError):
        failing.send(results)
    acknowledged = len(failing.messages)
    assert 0 < acknowledged < 96_000
    failing.failing_from = None
    failing.send(results)
    assert [message.value for message in failing.messages] == results.read_bytes().splitlines()


def test_a_changed_file_is_sent_from_its_beginning(destination, results):
    destination.send(results)
    results.write_bytes(lines(event(0, score=0), event(1)))
    progress = destination.send(results)
    assert (progress.events, progress.changed) == (2, [results])


def test_gzip_files_are_gone_on_with_too(destination, tmp_path):
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(lines(event(1), event(2))))
    destination.send(path)
    with path.open("ab") as file:
        file.write(gzip.compress(lines(event(3))))
    assert destination.send(path).events == 1
    assert [value["item_id"] for value in destination.values] == ["1", "2", "3"]


@pytest.mark.parametrize("packed", [False, True])
def test_declarations_come_before_what_they_are_about(destination, tmp_path, packed):
    path = tmp_path / "r.jsonl"
    path.write_bytes(
        lines(
            *(event(i, benchmark="flagged") for i in range(5)),
            {"declare": "declared", "order": "trusted"},
            *(event(i, benchmark="declared") for i in range(5)),
        )
    )
    destination.send(path, packed=packed, declare=lambda name, own, *_: None if own else {"declare": name, "items": 5})
    partition = destination.folded()
    assert partition.benchmarks["flagged"].spec.items == 5
    assert partition.benchmarks["declared"].spec.order.policy == "trusted"
    assert partition.counters["rejected"] == 0
    before = len(destination.messages)
    path.write_bytes(path.read_bytes() + lines(event(9, benchmark="flagged"), event(9, benchmark="declared")))
    destination.send(path, packed=packed, declare=lambda name, own, *_: None if own else {"declare": name, "items": 5})
    assert not any("declare" in value for value in destination.values[before:])


def test_packed_messages_hold_one_benchmark_each_in_order(destination, results):
    destination.send(results, packed=True)
    per_benchmark = {}
    for message in destination.messages:
        events = json.loads(message.value)["events"]
        assert {e["benchmark"] for e in events} == {message.benchmark}
        assert 0 < len(events) <= PACK_EVENTS
        per_benchmark.setdefault(message.benchmark, []).extend(events)
    wanted = [json.loads(line) for line in results.read_bytes().splitlines()]
    for name, events in per_benchmark.items():
        assert events == [e for e in wanted if e["benchmark"] == name]
    assert len(destination.messages) < 20


def test_packed_messages_stay_below_the_size_that_topics_take(destination, tmp_path):
    path = tmp_path / "r.jsonl"
    one = [event("字" * 195 + f"{i:05}", model="模" * 200, cluster="类" * 200) for i in range(1_000)]
    several = [each | {"model": each["model"][1:] + str(i % 2)} for i, each in enumerate(one)]
    path.write_bytes(lines(*one, *several))
    destination.send(path, packed=True)
    assert max(len(m.value) for m in destination.messages) <= PACK_BYTES
    for field in ("item_ids", "events"):
        sizes = [len(value[field]) for value in destination.values if field in value]
        assert len(sizes) > 1
        assert sum(sizes) == 1_000


def test_bad_lines_are_reported_and_not_sent(destination, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(
        lines(event(1), b"not json", event(2, score=7), event(3, note="kept only where all around is good"))
    )
    rejects = []
    progress = destination.send(path, on_reject=rejects.append)
    assert [(reject["line"], reject["field"]) for reject in rejects] == [(2, "record"), (3, "score")]
    assert (progress.events, progress.rejected) == (2, 2)
    assert [value["item_id"] for value in destination.values] == ["1", "3"]


def test_too_many_bad_lines_stop_the_run(destination, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(lines(*[b"?"] * 30, *(event(i) for i in range(30))))
    with pytest.raises(TooManyRejected, match="30 rejected of 60"):
        destination.send(path, limit=RejectLimit())


def test_a_line_that_would_be_taken_for_a_packed_message_is_written_anew(destination, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(lines(event(1, events=[]), event(2)))
    destination.send(path)
    assert destination.folded().benchmarks["bench"].counters["events"] == 2


def test_damage_at_the_end_of_a_file_is_reported_once(destination, tmp_path):
    path = tmp_path / "r.jsonl.gz"
    path.write_bytes(gzip.compress(lines(*(event(i) for i in range(30))))[:-6])
    assert destination.send(path).rejected == 1
    assert destination.send(path).rejected == 0


def test_a_record_of_something_else_is_refused(destination, results):
    destination.send(results)
    sent = SendRecord.load(URL, destination.folder)
    sent.path.write_text("[]")
    with pytest.raises(ValueError, match=r"is not a record of what was sent.*delete it"):
        SendRecord.load(URL, destination.folder)


def test_destinations_do_not_share_what_was_sent(destination, results):
    destination.send(results)
    assert SendRecord.load(URL + ".other", destination.folder).sources == {}


def test_native_logs_are_sent_as_events_once(tmp_path):
    from tests.unit.files.native_logs import Importer, lm_eval_run, sample

    lm_eval_run(tmp_path / "run", "m", [sample(k, float(k % 2)) for k in range(5)])
    destination, importer = Destination(tmp_path / "sent"), Importer()
    files = importer.find([tmp_path / "run"])
    progress = destination.send(*files, opener=importer.open)
    declaration, *sent = (json.loads(message.value) for message in destination.messages)
    assert (declaration["declare"], declaration["items"]) == ("quiz", 5)
    assert [(e["model"], e["item_id"][:2], e["score"]) for e in sent] == [
        ("m", f"{k}-", float(k % 2)) for k in range(5)
    ]
    assert progress.events == 5
    assert destination.send(*files, opener=Importer().open).events == 0

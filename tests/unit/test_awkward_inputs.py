"""Every awkward record comes to the same on every way in: events, rejects with field and remedy, and what is said of conversions."""

import asyncio
import gzip
import json
import random
from contextlib import suppress
from math import inf
from typing import Any, NamedTuple

import msgspec
import pytest
from rankwatch_client import Client

from monitor.engine.decoder import Declared, Decoder, RunEnded, Unreadable
from monitor.files.batches import BatchReader
from monitor.files.importer import Importer
from monitor.files.reject_limit import ScaleError
from monitor.files.streams.read import read_files
from monitor.send.messages import write_messages
from monitor.serve.api.problems import ProblemError
from monitor.serve.api.writing.body_parser import parse_body
from schemas.records.chunks import Chunk
from schemas.records.columns import EventBatch
from schemas.records.declaration import Declaration
from schemas.records.decode import Checker, check_object, decode_converted, decode_message
from schemas.records.events import Ended
from tests.awkward import FIRST, GOOD, LAST, RECORDS
from tests.unit.files.memory_log import Log, once

FIELDS = ("benchmark", "item_id", "model", "cluster", "score", "repeat", "epoch")
AROUND = json.dumps(FIRST).encode(), json.dumps(LAST).encode()


class Outcome(NamedTuple):
    """What a way into rankwatch makes of some records."""

    events: list[dict[str, Any]]
    others: list[dict[str, Any]]
    """Declarations and ends of runs."""
    rejects: list[tuple[str, str]]
    notes: list[str] | None
    """None where a conversion is not reported."""


def fields(event):
    """An event as a dictionary, without what is left at its default."""
    return json.loads(msgspec.json.encode(event))


def given(record):
    """A declaration or the end of a run as a dictionary, without what is left at its default."""
    return record.model_dump(mode="json", exclude_defaults=True)


def between(record):
    first, last = AROUND
    return b"\n".join((first, record, last)) + b"\n"


def read_file(path):
    notes = []
    importer = Importer(report=notes.append)
    segments = list(read_files(importer.find([path]), opener=importer.open))
    return Outcome(
        [fields(event) for segment in segments for event in segment.events],
        [given(other) for segment in segments for other in (*segment.declarations, *segment.ended)],
        [(reject["field"], reject["reason"]) for segment in segments for reject in segment.rejects],
        notes,
    )


def from_report(record, path):
    path.write_bytes(between(record))
    return read_file(path)


def from_gzip(record, path):
    path.write_bytes(gzip.compress(between(record)))
    return read_file(path)


def from_watch(record, path):
    path.write_bytes(between(record))
    log, notes = Log(), []
    with suppress(ScaleError):  # the command ends with it, once everything is read
        once(log, path, importer=Importer(report=notes.append))
    others = [
        given(check_object(other))
        for record in log.packed
        for other in (*record.get("declare", ()), *record.get("ended", ()))
    ]
    events = [{field: event[field] for field in event if field != "attributes"} for event in log.events]
    return Outcome(events, others, [(reject["field"], reject["reason"]) for reject in log.rejects], notes)


def _sent(record, path, *, packed):
    path.write_bytes(between(record))
    notes = []
    importer = Importer(report=notes.append)
    reader = BatchReader({}, opener=importer.open)

    async def read():
        return [part.segment async for batch in reader.read(importer.find([path]), final=True) for part in batch.parts]

    segments = asyncio.run(read())
    received = _decoded([message.value for message in write_messages(segments, packed=packed)])
    assert received.rejects == []
    rejects = [(reject["field"], reject["reason"]) for segment in segments for reject in segment.rejects]
    return received._replace(rejects=rejects, notes=notes)


def from_send(record, path):
    return _sent(record, path, packed=False)


def from_packed_send(record, path):
    return _sent(record, path, packed=True)


def from_http_lines(record, _):
    return _parsed(between(record), "application/x-ndjson", record)


def from_http_array(record, _):
    return _parsed(b"[" + b",".join((AROUND[0], record, AROUND[1])) + b"]", "application/json", record)


def _parsed(body, media_type, record):
    """A body is taken as a whole or refused as a whole; then the rest of it is taken without the record."""
    try:
        submission = parse_body(body, media_type)
    except ProblemError as refusal:
        problem = refusal
    else:
        events = [fields(event) for event in submission.events]
        return Outcome(
            events, list(map(given, (*submission.declarations, *submission.ended))), [], sorted(submission.converted)
        )
    assert [error.line for error in problem.problem.errors] == [2]
    rest = parse_body(b"\n".join(AROUND), "application/x-ndjson")
    return Outcome([fields(e) for e in rest.events], [], [(e.field, e.reason) for e in problem.problem.errors], [])


def _decoded(records):
    events, others, letters = [], [], []
    for step in Decoder(None, {}, {}).steps(Chunk(0, 0, len(records), range(len(records)), records)):
        if isinstance(step, EventBatch):
            events += [fields(event) for event in step.events]
        elif isinstance(step, Declared):
            others.append(given(step.declaration))
        elif isinstance(step, RunEnded):
            others.append(given(step.ended))
        else:
            assert isinstance(step, Unreadable)
            letters.append((step.letter.field, step.letter.reason))
    return Outcome(events, others, letters, None)


def from_topic(record, _):
    return _decoded([AROUND[0], record, AROUND[1]])


def from_packed_message(record, _):
    return _decoded([b'{"events":[' + b",".join((AROUND[0], record, AROUND[1])) + b"]}"])


def _benchmark(event):
    return event["benchmark"]


FILES = {
    "report": from_report,
    "report of gzip": from_gzip,
    "watch": from_watch,
    "send": from_send,
    "send --packed": from_packed_send,
}
WAYS = {
    **FILES,
    "HTTP lines": from_http_lines,
    "HTTP array": from_http_array,
    "topic": from_topic,
    "packed message": from_packed_message,
}
INSIDE = {"HTTP array": inf, "packed message": 1_000_000}
"""Ways on which a record is a part of a larger JSON text, with the bytes from which on that text is too long itself."""


def is_json_text(record):
    """Whether a record can be a part of a larger JSON text."""
    try:
        json.loads(record.decode(), parse_constant=lambda _: 1 / 0)
    except (ValueError, RecursionError, ZeroDivisionError):
        return False
    return not record.startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RECORDS)
def test_a_record_comes_to_the_same_on_every_way(name, way, tmp_path):
    record, answer, remedy = RECORDS[name]
    if way in INSIDE and not (len(record) < INSIDE[way] and is_json_text(record)):
        pytest.skip("it cannot be a part of a JSON text")
    events, others, rejects, notes = WAYS[way](record, tmp_path / "results.jsonl")
    if isinstance(answer, dict):
        if "item_id" in answer:
            assert others == []
            # Messages keep the order within a benchmark.
            assert sorted(events, key=_benchmark) == sorted([FIRST, answer, LAST], key=_benchmark)
        else:
            assert others == [given((Ended if "ended" in answer else Declaration).model_validate(answer))]
            assert events == [FIRST, LAST]
        assert rejects == []
        if notes is not None:
            assert len(notes) == bool(remedy)
            assert all(remedy in note for note in notes)
            assert all(note.startswith(str(tmp_path / "results.jsonl: ")) for note in notes) or way not in FILES
        return
    assert (events, others) == ([FIRST, LAST], [])
    if answer is None and way != "topic":
        assert rejects == []
        return
    [(field, reason)] = rejects
    assert field == (answer or "record")
    assert remedy in reason
    assert reason.isprintable()
    assert len(reason) < 500


@pytest.mark.parametrize("name", RECORDS)
def test_the_client_and_the_monitor_agree(name, monkeypatch, caplog):
    record, answer, _ = RECORDS[name]
    try:
        pairs = json.loads(record.decode("utf-8-sig"), object_pairs_hook=list)
        arguments = json.loads(record.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        pytest.skip("no call of a client writes this")
    if (
        not isinstance(arguments, dict)
        or len(pairs) > len(arguments)
        or arguments.keys() - GOOD.keys() - {"cluster", "repeat", "epoch"}
        or "score" not in arguments
    ):
        pytest.skip("no call of a client writes this")
    queued = []
    monkeypatch.setattr(Client, "_put", lambda _, entry: queued.append(entry))
    client = Client("http://127.0.0.1:1")
    client.score(**{**arguments, "repeat": arguments.get("repeat") or 0})
    if not isinstance(answer, dict):
        refused = client.stats.refused or _decoded(queued).rejects
        assert refused
        assert caplog.text or queued
        return
    assert _decoded(queued).events == [answer]


def test_a_note_on_a_conversion_comes_once_for_a_file(tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(
            b"".join(json.dumps({**GOOD, "item_id": k}).encode() + b"\n" for k in range(3_000))
        )
    notes = []
    importer = Importer(report=notes.append)
    events = [e for s in read_files(importer.find([tmp_path]), opener=importer.open) for e in s.events]
    assert [e.item_id for e in events] == 2 * [str(k) for k in range(3_000)]
    assert notes == [f"{tmp_path / name}: item_id is a number and is read as text" for name in ("a.jsonl", "b.jsonl")]


def test_notes_on_many_files_are_cut(tmp_path):
    for k in range(30):
        (tmp_path / f"{k:02}.jsonl").write_bytes(json.dumps({**GOOD, "item_id": k}).encode() + b"\n")
    notes = []
    importer = Importer(report=notes.append)
    assert sum(len(s.events) for s in read_files(importer.find([tmp_path]), opener=importer.open)) == 30
    assert len(notes) == 21
    assert notes[-1].endswith(
        "20.jsonl: item_id is a number and is read as text; more files with this note are not listed"
    )


def test_names_are_checked_after_a_conversion():
    assert Checker().bad([]) is False
    events, _, rejects, _ = _decoded([json.dumps({**GOOD, "item_id": 1, "model": "a\u202eb"}).encode()])
    assert events == []
    assert rejects[0][0] == "model"


@pytest.mark.parametrize("name", RECORDS)
def test_many_records_are_converted_as_one_is(name):
    record = RECORDS[name].data
    alone = decode_message(record, clauses := set())
    events = decode_converted([AROUND[0], record, AROUND[1]], together := set())
    if events is None:
        return
    assert fields(events[1]) == fields(alone)
    assert together == clauses
    assert [fields(event) for event in events] == [FIRST, RECORDS[name].answer, LAST]


def test_most_conversions_do_not_need_records_one_by_one():
    converted = [name for name, record in RECORDS.items() if decode_converted([record.data]) is not None]
    expected = [name for name, (_, answer, _) in RECORDS.items() if isinstance(answer, dict) and "item_id" in answer]
    assert {*expected} - {*converted} == {"byte order mark", "NaN"}


def test_numbers_and_text_of_random_records_are_converted_alike():
    rng = random.Random(7)
    values = [
        0,
        1,
        -0.0,
        17,
        17.0,
        1.5,
        2**53,
        2.0**53,
        10**16,
        1e16,
        10**30,
        -3,
        "1",
        " 2 ",
        "0.5",
        "x",
        "",
        True,
        None,
    ]
    for _ in range(3_000):
        records = [
            json.dumps({**GOOD, **{field: rng.choice(values) for field in rng.sample(FIELDS, 2)}}).encode()
            for _ in range(3)
        ]
        clauses, together = set(), set()
        alone = [decode_message(record, clauses) for record in records]
        events = decode_converted(records, together)
        if events is not None:
            assert (events, together) == (alone, clauses)
            assert [type(e.score) for e in events] == [type(e.score) for e in alone]

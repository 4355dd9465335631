"""A field that comes twice is refused on every way in: a parser that keeps one of the two values decides what is meant."""

import json

import pytest

from monitor.serve.api.problems import ProblemError
from monitor.serve.api.writing.body_parser import parse_body
from schemas.records.decode import Fault, decode_block, decode_converted, decode_message, decode_next, decode_records

GOOD = '{"benchmark":"b","item_id":"1","model":"m","score":1}'
BATTLE = '{"benchmark":"b","item_id":"1","model_a":"m","model_b":"n","winner":"a"%s}'
REPEATED = [
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"score":0}', "score"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"score":1}', "score"),
    ('{"benchmark":"b","benchmark":"c","item_id":"1","model":"m","score":1}', "benchmark"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"sc\\u006fre":0}', "score"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"cluster":"a","cluster":"b"}', "cluster"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"cluster":null,"cluster":"b"}', "cluster"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"cluster":"b","cluster":null}', "cluster"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"repeat":0,"repeat":1}', "repeat"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"repeat":1,"repeat":0}', "repeat"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"epoch":0,"ep\\u006fch":0}', "epoch"),
    (BATTLE % ',"winner":"b"', "winner"),
    (BATTLE % ',"position":"a","position":"b"', "position"),
    ('{"declare":"b","alpha":0.01,"alpha":0.3}', "alpha"),
    ('{"declare":"b","order":{"policy":"committed","seed":"a","seed":"b"},"item_ids":["a"]}', "seed"),
    ('{"declare":"b","weights":{"x":1,"x":2}}', "x"),
    ('{"ended":"b","model":"m","model":"n"}', "model"),
]


@pytest.mark.parametrize(("line", "field"), REPEATED)
def test_it_is_refused_on_every_way_in(line, field):
    record = line.encode()
    found = decode_message(record)
    assert isinstance(found, Fault)
    assert (found.field, found.reason) == (field, f"{field} comes twice in one object; keep one of the two")
    good = GOOD.encode()
    for records in ([record], [good, record], [record, good], [good.replace(b"}", b',"repeat":0}'), record]):
        assert decode_records(records) is None
        assert decode_converted(records) is None
        assert decode_block(b"\n".join(records) + b"\n") is None
    assert len(decode_next(iter([good, record, good]))) == 1
    for body, kind in ((f"{GOOD}\n{line}\n", "application/x-ndjson"), (f"[{GOOD},{line}]", "application/json")):
        with pytest.raises(ProblemError, match=f"{field} comes twice"):
            parse_body(body.encode(), kind)


def test_a_record_over_several_lines_is_seen_as_one():
    record = json.dumps(json.loads(GOOD), indent=0)[:-2].encode() + b',\n"repeat":1,\n"repeat":2}'
    assert decode_records([record, GOOD.encode()]) is None
    assert isinstance(decode_message(record), Fault)


@pytest.mark.parametrize(
    "more",
    [
        '"cluster":"a:b"',
        '"repeat":0',
        '"cluster":"\\"model\\":"',
        '"attributes":{"model":"x","score":2}',
        '"timestamp":"12:00","epoch":2',
    ],
)
def test_a_name_elsewhere_is_no_field(more):
    lines = [f"{GOOD[:-1]},{more}}}".encode(), GOOD.encode()]
    assert len(decode_records(lines)) == 2
    assert len(decode_block(b"\n".join(lines) + b"\n")) == 2
    assert not isinstance(decode_message(lines[0]), Fault)
    assert len(parse_body(b"[" + b",".join(lines) + b"]", "application/json").events) == 2


@pytest.mark.parametrize("alpha", ["1e-320", "5e-324", "1e-101", "0", "-1e-320"])
def test_an_alpha_that_no_evidence_can_reach_is_refused(alpha):
    found = decode_message(f'{{"declare":"b","alpha":{alpha}}}'.encode())
    assert isinstance(found, Fault)
    assert "is out of range; use a number from 1e-100 to below 0.5" in found.reason
    assert not isinstance(decode_message(b'{"declare":"b","alpha":1e-30}'), Fault)

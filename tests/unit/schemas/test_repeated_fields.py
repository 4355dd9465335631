"""A field that comes twice is refused on every way in: a parser that keeps one of the two values decides what is meant."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitor.serve.api.problems import ProblemError
from monitor.serve.api.writing.body_parser import parse_body
from schemas.records.decode import (
    decode_array,
    decode_block,
    decode_converted,
    decode_message,
    decode_next,
    decode_records,
)
from schemas.records.events import BattleFields, EventFields, names_of
from schemas.records.packed import decode_packed
from schemas.records.run_columns import decode_run, decode_run_loosely
from schemas.records.text import Fault

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
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"unit":"a","unit":"b"}', "unit"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"unit":null,"unit":"b"}', "unit"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"repeat":0,"epoch":0,"repeat":0}', "repeat"),
    ('{"benchmark":"b","item_id":"1","model":"m","score":1,"item\\u005fid":"2","attributes":{"a":":"}}', "item_id"),
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


def test_an_escaped_key_is_seen_across_a_newline():
    record = GOOD[:-1].encode() + b',"sc\\u006fre"\n:0}'
    assert decode_records([record]) is None
    assert isinstance(decode_message(record), Fault)


@pytest.mark.parametrize("pair", [rb"\\", rb"\"", rb"\n"])
def test_a_line_of_escapes_is_read_once(pair):
    """A search that begins again at each escape would take hours for this line."""
    record = GOOD[:-1].encode() + b',"timestamp":"' + pair * 450_000 + b'"}'
    assert len(decode_records([record])) == 1
    assert len(decode_block(record + b"\n")) == 1


REPEATING = REPEATED[0][0]


@pytest.mark.parametrize(
    "record",
    [
        f'{{"events":[{REPEATING}]}}',
        f'{{"events" :[{REPEATING}],"more":{{"events":[{{"a":1,"b":1,"c":1,"d":1}}]}}}}',
        f'{{"events":[{GOOD}],"events":[{GOOD}]}}',
        f'{{"events":[],"battles":[{REPEATED[-5][0]}]}}',
        f'{{"events":[{GOOD}],"declare":[{REPEATED[-4][0]}]}}',
        f'{{"events":[{GOOD}],"ended":[{REPEATED[-1][0]}]}}',
    ],
)
def test_a_packed_record_is_not_taken_as_a_whole(record):
    assert decode_packed(record.encode()) is None


@pytest.mark.parametrize("more", ["", ',"repeat":0', ',"timestamp":"12:00","epoch":2'])
def test_a_packed_record_without_a_repeated_field_is(more):
    event, battle = f"{GOOD[:-1]}{more}}}", BATTLE % more
    packed = decode_packed(f'{{"events":[{event},{event}],"battles":[{battle}]}}'.encode())
    assert (len(packed.events), len(packed.battles)) == (2, 1)


BARE = "{" + ",".join(f'"{name}":"x"' for name in ("benchmark", "item_id", "model")) + ',"score":1%s}'
SHAPES = [
    "",
    ',"cluster":"c%d"',
    ',"cluster":null,"repeat":0,"epoch":0',
    ',"repeat":%d',
    ',"timestamp":"12:00:%d"',
    ',"attributes":{"a":[%d,{"b":":"}]}',
    ',"cluster":"\\"model\\": {%d"',
]


@pytest.mark.parametrize("more", SHAPES)
@pytest.mark.parametrize("mixed", [False, True])
def test_no_record_of_a_common_shape_is_decoded_twice(more, mixed, monkeypatch):
    lines = [(BARE % ("" if mixed and k % 2 else more.replace("%d", str(k)))).encode() for k in range(1_000)]
    alone = [json.loads(line) for line in lines]
    body = b"[" + b",".join(lines) + b"]"
    monkeypatch.setattr(json.JSONDecoder, "decode", raises_beyond(json.JSONDecoder.decode))
    found = [
        decode_records(lines),
        decode_block(b"\n".join(lines) + b"\n"),
        decode_array(body),
        decode_packed(b'{"events":' + body + b"}").events,
    ]
    for events in found:
        assert [(event.model, event.cluster, event.repeat) for event in events] == [
            (each["model"], each.get("cluster"), each.get("repeat", 0)) for each in alone
        ]


def raises_beyond(function, calls=10):
    """The function, which may be called so many times."""
    left = iter(range(calls))

    def called(*arguments):
        assert next(left, None) is not None, "called for each record"
        return function(*arguments)

    return called


KEYS = st.sampled_from(["benchmark", "item_id", "model", "score", "cluster", "repeat", "epoch", "unit"])
VALUES = {"score": ["0", "0.5", "null"], "repeat": ["0", "1"], "epoch": ["0", "2"], "cluster": ["null", '"c"', '"a:b"']}
TEXTS = ['"x"', '"a:b"', '"mod\\u0065l"', '"score\\": 1"', '"}]{"', '"a , \\"model\\" : 2"', '"\\\\"', '"é"']
MORE = ['"attributes":{"model":"x","score":1}', '"at":[{"cluster":":"}]', '"subscore":1', '"n":1', '"n":2', '"a:b":1']


@st.composite
def spelled(draw):
    """A record in some spelling, and whether a field that is read comes twice."""
    names = ["benchmark", "item_id", "model", "score", *draw(st.lists(KEYS, max_size=3))]
    fields = []
    for name in names:
        key = name
        if draw(st.integers(0, 9)) == 0:
            at = draw(st.integers(0, len(name) - 1))
            key = f"{name[:at]}\\u{ord(name[at]):04x}{name[at + 1 :]}"
        space = draw(st.sampled_from(["", "", "", " "]))
        fields.append(f'"{key}"{space}:{draw(st.sampled_from(VALUES.get(name, TEXTS)))}')
    fields += draw(st.lists(st.sampled_from(MORE), max_size=1))
    fields = draw(st.permutations(fields)) if draw(st.booleans()) else fields
    return "{" + ",".join(fields) + "}", len(set(names)) < len(names)


@settings(deadline=None, max_examples=300)
@given(st.lists(spelled(), min_size=1, max_size=4), st.sampled_from([1, 150]))
def test_a_repeated_field_is_seen_in_any_spelling(records, times):
    lines, repeats = [line.encode() for line, _ in records] * times, any(each for _, each in records)
    body = b"[" + b",".join(lines) + b"]"
    whole = decode_packed(b'{"events":' + body + b"}")
    for events in (
        decode_records(lines),
        decode_converted(lines),
        decode_block(b"\n".join(lines) + b"\n"),
        decode_array(body),
        whole and whole.events,
    ):
        assert not (repeats and events)
        if events is not None:
            assert [each.model for each in events] == [json.loads(line)["model"] for line in lines]


def test_events_of_one_shape_are_equal_to_others_and_written_as_they_are():
    lines = [(BARE % f',"cluster":"c{k}"').encode() for k in range(3)]
    events = decode_records(lines)
    others = [decode_records([line, (BARE % "").encode()])[0] for line in lines]
    assert events == others == [EventFields("x", "x", "x", 1.0, f"c{k}") for k in range(3)]
    assert msgspec.json.encode(events) == msgspec.json.encode(others)
    battles = decode_records([(BATTLE % ',"position":"a"').encode()] * 2)
    assert battles == [BattleFields(benchmark="b", item_id="1", model_a="m", model_b="n", winner="a", position="a")] * 2
    assert all(isinstance(each, BattleFields) for each in battles)
    assert names_of(battles) == {"b", "1", "m", "n", None}


RUN = '"model":"org:m","item_ids":["1","a:b"],"scores":[1,0]'


@pytest.mark.parametrize(
    ("run", "field"),
    [
        (f'{{"benchmark":"b",{RUN},"scores":[0,0]}}', "scores"),
        (f'{{"benchmark":"b",{RUN},"model":"n"}}', "model"),
        (f'{{"benchmark":"b",{RUN},"epoch":0,"epoch":1}}', "epoch"),
        (f'{{"benchmark":"b",{RUN},"sc\\u006fres":[0,0]}}', "scores"),
        (f'{{"benchmark":"a\\u003ab",{RUN},"scores":[0,0]}}', "scores"),
    ],
)
def test_a_run_is_refused(run, field):
    assert decode_run(run.encode()) is None
    found = decode_run_loosely(run.encode())
    assert (found.field, found.reason) == (field, f"{field} comes twice in one object; keep one of the two")


@pytest.mark.parametrize(
    "more", ["", ',"epoch":0', ',"clusters":null', ',"timestamp":"12:00"', ',"clusters":["x:","y"]']
)
def test_a_run_with_other_fields_is_read_at_once(more):
    assert decode_run(f'{{"benchmark":"b",{RUN}{more}}}'.encode()) is not None


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

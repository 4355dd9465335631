import json
from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict
from pydantic import ValidationError

from schemas.records.decode import Checker, decode_block, decode_message, decode_record, decode_records
from schemas.records.events import MAX_LINE_BYTES, Event, EventFields
from schemas.records.names import name_fault
from schemas.records.text import Fault

GOOD = {"benchmark": "bench", "item_id": "item 1", "model": "m", "score": 1}

NAMES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", "x" * 200, "x" * 201, "a\u202eb", "tab\t", "ünïcode", "{braces}", "\ufeff", "a\u2028b"]),
)
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 2**40), st.floats(), st.text(max_size=3), st.just([1]), st.just({})
)
SCORES = st.one_of(
    st.floats(0, 1), st.integers(0, 1), st.booleans(), st.none(), ODD, st.sampled_from([-0.0, 1e-320, 1.0000001, -1e-9])
)


@st.composite
def records(draw):
    record = deepcopy(GOOD)
    for name in draw(st.lists(st.sampled_from(["benchmark", "item_id", "model", "cluster"]), max_size=2)):
        record[name] = draw(st.one_of(NAMES, ODD))
    if draw(st.booleans()):
        record["score"] = draw(SCORES)
    for name in draw(st.lists(st.sampled_from(["repeat", "epoch", "timestamp", "attributes"]), max_size=2)):
        record[name] = draw(ODD)
    if draw(st.integers(0, 9)) == 0:
        del record[draw(st.sampled_from(sorted(record)))]
    return record


@settings(deadline=None)
@given(records())
def test_both_decoders_hold_the_same_rule(record):
    """The bulk decoder with the checker accepts exactly what the published model accepts, and reads the same.

    But for the NaN and Infinity that Python writes: they are no JSON, and left to the whole rule.
    """
    line = json.dumps(record).encode()
    bulk = decode_records([line])
    accepted = bulk is not None and not Checker().bad(bulk)
    converted = set()
    whole = decode_record(line, converted)
    no_json = []
    data = json.loads(line, parse_constant=no_json.append)
    if no_json:
        assert bulk is None
    else:
        assert accepted == (isinstance(whole, EventFields) and not converted), whole
        assert accepted == _published(data)
    if accepted:
        assert bulk[0] == whole


def _published(data):
    try:
        Event.model_validate(data)
    except ValidationError:
        return False
    return True


@settings(deadline=None)
@given(records())
def test_what_is_converted_is_what_the_strict_form_says(record):
    """A converted record reads as the same record with its values written in their own types."""
    converted = set()
    whole = decode_record(json.dumps(record).encode(), converted)
    if converted:
        assert isinstance(whole, EventFields)
        strict = {key: value for key, value in asdict(whole).items() if value is not None or key == "score"}
        assert decode_records([json.dumps(strict).encode()]) == [whole]
        assert all(
            strict[key] == record[key] for key in record.keys() & strict if type(strict[key]) is type(record[key])
        )


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("field", ["timestamp", "attributes"])
def test_what_is_never_used_costs_no_score(field, value):
    line = f'{{"benchmark":"b","item_id":"i","model":"m","score":1,"{field}":{value}}}'.encode()
    assert decode_message(line) == EventFields("b", "i", "m", 1.0)


@pytest.mark.parametrize(
    ("line", "field", "found", "remedy"),
    [
        (
            b'{"benchmark":"b","item_id":"i","model":"m","score":1.2}',
            "score",
            "1.2",
            "number from 0 to 1, true, false or null",
        ),
        (
            b'{"benchmark":"b","item_id":"i","model":"m","score":Infinity}',
            "score",
            "inf",
            "number from 0 to 1, true, false or null",
        ),
        (
            b'{"benchmark":"b","item_id":"i","model":"m","score":"x"}',
            "score",
            '"x"',
            "number from 0 to 1, true, false or null",
        ),
        (b'{"benchmark":"b","item_id":"i","score":1}', "model", "nothing", "missing; add a string"),
        (b'{"benchmark":"b","item_id":true,"model":"m","score":1}', "item_id", "true", "is not a string"),
        (b'{"benchmark":"b","item_id":"i","model":"m","score":1,"repeat":-1}', "repeat", "-1", "whole number"),
        (b'{"benchmark":"b","item_id":"\xff","model":"m","score":1}', "record", "byte 0xff at position 28", "UTF-8"),
        (b'{"benchmark":"b","item_id":"i"', "record", '{"benchmark":"b","item_id":"i"', "one JSON object a line"),
        (b"[1]", "record", "[1]", "JSON object"),
        (b"[" * 200_000, "record", "[" * 80 + "... (200,000 characters)", "nested"),
        (b'{"declare":"b","order":"completion"}', "record", "{'declare': 'b', 'order': 'completion'}", "declare items"),
        (b'{"declare":"b","items":0}', "items", "0", "whole number from 1 to 1000000000"),
        (b'{"declare":"b","mixture":"cauchy"}', "mixture", '"cauchy"', "beta(a,b), grid98 or two_point(a,b)"),
        (b'{"declare":"b","mixture":"beta(0,1)"}', "mixture", '"beta(0,1)"', "a and b above 0, and at most 1e8"),
        (b'{"declare":"b","mixture":"beta(1,100000001)"}', "mixture", '"beta(1,100000001)"', "at most 1e8"),
        (b'{"declare":"b","mixture":"beta(.,1)"}', "mixture", '"beta(.,1)"', "beta(a,b), grid98 or two_point(a,b)"),
        (
            b'{"declare":"b","mixture":"beta(1.2.3,1)"}',
            "mixture",
            '"beta(1.2.3,1)"',
            "beta(a,b), grid98 or two_point(a,b)",
        ),
        (b'{"declare":"b","mixture":"two_point(0.9,0.1)"}', "mixture", '"two_point(0.9,0.1)"', "a from 0 to 0.5"),
        (
            b'{"declare":"b","mixture":"two_point(0.1,0.99999999999999999)"}',
            "mixture",
            '"two_point(0.1,0.99999999999999999)"',
            "b from 0.5 to 1",
        ),
        (b'{"declare":"b","colour":"red"}', "colour", '"red"', "unknown"),
        (b"x" * (MAX_LINE_BYTES + 1), "record", "1,000,001 bytes", "more than 1,000,000"),
    ],
)
def test_a_fault_names_the_field_what_was_found_and_the_remedy(line, field, found, remedy):
    fault = decode_record(line)
    assert isinstance(fault, Fault)
    assert (fault.field, fault.found) == (field, found)
    assert remedy in fault.reason


def test_a_fault_knows_its_benchmark_where_it_is_good():
    assert decode_record(b'{"benchmark":"b","score":1}').benchmark == "b"
    assert decode_record('{"benchmark":"b\u202e","score":1}'.encode()).benchmark is None


@pytest.mark.parametrize(
    "block",
    [
        b'{"benchmark":"b",\n"item_id":"i","model":"m","score":1}\n',
        json.dumps(GOOD).encode() + b"\n\n" + json.dumps(GOOD).encode() + b"\n",
        json.dumps(GOOD).encode() + json.dumps(GOOD).encode() + b"\n",
        json.dumps(GOOD).encode()[:-1] + b',"x":[{}\n{}]}\n',
        json.dumps(GOOD).encode()[:-1] + b',"x":[{}\n' + b"{}]}," + json.dumps(GOOD).encode() + b"\n",
        json.dumps(GOOD).encode() + b"," + json.dumps(GOOD).encode() + b"\n",
        b'{"benchmark":"b",\n"item_id":"i","model":"m","score":1}\n' + 2 * json.dumps(GOOD).encode() + b"\n",
        b'{"benchmark":"b",\n"item_id":"i","model":"m","score":1}\n'
        + b" ".join(2 * [json.dumps(GOOD).encode()])
        + b"\n",
        json.dumps(GOOD).encode()[:-1] + b',"x":"\xff"}\n',
        b"\n",
    ],
)
def test_a_block_in_which_a_line_is_no_event_is_not_read_as_a_whole(block):
    assert decode_block(block) is None


def test_a_block_is_read_line_by_line():
    lines = [{**GOOD, "item_id": str(k), "score": k % 2, "attributes": {"deep": [{}, {}]}} for k in range(50)]
    events = decode_block(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert [(e.item_id, e.score) for e in events] == [(str(k), k % 2) for k in range(50)]


def test_names_are_bounded_and_plain():
    assert name_fault("x" * 200) is None
    assert name_fault("x" * 201) == "has 201 characters, more than 200"
    for bad in "\0\x1b\x7f\x85\u061c\u200e\u200f\u202a\u2066\u2069\u2028\ud800\ufeff":
        assert f"U+{ord(bad):04X}" in name_fault(f"a{bad}b")
    assert all(name_fault(good) is None for good in ("[red]", "{topic:0}", "=1+1", "名前", "a b", "\u00e9"))

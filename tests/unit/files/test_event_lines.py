"""Events that are written by column: their lines decode to the very same events, or they are written one by one."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.files.formats.choices import Choices
from monitor.files.formats.log_file import LogFile, Notices, RunRegistry
from monitor.files.formats.result_writer import write_results
from monitor.files.formats.results import ResultColumns, Run, Tool
from monitor.files.importer import Importer
from monitor.files.streams.event_lines import EventLines, EventLineWriter
from schemas.records.decode import Checker, decode_block
from schemas.records.events import EventFields
from tests.unit.files.tool_files import TOOLS

NAMES = st.one_of(
    st.sampled_from(
        ["a", "item 1", "日本", "", "x" * 200, "x" * 201, "a\nb", 'a"b', "a\\b", "\ud800", "\x7f", "\u202e"]
    ),
    st.integers(0, 9).map(str),
)
SCORES = st.one_of(
    st.booleans(),
    st.none(),
    st.floats(0, 1),
    st.sampled_from([0, 1, -0.0, 1.5, -1, math.nan, math.inf, 2**70, "1", [1]]),
)
INDICES = st.sampled_from([0, 0, 0, 1, 2**31 - 1, 2**31, -1, True, 1.0])
EVENTS = st.lists(st.tuples(NAMES, NAMES, NAMES, SCORES, st.none() | NAMES, INDICES, INDICES), min_size=1, max_size=4)


every_tool = pytest.mark.parametrize("made", TOOLS.values(), ids=TOOLS)


def typed(events):
    return [(event, type(event.score), type(event.repeat), type(event.epoch)) for event in events]


@given(EVENTS)
def test_lines_by_column_decode_to_their_events_or_are_not_written(rows):
    lines = EventLineWriter().columns(list(zip(*rows, strict=True)))
    if lines is None:
        return
    decoded = decode_block(bytes(lines))
    assert decoded is not None
    assert not Checker().bad(decoded)
    assert typed(lines.events) == typed(decoded)


@pytest.mark.parametrize("field", ["run", "role"])
def test_half_a_surrogate_pair_that_is_no_name_is_a_reject_too(field):
    writer = EventLineWriter()
    writer.add(EventFields("b", "i", "m", 1.0), 1)
    writer.add(EventFields("b", "i", "m", 1.0, **{field: "\ud800"}), 2)
    event, reject = map(json.loads, writer.flush().splitlines())
    assert event["score"] == 1.0
    assert "half a surrogate pair" in json.dumps(reject)


def test_usual_events_are_written_by_column():
    usual = [("b", f"item {k}", "m", k % 2 == 0, None, 0, 0) for k in range(4)]
    lines = EventLineWriter().columns(list(zip(*usual, strict=True)))
    assert lines is not None
    assert lines.events == [EventFields(*row) for row in usual]


def test_joined_lines_keep_their_events_only_if_all_have_them():
    writer = EventLineWriter()
    first, second = (writer.columns([["b"], [item], ["m"], [1.0], [None], [0], [0]]) for item in "ab")
    joined = EventLines.joined([first, b"", second])
    assert [event.item_id for event in joined.events] == ["a", "b"]
    assert decode_block(bytes(joined)) == joined.events
    assert not isinstance(EventLines.joined([first, bytes(second)]), EventLines)
    assert EventLines.joined([]) == b""


VALUES = st.one_of(
    st.booleans(), st.none(), st.integers(-1, 101), st.floats(0, 1), st.sampled_from(["0.5", "yes", "?", math.nan])
)
PER_ITEM = st.lists(
    st.tuples(st.sampled_from(["1", "2", "", "ü"]), VALUES, st.sampled_from(["law", "", None, 3]), st.integers(0, 2)),
    min_size=1,
    max_size=6,
)
CHOICES = [
    {},
    {"benchmark": "other"},
    {"cluster": "none"},
    {"metric": ["score:lower"]},
    {"scale": ["100"]},
    {"subtasks": True},
]


ELSEWHERE = Run("other", "other")
"""Between two results it has each of them written on its own."""


def written(choices, tool, entries):
    notices = Notices()
    log = LogFile(Path("results.json"), None, Choices.parse(**choices), RunRegistry(notices), notices)
    lines = b"".join(write_results(tool, log, entries))
    return [json.loads(line) for line in lines.splitlines()]


@given(
    choices=st.sampled_from(CHOICES),
    columns=PER_ITEM,
    largest=st.sampled_from([1.0, 100.0]),
    part=st.none() | st.just("p"),
    models=st.integers(1, 2),
)
def test_results_come_to_the_same_by_column_together_and_one_by_one(choices, columns, largest, part, models):
    items, values, tags, repeats = (list(column) for column in zip(*columns, strict=True))
    by_column = ResultColumns("quiz", "m0", items, {"score": values}, {"subject": tags}, repeats, part=part)
    rows = [row._replace(model=f"m{k % models}") for k, row in enumerate(by_column.rows())]
    tool = Tool("results", read=lambda _: (), scale={"score": largest})
    one_by_one = written(choices, tool, [entry for row in rows for entry in (row, ELSEWHERE)])
    assert len(one_by_one) == len(rows)
    assert written(choices, tool, rows) == one_by_one
    if models == 1:
        assert written(choices, tool, [by_column]) == one_by_one


@every_tool
def test_no_file_of_a_tool_decodes_to_anything_else(tmp_path, made):
    """What a reader takes over with the lines is what it would decode."""
    importer = Importer(Choices())
    path = made.write(tmp_path)
    stream = importer.open(path)
    with_events = 0
    while lines := stream.read(1 << 16) or stream.finish():
        if isinstance(lines, EventLines):
            with_events += 1
            assert typed(lines.events) == typed(decode_block(bytes(lines)))
    stream.close()
    assert with_events

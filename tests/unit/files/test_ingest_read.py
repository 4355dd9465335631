import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.files.streams.blocks import Block
from monitor.files.streams.paths import find_files
from monitor.files.streams.read import read_files
from monitor.files.streams.segments import RAW_LENGTH, decode
from schemas.records.decode import BOM, Checker
from schemas.records.packed import SourceSpan, encode_span
from tests.unit.files.result_lines import blocks, event, keys, lines


def read(path, data):
    """Read a file; give its events, declarations, rejects in order."""
    path.write_bytes(data)
    segments = list(read_files([path]))
    assert_joined(segments)
    return (
        [e for s in segments for e in s.events],
        [d for s in segments for d in s.declarations],
        [r for s in segments for r in s.rejects],
    )


def assert_joined(segments):
    ends = [s.end for s in segments]
    assert ends == sorted(ends)


GOOD = [event(i, score=i % 2) for i in range(100)]


@pytest.mark.parametrize(
    ("line", "field", "found", "reason"),
    [
        (b'{"benchmark": "bench", "item_id"', "record", '{"benchmark": "bench", "item_id"', "not valid JSON"),
        (lines(event(score=math.inf))[:-1], "score", "inf", "number from 0 to 1, true, false or null"),
        (lines(event(score=1.2))[:-1], "score", "1.2", "number from 0 to 1, true, false or null"),
        (lines(event(score="x"))[:-1], "score", "x", "number from 0 to 1, true, false or null"),
        (
            b'{"benchmark": "bench", "item_id": "1", "score": 1}',
            "model",
            "nothing",
            "the field is missing; add a string",
        ),
        (
            b'{"benchmark": "bench", "item_id": "\xff", "model": "m", "score": 1}',
            "record",
            "byte 0xff",
            "not valid UTF-8",
        ),
        (b"[1, 2]", "record", "[1, 2]", "JSON object"),
        (lines(event(model="a\u202eb"))[:-1], "model", "a\\u202eb", "forbidden character U+202E"),
        (lines(event(model="m" * 201))[:-1], "model", "201 characters", "is too long; use a string of 1 to 200"),
        (lines(event(item="\x1b[2J"))[:-1], "item_id", "\\x1b[2J", "forbidden character"),
        (lines(event(repeat=-1))[:-1], "repeat", "-1", "whole number from 0"),
        (lines({"declare": "bench", "alpha": 0.7})[:-1], "alpha", "0.7", "use a number from 1e-100 to below 0.5"),
    ],
)
def test_a_bad_line_is_named_and_everything_else_read(tmp_path, line, field, found, reason):
    path = tmp_path / "a.jsonl"
    events, declarations, rejects = read(path, lines(*GOOD[:50], line, *GOOD[50:]))
    assert keys(events) == keys(GOOD)
    assert declarations == []
    [reject] = rejects
    assert (reject["source"], reject["line"], reject["field"], reject["benchmark"]) == (str(path), 51, field, "bench")
    assert found in reject["found"]
    assert reason in reject["reason"]
    assert reject["raw"] == line.decode("utf-8", "replace")[:RAW_LENGTH]


def test_a_long_line_is_named_with_its_length(tmp_path):
    events, _, [reject] = read(tmp_path / "a.jsonl", lines(GOOD[0], b"x" * 10_000_000, GOOD[1]))
    assert keys(events) == keys(GOOD[:2])
    assert (reject["line"], reject["found"]) == (2, "10,000,000 bytes")
    assert reject["raw"] == "x" * RAW_LENGTH


@pytest.mark.parametrize("bad", [b"", b"{broken}\n"])
def test_marks_returns_and_blank_lines_are_passed_over(tmp_path, bad):
    data = (
        BOM
        + lines(*GOOD[:3]).replace(b"\n", b"\r\n")
        + b"\r\n\n  \n"
        + bad
        + lines(*GOOD[3:])
        + b"\n\n"
        + lines(event(7))[:-1]
    )
    events, _, rejects = read(tmp_path / "a.jsonl", data)
    assert keys(events) == keys([*GOOD, event(7)])
    assert [r["line"] for r in rejects] == ([7] if bad else [])


def test_a_file_of_nothing_gives_nothing(tmp_path):
    assert read(tmp_path / "a.jsonl", b"") == ([], [], [])
    assert read(tmp_path / "a.jsonl", BOM + b"\r\n \n\n") == ([], [], [])


def test_a_declaration_separates_what_is_before_it_from_what_follows(tmp_path):
    first, second = {"declare": "bench", "items": 5}, {"declare": "other", "order": "none", "items": 9}
    data = lines(first, GOOD[0], b"{", GOOD[1], second, first, b"[]", GOOD[2])
    [block] = blocks(tmp_path / "a.jsonl", data)
    decoded = decode(block, tmp_path, Checker())
    segments = decoded.segments
    assert ([s.raw for s in segments], decoded.benchmark) == ([None, None], "bench")
    assert [
        ([d.declare for d in s.declarations], keys(s.events), [r["line"] for r in s.rejects], s.line) for s in segments
    ] == [
        (["bench"], keys(GOOD[:2]), [3], 4),
        (["other", "bench"], keys(GOOD[2:3]), [7], 8),
    ]
    assert [s.end for s in segments] == [len(lines(first, GOOD[0], b"{", GOOD[1])), len(data)]


def test_raw_is_the_line_of_the_file(tmp_path):
    data = lines(*GOOD)
    [block] = blocks(tmp_path / "a.jsonl", data)
    [segment] = decode(block, tmp_path, Checker()).segments
    assert segment.raw == data
    packed = json.loads(encode_span(segment, SourceSpan("a.jsonl", 0, "", 100), 0))
    assert packed["events"] == GOOD


def test_a_reject_belongs_to_the_benchmark_of_the_lines_around_it(tmp_path):
    data = lines(
        b"{",
        event(benchmark="one"),
        b"{",
        {"benchmark": "two"},
        b"{",
        event(benchmark="three"),
        {"declare": "four"},
        b"{",
    )
    _, _, rejects = read(tmp_path / "a.jsonl", data)
    assert [(r["line"], r["benchmark"]) for r in rejects] == [
        (1, "one"),
        (3, "one"),
        (4, "two"),
        (5, "two"),
        (8, "four"),
    ]
    assert read(tmp_path / "a.jsonl", b"{\n")[2][0]["benchmark"] is None


def test_the_benchmark_before_a_block_counts_too(tmp_path):
    bad = Block(100, 102, 9, b"{\n")
    assert decode(bad, tmp_path, Checker(), "before").segments[0].rejects[0]["benchmark"] == "before"


def test_the_name_of_an_unknown_field_is_bounded_and_printable(tmp_path):
    hostile = "\x1b[31m" + "f" * 100_000
    _, _, [reject] = read(tmp_path / "a.jsonl", lines({"declare": "bench", hostile: 1}))
    assert reject["field"].startswith("\\x1b[31mfff")
    assert len(reject["field"]) < 500
    json.dumps(reject, ensure_ascii=False).encode("utf-8")


def test_damage_is_a_reject_and_other_files_are_read(tmp_path):
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines(*GOOD))[:-9])
    (tmp_path / "b.jsonl").write_bytes(lines(GOOD[0]))
    segments = list(read_files(find_files([tmp_path])))
    rejects = [r for s in segments for r in s.rejects]
    assert [(r["field"], r["line"]) for r in rejects] == [("file", 101)]
    assert keys(e for s in segments for e in s.events) == keys([*GOOD, GOOD[0]])


def test_progress_goes_from_file_to_file_up_to_the_total(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.jsonl").write_bytes(lines(*(event(i) for i in range(8_000))))
    seen = []
    list(read_files(find_files([tmp_path]), lambda done, total: seen.append((done, total))))
    sizes = sum(f.stat().st_size for f in tmp_path.iterdir())
    assert seen == sorted(seen)
    assert len(seen) > 4
    assert seen[-1] == (sizes, sizes)


LINE = st.one_of(
    st.builds(
        event, st.integers(0, 9), st.sampled_from("ab"), st.sampled_from([0, 1, 0.5, True, None, 1.2, "x", [1]])
    ).map(lines),
    st.builds(lambda t: lines(event(timestamp=t)), st.sampled_from(["yesterday", "2024-01-01T00:00:00Z"])),
    st.sampled_from(
        [
            b"\n",
            b"\r\n",
            b"{}\n",
            b"{\n",
            b"\xff\n",
            b" [1]\r\n",
            lines({"declare": "bench"}),
            lines({"declare": "x", "alpha": 2}),
        ]
    ),
)


@given(st.lists(LINE, max_size=120))
def test_what_a_line_is_does_not_depend_on_the_lines_around_it(rows):
    def parts(decoded):
        flat = [
            (keys(s.events), [d.declare for d in s.declarations], [(r["line"], r["field"]) for r in s.rejects])
            for s in decoded
        ]
        return tuple([x for part in flat for x in part[k]] for k in range(3))

    data = b"".join(rows)
    whole = decode(Block(0, len(data), 1, data), "f", Checker()).segments if data else []
    single, start = [], 0
    for number, row in enumerate(rows, 1):
        single += decode(Block(start, start + len(row), number, row), "f", Checker()).segments
        start += len(row)
    assert parts(whole) == parts(single)

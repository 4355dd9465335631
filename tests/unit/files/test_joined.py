"""Short segments are joined to what one fold takes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.engine.state.pairs.counts import CHUNK_CELLS
from monitor.files.epochs import Epochs
from monitor.files.importer import Importer
from monitor.files.reject_limit import RejectLimit
from monitor.files.streams.read import read_files
from monitor.files.streams.stream import Stream
from monitor.files.streams.translated import DocumentStream
from monitor.view.from_files.fold import fold_files, join_segments
from schemas.records.packed import Segment
from schemas.records.run_columns import RunEvents


def segments(sizes):
    """Segments whose events are numbered."""
    start = 0
    for number, size in enumerate(sizes):
        yield Segment([], list(range(start, start + size)), [{"line": number}], number, number, f"file {number}")
        start += size


@given(st.lists(st.integers(0, CHUNK_CELLS + 500), max_size=12))
def test_nothing_is_lost_and_a_join_fits_a_fold(sizes):
    joined = list(join_segments(segments(sizes)))
    assert [event for part, _ in joined for event in part.events] == list(range(sum(sizes)))
    assert [reject["line"] for part, _ in joined for reject in part.rejects] == list(range(len(sizes)))
    for part, begins in joined:
        assert len(part.events) <= CHUNK_CELLS or len(begins) == 1
        for place, path in begins:
            number = int(path.split()[1])
            assert part.events[place : place + 1] in ([sum(sizes[:number])], [])


def test_a_declaration_begins_a_join():
    first, second = segments([2, 3])
    joined = list(join_segments([first, second._replace(declarations=["declared"])]))
    assert [len(part.events) for part, _ in joined] == [2, 3]


@pytest.mark.parametrize(("sizes", "joins"), [([CHUNK_CELLS // 2] * 4, 2), ([CHUNK_CELLS // 2 + 1] * 4, 4), ([], 0)])
def test_a_join_is_closed_before_it_is_too_long(sizes, joins):
    assert len(list(join_segments(segments(sizes)))) == joins


def lists(tmp_path, count):
    """Files of verdicts on many items, on most of them, and on one; and a file of events of another benchmark."""
    for model, (start, stop, step) in {"a": (0, count, 2), "b": (30, count - 60, 3), "c": (0, 1, 1)}.items():
        (tmp_path / model).mkdir()
        verdicts = {f"instance_owner{k % 5}__some-repo-{k:040x}": k % step == 0 for k in range(start, stop)}
        (tmp_path / model / "eval_results.json").write_text(json.dumps(verdicts))
    row = {"benchmark": "quiz", "item_id": "1", "score": 0.5}
    (tmp_path / "d.jsonl").write_text("".join(json.dumps({**row, "model": model}) + "\n" for model in "xy"))
    return [*sorted(tmp_path.glob("*/*.json")), tmp_path / "d.jsonl"]


def folded(files, epochs=None):
    importer, rejected = Importer(), []
    found = importer.find(files)
    partition = fold_files(
        found, None, RejectLimit(0), epochs=epochs, open_file=importer.open, on_rejected=rejected.append
    )
    assert not rejected
    return {
        name: (
            [*each.rows],
            [*each.contestants],
            each.scores[: len(each.rows)].tolist(),
        )
        for name, each in partition.benchmarks.items()
    }


@pytest.mark.parametrize(("count", "epochs", "parts"), [(9_000, None, 6), (200, Epochs(1), 2)])
def test_a_fold_of_columns_is_the_fold_of_their_lines(tmp_path, count, epochs, parts, monkeypatch):
    files, importer = lists(tmp_path, count), Importer()
    segments = [*read_files(importer.find(files), opener=importer.open)]
    assert sum(isinstance(each.events, RunEvents) for each in segments) == parts
    columns = folded(files, epochs)
    monkeypatch.setattr(DocumentStream, "run", Stream.run)  # as a reader that hashes lines reads
    lines = [*read_files(importer.find(files), opener=importer.open)]
    assert not any(isinstance(each.events, RunEvents) for each in lines)
    assert [event for each in lines for event in each.events] == [event for each in segments for event in each.events]
    assert folded(files, epochs) == columns
    rows, contestants, _ = columns["swe-bench-pro"]
    assert len(rows) == count
    assert {row.cluster for row in rows} == {f"owner{k}__some-repo" for k in range(5)}
    assert {contestant.epoch for contestant in contestants} == {0 if epochs is None else 1}


def test_a_name_that_needs_a_closer_look_is_rejected_alone(tmp_path):
    path = tmp_path / "a" / "eval_results.json"
    path.parent.mkdir()
    path.write_text(
        json.dumps(
            {
                "instance_a__b-1": True,
                **dict.fromkeys(map(str, range(20)), True),
                "instance_a__b-\u202e1": True,
                "x" * 201: False,
            }
        )
    )
    importer = Importer()
    segments = [*read_files(importer.find([path]), opener=importer.open)]
    assert sum(len(each.events) for each in segments) == 22
    assert [each["field"] for segment in segments for each in segment.rejects] == ["item_id"]

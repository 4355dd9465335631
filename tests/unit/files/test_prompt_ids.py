"""Items that are named by their prompts: read alike from every format, with the beginning of the text in the id."""

import json

import pytest

from monitor.files.streams.event_lines import prompt_id
from monitor.files.unit_list import read_units
from schemas.records.names import MAX_NAME_LENGTH, name_fault
from tests.unit.files.native_logs import Read
from tests.unit.files.result_lines import lines

LONG = "Economics 1: " + "long text " * 40
BROKEN = "Which one?\nA. yes\nB. no\n"
PROMPTS = [LONG, BROKEN, "one\tline", "q4"]
IDS = [prompt_id(text) or text for text in PROMPTS]


def rows(score="score"):
    return [{"prompt": text, "model": name, score: k % 2} for k, text in enumerate(PROMPTS) for name in ("a", "b")]


def write(path, made):
    if path.suffix == ".csv":
        cells = [",".join('"' + str(each).replace('"', '""') + '"' for each in row.values()) for row in made]
        path.write_text("\n".join([",".join(made[0]), *cells]) + "\n", newline="")
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").Table.from_pylist(made), path)
    elif path.suffix == ".jsonl":
        path.write_bytes(lines(*made))
    else:
        path.write_text(json.dumps(made))
    return path


@pytest.mark.parametrize("name", ["quiz.csv", "quiz.jsonl", "quiz.json", "quiz.parquet"])
def test_prompts_are_ids_in_every_table(tmp_path, name):
    read = Read(write(tmp_path / name, rows()), columns=["item_id=prompt"])
    assert read.rejects == []
    assert [(e.item_id, e.model) for e in read.events] == [(item, model) for item in IDS for model in ("a", "b")]
    assert sum("count as their beginning and a hash of the whole" in note for note in read.notes) == 1


def test_a_prompt_keeps_its_beginning_and_differs_by_the_whole_of_it():
    assert IDS[0].startswith("Economics 1: long text long text")
    assert IDS[1].startswith("Which one? A. yes B. no #")
    assert prompt_id(LONG) != prompt_id(LONG + "!")
    assert prompt_id("q4") is prompt_id("") is prompt_id(7) is prompt_id("x" * MAX_NAME_LENGTH) is None
    hostile = ["\u202e" * 300, "\ud800\n", "\x1b[2J\n" * 60, "a" * 10**6, "模型 " * 200]
    assert all(name_fault(prompt_id(text)) is None for text in hostile)


def test_the_proposed_flag_reads_a_table_of_prompts_at_once(tmp_path):
    wide = [{"prompt": text, "org/a": True, "b": False} for text in (LONG, BROKEN)]
    path = write(tmp_path / "quiz.csv", wide)
    [fault] = Read(path).faults
    assert "add --columns 'item_id=prompt,models=*'; else" in fault[3]
    write(tmp_path / "events.jsonl", [{"benchmark": "x", "item_id": "1", "model": "m", "score": 1}])
    assert any("add --columns 'item_id=prompt,models=*' --benchmark NAME" in note for note in Read(tmp_path).notes)
    read = Read(path, columns=["item_id=prompt,models=*"])
    assert {(e.item_id, e.model, e.score) for e in read.events} == {
        (item, model, score) for item in IDS[:2] for model, score in (("org/a", True), ("b", False))
    }


def test_a_rejected_score_of_a_prompt_is_of_its_item(tmp_path):
    made = rows()
    made[0]["score"] = "?"
    read = Read(write(tmp_path / "quiz.csv", made), columns=["item_id=prompt"])
    assert [each["item_id"] for each in read.rejects] == [IDS[0]]


def test_events_keep_to_names(tmp_path):
    path = write(tmp_path / "events.jsonl", [{"benchmark": "x", "item_id": BROKEN, "model": "m", "score": 1}])
    assert [fault[1] for fault in Read(path).faults] == ["item_id"]
    assert [e.item_id for e in Read(path, columns=["item_id=item_id"]).events] == [prompt_id(BROKEN)]


def test_rows_without_a_benchmark_are_named_like_their_files(tmp_path):
    for name in ("old", "new"):
        write(tmp_path / f"{name}.jsonl", [{"id": k, "correct": k % 2} for k in range(3)])
    read = Read(tmp_path / "old.jsonl", tmp_path / "new.jsonl")
    assert {(e.benchmark, e.model) for e in read.events} == {(tmp_path.name, "old"), (tmp_path.name, "new")}
    path = write(
        tmp_path / "late.jsonl",
        [{"id": 1, "model": "m", "score": 1}, {"benchmark": "b", "item_id": "1", "model": "m", "score": 1}],
    )
    assert {e.benchmark for e in Read(path).events} == {"late", "b"}, "an event after such a row keeps its benchmark"


def test_columns_and_data_are_a_table(tmp_path):
    path = tmp_path / "quiz.table.json"
    rows = [["q1", "a", 0.5, {"x": 1}], ["q1", "b", True, {}], [LONG, "b", None, {}]]
    path.write_text(json.dumps({"columns": ["id", "model", "score", "output"], "data": rows}))
    read = Read(path)
    assert read.rejects == []
    assert [(e.item_id, e.model, e.score) for e in read.events] == [
        ("q1", "a", 0.5),
        ("q1", "b", True),
        (IDS[0], "b", None),
    ]
    assert [e.model for e in Read(f"mine={path}").events] == ["mine"] * 3
    path.write_text(json.dumps({"columns": ["id", "model", "score"], "data": [["q1", "a"], ["q2", "a", 1]]}))
    read = Read(path)
    assert [(e.item_id, e.score) for e in read.events] == [("q1", None), ("q2", 1)], "a cell that is not there is blank"
    path.write_text(json.dumps({"columns": ["id", "id", "model", "score"], "data": [["q1", "q2", "a", 1]]}))
    assert "2 columns are called id; rename or remove all but one" in Read(path).faults[0][3]
    path.write_text(json.dumps({"columns": ["id", "note"], "data": [["q1", "x"]]}))
    assert "no column for model and score in id, note" in Read(path).faults[0][3]


def test_units_of_prompts_are_those_of_their_ids(tmp_path):
    path = tmp_path / "units.json"
    path.write_text(json.dumps({LONG: "u", "q4": "u"}))
    assert read_units(path) == {IDS[0]: "u", "q4": "u"}

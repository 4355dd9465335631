"""Files that look like results and are something else, and scores on another scale: what is said, and what is read."""

import json

import pytest

from monitor.files.formats.choices import ChoiceError, Choices
from tests.unit.files.native_logs import Read, sample
from tests.unit.files.result_lines import event, lines

WIDE = "question_id,gpt-4,llama\n1,1,0\n2,true,no\n3,,1\n"


def test_a_table_with_a_column_for_each_model_names_the_flag(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(WIDE)
    [(line, field, _, reason)] = Read(path).faults
    assert (line, field) == (1, "columns")
    assert "if gpt-4, llama are models, add --columns 'models=*'; else" in reason
    read = Read(path, columns=["models=*"], benchmark="quiz")
    assert read.rejects == []
    assert read.scores == {
        ("quiz", item, 0, model): score
        for item, model, score in [
            ("1", "gpt-4", 1.0),
            ("1", "llama", 0.0),
            ("2", "gpt-4", True),
            ("2", "llama", False),
            ("3", "gpt-4", None),
            ("3", "llama", 1.0),
        ]
    }


def test_the_columns_it_would_take_are_named_up_to_a_point(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,item," + ",".join(f"m{k}" for k in range(12)) + "\nquiz,1" + ",1" * 12 + "\n")
    [(_, _, _, reason)] = Read(path).faults
    assert "if m0, m1, m2, m3, m4 and 7 more are models, add --columns 'models=*'; else" in reason
    path.write_text("number,gpt-4,llama\n7,1,0\n")
    [(_, _, _, reason)] = Read(path, benchmark="quiz").faults
    assert "if every other column is a model, add --columns 'item_id=COLUMN,models=*'; else" in reason
    path.write_text("prompt,gpt-4,llama\nx,1,0\n")
    [(_, _, _, reason)] = Read(path, benchmark="quiz").faults
    assert "if gpt-4, llama are models, add --columns 'item_id=prompt,models=*'; else" in reason


TEXTS = {"question_id": "1", "prompt": "What is 2 + 2?", "gpt-4": 1, "answer": "4 of course", "llama 3": 0}


def write_table(path, *rows):
    """Rows in the format of the name: JSON lines, a Parquet table or CSV."""
    if path.suffix == ".jsonl":
        path.write_bytes(lines(*rows))
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").Table.from_pylist(rows), path)
    else:
        path.write_text(
            "".join(",".join(map(str, cells)) + "\n" for cells in [rows[0], *(row.values() for row in rows)])
        )
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_columns_of_text_are_not_models(tmp_path, name):
    path = write_table(tmp_path / name, TEXTS, TEXTS | {"question_id": "2", "gpt-4": 0})
    faults = Read(path).faults
    assert {(field, reason.partition("; ")[2]) for _, field, _, reason in faults} == {
        (
            "columns",
            (
                "if gpt-4, llama 3 are models, add --columns 'models=gpt-4|llama 3'; else name the score with --columns score=COLUMN"
            ),
        )
    }
    [(line, field, _, reason)] = Read(path, columns=["item_id=question_id,models=*"], benchmark="quiz").faults
    assert (line, field) == (1, "columns")
    assert reason == (
        "prompt, answer hold text and not scores, so models=* does not take every other column; name the columns that are models: "
        "--columns 'item_id=question_id,models=gpt-4|llama 3'"
    )
    read = Read(path, columns=["item_id=question_id,models=gpt-4|llama 3"], benchmark="quiz")
    assert read.rejects == []
    assert read.scores == {
        ("quiz", "1", 0, "gpt-4"): 1,
        ("quiz", "1", 0, "llama 3"): 0,
        ("quiz", "2", 0, "gpt-4"): 0,
        ("quiz", "2", 0, "llama 3"): 0,
    }
    assert read.notes == ["columns: item_id = question_id, models = gpt-4, llama 3"]


def test_text_in_a_column_of_a_model_is_named_with_its_column(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,a,b,note\n1,1,0,\n2,1,error,\n3,0,1,see below\n")
    read = Read(path, columns=["models=*"], benchmark="quiz")
    assert [(line, reason) for line, _, _, reason in read.faults] == [
        (
            line,
            (
                f'column {column} holds "{text}", which is not a score; use a number from 0 to 1, true, false or null. If the column is '
                "not a model, name those that are with --columns 'models=A|B'"
            ),
        )
        for line, column, text in [(3, "b", "error"), (4, "note", "see below")]
    ]
    [(line, _, _, reason)] = Read(path, columns=["models=a|b"], benchmark="quiz").faults
    assert (line, reason) == (
        3,
        'column b holds "error", which is not a score; use a number from 0 to 1, true, false or null',
    )


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("models=a|c", "no column for the model c in id, a, b; correct the name in --columns models=A|B"),
        ("models=a|id", "id is a column of another field too; omit it in --columns models=A|B"),
    ],
)
def test_models_that_are_no_columns_are_named(tmp_path, columns, reason):
    path = tmp_path / "a.csv"
    path.write_text("id,a,b\n1,1,0\n")
    assert [fault[3] for fault in Read(path, columns=[columns], benchmark="quiz").faults] == [reason]


def test_a_table_without_rows_names_the_flag(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("id,a,b\n")
    [(_, field, _, reason)] = Read(path).faults
    assert (field, "add --columns 'models=*'; else" in reason) == ("columns", True)


ROWS = [
    {"question_id": "1", "gpt-4.1": 1, "gpt-4.5": 0},
    {"question_id": "2", "gpt-4.1": True, "gpt-4.5": 0},
    {"question_id": "3", "gpt-4.1": 1, "new": 0.5},
]
OBJECTS = [{"question_id": row.pop("question_id"), "scores": row} for row in map(dict, ROWS)]


@pytest.mark.parametrize(("rows", "prefix"), [(ROWS, ""), (OBJECTS, "scores.")])
def test_json_lines_with_a_field_for_each_model_name_the_flag(tmp_path, rows, prefix):
    path = tmp_path / "a.jsonl"
    path.write_bytes(lines(*rows[:2], event(7), "{", rows[2]))
    read = Read(path)
    assert [e.item_id for e in read.events] == ["7"], "a line that is an event is read"
    assert [fault[:2] for fault in read.faults] == [(1, "columns"), (2, "columns"), (4, "record"), (5, "columns")]
    flag = f"if {prefix}gpt-4.1, {prefix}gpt-4.5 are models, add --columns 'models=*'; else"
    assert all(flag in reason for _, field, _, reason in read.faults if field == "columns")
    path.write_bytes(lines(*rows))
    read = Read(path, columns=["models=*"], benchmark="quiz")
    assert read.rejects == []
    assert read.scores == {
        ("quiz", "1", 0, "gpt-4.1"): 1,
        ("quiz", "1", 0, "gpt-4.5"): 0,
        ("quiz", "2", 0, "gpt-4.1"): True,
        ("quiz", "2", 0, "gpt-4.5"): 0,
        ("quiz", "3", 0, "gpt-4.1"): 1,
        ("quiz", "3", 0, "new"): 0.5,
    }
    assert read.notes == [
        f"columns: item_id = question_id, models = gpt-4.1, gpt-4.5{' (in scores)' if prefix else ''}"
    ]


@pytest.mark.parametrize(
    ("first", "field"),
    [
        ({"item_id": "1", "model": "m"}, "benchmark"),
        ({"item": "1", "modle": "x", "scroe": 1}, "columns"),
        ({"a": 0.5}, "benchmark"),
    ],
)
def test_a_first_line_that_is_a_bad_event_is_not_taken_for_a_row_of_models(tmp_path, first, field):
    (tmp_path / "a.jsonl").write_bytes(lines(first, event(1)))
    read = Read(tmp_path / "a.jsonl")
    assert len(read.events) == 1
    assert [fault[:2] for fault in read.faults] == [(1, field)]


@pytest.mark.parametrize(
    "names",
    [
        ("question_id", "model_a", "model_b", "winner"),
        ("id", "prompt", "model_x", "model_y", "worker", "winner"),
        ("question_id", "model_1", "model_2", "g1_winner"),
        ("dataset", "generator_1", "generator_2", "preference"),
    ],
)
@pytest.mark.parametrize("columns", [(), ("model={2},item_id={0},score={3}",), ("item_id={0},models=*",)])
def test_battles_are_refused_with_what_is_needed_instead(tmp_path, names, columns):
    row = ["1"] * len(names)
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join(row) + "\n" + ",".join(row) + "\n")
    (tmp_path / "a.jsonl").write_text(2 * (json.dumps(dict(zip(names, row, strict=True))) + "\n"))
    columns = [each.format(*names) for each in columns]
    if not columns and "winner" in names:
        return  # these are read, as tests/unit/files/test_battle_columns.py shows
    for path in (tmp_path / "a.csv", tmp_path / "a.jsonl"):
        read = Read(path, columns=columns, benchmark="arena")
        assert read.events == []
        [(line, field, _, reason)] = read.faults
        assert (line, field) == (1, "columns")
        assert (
            "make a row a battle of two models; name its columns item_id (the prompt), model_a, model_b and winner"
            in reason
        )


def test_models_called_a_and_b_are_no_battle(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("item_id,model_a,model_b\n1,1,0\n")
    assert len(Read(path, columns=["models=*"], benchmark="quiz").events) == 2


def test_scores_on_another_scale_are_divided(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(event(1, score=85), event(2, score="50"), event(3, score=True), event(4)))
    (tmp_path / "b.jsonl").write_bytes(lines(event(1, score=100, model="x"), event(2, score=120, model="x"), b"{"))
    (tmp_path / "c.csv").write_text("id,model,task,score\n1,y,other,7\n2,y,bench,70\n3,y,bench,true\n")
    (tmp_path / "d.jsonl").write_bytes(lines({"question_id": 1, "model": "z", "grade": 25}))
    paths = [tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.csv")]
    read = Read(*paths, scale=["100", "other=10"])
    assert {(e.benchmark, e.item_id, e.model): e.score for e in read.events} == {
        ("bench", "1", "m"): 0.85,
        ("bench", "2", "m"): 0.5,
        ("bench", "3", "m"): True,
        ("bench", "4", "m"): 0.01,
        ("bench", "1", "x"): 1.0,
        ("other", "1", "y"): 0.7,
        ("bench", "2", "y"): 0.7,
        ("bench", "3", "y"): True,
    }
    assert [(line, field, found) for line, field, found, _ in read.faults] == [(2, "score", "1.2"), (3, "record", "{")]
    read = Read(tmp_path / "d.jsonl", scale=["100"], columns=["score=grade"], benchmark="quiz")
    assert [e.score for e in read.events] == [0.25]


def test_a_renamed_model_keeps_its_scale(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(lines(event(1, score=85), {"declare": "late", "items": 3}))
    read = Read(f"new={tmp_path / 'a.jsonl'}", scale=["100"])
    assert [(e.model, e.score) for e in read.events] == [("new", 0.85)]
    assert read.declared == [("late", 3)]


def test_metrics_and_scorers_are_divided_too(tmp_path):
    path = tmp_path / "samples_quiz_2026-01-02T03-04-05.678901.jsonl"
    path.write_bytes(lines(*(sample(k, metrics={"bleu": 40.0 + k}) for k in range(2))))
    assert [e.score for e in Read(path, metric=["bleu"], scale=["quiz=100"]).events] == [0.4, 0.41]
    assert [e.score for e in Read(path, metric=["bleu:lower"], scale=["100"]).events] == pytest.approx(
        [0.6, 0.59], abs=1e-12
    )
    assert Read(path, metric=["bleu"]).faults[0][3].endswith("or give its largest value with --scale")


@pytest.mark.parametrize("scale", ["0", "-1", "nan", "inf", "x", "quiz=", "quiz=x"])
def test_a_scale_is_a_number_above_zero(scale):
    with pytest.raises(ChoiceError, match=r"--scale .*give the largest score"):
        Choices.parse(scale=[scale])

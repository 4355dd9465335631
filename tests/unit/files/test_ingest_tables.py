"""Tables and JSON lines whose columns are called something else."""

import csv
import gzip
import io
import json
import random
import sys
from decimal import Decimal

import pytest

from monitor.files.formats import documents
from monitor.files.tables.columns import flatten
from tests.unit.files.memory_log import Log, look, once
from tests.unit.files.native_logs import Choices, Importer, Read, write_lines
from tests.unit.files.result_lines import event

ROWS = [
    {"task": "quiz", "question_id": k, "model": model, "correct": (k * len(model)) % 2, "category": "ab"[k % 2]}
    for k in range(6)
    for model in ("one", "other")
]
SCORES = {("quiz", str(r["question_id"]), 0, r["model"]): float(r["correct"]) for r in ROWS}


def table(rows, separator=","):
    text = io.StringIO()
    writer = csv.DictWriter(
        text, list(rows[0]), delimiter=separator, lineterminator="\r\n" if separator == ";" else "\n"
    )
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def parquet(path, rows):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(arrow.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.csv.gz", ",")])
def test_usual_columns_are_known(tmp_path, name, separator):
    data = table(ROWS, separator)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else b"\xef\xbb\xbf" + data)
    read = Read(tmp_path)
    assert read.scores == SCORES
    assert {e.item_id: e.cluster for e in read.events} == {str(k): "ab"[k % 2] for k in range(6)}
    assert read.notes == [
        "columns: benchmark = task, item_id = question_id, model = model, score = correct, cluster = category"
    ]


def test_parquet_is_read_like_a_table(tmp_path):
    read = Read(parquet(tmp_path / "a.parquet", [r | {"transcript": "x" * 100} for r in ROWS]))
    assert read.scores == SCORES
    rows = [
        r | {"correct": None if r["question_id"] == 1 else r["correct"], "question_id": r["question_id"] + 0.0}
        for r in ROWS
    ]
    read = Read(parquet(tmp_path / "b.parquet", rows))
    assert read.scores == SCORES | {("quiz", "1", 0, model): None for model in ("one", "other")}


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    path = parquet(tmp_path / "a.parquet", ROWS)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ((_, field, found, reason),) = Read(path).faults
    assert (field, found) == ("file", "a Parquet table")
    assert "rankwatch[parquet]" in reason


def test_broken_parquet_is_named_and_waited_for(tmp_path):
    whole = parquet(tmp_path / "a.parquet", ROWS).read_bytes()
    path = tmp_path / "b.parquet"
    path.write_bytes(whole[:-9])
    ((_, field, found, _),) = Read(path).faults
    assert field == "file"
    assert "the Parquet table is cut off or damaged" in found
    log = Log()
    tailer = log.tailer(path, importer=Importer(Choices()))
    look(tailer)
    path.write_bytes(whole)
    look(tailer)
    tailer._reader.close()
    assert len(log.events) == len(ROWS)
    assert not log.rejects


def test_columns_are_chosen_by_name(tmp_path):
    (tmp_path / "a.csv").write_text("ID,System,ok,try,topic\n7,m,yes,0,x\n7,m,no,1,x\n")
    read = Read(tmp_path, columns=["model=System,item_id=ID", "score=ok,repeat=try"], benchmark="quiz", cluster="topic")
    assert read.scores == {("quiz", "7", 0, "m"): 1.0, ("quiz", "7", 1, "m"): 0.0}
    assert {e.cluster for e in read.events} == {"x"}


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("scale", "given", "scores"),
    [((), [0.25, 0.0, 1.0], [0.75, 1.0, 0.0]), (["8"], [2.0, 0.0, 8.0], [0.75, 1.0, 0.0])],
)
def test_less_is_better_in_a_column_of_which_that_is_chosen(tmp_path, form, scale, given, scores):
    rows = [{"task": "t", "question_id": k, "model": "m", "latency": value} for k, value in enumerate(given)]
    path = tmp_path / f"a.{form}"
    if form == "parquet":
        parquet(path, rows)
    else:
        path.write_bytes(table(rows) if form == "csv" else "".join(f"{json.dumps(row)}\n" for row in rows).encode())
    read = Read(path, columns=["score=latency:lower"], scale=scale)
    assert [each.score for each in read.events] == scores
    assert "score = latency (less is better)" in read.notes[0]


def test_a_table_of_more_columns_than_are_read_is_refused(tmp_path):
    """Two million columns took 12 s of processor time, and a line may have 32 million."""
    names = [f"c{k}" for k in range(100_001)]
    (tmp_path / "wide.csv").write_text(f"{','.join(names)}\n{','.join('1' * len(names))}\n")
    ((_, _, _, why),) = Read(tmp_path / "wide.csv").faults
    assert why == "the table has 100,001 columns, more than 100,000; write a row for each score"


def test_a_column_a_model(tmp_path):
    (tmp_path / "a.csv").write_text("id,subject,one,two\n1,law,1,0\n2,law,,0.5\n")
    read = Read(tmp_path / "a.csv", columns=["item_id=id,models=*"], benchmark="quiz")
    assert read.scores == {
        ("quiz", "1", 0, "one"): 1.0,
        ("quiz", "1", 0, "two"): 0.0,
        ("quiz", "2", 0, "one"): None,
        ("quiz", "2", 0, "two"): 0.5,
    }
    assert "models = one, two" in read.notes[0]


@pytest.mark.parametrize(
    ("header", "choices", "reason"),
    [
        (
            "id,model,benchmark",
            {},
            "no column for score in id, model, benchmark; name it with --columns score=COLUMN; `rankwatch map FILE` proposes a mapping",
        ),
        ("a,b", {}, "no column for item_id and score in a, b"),
        (",b", {}, "no column for item_id and score in (no name), b"),
        (
            ",".join(f"{'long' * 10}{k}" for k in range(20)),
            {"columns": ["item_id=COLUMN"]},
            "and 18 more; COLUMN is not one of them; choose another with --columns item_id=COLUMN",
        ),
        (
            "a,b,model_name",
            {"columns": ["model=model_name"]},
            "no column for item_id and score in a, b, model_name; name them with --columns item_id=COLUMN,score=COLUMN; `rankwatch map",
        ),
        (
            "id,score,task",
            {},
            "no column for model in id, score, task; name it with --columns model=COLUMN, or the model with NAME=PATH (the field",
        ),
        ("id,score,model", {"columns": ["score=ok"]}, "no column for score in id, score, model; ok is not one of them"),
        ("id,score,model,task", {"cluster": "topic"}, "topic is not one of them"),
        ("id,task", {"columns": ["models=*"]}, "no column for a model in id, task"),
    ],
)
def test_a_table_without_a_column_that_is_needed_is_refused(tmp_path, header, choices, reason):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1,2,3,4\n1,2,3,4\n")
    ((line, field, found, why),) = Read(path, **choices).faults
    assert (line, field, found) == (1, "columns", "a table")
    assert reason in why


@pytest.mark.parametrize("name", ["my.scores.csv", "my.scores.tsv.gz", "my.scores.parquet"])
def test_a_table_on_its_own_gives_its_name_to_a_benchmark_that_no_column_names(tmp_path, name):
    rows = [{"id": 1, "model": "one", "score": 1}, {"id": 1, "model": "other", "score": 0}]
    path = tmp_path / name
    if name.endswith(".parquet"):
        parquet(path, rows)
    else:
        data = table(rows, "\t" if ".tsv" in name else ",")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    read = Read(path)
    assert set(read.scores) == {("my.scores", "1", 0, "one"), ("my.scores", "1", 0, "other")}
    assert read.notes == [
        (
            "columns: item_id = id, model = model, score = score; benchmark = my.scores, since no column names it "
            "(--benchmark NAME changes it)"
        )
    ]
    assert {benchmark for benchmark, *_ in Read(path, benchmark="mine").scores} == {"mine"}


def test_tables_that_a_command_names_are_models_of_the_benchmark_of_their_folder(tmp_path):
    files = [tmp_path / name for name in ("new.csv", "old.csv")]
    for file in files:
        file.write_text("id,correct\n1,True\n")
    read = Read(*files)
    assert {(benchmark, model) for benchmark, _, _, model in read.scores} == {
        (tmp_path.name, "new"),
        (tmp_path.name, "old"),
    }
    assert all("by the path (NAME=PATH changes it); benchmark = " in note for note in read.notes)


def test_tables_of_one_name_are_models_by_their_folders(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "scores.csv").write_text("id,score\n1,1\n")
    read = Read(tmp_path / "a" / "scores.csv", tmp_path / "b" / "scores.csv")
    assert {(benchmark, model) for benchmark, _, _, model in read.scores} == {("results", "a"), ("results", "b")}


def test_a_table_of_a_column_for_each_model_takes_no_model_from_its_path(tmp_path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,gpt,llama\n1,1,0\n")
    read = Read(tmp_path / "a.csv", tmp_path / "b.csv")
    assert not read.events
    assert all("if gpt, llama are models" in why for *_, why in read.faults)


def test_tables_that_are_no_results_are_passed_over_in_a_folder(tmp_path):
    (tmp_path / "items.csv").write_text("item,category\n1,a\n")
    (tmp_path / "results.csv").write_bytes(table(ROWS))
    write_lines(tmp_path / "questions.jsonl", [{"question": "?", "answer": 3}])
    read = Read(tmp_path)
    assert read.scores == SCORES
    assert not read.rejects
    assert sum("is skipped" in text for text in read.notes) == 2


def test_bad_rows_are_named_with_their_line_and_the_rest_is_read(tmp_path):
    rows = [
        "id,task,model,score",
        "1,quiz,m,1",
        "2,quiz,m,1.5",
        "3,quiz,m",
        "",
        '"4\n4",quiz,m,1',
        '"5,5",quiz,m,true',
        "6,quiz,,1",
    ]
    (tmp_path / "a.csv").write_bytes("\n".join(rows).encode() + b"\n7\xff,quiz,m,1\n8,quiz,m,0,extra\n9,quiz,m,0\n")
    read = Read(tmp_path)
    assert [(e.item_id, e.score) for e in read.events] == [
        ("1", 1.0),
        ("4 4 #ebbb88449a782743", 1.0),
        ("5,5", 1.0),
        ("9", 0.0),
    ]
    assert [(line, field) for line, field, *_ in read.faults] == [
        (3, "score"),
        (4, "record"),
        (9, "model"),
        (10, "record"),
        (11, "record"),
    ]
    assert read.faults[0][3].endswith("use a number from 0 to 1, true, false or null")


def test_a_quotation_mark_that_is_never_closed_is_named(tmp_path):
    (tmp_path / "a.csv").write_text('id,task,model,score\n1,quiz,m,1\n"2,quiz,m,1\n3,quiz,m,1\n')
    read = Read(tmp_path)
    assert [e.item_id for e in read.events] == ["1"]
    ((_, field, found, reason),) = read.faults
    assert (field, found) == ("record", '"2,quiz,m,1')
    assert "never closed" in reason


def test_a_table_that_grows_in_any_pieces_is_read_exactly_once(tmp_path):
    rows = [r | {"note": 'with "quotes"\nand, more'} for r in ROWS]
    data, path, rng = table(rows), tmp_path / "a.csv", random.Random(3)
    for _ in range(10):
        log = Log()
        path.write_bytes(b"")
        tailer = log.tailer(path, importer=Importer(Choices()))
        for end in [*sorted(rng.sample(range(len(data)), 6)), len(data)]:
            path.write_bytes(data[:end])
            look(tailer)
            if rng.random() < 0.3:
                tailer._reader.close()
                tailer = log.tailer(path, importer=Importer(Choices()))
        tailer._reader.close()
        assert [e["item_id"] for e in log.events] == [str(r["question_id"]) for r in ROWS]
        counters = log.counters()
        assert (counters["events"], counters["duplicates"], len(log.rejects)) == (len(ROWS), 0, 0)


def test_a_last_row_without_newline_is_read_if_it_reaches_the_last_column(tmp_path):
    (tmp_path / "a.csv").write_text("id,task,model,score\n1,quiz,m,1\n2,quiz,m,0")
    read = Read(tmp_path)
    assert len(read.events) == 2
    assert any("no line end follows the last row" in text for text in read.notes)
    (tmp_path / "a.csv").write_text("id,task,model,score\n1,quiz,m,1\n2,quiz,m,0\n")
    assert not any("line end" in text for text in Read(tmp_path).notes)
    (tmp_path / "a.csv").write_text("id,task,model,score\n1,quiz,m,1\n2,quiz,")
    read = Read(tmp_path)
    assert len(read.events) == 1
    assert any("half-written" in text for text in read.notes)


def test_json_lines_under_other_names(tmp_path):
    write_lines(tmp_path / "a.jsonl", [{**r, "meta": {"x": 1}} for r in ROWS])
    assert Read(tmp_path).scores == SCORES
    nested = [{"id": r["question_id"], "run": {"model": r["model"]}, "res": {"ok": bool(r["correct"])}} for r in ROWS]
    write_lines(tmp_path / "a.jsonl", nested)
    read = Read(tmp_path / "a.jsonl", columns=["model=run.model,score=res.ok"], benchmark="quiz")
    assert read.scores == SCORES


def test_json_lines_that_are_chosen_but_missing_are_refused(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", [event(k) for k in range(30)])
    ((line, field, _, reason),) = Read(path, columns=["score=ok"]).faults
    assert (line, field) == (1, "columns")
    assert "no column for score in benchmark, item_id, model, score; ok is not one of them" in reason


def test_a_bad_object_is_named_and_the_rest_is_read(tmp_path):
    lines = [{**ROWS[0]}, "{oops", "[1]", {**ROWS[2], "correct": "maybe"}, {**ROWS[4]}]
    read = Read(write_lines(tmp_path / "a.jsonl", lines))
    assert [e.item_id for e in read.events] == ["0", "2"]
    assert [(line, field) for line, field, *_ in read.faults] == [(2, "record"), (3, "record"), (4, "score")]


def test_events_stay_as_they_stand(tmp_path):
    path = write_lines(
        tmp_path / "a.jsonl", [{"declare": "bench", "items": 9}, event(1), '{"benchmark": "bench"}', event(2)]
    )
    read = Read(path)
    assert read.declared == [("bench", 9)]
    assert [e.item_id for e in read.events] == ["1", "2"]
    assert [line for line, *_ in read.faults] == [3]
    assert not read.notes


def test_json_lines_may_be_called_anything(tmp_path):
    for name in ("a.json", "b.txt", "c"):
        assert len(Read(write_lines(tmp_path / name, [event(1), event(2)])).events) == 2


def test_an_event_file_whose_first_line_is_bad_is_still_one(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", ["{oops", event(1), event(2)])
    assert len(Read(path).events) == 2
    path = write_lines(tmp_path / "a.jsonl", [{"benchmark": "bench", "model": "m", "score": 1}, event(1)])
    read = Read(path)
    assert len(read.events) == 1
    assert [(line, field) for line, field, *_ in read.faults] == [(1, "item_id")]


def test_the_model_of_a_run_is_named_on_the_command_line(tmp_path):
    a = write_lines(tmp_path / "a.jsonl", [{"declare": "bench", "items": 2}, event(1), event(2, score=0)])
    b = write_lines(tmp_path / "b.jsonl", [event(1), event(2, model="another")])
    read = Read(f"x={a}", f"y={b}")
    assert [(e.model, e.item_id, e.score) for e in read.events] == [("x", "1", 1.0), ("x", "2", 0.0), ("y", "1", 1.0)]
    assert read.declared == [("bench", 2)]
    ((line, field, found, reason),) = read.faults
    assert (line, field, found) == (2, "model", "another")
    assert "is a second model after m" in reason


def test_a_table_of_one_run_needs_no_column_for_the_model(tmp_path):
    (tmp_path / "a.csv").write_text("id,score\n1,1\n")
    read = Read(f"mine={tmp_path}", benchmark="quiz")
    assert read.scores == {("quiz", "1", 0, "mine"): 1.0}


def test_an_empty_file_holds_nothing(tmp_path):
    for name in ("a.csv", "b.jsonl"):
        (tmp_path / name).write_bytes(b"")
        read = Read(tmp_path / name)
        assert (read.events, read.faults) == ([], [])


def test_a_restart_with_another_choice_reads_the_file_again(tmp_path):
    rows = [{"task": "quiz", "id": k, "model": "m", "score": 1, "strict": 0} for k in range(3)]
    path, log = tmp_path / "a.jsonl", Log()
    write_lines(path, rows)
    once(log, path, importer=Importer(Choices()))
    once(log, path, importer=Importer(Choices.parse(columns=["score=strict"])))
    once(log, path, importer=Importer(Choices.parse(columns=["score=strict"])))
    counters = log.counters()
    assert (counters["events"], counters["conflicts"]) == (6, 3)


def test_numbers_that_are_json_but_no_score(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        json.dumps(ROWS[0] | {"correct": 10**400}) + "\n" + json.dumps(ROWS[1] | {"correct": float("nan")}) + "\n"
    )
    read = Read(path)
    assert [e.score for e in read.events] == [None]
    assert [(line, field) for line, field, *_ in read.faults] == [(1, "score")]


CELLS = ["", "1", "0", "0.5", "true", "No", " 1 ", "null", "N/A", "2", "1e400", "?", "a\u202eb", "x" * 201, "ü", "\x7f"]
CELLS += [
    "a\x0bb",
    'a "b"',
    "c,d",
    "e\nf",
    "g\rh",
    "a\\b",
    "17.0",
    "\U0001f600",
]
LINES = [
    b"",
    b"\r",
    b",,,",
    b"1,quiz",
    b'5" pipe,quiz\n6" pipe,m,1,a',
    b"\xff,quiz,m,1,a",
    b"\x00,quiz,m,1,a",
    b"a,b,c,1,e,f",
]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("names", "choices"),
    [
        (["item_id", "benchmark", "model", "score", "cluster"], {}),
        (["item_id", "benchmark", "model", "score", "epoch"], {"scale": ["2", "other=4"]}),
        (["item_id", "one", "two", "cluster", "repeat"], {"benchmark": "quiz", "columns": ["models=*"]}),
    ],
)
def test_rows_come_to_the_same_together_and_one_by_one(tmp_path, monkeypatch, seed, names, choices):
    """Whatever is unusual about some of them."""
    rng, written = random.Random(seed), io.StringIO()
    usual = {"benchmark": ["quiz", "other"], "model": ["m", "n"], "cluster": ["a", "", "b"], "epoch": ["0", "1", "3.0"]}
    writer = csv.DictWriter(written, names, lineterminator="\r\n" if seed % 2 else "\n")
    writer.writeheader()
    for item in range(400):
        row = {name: rng.choice(usual.get(name, ["0", "1", ""])) for name in names} | {"item_id": f"item {item}"}
        if rng.random() < 0.04:
            row[rng.choice(names)] = rng.choice(CELLS)
        writer.writerow(row)
    lines = written.getvalue().encode().split(b"\n")
    for place in rng.sample(range(2, 400), 8):
        lines.insert(place, rng.choice(LINES))
    (tmp_path / "a.csv").write_bytes(b"\n".join(lines))
    monkeypatch.setattr("monitor.files.tables.tables._TOGETHER", 10)
    together = Read(tmp_path / "a.csv", **choices)
    monkeypatch.setattr("monitor.files.tables.columns.Columns.usual", lambda *_: None)
    alone = Read(tmp_path / "a.csv", **choices)
    assert together.events == alone.events
    assert together.faults == alone.faults
    assert together.notes == alone.notes
    assert len(together.events) > 300
    assert together.faults


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("correct", [True, None, False]),
        ("correct", [1.0, float("nan"), 0.5]),
        ("correct", [1, 0, 2]),
        ("correct", ["1", "yes", "?"]),
        ("correct", [[1], [0], []]),
        ("correct", [{"x": 1}, {"x": 0}, None]),
        ("correct", [Decimal("0.5"), Decimal(1), None]),
        ("question_id", [1.0, 2.5, None]),
        ("question_id", [True, False, None]),
        ("model", ["m", "", None]),
        ("model", ["m", "a\u202eb", "\u00fc"]),
        ("category", [1, None, 3]),
    ],
)
def test_parquet_rows_come_to_the_same_together_and_one_by_one(tmp_path, monkeypatch, field, values):
    rows = [row | {field: value} for row, value in zip(ROWS * 2, values * 2 * len(ROWS), strict=False)]
    path = parquet(tmp_path / "a.parquet", rows)
    together = Read(path)
    monkeypatch.setattr("monitor.files.tables.columns.Columns.usual", lambda *_: None)
    alone = Read(path)
    assert (together.events, together.faults, together.notes) == (alone.events, alone.faults, alone.notes)
    assert len(together.events) + len(together.faults) == len(rows)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "-"])
def test_an_array_of_objects_is_a_table(tmp_path, name):
    (tmp_path / name).write_text(json.dumps(ROWS, indent=1))
    assert Read(tmp_path / name).scores == SCORES
    nested = [{"meta": {"task": r["task"], "n": r["question_id"]}, **r, "x": [1]} for r in ROWS]
    (tmp_path / name).write_text(json.dumps(nested))
    assert Read(tmp_path / name, columns=["benchmark=meta.task,item_id=meta.n"]).scores == SCORES


def test_an_array_says_what_it_lacks_and_a_bad_row_costs_itself_only(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{k: v for k, v in r.items() if k != "model"} for r in ROWS]))
    assert "no column for model" in Read(path).faults[0][3]
    path.write_text(json.dumps([*ROWS, {**ROWS[0], "correct": "?"}, {"declare": 1}]))
    read = Read(path)
    assert read.scores == SCORES
    assert [fault[0] for fault in read.faults] == [len(ROWS) + 1, len(ROWS) + 2]


def test_an_array_that_is_no_result_is_passed_over_in_a_folder(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(ROWS))
    (tmp_path / "data.json").write_text(json.dumps([{"question": "?", "answer": "x" * 9_000}]))
    (tmp_path / "long.json").write_text(json.dumps([{"text": "x" * 9_000, **r, "model": "third"} for r in ROWS]))
    read = Read(tmp_path)
    assert {e.model for e in read.events} == {"one", "other", "third"}
    assert any("data.json is skipped" in note for note in read.notes)


TWICE = [
    ('{"benchmark":"b","item_id":"q%d","model":"m","score":1%s}', ',"score" :0', "score"),
    ('{"benchmark":"b","id":"q%d","model":"m","correct":1,"note":"\\":"%s}', ',"correct":0', "correct"),
    ('{"benchmark":"b","id":"q%d","run":{"model":"m"},"model":"m","correct":NaN%s}', ',"corr\\u0065ct":0', "correct"),
    ('{"benchmark":"b","item_id":"q%d","model_a":"m","model_b":"n","winner":"a"%s}', ',"winner":"b"', "winner"),
]


@pytest.mark.parametrize(
    ("limit", "rest", "found"),
    [
        ("MAX_OBJECTS", ",{}" * 60, "50 objects"),
        ("MAX_OBJECTS", ",[]" * 60, "50 objects"),
        ("MAX_VALUES", ",1" * 60, "50 values"),
    ],
)
def test_a_document_of_more_values_than_fit_the_memory_is_refused(tmp_path, monkeypatch, limit, rest, found):
    monkeypatch.setattr(documents, limit, 50)
    row = '{"benchmark":"b","item_id":"q","model":"m","score":1}'
    with gzip.open(tmp_path / "a.json.gz", "wt") as file:
        file.write(f"[{row}{rest}]")
    ((_, field, _, reason),) = Read(tmp_path / "a.json.gz").faults
    assert (field, reason) == ("file", f"the document has more than {found}; split it, or write events one a line")


@pytest.mark.parametrize(("row", "again", "field"), TWICE)
def test_an_object_of_an_array_that_has_a_field_twice_is_refused(tmp_path, row, again, field):
    rows = [row % (0, ',"other":1,"other":2'), row % (1, again), row % (2, "")]
    (tmp_path / "a.json").write_text(f"[{','.join(rows)}]")
    read = Read(tmp_path / "a.json")
    assert [(line, name, reason) for line, name, _, reason in read.faults] == [
        (2, field, f"{field} comes twice in one object; keep one of the two")
    ]
    assert [e.item_id for e in read.events] == ["q0", "q2"]


@pytest.mark.parametrize(
    ("more", "field"),
    [
        (',"r":{"deep":{"score":1,"score":0}}', "r.deep.score"),
        (',"r":{"deep":{"score":1},"deep":{"score":0}}', "r.deep"),
        (',"r":{"deep":{"score":1}},"r":{"deep":{"score":0}}', "r"),
        (',"r":{"deep":{"score":1,"sc\\u006fre":0}}', "r.deep.score"),
        (',"r":{"deep.score":1,"deep.score":0}', "r.deep.score"),
        (',"r":{"deep":{"score":1,"x":2,"x":{"y":1,"y":2}}},"other":{"score":1,"score":2}', None),
    ],
)
@pytest.mark.parametrize("form", ["a.jsonl", "a.json"])
def test_a_nested_field_that_comes_twice_is_refused_where_it_is_read(tmp_path, more, field, form):
    rows = [
        f'{{"benchmark":"b","item_id":"q{k}","model":"m"{text}}}'
        for k, text in enumerate((',"r":{"deep":{"score":1}}', more))
    ]
    (tmp_path / form).write_text("\n".join(rows) + "\n" if form == "a.jsonl" else f"[{','.join(rows)}]")
    read = Read(tmp_path / form, columns=["score=r.deep.score"])
    assert [name for _, name, *_ in read.faults] == ([] if field is None else [field])
    assert len(read.events) == (2 if field is None else 1)


def test_nested_fields_are_named_by_their_path_in_their_order_at_any_depth():
    record = {"a": {"b": 1, "c": {"d": 2}}, "a.b": 3, "e": {}, "f": 4}
    assert list(flatten(record).items()) == [("a.b", 3), ("a.c.d", 2), ("f", 4)]
    deep = value = {}
    for _ in range(5_000):
        value["x"] = value = {}
    value["y"] = 1
    assert list(flatten(deep)) == ["x." * 5_000 + "y"]


@pytest.mark.parametrize(("row", "again", "field"), TWICE)
def test_a_line_that_has_a_field_twice_is_refused_under_any_flag(tmp_path, row, again, field):
    scale = {} if field == "winner" else {"scale": ["1"]}
    path = tmp_path / "a.jsonl"
    path.write_text("".join(row % (k, more) + "\n" for k, more in enumerate(("", again, ""))))
    read = Read(path, **scale)
    assert [(line, name) for line, name, *_ in read.faults] == [(2, field)]
    assert [e.item_id for e in read.events] == ["q0", "q2"]

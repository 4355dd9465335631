"""What is said of files whose scores would be read wrongly: scales, blanks, refused files and lines, names that are alike."""

import json

import pytest

from tests.commands import rankwatch, report
from tests.unit.files.native_logs import inspect_json, inspect_sample
from tests.unit.files.tool_files import jsonl

FORMATS = ("csv", "jsonl", "parquet")


def rows(score, models=("new", "old"), items=40, item="q{}".format):
    """Events of models on items, with the score that a function of model and number gives."""
    return [
        {"benchmark": "quiz", "item_id": item(k), "model": model, "score": score(model, k)}
        for model in models
        for k in range(items)
    ]


def write(path, events):
    """Write events in the format of the file's name; NaN is written as each format has it."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    elif path.suffix == ".parquet":
        pa = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(pa.Table.from_pylist(events), path)
    else:
        names = list(events[0])
        cells = [[("" if row[name] is None else str(row[name])) for name in names] for row in events]
        path.write_text("\n".join(",".join(row) for row in [names, *cells]) + "\n")
    return path


def only(*arguments, **options):
    """The report of one benchmark, and what was printed on standard error."""
    found, notes = report(*arguments, **options)
    [benchmark] = found["benchmarks"]
    return benchmark, notes


# --- scales ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rare", [1, 5, 30])
def test_percent_scores_end_every_command_with_their_scale(tmp_path, form, rare):
    """However few answers are right, no score below 1 is reported as the whole."""
    right = lambda model, k: 100.0 if k < rare + (model == "old") else 0.0  # noqa: E731 - a table in one line
    path = write(tmp_path / f"r.{form}", rows(right))
    for command in (("report", path), ("gate", path, "--pair", "new", "old"), ("export", tmp_path / "site", path)):
        ended = rankwatch(*command, "--max-rejected", "1", code=1)
        assert ended.stdout == ""
        assert "add --scale 100" in ended.stderr
    benchmark, _ = only(path, "--scale", "100")
    assert {m["model"]: round(m["mean"] * 40) for m in benchmark["models"]} == {"old": rare + 1, "new": rare}


def test_grades_from_1_to_5_are_refused_with_that_scale(tmp_path):
    path = write(tmp_path / "r.csv", rows(lambda model, k: 1 + (k + (model == "new")) % 5))
    assert "add --scale 1:5" in rankwatch("report", path, code=1).stderr
    benchmark, _ = only(path, "--scale", "1:5")
    assert [m["mean"] for m in benchmark["models"]] == [0.5, 0.5]
    zeros = write(tmp_path / "z.csv", rows(lambda _, k: k % 6))
    assert "add --scale 5 " in rankwatch("report", zeros, code=1).stderr
    assert "add --scale 10 " in rankwatch("report", write(tmp_path / "t.csv", rows(lambda _, k: k % 11)), code=1).stderr


def test_one_benchmark_on_another_scale_is_named(tmp_path):
    events = rows(lambda *_: 1) + [{**row, "benchmark": "essay"} for row in rows(lambda _, k: 100 * (k % 2))]
    events += [{**row, "benchmark": "stars"} for row in rows(lambda _, k: 1 + k % 5)]
    ended = rankwatch("report", write(tmp_path / "r.jsonl", events), code=1)
    assert "--scale essay=100" in ended.stderr
    assert "--scale stars=1:5" in ended.stderr


def test_a_score_that_is_on_no_usual_scale_is_one_rejected_line(tmp_path):
    benchmark, notes = only(write(tmp_path / "r.csv", rows(lambda model, k: 1e25 if (model, k) == ("new", 3) else 1)))
    assert (benchmark["rejected"], benchmark["events"]) == (1, 79)
    assert "out of range" in notes


# --- blanks ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("blank", [float("nan"), None])
def test_blank_scores_are_counted_alike_in_every_format(tmp_path, form, blank):
    path = write(tmp_path / f"r.{form}", rows(lambda model, k: blank if model == "old" and k < 9 else float(k % 2)))
    benchmark, _ = only(path)
    assert (benchmark["items"], benchmark["events"], benchmark["rejected"]) == (40, 80, 0)
    assert (benchmark["skipped"], benchmark["skipped_by_model"]) == ({"blank": 9}, {"old": 9})
    for shape in ("table", "markdown", "html"):
        assert "9 skipped: blank" in rankwatch("report", path, "--format", shape).stdout


@pytest.mark.parametrize("text", ["", "NaN", "n/a", "null"])
def test_text_for_no_score_is_blank_in_json_lines_as_in_tables(tmp_path, text):
    events = rows(lambda _, k: text if k == 3 else 1)
    for form in ("csv", "jsonl"):
        benchmark, _ = only(write(tmp_path / f"r.{form}", events))
        assert (benchmark["skipped"], benchmark["rejected"]) == ({"blank": 2}, 0)


# --- lines and files that are not read ------------------------------------------------------------------------------------------------


def test_items_whose_lines_were_all_rejected_are_missing(tmp_path):
    """`new` leads by one item of 40, so that one more could undo it."""
    score = lambda model, k: "?" if k == 39 else int(k < 20 + (model == "new"))  # noqa: E731
    benchmark, _ = only(write(tmp_path / "r.csv", rows(score)))
    assert (benchmark["items"], benchmark["unread_items"]) == (39, 1)
    assert not benchmark["result"]["settled"]["yes"]
    assert "the items read, and 1 whose lines were rejected" in benchmark["assumption"]
    assert [m["coverage"] for m in benchmark["models"]] == [0.975, 0.975]
    text = rankwatch("report", tmp_path / "r.csv").stdout
    assert "1 item is missing for all models: every line of it was rejected" in text


def test_an_item_that_one_model_has_is_no_further_item(tmp_path):
    score = lambda model, k: "?" if (model, k) == ("new", 39) else int(k < 30 or model == "new")  # noqa: E731
    for form in ("csv", "jsonl"):
        benchmark, _ = only(write(tmp_path / f"r.{form}", rows(score)))
        assert (benchmark["items"], benchmark["unread_items"], benchmark["rejected"]) == (40, 0, 1)


def test_a_line_that_names_no_item_may_be_of_one_more(tmp_path):
    path = write(tmp_path / "r.jsonl", rows(lambda model, k: int(k < 20 + (model == "new"))))
    assert only(path)[0]["result"]["settled"]["yes"]
    path.write_text(path.read_text() + '{"benchmark": "quiz", "item_id\n')
    benchmark, _ = only(path)
    assert benchmark["unread_items"] == 1
    assert not benchmark["result"]["settled"]["yes"]


def bfcl(folder, model, category, total, *failed):
    path = folder / f"score/{model}/{category}_score.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"id": each, "model_name": model, "test_category": category, "valid": False} for each in failed]
    path.write_bytes(jsonl({"accuracy": 0.5, "correct_count": total - len(failed), "total_count": total}, *lines))


def test_a_benchmark_some_of_whose_files_were_refused_is_not_settled(tmp_path):
    bfcl(tmp_path, "a", "simple", 40, *(f"simple_{k}" for k in range(0)))
    bfcl(tmp_path, "b", "simple", 40, *(f"simple_{k}" for k in range(30)))
    bfcl(tmp_path, "a", "simple", 40, "simple_39")
    whole, _ = only(tmp_path)
    assert whole["result"]["settled"]["yes"]
    assert whole["result"]["decided"]["yes"]
    for model in "ab":
        bfcl(tmp_path, model, "odd", 9, "odd_77")
    benchmark, notes = only(tmp_path, code=1)
    assert not benchmark["result"]["settled"]["yes"]
    assert benchmark["result"]["decided"]["held"]
    assert {each["path"] for each in benchmark["refused"]} == {
        str(tmp_path / f"score/{model}/odd_score.json") for model in "ab"
    }
    assert all("so the items that passed are not known" in each["reason"] for each in benchmark["refused"])
    assert all(each["remedy"] for each in benchmark["refused"])
    assert "2 of 4 files, more than 10%" in notes
    for shape in ("table", "markdown", "html"):
        text = " ".join(rankwatch("report", tmp_path, "--format", shape, code=1).stdout.split())
        assert text.index("so what was read is not taken for the whole benchmark") < text.index("step to the next")
    ended = rankwatch("gate", tmp_path, "--pair", "a", "b", code=1)
    assert ended.stdout == ""
    assert "could not be read" in ended.stderr


def test_few_refused_files_hold_the_benchmark_and_no_exit_code(tmp_path):
    events = rows(lambda model, k: int(k % 4 > 0 or model == "new"), items=60)
    for part in range(12):
        write(tmp_path / f"{part}.jsonl", events[part::12])
    (tmp_path / "bad.jsonl").write_text("not JSON\n")
    benchmark, _ = only(tmp_path)
    assert [each["path"] for each in benchmark["refused"]] == [str(tmp_path / "bad.jsonl")]
    assert benchmark["result"]["decided"]["held"]
    ended = rankwatch("gate", tmp_path, "--pair", "new", "old", code=1)
    assert "bad.jsonl was refused" in ended.stderr
    assert only(tmp_path, "--items", "60")[0]["result"]["decided"]["yes"], "a declared count says what is missing"


def test_more_than_a_tenth_of_the_lines_is_an_error_unless_more_is_allowed(tmp_path):
    path = write(tmp_path / "r.csv", rows(lambda model, k: "?" if k < 5 and model == "new" else 1))
    assert only(path)[0]["rejected"] == 5
    path = write(tmp_path / "r.csv", rows(lambda model, k: "?" if k < 9 and model == "new" else 1))
    benchmark, notes = only(path, code=1)
    assert (benchmark["events"], benchmark["rejected"]) == (71, 9)
    assert "9 of 80 lines, more than 10%, could not be read" in notes
    assert only(path, "--max-rejected", "0.2")[0]["rejected"] == 9


# --- names ----------------------------------------------------------------------------------------------------------------------------

SPELLINGS = {
    "case": ("q{}".format, "Q{}".format),
    "surrounding space": ("q{}".format, "q{} ".format),
    "leading zeros": ("{:03}".format, "{}".format),
    "decimal point": ("{}".format, "{}.0".format),
    "Unicode form": ("caf\u00e9-{}".format, "cafe\u0301-{}".format),
}


@pytest.mark.parametrize("rule", SPELLINGS)
def test_models_whose_ids_never_meet_are_what_the_report_says_first(tmp_path, rule):
    first, second = SPELLINGS[rule]
    events = rows(lambda _, k: k % 2, ["new"], item=first) + rows(lambda _, k: k % 3 > 0, ["old"], item=second)
    path = write(tmp_path / "r.csv", events)
    benchmark, _ = only(path)
    [alike] = benchmark["alike"]
    shared = len({first(k) for k in range(40)} & {second(k) for k in range(40)})
    assert (alike["kind"], alike["groups"], alike["rules"]) == ("item", 40 - shared, [rule])
    assert alike["apart"] == {"model_a": "new", "model_b": "old", "shared": shared, "would_share": 40}
    assert benchmark["items"] == 80 - shared, "nothing is joined"
    for shape in ("table", "markdown", "html"):
        text = " ".join(rankwatch("report", path, "--format", shape).stdout.split())
        assert text.index("would share 40") < text.index("There is no pair" if not shared else "settled")
        assert text.index("would share 40") < text.index("rank", text.index("would share 40"))
    assert "would share 40" in rankwatch("report", path, "--format", "csv").stderr
    gate = json.loads(rankwatch("gate", path, "--pair", "new", "old", "--format", "json", code=3).stdout)
    assert "would share 40" in gate["notes"][0]


@pytest.mark.parametrize("rule", ["case", "surrounding space"])
def test_ids_that_are_alike_come_with_the_flag_that_joins_them(tmp_path, rule):
    first, second = SPELLINGS[rule]
    events = rows(lambda _, k: k % 4 > 0, ["new"], item=first) + rows(lambda _, k: k % 4 == 0, ["old"], item=second)
    path = write(tmp_path / "r.csv", events)
    assert "(--units FILE)" in " ".join(rankwatch("report", path).stdout.split())
    (tmp_path / "units.json").write_text(
        json.dumps({spelling(k): first(k) for k in range(40) for spelling in (first, second)})
    )
    joined, _ = only(path, "--units", tmp_path / "units.json")
    [pair] = joined["pairs"]
    assert (joined["alike"], pair["n"], pair["gap"]) == ([], 40, 0.5)
    assert "units" in {each["code"] for each in joined["assumptions"]}


@pytest.mark.parametrize(("new", "old"), [("GPT-4", "gpt-4"), ("gpt-4 ", "gpt-4")])
def test_model_names_that_are_alike_come_with_the_flag_that_joins_them(tmp_path, new, old):
    events = rows(lambda _, k: k % 2, ["gpt-4", "llama"])
    events = [{**row, "model": new} if row["model"] == old and int(row["item_id"][1:]) % 2 else row for row in events]
    path = write(tmp_path / "r.csv", events)
    benchmark, _ = only(path)
    assert [(each["kind"], each["names"]) for each in benchmark["alike"]] == [("model", [[old, new]])]
    assert len(benchmark["models"]) == 3
    assert f"{new}={old}" in rankwatch("report", path).stdout
    joined, _ = only(path, "--alias", f"{new}={old}")
    assert (joined["alike"], len(joined["models"])) == ([], 2)


def test_ids_that_every_model_has_apart_keep_no_models_apart(tmp_path):
    path = write(tmp_path / "r.csv", rows(lambda _, k: k % 2) + rows(lambda _, k: k % 3 > 0, item="Q{}".format))
    benchmark, _ = only(path)
    assert [(each["groups"], each["apart"]) for each in benchmark["alike"]] == [(40, None)]
    assert benchmark["result"]["settled"]["yes"]


# --- logs of other questions ----------------------------------------------------------------------------------------------------------


def inspect_log(path, model, ids, question, **more):
    samples = [inspect_sample(k, "C" if (k + len(model)) % 3 else "I") | {"input": question(k)} for k in ids]
    inspect_json(path, samples, model=model, **more)


@pytest.mark.parametrize("flags", [(), ("--benchmark", "b"), ("--items", "30")])
def test_an_id_that_is_another_question_in_each_log_gives_no_verdict(tmp_path, flags):
    inspect_log(tmp_path / "a.json", "m", range(30), lambda k: f"question {k}")
    inspect_log(tmp_path / "b.json", "other", range(30), lambda k: f"question {29 - k}")
    benchmark, _ = only(tmp_path, *flags)
    assert "differs from the one in" in benchmark["differing"]
    assert not benchmark["result"]["settled"]["yes"]
    assert benchmark["result"]["decided"]["held"]
    assert benchmark["differing"] in benchmark["result"]["decided"]["text"]
    assert {pair["status"] for pair in benchmark["pairs"]} <= {"held", "invalidated"}
    for shape in ("table", "markdown", "html"):
        text = rankwatch("report", tmp_path, *flags, "--format", shape).stdout
        assert "differs" in text
    if "--benchmark" not in flags:
        for more in ((), ("--margin", "0.5")):
            assert "differs" in rankwatch("gate", tmp_path, "--pair", "m", "other", *flags, *more, code=3).stdout


def test_runs_of_the_same_limit_on_other_items_are_held_with_the_cause(tmp_path):
    inspect_log(tmp_path / "a.json", "m", range(20), str, config={"limit": 20})
    inspect_log(tmp_path / "b.json", "other", range(10, 30), str, config={"limit": 20})
    benchmark, _ = only(tmp_path)
    assert "the logs have different items" in benchmark["result"]["decided"]["text"]
    assert not benchmark["result"]["settled"]["yes"]


def test_a_run_of_a_smaller_limit_has_items_of_the_larger_one(tmp_path):
    inspect_log(tmp_path / "a.json", "m", range(20), str, config={"limit": 20})
    inspect_log(tmp_path / "b.json", "other", range(30), str, config={"limit": 30})
    assert only(tmp_path)[0]["differing"] is None


def test_failed_results_are_counted_by_their_reason(tmp_path):
    samples = [inspect_sample(k, "C") for k in range(9)] + [inspect_sample(9, None, error="no")]
    inspect_json(tmp_path / "a.json", samples)
    inspect_json(tmp_path / "b.json", [inspect_sample(k, "CI"[k % 2]) for k in range(10)], model="other")
    assert only(tmp_path)[0]["skipped"] == {"error": 1}
    benchmark, _ = only(tmp_path, "--failed", "zero")
    assert benchmark["skipped"] == {}
    assert {m["model"]: m["mean"] for m in benchmark["models"]} == {"m": 0.9, "other": 0.5}


# --- what a message tells one to do ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("", "the file is empty; write one JSON object a line"),
        ("item_id,model,score\n", "no results; write one JSON object a line"),
        ("item_id,score,score,model\nq,1,0,m\n", "2 columns are called score; rename or remove all but one"),
        (",question,model,correct\n0,q,m,1\n", "name it with --columns item_id=question; `rankwatch map FILE` proposes a mapping"),
        ("item_id,new,old\nq,1,0\n", "if new, old are models, add --columns 'models=*'; else name the score with --columns score=COLUMN"),
        ("item_id,model,score\nq,m,100%\n", "`rankwatch map FILE` proposes how to read it"),
        ("item_id,model,score\nq,m,correct\n", "`rankwatch map FILE` proposes how to read it"),
        ('item_id,model,score\nq,m,"0,5"\n', "write decimals with a point"),
        ("item_id,model,score\nq,m,-1\n", "if scores go from -1 to 1, add 1 and halve them (for files: --scale=-1:1)"),
        ("item_id,model,score\nq\x01,m,1\n", "use a string of 1 to 200 printable characters"),
    ],
)  # fmt: skip
def test_a_table_that_is_not_read_names_what_to_do(tmp_path, text, remedy):
    path = tmp_path / "t.csv"
    path.write_text(text)
    ended = rankwatch("report", path, "--max-rejected", "0", code=1)
    assert ended.stdout == ""
    assert remedy in " ".join(ended.stderr.split())


@pytest.mark.parametrize("wide", [40, 80, 200])
def test_no_remedy_is_cut_off(tmp_path, wide):
    names = ",".join(f"a_column_of_a_long_name_{k}" for k in range(60))
    path = tmp_path / "t.csv"
    path.write_text(f"{names}\n{','.join('1' for _ in range(60))}\n")
    ended = rankwatch("report", path, code=1, COLUMNS=str(wide))
    remedy = "if every other column is a model, add --columns 'item_id=COLUMN,models=*'; else `rankwatch map FILE` proposes a mapping"
    assert " ".join(ended.stderr.split()).endswith(remedy)


def test_scores_from_minus_one_to_one_are_read_by_their_scale(tmp_path):
    path = write(tmp_path / "r.csv", rows(lambda model, k: 1.0 if k < 30 + (model == "new") else -1.0))
    benchmark, _ = only(path, "--scale=-1:1")
    assert {m["model"]: round(m["mean"] * 40) for m in benchmark["models"]} == {"new": 31, "old": 30}


def test_models_without_a_shared_item_are_no_tie(tmp_path):
    path = write(tmp_path / "r.csv", rows(lambda _, k: k % 2, item=lambda k: k) + [
        {**row, "model": "third", "item_id": 100 + row["item_id"]} for row in rows(lambda _, k: k % 2, ["x"], item=lambda k: k)
    ])  # fmt: skip
    text = rankwatch("report", path).stdout
    assert "open, no shared item" in text
    assert "needs N" not in text, "no step needs a number of items"


def test_numbered_models_on_few_items_are_shown_the_flag_for_swapped_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("item_id,model,score\n" + "".join(f"{m},q{k},1\n" for m in ("new", "old") for k in range(20)))
    said = "if the columns of items and models are swapped, read them with --columns item_id=MODEL_COLUMN,model=ITEM_COLUMN"
    assert said in " ".join(rankwatch("report", path).stdout.split())
    assert "columns of items and models are swapped" in rankwatch("report", path, "--format", "markdown").stdout
    assert "swapped" not in rankwatch("report", path, "--columns", "item_id=model,model=item_id").stdout

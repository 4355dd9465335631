"""Files of any shape, read by a mapping: next to the results, given by an option, and proposed from the file."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitor.files.formats.choices import ChoiceError
from monitor.files.importer import Importer
from monitor.files.maps.propose import harness_of, propose
from monitor.files.streams.paths import PathError
from monitor.files.streams.regular import Broken, Refusal
from tests.commands import rankwatch
from tests.unit.files.native_logs import Read
from tests.unit.files.result_lines import lines
from tests.unit.files.tool_files import SWE_BENCH_PRO, TOOLS

ROWS = [{"q": "1", "who": "a", "r": {"ok": True}}, {"q": "2", "who": "a", "r": {"ok": False}}]
BASE = 'item_id = "q"\nmodel = "who"\nscore = "r.ok"\nbenchmark = { value = "quiz" }\n'


def mapped(folder, content, *tables, name="results.json"):
    """Write a file and the mapping next to it, and read the folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    (folder / "rankwatch.toml").write_text("".join(f"[[map]]\n{table}\n" for table in tables))
    return Read(folder)


def keys(read):
    return {(e.item_id, e.model, e.score) for e in read.events}


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (ROWS, ""),
        (ROWS, 'records = "*"\n'),
        ({"data": {"rows": ROWS}}, 'records = "data.rows.*"\n'),
        ({"data": [{"rows": ROWS}]}, 'records = "data.0.rows.*"\n'),
        ({"a.b": ROWS}, 'records = ["a.b", "*"]\n'),
    ],
)
def test_records_are_found_at_their_path(tmp_path, content, records):
    read = mapped(tmp_path, content, records + BASE)
    assert keys(read) == {("1", "a", True), ("2", "a", False)}
    assert {e.benchmark for e in read.events} == {"quiz"}
    assert any("read by" in note for note in read.notes)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_json_lines_and_tables_begin_at_their_rows(tmp_path, name):
    rows = [{"q": "1", "who": "a", "ok": "yes"}, {"q": "2", "who": "a", "ok": "no"}]
    if name.endswith("jsonl"):
        content = lines(*rows)
    elif name.endswith("csv"):
        content = b"q,who,ok\n1,a,yes\n2,a,no\n"
    else:
        pytest.importorskip("pyarrow.parquet").write_table(
            pytest.importorskip("pyarrow").Table.from_pylist(rows), tmp_path / name
        )
        content = (tmp_path / name).read_bytes()
    read = mapped(tmp_path, content, BASE.replace("r.ok", "ok"), name=name)
    assert keys(read) == {("1", "a", True), ("2", "a", False)}


def test_names_of_fields_are_captured(tmp_path):
    table = 'records = "{model}.{item_id}.{repeat}"\nscore = "."\nscores = { pass = 1, fail = 0 }\nbenchmark = { value = "x" }'
    read = mapped(tmp_path, {"a": {"q1": ["pass", "fail"]}, "b": {"q1": ["fail"]}}, table)
    assert {(e.item_id, e.model, e.repeat, e.score) for e in read.events} == {
        ("q1", "a", 0, 1),
        ("q1", "a", 1, 0),
        ("q1", "b", 0, 0),
    }


def test_a_wide_table_takes_the_listed_columns_as_models(tmp_path):
    table = 'records = "{model}"\nmodels = ["a", "b"]\nitem_id = "../id"\nscore = "."\nscale = 100\nbenchmark = { value = "x" }'
    read = mapped(tmp_path, b"id,prompt,a,b\n1,?,100,50\n2,!,0,25\n", table, name="w.csv")
    assert keys(read) == {("1", "a", 1), ("1", "b", 0.5), ("2", "a", 0), ("2", "b", 0.25)}
    assert not read.rejects


def test_fields_that_are_read_or_not_named_are_no_records(tmp_path):
    base = 'records = "{item_id}"\nmodel = "../who"\nscore = "."\nbenchmark = { value = "x" }\n'
    content = [{"who": "a", "1": 1, "2": 0, "mean": 0.5}]
    assert keys(mapped(tmp_path, content, base)) == {("1", "a", 1), ("2", "a", 0), ("mean", "a", 0.5)}
    assert keys(mapped(tmp_path, content, base + 'only = ["1", "2"]')) == {("1", "a", 1), ("2", "a", 0)}
    dotted = base.replace('"../who"', '["..", "who.a"]')
    assert keys(mapped(tmp_path, [{"who.a": "m", "1": 1}], dotted)) == {("1", "m", 1)}


def test_the_model_comes_from_the_path_of_the_file(tmp_path):
    table = "item_id = \"q\"\nscore = \"r.ok\"\nmodel = { file = '([^/]+)/[^/]+$' }\nbenchmark = { file = '([^/.]+)[.]json$' }"
    read = mapped(tmp_path, ROWS, table, name="gpt-4/quiz.json")
    assert {(e.benchmark, e.model) for e in read.events} == {("quiz", "gpt-4")}


@pytest.mark.parametrize(
    ("extra", "scores"),
    [
        ("scale = 10", [0.2, 0.9, 1]),
        ("scale = 10\nlower_is_better = true", [0.8, 0.1, 0]),
        ("threshold = 5", [0, 1, 1]),
        ("threshold = 5\nlower_is_better = true", [1, 0, 0]),
    ],
)
def test_scales_directions_and_thresholds(tmp_path, extra, scores):
    rows = [{"q": str(k), "who": "a", "r": {"ok": value}} for k, value in enumerate((2, 9, "10"))]
    assert [e.score for e in mapped(tmp_path, rows, BASE + extra).events] == pytest.approx(scores)


def test_a_score_out_of_range_names_the_remedy(tmp_path):
    read = mapped(tmp_path, [{"q": "1", "who": "a", "r": {"ok": 7}}, {"q": "2", "who": "a", "r": {"ok": 1}}], BASE)
    assert [e.item_id for e in read.events] == ["2"]
    [(_, field, found, reason)] = read.faults
    assert (field, found) == ("score", "7")
    assert "--scale" in reason


FAILURES = """
item_id = "id"
model = { file = '([^/]+)/[^/]+$' }
score = { value = 0 }
items = "items.txt"
others = 1
benchmark = { value = "x" }
"""


def test_a_list_of_failures_with_all_items(tmp_path):
    (tmp_path / "items.txt").write_text("1\n2\n3\n\n2\n")
    table = FAILURES
    read = mapped(tmp_path, [{"id": 2}], table, name="m/failed.json")
    assert keys(read) == {("1", "m", 1), ("2", "m", 0), ("3", "m", 1)}
    assert any("1 items have a record; the other 2 of" in note for note in read.notes)
    assert keys(mapped(tmp_path, [], table, name="m/failed.json")) == {("1", "m", 1), ("2", "m", 1), ("3", "m", 1)}
    read = mapped(tmp_path, [{"id": 9}], table, name="m/failed.json")
    assert "9 is not in" in read.faults[0][3]
    (tmp_path / "items.txt").unlink()
    assert "items.txt" in mapped(tmp_path, [{"id": 2}], table, name="m/failed.json").faults[0][3]


def test_several_tables_read_one_file(tmp_path):
    tables = [
        f'records = "{name}.*"\nitem_id = "."\nmodel = {{ value = "m" }}\nscore = {{ value = {score} }}\nbenchmark = {{ value = "x" }}'
        for name, score in (("good", 1), ("bad", 0))
    ]
    assert keys(mapped(tmp_path, {"good": ["1"], "bad": ["2"]}, *tables)) == {("1", "m", 1), ("2", "m", 0)}


def test_a_mapping_comes_before_a_known_format_and_reads_only_its_files(tmp_path):
    SWE_BENCH_PRO.write(tmp_path)
    table = 'files = "eval_*.json"\nrecords = "{item_id}"\nscore = "."\nmodel = { value = "m" }\nbenchmark = { value = "x" }'
    (tmp_path / "rankwatch.toml").write_text(f"[[map]]\n{table}\n")
    assert {(e.benchmark, e.model) for e in Read(tmp_path).events} == {("x", "m")}
    (tmp_path / "rankwatch.toml").write_text(f"[[map]]\n{table.replace('eval_', 'other_')}\n")
    assert {e.benchmark for e in Read(tmp_path).events} == {"swe-bench-pro"}


def test_a_mapping_that_is_given_comes_first(tmp_path):
    folder = tmp_path / "runs"
    mapped(folder, ROWS, BASE)
    other = tmp_path / "other.toml"
    other.write_text("[[map]]\n" + BASE.replace('"quiz"', '"other"'))
    assert {e.benchmark for e in Read(folder, map=str(other)).events} == {"other"}
    assert {(e.benchmark, e.model) for e in Read(f"mine={folder}", benchmark="own").events} == {("own", "mine")}


def test_a_record_without_a_field_names_the_mapping(tmp_path):
    read = mapped(tmp_path, [{"who": "a", "r": {"ok": 1}}, *ROWS], BASE)
    assert len(read.events) == 2
    [(line, field, _, reason)] = read.faults
    assert (line, field) == (1, "item_id")
    assert "there is no text or whole number at q; correct item_id in" in reason
    assert "rankwatch.toml: [[map]] 1" in reason


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[map]\n", "not valid TOML"),
        ("map = 3\n", "write [[map]]"),
        ("[[map]]\nscroe = 'x'\n", "unknown key 'scroe'; use"),
        ("[[map]]\nmodel = 'm'\nscore = 's'\n", "item_id is missing"),
        ("[[map]]\nrecords = '{who}.*'\n" + BASE, "{who} is no field of an event"),
        ("[[map]]\nmodel = { file = '(' }\nitem_id = 'q'\nscore = 's'\n", "the regular expression is not valid"),
        ("[[map]]\nmodel = { file = 'x' }\nitem_id = 'q'\nscore = 's'\n", "needs a group"),
        ("[[map]]\nscale = 0\n" + BASE, "scale: use the largest score"),
        ("[[map]]\nthreshold = nan\n" + BASE, "threshold: use a number"),
        ("[[map]]\nscores = { pass = 7 }\n" + BASE, "scores: use words"),
        ("[[map]]\nothers = 1\n" + BASE, "use both or none"),
        ("[[map]]\nlower_is_better = 1\n" + BASE, "use true or false"),
        ("[[map]]\nfiles = 1\n" + BASE, "files: use a pattern"),
        ("[[map]]\nmodels = 'a'\n" + BASE, "models: use a list"),
        ("[[map]]\nrecords = 4\n" + BASE, "records: use a path"),
        ("[[map]]\nonly = 'a'\n" + BASE, "only: use a list"),
    ],
)
def test_a_mapping_that_is_not_valid_ends_the_command_with_the_reason(tmp_path, text, words):
    (tmp_path / "results.json").write_text(json.dumps(ROWS))
    file = tmp_path / "rankwatch.toml"
    file.write_text(text)
    with pytest.raises(PathError, match=r"rankwatch\.toml") as beside:
        Importer().find([tmp_path])
    with pytest.raises(ChoiceError) as given_file:
        Read(tmp_path, map=str(file))
    assert words in str(beside.value)
    assert words in str(given_file.value)


SHAPES = {
    "list": (ROWS, {("1", "a", 1), ("2", "a", 0)}),
    "nested": (
        {"gpt": {"q1": 1, "q2": 0}, "b": {"q1": 0.5, "q2": True}},
        {("q1", "gpt", 1), ("q2", "gpt", 0), ("q1", "b", 0.5), ("q2", "b", 1)}),
    "flat": ({"q1": True, "q2": False}, {("q1", "acme", 1), ("q2", "acme", 0)}),
    "deep": (
        {"meta": {"n": 2}, "runs": {"rows": [{"id": 7, "model": "m", "score": 85}, {"id": 8, "model": "m", "score": 40}]}},
        {("7", "m", 0.85), ("8", "m", 0.4)}),
    "by id": ({"q1": {"model": "m", "result": "pass"}, "q2": {"model": "m", "result": "fail"}}, {("q1", "m", 1), ("q2", "m", 0)}),
    "groups": (
        [{"question_id": 1, "sample_id": f"s{k}", "model": "m", "Pass@1": 50 * k} for k in range(3)],
        {("s0", "m", 0), ("s1", "m", 0.5), ("s2", "m", 1)},
    ),
    "wide": ([{"id": 1, "a": 1, "b": 0}, {"id": 2, "a": 0, "b": 1}], {("1", "a", 1), ("1", "b", 0), ("2", "a", 0), ("2", "b", 1)}),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["x.json", "x.jsonl"])
def test_a_proposed_mapping_reads_the_file(tmp_path, shape, name):
    content, expected = SHAPES[shape]
    if shape == "list":
        content = [{"qid": row["q"], "system": row["who"], **row} for row in ROWS]
    if name == "x.jsonl" and not isinstance(content, list):
        pytest.skip("a document is not a record a line")
    path = tmp_path / "acme" / name
    path.parent.mkdir()
    path.write_bytes(lines(*content) if name == "x.jsonl" else json.dumps(content).encode())
    (path.parent / "rankwatch.toml").write_text(propose(path).text)
    read = Read(path)
    assert read.rejects == []
    assert keys(read) == expected


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": 1}', "[1, 2]", '[{"a": "b"}]', "null", "[[[[[[[1]]]]]]]"])
def test_a_file_without_records_gets_no_proposal(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(Refusal, match="write the mapping by hand"):
        propose(path)


def cells(*rows, **fields):
    return [{"qid": f"q{k}", "llm": "m", **row, **fields} for k, row in enumerate(rows)]


ODD = {
    "a number as text": (cells({"points": "0.5"}, {"points": "1"}), [0.5, 1.0], 'score = "points"'),
    "a percentage": (cells({"grade": "85%"}, {"grade": "100 %"}), [0.85, 1.0], 'score = "grade"'),
    "of a hundred": (cells({"grade": 80}, {"grade": 20}), [0.8, 0.2], "scale = 100"),
    "verdicts as words": (cells({"passed": "PASS"}, {"passed": "FAIL"}), [1.0, 0.0], '"FAIL" = 0'),
    "less is better": (cells({"error_rate": 0.25}, {"error_rate": 0}), [0.75, 1.0], "lower_is_better = true"),
    "one row": (cells({"grade": 1}), [1.0], 'score = "grade"'),
    "what is no score": (cells({"latency_ms": 3, "tokens": 2, "grade": 0.5}), [0.5], 'score = "grade"'),
    "other languages": (
        [{"frage_nr": k, "modèle": "ä", "ergebnis_日": k} for k in (0, 1)],
        [0.0, 1.0],
        'item_id = "frage_nr"',
    ),
    "a number of the repeat": (
        cells({"qid": "q", "trial": 4, "passed": 1}, {"qid": "q", "trial": 5, "passed": 0}),
        [1, 0],
        'repeat = "trial"',
    ),
    "characters that change a terminal": (
        [{"qid": "q", "llm": "m", "a\x1b[31m\u202e": 1}],
        [1.0],
        "\\u001b[31m\\u202e",
    ),
    "models above the records": (
        {"runs": [{"system": {"name": name}, "answers": [{"q": {"id": 1}, "ok": True}]} for name in "ab"]},
        [True, True],
        'model = "../../system.name"',
    ),
    "deep": ({"a": {"b": {"c": {"d": {"e": cells({"val": 1}, {"val": 0})}}}}}, [1.0, 0.0], 'records = "a.b.c.d.e.*"'),
}


@pytest.mark.parametrize("shape", ODD)
def test_odd_files_get_a_mapping_that_reads_them(tmp_path, shape):
    content, scores, words = ODD[shape]
    path = tmp_path / "acme" / "scores.json"
    path.parent.mkdir()
    path.write_text(json.dumps(content))
    proposal = propose(path)
    assert words in proposal.text
    (path.parent / "rankwatch.toml").write_text(proposal.text)
    read = Read(path.parent)
    assert read.rejects == []
    assert [event.score for event in read.events] == scores
    assert len({(e.model, e.item_id, e.repeat) for e in read.events}) == len(scores), "no record hides another"


SCORED = {"a": {"q1": 1, "q2": 0, "q3": 1}, "b": {"q1": 0, "q2": 0, "q3": 1}}
LONG = [(model, item, score) for model, scores in SCORED.items() for item, score in scores.items()]
WIDE = {item: {model: scores[item] for model, scores in SCORED.items()} for item in SCORED["a"]}


def table(header, rows):
    return "\n".join([header, *rows]) + "\n"


CROSSED = {
    "names that hint": [{"sys": m, "prompt": q, "score": s} for m, q, s in LONG],
    "a number of each row": [{"row_idx": k, "row": {"question": q, "model": m, "correct": s == 1}} for k, (m, q, s) in enumerate(LONG)],
    "no names": table("a1,b1,c1", [f"{q},{m},{s}" for m, q, s in LONG]),
    "a category of the items": table("topic,prompt,bot,grade", [f"{'law' if q == 'q1' else 'art'},{q},{m},{s}" for m, q, s in LONG]),
    "times and prices": table("when,latency,llm,prompt_nr,ok,cost", [f"2026-01-01,0.3,{m},{q},{s},3" for m, q, s in LONG]),
    "a heading with the scale": table("Question ID;Model Name;Score (0-20);Notes", [f"{q};{m};{s * 20};fine" for m, q, s in LONG]),
    "rows next to their header": {"columns": ["model", "question", "score"], "data": [[m, q, s] for m, q, s in LONG]},
    "rows by their number": {str(k): {"model": m, "question": q, "score": s} for k, (m, q, s) in enumerate(LONG)},
    "runs by name": {
        "runs": {f"r{m}": {"model": m, "results": [{"id": q, "score": s} for q, s in scores.items()]} for m, scores in SCORED.items()}
    },
    "lists by model": {m: [{"id": q, "score": s} for q, s in scores.items()] for m, scores in SCORED.items()},
    "models in an object": [{"id": q, "scores": scores} for q, scores in WIDE.items()],
    "items with their models": {"results": WIDE},
    "answers in an item": [{"question": q, "answers": {m: {"correct": s == 1} for m, s in scores.items()}} for q, scores in WIDE.items()],
    "one item an object": [{q: scores} for q, scores in WIDE.items()],
    "models as rows": table("model,year,q1,q2,q3", [",".join(map(str, (m, 2026, *scores.values()))) for m, scores in SCORED.items()]),
    "columns with a mean": table("question,a,b,avg", [f"{q},{x['a']},{x['b']},{(x['a'] + x['b']) / 2}" for q, x in WIDE.items()]),
    "flags of what is wrong": [{"item": q, "model": m, "is_wrong": s == 0} for m, q, s in LONG],
    "dots in names": [{"Question no.": q, "a": each["a"], "b": each["b"]} for q, each in WIDE.items()],
}  # fmt: skip
"""One result for each model and item, in shapes in which the values say more than the names."""


@pytest.mark.parametrize("shape", CROSSED)
def test_a_proposal_follows_how_models_and_items_are_crossed(tmp_path, shape):
    content = CROSSED[shape]
    path = tmp_path / "acme" / ("x.csv" if isinstance(content, str) else "x.json")
    path.parent.mkdir()
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    (path.parent / "rankwatch.toml").write_text(propose(path).text)
    read = Read(path)
    assert read.rejects == []
    assert keys(read) == {(item, model, score) for model, item, score in LONG}
    assert len(read.events) == len(LONG)
    assert {e.benchmark for e in read.events} == {"x"}


UNCERTAIN = {
    "two judges": ([{"item": q, "model": m, "judge": j, "score": s} for m, q, s in LONG for j in "xy"], "differ in judge (x, y)"),
    "words without a score": ([{"item": q, "model": m, "score": "partly"} for m, q, s in LONG], "partly: no score is known"),
    "scores below 0": ([{"item": q, "model": m, "score": -s} for m, q, s in LONG], "correct both ends if a score can be another"),
    "two scores": ([{"item": q, "model": m, "strict": s, "loose": 1} for m, q, s in LONG], "loose may be it too"),
    "totals": ([{"model": m, "mmlu": 0.5, "gsm8k": 0.7} for m in "ab"], "each model has one record"),
    "a row of totals": ([{"id": q, "a": 1, "b": 0} for q in ("1", "Total")], "Total may be a total"),
    "a mean next to models": ([{"id": q, "a": 1, "b": 0, "avg": 0.5} for q in "xy"], "avg: not read"),
    "no common item": ([{"id": k, "model": m, "score": 1} for k, m in enumerate("ab")], "no two models share an item"),
    "as many models as items": ({"x": {"y": 1, "z": 0}, "w": {"y": 1, "z": 1}}, "may be the other way round"),
    "repeats in columns": ([{"id": q, "model": "a", "run1": 1, "run2": 0} for q in "xy"], "run2 may be it too"),
    "a scale that is not reached": ([{"id": q, "model": "a", "score": 3} for q in "xy"], "correct it if a score can be another"),
}  # fmt: skip


@pytest.mark.parametrize("shape", UNCERTAIN)
def test_a_proposal_reports_what_it_cannot_know(tmp_path, shape):
    content, words = UNCERTAIN[shape]
    path = tmp_path / "x.json"
    path.write_text(json.dumps(content))
    assert words in "\n".join(propose(path).guesses)


def test_lists_of_ids_by_verdict_get_a_table_each(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"model": "a", "passed": ["q1", "q3"], "failed_ids": ["q2"], "total": 3}))
    (tmp_path / "rankwatch.toml").write_text(propose(path).text)
    assert keys(Read(path)) == {("q1", "a", 1), ("q2", "a", 0), ("q3", "a", 1)}
    path.write_text(json.dumps({"model": "a", "failed": ["q2"]}))
    with pytest.raises(Refusal, match=r"lists items of one verdict.*others = 1"):
        propose(path)
    path.write_text(json.dumps({"question_id": [1, 2], "model": ["a", "b"], "score": [1, 0]}))
    with pytest.raises(Refusal, match="a list for each column"):
        propose(path)


def test_files_that_need_no_mapping_are_named(tmp_path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"question_id": 1, "model_a": "a", "model_b": "b", "winner": "model_a"}]))
    with pytest.raises(Refusal, match="read without a mapping"):
        propose(path)
    path.write_text(json.dumps({"mteb_version": "1", "scores": {}}))
    with pytest.raises(Refusal, match="MTEB writes one score a task"):
        propose(path)
    path.write_text(json.dumps({f"{['score', 'time', 'law'][min(k, 2)]}_{k}": k % 2 == 0 for k in range(100)}))
    (tmp_path / "rankwatch.toml").write_text(propose(path).text)
    assert len(Read(path).events) == 100
    path = tmp_path / "summary.csv"
    path.write_text("dataset,version,metric,mode,a,b\nquiz,122160,accuracy,gen,87.50,62.50\n")
    with pytest.raises(Refusal, match="one score a dataset"):
        propose(path)
    assert "one score a dataset" in Read(path).rejects[0]["reason"]


def test_results_of_a_harness_need_no_mapping(tmp_path):
    unknown = [name for name, made in TOOLS.items() if harness_of(made.write(tmp_path / name)) is None]
    assert unknown == []
    path = TOOLS["MLFLOW"].write(tmp_path / "shown")
    answer = rankwatch("map", path)
    assert "needs no mapping: it is read as results of MLflow" in answer.stderr
    assert answer.stdout.count('"item_id"') == len(Read(path).events) > 0
    assert not (path.parent / "rankwatch.toml").exists()


def test_logs_of_inspect_and_lm_eval_and_details_of_lighteval_need_no_mapping(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, content, harness in [
        ("log.json", b'{"version": 2, "status": "success", "eval": {}}', "Inspect"),
        ("samples.jsonl", b'{"doc_id": 1, "doc": {}, "target": "x", "acc": 1}\n', "lm-evaluation-harness"),
        ("other.json", b'{"rows": [{"qid": 1, "system": "a", "score": 1}]}', None),
        ("table.csv", b"item_id,model,score\n1,a,1\n", None),
    ]:
        (tmp_path / name).write_bytes(content)
        assert harness_of(tmp_path / name) == harness
    rows = [{"doc": {"id": "1"}, "metric": {"acc": 1}, "model_response": {"text": ["x"]}}]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "details.parquet")
    assert harness_of(tmp_path / "details.parquet") == "lighteval"


def test_a_model_without_a_field_is_what_differs_between_files(tmp_path):
    for model in ("gpt-4", "llama"):
        for name in ("quiz.json", f"sums_{model}.csv"):
            path = tmp_path / model / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(ROWS) if name.endswith("json") else "item,score\n1,1\n2,0\n")
    assert "(.+)" not in propose(tmp_path / "gpt-4/quiz.json").text
    assert "the model is the folder of the file, gpt-4" in propose(tmp_path / "gpt-4/sums_gpt-4.csv").guesses
    (tmp_path / "llama/sums_llama.csv").rename(tmp_path / "gpt-4/sums_llama.csv")
    (tmp_path / "gpt-4/rankwatch.toml").write_text(propose(tmp_path / "gpt-4/sums_gpt-4.csv").text)
    read = Read(tmp_path / "gpt-4/sums_gpt-4.csv", tmp_path / "gpt-4/sums_llama.csv")
    assert {(e.model, e.benchmark) for e in read.events} == {("gpt-4", "gpt-4"), ("llama", "gpt-4")}


def test_a_proposal_is_for_its_file_and_those_of_its_shape(tmp_path):
    (tmp_path / "known.csv").write_text("benchmark,item_id,model,score\nknown,1,a,1\nknown,1,b,0\n")
    odd = tmp_path / "odd[1].csv"
    odd.write_text("llm,qid,grade\na,1,1\nb,1,0\n")
    (tmp_path / "rankwatch.toml").write_text(propose(odd).text)
    read = Read(tmp_path)
    assert {(e.benchmark, e.model) for e in read.events} == {
        (name, model) for name in ("known", "odd[1]") for model in "ab"
    }
    for part in (1, 2):
        (tmp_path / f"part-{part}.csv").write_text(f"llm,qid,grade\na,{part},1\nb,{part},0\n")
    odd.unlink()
    assert 'files = "part-*.csv"' in propose(tmp_path / "part-1.csv").text


def test_a_proposal_reports_records_that_hide_each_other_and_other_scores(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(json.dumps(cells({"grade": 1, "style": 2}, {"grade": 0, "style": 1}, qid="q")))
    text = "\n".join(propose(path).guesses)
    assert "style may be it too" in text
    path.write_text(json.dumps([{"qid": "q", "llm": "m", "passed": k} for k in (True, False)]))
    assert "several records of one model and item" in "\n".join(propose(path).guesses)


def test_columns_of_one_name_and_records_without_a_score_are_reported(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("id,score,score\n1,0,1\n")
    with pytest.raises(Refusal, match="2 columns are called score"):
        propose(path)
    path.write_text("id,score\n1,1\n2,\n")
    (tmp_path / "rankwatch.toml").write_text(propose(path).text)
    read = Read(path)
    assert [(e.item_id, e.score) for e in read.events] == [("1", 1), ("2", None)]
    assert "records without a value at score are not scored" in "".join(read.notes)
    (tmp_path / "rankwatch.toml").write_text(propose(path).text.replace('score = "score"', 'score = "points"'))
    assert "records without a value at points are not scored" in "".join(Read(path).notes)


def test_any_json_gets_a_proposal_that_parses_or_a_reason(tmp_path):
    path = tmp_path / "x.json"
    mapping = tmp_path / "rankwatch.toml"
    json_values = st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=4) | st.integers(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["id", "score", "model", 'a"b', "c.d", "\x1b"]), inner, max_size=3)
        ),
        max_leaves=12,
    )

    @settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(json_values)
    def run(value):
        path.write_text(json.dumps(value))
        mapping.unlink(missing_ok=True)
        try:
            mapping.write_text(propose(path).text)
        except (Refusal, Broken):
            return
        read = Read(path)
        assert all(e.score is None or 0 <= e.score <= 1 for e in read.events)

    run()


def test_the_command_proposes_shows_and_writes(tmp_path):
    path = tmp_path / "acme" / "scores.json"
    path.parent.mkdir()
    path.write_text(json.dumps([{"qid": k, "system": "s", "correct": k % 2 == 0} for k in range(12)]))
    first = rankwatch("map", path)
    assert first.returncode == 0
    assert 'item_id = "qid"' in first.stdout
    assert first.stdout.count('"model":"s"') == 10
    assert "12 events, the first 10 above; rejected: 0" in first.stderr
    assert "guessed: the benchmark is called scores, like the file" in first.stderr
    again = rankwatch("map", path)
    assert "is used unchanged" in again.stderr
    assert (path.parent / "rankwatch.toml").read_text().count("[[map]]") == 1
    read = Read(path.parent)
    assert (len(read.events), read.rejects) == (12, [])


def test_the_command_reports_what_it_cannot_read(tmp_path):
    path = tmp_path / "x.json"
    path.write_text("[1")
    answer = rankwatch("map", path, code=1)
    assert "cut off or damaged; give JSON, JSON lines (.jsonl), CSV or Parquet" in answer.stderr
    assert not (tmp_path / "rankwatch.toml").exists()


@pytest.mark.parametrize("names", [("gpt-4.1", "gpt-4.5", "llama-3.1-8b"), ("gpt-4.1", "gpt-4.5")])
def test_only_the_known_extension_of_a_file_is_no_part_of_its_model(tmp_path, names):
    folder = tmp_path / "runs"
    folder.mkdir()
    for k, name in enumerate(names):
        rows = [{"question_id": f"q{q}", "is_correct": q % (k + 2) == 0} for q in range(12)]
        (folder / f"{name}_eval.jsonl").write_bytes(lines(*rows))
    first = folder / f"{names[0]}_eval.jsonl"
    (folder / "rankwatch.toml").write_text(propose(first).text)
    models = {e.model for e in Read(folder).events}
    assert len(models) == len(names)
    assert models == ({*names} if len(names) == 3 else {"4.1", "4.5"})

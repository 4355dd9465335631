"""Shapes of results that people publish: what is proposed for them, and what is asked instead."""

import json

import pytest

from monitor.files.formats.choices import ChoiceError
from monitor.files.maps.propose import propose
from monitor.files.maps.table import FileMap
from monitor.files.streams.regular import Refusal
from tests.unit.files.native_logs import Read


def mapped(folder, content, name="run.json"):
    path = folder / name
    path.write_text(json.dumps(content))
    proposal = propose(path)
    (folder / "rankwatch.toml").write_text(proposal.text)
    return Read(path), "\n".join(proposal.guesses)


def test_scores_below_0_get_a_range_and_numbered_names_are_items(tmp_path):
    scores = {str(k): {"first_pass_score": -4.5 + k, "answers": {"hope": 3}} for k in range(12)}
    read, guesses = mapped(tmp_path, {"engine": "ooba", "index": "a--b", "raw": {"individual_scores": scores}})
    assert 'scale = "-10:10": scores go from -4.5 to 6.5; correct both ends if a score can be another' in guesses
    assert {event.item_id: event.score for event in read.events}["0"] == (10 - 4.5) / 20
    assert len({event.item_id for event in read.events}) == 12
    assert read.rejects == []


@pytest.mark.parametrize("scale", ['"10:-10"', '"a:b"', '"1:inf"', "0", "-3", "true", '""'])
def test_a_range_that_is_none_is_refused(scale):
    table = {"files": "*", "item_id": "i", "model": "m", "score": "s", "scale": json.loads(scale)}
    with pytest.raises(ChoiceError, match='scale: use the largest score, above 0, or both ends as in "-10:10"'):
        FileMap.parse(table, "x", None)


def test_answers_and_their_keys_are_no_scores(tmp_path):
    remedy = "predicted_label, true_label are answers and their keys, and no scores; add a column that is 1 where they are equal, else 0"
    rows = [{"sample_id": f"s{k}", "predicted_label": k % 2, "true_label": 1, "confidence": None} for k in range(9)]
    with pytest.raises(Refusal, match=remedy):
        mapped(tmp_path, {"config": {"model_name": "m"}, "predictions": rows})
    (tmp_path / "t.csv").write_text("sample_id,predicted_label,true_label,text\ns1,0,1,x\ns2,1,1,y\n")
    assert Read(tmp_path / "t.csv").rejects[0]["reason"].endswith(remedy)


def test_lines_with_a_model_and_fields_of_other_names_are_rows_whose_columns_can_be_named(tmp_path):
    path = tmp_path / "llm.jsonl"
    rows = [{"riddle_id": f"r{k}", "model": "ab"[k % 2], "is_answer_correct": k % 3 > 0, "notes": ""} for k in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    reason = Read(path).rejects[0]["reason"]
    assert reason.startswith(
        "no column for item_id and score in riddle_id, model, is_answer_correct, notes; name them with"
    )
    read = Read(path, columns=["item_id=riddle_id,score=is_answer_correct"])
    assert (len(read.events), read.rejects) == (9, [])


TOTALS = [
    {"dirname": f"run{k}", "test_cases": 30 + k, "model": "m", "pass_rate_1": 8.8 + k, "syntax_errors": k}
    for k in range(4)
]


def test_records_that_count_items_are_totals(tmp_path):
    with pytest.raises(Refusal, match=r"its records sum up items \(test_cases\), and a total is no score of an item"):
        mapped(tmp_path, TOTALS)
    each = [{"task_id": f"q{k}", "num_samples": 10 + k, "pass@1": 0.5} for k in range(4)]
    assert len(mapped(tmp_path, each)[0].events) == 4, "samples of one item"


def test_the_records_next_to_a_summary_are_read_and_not_the_summary(tmp_path):
    models = {
        f"m{k}": {
            "summary": {"player_id": f"m{k}", "legal_pct": 50.0, "best_pct": k, "legal": 2, "best": 1},
            "results": [{"position_idx": i, "is_best": i % 2 == 0, "cpl": 1_200 + i} for i in range(3)],
        }
        for k in range(5)
    }
    read, _ = mapped(tmp_path, models)
    assert {(event.item_id, event.model) for event in read.events} == {
        (str(i), f"m{k}") for i in range(3) for k in range(5)
    }
    with pytest.raises(Refusal):
        mapped(tmp_path, {"model": "m", "metrics": {"pearson": 0.5, "kendall": 0.25, "spread": 0.75}})


def table(folder, text, name="t.csv"):
    (folder / name).write_text(text)
    proposal = propose(folder / name)
    return proposal.text, "\n".join(proposal.guesses)


def test_fractions_are_no_ids_and_a_kind_of_record_is_no_item(tmp_path):
    rows = "".join(f"m,{-100.5 - k},{-90.25 - k},{k % 2}\n" for k in range(9))
    with pytest.raises(Refusal, match="no list or object in the file has records with an item"):
        table(tmp_path, f"model,pll_a,pll_b,prefers_a\n{rows}")
    rows = "".join(f"o{k},{k % 5},{('cot', 'act')[k % 2]}\n" for k in range(20))
    with pytest.raises(Refusal, match="no list or object in the file has records with an item"):
        table(tmp_path, f"output,score,inference_type\n{rows}")


def test_a_setting_is_the_model_where_no_field_names_one(tmp_path):
    rows = "".join(f"{q},{style},{(q + k) % 5 + 1}\n" for q in range(6) for k, style in enumerate(("plain", "rushed")))
    text, guesses = table(tmp_path, f"question_id,style,judge_accuracy\n{rows}")
    assert 'model = "style"' in text
    assert "model = style (plain, rushed)" in guesses
    text, guesses = table(tmp_path, f"question_id,judge,judge_accuracy\n{rows}")
    assert "model = { file" in text
    assert "differ in judge" in guesses


def test_turns_are_repeats_and_confidence_is_no_score(tmp_path):
    rows = "".join(f"q{q},m{m},{turn},7,8\n" for q in range(3) for m in range(2) for turn in (1, 2))
    text, _ = table(tmp_path, f"question_id,model,turn,GPT-4-Turbo,GPT-4o\n{rows}")
    assert 'repeat = "turn"' in text
    assert 'score = "GPT-4-Turbo"' in text
    with pytest.raises(Refusal):
        table(tmp_path, "question_id,provider,confidence\nq1,a,0.5\nq1,b,0.75\nq2,a,0.5\n")


def test_a_task_of_one_item_each_is_no_benchmark_and_a_call_that_worked_no_score(tmp_path):
    rows = [
        {"case_id": f"{task}__0", "task": task, "candidate": model, "recall": k % 5, "success": True, "error": None}
        for k, (task, model) in enumerate((task, model) for task in "abc" for model in ("m1", "m2"))
    ]
    read, _ = mapped(tmp_path, rows)
    assert {event.benchmark for event in read.events} == {"run"}
    assert {event.score for event in read.events} == {0, 0.2, 0.4, 0.6, 0.8}


def test_a_proposal_names_the_files_of_its_shape_and_no_others(tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps([{"id": "q1", "score": 1}, {"id": "q2", "score": 0}]))
    assert 'files = "*.json"' in propose(tmp_path / "a.json").text
    (tmp_path / "other.json").write_text('{"config": {}}')
    text = propose(tmp_path / "a.json").text
    assert 'files = "a.json"' in text
    assert 'files = "b.json"' in text
    assert "*.json" not in text


def test_samples_of_human_eval_are_repeats_and_the_file_is_the_model(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("codegemma_7b_samples.jsonl_results.jsonl", "llama.jsonl_results.jsonl"):
        rows = [
            {"task_id": f"HumanEval/{q}", "completion": "x", "result": "passed", "passed": (q + n) % 2 == 0}
            for q in range(3)
            for n in (0, 1)
        ]
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = Read(folder)
    assert {event.model for event in read.events} == {"codegemma_7b_samples", "llama"}
    assert {(event.benchmark, event.item_id, event.repeat) for event in read.events} == {
        ("HumanEval", f"HumanEval/{q}", n) for q in range(3) for n in (0, 1)
    }


def test_lists_of_instances_have_the_model_of_their_file_or_folder(tmp_path):
    first = {"resolved": ["a__b-1"], "generated": ["a__b-1", "a__b-2"], "no_generation": []}
    for name in ("m1/results/results.json", "m2/results/results.json", "all/results_m3.json"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(first))
    assert {event.model for event in Read(tmp_path).events} == {"m1", "m2", "m3"}
    pro = tmp_path / "eval_results_m4.json"
    pro.write_text(json.dumps({"instance_a__b-1c": True}))
    assert [event.model for event in Read(pro).events] == ["m4"]


def test_a_document_with_a_field_eval_is_not_taken_for_a_log(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"eval": "recalls", "runs": [{"model": "m", "samples": [{"id": "q", "passed": True}]}]}))
    assert "`rankwatch map FILE` proposes how to read it" in Read(path).rejects[0]["reason"]


def test_tables_of_one_folder_are_named_by_it_unless_it_has_other_results(tmp_path):
    folder = tmp_path / "quiz"
    folder.mkdir()
    for name in ("m1", "m2"):
        (folder / f"{name}.jsonl").write_text('{"id": "q1", "is_correct": true}\n{"id": "q2", "is_correct": false}\n')
    assert {(e.benchmark, e.model, e.item_id) for e in Read(folder).events} == {
        ("quiz", model, item) for model in ("m1", "m2") for item in ("q1", "q2")
    }
    (folder / "events.jsonl").write_text('{"benchmark":"b","item_id":"q","model":"m","score":1}\n')
    assert {event.benchmark for event in Read(folder).events} == {"b"}


def test_objects_of_one_shape_among_plain_fields_are_records(tmp_path):
    runs = {
        name: {"runs": [{"time": 1.5}], "aggregate": {"offenses": 4, "score": 92.5}} for name in ("sorter", "parser")
    }
    read, _ = mapped(tmp_path, {"implementation": "haiku", "note": "x", **runs})
    assert {(event.item_id, event.score) for event in read.events} == {("sorter", 0.925), ("parser", 0.925)}


def test_a_number_of_another_name_is_no_repeat(tmp_path):
    rows = [
        {"id": f"q{k}", "model": model, "score": k % 2, "lines_of_code": 100 * n + k}
        for k in range(9)
        for n, model in enumerate(("a", "a", "b"))
    ]
    read, guesses = mapped(tmp_path, rows)
    assert {event.repeat for event in read.events} == {0}
    assert "several records of one model and item" in guesses


def test_an_id_that_models_share_names_the_items(tmp_path):
    rows = [
        {"problem_id": k, "file": f"{model}{k:x}f", "model": model, "speedup_score": (k % 5) / 5}
        for k in range(9)
        for model in ("a", "b")
    ]
    read, _ = mapped(tmp_path, rows)
    assert len({event.item_id for event in read.events}) == 9


def test_hundreds_of_fields_beside_the_records_do_not_hide_them(tmp_path):
    beside = {f"s{k}": {"calls": k, "model": f"x{k}", "mean_time": k / 2} for k in range(900)}
    rows = [{"id": f"q{k}", "score": k % 2} for k in range(9)]
    read, _ = mapped(tmp_path, {"model": "m", "statistics": beside, "rounds": rows})
    assert {(event.model, event.score) for event in read.events} == {("m", 0), ("m", 1)}


def test_rows_with_more_cells_than_columns_are_omitted_with_a_note(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "task,system,good\n" + "".join(f"q{k},{m},{k % 2}\n" for k in range(9) for m in "ab") + "q9,a,1,x,y\n"
    )
    (tmp_path / "rankwatch.toml").write_text(propose(path).text)
    read = Read(path)
    assert len(read.events) == 18
    assert any("1 rows have more cells than columns, and are omitted" in note for note in read.notes)

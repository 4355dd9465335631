"""Shapes of results that people publish: what is proposed for them, and what is asked instead."""

import json

import pytest

from monitor.files.formats.choices import ChoiceError
from monitor.files.maps.propose import propose
from monitor.files.maps.table import FileMap
from monitor.files.streams.event_lines import Refusal
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

"""Exports with a column a metric (Langfuse, Phoenix, ragas): the metric, the names, repeats, and tables that do not hold together."""

from tests.unit.files.native_logs import Read
from tests.unit.files.tool_files import LANGFUSE_TABLE, RAGAS, as_cells, doc, table, trace


def test_a_score_is_chosen_by_its_name_and_text_is_none(tmp_path):
    made = [
        as_cells(trace(k, f"{k}?", {"exact": 1, "grade": 4, "tone": "good", "sure": "yes"}, "a", f"i{k}"))
        for k in (1, 2)
    ]
    (tmp_path / "t.csv").write_bytes(table(*made))
    read = Read(tmp_path / "t.csv", metric=["sure"])
    assert [e.score for e in read.events] == [True, True]
    assert "also available: exact, grade" in "".join(read.notes)
    assert "tone" not in "".join(read.notes)
    assert [e.score for e in Read(tmp_path / "t.csv", metric=["grade"], scale=["5"]).events] == [0.8, 0.8]
    assert Read(tmp_path / "t.csv", metric=["grade"]).rejects[0]["above"] == 4


def test_a_trace_that_is_exported_twice_counts_once(tmp_path):
    once = trace(1, "1+1?", {"exact": 1}, "a", "i1")
    (tmp_path / "t.json").write_bytes(doc([once, once]))
    assert [(e.item_id, e.repeat, e.score) for e in Read(tmp_path / "t.json").events] == [("i1", 0, 1)]


def test_two_exports_without_experiments_are_two_models_by_their_names(tmp_path):
    for name, score in (("new", 1), ("old", 0)):
        (tmp_path / f"{name}.json").write_bytes(
            doc([trace(f"{name}{k}", f"{k}+1?", {"exact": score}) for k in range(3)])
        )
    read = Read(tmp_path / "new.json", tmp_path / "old.json")
    assert {(e.model, e.item_id, e.score) for e in read.events} == {
        (name, f"{k}+1?", score) for name, score in (("new", 1), ("old", 0)) for k in range(3)
    }


def test_the_columns_of_a_user_come_before_those_of_a_tool(tmp_path):
    path = RAGAS.write(tmp_path)
    read = Read(f"m={path}", columns=["item_id=user_input,score=answer_relevancy"], benchmark="b")
    assert [(e.item_id, e.score) for e in read.events] == [("1+1?", 0.5), ("2+2?", 0.5), ("3+3?", 0.5)]
    (tmp_path / "own.csv").write_bytes(
        table({"question": "q", "answer": "a", "contexts": "c", "model": "m", "id": "1", "score": 1})
    )
    assert [(e.item_id, e.model) for e in Read(tmp_path / "own.csv").events] == [("1", "m")]


def test_a_table_of_ragas_may_name_the_model_of_each_row(tmp_path):
    rows = [
        {"question": q, "answer": "a", "contexts": "c", "model": model, "faithfulness": score}
        for q, model, score in [("1", "a", 1), ("1", "b", 0), ("2", "a", ""), ("1", "a", 0.5)]
    ]
    (tmp_path / "t.csv").write_bytes(table(*rows))
    read = Read(tmp_path / "t.csv")
    assert {(e.item_id, e.model, e.score, e.repeat) for e in read.events} == {
        ("1", "a", 1, 0), ("1", "a", 0.5, 1), ("1", "b", 0, 0), ("2", "a", None, 0),
    }  # fmt: skip


def test_a_cell_may_be_longer_than_the_csv_module_takes(tmp_path):
    rows = [{"user_input": "q" * 300_000, "response": "x\u2028y\nz", "faithfulness": 1.0}]
    (tmp_path / "t.csv").write_bytes(table(*rows))
    read = Read(tmp_path / "t.csv")
    assert [(e.item_id[:3], e.score) for e in read.events] == [("qqq", 1)]
    assert read.rejects == []


def test_a_last_row_without_a_line_end_is_noted(tmp_path):
    path = LANGFUSE_TABLE.write(tmp_path)
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert any("no line end follows the last row" in note for note in Read(path).notes)


def test_odd_cells_cost_no_other_row(tmp_path):
    rows = [trace(k, f"{k}?", {"exact": 1}, "a", f"i{k}") for k in range(4)]
    rows[0]["exact"], rows[1]["metadata"], rows[2]["exact"] = "[" * 5_000, "{" * 5_000, {"deep": [1]}
    (tmp_path / "t.json").write_bytes(doc(rows))
    read = Read(tmp_path / "t.json")
    assert {e.item_id: e.score for e in read.events} == {"1?": 1, "i3": 1}
    assert len(read.rejects) == 2

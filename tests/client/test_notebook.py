"""Reports on frames, and the notebook of the documentation."""

import json
import sys
from pathlib import Path

import pytest
from rankwatch_client import report

from docs.generate.notebooks import as_markdown
from tests.commands import rankwatch
from tests.html_tree import read_html

pytestmark = pytest.mark.full

NOTEBOOK = Path(__file__).parents[2] / "docs/tutorials/notebook.ipynb"
ROWS = [
    {"benchmark": "bench", "item_id": f"q{i}", "model": model, "score": int(i % 10 < right)}
    for i in range(60)
    for model, right in (("<b>best</b>", 9), ("worst", 2))
]


class Frame:
    """A frame with the method of pandas, where pandas is missing."""

    def __init__(self, rows):
        self.rows = list(rows)

    def to_csv(self, path, index):
        assert index is False
        titles = list(self.rows[0])
        lines = [titles, *([str(row[title]) for title in titles] for row in self.rows)]
        Path(path).write_text("".join(",".join(line) + "\n" for line in lines))


class Polars(Frame):
    """A frame with the method of polars, which takes the types of columns from the first 100 rows unless it has to read all."""

    def __init__(self, rows, infer_schema_length=100):
        super().__init__(rows)
        assert infer_schema_length is None or rows is ROWS

    def write_csv(self, path):
        self.to_csv(path, index=False)


@pytest.mark.parametrize("kind", [Frame, Polars])
def test_a_frame_gives_frames_of_its_kind_as_the_command_reports_it(kind, tmp_path):
    ranking = report(kind(ROWS))
    assert [row["model"] for row in ranking.models.rows] == ["<b>best</b>", "worst"]
    (pair,) = ranking.pairs.rows
    assert (pair["benchmark"], pair["decided_anytime_family"], pair["status"]) == ("bench", "a", "decided")
    assert pair["facts"].startswith("decided, ")
    assert set(ranking.result["bench"]) == {"best", "change", "settled", "decided", "resolved"}
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    of_file = report(path)
    assert of_file.models == ranking.models.rows
    assert of_file.json == json.loads(rankwatch("report", path, "--format", "json").stdout)


def test_columns_and_flags_reach_the_command():
    rows = [{"b": r["benchmark"], "q": r["item_id"], "run": r["model"], "ok": r["score"]} for r in ROWS]
    columns = {"benchmark": "b", "item_id": "q", "model": "run", "score": "ok"}
    assert report(Frame(rows), "--alpha", "1e-30", columns=columns).pairs.rows[0]["decided_anytime_family"] is None


def test_a_notebook_shows_names_as_text():
    shown = report(Frame(ROWS))._repr_html_()
    assert "<b>best" not in shown
    assert len(list(read_html(shown).all("tr"))) == 3


def test_an_interpreter_shows_the_same_as_text():
    lines = repr(report(Frame(ROWS))).split("\n")
    assert lines[0] == "bench"
    assert lines[1].startswith("● Decided: <b>best</b> is better than worst, 70 points ahead, p = ")
    assert lines[4].split() == ["rank", "ranks", "model", "score", "step", "to", "the", "next"]
    assert lines[-2].split() == ["1", "1", "<b>best</b>", "90.00", "+70.00", "decided"]
    assert lines[-1].split() == ["2", "2", "worst", "20.00"]


def test_an_error_names_the_frame_and_not_the_file_that_it_was_written_to():
    with pytest.raises(ValueError, match=r"^rankwatch: frame:1: columns: no column for score in benchmark, item_id, m"):
        report(Frame({k: v for k, v in row.items() if k != "score"} for row in ROWS))


def test_held_verdicts_have_their_sign(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in ROWS) + "{"
    )  # a file that is not complete declares nothing
    assert repr(report(path)).split("\n")[1].startswith("! Held: ")


def test_errors_are_those_of_the_command(tmp_path):
    with pytest.raises(ValueError, match=r"none\.csv does not exist; check the path"):
        report(tmp_path / "none.csv")
    with pytest.raises(TypeError, match="give a pandas or polars frame, or a path, not int"):
        report(3)


def test_a_missing_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="the command rankwatch is not installed"):
        report(tmp_path)


def test_the_notebook_of_the_documentation_runs():
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    page = as_markdown(NOTEBOOK, NOTEBOOK.name)
    assert page.count("```text\n") == 2
    assert page.count("steps of the ranking") >= 1
    tables = [list(read_html(part).all("tr")) for part in page.split("\n\n") if "<table" in part]
    assert [len(rows) for rows in tables][-3:] == [4, 4, 4]  # the ranking, its models, its pairs; each under a head
    assert "<style" not in page

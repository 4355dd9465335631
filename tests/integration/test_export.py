"""`rankwatch export`: the folder that it writes."""

import json

import pytest

from tests.commands import rankwatch

EVENTS = [
    {"benchmark": benchmark, "item_id": str(i), "model": model, "score": int(i % 10 < right)}
    for benchmark in ("first", "Second/2")
    for i in range(200)
    for model, right in (("best", 9), ("worst", 2))
]


@pytest.fixture
def results(tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    return path


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_site_is_written_and_replaced_without_leaving_old_files(results, tmp_path):
    site = tmp_path / "new" / "site"
    done = rankwatch("export", site, results)
    assert done.stdout == ""
    assert "30 files written" in done.stderr
    first = files(site)
    assert {"index.html", "export.json", "first/index.html", "first/ties.csv", "first/badges/best.rank.svg"} <= set(
        first
    )
    assert len(first) == 30
    (site / "CNAME").write_text("example.org")  # what a host of static pages keeps next to them
    results.write_text("".join(json.dumps(event) + "\n" for event in EVENTS if event["benchmark"] == "first"))
    rankwatch("export", site, results)
    assert set(files(site)) == {name for name in first if not name.startswith("second")} | {"CNAME"}


@pytest.mark.parametrize("manifest", [None, "{}", '{"files": ["../outside"]}', '{"files": 3}'])
def test_a_folder_that_holds_something_else_is_left_alone(results, tmp_path, manifest):
    (tmp_path / "outside").write_text("mine")
    site = tmp_path / "site"
    site.mkdir()
    (site / "thesis.tex").write_text("mine")
    if manifest is not None:
        (site / "export.json").write_text(manifest)
    before = files(site)
    refused = rankwatch("export", site, results, code=2).stderr
    assert "the folder holds files that no export wrote; give a new or an empty one" in refused
    assert files(site) == before
    assert (tmp_path / "outside").exists()
    assert "this is no folder" in rankwatch("export", results, results, code=2).stderr


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.parquet", "scores.arrow"])
def test_the_scores_of_results_are_one_file(results, tmp_path, name):
    path = tmp_path / name
    done = rankwatch("export", path, results)
    assert ("800 rows written" in done.stderr) is (name != "scores.jsonl")
    if not name.endswith("arrow"):  # which is for other programs: report reads Parquet
        mine, theirs = (json.loads(rankwatch("report", each, "--format", "json").stdout) for each in (results, path))
        assert theirs == mine


def test_a_file_of_scores_replaces_nothing(results, tmp_path):
    again = rankwatch("export", results, tmp_path, code=2)
    assert "a file of scores has to be new" in again.stderr
    assert len(results.read_text().splitlines()) == len(EVENTS)
    lost = rankwatch("export", tmp_path / "none" / "scores.jsonl", results, code=2)
    assert "does not exist; create it" in lost.stderr
    about = rankwatch("export", tmp_path / "scores.jsonl", results, "--pairs", "all", code=2)
    assert "a file of scores has none" in about.stderr


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.arrow"])
def test_a_report_is_a_table_by_the_name_of_its_file(results, tmp_path, name):
    module = pytest.importorskip("pyarrow.parquet" if name.endswith("parquet") else "pyarrow.feather")
    rankwatch("report", results, "-o", tmp_path / name)
    assert module.read_table(tmp_path / name)["benchmark"].to_pylist() == ["Second/2", "first"]

"""What `export` writes into a folder: our exporters, the template, and exporters of packages that fail."""

import json
import re
import runpy
import sys
from importlib import metadata
from pathlib import Path

import pytest

from monitor.render.board.contract import check_exporter, made_boards
from monitor.render.board.exporters import (
    GROUP,
    Context,
    Dataset,
    Exporter,
    ExportError,
    export_files,
    find_exporter,
    is_inside,
)

EXAMPLE = Path(__file__).parents[3] / "examples" / "exporter"
DATASETS = {name: Dataset("org/data", "main") for name in ("ties & <names>", "graded", "Graded")}
CONTEXT = Context(
    at=1_800_000_000.0, datasets=DATASETS, organization="acme", source="https://example.org/run", percent=True
)
OURS = ["site", "every-eval-ever", "hf-eval-results", "hf-model-index"]


@pytest.fixture(scope="module")
def boards():
    return list(made_boards())


@pytest.mark.parametrize("name", OURS)
def test_our_exporters_keep_the_contract(name):
    check_exporter(find_exporter(name), CONTEXT)


def test_the_template_keeps_the_contract(monkeypatch, boards):
    monkeypatch.syspath_prepend(str(EXAMPLE))
    runpy.run_path(str(EXAMPLE / "test_rankwatch_acme_export.py"))["test_the_exporter_keeps_the_contract"]()
    (ranking,) = export_files(sys.modules["rankwatch_acme_export"].EXPORTER, boards, Context()).values()
    first, second, third, *_ = json.loads(ranking)["ties & <names>"]
    assert first == {"model": "plain", "score": 0.9, "ranks": [1, 1], "tied_with": []}
    assert (second["ranks"], second["tied_with"]) == ([2, 3], [third["model"]])


def test_a_document_of_every_eval_ever_has_the_interval_and_the_ties(boards):
    notes = []
    files = export_files(find_exporter("every-eval-ever"), boards, Context(at=1.8e9, note=notes.append))
    assert all(re.fullmatch(r"data/[^/]+/[^/]+/[^/]+/[0-9a-f-]{14}4[0-9a-f-]{21}\.json", path) for path in files)
    documents = {
        (d["evaluation_results"][0]["evaluation_name"], d["model_info"]["id"]): d
        for d in map(json.loads, files.values())
    }
    assert ("graded", "never scored") not in documents
    assert notes[:2] == [
        "battles: the benchmark is omitted: ratings of battles are no scores of items",
        "graded: 1 model without a score omitted",
    ]
    assert "11 models without a developer, such as - x" in notes[2]
    document = documents["ties & <names>", "org/name"]
    assert document["evaluation_id"] == "ties & <names>/org/name/1800000000"
    assert document["model_info"]["developer"] == "org"
    details = document["evaluation_results"][0]["score_details"]
    assert details["score"] == 0.8
    interval = details["uncertainty"]["confidence_interval"]
    assert (interval["lower"], interval["upper"], interval["confidence_level"]) == (0.719633, 0.861755, 0.95)
    assert details["uncertainty"]["num_samples"] == 120
    assert (details["details"]["rank_low"], details["details"]["rank_high"]) == ("2", "3")
    assert json.loads(details["details"]["tied_with"]) == ["Org/Name"]
    assert documents["graded", "a"]["evaluation_results"][0]["metric_config"]["metric_name"] == "score"
    # A later export of the same boards replaces the files.
    assert files.keys() == export_files(find_exporter("every-eval-ever"), boards, CONTEXT).keys()


def test_results_in_the_shape_of_hugging_face_are_what_its_library_reads(boards):
    yaml, hub = pytest.importorskip("yaml"), pytest.importorskip("huggingface_hub")
    files = export_files(find_exporter("hf-eval-results"), boards, CONTEXT)
    for path, text in files.items():
        assert "/.eval_results/" in path
        (entry,) = hub.parse_eval_result_entries(yaml.safe_load(text))
        assert (entry.dataset_id, entry.task_id, entry.source_url) == ("org/data", "main", "https://example.org/run")
    (path,) = [path for path in files if path.startswith("org/") and "ties" in path]
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(files[path]))
    assert (entry.value, entry.notes) == (
        80.0,
        "95 % interval 71.9633 to 86.1755; 120 items; rank 2–3 of 11; ties with 1 other",
    )
    from huggingface_hub.repocard_data import model_index_to_eval_results

    index = export_files(find_exporter("hf-model-index"), boards, CONTEXT)
    results = [model_index_to_eval_results(yaml.safe_load(text)["model-index"]) for text in index.values()]
    names = {name for name, _ in results}
    assert {"模型 é", "a: b # c", "- x", "=1+1", "only"} <= names
    assert {(r.metric_type, r.dataset_type) for _, each in results for r in each} == {
        ("accuracy", "org/data"),
        ("score", "org/data"),
    }


def test_a_benchmark_without_its_data_set_has_no_eval_results(boards):
    with pytest.raises(ExportError, match="add --dataset Graded=ORGANIZATION/NAME:TASK"):
        export_files(find_exporter("hf-eval-results"), boards, Context())


def crash(*_):
    yield "a", "text"
    raise TypeError("a bug")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (crash, r"failed \(TypeError\); report it"),
        (lambda *_: [("../a", "")], "names a file outside its folder"),
        (lambda *_: [("a", ""), ("A", "")], "names a file twice"),
        (lambda *_: [("export.json", "")], "names a file twice"),
    ],
)
def test_an_exporter_that_fails_is_named(files, words):
    with pytest.raises(ExportError, match=f"the exporter x {words}"):
        export_files(Exporter("x", files), [], Context())
    with pytest.raises(AssertionError, match="boards are refused"):
        check_exporter(Exporter("x", files))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (lambda *_: [], "no file"),
        (lambda *_: [("a", " ")], "a is empty"),
        (lambda *_: [("a", "\x1b[2J")], "cannot be printed"),
        (lambda *_: [("a", str(id(object())) + str(len(made)))] if made.append(1) is None else [], "a second time"),
    ],
)
def test_a_contract_that_is_not_kept_is_named(files, words):
    made.clear()
    with pytest.raises(AssertionError, match=words):
        check_exporter(Exporter("x", files))


made: list[int] = []


def test_exporters_of_packages_are_found_by_name(monkeypatch):
    holder = type(sys)("rankwatch_installed")
    holder.good, holder.bad = Exporter("good", lambda *_: [("a", "b")]), 3
    monkeypatch.setitem(sys.modules, "rankwatch_installed", holder)
    points = [metadata.EntryPoint(name, f"rankwatch_installed:{name}", GROUP) for name in ("good", "bad", "gone")]
    monkeypatch.setattr(metadata, "entry_points", lambda group: points if group == GROUP else [])
    assert find_exporter("good") is holder.good
    for name, words in (("bad", "it names no Exporter"), ("gone", r"it cannot be loaded \(AttributeError\)")):
        with pytest.raises(ExportError, match=words):
            find_exporter(name)
    with pytest.raises(
        ExportError, match="use one of site, every-eval-ever, hf-eval-results, hf-model-index, bad, gone, good"
    ):
        find_exporter("other")


@pytest.mark.parametrize("path", ["", ".", "..", "a/../b", "/a", "a//b", "C:/a", "a\\b", "a\0"])
def test_paths_outside_the_folder(path):
    assert not is_inside(path)

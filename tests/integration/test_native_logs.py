"""Native logs through the commands: what the tools themselves wrote, and what the command line says about it."""

import importlib.util
import json
import os

import pytest

from tests.commands import Counted, Watch, pairs_of, rankwatch, report, until, watch_once
from tests.integration.native_tools import CORRECT, QUESTIONS, run_inspect, run_lm_eval

ITEMS = 40


def needs(module):
    return pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"{module} is not installed")


@pytest.fixture(scope="module")
def inspect_logs(tmp_path_factory):
    return run_inspect(tmp_path_factory.mktemp("inspect") / "logs")


@pytest.fixture(scope="module")
def lm_eval_logs(tmp_path_factory):
    return run_lm_eval(tmp_path_factory.mktemp("lm_eval") / "run")


@needs("inspect_ai")
@pytest.mark.parametrize("kind", ["json", "eval"])
def test_what_inspect_writes_is_counted_to_the_sample(inspect_logs, kind):
    result, notes = report(inspect_logs / kind)
    (benchmark,) = result["benchmarks"]
    assert (benchmark["benchmark"], benchmark["items"], benchmark["events"]) == ("quiz", 6, 2 * 2 * 6)
    assert (benchmark["duplicates"], benchmark["conflicts"], benchmark["rejected"]) == (0, 0, 0)
    assert {m["model"]: m["mean"] for m in benchmark["models"]} == {m: len(c) / 6 for m, c in CORRECT.items()}
    one, two = CORRECT.values()
    (pair,) = benchmark["pairs"]  # of means over two epochs
    gap = (len(one - two) - len(two - one)) / 6
    assert (pair["n"], abs(pair["gap"])) == (6, pytest.approx(abs(gap)))
    assert benchmark["pairs"][0]["cluster"]["clusters"] == 2
    assert benchmark["order"]["policy"] == "completion"
    assert notes == "rankwatch: quiz: scorer match (also available: includes); clusters by category\n"


@needs("inspect_ai")
def test_the_same_run_in_two_formats_is_one_run(inspect_logs):
    result, _ = report(inspect_logs / "json", inspect_logs / "eval")
    (benchmark,) = result["benchmarks"]
    assert (benchmark["events"], benchmark["duplicates"], benchmark["conflicts"]) == (48, 24, 0)


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("RANKWATCH_SLOW") != "1", reason="takes half a minute: RANKWATCH_SLOW=1 runs it")
@needs("lm_eval")
def test_what_lm_eval_writes_is_counted_to_the_sample(lm_eval_logs):
    records = []
    for path in lm_eval_logs.glob("*/samples_quiz_*.jsonl"):
        model = path.parent.name.replace("__", "/")
        samples = map(json.loads, path.read_text().splitlines())
        records += [{"item_id": each["doc_id"], "model": model, "score": each["acc"]} for each in samples]
    result, notes = report(lm_eval_logs)
    (benchmark,) = result["benchmarks"]
    assert (benchmark["benchmark"], benchmark["items"], benchmark["events"]) == ("quiz", QUESTIONS, 2 * QUESTIONS)
    assert pairs_of(benchmark) == Counted(records).pairs()
    assert set(pairs_of(benchmark)) == {("acme/one", "acme/two")}
    assert "metric acc (also available: acc_norm); filter none; clusters by subject" in notes
    normed, _ = report(lm_eval_logs, "--metric", "acc_norm")
    assert normed["benchmarks"][0]["events"] == 2 * QUESTIONS


def sample(doc, score, filter):  # noqa: A002 - as the field is called
    values = {"acc": score, "f1": [1, 0]}
    doc_hash = f"{doc:064x}"
    return {
        "doc_id": doc,
        "doc": {},
        "target": "",
        "filter": filter,
        "metrics": ["f1", "acc"],
        "doc_hash": doc_hash,
        **values,
    }


def run_of(folder, model, scores):
    """A run of two filters; under the second every answer is right."""
    stamp = "2026-01-02T03-04-05.6"
    folder.mkdir()
    results = {
        "model_name": model,
        "n-samples": {"quiz": {"original": 99, "effective": len(scores)}},
        "versions": {"quiz": 3.0},
    }
    (folder / f"results_{stamp}.json").write_text(json.dumps(results))
    lines = [sample(k, s, "strict") for k, s in enumerate(scores)] + [
        sample(k, 1.0, "lenient") for k in range(len(scores))
    ]
    path = folder / f"samples_quiz_{stamp}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def runs(tmp_path):
    """Two runs, and the events they come to."""
    folder = tmp_path / "runs"
    folder.mkdir()
    scores = {"a/one": [float(k % 2) for k in range(ITEMS)], "b/two": [float(k % 3 == 0) for k in range(ITEMS)]}
    for model, answers in scores.items():
        run_of(folder / model.replace("/", "__"), model, answers)
    records = [{"item_id": k, "model": m, "score": s} for m, answers in scores.items() for k, s in enumerate(answers)]
    return folder, records


def test_report_and_watch_agree_on_native_logs(tmp_path, runs):
    folder, records = runs
    result, notes = report(folder)
    (benchmark,) = result["benchmarks"]
    assert pairs_of(benchmark) == Counted(records).pairs()
    assert notes == "rankwatch: quiz: metric acc (also available: f1); filter strict; no clusters\n"
    for _ in range(2):
        watched = json.loads(watch_once(tmp_path / "data", folder))["benchmarks"][0]
        assert watched["events"] == len(records)
        assert pairs_of(watched) == pairs_of(benchmark)
        assert watched["duplicates"] == 0


def test_choices_reach_the_importer(runs):
    folder, _ = runs
    lenient, notes = report(folder, "--filter", "quiz=lenient", "--benchmark", "mine", "--columns", "item_id=doc_id")
    (benchmark,) = lenient["benchmarks"]
    assert benchmark["benchmark"] == "mine"
    assert {m["mean"] for m in benchmark["models"]} == {1.0}
    assert "filter lenient" in notes
    one, two = sorted(folder.iterdir())
    named, _ = report(f"first={one}", f"second={two}")
    assert {m["model"] for m in named["benchmarks"][0]["models"]} == {"first", "second"}


def test_a_wrong_choice_ends_the_command_with_the_remedy(runs):
    folder, _ = runs
    assert "--columns x: use FIELD=COLUMN" in rankwatch("report", folder, "--columns", "x", code=2).stderr
    refused = rankwatch("report", folder, "--metric", "f1", code=1).stderr
    assert "f1 has a list for every sample" in refused
    assert "choose one of f1, acc with --metric" in refused


def test_items_on_the_command_line_count_more_than_the_log(tmp_path, runs):
    folder, _ = runs
    benchmark = json.loads(watch_once(tmp_path / "data", folder, "--items", "50"))["benchmarks"][0]
    assert benchmark["rejected"] == 0
    assert {m["coverage"] for m in benchmark["models"]} == {ITEMS / 50}


def test_what_cannot_be_read_is_a_dead_letter_and_all_else_is_read(tmp_path, runs):
    folder, records = runs
    (folder / "broken.eval").write_bytes(b"PK\x03\x04 cut off")
    data = tmp_path / "data"
    ended = rankwatch("watch", folder, "--once", "--format", "json", "--data-dir", data, code=1)
    assert json.loads(ended.stdout)["benchmarks"][0]["events"] == len(records)
    assert "1 of 3 files, more than 10%, could not be read" in ended.stderr
    (letter,) = map(json.loads, (data / "dead-letters.jsonl").read_text().splitlines())
    assert letter["source"] == str(folder / "broken.eval")
    assert "the zip archive is cut off" in letter["found"]


def test_a_run_that_comes_while_watching_is_followed(tmp_path, runs):
    folder, records = runs
    with Watch(tmp_path / "data", folder) as watch:
        from tests.commands import get

        def events():
            return sum(b["events"] for b in json.loads(get(f"{watch.url}/api/v1/benchmarks")[1])["benchmarks"])

        until(lambda: events() == len(records), "the first runs")
        third = [float(k % 5 == 0) for k in range(ITEMS)]
        run_of(folder / "c__three", "c/three", third)
        until(lambda: events() == len(records) + ITEMS, "the third run")
        assert watch.stop() == 0

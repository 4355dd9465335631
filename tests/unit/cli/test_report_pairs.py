"""How many rows of pairs a command makes, and keeps: a small file of many models has millions of pairs."""

import csv
import io
import json
from itertools import combinations

import pytest
from typer.testing import CliRunner

from monitor.cli.app import app
from monitor.cli.shared import output
from monitor.view import build
from tests.commands import write

MODELS = [f"m{k:02}" for k in range(12)]
PAIRS = len(MODELS) * (len(MODELS) - 1) // 2


@pytest.fixture
def results(tmp_path):
    """Twelve models in two benchmarks."""
    return write(
        tmp_path / "a.jsonl",
        [
            {"benchmark": name, "item_id": f"q{k}", "model": model, "score": (k * (place + 1)) % 3 == 0}
            for name in ("one", "two")
            for k in range(8)
            for place, model in enumerate(MODELS)
        ],
    )


@pytest.fixture
def made(monkeypatch):
    """The sizes of the parts in which rows are made, three rows at most."""
    sizes = []
    rows = build.pair_rows

    def counted(table, clusters, needed, at):
        sizes.append(at.size)
        return rows(table, clusters, needed, at)

    monkeypatch.setattr(build, "pair_rows", counted)
    monkeypatch.setattr(build, "_ROWS_AT_ONCE", 3)
    return sizes


def run(*arguments, code=0):
    ended = CliRunner().invoke(app, [str(each) for each in arguments])
    assert ended.exit_code == code, ended.output
    return ended


def test_rows_are_written_as_they_are_made(results, made):
    whole = json.loads(run("report", results, "--format", "json").stdout)
    assert len(made) >= 2 * PAIRS // 3
    assert max(made) == 3
    for each in whole["benchmarks"]:
        assert len(each["pairs"]) == each["summary"]["pairs"] == PAIRS
        assert {frozenset((p["model_a"], p["model_b"])) for p in each["pairs"]} == set(
            map(frozenset, combinations(MODELS, 2))
        )
    rows = list(csv.DictReader(io.StringIO(run("report", results, "--format", "csv").stdout)))
    pairs = [(each["benchmark"], p) for each in whole["benchmarks"] for p in each["pairs"]]
    assert [(r["benchmark"], r["model_a"], r["model_b"], r["reason"]) for r in rows] == [
        (name, p["model_a"], p["model_b"], p["reason"]) for name, p in pairs
    ]


def test_written_rows_are_those_of_the_model(results, monkeypatch):
    streamed = run("report", results, "--format", "json").stdout
    monkeypatch.setattr(output.Output, "streams", property(lambda _: False))
    monkeypatch.setattr(
        output,
        "_print_json",
        lambda views: print(build.Report(benchmarks=[view.report for view in views]).as_json().decode()),
    )
    assert run("report", results, "--format", "json").stdout == streamed
    assert run("report", results, "--format", "json", "--pairs", "adjacent").stdout != streamed


@pytest.mark.parametrize("form", ["json", "csv", "arrow"])
def test_too_many_pairs_are_listed_only_if_they_are_asked_for(results, monkeypatch, form, tmp_path):
    monkeypatch.setattr(output, "MAX_REPORT_PAIRS", 2 * PAIRS - 1)
    file = tmp_path / f"out.{form}"
    ended = run("report", results, "-o", file)
    assert (
        f"only neighbours in rank are listed: there are {2 * PAIRS} pairs; --pairs all lists all of them"
        in ended.stderr
    )
    few = file.stat().st_size
    assert "listed" not in run("report", results, "-o", file, "--pairs", "all").stderr
    assert file.stat().st_size > 2 * few


def test_what_has_all_pairs_in_memory_has_a_limit(results, monkeypatch):
    monkeypatch.setattr(output, "MAX_REPORT_PAIRS", 2 * PAIRS - 1)
    for arguments in (
        ["--format", "markdown"],
        ["--format", "html"],
        ["--format", "table"],
        ["--format", "json", "--detail"],
    ):
        ended = run("report", results, *arguments, "--pairs", "all", code=2)
        assert f"--pairs all: there are {2 * PAIRS} pairs" in ended.stderr
        run("report", results, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["gate", "--pair", "m03", "m07", "--benchmark", "one"],
        ["gate", "--pair", "m03", "m07", "--margin", "0.1"],
        ["gate", "--baseline", "m07", "--margin", "0.1"],
        ["plan", "--pair", "m03", "m07", "--benchmark", "one", "--pilot"],
    ],
)
def test_a_question_about_one_model_makes_the_rows_of_its_pairs(results, made, arguments):
    ended = CliRunner().invoke(app, [*arguments, str(results)])
    assert ended.exit_code in {0, 3, 4}, ended.output
    assert 0 < sum(made) <= 2 * (len(MODELS) - 1)

"""Where a report goes: files, pipes that end early, and devices that are full."""

import json
import subprocess
import sys

import pytest

from tests.commands import environment, rankwatch

EVENTS = [
    {"benchmark": "bench", "item_id": str(i), "model": model, "score": int(i % 10 < right)}
    for i in range(300)
    for model, right in (("best", 9), ("middle", 6), ("last", 5), ("worst", 1))
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    path = tmp_path_factory.mktemp("output") / "results.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    return path


@pytest.mark.parametrize(
    ("name", "flags", "begins"),
    [
        ("r.json", [], '{"benchmarks":'),
        ("r.csv", [], "benchmark,"),
        ("r.md", [], "## bench"),
        ("r.HTML", [], "<!doctype html>"),
        ("r.txt", [], "bench  300 items"),
        ("r", ["--format", "json"], '{"benchmarks":'),
        ("r.html", ["--format", "markdown"], "## bench"),
    ],
)
def test_a_report_is_written_to_a_file_in_the_format_of_its_name(results, tmp_path, name, flags, begins):
    (tmp_path / name).write_text("before")
    assert rankwatch("report", results, "-o", tmp_path / name, *flags).stdout == ""
    assert (tmp_path / name).read_text().startswith(begins)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_report_that_fails_leaves_the_file_alone(results, tmp_path):
    path = tmp_path / "report.json"
    path.write_text("before")
    rankwatch("report", tmp_path / "none.jsonl", "-o", path, code=2)
    assert path.read_text() == "before"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["-o", "missing/r.json"], "the folder missing does not exist; create it, or choose another file"),
        (["-o", "."], "this is a folder; give a file in it"),
        (
            ["--top", "2", "--format", "json"],
            "--top is not available with --format json, which has all models; omit it",
        ),
        (["--verbose", "-o", "r.html"], "--verbose is not available with --format html; omit it"),
        (["--detail", "-o", "r.csv"], "--detail is not available with --format csv; use json, markdown or html"),
        (["--top", "0"], "--top 0: use 1 or more"),
        (["-o", "r.json.gz"], "a report is not written as .gz; use .html, .md"),
    ],
)
@pytest.mark.parametrize("command", [["report"], ["watch", "--once", "--data-dir", "data"]], ids=" ".join)
def test_options_that_do_not_go_together_are_refused_before_anything_is_read(
    command, flags, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    if command[0] == "watch" and "--detail" in flags:
        return
    refused = rankwatch(*command, "nothing.jsonl", *flags, code=2).stderr
    assert message in refused
    assert refused.count("rankwatch: ") == 1


def test_the_first_models_are_shown_with_ranks_over_all(results):
    text = rankwatch("report", results, "--top", 2).stdout
    assert "middle" in text
    assert "worst" not in text
    assert "The first 2 of 4 models; ranks and verdicts are over all of them" in text


def test_once_prints_and_writes_the_same_report(results, tmp_path):
    flags = ("--top", 3, "--verbose", "--pairs", "all")
    rankwatch("watch", results, "--once", "--data-dir", tmp_path / "data", "-o", tmp_path / "once.txt", *flags)
    assert (tmp_path / "once.txt").read_text() == rankwatch("report", results, *flags).stdout


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["report"], 0),
        (["report", "--format", "json"], 0),
        (["report", "--format", "html"], 0),
        (["gate", "--pair", "best", "worst"], 0),
        (["gate", "--pair", "worst", "best"], 4),
        (["gate", "--pair", "worst", "best", "--format", "json"], 4),
        (["gate", "--pair", "middle", "last", "--alpha", "1e-30"], 3),
    ],
)
def test_a_reader_that_stops_early_is_no_fault_and_keeps_the_verdict(results, command, code):
    run = [sys.executable, "-m", "monitor", command[0], str(results), *command[1:]]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == code


@pytest.mark.parametrize(("command", "code"), [("report {}", 0), ("gate {} --pair worst best", 4), ("--help", 0)])
def test_a_closed_standard_output_keeps_the_verdict(results, command, code):
    run = [sys.executable, "-m", "monitor", *command.format(results).split()]
    ended = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *run], stderr=subprocess.PIPE, text=True, env=environment(), check=False
    )
    assert (ended.returncode, ended.stderr) == (code, "")


def test_a_full_device_is_a_fault_reported_once(results):
    run = [sys.executable, "-m", "monitor", "report", str(results), "-o", "/dev/full"]
    ended = subprocess.run(run, capture_output=True, text=True, env=environment(), check=False)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "rankwatch: /dev/full: No space left on device\n"
    ended = subprocess.run(
        [*run[:-1], str(results.with_name("report.tex"))],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    assert ended.returncode == 2
    assert "report.tex: a report is not written as .tex; use .html, .md" in ended.stderr


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_a_pipe_is_as_wide_as_it_is_told(results, columns):
    lines = rankwatch("report", results, "--verbose", COLUMNS=str(columns)).stdout.splitlines()
    assert max(map(len, lines)) <= columns

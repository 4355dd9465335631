"""`rankwatch gate --replay`: what a gate would have answered on past runs."""

import json
import random
import shlex
import shutil
import sys

import pytest

from tests.commands import rankwatch, write

CASES = 40


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Eight runs of two models: equal ones, a candidate that loses every third case, and two repeats in the last one."""
    place, rng = tmp_path_factory.mktemp("replay") / "archive", random.Random(6)
    for run in range(8):
        for model in ("old", "new"):
            rows = [
                {"benchmark": "suite", "item_id": f"case-{k}", "model": model, "repeat": r}
                | {"attributes": {"ms": run}}
                | {
                    "score": int(
                        rng.random() < (0.5 if k == 0 else 0 if model == "new" and run > 4 and k % 3 == 0 else 1)
                    )
                }
                for k in range(CASES)
                for r in range(2 if run == 7 else 1)
            ]
            (place / f"run-{run}").mkdir(parents=True, exist_ok=True)
            write(place / f"run-{run}" / f"{model}.jsonl", rows)
    return place


def test_the_exact_gate_agrees_always_and_the_full_run_is_that_of_the_plain_gate(archive):
    call = ("--pair", "new", "old", "--margin", 0.1, "--format", "json")
    found = json.loads(rankwatch("gate", "--replay", archive, *call).stdout)
    assert [run["run"] for run in found["runs"]] == [f"run-{k}" for k in range(8)]
    assert all(run["exact_agrees"] == found["orders"] == 20 for run in found["runs"])
    assert all(sum(run["statistical"]) == 20 for run in found["runs"])
    full = [run["full"] for run in found["runs"]]
    assert (full[0], full[5:]) == ("pass", ["fail"] * 3)
    assert "undecided" in full
    for run in (0, full.index("undecided"), 5, 7):
        code = {"pass": 0, "undecided": 3, "fail": 4}[full[run]]
        (row,) = json.loads(rankwatch("gate", archive / f"run-{run}", *call, code=code).stdout)["comparisons"]
        assert row["verdict"] == full[run]
        assert row["gap"] == pytest.approx(found["runs"][run]["gap"])
    assert found["equal_pairs"] <= 7
    assert sum(found["equal"]) == found["equal_pairs"]
    assert found["equal"][1] == 0


def test_one_page_has_the_agreement_and_a_row_a_run(archive):
    call = ("gate", "--replay", archive, "--baseline", "old", "--margin", 0.1)
    text = rankwatch(*call).stdout
    assert "Full run and exact gate agree in 160 of 160 replays of 8 past runs." in text
    page = rankwatch(*call, "--format", "html").stdout
    assert page.startswith("<!doctype html>")
    assert "default-src 'none'" in page
    assert page.count("run-") >= 8
    assert "| run-0 |" in rankwatch(*call, "--format", "markdown").stdout.replace("\\", "")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--pair", "new", "old"), "--replay: needs --margin"),
        (("--margin", 0.1), "name the models with --pair A B"),
        (("--margin", 0.1, "--baseline", "odl"), "odl has no results; did you mean old?"),
        (("--margin", 0.1, "--baseline", "old", "--items", 9), "omit --items"),
        (("--margin", 0.1, "--baseline", "old", "--format", "svg"), "omit --format svg"),
        (("--margin", 0.1, "--baseline", "old", "more.jsonl"), "takes the archive alone"),
    ],
)
def test_what_a_replay_cannot_use_is_refused(archive, flags, message):
    assert message in rankwatch("gate", "--replay", archive, *flags, code=2).stderr


def test_a_page_is_written_of_gates_with_a_margin_too(archive):
    call = ("gate", archive / "run-0", "--pair", "new", "old", "--margin", 0.1, "--format", "html")
    assert rankwatch(*call, code=0).stdout.startswith("<!doctype html>")
    without = [part for part in call if part not in {"--margin", 0.1}]
    assert "--format html: needs --margin" in rankwatch(*without, code=2).stderr


def test_prices_of_items_show_what_each_gate_would_have_cost(archive):
    call = ("gate", "--replay", archive, "--pair", "new", "old", "--margin", 0.1, "--price", "new=0.5")
    found = json.loads(rankwatch(*call, "--format", "json").stdout)
    items = [sum(run[kind] for run in found["runs"]) for kind in ("items", "exact_items", "statistical_items")]
    assert found["costs"] == pytest.approx([each / 2 for each in items])
    assert f"The candidates cost {items[0] / 2:,.2f} in full" in rankwatch(*call).stdout
    assert "no candidate has this name" in rankwatch(*call[:-1], "nwe=1", code=2).stderr


def test_a_copy_of_a_past_run_is_no_run(archive, tmp_path):
    shutil.copytree(archive / "run-0", tmp_path / "archive/run-0")
    shutil.copytree(archive / "run-0", tmp_path / "archive/run-1")
    call = ("gate", "--replay", tmp_path / "archive", "--pair", "new", "old", "--margin", 0.1)
    refused = " ".join(rankwatch(*call, code=1).stderr.split())
    assert "each counts as a run; remove the copy" in refused
    allowed = json.loads(rankwatch(*call, "--equal-runs", "--format", "json").stdout)
    assert (len(allowed["runs"]), allowed["equal_runs"]) == (2, True)
    assert "(--equal-runs)" in rankwatch(*call, "--equal-runs").stdout


@pytest.mark.full
def test_an_archive_of_40_runs_with_repeats_is_checked_replayed_and_gated(tmp_path):
    """Of 60 cases x 3 repeats: 20 equal pairs, 10 that are worse by 3 points and 10 that are better."""
    rng = random.Random(11)
    rates = [rng.betavariate(3, 1) for _ in range(60)]
    for run, gap in enumerate([0.0] * 20 + [-0.03] * 10 + [0.05] * 10):
        (tmp_path / f"archive/run-{run:02}").mkdir(parents=True)
        for model, shift in (("old", 0.0), ("new", gap)):
            rows = [
                {"benchmark": "suite", "item_id": f"c{k}", "model": model, "repeat": r}
                | {"score": int(rng.random() < rate + shift)}
                for k, rate in enumerate(rates)
                for r in range(3)
            ]
            write(tmp_path / f"archive/run-{run:02}/{model}.jsonl", rows)
    archive = tmp_path / "archive"
    olds = [archive / f"run-{run:02}/old.jsonl" for run in range(6)]
    check = json.loads(rankwatch("gate", *olds, "--check", "--margin", 0.1, "--format", "json").stdout)
    assert (check["items"], check["repeats"], check["attainable"]) == (60, 3, "possible")
    question = ("--pair", "new", "old", "--margin", 0.1, "--format", "json")
    found = json.loads(rankwatch("gate", "--replay", archive, *question).stdout)
    assert len(found["runs"]) == 40
    assert all(run["exact_agrees"] == found["orders"] for run in found["runs"])
    assert found["equal"][1] <= 3  # of 39 pairs that are equal, each fails with a chance of .025 at most
    script = tmp_path / "evaluate.py"
    script.write_text(EVALUATE)
    for run in (0, 21, 35):
        folder = archive / f"run-{run:02}"
        full = found["runs"][run]["full"]
        code = {"pass": 0, "undecided": 3, "fail": 4}[full]
        assert json.loads(rankwatch("gate", folder, *question, code=code).stdout)["verdict"] == full
        command = shlex.join([sys.executable, str(script), str(folder / "new.jsonl"), "{items}"])
        exact = ("--exact", "--run", command, "--folder", tmp_path / f"folder-{run}")
        assert (
            json.loads(rankwatch("gate", folder / "old.jsonl", *question, *exact, code=code).stdout)["verdict"] == full
        )


EVALUATE = """
import json, pathlib, sys
ids = set(pathlib.Path(sys.argv[2]).read_text("utf-8").split())
print("\\n".join(line for line in open(sys.argv[1]) if json.loads(line)["item_id"] in ids))
"""

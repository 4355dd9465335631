"""`rankwatch gate --replay`: what a gate would have answered on past runs."""

import json
import random

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


def test_a_page_is_written_of_replays_only(archive):
    call = ("gate", archive / "run-0", "--pair", "new", "old", "--margin", 0.1, "--format", "html")
    assert "--format html: is for --replay" in rankwatch(*call, code=2).stderr

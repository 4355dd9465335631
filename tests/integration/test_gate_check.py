"""`rankwatch gate --check`: what a gate can show, before its first call."""

import json
import random
import shlex
import sys
from xml.etree import ElementTree as ET

import pytest

from tests.commands import rankwatch, write


def runs(folder, cases=60, repeats=3, number=6, model="old", seed=1):
    """Runs of one model in a file each: 40 cases are steady, every third is right in 70 % of its answers."""
    rng = random.Random(seed)
    for run in range(number):
        rows = [
            {"benchmark": "suite", "item_id": f"case-{k:02}", "repeat": r, "model": model}
            | {"score": int(rng.random() < (0.7 if k % 3 == 0 else k % 2))}
            for k in range(cases)
            for r in range(repeats)
        ]
        write(folder / f"{model}-{run}.jsonl", rows)
    return folder


def checked(*arguments, code=0):
    return json.loads(rankwatch("gate", *arguments, "--check", "--format", "json", code=code).stdout)


def test_without_results_it_shows_what_suites_of_any_size_can_show():
    text = rankwatch("gate", "--check", "--margin", 0.03).stdout
    assert "Equal answers pass a margin of 3 points from 99 items on." in text
    found = checked("--margin", 0.03)
    assert [(each["margin"], each["items"]) for each in found["margins"]] == [
        (0.01, 299),
        (0.02, 149),
        (0.03, 99),
        (0.05, 59),
    ]
    rows = {(each["items"], each["discordance"]): each for each in found["shown"]}
    assert rows[1319, 0.13]["equal_passed"] == pytest.approx(0.909, abs=0.001)
    assert rows[50, 0.04]["equal_passed"] == pytest.approx(0.106, abs=0.001)
    assert max(each["worse_passed"] for each in rows.values()) <= 0.05


@pytest.mark.parametrize(
    ("items", "margin", "code", "attainable"),
    [(50, 0.02, 2, "only_wins"), (149, 0.02, 0, "possible"), (148, 0.02, 2, "only_wins"), (4, 0.02, 2, "impossible")],
)
def test_where_equal_answers_cannot_pass_it_ends_with_2_and_names_the_items(items, margin, code, attainable):
    call = ("--margin", margin, "--items", items)
    found = checked(*call, code=code)
    assert found["attainable"] == attainable
    text = rankwatch("gate", "--check", *call, code=code).stdout
    if code:
        assert f"Add {149 - items} item" in text
    rankwatch("gate", "--check", *call, "--run-anyway", code=2 if attainable == "impossible" else 0)


def test_runs_of_the_baseline_show_its_flips_and_its_flaky_cases(tmp_path):
    folder = runs(tmp_path)
    found = checked(folder, "--margin", 0.05, "--repeats", 1)
    assert (found["items"], found["repeats"], found["baseline"], found["attainable"]) == (60, 1, "old", "possible")
    assert {each["case"] for each in found["flaky"]} <= {f"case-{k:02}" for k in range(0, 60, 3)}
    assert sum(each["share"] for each in found["flaky"]) == pytest.approx(1)
    assert found["flaky"][0]["of"] == 18
    flips = found["flips"]
    assert flips["variance"] == pytest.approx(0.07, abs=0.01)
    assert flips["answers"] == 60 * 18
    assert 0.05 < flips["red"] < 0.15
    assert flips["disagree"] == pytest.approx(2 * flips["red"] * (1 - flips["red"]))
    assert flips["repeats_needed"] * 60 >= flips["answers_needed"]
    assert (
        "cases score differently from run to run. The first 3 carry"
        in rankwatch("gate", folder, "--check", "--margin", 0.05, "--repeats", 1).stdout
    )


def test_the_mean_of_repeats_takes_more_items_and_the_text_names_the_way_out(tmp_path):
    text = rankwatch("gate", runs(tmp_path), "--check", "--margin", 0.05, code=2).stdout
    assert "With 60 items only a better model can pass." in text
    assert "With one repeat an item the exact test decides: equal answers pass from 59 items on." in " ".join(
        text.split()
    )
    found = checked(tmp_path, "--margin", 0.05, code=2)
    assert (found["repeats"], found["rule"], found["equal_items_once"]) == (3, "bets", 59)
    assert {each["source"] for each in found["shown"]} == {"noise"}
    markdown = rankwatch("gate", tmp_path, "--check", "--margin", 0.05, "--format", "markdown", code=2).stdout
    assert markdown.startswith("### ○ With 60 items only a better model can pass.")
    assert "| flaky case |" in markdown


def test_the_baseline_is_named_where_there_are_several_models(tmp_path):
    runs(tmp_path, number=2)
    runs(tmp_path, number=2, model="new", seed=2)
    assert (
        "choose one with --baseline: new, old"
        in rankwatch("gate", tmp_path, "--check", "--margin", 0.05, code=2).stderr
    )
    found = checked(tmp_path, "--margin", 0.05, "--pair", "new", "old", "--repeats", 1)
    assert (found["baseline"], {each["source"] for each in found["shown"]}) == ("old", {"models"})
    unknown = rankwatch("gate", tmp_path, "--check", "--margin", 0.05, "--baseline", "odl", code=2).stderr
    assert "the baseline odl has no results; did you mean old?" in unknown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--check",), "--check: needs --margin"),
        (("--check", "--margin", "2%"), "give the margin in score units"),
        (("--check", "--margin", "0.02", "--run", "x"), "omit --run"),
        (("--check", "--margin", "0.02", "--format", "svg"), "omit --format svg"),
        (("--check", "--margin", "0.02", "--weights", "equal-clusters"), "omit --weights"),
        (("--check", "--margin", "0.02", "--repeats", "all"), "needs the number of repeats"),
        (("--run-anyway", "--margin", "0.02", "--pair", "a", "b", "x"), "--run-anyway: is for --check and --run"),
    ],
)
def test_what_a_check_cannot_use_is_refused(flags, message):
    assert message in rankwatch("gate", *flags, code=2).stderr


HARNESS = """
import json, pathlib, sys
(pathlib.Path(sys.argv[0]).parent / "called").touch()
for item in pathlib.Path(sys.argv[1]).read_text("utf-8").splitlines():
    print(json.dumps({"benchmark": "b", "item_id": item, "model": "new", "score": 1}))
"""


def test_a_run_that_cannot_pass_ends_before_its_first_call(tmp_path):
    (tmp_path / "harness.py").write_text(HARNESS)
    command = shlex.join([sys.executable, str(tmp_path / "harness.py"), "{items}"])
    for items, answer in ((3, "with 3 items no outcome can pass"), (60, "with 60 items only a better model can pass")):
        rows = [{"benchmark": "b", "item_id": str(k), "model": "old", "score": k % 2} for k in range(items)]
        path = write(tmp_path / f"{items}.jsonl", rows)
        call = ("gate", path, "--pair", "new", "old", "--margin", 0.03, "--folder", tmp_path / str(items))
        call = (*call, "--run", command)
        outputs = {form: tmp_path / f"gate.{form}" for form in ("json", "junit", "markdown", "svg", "html", "text")}
        writes = [part for form, file in outputs.items() for part in ("--write", f"{form}={file}")]
        ended = rankwatch(*call, *writes, "--on-undecided", "pass", code=2)
        assert answer in ended.stderr
        assert ended.stdout == ""
        assert not (tmp_path / "called").exists()
        report = json.loads(outputs["json"].read_text())
        assert (report["verdict"], report["exit_code"], report["headline"]) == ("not_run", 2, f"not run: {answer}")
        (fact,) = report["comparisons"][0]["facts"]
        assert (fact["code"], fact["items"]) == ("out_of_reach", items)
        assert [fact["needed"]] == [needed for margin, needed in fact["margins"] if margin == 0.03]
        assert outputs["markdown"].read_text().startswith(f"### ○ Not run: {answer}\n\n| margin, points |")
        assert ET.parse(outputs["junit"]).getroot()[0].get("failures") == "1"
        github = rankwatch(*call, "--format", "github", code=2).stdout
        assert github.startswith("::error title=rankwatch gate::not run: ")
    assert "pass: new is not worse" in rankwatch(*call, "--run-anyway", code=0).stdout


def test_an_undecided_gate_on_finished_files_names_that_only_wins_can_pass(tmp_path):
    rows = [
        {"benchmark": "b", "item_id": str(k), "model": m, "score": int(k % 3 > 0)}
        for k in range(50)
        for m in ("new", "old")
    ]
    call = (write(tmp_path / "r.jsonl", rows), "--pair", "new", "old", "--margin", 0.02)
    assert (
        "With 50 items only a better model can pass: equal answers pass from 149 on."
        in rankwatch("gate", *call, code=3).stdout
    )
    (row,) = json.loads(rankwatch("gate", *call, "--format", "json", code=3).stdout)["comparisons"]
    assert row["facts"][-1] == {"code": "only_wins", "items": 50, "needed": 149}


def scored(path, answers, **fields):
    """Scores of the baseline, item by item."""
    rows = [
        {"benchmark": "b", "item_id": str(k), "model": "old", "score": each, **fields} for k, each in enumerate(answers)
    ]
    return write(path, rows)


def test_the_alpha_that_files_declare_counts(tmp_path):
    path = scored(tmp_path / "a.jsonl", [1, 0] * 30)
    path.write_text('{"declare": "b", "alpha": 0.001}\n' + path.read_text("utf-8"), "utf-8")
    assert checked(path, "--margin", 0.1, code=2)["alpha"] == 0.001
    assert checked(path, "--margin", 0.1, "--alpha", 0.05)["alpha"] == 0.05


def test_two_files_are_two_runs_also_where_their_events_name_one(tmp_path):
    paths = [scored(tmp_path / f"{k}.jsonl", [1, 0, k] * 20, run="mine") for k in range(2)]
    assert checked(*paths, "--margin", 0.1)["flips"]["answers"] == 120


def test_no_model_is_worse_by_more_than_the_baseline_has(tmp_path):
    paths = [scored(tmp_path / f"{k}.jsonl", [k, *[0] * 59]) for k in range(2)]
    assert checked(*paths, "--margin", 0.05, "--repeats", 2, code=2)["shown"] == []


@pytest.mark.parametrize(
    "flags",
    [
        ("--candidate", "new"), ("--epoch", 1), ("--conflicts", "last"), ("--seed", "s"), ("--budget", 5), ("--block", 5),
        ("--folder", "f"), ("--topic", "t"), ("--token-file", "t"),
    ],
)  # fmt: skip
def test_flags_that_a_check_does_not_use_are_refused(flags):
    assert f"omit {flags[0]}" in rankwatch("gate", "--check", "--margin", 0.05, *flags, code=2).stderr.replace(
        "--token-file and --topic", f"{flags[0]}"
    )


def test_one_benchmark_is_checked_without_files_too():
    said = rankwatch("gate", "--check", "--margin", 0.05, "--benchmark", "a", "--benchmark", "c", code=2).stderr
    assert "looks at one benchmark" in said

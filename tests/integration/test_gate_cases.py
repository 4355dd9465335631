"""`gate --per-case`: each case against a floor."""

import json
from xml.etree import ElementTree as ET

import pytest

from tests.commands import rankwatch, write


def cases(counts, repeats=20, model="new", score=1):
    """Return answers of a model: so many of the repeats of each case are right."""
    return [
        {"benchmark": "agent", "item_id": name, "model": model, "repeat": k, "score": score if k < right else 0}
        for name, right in counts.items()
        for k in range(repeats)
    ]


STEADY = {f"case-{k:02d}": 20 for k in range(57)}
FLAKY = {"refund-17": 8, "date-parse-03": 16, "tone-22": 18}


def judged(*call, code):
    return json.loads(rankwatch("gate", *call, "--format", "json", code=code).stdout)


def test_one_case_below_its_floor_fails_the_gate_and_is_named(tmp_path):
    path = write(tmp_path / "r.jsonl", [*cases(STEADY | FLAKY), *cases(STEADY | dict.fromkeys(FLAKY, 20), model="old")])
    call = (path, "--pair", "new", "old", "--per-case", 0.8)
    junit = tmp_path / "gate.xml"
    found = judged(*call, "--write", f"junit={junit}", code=4)
    assert (found["verdict"], found["below"], found["reached"], found["open"]) == ("fail", ["refund-17"], 57, 2)
    assert (found["repeats_needed"], found["worse"]) == (14, ["refund-17"])
    shown = {each["case"]: each for each in found["cases"]}
    bounds = {name: (round(shown[name]["low"], 2), round(shown[name]["high"], 2)) for name in FLAKY}
    assert bounds == {"refund-17": (0.22, 0.61), "date-parse-03": (0.6, 0.93), "tone-22": (0.72, 0.98)}
    assert [round(shown[name]["share"], 2) for name in FLAKY] == [0.49, 0.33, 0.18]
    suite = ET.parse(junit).getroot()[0]
    kinds = {test.get("name"): test[0].get("type") for test in suite if test[0].tag == "failure"}
    assert kinds == {"refund-17": "fail", "date-parse-03": "undecided", "tone-22": "undecided"}
    text = rankwatch("gate", *call, code=4).stdout
    assert text.startswith("▼ Fail: refund-17 is below the floor of 0.80")
    assert "Below 14 repeats no case can reach 0.80." in text


def test_all_cases_pass_without_a_correction_and_k_in_a_row_take_more(tmp_path):
    path = write(tmp_path / "r.jsonl", cases(STEADY))
    assert judged(path, "--per-case", 0.8, code=0)["verdict"] == "pass"
    found = judged(path, "--per-case", 0.8, "--pass-k", 3, code=3)
    assert (found["verdict"], found["repeats_needed"], found["mean"]) == ("undecided", 41, 1.0)
    assert judged(path, "--per-case", 0.8, "--pass-k", 3, "--on-undecided", "pass", code=0)["verdict"] == "undecided"


def test_every_file_is_a_run_and_a_case_without_an_answer_stays_open(tmp_path):
    (tmp_path / "runs").mkdir()
    for run in range(14):
        answers = [each | {"run": str(run)} for each in cases({"a": 1, "b": 1}, repeats=1)]
        write(tmp_path / "runs" / f"run-{run:02d}.jsonl", answers)
    assert judged(tmp_path / "runs", "--per-case", 0.8, code=0)["answers"] == 14
    old = write(tmp_path / "old.jsonl", cases({"a": 1, "b": 1, "c": 1}, repeats=1, model="old"))
    found = judged(tmp_path / "runs", old, "--per-case", 0.8, "--baseline", "old", code=3)
    assert [(each["case"], each["right"], each["of"], each["state"]) for each in found["cases"]] == [
        ("a", 14, 14, "reaches"),
        ("b", 14, 14, "reaches"),
        ("c", 0, 0, "open"),
    ]


def test_a_copy_of_a_run_is_no_run(tmp_path):
    (tmp_path / "runs").mkdir()
    for run in range(7):
        answers = [each | {"attributes": {"ms": run}} for each in cases({"a": 1, "b": 1}, repeats=1)]
        path = write(tmp_path / "runs" / f"run-{run}.jsonl", answers)
        (tmp_path / "runs" / f"again-{run}.jsonl").write_bytes(path.read_bytes())
    call = (tmp_path / "runs", "--per-case", 0.8)
    refused = " ".join(rankwatch("gate", *call, code=1).stderr.split())
    assert "each counts as a run; remove the copy" in refused
    assert "again-" in refused
    allowed = judged(*call, "--equal-runs", code=0)
    assert (allowed["answers"], allowed["equal_runs"]) == (14, True)
    noted = rankwatch("gate", tmp_path / "runs", "--check", "--margin", 0.6, code=2).stderr
    assert "a copy is no run" in " ".join(noted.split())


def test_a_case_is_below_only_if_it_is_with_all_cases_counted(tmp_path):
    path = write(tmp_path / "r.jsonl", cases(STEADY | {"bad": 12}))
    found = judged(path, "--per-case", 0.8, code=3)
    assert [each["state"] for each in found["cases"] if each["case"] == "bad"] == ["open"]
    text = " ".join(rankwatch("gate", path, "--per-case", 0.8, code=3).stdout.split())
    assert "The upper bound of 1 open case is below the floor, but not with 58 cases counted (Holm)." in text


def test_an_answer_without_a_score_keeps_a_gate_from_passing(tmp_path):
    crashed = [each | {"repeat": 20, "score": None} for each in cases({"crashed": 1}, repeats=1)]
    path = write(tmp_path / "r.jsonl", [*cases(STEADY), *crashed])
    found = judged(path, "--per-case", 0.8, code=3)
    assert (found["verdict"], found["reached"], found["skipped"]) == ("undecided", 57, 1)
    assert "so the gate cannot pass" in " ".join(rankwatch("gate", path, "--per-case", 0.8, code=3).stdout.split())


def test_a_line_that_cannot_be_read_keeps_a_gate_from_passing(tmp_path):
    broken = [each | {"repeat": 20 + k, "score": "broken"} for k, each in enumerate(cases({"a": 4}, repeats=4))]
    path = write(tmp_path / "r.jsonl", [*cases({"a": 20}), *broken])
    found = judged(path, "--per-case", 0.8, code=3)
    assert (found["verdict"], found["reached"], found["skipped"]) == ("undecided", 1, 4)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--per-case", 8), "give a share of right answers between 0 and 1"),
        (("--per-case", 0.8, "--margin", 0.02), "omit --margin"),
        (("--per-case", 0.8, "--check"), "omit --check"),
        (("--per-case", 0.8, "--exact"), "omit --exact"),
        (("--per-case", 0.8, "--format", "svg"), "omit --format svg"),
        (("--per-case", 0.8, "--items", 5), "omit --items"),
        (("--per-case", 0.8, "--candidate", "nwe"), "did you mean new?"),
        (("--per-case", 0.8, "--baseline", "new"), "the files have the baseline alone"),
        (("--pass-k", 3, "--pair", "new", "old", "--margin", 0.1), "--pass-k: is for --per-case"),
        (("--pass-k", 3, "--check", "--margin", 0.1), "omit --pass-k"),
        (("--equal-runs", "--pair", "new", "old", "--margin", 0.1), "--equal-runs: is for --per-case and --replay"),
        (("--per-case", 0.8, "--pass-k", 10**400), "use 1000 or less"),
    ],
)
def test_a_call_that_cannot_be_right_is_refused(tmp_path, flags, words):
    path = write(tmp_path / "r.jsonl", cases({"a": 1}, repeats=2))
    assert words in rankwatch("gate", path, *flags, code=2).stderr.replace("\n", " ")


def test_a_graded_score_is_no_right_answer(tmp_path):
    path = write(tmp_path / "r.jsonl", cases({"a": 1}, repeats=2, score=0.5))
    assert "it counts right answers, 0 or 1" in rankwatch("gate", path, "--per-case", 0.8, code=2).stderr.replace(
        "\n", " "
    )

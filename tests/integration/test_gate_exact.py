"""`rankwatch gate --run --exact`: the verdict of the full run, before its end."""

import json
import random
import shlex
import sys

import pytest

from tests.commands import rankwatch, write

HARNESS = """
import json, pathlib, sys
scores = json.loads(pathlib.Path(sys.argv[2]).read_text("utf-8"))
for item in pathlib.Path(sys.argv[1]).read_text("utf-8").splitlines():
    print(json.dumps({"benchmark": "b", "item_id": item, "model": "new", "score": scores[item]}))
"""


def suite(place, lost, won, items=300):
    """A baseline that is right on 70 % of the items, and a candidate that loses and wins some: their files, and its harness."""
    old = {f"i{k}": int(k % 10 < 7) for k in range(items)}
    rng = random.Random(3)
    right, wrong = ([item for item, score in old.items() if score == value] for value in (1, 0))
    new = old | dict.fromkeys(rng.sample(right, lost), 0) | dict.fromkeys(rng.sample(wrong, won), 1)
    paths = [
        write(
            place / f"{name}.jsonl",
            [{"benchmark": "b", "item_id": k, "model": name, "score": v} for k, v in of.items()],
        )
        for name, of in (("old", old), ("new", new))
    ]
    (place / "scores.json").write_text(json.dumps(new))
    (place / "harness.py").write_text(HARNESS)
    return paths, shlex.join([sys.executable, str(place / "harness.py"), "{items}", str(place / "scores.json")])


@pytest.mark.parametrize(
    ("lost", "won", "expect", "code", "most"),
    [(2, 2, "pass", 0, 240), (40, 5, "fail", 4, 270), (12, 4, "pass", 3, 300)],
    ids=["pass", "fail", "undecided"],
)
def test_it_is_the_verdict_of_the_full_run_from_fewer_items(tmp_path, lost, won, expect, code, most):
    (old, new), command = suite(tmp_path, lost, won)
    question = ("--pair", "new", "old", "--margin", 0.03, "--format", "json")
    (full,) = json.loads(rankwatch("gate", old, new, *question, code=code).stdout)["comparisons"]
    call = ("gate", old, *question, "--run", command, "--exact", "--expect", expect, "--folder", tmp_path / "f")
    answer = json.loads(rankwatch(*call, "--seed", "s", "--block", 30, code=code).stdout)
    (row,) = answer["comparisons"]
    assert (row["verdict"], row["rule"]) == (full["verdict"], "exact test")
    assert row["decided_at_n"] <= row["n"] <= most
    assert row["facts"][-1] | {"at": 0} == {"code": "certain", "items": 300, "missing": 300 - row["n"], "at": 0}
    assert f"evaluated {row['n']} of 300 items" in answer["evaluation"]
    assert [each["code"] for each in row["assumptions"]] == ["independent"]
    again = json.loads(rankwatch(*call, "--block", 30, code=code).stdout)
    assert again == answer


def test_its_order_feeds_no_evidence_along_it(tmp_path):
    (old, _), command = suite(tmp_path, 2, 2)
    call = ("gate", old, "--pair", "new", "old", "--margin", 0.03, "--run", command, "--folder", tmp_path / "f")
    rankwatch(*call, "--exact", "--block", 100)
    assert "holds an evaluation with another order" in rankwatch(*call, "--block", 100, code=1).stderr
    declared = write(tmp_path / "declared.jsonl", [{"declare": "b", "order": {"policy": "trusted"}}])
    call = ("gate", declared, *call[1:-1], tmp_path / "g", "--exact")
    assert "must not feed it" in rankwatch(*call, code=2).stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--exact",), "add --run COMMAND"),
        (("--exact", "--run", "x {items}", "--margin", "2%"), "--exact: give the margin in score units"),
        (("--expect", "fail", "--run", "x {items}"), "--expect: is for --exact"),
    ],
)
def test_what_it_cannot_use_is_refused(tmp_path, flags, message):
    (old, _), _ = suite(tmp_path, 2, 2)
    margin = () if "--margin" in flags else ("--margin", 0.03)
    assert (
        message
        in rankwatch("gate", old, "--pair", "new", "old", *margin, *flags, "--folder", tmp_path / "f", code=2).stderr
    )


def test_means_of_repeats_have_the_verdict_of_the_full_run_and_several_candidates_equal_shares(tmp_path):
    """Each answers as a gate on all of its items does, at its share of alpha."""
    rng = random.Random(4)
    old = [rng.choice((0, 1 / 3, 2 / 3, 1)) for _ in range(200)]

    def answers(name, lost):
        records = []
        for k, mean in enumerate(old):
            right = round(3 * mean) - (rng.random() < lost)
            records += [
                {"benchmark": "b", "item_id": f"i{k}", "model": name, "repeat": r, "score": int(r < right)}
                for r in range(3)
            ]
        return write(tmp_path / f"{name}.jsonl", records)

    results = {name: answers(name, lost) for name, lost in {"old": 0, "same": 0, "worse": 0.6, "close": 0.075}.items()}
    command = f"grep -wFf {{items}} {tmp_path}/{{candidate}}.jsonl"
    call = ("gate", results["old"], "--baseline", "old", "--margin", 0.08, "--format", "json")
    names = ("same", "worse", "close")
    flags = [part for name in names for part in ("--candidate", name)]
    found = json.loads(rankwatch(*call, *flags, "--exact", "--run", command, "--folder", tmp_path / "f", code=4).stdout)
    for row, whole in zip(found["comparisons"], found["candidates"], strict=True):
        alone = (*call[:2], results[row["candidate"]], *call[2:], "--alpha", row["alpha"])
        full = json.loads(rankwatch(*alone, code={"pass": 0, "undecided": 3, "fail": 4}[row["verdict"]]).stdout)[
            "comparisons"
        ][0]
        assert (row["verdict"], row["rule"]) == (full["verdict"], "bets")
        assert whole["verdict"] == row["verdict"]
    assert [each["alpha"] for each in found["comparisons"]] == pytest.approx([0.05 / 3] * 3)
    assert "Holm" not in found["family"]


def test_graded_scores_are_refused(tmp_path):
    (old, _), command = suite(tmp_path, 2, 2)
    (tmp_path / "scores.json").write_text(json.dumps({f"i{k}": 0.5 for k in range(300)}))
    call = (
        "gate",
        old,
        "--pair",
        "new",
        "old",
        "--margin",
        0.03,
        "--run",
        command,
        "--exact",
        "--folder",
        tmp_path / "f",
    )
    assert "the output has scores between 0 and 1" in rankwatch(*call, code=1).stderr

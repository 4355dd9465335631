"""`rankwatch gate --run`: evaluate until decided, in a folder that survives a kill."""

import gzip
import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import environment, rankwatch, write
from tests.forked import RANKWATCH

HARNESS = """
import json, pathlib, sys
ids = pathlib.Path(sys.argv[1]).read_text("utf-8").splitlines()
with open(sys.argv[2], "a", encoding="utf-8") as calls:
    calls.write(str(len(ids)) + chr(10))
{extra}
for item in ids:
    print(json.dumps({{"benchmark": "bench", "item_id": item, "model": "new", "score": {score}}}))
"""
IDS = [f"item {k}; touch /tmp/rankwatch-injected; $(touch /tmp/rankwatch-injected) `x` \"'" for k in range(600)]


@pytest.fixture
def place(tmp_path):
    """A folder with the baseline's results."""
    rng = random.Random(3)
    baseline = [
        {"benchmark": "bench", "item_id": item, "model": "old", "score": int(rng.random() < 0.8)} for item in IDS
    ]
    write(tmp_path / "base.jsonl", baseline)
    return tmp_path


def harness(place, score="1", extra=""):
    """The command line of a harness that gives each item a score, and counts its calls."""
    script = place / "harness.py"
    script.write_text(HARNESS.format(score=score, extra=extra))
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{items}} {shlex.quote(str(place / 'calls'))}"


def gate(place, command, *more):
    return (
        "gate",
        place / "base.jsonl",
        "--pair",
        "new",
        "old",
        "--margin",
        "0.03",
        "--run",
        command,
        "--folder",
        place / "folder",
        *more,
    )


def calls(place):
    return [int(line) for line in (place / "calls").read_text().split()]


@pytest.mark.fault("attacks", "item ids that are shell commands, in `gate --run`", "text; nothing is run")
def test_it_stops_as_soon_as_the_gate_is_decided_and_asks_nothing_again(place):
    command = harness(place, extra="import time")
    call = gate(place, command, "--seed", "s", "--block", 25)
    report = json.loads(rankwatch(*call, "--format", "json", code=0).stdout)
    (row,) = report["comparisons"]
    assert row["policy"] == "committed"
    assert row["n"] == sum(calls(place)) < 200
    assert row["n"] - 25 < row["decided_at_n"] <= row["n"]
    assert f"evaluated {row['n']} of 600 items; {600 - row['n']} items" in report["evaluation"]
    before = calls(place)
    assert "pass: new is not worse" in rankwatch(*call, code=0).stdout
    assert calls(place) == before
    assert not Path("/tmp/rankwatch-injected").exists()


def test_the_answer_names_what_is_known_of_the_scores_of_the_baseline(place):
    known = {"declare": "bench", "provenance": {"score_choice": True, "begun_again": True}}
    write(place / "known.jsonl", [known])
    call = [*gate(place, harness(place), "--format", "json")]
    call.insert(1, place / "known.jsonl")
    (row,) = json.loads(rankwatch(*call, code=0).stdout)["comparisons"]
    codes = ["independent", "begun_again", "score_choice"]
    assert [each["code"] for each in row["assumptions"]] == ["committed", *codes]


@pytest.mark.parametrize(
    ("first", "score", "codes"),
    [
        ("None", "1", ["score_choice"]),
        ("1", "0", ["score_choice"]),
        ("1", "1", []),
        ("1, 'repeat': 1", "1", ["repeated"]),
    ],
    ids=["a null that is filled", "in conflict", "the same twice", "repeats"],
)
def test_the_answer_names_which_of_several_scores_of_a_candidate_counts(place, first, score, codes):
    """Wrong answers come as null, and again until they are right: a candidate that is far worse passes."""
    row = f'{{"benchmark": "bench", "item_id": item, "model": "new", "score": {first}}}'
    again = f"for item in ids:\n    print(json.dumps({row}))"
    call = [*gate(place, harness(place, score=score, extra=again), "--format", "json")]
    code = 0 if score == "1" else 4
    for _ in range(2):  # the second call evaluates nothing
        (row,) = json.loads(rankwatch(*call, code=code).stdout)["comparisons"]
        assert [each["code"] for each in row["assumptions"]] == ["committed", "independent", *codes]
    assert len(calls(place)) == row["n"] // 12


def test_the_answer_names_that_the_baseline_lacks_scores(place):
    """A baseline without the items that the candidate loses: it is 16 points worse, and passes."""
    lacking = [json.loads(line) | {"score": None} for line in (place / "base.jsonl").read_text().splitlines()[:100]]
    write(
        place / "base.jsonl",
        lacking + [json.loads(line) for line in (place / "base.jsonl").read_text().splitlines()[100:]],
    )
    (row,) = json.loads(rankwatch(*gate(place, harness(place), "--format", "json"), code=0).stdout)["comparisons"]
    assert [each["code"] for each in row["assumptions"]] == ["committed", "independent", "baseline_items"]
    assert "which items have a score of the baseline does not depend on the scores" in row["assumption"]


def test_the_verdict_does_not_depend_on_the_size_of_the_blocks(place):
    command = harness(place)
    rows = []
    for block in (10, 40, 600):
        call = [*gate(place, command, "--seed", "s", "--block", block)]
        call[call.index("--folder") + 1] = place / f"folder-{block}"
        rows.append(json.loads(rankwatch(*call, "--format", "json", code=0).stdout)["comparisons"][0])
    assert len({(row["verdict"], row["decided_at_n"]) for row in rows}) == 1


def test_a_worse_candidate_fails_early_and_a_budget_leaves_the_gate_open(place):
    worse = harness(place, score="0")
    short = ("--budget", 5, "--block", 10)
    refused = rankwatch(*gate(place, worse, *short, "--write", f"json={place / 'short.json'}"), code=2)
    assert "--budget 5: equal answers pass at item" in refused.stderr
    report = json.loads((place / "short.json").read_text())
    assert (report["verdict"], report["exit_code"]) == ("not_run", 2)
    (fact,) = report["comparisons"][0]["facts"]
    assert (fact["attainable"], fact["items"], fact["least"], fact["margins"]) == ("only_wins", 5, None, [])
    assert not (place / "calls").exists()
    printed = rankwatch(*gate(place, worse, "--budget", 5, "--block", 10, "--run-anyway"), code=3).stdout
    assert "evaluated 5 of 600 items, the budget" in printed
    assert calls(place) == [5]
    printed = rankwatch(*gate(place, worse, "--block", 10), code=4).stdout
    assert printed.startswith("fail: new is worse than old on bench")
    assert sum(calls(place)) <= 35


@pytest.mark.fault(
    "processes", "`gate --run` killed inside a block", "goes on; finished blocks are not evaluated again"
)
def test_a_killed_run_goes_on_where_it_was(place):
    slow = harness(place, extra="import time; time.sleep(0.3)")
    call = [str(each) for each in gate(place, slow, "--block", 4)]
    process = subprocess.Popen(
        [RANKWATCH, *call],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    blocks = place / "folder/candidates/new"
    while not (blocks / "block-0002/scores.json").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = len(list(blocks.glob("block-*/scores.json")))
    assert done >= 2
    (place / "calls").unlink()
    again = rankwatch(*call, "--format", "json", code=0)
    assert f"{done} blocks are done and not evaluated again" in again.stderr
    # The command of the block under way may outlive the kill, and count its call late.
    late = 4 * done + sum(calls(place)) - json.loads(again.stdout)["comparisons"][0]["n"]
    assert late in {0, 4}


@pytest.mark.fault("processes", "`gate --run` interrupted", "its command and all that it has started end")
def test_an_interrupted_gate_ends_its_command_and_what_that_has_started(place):
    script = f"echo $$ > {shlex.quote(str(place / 'pid'))}; sleep 77; true"
    call = [str(each) for each in gate(place, f"sh -c {shlex.quote(script)} {{items}}")]
    process = subprocess.Popen([RANKWATCH, *call], env=environment(), stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not ((place / "pid").exists() and (place / "pid").read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "interrupted; the blocks that are done are kept: the same call goes on from here" in errors
    group = (place / "pid").read_text().strip()
    processes = subprocess.run(["ps", "-A", "-o", "pgid=,stat="], capture_output=True, text=True, check=True).stdout
    left = [stat for pgid, stat in map(str.split, processes.splitlines()) if pgid == group]
    assert all(stat.startswith("Z") for stat in left)


@pytest.mark.fault("processes", "the evaluation that `gate --run` starts fails", "exit 1; finished blocks are kept")
def test_a_failing_command_keeps_what_is_done(place):
    command = harness(place, extra="if len(open(sys.argv[2]).read().split()) == 3: sys.exit(7)")
    call = gate(place, command, "--block", 5)
    assert "block 3: the command ended with exit code 7" in rankwatch(*call, code=1).stderr
    assert len(calls(place)) == 3
    printed = rankwatch(*call, code=0).stdout
    # The command might have failed because of the scores: its output is kept, and the sentence names what this assumes.
    assert "; a block broke off and was evaluated again once" in printed
    assert "no block that was evaluated again broke off because of its scores" in printed
    assert (place / "folder/candidates/new/block-0003.broken-1/output/results.jsonl").exists()


@pytest.mark.parametrize(
    ("command", "more", "code", "words"),
    [
        ("run.py --all", (), 2, "the command does not take the items; add {items}"),
        ("run.py --ids={ids}", (), 2, "{ids} has to be an argument of its own"),
        ("run.py '{items}", (), 2, "close its quotes"),
        ("/nonexistent {items}", (), 1, "check the command"),
        ("true {items}", (), 1, "the file is empty"),
        ("true {items} {output}", (), 1, "wrote nothing to {output}"),
        ("true {items}", ("--items", "600"), 2, "commits to an order of its own; omit --items"),
    ],
)
def test_a_command_that_cannot_be_right(place, command, more, code, words):
    assert words in rankwatch(*gate(place, command, *more), code=code).stderr


def test_another_question_in_the_same_folder_is_refused(place):
    command = harness(place)
    rankwatch(*gate(place, command), code=0)
    other = [str(each) for each in gate(place, command)]
    other[other.index("0.03")] = "0.04"
    assert "holds an evaluation with another margin" in rankwatch(*other, code=1).stderr
    base = (place / "base.jsonl").read_text()
    (place / "base.jsonl").write_text(base.replace('"score": 1', '"score": 0', 1))
    assert "another set of baseline scores" in rankwatch(*gate(place, command), code=1).stderr


@pytest.mark.parametrize("others", [["third"], ["new", "third"]])
def test_a_candidate_that_is_added_or_exchanged_is_refused_before_anything_is_evaluated(place, others):
    """Each candidate has a share of alpha: with another list in the same folder they would add up to more."""
    command = harness(place) + " {candidate}"
    first = [str(each) for each in gate(place, command)]
    rankwatch(*first, code=0)
    (place / "calls").unlink()
    pair = first.index("--pair")
    other = [*first[:pair], "--baseline", "old", *first[pair + 3 :]]
    for candidate in others:
        other += ["--candidate", candidate]
    assert "holds an evaluation with another" in (error := rankwatch(*other, code=1).stderr)
    assert "list of candidates" in error
    assert not (place / "calls").exists()


def test_alpha_is_that_of_the_declaration(place):
    base = (place / "base.jsonl").read_text()
    (place / "base.jsonl").write_text(json.dumps({"declare": "bench", "alpha": 0.001, "items": 600}) + "\n" + base)
    call = gate(place, harness(place), "--format", "json")
    (row,) = json.loads(rankwatch(*call, code=0).stdout)["comparisons"]
    assert row["alpha"] == 0.001
    assert row["p_not_worse"] <= 0.001
    (row,) = json.loads(rankwatch(*call, "--alpha", "0.2", "--folder", place / "other", code=0).stdout)["comparisons"]
    assert row["alpha"] == 0.2


BATTLE = {"benchmark": "bench", "item_id": "i", "model_a": "old", "model_b": "x", "winner": "a"}


@pytest.mark.parametrize("run", [False, True])
@pytest.mark.parametrize(
    ("first", "code", "words"),
    [
        ({"declare": "bench", "weights": "equal-clusters"}, 2, "a margin is not available with weights; omit"),
        (BATTLE, 2, "a margin is not available with battles; compare two models without a margin"),
        (None, 1, "complete the file, and run the command again"),
    ],
)
def test_a_baseline_that_a_margin_has_no_meaning_for_is_refused(place, run, first, code, words):
    lines = [{**json.loads(line), "cluster": "c"} for line in (place / "base.jsonl").read_text().splitlines()]
    new = [{**each, "model": "x"} for each in lines]
    path = place / "base.jsonl"
    if first is None:
        whole = gzip.compress(write(path, lines + new).read_bytes())
        path = place / "base.jsonl.gz"
        path.write_bytes(whole[:-1000])
    else:
        write(path, [first] if first is BATTLE else [first, *lines, *new])
    call = [*gate(place, harness(place))]
    call[1], call[3] = path, "x"
    ended = rankwatch(*(call if run else call[: call.index("--run")]), code=code)
    assert words in ended.stderr
    assert not (place / "calls").exists()


def test_items_without_a_score_count_at_their_worst_and_this_is_printed(place):
    null = {"benchmark": "bench", "item_id": "never", "model": "old", "score": None}
    write(place / "base.jsonl", [null], mode="a")
    command = harness(place, score="1 if item != ids[0] else None")
    ended = rankwatch(*gate(place, command, "--block", 50, "--seed", "s"), code=0)
    assert "1 item of 50 without a score: at the worst, for example item" in ended.stderr
    assert "bench: 1 item of 601 without a score of the baseline: not evaluated" in ended.stderr


def test_the_output_of_another_model_is_named_and_that_of_the_baseline_is_refused(place):
    """A harness that runs the wrong model would pass."""
    command = harness(place)
    script = place / "harness.py"
    written = script.read_text()
    script.write_text(written.replace('"model": "new"', '"model": "old"'))
    assert "the output has no results of new, but of old" in rankwatch(*gate(place, command), code=1).stderr
    script.write_text(
        written.replace("for item in ids:", "for epoch, item in enumerate(2 * ids):").replace(
            '"model"', '"epoch": epoch // len(ids), "model"'
        )
    )
    assert "has scores of new in several epochs" in rankwatch(*gate(place, command), code=1).stderr
    script.write_text(written.replace('"model": "new"', '"model": "new-7b"'))
    ended = rankwatch(*gate(place, command), code=0)
    assert ended.stderr.count("the output names the model new-7b; its scores count as those of new") == 1


def test_graded_scores_and_repeats_are_units_of_their_items(place):
    graded = [{**json.loads(line), "score": 0.5} for line in (place / "base.jsonl").read_text().splitlines()]
    write(place / "base.jsonl", graded)
    command = harness(place, score="0.5")
    (row,) = json.loads(rankwatch(*gate(place, command, "--format", "json"), code=0).stdout)["comparisons"]
    assert row["only_candidate"] is None
    assert row["gap"] == 0


SKILLS = """
import json, pathlib, sys
model, ids = sys.argv[1], pathlib.Path(sys.argv[2]).read_text("utf-8").splitlines()
score = {"good": 1, "bad": 0, "other": 1}[model]
with open(sys.argv[3], "a", encoding="utf-8") as calls:
    calls.write(f"{model} {len(ids)}" + chr(10))
for item in ids:
    print(json.dumps({"benchmark": "bench", "item_id": item, "model": model, "score": score}))
"""


def test_several_candidates_are_evaluated_one_after_the_other(place):
    script = place / "skills.py"
    script.write_text(SKILLS)
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(script))} {{candidate}} {{items}} {shlex.quote(str(place / 'calls'))}"
    question = ("gate", place / "base.jsonl", "--baseline", "old", "--margin", "0.03", "--seed", "s", "--block", 20)
    call = (*question, "--candidate", "good", "--candidate", "bad", "--candidate", "other", "--run", command)

    def judged(*more, code):
        (place / "calls").write_text("")
        report = json.loads(rankwatch(*call, *more, "--format", "json", code=code).stdout)
        evaluated = [line.split() for line in (place / "calls").read_text().splitlines()]
        return report, {model: sum(int(n) for name, n in evaluated if name == model) for model, _ in evaluated}

    report, items = judged("--folder", place / "all", code=4)
    assert [(each["model"], each["verdict"]) for each in report["candidates"]] == [
        ("good", "pass"),
        ("bad", "fail"),
        ("other", "pass"),
    ]
    rows = report["comparisons"]
    assert items == {row["candidate"]: row["n"] for row in rows}
    for row in rows:  # each at its share of alpha
        assert row["alpha"] == pytest.approx(0.05 / 3)
        assert min(row["p_not_worse"], row["p_worse"]) <= 0.05 / 3
    total = sum(items.values())
    assert f"evaluated {total} of 1,800 items of 3 candidates" in report["evaluation"]
    assert judged("--folder", place / "all", code=4) == (report, {})

    # The cheapest first, and none after the first that passes; a table may have prices of other models.
    (place / "prices.csv").write_text("model,price\nother,9\nbad,1\ngood,2\nunknown,3\n")
    priced = ("--prices", place / "prices.csv", "--folder", place / "priced")
    report, items = judged(*priced, code=0)
    assert report["cheapest"] == "good"
    assert items.keys() == {"bad", "good"}
    assert report["comparisons"][2]["reason"] == "Not evaluated: good passes and costs no more."
    assert [(each["code"], each["cheaper"]) for each in report["comparisons"][2]["facts"]] == [
        ("not_evaluated", "good")
    ]
    # A budget is of all candidates.
    report, items = judged("--folder", place / "budget", "--budget", items["bad"], "--run-anyway", code=3)
    assert sum(items.values()) == report["comparisons"][0]["n"]
    assert report["comparisons"][2]["reason"] == "Not evaluated: the budget is spent."
    assert [(each["code"], each["cheaper"]) for each in report["comparisons"][2]["facts"]] == [("not_evaluated", None)]
    # Blocks that are done count under any budget: a smaller one hides no failure.
    report, items = judged("--folder", place / "all", "--budget", 1, code=4)
    assert (report["verdict"], items) == ("fail", {})
    without = rankwatch(*call[:-1], "true {items}", "--folder", place / "x", code=2).stderr
    assert "there are several; add {candidate}" in without

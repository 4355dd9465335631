"""Result files as boards and harnesses write them, once answered silently wrong: repeats, missing items, regrades, exact scores."""

import csv
import io
import json

import numpy as np
import pytest

from tests.commands import rankwatch, report, watch_once, write


def scored(item, model, score, **fields):
    return {"benchmark": "bench", "item_id": str(item), "model": model, "score": score, **fields}


def test_labels_from_1_to_8_are_eight_repeats(tmp_path):
    """No item has a repeat 0: a report had no items, and ended with exit code 0."""
    rng = np.random.default_rng(1)
    right = rng.random((60, 2, 8)) < np.array([0.8, 0.3])[:, None]
    path = write(
        tmp_path / "a.jsonl",
        [
            scored(item, model, int(right[item, m, label - 1]), repeat=label)
            for item in range(60)
            for m, model in enumerate("ab")
            for label in range(1, 9)
        ],
    )
    (benchmark,) = report(path)[0]["benchmarks"]
    assert (benchmark["items"], benchmark["events"], benchmark["rejected"]) == (60, 960, 0)
    assert {m["model"]: (m["items"], m["mean"], m["repeats"]["min"]) for m in benchmark["models"]} == {
        model: (60, pytest.approx(right[:, m].mean(), abs=1e-12), 8) for m, model in enumerate("ab")
    }
    assert benchmark["pairs"][0]["decided"]["anytime_family"] == "a"


@pytest.mark.parametrize("declared", [True, False])
def test_declared_repeats_drop_no_item_with_fewer_and_no_run_beyond(tmp_path, declared):
    rng = np.random.default_rng(2)
    runs = {(item, model): (rng.random(rng.integers(3, 13)) < 0.5).astype(int) for item in range(40) for model in "ab"}
    events = [
        scored(item, model, int(score), repeat=label)
        for (item, model), scores in runs.items()
        for label, score in enumerate(scores)
    ]
    path = write(tmp_path / "a.jsonl", [*([{"declare": "bench", "repeats": 8}] if declared else []), *events])
    (benchmark,) = report(path)[0]["benchmarks"]
    means = {model: [scores.mean() for (_, of), scores in runs.items() if of == model] for model in "ab"}
    for model in benchmark["models"]:
        assert (model["items"], model["mean"]) == (40, pytest.approx(np.mean(means[model["model"]]), abs=1e-12))
    (pair,) = benchmark["pairs"]
    gap = np.array(means[pair["model_a"]]) - np.array(means[pair["model_b"]])
    assert (pair["n"], pair["gap"]) == (40, pytest.approx(gap.mean(), abs=1e-12))


def test_what_is_absent_at_the_end_of_the_files_is_not_still_missing(tmp_path):
    """A model that was scored on 86 % of the items, and leads one by 15 points."""
    answers = {"part": lambda k: int(k % 20 < 9), "full": lambda k: int(k % 10 < 3 or k % 14 < 2)}
    events = [
        scored(k, model, None if model == "part" and k % 14 == 0 else answer(k))
        for model, answer in answers.items()
        for k in range(700)
        if model == "full" or k % 14 != 1
    ]
    path = write(tmp_path / "a.jsonl", events)
    (benchmark,) = report(path)[0]["benchmarks"]
    (pair,) = benchmark["pairs"]
    assert {m["model"]: round(m["coverage"], 2) for m in benchmark["models"]} == {"part": 0.86, "full": 1.0}
    assert pair["gap"] == pytest.approx(0.15, abs=0.01)
    assert (pair["n"], pair["status"]) == (600, "exhausted")
    assert "still" not in pair["reason"]
    assert "100 items are missing for this pair and count against the leader" in pair["reason"]
    assert "It would be decided for part if missing items were ignored (missing: ignorable)." in pair["reason"]
    (ignored,) = report(path, "--missing", "ignorable")[0]["benchmarks"][0]["pairs"]
    assert (ignored["decided"]["anytime_family"], ignored["status"]) == ("a", "decided")


def test_a_score_may_come_after_a_null(tmp_path):
    path = write(
        tmp_path / "a.jsonl", [scored(k, m, None if k < 9 else int(m == "a")) for k in range(20) for m in "ab"]
    )
    later = write(tmp_path / "b.jsonl", [scored(k, m, int(m == "a")) for k in range(9) for m in "ab"])
    for (benchmark,) in (
        report(path, later)[0]["benchmarks"],
        json.loads(watch_once(tmp_path / "data", path, later, "--items", 20))["benchmarks"],
    ):
        assert (benchmark["conflicts"], benchmark["duplicates"]) == (0, 0)
        assert [m["items"] for m in benchmark["models"]] == [20, 20]


def test_scores_again_are_listed_by_model_and_item_and_under_a_new_epoch_supersede(tmp_path):
    board = [scored(k, m, int((k + j) % 4 > j)) for j, m in enumerate("abc") for k in range(120)]
    again = [{**each, "score": 1 - each["score"]} for each in board if each["model"] == "b"][:7]
    first, second = write(tmp_path / "1.jsonl", board), write(tmp_path / "2.jsonl", again)
    (benchmark,) = report(first, second, "--conflicts", tmp_path / "conflicts.csv")[0]["benchmarks"]
    assert (benchmark["conflicts"], benchmark["conflicts_by_model"]) == (7, {"b": 7})
    rows = list(csv.DictReader(io.StringIO((tmp_path / "conflicts.csv").read_text())))
    assert {(row["model"], row["item_id"], float(row["old_score"]), float(row["new_score"])) for row in rows} == {
        ("b", each["item_id"], 1 - each["score"], each["score"]) for each in again
    }
    assert "7 scores contradict an earlier score of the same model, item and repeat: b (7)" in " ".join(
        rankwatch("report", first, second).stdout.split()
    )
    data = tmp_path / "data"
    watch_once(data, first, "--items", 120)
    (after,) = json.loads(watch_once(data, second, "--epoch", "next"))["benchmarks"]
    assert after["conflicts"] == 0
    changes = [json.loads(line) for line in (data / "verdicts.jsonl").read_text().splitlines()]
    decided, superseded = (
        {(c["model_a"], c["model_b"]) for c in changes if c["kind"] == kind and "b" in (c["model_a"], c["model_b"])}
        for kind in ("decided", "superseded")
    )
    assert decided == superseded != set()
    assert {(m["model"], m["epoch"]) for m in after["models"]} == {("a", 0), ("b", 1), ("c", 0)}
    table = rankwatch("report", first, second, "--epoch", "next", "--format", "csv").stdout
    for rows in (after["pairs"], csv.DictReader(io.StringIO(table))):
        current = [row for row in rows if row["status"] != "superseded"]
        assert len(current) == 3
        for row in current:
            for side in "ab":
                assert int(row[f"epoch_{side}"]) == (row[f"model_{side}"] == "b")


def test_a_flag_that_no_file_uses_is_printed(tmp_path):
    """`--metric` and the like choose among what a log of a harness holds; of other files they were ignored without a word."""
    events = [scored(k, m, int((k + j) % 3 > 0)) for k in range(20) for j, m in enumerate("ab")]
    path, other = write(tmp_path / "a.jsonl", events), write(tmp_path / "b.jsonl", [scored("x", "c", 1)])
    expected, _ = report(path, other)
    flags = ("--metric", "acc", "--scorer", "match", "--filter", "none", "--cluster", "none", "--benchmark", "mine")
    result, notes = report(path, other, *flags)
    # That flags may have chosen the scores is all that the answer says besides.
    for board in expected["benchmarks"]:
        besides = ", and that which score of an item counts does not depend on the scores"
        board["assumption"] += besides
        board["order"]["reason"] += besides
        for named in (board, board["order"]["facts"][0]):
            named["assumptions"].append({"code": "score_choice"})
    assert result == expected
    kind = "not used for files that hold events, as this one does"
    assert notes == f"rankwatch: {path}: --metric, --filter, --scorer, --cluster, --benchmark are {kind}\n"
    watched = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", "--metric", "acc").stderr
    assert f"a.jsonl: --metric is {kind}" in watched
    table = tmp_path / "t.csv"
    table.write_text("item_id,model,score\n1,a,1\n1,b,0\n")
    named = tmp_path / "named.csv"
    named.write_text("task,item_id,model,score\nmath,1,a,1\nmath,1,b,0\n")
    result, notes = report(named, "--benchmark", "quiz")
    assert [each["benchmark"] for each in result["benchmarks"]] == ["math"]
    assert (
        "--benchmark is not used for files that hold a table with the benchmark in a column, as this one does" in notes
    )
    notes = report(table, "--benchmark", "quiz", "--metric", "acc")[1]
    assert "t.csv: --metric is not used for files that hold a table" in notes


def test_a_choice_for_a_name_that_no_file_holds_ends_the_command(tmp_path):
    path = write(tmp_path / "a.jsonl", [scored(k, m, 50) for k in range(20) for m in "ab"])
    refused = rankwatch("report", path, "--scale", "bench=100", "--scale", "bensh=10", code=2)
    assert "--scale bensh=10: it applies to nothing that was read; it could apply to bench" in refused.stderr
    noted = rankwatch(
        *("watch", path, "--once", "--data-dir", tmp_path / "data", "--scale", "bench=100", "--scale", "bensh=10")
    )
    assert "--scale bensh=10: it applies to nothing that was read" in noted.stderr


def test_an_alias_of_a_model_that_no_file_holds_ends_the_command(tmp_path):
    path = write(tmp_path / "a.jsonl", [scored(k, m, 1) for k in range(5) for m in ("gpt-4", "gpt-4-0613", "z")])
    for command in (["report", path], ["gate", path, "--pair", "gpt-4", "z"]):
        refused = rankwatch(*command, "--alias", "gpt-4-06=gpt-4", code=2).stderr
        said = "--alias gpt-4-06=gpt-4: no file holds scores of gpt-4-06; the models are gpt-4-0613, gpt-4, z"
        assert said in refused
    assert "2 models" in rankwatch("report", path, "--alias", "gpt-4-0613=gpt-4").stdout


def test_scores_are_as_exact_as_they_came(tmp_path):
    """Thirds and sevenths: rounded to six decimals, ln e of such a file was off by 8.5e-5."""
    rng = np.random.default_rng(3)
    x = np.stack([rng.integers(0, 4, 4_000) / 3, rng.integers(0, 8, 4_000) / 7], axis=1)
    path = write(
        tmp_path / "a.jsonl", [scored(k, m, s) for k, row in enumerate(x) for m, s in zip("ab", row, strict=True)]
    )
    (benchmark,) = report(path)[0]["benchmarks"]
    (pair,) = benchmark["pairs"]
    d = (x[:, 0] - x[:, 1]) * (1 if pair["model_a"] == "a" else -1)
    bets = np.array([0.002, 0.005, 0.01, *np.arange(0.02, 0.99, 0.02)])
    capital = [np.log1p(sign * bets[:, None] * d).sum(axis=1) for sign in (1, -1)]
    halves = [np.logaddexp.reduce(each) - np.log(bets.size) for each in capital]
    assert (pair["log_e_a"], pair["log_e_b"]) == pytest.approx(halves, abs=1e-8)
    assert {m["model"]: m["mean"] for m in benchmark["models"]} == pytest.approx(
        {"a": x[:, 0].mean(), "b": x[:, 1].mean()}, abs=1e-12
    )

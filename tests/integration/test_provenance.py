"""What verdicts on files assume: flags, a rankwatch.toml and lines that came late, seeds, scores in conflict, suites with copies."""

import json
import random

import pytest

from stats import committed_order
from tests.commands import events, rankwatch, watch_once, write

MODELS = {"good": 0.9, "fair": 0.6, "bad": 0.3}
IDS = [f"q{k}" for k in range(60)]


@pytest.fixture
def results(tmp_path):
    return write(tmp_path / "runs.jsonl", events(random.Random(6), MODELS, 60))


def report(*arguments):
    done = rankwatch("report", *arguments, "--format", "json")
    return json.loads(done.stdout), done.stderr


def facts(*arguments):
    """The assumptions of the only benchmark, by code."""
    (benchmark,) = report(*arguments)[0]["benchmarks"]
    return {each.pop("code"): each for each in benchmark["assumptions"]}


def test_plain_files_assume_that_they_are_the_whole_benchmark_and_nothing_else(results):
    assert facts(results) == {"items_read": {"items": 60}, "independent": {}}


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        (["--alpha", "0.01"], ["alpha"]),
        (["--alpha", "0.05"], []),  # the default is no choice
        (["--models", "good,bad"], ["family"]),
        (["--family", "capacity:3"], ["family"]),
        (["--items", "60"], ["items"]),
        (["--order", "trusted"], ["order"]),
        (["--scores", "graded", "--missing", "ignorable"], ["scores", "missing"]),
        (["--goal", "best", "--alias", "good=great"], []),
    ],
)
def test_flags_come_after_the_scores_of_the_files(results, flags, parts):
    assert facts(results, *flags).get("declared_late", {"parts": []})["parts"] == parts


def test_a_published_size_is_no_choice(tmp_path):
    rows = [row | {"benchmark": "wnli"} for row in events(random.Random(6), MODELS, 71)]
    path = write(tmp_path / "runs.jsonl", rows)
    assert "declared_late" not in facts(path, "--items", "71")
    assert facts(path, "--items", "72")["declared_late"] == {"parts": ["items"]}


def test_a_rankwatch_toml_comes_after_the_scores_and_the_first_line_of_the_file_does_not(tmp_path):
    rows = events(random.Random(6), MODELS, 60)
    spec = {"declare": "bench", "items": 60, "alpha": 0.01, "family": {"models": list(MODELS)}}
    path = write(tmp_path / "runs.jsonl", [spec, *rows])
    assert facts(path) == {"completion": {}, "independent": {}}
    assert facts(path, "--alpha", "0.01") == {"completion": {}, "independent": {}}, "the flag says the same"
    (tmp_path / "rankwatch.toml").write_text("[benchmark.bench]\nalpha = 0.02\n")
    assert facts(path)["declared_late"] == {"parts": ["alpha"]}
    (tmp_path / "rankwatch.toml").unlink()
    path = write(tmp_path / "runs.jsonl", [spec, *rows, spec | {"alpha": 0.2, "version": 2}])
    assert facts(path)["declared_late"] == {"parts": ["alpha"]}


def test_the_question_of_a_gate_is_no_choice(results):
    answer = json.loads(
        rankwatch("gate", results, "--pair", "good", "bad", "--margin", "0.02", "--format", "json").stdout
    )
    assert answer["comparisons"][0]["assumptions"] == [{"code": "items_read", "items": 60}, {"code": "independent"}]
    late = ("--alpha", "0.01", "--models", "good,bad")
    answer = json.loads(
        rankwatch("gate", results, "--pair", "good", "bad", "--margin", "0.02", "--format", "json", *late).stdout
    )
    assert {"code": "declared_late", "parts": ["alpha"]} in answer["comparisons"][0]["assumptions"]


def test_watch_names_the_flags_if_the_files_have_scores_at_its_start(results, tmp_path):
    once = ("watch", "--once", results, "--items", "60", "--format", "json", "--data-dir", tmp_path / "data")
    (benchmark,) = json.loads(rankwatch(*once).stdout)["benchmarks"]
    assert {"code": "declared_late", "parts": ["items"]} in benchmark["assumptions"]


# --- the seed ---


def committed(seed):
    return {"declare": "bench", "order": {"policy": "committed", "seed": seed}, "item_ids": IDS}


def along(seed):
    order = [IDS[k] for k in committed_order(seed, IDS)]
    return [
        {"benchmark": "bench", "item_id": item, "model": model, "score": int(model == "good")}
        for item in order
        for model in ("good", "bad")
    ]


def test_the_first_seed_of_the_files_counts_and_its_line_is_named(tmp_path):
    write(tmp_path / "1.jsonl", [{"benchmark": "other", "item_id": "1", "model": "x", "score": 1}, committed("one")])
    write(tmp_path / "2.jsonl", [committed("ground"), *along("one")])
    result, errors = report(tmp_path, "--max-rejected", "0.5")
    (bench,) = (each for each in result["benchmarks"] if each["benchmark"] == "bench")
    place = str(tmp_path / "1.jsonl")
    assert {"code": "committed", "line": 2, "file": place} in bench["assumptions"]
    assert f"(line 2 of {place})" in bench["pairs"][0]["reason"]
    assert "has committed to a seed and its items at line 2 of" in errors


# --- which score counts ---


def gated(tmp_path, *flags, code=0):
    call = ("gate", tmp_path, "--pair", "new", "old", *flags, "--format", "json")
    return json.loads(rankwatch(*call, code=code).stdout)


@pytest.fixture
def retried(tmp_path):
    """Results of a candidate that is 8 points worse, and a run of it that sorts first in which most wrong answers are right."""
    rng = random.Random(2)
    easy = [rng.uniform(0.6, 0.95) for _ in range(800)]
    runs = {"old": [rng.random() < x for x in easy], "new": [rng.random() < x - 0.08 for x in easy]}
    runs["again"] = [right or rng.random() < 0.4 for right in runs["new"]]
    for name, (file, model) in {"old": ("3", "old"), "new": ("2", "new"), "again": ("1", "new")}.items():
        write(
            tmp_path / f"{file}.jsonl",
            [
                {"benchmark": "bench", "item_id": f"q{k}", "model": model, "score": int(right)}
                for k, right in enumerate(runs[name])
            ],
        )
    return tmp_path


def test_a_gate_takes_scores_in_conflict_at_their_worst_for_the_candidate(retried):
    (row,) = gated(retried, "--margin", "0.02", code=4)["comparisons"]
    assert row["conflict_rule"] == "worst"
    assert (row["verdict"], row["assumptions"][0]) == ("fail", {"code": "items_read", "items": 800})
    assert {"code": "score_choice"} in row["assumptions"]
    assert "Each counts at its worst for new" in row["conflicts"]
    (row,) = gated(retried, "--margin", "0.02", "--conflicts", "first", code=0)["comparisons"]
    assert (row["verdict"], row["conflict_rule"]) == ("pass", "first")
    assert {"code": "score_choice"} in row["assumptions"]
    assert "--conflicts first" in row["conflicts"]
    (row,) = gated(retried, "--margin", "0.02", "--conflicts", "last", code=4)["comparisons"]
    assert row["verdict"] != "pass"
    assert "--conflicts last" in row["conflicts"]
    assert {"code": "score_choice"} in row["assumptions"]


def test_scores_at_their_worst_for_the_candidate_are_a_choice_where_it_is_worse(tmp_path):
    rng = random.Random(4)
    twice = [row for seed in (4, 5) for row in events(random.Random(seed), {"new": 0.5}, 200)]
    write(tmp_path / "runs.jsonl", [*twice, *events(rng, {"old": 0.5}, 200)])
    worse = gated(tmp_path, code=4)
    assert "which score of an item counts does not depend on the scores" in worse["pair"]["reason"]
    (row,) = gated(tmp_path, "--margin", "0.02", code=4)["comparisons"]
    assert {"code": "score_choice"} in row["assumptions"]
    (row,) = gated(tmp_path, "--margin", "0.5", code=0)["comparisons"]
    assert {"code": "score_choice"} not in row["assumptions"]


def test_conflicts_of_the_baseline_count_at_their_best(retried):
    (retried / "3.jsonl").rename(retried / "0.jsonl")
    lower = [json.loads(line) | {"score": 0} for line in (retried / "0.jsonl").read_text().splitlines()]
    write(retried / "0-lower.jsonl", lower)
    first = gated(retried, "--conflicts", "first", code=0)
    worst = gated(retried, code=4)
    assert (first["decided"], first["conflict_rule"]) == ("a", "first")
    assert (worst["decided"], worst["conflict_rule"]) == ("b", "worst")
    counts = {worst["pair"][f"model_{side}"]: worst["pair"][f"p_{side}"] for side in "ab"}
    assert counts["old"] > 0.7 > counts["new"]


def test_flags_that_select_the_score_of_an_item_are_a_choice(tmp_path):
    rows = ["benchmark,item_id,model,score,f1"]
    rows += [f"bench,q{k},{m},{k % 2},{k % 3 % 2}" for k in range(60) for m in ("new", "old")]
    table = write(tmp_path / "runs.csv", rows)
    choice = {"code": "score_choice"}
    (plain,) = report(table)[0]["benchmarks"]
    (chosen,) = report(table, "--columns", "score=f1")[0]["benchmarks"]
    assert choice not in plain["assumptions"]
    assert chosen["assumptions"] == [*plain["assumptions"], choice]
    assert [pair["decided"] for pair in chosen["pairs"]] == [pair["decided"] for pair in plain["pairs"]]
    both = gated(tmp_path, "--margin", "0.3", "--columns", "score=score", "--columns", "score=f1")
    assert all(choice in row["assumptions"] for row in both["comparisons"])
    (failed,) = report(table, "--failed", "zero")[0]["benchmarks"]
    assert choice in failed["assumptions"]
    live = json.loads(watch_once(tmp_path / "state", table, "--items", "60", "--columns", "score=f1"))
    assert choice in live["benchmarks"][0]["assumptions"]


def test_nulls_and_repeats_in_conflict(tmp_path):
    rows = [
        {"benchmark": "bench", "item_id": f"q{k}", "model": m, "score": 1} for k in range(50) for m in ("new", "old")
    ]
    null = [{"benchmark": "bench", "item_id": "q1", "model": m, "score": None} for m in ("new", "old")]
    write(tmp_path / "1.jsonl", [*rows, *null])
    (row,) = gated(tmp_path, "--margin", "0.1")["comparisons"]
    assert (row["only_candidate"], row["only_baseline"], row["n"]) == (0, 1, 50)
    write(tmp_path / "1.jsonl", [*null, *rows])  # a null that is filled is no conflict, and a choice all the same
    (row,) = gated(tmp_path, "--margin", "0.1")["comparisons"]
    assert (row["only_candidate"], row["only_baseline"], row["n"]) == (0, 0, 50)
    assert {"code": "score_choice"} in row["assumptions"]
    final = {"declare": "bench", "items": 50, "nulls": "final"}
    write(tmp_path / "1.jsonl", [final, *null, *rows])
    (row,) = gated(tmp_path, "--margin", "0.1")["comparisons"]
    assert (row["only_candidate"], row["only_baseline"], row["n"]) == (0, 1, 50)


# --- suites ---


@pytest.fixture
def copies(tmp_path):
    rows = events(random.Random(6), MODELS, 60)
    write(tmp_path / "runs.jsonl", [row | {"benchmark": name} for name in ("one", "two") for row in rows])
    return tmp_path / "runs.jsonl"


def test_a_suite_with_shared_items_is_held_unless_they_are_distinct(copies, tmp_path):
    suite = report(copies, "--suite", "all=one,two", "--pairs", "all")[0]["benchmarks"][0]
    assert {pair["status"] for pair in suite["pairs"]} == {"held"}
    assert {pair["decided"]["anytime_family"] for pair in suite["pairs"]} == {None}
    assert "one and two both have an item" in suite["pairs"][0]["reason"]
    assert "--distinct" in suite["pairs"][0]["reason"]
    declared = report(copies, "--suite", "all=one,two", "--pairs", "all", "--distinct")[0]["benchmarks"][0]
    assert "decided" in {pair["status"] for pair in declared["pairs"]}
    assert {"code": "distinct"} in declared["assumptions"]
    rows = [json.loads(line) for line in copies.read_text().splitlines()]
    other = write(tmp_path / "other.jsonl", [row | {"item_id": row["benchmark"] + row["item_id"]} for row in rows])
    apart = report(other, "--suite", "all=one,two", "--pairs", "all")[0]["benchmarks"][0]
    assert {"code": "distinct"} in apart["assumptions"]
    assert "decided" in {pair["status"] for pair in apart["pairs"]}


def test_copies_in_units_of_other_names_are_shared_items(tmp_path):
    rows = events(random.Random(6), MODELS, 60)
    units = {"one": "a", "two": "b"}
    copies = [row | {"benchmark": name, "unit": unit + row["item_id"]} for name, unit in units.items() for row in rows]
    path = write(tmp_path / "runs.jsonl", copies)
    suite = report(path, "--suite", "all=one,two", "--pairs", "all")[0]["benchmarks"][0]
    assert {pair["status"] for pair in suite["pairs"]} == {"held"}
    assert "one and two both have an item item 0" in suite["pairs"][0]["reason"]


# --- what comes with the scores ---


def test_units_that_come_with_the_scores_are_late_like_those_of_a_flag(tmp_path):
    rows = [row | {"unit": f"u{k // 6}"} for k, row in enumerate(events(random.Random(6), MODELS, 60))]
    path = write(tmp_path / "runs.jsonl", rows)
    assert facts(path)["declared_late"] == {"parts": ["units"]}
    plain = write(tmp_path / "plain.jsonl", [{k: v for k, v in row.items() if k != "unit"} for row in rows])
    flag = facts(plain, "--units", path)
    assert flag["declared_late"] == {"parts": ["units"]}
    first = {"declare": "bench", "units": {row["item_id"]: row["unit"] for row in rows}}
    assert "declared_late" not in facts(write(tmp_path / "first.jsonl", [first, *rows]))


def test_clusters_that_weights_rest_on_come_with_the_scores(tmp_path):
    rng = random.Random(4)
    pairs = sorted(((rng.random() < 0.5, rng.random() < 0.5) for _ in range(200)), key=lambda each: each[1] - each[0])
    rows = [
        {"benchmark": "bench", "item_id": f"q{k}", "model": model, "score": int(right), "cluster": "xy"[k >= 10]}
        for k, scores in enumerate(pairs)
        for model, right in zip(("a", "b"), scores, strict=True)
    ]
    first = {"declare": "bench", "weights": "equal-clusters", "clusters": {"x": 10, "y": 190}}
    path = write(tmp_path / "runs.jsonl", [first, *rows])
    (benchmark,) = report(path, "--pairs", "all")[0]["benchmarks"]
    assert benchmark["pairs"][0]["decided"]["anytime_family"] is not None  # equal models
    assert {"code": "labelled"} in benchmark["assumptions"]
    assert "which cluster an item is in does not depend on the scores" in benchmark["pairs"][0]["reason"]


# --- what an export keeps ---


def exported(tmp_path, *arguments):
    """The assumptions of a report on results, and of one on their export."""
    path = tmp_path / "exported" / "scores.jsonl"
    path.parent.mkdir()
    rankwatch("export", path, *arguments)
    return facts(*arguments), facts(path)


def test_an_export_says_that_scores_filled_nulls_or_came_in_conflict(tmp_path):
    rows = events(random.Random(6), MODELS, 60)
    for first in (None, 1 - rows[0]["score"]):
        folder = tmp_path / str(first)
        folder.mkdir()
        before, after = exported(folder, write(folder / "runs.jsonl", [rows[0] | {"score": first}, *rows]))
        assert before == after
        assert "score_choice" in after


def test_an_export_of_an_export_and_of_late_parts_assumes_the_same(tmp_path):
    rows = events(random.Random(6), MODELS, 60)
    path = write(tmp_path / "runs.jsonl", [rows[0] | {"score": None}, *rows])
    before, after = exported(tmp_path, path, "--alpha", "0.01", "--items", "60")
    assert before == after
    assert {"declared_late", "score_choice"} <= after.keys()
    rankwatch("export", tmp_path / "again.jsonl", tmp_path / "exported" / "scores.jsonl")
    assert facts(tmp_path / "again.jsonl") == before


def test_an_export_counts_the_items_of_which_no_line_was_read(tmp_path):
    rows = events(random.Random(6), MODELS, 60)
    bad = [{"benchmark": "bench", "item_id": "lost", "model": model, "score": "x"} for model in MODELS]
    before, after = exported(tmp_path, write(tmp_path / "runs.jsonl", [*rows, *bad]))
    assert before == after
    assert after["items_rejected"] == {"items": 1}


def test_an_export_of_files_of_which_one_was_refused_is_not_the_whole_benchmark(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    write(folder / "1.jsonl", events(random.Random(6), MODELS, 60))
    (folder / "2.jsonl").write_text("no result\n")
    path = tmp_path / "scores.jsonl"
    rankwatch("export", path, folder, "--max-rejected", "0.9")
    (before,) = report(folder, "--max-rejected", "0.9")[0]["benchmarks"]
    (after,) = report(path)[0]["benchmarks"]
    assert before["assumptions"] == after["assumptions"] == []
    assert after["incomplete"] == "the scores are an export of results that were not read whole"
    assert {pair["decided"]["anytime"] for pair in after["pairs"]} == {None}


def test_what_is_known_of_exported_scores_holds_with_other_files_and_with_a_refused_declaration(tmp_path):
    rows = events(random.Random(6), MODELS, 60)
    known = {"declare": "bench", "provenance": {"score_choice": True}}
    write(tmp_path / "1.jsonl", rows[:50])
    write(tmp_path / "2.jsonl", [known | {"alpha": 0.01}, *rows[50:]])
    write(tmp_path / "3.jsonl", [known | {"provenance": {"begun_again": True}}])
    assert {"score_choice", "begun_again"} <= facts(tmp_path, "--max-rejected", "0.5").keys()
    assert {"score_choice", "begun_again"} <= facts(tmp_path, "--alpha", "0.05", "--max-rejected", "0.5").keys()


def test_a_gate_names_what_is_known_of_exported_scores(tmp_path):
    rng = random.Random(3)
    old = [row | {"model": "old"} for row in events(rng, {"old": 0.7}, 300)]
    rankwatch("export", tmp_path / "old.jsonl", write(tmp_path / "runs.json.jsonl", [old[0] | {"score": None}, *old]))
    (tmp_path / "runs.json.jsonl").unlink()
    write(tmp_path / "new.jsonl", [row | {"model": "new", "score": row["score"]} for row in old])
    (row,) = gated(tmp_path, "--margin", "0.05")["comparisons"]
    assert {"code": "score_choice"} in row["assumptions"]
    assert "which score of an item counts does not depend on the scores" in row["assumption"]

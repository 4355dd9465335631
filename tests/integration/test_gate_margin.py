"""`rankwatch gate --margin`: not worse, worse, or what it would take."""

import asyncio
import csv
import json
import random
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import stats
from monitor.words.numbers import points
from tests.commands import events, rankwatch, write
from tests.redis_server import RedisServer
from tests.served import Served, folded
from tests.stored_state import fold


def paired(n, b, c, *, both=0.7, benchmark="bench", models=("new", "old")):
    """Events of two models: b items that only the first has right, c that only the second has."""
    kinds = [(1, 0)] * b + [(0, 1)] * c + [(int(k < both * n),) * 2 for k in range(n - b - c)]
    random.Random(4).shuffle(kinds)
    return [
        {"benchmark": benchmark, "item_id": f"i{k}", "model": model, "score": score}
        for k, scores in enumerate(kinds)
        for model, score in zip(models, scores, strict=True)
    ]


def answer(*arguments, code):
    return json.loads(rankwatch("gate", *arguments, "--format", "json", code=code).stdout)


@pytest.mark.parametrize(
    ("n", "b", "c", "code", "words"),
    [
        (1319, 26, 26, 0, "pass: new is not worse than old by more than 3 points on bench"),
        (1319, 100, 126, 3, "undecided: 1,319 items cannot exclude that new is worse than old by 3 points on bench"),
        (1319, 20, 90, 4, "fail: new is worse than old on bench"),
        (6000, 300, 400, 0, "it is worse, by less than the margin"),
    ],
)
def test_complete_files_are_judged_by_the_exact_test(tmp_path, n, b, c, code, words):
    path = write(tmp_path / "r.jsonl", paired(n, b, c))
    call = (path, "--pair", "new", "old", "--margin", "0.03")
    text = rankwatch("gate", *call, code=code).stdout
    assert words in text
    assert ("--on-undecided pass" in text) == (code == 3)
    report = answer(*call, code=code)
    (row,) = report["comparisons"]
    assert row["rule"] == "exact test"
    assert row["p_not_worse"] == pytest.approx(float(stats.excess_p(n, b, c, -0.03)), rel=1e-9)
    assert row["gap_low"] == pytest.approx(float(stats.excess_low(n, b, c)), rel=1e-6)
    assert (row["gap_low"] >= -0.03) == (row["p_not_worse"] <= 0.05)
    assert (row["only_candidate"], row["only_baseline"], row["n"]) == (b, c, n)
    assert (row["gap_high"] < 0) == (row["p_worse"] <= 0.05)
    assert len(row["first_lost"]) == (5 if code == 4 else 0)
    assert "larger margin" not in text
    decides = row["gap_high"] if code == 4 else row["gap_low"]
    assert f"at {'most' if code == 4 else 'least'} {points(decides)}, allowed -3.00" in text


def test_missing_items_count_against_the_candidate(tmp_path):
    path = write(tmp_path / "r.jsonl", paired(1294, 26, 26))
    call = (path, "--pair", "new", "old", "--margin", "0.03", "--items")
    assert answer(*call, 1318, code=0)["comparisons"][0]["missing"] == 24
    refused = rankwatch("gate", *call, 1319, code=3).stdout
    assert "25 missing items count against the candidate; score them too." in refused


def test_along_a_committed_order_the_first_crossing_counts(tmp_path):
    """The evidence may fall again after the gate was decided; items after a hole in the order do not count."""
    ids = [f"i{k}" for k in range(900)]
    order = stats.committed_order("seed", ids).tolist()
    d = np.zeros(900, int)
    d[order[500:560]] = -1  # after the crossing the candidate loses sixty items in a row
    records = [{"declare": "bench", "order": {"policy": "committed", "seed": "seed"}, "item_ids": ids}]
    for k in order[:560]:
        records += [
            {"benchmark": "bench", "item_id": ids[k], "model": "new", "score": 1 if d[k] >= 0 else 0},
            {"benchmark": "bench", "item_id": ids[k], "model": "old", "score": 1},
        ]
    call = ("--pair", "new", "old", "--margin", "0.03")
    path = stats.excess_log_e(np.arange(1, 561), 0, np.cumsum(np.arange(560) >= 500), -0.03)
    first = int(np.flatnonzero(path >= np.log(20))[0]) + 1
    assert path[-1] < np.log(20)
    (row,) = answer(write(tmp_path / "r.jsonl", records), *call, code=0)["comparisons"]
    assert (row["policy"], row["rule"], row["decided_at_n"]) == ("committed", "bets", first)
    hole = [each for each in records if each.get("item_id") != ids[order[first - 2]]]
    rankwatch("gate", write(tmp_path / "hole.jsonl", hole), *call, code=3)
    skipped = [{**each, "score": None} if each.get("item_id") == ids[order[3]] else each for each in records]
    (row,) = answer(write(tmp_path / "skip.jsonl", skipped), *call, code=0)["comparisons"]
    assert row["decided_at_n"] > first


def test_a_relative_margin_and_graded_scores_use_bets(tmp_path):
    path = write(tmp_path / "r.jsonl", paired(2000, 30, 30))
    (row,) = answer(path, "--pair", "new", "old", "--margin", "10%", code=0)["comparisons"]
    x = np.array([1] * 30 + [0] * 30 + [1] * 1400 + [0] * 540, float)
    y = np.array([0] * 30 + [1] * 30 + [1] * 1400 + [0] * 540, float)
    assert row["p_not_worse"] == pytest.approx(np.exp(-stats.graded_excess_log_e(x - 0.9 * y, 0.0)), rel=1e-6)
    assert (row["relative"], row["rule"]) == (True, "bets")
    graded = [{**each, "score": 0.25 + each["score"] / 2} for each in paired(2000, 30, 30)]
    (row,) = answer(write(tmp_path / "g.jsonl", graded), "--pair", "new", "old", "--margin", "0.03", code=0)[
        "comparisons"
    ]
    assert row["p_not_worse"] == pytest.approx(np.exp(-stats.graded_excess_log_e((x - y) / 2, -0.03)), rel=1e-6)
    assert -0.03 <= row["gap_low"] < 0


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """Three candidates and a baseline on two benchmarks."""
    folder = tmp_path_factory.mktemp("several")
    rng = random.Random(8)
    for name in ("math", "code"):
        records = []
        for item in range(1500):
            base = int(rng.random() < 0.7)
            scores = {
                "old": base,
                "same": base if rng.random() < 0.96 else 1 - base,
                "cheap": base if rng.random() < 0.97 else 0,
            }
            scores["bad"] = base if rng.random() < 0.8 else 0
            records += [
                {"benchmark": name, "item_id": f"{name}{item}", "model": m, "score": s} for m, s in scores.items()
            ]
        write(folder / f"{name}.jsonl", records)
    return folder


def test_several_candidates_share_alpha_and_the_family_is_named(several):
    report = answer(several, "--baseline", "old", "--margin", "0.05", code=4)
    assert (
        report["headline"]
        == "fail: 2 of 3 candidates are not worse than old by more than 5 points on 2 benchmarks (alpha = 0.05)"
    )
    verdicts = {each["model"]: each["verdict"] for each in report["candidates"]}
    assert verdicts == {"same": "pass", "cheap": "pass", "bad": "fail"}
    assert len(report["comparisons"]) == 6
    largest = {m: max(c["p_not_worse"] for c in report["comparisons"] if c["candidate"] == m) for m in verdicts}
    adjusted = stats.holm(list(largest.values()))
    assert [each["p_not_worse"] for each in report["candidates"]] == pytest.approx(
        [float(adjusted[list(largest).index(each["model"])]) for each in report["candidates"]], rel=1e-6
    )
    assert "the 3 candidates share alpha (Holm)" in report["family"]
    chosen = answer(several, "--baseline", "old", "--candidate", "same", "--margin", "0.05", code=0)
    assert [each["model"] for each in chosen["candidates"]] == ["same"]
    one = answer(several, "--baseline", "old", "--candidate", "bad", "--benchmark", "math", "--margin", "0.05", code=4)
    assert {each["benchmark"] for each in one["comparisons"]} == {"math"}


def test_the_cheapest_that_is_not_worse(several, tmp_path):
    table = tmp_path / "prices.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("model", "price"), ("same", 3), ("cheap", 1.5), ("bad", 0.1)])
    call = (several, "--baseline", "old", "--margin", "0.05")
    printed = rankwatch("gate", *call, "--prices", table).stdout
    assert printed.startswith(
        "pass: cheap is the cheapest (1.5) that is not worse than old by more than 5 points on 2 benchmarks"
    )
    flags = ("--price", "same=3", "--price", "cheap=1.5", "--price", "bad=0.1")
    assert answer(*call, *flags, code=0)["cheapest"] == "cheap"
    assert "bad and" not in rankwatch("gate", *call, "--price", "same=3", code=2).stderr
    assert "no candidate has this name" in rankwatch("gate", *call, *flags, "--price", "sam=2", code=2).stderr


@pytest.mark.parametrize(("choice", "code"), [("wait", 3), ("pass", 0), ("fail", 4)])
def test_an_undecided_gate_has_the_chosen_exit_code(tmp_path, choice, code):
    path = write(tmp_path / "r.jsonl", paired(200, 10, 10))
    call = (path, "--pair", "new", "old", "--margin", "0.03", "--on-undecided", choice)
    printed = rankwatch("gate", *call, code=code).stdout
    assert printed.startswith("undecided")
    assert "decides this in 4 of 5 runs" in printed
    suite = ET.fromstring(rankwatch("gate", *call, "--format", "junit", code=code).stdout)
    assert suite[0].get("failures") == ("0" if choice == "pass" else "1")


def test_what_it_would_take_is_reached_at_these_rates(tmp_path):
    (row,) = answer(
        write(tmp_path / "r.jsonl", paired(200, 10, 10)), "--pair", "new", "old", "--margin", "0.03", code=3
    )["comparisons"]
    needed = row["items_needed"]
    assert needed == pytest.approx(stats.excess_required_n(0, 0.1, -0.03))
    assert float(stats.excess_p(round(needed), round(needed / 20), round(needed / 20), -0.03)) < 0.05
    far = write(tmp_path / "far.jsonl", paired(60, 2, 6))
    (row,) = answer(far, "--pair", "new", "old", "--margin", "0.03", code=3)["comparisons"]
    assert row["items_needed"] is None
    assert "would not make it pass" in row["reason"]


def test_without_an_order_the_gate_is_held(tmp_path):
    records = [{"declare": "bench", "items": 10}, *paired(60, 3, 3)]
    printed = rankwatch(
        "gate", write(tmp_path / "r.jsonl", records), "--pair", "new", "old", "--margin", "0.03", code=3
    ).stdout
    assert printed.startswith("held: ")
    assert "60 items arrived and 10 were declared" in printed


def test_names_from_outside_stay_names_in_every_format(tmp_path):
    hostile = ['a"><script>]]>&|@x', "::error::,%0A:b\u00b4`*"]
    write(tmp_path / "r.jsonl", events(random.Random(1), dict.fromkeys(hostile, 0.5), 30, benchmark="|b|`<img>"))
    outputs = {
        name: tmp_path / f"out.{name}" for name in ("markdown", "html", "svg", "junit", "github", "json", "text")
    }
    write_flags = [part for name, path in outputs.items() for part in ("--write", f"{name}={path}")]
    rankwatch("gate", tmp_path / "r.jsonl", "--pair", *hostile, "--margin", "0.1", *write_flags, code=3)
    texts = {name: path.read_text("utf-8") for name, path in outputs.items()}
    ET.fromstring(texts["svg"])
    assert "<script" not in texts["svg"]
    suite = ET.fromstring(texts["junit"])
    assert suite[0][0].get("name").startswith(hostile[0])
    assert texts["github"].count("\n") == 1
    assert "%250A" in texts["github"]
    table = [line for line in texts["markdown"].splitlines() if line.startswith("|")]
    assert len({len([c for k, c in enumerate(line) if c == "|" and line[k - 1] != "\\"]) for line in table}) == 1
    assert "<" not in texts["markdown"].replace("\\<", "")
    assert "<script" not in texts["html"]
    assert json.loads(texts["json"])["baseline"] == hostile[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--pair", "new", "old", "--margin", "1e-300"), "give a difference of scores from 1e-06 to below 1"),
        (("--pair", "new", "old", "--margin", "3"), "give a difference of scores from 1e-06 to below 1"),
        (("--pair", "new", "old", "--margin", "0"), "give a difference of scores from 1e-06 to below 1"),
        (("--pair", "new", "old", "--margin", "nan%"), "give a difference of scores from 1e-06 to below 1"),
        (("--margin", "0.1"), "name the models with --pair A B"),
        (("--pair", "new", "old", "--baseline", "old", "--margin", "0.1"), "name the models with --pair A B"),
        (("--baseline", "olt", "--margin", "0.1"), "the baseline olt has no results; did you mean old?"),
        (("--baseline", "old", "--candidate", "old", "--margin", "0.1"), "is the baseline and a candidate"),
        (("--baseline", "old"), "--baseline: needs --margin"),
        (("--pair", "new", "old", "--write", "pdf=x", "--margin", "0.1"), "use FORMAT=FILE"),
        (("--pair", "new", "old", "--price", "new=-1", "--margin", "0.1"), "a price of 0 or more"),
        (("--pair", "new", "old", "--benchmark", "other", "--margin", "0.1"), "choose one of bench"),
        ((), "missing --pair"),
    ],
)
def test_a_call_that_cannot_be_right_is_refused_with_the_remedy(tmp_path, arguments, words):
    path = write(tmp_path / "r.jsonl", paired(30, 3, 3))
    assert words in rankwatch("gate", path, *arguments, code=2).stderr


def repeated(rng, models, items=400, repeats=3):
    """Scores of repeats: items have their own probabilities, and `broken` loses a tenth of the right answers of an item."""
    records = []
    for item in range(items):
        p = rng.random()
        for model in models:
            lost = model == "broken" and rng.random() < 0.2
            records += [
                {
                    "benchmark": "bench",
                    "item_id": f"i{item}",
                    "repeat": r,
                    "model": model,
                    "score": int(rng.random() < p and not lost),
                }
                for r in range(repeats)
            ]
    return records


def test_the_noise_of_repeats_is_split_and_a_flaky_baseline_holds_the_gate(tmp_path):
    path = write(tmp_path / "r.jsonl", repeated(random.Random(6), ["new", "old", "again", "broken"]))
    call = (path, "--pair", "new", "old", "--margin", "0.1", "--rerun")
    report = answer(*call, "again", code=0)
    (row,) = report["comparisons"]
    assert "of the variance of the gap comes from repeats (3 an item): twice the repeats leave" in row["noise"]
    share = int(row["noise"].split(" %")[0])
    assert 80 <= share <= 100  # equal models: the items of their difference have no variance
    assert "differ by no more than theirs" in row["reason"]
    held = rankwatch("gate", *call, "broken", code=3).stdout
    assert held.startswith("held: ")
    assert "two runs of the baseline (old and broken) differ by more than the noise of repeats" in held
    assert "name another run of the baseline; the files have" in rankwatch("gate", *call, "other", code=2).stderr


def test_a_gate_says_which_history_the_scores_of_a_stored_baseline_have(tmp_path):
    rows = paired(400, 8, 8)
    new = write(tmp_path / "new.jsonl", [row for row in rows if row["model"] == "new"])
    first = [{"declare": "bench", "items": 400}, {"benchmark": "bench", "item_id": "x", "model": "old", "score": 1}]
    again = [{"board": verb, "benchmark": "bench"} for verb in ("delete", "reopen")]
    old = [row for row in rows if row["model"] == "old"]
    history = [{"code": "begun_again"}, {"code": "score_choice"}]
    question = ("--baseline", "old", "--margin", "0.05")
    with RedisServer(tmp_path) as redis:
        asyncio.run(fold(redis.url, "evals", 1, [*first, *again, first[0], old[0] | {"score": None}, *old]))
        stored = ("--redis-url", redis.url, "--topic", "evals")
        (row,) = answer(new, *question, *stored, code=0)["comparisons"]
        assert [each for each in row["assumptions"] if each in history] == history
        rankwatch("board", "export", "bench", "--output", tmp_path / "old.jsonl", *stored)
    (row,) = answer(new, tmp_path / "old.jsonl", *question, code=0)["comparisons"]
    assert [each for each in row["assumptions"] if each in history] == history


def test_the_baseline_may_be_on_a_server_or_in_the_stored_state(tmp_path):
    rows = paired(400, 8, 8)
    new = write(tmp_path / "new.jsonl", [row for row in rows if row["model"] == "new"])
    old = write(tmp_path / "old.jsonl", [row for row in rows if row["model"] == "old"])
    other = [{**row, "model": "third", "score": 1 - row["score"]} for row in rows if row["model"] == "old"]
    question = ("--baseline", "old", "--margin", "0.05")
    with Served(folded([row for row in rows if row["model"] == "old"] + other, items=400)) as served:
        place = ("--server", served.url)
        judged = answer(new, *question, *place, code=0)
        declared = write(tmp_path / "declared.jsonl", [{"declare": "bench", "items": 400}])
        assert judged == answer(declared, old, new, *question, code=0)  # as the board declares
        assert [row["candidate"] for row in judged["comparisons"]] == ["new"]  # the other model of the board is none
        harness = tmp_path / "harness.py"
        harness.write_text(
            "import json, pathlib, sys\nfor item in pathlib.Path(sys.argv[1]).read_text().split():\n"
            "    print(json.dumps({'benchmark': 'bench', 'item_id': item, 'model': 'new', 'score': 1}))\n"
        )
        run = ("--run", f"{sys.executable} {harness} {{items}}", "--folder", tmp_path / "folder")
        (row,) = answer("--pair", "new", "old", "--margin", "0.05", *run, *place, code=0)["comparisons"]
        assert row["n"] < 400
        with RedisServer(tmp_path) as redis:
            board = [{"declare": "bench", "items": 400}, *(row for row in [*rows, *other] if row["model"] != "new")]
            asyncio.run(fold(redis.url, "evals", 2, board))
            stored = ("--redis-url", redis.url, "--topic", "evals")
            assert judged == answer(new, *question, *stored, code=0)
            wrong = rankwatch("gate", new, "--baseline", "gone", "--margin", "0.05", *stored, code=2).stderr
            assert "the baseline gone has no scores on the stored state, in bench; it has old, third" in wrong
            typo = rankwatch("gate", new, "--baseline", "olt", "--margin", "0.05", *stored, code=2).stderr
            assert "did you mean old?" in typo
        for call, words in [
            ((new, "--baseline", "gone", "--margin", "0.05", *place), "the baseline gone has no scores on"),
            ((new, *question, "--benchmark", "x", *place), "no board of x; choose one with --benchmark: bench"),
            ((*question, *place), "missing PATH: give the results of the candidate"),
            ((new, "--baseline", "old", "--margin", "0.05", "--server", "ftp://x"), "http"),
        ]:
            assert words in rankwatch("gate", *call, code=1 if "ftp" in call[-1] else 2).stderr
    assert "missing PATH" in rankwatch("gate", *question, code=2).stderr


def test_scores_that_contradict_earlier_ones_are_reported(tmp_path):
    rows = paired(60, 3, 1)
    again = [{**row, "score": 1 - row["score"]} for row in rows if row["model"] == "old"][:7]
    path = write(tmp_path / "r.jsonl", [*rows, *again, *[{**each, "model": "third"} for each in again]])
    words = "7 scores contradict an earlier score of the same model and item: old (7). Each counts at its worst for new"
    call = (path, "--pair", "new", "old")
    assert words in rankwatch("gate", *call, code=3).stdout
    shown = rankwatch("gate", *call, "--margin", "0.2", "--write", f"markdown={tmp_path / 'm'}", code=0).stdout
    assert words in shown
    assert words in (tmp_path / "m").read_text().replace("\\", "")


def test_several_metrics_of_a_benchmark_are_judged_as_benchmarks_are(several, tmp_path):
    """One call for two metrics has the family and the verdicts of files that name them as two benchmarks."""
    rows = [
        json.loads(line) for name in ("math", "code") for line in (several / f"{name}.jsonl").read_text().splitlines()
    ]
    scores = {
        name: {(r["item_id"].removeprefix(name), r["model"]): r["score"] for r in rows if r["benchmark"] == name}
        for name in ("math", "code")
    }
    with (tmp_path / "wide.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("benchmark", "item_id", "model", "math", "code")]
            + [("qa", *key, score, scores["code"][key]) for key, score in scores["math"].items()]
        )
    question = ("--baseline", "old", "--margin", "0.05")
    metrics = ("--columns", "score=math", "--columns", "score=code")
    apart = answer(several, *question, code=4)
    together = answer(tmp_path / "wide.csv", *question, *metrics, code=4)
    assert together["headline"] == apart["headline"].replace("2 benchmarks", "2 metrics of qa")
    assert together["candidates"] == apart["candidates"]
    assert [each["metric"] for each in together["comparisons"]] == ["math"] * 3 + ["code"] * 3
    assumed = {"assumption", "assumptions"}
    as_benchmark = [{**each, "benchmark": each["metric"], "metric": None} for each in together["comparisons"]]
    for each in apart["comparisons"]:
        each["first_lost"] = [item.removeprefix(each["benchmark"]) for item in each["first_lost"]]
    for of_metric, of_benchmark in zip(
        as_benchmark, sorted(apart["comparisons"], key=lambda each: each["benchmark"] == "code"), strict=True
    ):
        assert {name for name, value in of_metric.items() if value != of_benchmark[name]} <= assumed
        chosen = {each["code"] for each in of_metric["assumptions"]} - {
            each["code"] for each in of_benchmark["assumptions"]
        }
        assert chosen == {"score_choice"}  # the flags name which column is the score
    printed = rankwatch("gate", tmp_path / "wide.csv", *question, "--candidate", "bad", *metrics, code=4).stdout
    assert printed.startswith("fail: bad is worse than old on qa (math), qa (code) (alpha = 0.05)\n  qa (math): Worse")
    assert "not worse on each metric, so this claim needs no correction over metrics" in printed
    for more, words in [
        (("-", *question), "give standard input as a file"),
        (("--pair", "same", "old"), "several metrics are compared with --margin only"),
        ((*question, "--run", "x {items}"), "several metrics are not available with --run"),
        ((*question, "--metric", "a", "--metric", "b"), "--metric and --columns name several metrics each"),
    ]:
        assert words in rankwatch("gate", tmp_path / "wide.csv", *more, *metrics, code=2).stderr

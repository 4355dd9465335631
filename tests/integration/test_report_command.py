"""`rankwatch report` on real files: its contract, its numbers beside plain dictionaries, and what it says of bad input."""

import csv
import gzip
import json
import math
import random
import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from scipy.stats import binom, binomtest, chi2, norm

from schemas.results.report import Report
from tests.commands import Counted, events, pairs_of, rankwatch, report, write
from tests.oracle import log_e

SKILLS = {"alpha": 0.8, "bravo": 0.62, "charlie": 0.6, "delta": 0.35}

HYPOTHESES = 3
"""The pairs of each of two families: charlie was scored again, so its three pairs are a family of their own."""

# The contract of the report, in words of its own.
BENCHMARK = (
    "benchmark alike differing off_scale refused refused_elsewhere skipped skipped_by_model unread_items refused_declarations reading "
    "items unit_items declared_items events duplicates conflicts filled rejected conflicts_by_model duplicates_by_model "
    "epochs unranked incomplete partial board order alpha looks power mixture look family family_outside family_assumption "
    "assumption assumptions heads models shared_items clusters weights suite result goal battles labels summary pairs"
)
SINCE_0_1 = (
    "alike heads differing off_scale refused refused_elsewhere skipped skipped_by_model unread_items refused_declarations reading "
    "unit_items labels look"
)
"""Fields of a benchmark that an earlier server answers without."""

MODEL = (
    "model title aliases epoch items coverage mean mean_low mean_high shared_mean shared_rank unweighted_mean unweighted_rank "
    "rank rank_low rank_high tie_group repeats run_ended"
)
GOAL = "goal state reason facts models open_pairs needed items_run items_full saved_ratio by_model cost_run cost_saved committed verified"
GOAL_RUN = "model items_run items_full saved_ratio left cost_run cost_saved"
PAIR = (
    "model_a model_b epoch_a epoch_b adjacent n b c gap p_a p_b rho sd p_chi2 p_exact p_mid p_clustered required_n resolution_ratio mde "
    "log_e log_e_a log_e_b p_anytime family_threshold settled settled_log_e gap_low gap_high "
    "gap_family_low gap_family_high status reason facts decided_at_n items_to_decision needs_items decision_probability "
    "decided resolved cluster"
)
DECIDED = "fixed_n bonferroni holm benjamini_hochberg clustered anytime anytime_family e_bh"
RESOLVED = "fixed_n bonferroni anytime clustered"
CLUSTER = "clusters icc design_effect required_n resolution_ratio effective_clusters unlabelled"


def messy(seed, **more):
    """Events with skips, repeats, epochs, duplicates and conflicts in them, in random order."""
    rng = random.Random(seed)
    records = events(rng, SKILLS, 80, **more)
    for event in list(records):
        if rng.random() < 0.05:
            records.append(event | {"score": rng.choice([0, 1, True, False, 0.0, 1.0])})
        if rng.random() < 0.03:
            event["score"] = None
        if event["model"] == "charlie" and rng.random() < 0.4:
            records.append(event | {"epoch": 2, "score": rng.choice([0, 1])})
    rng.shuffle(records)
    return records


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of two benchmarks in plain, gzipped and nested files, with what must not be read beside them."""
    folder = tmp_path_factory.mktemp("results")
    first, second = messy(1, benchmark="first"), messy(2, benchmark="second", cluster="c")
    for k, event in enumerate(second):
        event["cluster"] = f"c{event['item_id'][-1]}"
        event["unknown"], event["timestamp"] = {"deep": [1]}, f"2026-01-01T00:00:{k % 60:02d}Z"
    write(folder / "a.jsonl", first[:150])
    (folder / "sub").mkdir()
    with gzip.open(folder / "sub/b.jsonl.gz", "wb") as file:
        file.write(b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(e).encode() for e in first[150:]))
    write(folder / "sub/c.ndjson", [*second, "", "  "])
    (folder / ".hidden.jsonl").write_text("nothing to read\n")
    (folder / "notes.txt").write_text("nothing to read\n")
    return folder, {"first": first, "second": second}


@pytest.fixture(scope="module")
def whole(folder):
    """The report of all pairs as text and as JSON, and the events."""
    ended = rankwatch("report", folder[0], "--format", "json", "--pairs", "all")
    assert ended.stderr == ""
    return ended.stdout, json.loads(ended.stdout), folder[1]


def test_the_json_of_a_goal(folder):
    result = json.loads(rankwatch("report", folder[0], "--format", "json", "--goal", "best").stdout)
    for benchmark in result["benchmarks"]:
        goal = benchmark["goal"]
        assert list(goal) == GOAL.split()
        assert all(list(run) == GOAL_RUN.split() for run in goal["by_model"])
        assert sum(run["items_run"] for run in goal["by_model"]) == goal["items_run"]
        assert [run["model"] for run in goal["by_model"]] == [model["model"] for model in benchmark["models"]]
        assert {run["model"] for run in goal["by_model"] if not run["left"]} == set(goal["needed"])


# Three models, of which the last one has run half of 80 items.
PRICED = [
    {"benchmark": "b", "item_id": str(i), "model": model, "score": int(i % 10 < right)}
    for model, right, items in (("good", 9, 80), ("fair", 7, 80), ("bad", 1, 40))
    for i in range(items)
]


def test_a_goal_has_its_price(tmp_path):
    write(tmp_path / "r.jsonl", PRICED)
    call = ["report", tmp_path, "--goal", "best", "--items", "80", "--price", "bad=0.5", "--price", "0.1"]
    goal = json.loads(rankwatch(*call, "--format", "json").stdout)["benchmarks"][0]["goal"]
    assert (goal["cost_run"], goal["cost_saved"]) == pytest.approx((36, 20))
    assert {run["model"]: (run["cost_run"], run["cost_saved"]) for run in goal["by_model"]} == {
        "good": pytest.approx((8, 0)),
        "fair": pytest.approx((8, 0)),
        "bad": pytest.approx((20, 20)),
    }
    assert "16.7 % saved. Cost: 36.00, 20.00 saved." in " ".join(rankwatch(*call).stdout.split())
    assert "| bad | 40 | 80 | 50.0 |" in rankwatch(*call, "--format", "markdown").stdout
    (tmp_path / "prices.csv").write_text(
        "model,price,tokens\ngood,0.001,100\nfair,0.1,1\nbad,0.5,1\n", encoding="utf-8"
    )
    table = ["report", tmp_path / "r.jsonl", *call[2:6], "--prices", tmp_path / "prices.csv", "--format", "json"]
    assert json.loads(rankwatch(*table).stdout)["benchmarks"][0]["goal"] == goal
    # Without a flag the setting counts; it may have models that are not here.
    setting = {"RANKWATCH_PRICES": "bad=0.5;other=3;0.1"}
    unpriced = [*call[:6], "--format", "json"]
    assert json.loads(rankwatch(*unpriced, **setting).stdout)["benchmarks"][0]["goal"] == goal
    once = ("watch", tmp_path / "r.jsonl", *call[2:6], "--once", "--data-dir", tmp_path / "data", "--format", "json")
    assert json.loads(rankwatch(*once, **setting).stdout)["benchmarks"][0]["goal"]["cost_run"] == pytest.approx(36)
    noted = rankwatch(*unpriced, RANKWATCH_PRICES="bad=0.5").stderr
    assert "prices of the settings: fair has no price" in noted


def test_a_report_has_what_a_committed_order_would_have_taken(tmp_path):
    rng, skills = random.Random(3), {"good": 0.9, "fair": 0.5, "bad": 0.1}
    records = [
        {"benchmark": "b", "item_id": str(i), "model": model, "score": int(rng.random() < skill)}
        for i in range(60)
        for model, skill in skills.items()
    ]
    call = ["report", write(tmp_path / "r.jsonl", records), "--goal", "best"]
    race = json.loads(rankwatch(*call, "--format", "json").stdout)["benchmarks"][0]["goal"]["committed"]
    assert list(race) == ["shuffles", "met", "items", "scores", "items_shared", "text"]
    assert race["met"] == race["shuffles"] > 1
    assert race["items"] < race["items_shared"] == 60
    for flags in (["--format", "markdown"], ["--format", "html"], ["--verbose"]):
        assert race["text"] in " ".join(rankwatch(*call, *flags).stdout.split())


def test_one_look_verifies_the_leader(tmp_path):
    call = ["report", write(tmp_path / "r.jsonl", PRICED), "--goal", "best"]
    verified = json.loads(rankwatch(*call, "--format", "json").stdout)["benchmarks"][0]["goal"]["verified"]
    assert list(verified) == ["yes", "held", "text", "facts", "models", "p"]
    for flags in ([], ["--format", "markdown"], ["--format", "html"]):
        assert verified["text"] in unescape(" ".join(rankwatch(*call, *flags).stdout.split()))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--price", "1"], "no benchmark has a goal, so there is nothing to price"),
        (["--goal", "best", "--price", "bad=1"], "fair has no price; give fair=PRICE, or PRICE for all models"),
        (["--goal", "best", "--price", "1", "--price", "x=2"], "there is no model x; the models are bad, fair, good"),
        (["--goal", "best", "--price", "bad=-1"], "give a model and a price of 0 or more"),
    ],
)
def test_prices_that_do_not_fit(tmp_path, arguments, says):
    write(tmp_path / "r.jsonl", PRICED)
    ended = rankwatch("report", tmp_path, *arguments, "-o", tmp_path / "out.json", code=2)
    assert says in " ".join(ended.stderr.split())
    assert not (tmp_path / "out.json").exists()


def test_the_json_is_the_contract_and_nothing_else(whole):
    text, result, _ = whole
    assert msgspec.json.decode(text, type=Report).as_json().decode() + "\n" == text
    assert list(result) == ["benchmarks"]
    for benchmark in result["benchmarks"]:
        assert list(benchmark) == BENCHMARK.split()
        assert list(benchmark["order"]) == ["policy", "suspect", "reason", "facts"]
        assert list(benchmark["family"]) == ["policy", "size", "families"]
        assert list(benchmark["summary"]) == ["pairs", "undecided", "unresolved"]
        assert all(list(model) == MODEL.split() for model in benchmark["models"])
        for pair in benchmark["pairs"]:
            assert list(pair) == PAIR.split()
            assert list(pair["decided"]) == DECIDED.split()
            assert list(pair["resolved"]) == RESOLVED.split()
            assert pair["cluster"] is None or list(pair["cluster"]) == CLUSTER.split()
    clustered = {b["benchmark"]: b["pairs"][0]["cluster"] is not None for b in result["benchmarks"]}
    assert clustered == {"first": False, "second": True}


def test_the_json_schema_names_the_same_fields():
    path = Path(__file__).parents[2] / "schemas/json/report.schema.json"
    definitions = json.loads(path.read_text())["$defs"]
    for name, fields in {
        "BenchmarkReport": BENCHMARK,
        "ModelReport": MODEL,
        "PairReport": PAIR,
        "Decided": DECIDED,
        "Resolved": RESOLVED,
        "ClusterReport": CLUSTER,
    }.items():
        assert set(definitions[name]["properties"]) == set(fields.split())
        lacking = set(fields.split()) - set(definitions[name]["required"])
        given = {"BenchmarkReport": set(SINCE_0_1.split()), "PairReport": {"facts"}}
        assert lacking == given.get(name, set())


def test_counts_of_all_pairs_equal_plain_dictionaries(whole):
    _, result, records = whole
    assert [b["benchmark"] for b in result["benchmarks"]] == ["first", "second"]
    for benchmark in result["benchmarks"]:
        counted = Counted(records[benchmark["benchmark"]])
        assert pairs_of(benchmark) == counted.pairs()
        for name in ("events", "duplicates", "conflicts", "items"):
            assert benchmark[name] == getattr(counted, name)
        assert counted.duplicates
        assert counted.conflicts
        assert benchmark["rejected"] == 0
        for model in benchmark["models"]:
            scores = counted.scores[model["model"]].values()
            assert model["items"] == len(scores)
            assert model["mean"] == pytest.approx(sum(scores) / len(scores))
            assert model["mean_low"] < model["mean"] < model["mean_high"]
            assert model["coverage"] == pytest.approx(len(scores) / counted.items)
        assert [m["rank"] for m in benchmark["models"]] == [1, 2, 3, 4]
        assert sorted((m["mean"] for m in benchmark["models"]), reverse=True) == [
            m["mean"] for m in benchmark["models"]
        ]


def test_statistics_of_a_pair_equal_scipy_and_the_formulas(whole):
    _, result, _ = whole
    k = (norm.ppf(0.975) + norm.ppf(0.8)) ** 2
    worst = {False: {}, True: {}}
    for pair in result["benchmarks"][0]["pairs"]:
        n, b, c = pair["n"], pair["b"], pair["c"]
        assert pair["gap"] == pytest.approx((b - c) / n)
        assert pair["p_exact"] == pytest.approx(binomtest(b, b + c).pvalue)
        assert pair["p_chi2"] == pytest.approx(chi2.sf((b - c) ** 2 / (b + c), 1))
        assert pair["required_n"] == pytest.approx(k * (n * (b + c) / (b - c) ** 2 - 1))
        assert pair["resolution_ratio"] == pytest.approx(n / pair["required_n"])
        assert pair["log_e"] == pytest.approx(log_e(b, c))
        assert pair["resolved"]["fixed_n"] == (pair["resolution_ratio"] >= 1)
        assert (pair["decided"]["fixed_n"] is not None) == (pair["p_exact"] <= 0.05)
        # Items that one of the two has no score for count against the leader; every hypothesis has the same share of alpha.
        at_worst = min(1, 2 * binom.sf(max(b, c) - 1, b + c + 80 - n, 0.5))
        assert (pair["decided"]["anytime"] is not None) == (at_worst <= 0.05)
        assert (pair["gap_low"] > 0 or pair["gap_high"] < 0) == (at_worst <= 0.05)
        worst[pair["epoch_a"] != pair["epoch_b"]][pair["model_a"], pair["model_b"]] = at_worst
    decided = []
    for family in worst.values():
        ascending = sorted(family, key=family.get)
        below = [pair for k, pair in enumerate(ascending) if family[pair] <= 0.05 / (HYPOTHESES - k)]
        assert below == ascending[: len(below)]  # Holm's procedure stops at the first that fails
        decided += below
    for pair in result["benchmarks"][0]["pairs"]:
        name = pair["model_a"], pair["model_b"]
        assert (pair["decided"]["anytime_family"] is not None) == (name in decided)


def test_items_found_are_the_benchmark_and_it_says_so(whole):
    for benchmark in whole[1]["benchmarks"]:
        assert benchmark["order"]["policy"] == "completion"
        assert benchmark["order"]["reason"].startswith("asserted that the 80 items read")
        assert benchmark["family"] == {"policy": "capacity", "size": HYPOTHESES, "families": 2}


def test_adjacent_pairs_are_the_neighbours_of_all_pairs(folder, whole):
    result, _ = report(folder[0], "--pairs", "adjacent")
    for some, everything in zip(result["benchmarks"], whole[1]["benchmarks"], strict=True):
        ranked = [m["model"] for m in some["models"]]
        assert [(p["model_a"], p["model_b"]) for p in some["pairs"]] == list(pairwise(ranked))
        assert some["pairs"] == [p for p in everything["pairs"] if p["adjacent"]]
        assert some["summary"]["pairs"] == 3
        assert everything["summary"]["pairs"] == 6


def test_the_order_of_lines_and_their_files_changes_no_count(folder, whole, tmp_path):
    records = [event for each in folder[1].values() for event in each]
    # Keep the first of each key first: only then is the order free.
    keyed = {}
    for e in records:
        keyed.setdefault((e["benchmark"], e["item_id"], e.get("repeat", 0), e["model"], e.get("epoch", 0)), []).append(
            e
        )
    groups = list(keyed.values())
    random.Random(5).shuffle(groups)
    path = write(tmp_path / "shuffled", [event for group in groups for event in group])
    result, _ = report(path, path, "--pairs", "all")  # named twice, read once
    assert result == whole[1]


def test_tables_name_every_model_and_pair(folder):
    adjacent = rankwatch("report", folder[0], "--pairs", "adjacent").stdout
    everything = rankwatch("report", folder[0], "--pairs", "all").stdout
    for text in (adjacent, everything):
        assert "\x1b" not in text
        assert all(name in text for name in ("first", "second", *SKILLS))
        assert "80 items, 4 models" in text
    assert re.search("alpha [>~] delta", everything)
    assert not re.search("alpha [>~] delta", adjacent)
    assert re.search("alpha [>~] bravo", adjacent)


HOSTILE = [
    "a/b:c",
    "[red]x[/red]",
    "<script>alert(1)</script>",
    "{tag}*?",
    "'; DROP TABLE--",
    '"quoted\\',
    "-flag",
    "模型 é",
    "x" * 200,
]


def test_hostile_names_are_kept_as_they_are(tmp_path):
    rng = random.Random(3)
    skills = {name: 0.3 + 0.05 * k for k, name in enumerate(HOSTILE)}
    records = [event for name in HOSTILE for event in events(rng, skills, 6, benchmark=name)]
    path = write(tmp_path / "odd [name] \n.jsonl", records)
    result, errors = report(path, "--pairs", "all")
    assert errors == ""
    assert {b["benchmark"] for b in result["benchmarks"]} == set(HOSTILE)
    assert all({m["model"] for m in b["models"]} == set(HOSTILE) for b in result["benchmarks"])
    for flags in ((), ("--verbose",)):
        table = rankwatch("report", path, *flags).stdout
        assert all(name in table for name in HOSTILE[:-1])
        assert len(table.splitlines()) > 9 * 15


# --- bad input --------------------------------------------------------------------------------------------------------------------------

GOOD = {"benchmark": "bench", "item_id": "x", "model": "m", "score": 1}
BAD = {
    "broken": (b'{"benchmark":"bench","item_id":', "record", "not valid JSON", "write one JSON object a line"),
    "infinity": (json.dumps(GOOD | {"score": math.inf}), "score", "inf is out of range", "use a number from 0 to 1, true, false or null"),
    "infinite": (json.dumps(GOOD | {"score": -math.inf}), "score", "-inf is out of range", "use a number from 0 to 1, true, false or null"),
    "too much": (json.dumps(GOOD | {"score": 1.2}), "score", "1.2 is out of range", "use a number from 0 to 1, true, false or null"),
    "negative": (json.dumps(GOOD | {"score": -0.1}), "score", "-0.1 is out of range", "use a number from 0 to 1, true, false or null"),
    "text": (json.dumps(GOOD | {"score": "good"}), "score", '"good" is not a number', "use a number from 0 to 1, true, false or null"),
    "no model": ('{"benchmark":"bench","item_id":"x","score":1}', "model", "is missing", "add a string"),
    "no benchmark": ('{"item_id":"x","model":"m","score":1}', "benchmark", "is missing", "add a string"),
    "no score": ('{"benchmark":"bench","item_id":"x","model":"m"}', "score", "is missing", "add a number"),
    "long": (json.dumps(GOOD | {"attributes": {"a": "a" * 10_000_000}}), "record", "the record has 10,000,", "more than 1,000,000"),
    "not utf-8": (b'{"benchmark":"bench","item_id":"\xff","model":"m","score":1}', "record", "0xff", "write the file as UTF-8"),
    "array": ("[1]", "record", "[1] is not an object", "write each object of the array on its own (jq -c '.[]' splits it)"),
    "bidi": (json.dumps(GOOD | {"model": "evil\u202e"}), "model", "U+202E", "use a string of 1 to 200"),
    "number": (json.dumps(GOOD | {"item_id": [5]}), "item_id", "[5] is not a string", "use a string"),
    "epoch": (json.dumps(GOOD | {"epoch": -1}), "epoch", "-1 is out of range", "use a whole number from 0"),
    "declaration": ('{"declare":"bench","alpha":2}', "alpha", "2 is out of range", "below 0.5"),
}  # fmt: skip


def test_bad_lines_are_named_and_everything_else_is_counted(tmp_path):
    good = events(random.Random(4), {"m": 0.4, "n": 0.7}, 100)
    records = [json.dumps(event) for event in good]
    places = {}
    for k, (name, (line, *_)) in enumerate(BAD.items()):
        records.insert(12 * k + 5, line)
        places[name] = 12 * k + 6
    path = write(tmp_path / "results.jsonl", records)
    result, errors = report(path)
    messages = errors.splitlines()
    assert len(messages) == len(BAD)
    for (name, (_, field, *words)), message in zip(BAD.items(), messages, strict=True):
        assert message.startswith(f"rankwatch: {path}:{places[name]}: {field}: "), name
        assert all(word in message for word in words), (name, message)
        assert len(message) < 600 + len(str(path))
    (benchmark,) = result["benchmarks"]
    assert benchmark["rejected"] == len(BAD)
    assert benchmark["events"] == 200
    assert pairs_of(benchmark) == Counted(good).pairs()


def test_many_bad_lines_are_named_up_to_a_point(tmp_path):
    good = events(random.Random(1), {"m": 0.5, "n": 0.5}, 600)
    bad = [{**good[0], "score": f"no {k}"} for k in range(30)]
    path = write(tmp_path / "a.jsonl", [*good, *["{"] * 50, *bad])
    result, errors = report(path)
    assert result["benchmarks"][0]["rejected"] == 80
    lines = errors.splitlines()
    assert len(lines) == 22
    assert lines[2].startswith(f"rankwatch: {path}:1203: ")
    assert lines[-2:] == [
        f"rankwatch: {path}: 47 more lines rejected for the same reason as line 1203",
        "rankwatch: 13 more lines were rejected",
    ]


@pytest.mark.parametrize(
    ("files", "paths", "code", "reasons"),
    [
        ({}, ["missing.jsonl"], 2, ["missing.jsonl does not exist", "check the path"]),
        ({"notes.txt": "x"}, ["."], 2, ["has no files of results", ".jsonl", ".parquet (text also as .gz)"]),
        (
            {"a.csv": "hello\n", "b.csv": "item,model,score\n1,a,1\n", "results.json": '{"results": {}}'},
            ["."],
            2,
            [
                "a.csv is skipped: it does not look like results",
                "b.csv: the file is skipped: no column names the benchmark; give each file by name, or add --benchmark NAME",
                "results.json is skipped: it does not look like results",
                "has no results in its 3 files; see the lines above",
            ],
        ),
        ({"a.csv": ""}, ["."], 2, ["has no results in its 1 file; nothing is written there yet"]),
        (
            {"a.jsonl": ""},
            ["a.jsonl"],
            1,
            ["a.jsonl: the file is empty; write one JSON object a line", "benchmark, item_id, model and score"],
        ),
        ({"a.jsonl": "{\n" * 3}, ["a.jsonl"], 1, ["no line can be read (rejected: 3)", "a.jsonl:1:"]),
        (
            {"a.jsonl": "{\n" * 30 + (json.dumps(GOOD) + "\n") * 100},
            ["a.jsonl"],
            1,
            ["stopped at 30 rejected", "more than 10%", "--max-rejected", "a.jsonl:1:"],
        ),
    ],
    ids=[
        "missing path",
        "no results below a folder",
        "files of a folder refused",
        "folder with an empty table",
        "empty file",
        "all lines bad",
        "too many bad lines",
    ],
)
def test_what_cannot_be_reported_ends_with_a_reason(tmp_path, files, paths, code, reasons):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    ended = rankwatch("report", *(tmp_path / path for path in paths), "--format", "json", code=code)
    assert ended.stdout == ""
    assert all(words in ended.stderr for words in reasons), ended.stderr


def test_the_share_of_bad_lines_can_be_raised(tmp_path):
    path = write(tmp_path / "a.jsonl", ["{"] * 30 + events(random.Random(1), {"m": 0.5, "n": 0.5}, 50))
    result, _ = report(path, "--max-rejected", "0.5")
    assert result["benchmarks"][0]["rejected"] == 30


def test_a_damaged_gzip_file_is_named_and_what_comes_before_is_read(tmp_path):
    records = events(random.Random(1), {"m": 0.5, "n": 0.5}, 3000)
    data = gzip.compress("".join(json.dumps(e) + "\n" for e in records).encode())
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(data[: len(data) // 2])
    result, errors = report(path)
    assert 1000 < result["benchmarks"][0]["events"] < 5000
    assert str(path) in errors
    assert "the gzip data breaks off" in errors


# --- declarations in the file -----------------------------------------------------------------------------------------------------------


def declared(tmp_path, declaration, records, *later):
    path = write(tmp_path / "declared.jsonl", [{"declare": "bench"} | declaration, *records, *later])
    result, errors = report(path, "--pairs", "all")
    (benchmark,) = result["benchmarks"]
    return benchmark, errors.replace(str(path), "FILE")


CLEAR = {"good": 0.95, "bad": 0.2}


def test_a_declared_item_count_holds_the_missing_items_against_the_leader(tmp_path):
    records = events(random.Random(6), CLEAR, 60)
    most, _ = declared(tmp_path, {"items": 70}, records)
    assert most["order"] == {"policy": "completion", "suspect": False, "reason": None, "facts": []}
    assert most["family"] == {"policy": "capacity", "size": 1, "families": 1}
    (pair,) = most["pairs"]
    assert pair["status"] == "decided"
    assert pair["decided_at_n"] == 60
    assert most["models"][0]["coverage"] == pytest.approx(60 / 70)
    (pair,) = declared(tmp_path, {"items": 600}, records)[0]["pairs"]
    assert pair["status"] == "exhausted"
    assert pair["decided"]["anytime"] is None
    assert "540 items are missing for this pair and count against the leader" in pair["reason"]


def test_a_trusted_order_decides_as_the_items_come(tmp_path):
    benchmark, _ = declared(tmp_path, {"order": "trusted", "alpha": 0.01}, events(random.Random(6), CLEAR, 60))
    assert benchmark["order"]["policy"] == "trusted"
    assert benchmark["alpha"] == 0.01
    (pair,) = benchmark["pairs"]
    assert (pair["status"], pair["decided"]["anytime_family"]) == ("decided", "a")
    assert 5 < pair["decided_at_n"] < 40


def test_a_declared_capacity_is_the_family(tmp_path):
    records = events(random.Random(7), {"a": 0.9, "b": 0.9, "c": 0.1}, 60)
    benchmark, _ = declared(tmp_path, {"order": "trusted", "family": {"policy": "capacity", "size": 2}}, records)
    assert benchmark["family"] == {"policy": "capacity", "size": 2, "families": 1}
    decided = {(p["model_a"], p["model_b"]): p["decided"]["anytime_family"] for p in benchmark["pairs"]}
    # The first item registers a-b, then a-c; there is no room for b-c.
    assert sum(side is not None for side in decided.values()) == 1
    none = [p for p in benchmark["pairs"] if p["gap_family_low"] is None]
    assert [{p["model_a"], p["model_b"]} for p in none] == [{"b", "c"}]
    assert none[0]["decided"]["anytime"] is not None


def test_fewer_items_declared_than_come_hold_everything(tmp_path):
    benchmark, _ = declared(tmp_path, {"items": 50}, events(random.Random(6), CLEAR, 60))
    assert "60 items arrived and 50 were declared" in benchmark["order"]["reason"]
    (pair,) = benchmark["pairs"]
    assert pair["status"] == "invalidated"
    assert "no longer counts" in pair["reason"]


def test_a_later_contradiction_is_refused_with_the_reason_and_counted(tmp_path):
    records = events(random.Random(6), CLEAR, 60)
    alone, _ = declared(tmp_path, {"items": 70}, records)
    benchmark, errors = declared(
        tmp_path, {"items": 70}, records, {"declare": "bench", "items": 60}, {"declare": "bench", "items": 70, "power": 0.9}
    )  # fmt: skip
    assert '{"items":60} can no longer be declared' in errors
    assert "can no longer be declared" in errors
    assert "made after seeing data" in errors
    assert benchmark["rejected"] == 1
    assert benchmark["power"] == 0.9
    assert benchmark["pairs"][0]["decided_at_n"] == alone["pairs"][0]["decided_at_n"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_conflicts_are_written_to_a_file_and_their_models_named(tmp_path, suffix):
    rows = events(random.Random(3), {"ada": 0.9, "=bob": 0.5, "cy": 0.2}, 40, benchmark="b")
    again = [{**row, "score": 1 - row["score"]} for row in rows[::7]]
    path = write(tmp_path / "results.jsonl", [*rows, *again])
    out = tmp_path / f"conflicts{suffix}"
    done = rankwatch("report", path, "--conflicts", out, "--format", "json")
    (benchmark,) = json.loads(done.stdout)["benchmarks"]
    by_model = Counted([*rows, *again]).conflicts_by_model
    assert benchmark["conflicts_by_model"] == by_model
    assert sum(by_model.values()) == benchmark["conflicts"] == len(again)
    assert f"{out}: {len(again)} conflicts written" in done.stderr
    if suffix == ".csv":
        with out.open(newline="") as file:
            listed = list(csv.DictReader(file))
        assert {row["model"] for row in listed} == {"ada", "'=bob", "cy"}
    else:
        listed = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["item_id"], row["model"].lstrip("'")) for row in listed] == [(e["item_id"], e["model"]) for e in again]
    assert [float(row["old_score"]) for row in listed] == [1 - e["score"] for e in again]
    assert [float(row["new_score"]) for row in listed] == [e["score"] for e in again]
    table = rankwatch("report", path, "--verbose").stdout
    most = max(by_model.values())
    assert f"{next(m for m, n in by_model.items() if n == most)} ({most})" in table
    assert "(--epoch next)" in table


def test_a_conflicts_file_of_another_kind_is_refused(tmp_path):
    path = write(tmp_path / "results.jsonl", events(random.Random(3), {"ada": 0.9}, 4, benchmark="b"))
    done = rankwatch("report", path, "--conflicts", tmp_path / "x.xlsx", code=2)
    assert "use a file name that ends in .csv, .jsonl or .ndjson" in done.stderr

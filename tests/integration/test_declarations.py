"""Flags that declare: alike on report, gate, watch and send, and never against another benchmark."""

import json

import numpy as np
import pytest
from scipy.stats import binomtest

from tests.commands import Watch, events, rankwatch, report, watch_once, write

MODELS = {"strong": 0.9, "fair": 0.7, "weak": 0.4}


@pytest.fixture
def records():
    return events(np.random.default_rng(15), MODELS, 60)


def named(records, name, items=60):
    return [e | {"benchmark": name} for e in records if int(e["item_id"].split()[1]) < items]


FILES_END = "assumes that the files are complete: a later run that reads more may show another decision"


def live_as_complete(benchmark):
    """The report of a live benchmark without the sentence that its files may go on."""
    assert benchmark["order"]["reason"].startswith(FILES_END)
    return benchmark | {"order": benchmark["order"] | {"reason": None, "facts": []}}


def test_the_flags_are_alike_on_report_gate_and_watch(tmp_path, records):
    path = write(tmp_path / "a.jsonl", records)
    flags = ("--items", "80", "--alpha", "bench=0.01", "--family", "capacity:7")
    (one,) = report(path, *flags)[0]["benchmarks"]
    (other,) = json.loads(watch_once(tmp_path / "data", path, *flags))["benchmarks"]
    assert one == live_as_complete(other)
    assert (one["alpha"], one["order"]["policy"], one["family"]["policy"], one["family"]["size"]) == (
        0.01,
        "completion",
        "capacity",
        7,
    )
    assert one["order"]["reason"] is None, "the item count is declared, not asserted"
    answer = rankwatch("gate", path, "--pair", "strong", "weak", "--alpha", "0.01", "--items", "60")
    assert "alpha = 0.01" in answer.stdout
    answer = rankwatch("gate", path, "--pair", "strong", "weak", "--models", "strong,fair", "--format", "json")
    assert json.loads(answer.stdout)["pair"]["decided"]["anytime_family"] is None


@pytest.mark.parametrize("by", ["flag", "named flag", "table", "event"])
def test_declared_models_are_alike_by_flag_file_and_event(tmp_path, records, by):
    comma = [e | {"model": {"strong": "strong, v2", "weak": "Fair-2"}.get(e["model"], e["model"])} for e in records]
    family = {"models": ["strong, v2", "fair", "fair_2"]}
    flag = {"flag": '"strong, v2",fair,fair_2', "named flag": 'bench="strong, v2",fair,fair_2'}.get(by)
    if by == "table":
        (tmp_path / "rankwatch.toml").write_text(
            f"[benchmark.bench]\nitems = 60\nfamily = {{models = {json.dumps(family['models'])}}}\n"
        )
    begin = [{"declare": "bench", "items": 60, "family": family}] if by == "event" else []
    path = write(tmp_path / "a.jsonl", [*begin, *comma])
    flags = () if flag is None else ("--items", 60, "--models", flag)
    parsed, notes = report(path, *flags)
    watched = rankwatch("watch", path, "--once", "--format", "json", "--data-dir", tmp_path / "data", *flags)
    (one,), (other,) = parsed["benchmarks"], json.loads(watched.stdout)["benchmarks"]
    assert (one["family"], one["pairs"]) == (other["family"], other["pairs"])
    assert "Fair-2 (declared: fair_2?) is not in the declared family" in watched.stderr
    assert one["family"] == {"policy": "capacity", "size": 3, "families": 1}
    assert (one["family_outside"], one["family_assumption"]) == (2, None)
    assert "Fair-2 (declared: fair_2?) is not in the declared family: no family-wise verdict" in notes
    assert "fair_2 of the declared family has no scores; its pairs keep a share of alpha" in notes
    pairs = {(pair["model_a"], pair["model_b"]): pair for pair in one["pairs"]}
    assert pairs["strong, v2", "fair"]["family_threshold"] == pytest.approx(0.05 / 3)
    assert pairs["fair", "Fair-2"]["decided"]["anytime_family"] is None
    assert "Fair-2 is not among the 3 declared models" in pairs["fair", "Fair-2"]["reason"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--models", "strong", "--models", "fair"), "a family of 1 model has no pair; list the models in one flag"),
        (("--models", "strong,fair,strong"), "family models repeats strong; list each model once"),
        (("--models", "strong,,fair"), "give names between commas"),
        (("--models", '"strong,fair'), "write a name that holds a comma"),
        (("--models", "strong,fair", "--family", "spending"), "the family is given twice"),
        (
            ("--models", "new,fair", "--alias", "new=strong"),
            "the family lists new, which is an alias of strong; list strong",
        ),
    ],
)
def test_a_list_of_models_that_is_no_family_is_refused_with_the_fix(tmp_path, records, flags, words):
    path = write(tmp_path / "a.jsonl", records)
    assert words in rankwatch("report", path, *flags, code=2).stderr


def test_a_list_of_models_that_changes_is_the_next_version_and_names_its_assumption(tmp_path, records):
    path, data = write(tmp_path / "a.jsonl", records), tmp_path / "data"
    watch_once(data, path, "--items", 60, "--models", "strong,fair")
    ended = rankwatch("watch", path, "--once", "--format", "json", "--data-dir", data, "--models", "strong,weak")
    assert (
        "declared again, as version 2: family = 2 models (strong, weak) (was 2 models (strong, fair))" in ended.stderr
    )
    (benchmark,) = json.loads(ended.stdout)["benchmarks"]
    decided = next(pair for pair in benchmark["pairs"] if pair["decided"]["anytime_family"])
    assert (
        "the number of items and the family, declared after the first score, were chosen without" in decided["reason"]
    )
    late = {"declare": "bench", "items": 60, "family": {"models": ["fair", "weak"]}}
    letters = rankwatch("report", write(tmp_path / "late.jsonl", [*records, late]), "--max-rejected", "1").stderr
    assert "already has scores" in letters


def test_a_bare_count_settles_under_a_trusted_order_in_a_report(tmp_path, records):
    path = write(tmp_path / "a.jsonl", records)
    for items, settled in (("60", True), ("59", False)):
        data = tmp_path / items
        flags = ("--order", "trusted", "--items", items)
        (one,) = json.loads(watch_once(data, path, *flags))["benchmarks"]
        assert {pair["settled"] is not None for pair in one["pairs"]} == {settled}
        assert ("60 items arrived and 59 were declared" in (one["order"]["reason"] or "")) != settled
        feed = (data / "verdicts.jsonl").read_text()
        assert "Assumes that the declared number of items is the whole benchmark" in feed
        assert ("more items have arrived than the 59 declared" in feed) != settled


def test_a_report_uses_a_declared_level_and_family_on_complete_files(tmp_path, records):
    path = write(tmp_path / "a.jsonl", records)
    (plain,) = report(path)[0]["benchmarks"]
    (strict,) = report(path, "--alpha", "0.001", "--family", "capacity:1000")[0]["benchmarks"]
    assert (strict["alpha"], strict["family"]["size"]) == (0.001, 1000)
    assert strict["order"]["reason"].startswith("asserted")
    assert strict["summary"]["undecided"]["anytime_family"] >= plain["summary"]["undecided"]["anytime_family"]


def test_an_item_count_never_clashes_with_another_benchmark_of_the_data_directory(tmp_path, records):
    data = tmp_path / "data"
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    write(first / "a.jsonl", named(records, "first", 40))
    watch_once(data, first, "--items", 40)
    write(second / "b.jsonl", named(records, "second", 50))
    benchmarks = {b["benchmark"]: b for b in json.loads(watch_once(data, second, "--items", 50))["benchmarks"]}
    assert [benchmarks[name]["order"]["policy"] for name in ("first", "second")] == ["completion"] * 2
    assert [benchmarks[name]["models"][0]["coverage"] for name in ("first", "second")] == [1, 1]


def test_a_flag_without_a_name_leaves_what_has_begun_in_the_same_folder(tmp_path, records):
    data, folder = tmp_path / "data", tmp_path / "runs"
    folder.mkdir()
    write(folder / "a.jsonl", named(records, "first", 40))
    watch_once(data, folder, "--items", 40)
    write(folder / "b.jsonl", named(records, "second", 50))
    ended = rankwatch("watch", folder, "--once", "--format", "json", "--data-dir", data, "--items", 50)
    assert "first stays as it was declared" in ended.stderr
    assert "--items first=50" in ended.stderr
    assert [b["models"][0]["coverage"] for b in json.loads(ended.stdout)["benchmarks"]] == [1, 1]


def test_a_flag_overrides_a_rankwatch_toml_and_the_file_and_says_so(tmp_path, records):
    (tmp_path / "rankwatch.toml").write_text('[benchmark."bench"]\nitems = 100\nalpha = 0.02\n')
    path = write(tmp_path / "a.jsonl", [{"declare": "bench", "items": 90}, *records])
    result, notes = report(path, "--items", "80")
    assert "bench: --items 80 replaces items = 100 of rankwatch.toml" in notes
    (benchmark,) = result["benchmarks"]
    assert benchmark["alpha"] == 0.02
    assert benchmark["models"][0]["coverage"] == pytest.approx(60 / 80)
    assert benchmark["rejected"] == 0
    (tmp_path / "rankwatch.toml").unlink()
    result, notes = report(path, "--items", "80", "--family", "spending")
    assert "bench: --items 80 replaces items = 90 of the file" in notes
    ended = rankwatch("watch", path, "--once", "--format", "json", "--data-dir", tmp_path / "data", "--items", "80")
    assert "bench: --items 80 replaces items = 90 of the file" in ended.stderr
    assert [live_as_complete(b) for b in json.loads(ended.stdout)["benchmarks"]] == result["benchmarks"]


def test_a_name_that_no_file_holds_ends_the_command(tmp_path, records):
    others = [{**each, "benchmark": name} for name in ("bench-mini", "quiz") for each in records[:4]]
    path, data = write(tmp_path / "a.jsonl", [*others, *records]), tmp_path / "data"
    refusal = (
        "--items and --alpha bensh=...: the files hold no benchmark of that name; they hold bench, bench-mini, quiz\n"
    )
    models = sorted({each["model"] for each in records})[:2]
    for command in (
        ["report", path],
        ["gate", path, "--pair", *models, "--benchmark", "bench"],
        ["watch", path, "--once", "--data-dir", data],
    ):
        ended = rankwatch(*command, "--items", "bensh=80", "--alpha", "bensh=0.01", code=2)
        assert refusal in ended.stderr
        assert not ended.stdout
    assert len((data / "log.jsonl").read_text().splitlines()) == 1, "nothing is read under a wrong declaration"
    watch_once(data, path, "--items", "bench=80")
    # A benchmark of the data directory may be named next to files that do not hold it.
    watch_once(data, write(tmp_path / "b.jsonl", others), "--items", "bench=80")


@pytest.mark.parametrize(
    ("flags", "refusal"),
    [
        (["--items", "400", "--items", "500"], "--items is given twice, as 400 and 500; give it once"),
        (["--items", "b=1400", "--items", "b=500"], "--items of b is given twice, as 1,400 and 500; give it once"),
        (["--alpha", "0.1", "--alpha", "0.01"], "--alpha is given twice, as 0.1 and 0.01; give it once"),
        (["--repeats", "2", "--repeats", "all"], "--repeats is given twice, as 2 and all; give it once"),
        (["--scale", "10", "--scale", "100"], "--scale is given twice, as 10 and 100; give it once"),
        (["--metric", "t=acc", "--metric", "t=f1"], "--metric of t is given twice, as acc and f1; give it once"),
    ],
)
def test_a_flag_that_is_given_twice_with_two_values_is_refused(tmp_path, records, flags, refusal):
    path = write(tmp_path / "a.jsonl", records)
    for command in (["report", path], ["watch", path, "--once", "--data-dir", tmp_path / "data"]):
        assert f"rankwatch: {refusal}\n" in rankwatch(*command, *flags, code=2).stderr
    rankwatch("report", path, "--items", "bench=60", "--items", "80", "--items", "80")


def test_graded_scores_are_recognised_or_declared(tmp_path, records):
    graded = [e | {"score": 0.5 if e["item_id"] == "item 1" else float(e["score"])} for e in records]
    path = write(tmp_path / "a.jsonl", graded)
    ended = rankwatch("watch", path, "--once", "--format", "json", "--data-dir", tmp_path / "one", "--items", "60")
    assert "bench: some scores are neither 0 nor 1; they count as graded" in ended.stderr
    (benchmark,) = json.loads(ended.stdout)["benchmarks"]
    assert benchmark["order"]["reason"] is None
    assert benchmark["summary"]["undecided"]["anytime_family"] < 3
    explicit = rankwatch(
        "watch",
        path,
        "--once",
        "--format",
        "json",
        "--data-dir",
        tmp_path / "two",
        "--items",
        "60",
        "--scores",
        "graded",
    )
    assert explicit.stderr == ""
    (same,) = json.loads(explicit.stdout)["benchmarks"]
    assert same["summary"] == benchmark["summary"]
    assert [pair["decided"] for pair in same["pairs"]] == [pair["decided"] for pair in benchmark["pairs"]]
    assert {"code": "declared_late", "parts": ["items"]} in same["assumptions"]
    (held,) = json.loads(watch_once(tmp_path / "three", path, "--items", 60, "--scores", "binary"))["benchmarks"]
    assert "(scores: graded)" in held["order"]["reason"]


def test_a_committed_order_of_graded_scores_decides_nothing_and_says_why(tmp_path):
    declared = {"declare": "bench", "order": {"policy": "committed", "seed": "x"}, "item_ids": ["0", "1"]}
    events = [{"benchmark": "bench", "item_id": str(i), "model": m, "score": 0.5} for i in range(2) for m in "ab"]
    ended = rankwatch("report", write(tmp_path / "r.jsonl", [declared, *events]), "--pairs", "all", "--format", "json")
    note = " ".join(ended.stderr.split())
    assert "bench: some scores are neither 0 nor 1, so no pair is decided: order policy 'committed'" in note
    (pair,) = json.loads(ended.stdout)["benchmarks"][0]["pairs"]
    assert (pair["status"], set(pair["decided"].values())) == ("held", {None})


def test_missing_items_count_against_the_leader_or_not(tmp_path, records):
    absent = [
        e | {"score": None} if e["model"] == records[0]["model"] and k % 2 == 0 else e for k, e in enumerate(records)
    ]
    path = write(tmp_path / "a.jsonl", absent)
    worst, ignored = (report(path, "--missing", kind)[0]["benchmarks"][0]["pairs"] for kind in ("worst", "ignorable"))
    assert report(path)[0]["benchmarks"][0]["pairs"] == worst
    assert {row["status"] for row in worst} <= {"decided", "exhausted"}
    assert any("It would be decided for" in row["reason"] for row in worst)
    assert {row["status"] for row in ignored} <= {"decided", "exhausted"}
    assert [row["status"] for row in ignored].count("decided") > [row["status"] for row in worst].count("decided")
    assert any("does not depend on the scores" in row["reason"] for row in ignored)


@pytest.mark.parametrize(
    ("flags", "advice"),
    [
        (["--alpha", "5"], "--alpha 5: give an error rate from 1e-100 to below 0.5"),
        (["--scores", "stars"], "--scores stars: use binary or graded"),
        (["--order", "random"], "--order random: use completion, committed or trusted"),
        (["--family", "capacity"], "--family capacity: use spending, or capacity:M"),
        (["--repeats", "none"], "--repeats none: give a number of repeats"),
        (["--missing", "best"], "--missing best: use worst or ignorable"),
        (["--items", "=5"], "the name of the benchmark is missing"),
    ],
)
def test_a_wrong_value_names_the_flag_and_the_fix(tmp_path, records, flags, advice):
    path = write(tmp_path / "a.jsonl", records)
    for command in (["report", path], ["watch", path, "--once", "--data-dir", tmp_path / "data"]):
        assert advice in rankwatch(*command, *flags, code=2).stderr


def test_an_alias_holds_in_every_command_and_for_benchmarks_that_have_begun(tmp_path, records):
    (tmp_path / "runs").mkdir()
    first = [e for e in records if int(e["item_id"].split()[1]) < 30]
    later = [e | {"model": "renamed"} if e["model"] == "fair" else e for e in records if e not in first]
    write(tmp_path / "runs" / "a.jsonl", first)
    data, folder = tmp_path / "data", tmp_path / "runs"
    watch_once(data, folder, "--items", 60)
    write(folder / "b.jsonl", later)
    alias = ("--alias", "renamed=fair")
    (live,) = json.loads(watch_once(data, folder, *alias))["benchmarks"]
    (whole,) = report(folder, "--items", 60, "--family", "spending", *alias)[0]["benchmarks"]
    assert live["models"] == whole["models"]
    assert {m["model"]: (m["items"], m["aliases"]) for m in live["models"]} == {
        "strong": (60, []),
        "fair": (60, ["renamed"]),
        "weak": (60, []),
    }
    assert json.loads(watch_once(data, folder))["benchmarks"] == [live], "an alias stays"
    assert "fair includes renamed" in rankwatch("report", folder, *alias).stdout
    rankwatch("gate", folder, "--pair", "fair", "weak", *alias)
    assert (
        "--alias fair=fair: name two different models"
        in rankwatch("report", folder, "--alias", "fair=fair", code=2).stderr
    )
    late = rankwatch("watch", folder, "--once", "--data-dir", data, "--alias", "weak=fair", code=2)
    assert (
        "weak already has scores of its own, so it cannot become an alias of fair; omit it: an alias is declared"
        in late.stderr
    )


@pytest.mark.parametrize(
    ("first", "second", "problem"),
    [
        ("a=b", "b=a", "--alias: bench: a and b are aliases of each other; omit one of the two (declared so far: a=b)"),
        ("a=b", "b=c", "a is an alias of b, and b is an alias of c; make a an alias of c (declared so far: a=b)"),
        (
            "d=b",
            "d=c",
            "aliases: d is an alias of b, which is permanent, so it cannot become an alias of c; omit it",
        ),
    ],
)
def test_aliases_that_contradict_earlier_ones_are_refused(tmp_path, first, second, problem):
    path = write(tmp_path / "a.jsonl", [{"benchmark": "bench", "item_id": "1", "model": "x", "score": 1}])
    watch_once(tmp_path / "data", path, "--items", 60, "--alias", first)
    refused = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", "--alias", second, code=2)
    assert problem in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("a=c", "--alias a=c: a is an alias of b too; give each alias one model"),
        ("b=a", "--alias: a and b are aliases of each other; omit one of the two"),
    ],
)
def test_aliases_that_contradict_each_other_are_refused(tmp_path, second, problem):
    path = write(tmp_path / "a.jsonl", [{"benchmark": "bench", "item_id": "1", "model": "x", "score": 1}])
    refused = rankwatch("report", path, "--alias", "a=b", "--alias", second, code=2)
    assert refused.stderr == f"rankwatch: {problem}\n"


def test_a_published_size_counts_live_and_is_compared_in_a_report(tmp_path, records):
    path = write(tmp_path / "a.jsonl", named(records, "AIME-2024", 25))
    ended = rankwatch("watch", path, "--once", "--format", "json", "--data-dir", tmp_path / "data")
    assert "AIME-2024: 30 items, the published size (https://huggingface.co/datasets/" in ended.stderr
    assert "--items AIME-2024=N overrides it" in ended.stderr
    (live,) = json.loads(ended.stdout)["benchmarks"]
    assert (live["order"]["policy"], live["models"][0]["coverage"]) == ("completion", pytest.approx(25 / 30))
    again = rankwatch("watch", path, "--once", "--format", "json", "--data-dir", tmp_path / "data")
    assert (again.stdout, again.stderr) == (ended.stdout, "")
    result, notes = report(path)
    assert "AIME-2024: 25 items were read, and 30 are published" in notes
    assert result["benchmarks"][0]["order"]["reason"].startswith("asserted that the 25 items")
    assert report(path, "--items", "30", "--family", "spending") == ({"benchmarks": [live_as_complete(live)]}, "")


def test_a_benchmark_without_an_item_count_is_named_with_the_command_that_declares_it(tmp_path, records):
    path = write(tmp_path / "a.jsonl", records)
    with Watch(tmp_path / "data", path, RANKWATCH_POLL_SECONDS="0.05") as watch:
        first = watch.line(r'bench: no item count is declared; `report` would print "(.*)" if these 60 items were all')
        assert watch.stop() == 0
    (advice,) = [line for line in watch.errors if "neither declared nor published" in line]
    assert f"to declare it: rankwatch watch {path} --data-dir {tmp_path / 'data'} --items bench=N" in advice
    assert first.group(1) in rankwatch("report", path).stdout


def test_a_headline_under_spending_explains_what_a_report_of_complete_files_does(tmp_path, records):
    path = write(tmp_path / "a.jsonl", records)
    declared = rankwatch("report", path, "--items", 60, "--family", "spending", "--verbose").stdout
    live = rankwatch("watch", path, "--once", "--items", 60, "--data-dir", tmp_path / "data", "--verbose").stdout
    assert declared == live
    assert (
        "on complete files divides it by the number of pairs (3) unless a family is declared, and may decide others"
        in " ".join(live.split())
    )
    trusted = rankwatch("report", path, "--order", "trusted", "--verbose").stdout
    assert "Alpha is spent" in trusted
    assert "unless a family is declared" not in trusted
    for flags in ((), ("--items", 60)):
        whole = rankwatch("report", path, *flags, "--verbose").stdout
        assert "family: capacity, 3 pairs" in whole
        assert "Alpha is spent" not in whole


@pytest.mark.parametrize("in_file", [False, True])
def test_a_report_divides_alpha_by_the_pairs_found_also_where_the_item_count_is_declared(tmp_path, in_file):
    """Twelve models, 66 pairs: the last pairs to arrive are decided at alpha/66, and not at their share of a spending sequence."""
    rng = np.random.default_rng(2)
    right = rng.random((400, 12)) < np.linspace(0.35, 0.75, 12)
    events = [
        {"benchmark": "bench", "item_id": str(k), "model": f"m{j:02}", "score": int(row[j])}
        for j in range(12)
        for k, row in enumerate(right)
    ]
    (plain,) = report(write(tmp_path / "a.jsonl", events))[0]["benchmarks"]
    path = write(tmp_path / "b.jsonl", [{"declare": "bench", "items": 400}, *events] if in_file else events)
    flags = () if in_file else ("--items", 400)
    (declared,) = report(path, *flags)[0]["benchmarks"]
    assert declared["family"] == plain["family"] == {"policy": "capacity", "size": 66, "families": 1}
    assert [b[f"family_{name}"] for b in (declared, plain) for name in ("outside", "assumption")] == [0, None, 0, None]
    assert declared["summary"] == plain["summary"]
    (spent,) = report(path, *flags, "--family", "spending")[0]["benchmarks"]
    assert {"policy": "spending", "size": 66}.items() <= spent["family"].items()
    assert spent["summary"]["undecided"]["anytime_family"] > declared["summary"]["undecided"]["anytime_family"]
    for pair in declared["pairs"]:
        b, c = max(pair["b"], pair["c"]), min(pair["b"], pair["c"])
        decided = binomtest(b, b + c).pvalue <= 0.05 / 66
        # The bound is of an e-value until the exact test replaces it: it decides no pair that the exact test does not.
        assert decided or pair["decided"]["anytime_family"] is None
    (short,) = report(path, "--items", 500)[0]["benchmarks"]
    assert short["summary"]["undecided"]["anytime_family"] > declared["summary"]["undecided"]["anytime_family"]


def test_a_published_size_that_is_too_small_is_not_called_declared(tmp_path):
    """`aime_2024` has 30 published items."""
    path = write(
        tmp_path / "a.jsonl",
        [
            {"benchmark": "aime_2024", "item_id": str(k), "model": model, "score": score}
            for k in range(40)
            for model, score in (("a", 1), ("b", 0))
        ],
    )
    ended = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", "--format", "json")
    assert "aime_2024: 30 items, the published size (" in ended.stderr
    (benchmark,) = json.loads(ended.stdout)["benchmarks"]
    (pair,) = benchmark["pairs"]
    for sentence in (benchmark["order"]["reason"], pair["reason"]):
        assert "40 items arrived and the published size is 30, so that size does not fit these results" in sentence
        assert "were declared" not in sentence
    changes = [json.loads(line) for line in (tmp_path / "data" / "verdicts.jsonl").read_text().splitlines()]
    kinds = {change["kind"]: change["sentence"] for change in changes}
    assert "more items have arrived than the published size of 30" in kinds["invalidated"]

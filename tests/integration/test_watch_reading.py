"""What `watch` makes of files whose rest is not the whole benchmark: refused files, unread items, other scales, late declarations."""

import json
import random

import pytest

from tests.commands import Watch, changes, events, get, rankwatch, report, until, watch_once, write
from tests.integration.test_refused_and_alike import bfcl, rows
from tests.integration.test_refused_and_alike import write as write_results
from tests.unit.files.native_logs import inspect_json, inspect_sample, lm_eval_run, sample

FIELDS = ("refused", "refused_elsewhere", "unread_items", "differing", "reading", "skipped", "refused_declarations")
"""What a report has of reading, under one name however the files were read."""

CLEAR = {"new": 0.95, "old": 0.1}


def once(data, *arguments, **options):
    """The benchmarks of `watch --once`, by name."""
    return {b["benchmark"]: b for b in json.loads(watch_once(data, *arguments, **options))["benchmarks"]}


def served(url, name="quiz"):
    """The report of a benchmark over HTTP; empty before it begins."""
    status, text = get(f"{url}/api/v1/benchmarks/{name}")
    return json.loads(text)["benchmarks"][0] if status == 200 else {}


def of_reading(benchmark):
    return {name: benchmark[name] for name in FIELDS}


def quiz(path, *more, items=60, mode="w"):
    return write(path, [*events(random.Random(5), CLEAR, items, benchmark="quiz"), *more], mode)


# --- refused files and unread items ---------------------------------------------------------------------------------------------------


def test_a_run_that_ends_reports_refused_files_as_report_does(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    bfcl(folder, "a", "simple", 40, "simple_39")
    bfcl(folder, "b", "simple", 40, *(f"simple_{k}" for k in range(30)))
    for model in "ab":
        bfcl(folder, model, "odd", 9, "odd_77")
    expected, _ = report(folder, code=1)
    [benchmark] = once(tmp_path / "data", folder, code=1).values()
    assert of_reading(benchmark) == of_reading(expected["benchmarks"][0])
    assert len(benchmark["refused"]) == 2
    assert not benchmark["result"]["settled"]["yes"]
    assert benchmark["result"]["decided"]["held"]
    again = once(tmp_path / "data", folder, code=1)
    assert again == {benchmark["benchmark"]: benchmark}, "what is stored has it, not the run that read the files"


def test_a_file_that_is_repaired_counts_again(tmp_path):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    quiz(folder / "a.jsonl")
    (folder / "b.jsonl").write_text("not JSON\n")
    held = once(data, folder, "--max-rejected", "0.5")["quiz"]
    assert [each["path"] for each in held["refused"]] == [str(folder / "b.jsonl")]
    assert not held["result"]["settled"]["yes"]
    write(folder / "b.jsonl", events(random.Random(6), CLEAR, 10, benchmark="quiz", start=60))
    whole = once(data, folder)["quiz"]
    assert whole["refused"] == []
    assert whole["items"] == 70
    assert whole["result"]["settled"]["yes"]


@pytest.mark.parametrize("again", [False, True])
def test_a_refused_file_that_is_left_out_no_longer_counts(tmp_path, again):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    quiz(folder / "a.jsonl")
    (folder / "b.jsonl").write_text("not JSON\n")
    assert once(data, folder, "--max-rejected", "0.5")["quiz"]["refused"]
    assert once(data, folder / "a.jsonl", "--max-rejected", "0.5")["quiz"]["refused"], "it is still there"
    (folder / "b.jsonl").unlink()
    whole = once(data, folder)["quiz"]
    assert whole["refused"] == []
    assert whole["result"]["settled"]["yes"]
    if again:
        (folder / "b.jsonl").write_text("not JSON\n")
        watch_once(data, folder, code=1)  # it is the only line that is new
        assert once(data, folder, "--max-rejected", "0.5")["quiz"]["refused"]


def test_what_a_repaired_file_had_rejected_is_no_error_any_more(tmp_path):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    score = lambda model, k: "?" if k < 9 and model == "new" else 1  # noqa: E731 - a table in one line
    write(folder / "a.jsonl", rows(score))
    for _ in range(2):
        ended = rankwatch("watch", folder, "--once", "--data-dir", data, code=1)
        assert "9 of 80 lines, more than 10%, could not be read" in ended.stderr
    write(folder / "a.jsonl", rows(lambda *_: 1))
    rankwatch("watch", folder, "--once", "--data-dir", data)


def test_unread_items_are_missing_until_a_line_of_them_is_read(tmp_path):
    """`new` leads by one item of 40, so that one more could undo it."""
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    score = lambda model, k: "?" if k == 39 else int(k < 20 + (model == "new"))  # noqa: E731 - a table in one line
    write(folder / "a.jsonl", rows(score))
    benchmark = once(data, folder)["quiz"]
    assert (benchmark["items"], benchmark["unread_items"]) == (39, 1)
    assert not benchmark["result"]["settled"]["yes"]
    write(folder / "b.jsonl", [{"benchmark": "quiz", "item_id": "q39", "model": m, "score": 0} for m in ("new", "old")])
    benchmark = once(data, folder)["quiz"]
    assert (benchmark["items"], benchmark["unread_items"]) == (40, 0)
    assert benchmark["result"]["settled"]["yes"]


def test_no_run_is_ended_in_a_benchmark_with_refused_files(tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    quiz(folder / "a.jsonl")
    (folder / "b.jsonl").write_text("not JSON\n")
    flags = ("--once", "--ended", "--items", 80, "--missing", "ignorable", "--max-rejected", "0.5")
    ended = rankwatch("watch", folder, *flags, "--data-dir", tmp_path / "data", "--format", "json", code=1)
    assert not any(model["run_ended"] for model in json.loads(ended.stdout)["benchmarks"][0]["models"])
    assert "no run was ended" in ended.stderr
    assert "b.jsonl was refused" in ended.stderr


def test_a_watch_shows_what_was_not_read_and_a_restart_has_it(tmp_path):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    quiz(folder / "a.jsonl", {"benchmark": "quiz", "item_id": "lost", "model": "new", "score": "?"})
    (folder / "b.jsonl").write_text("not JSON\n")
    with Watch(data, folder, RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: served(url).get("refused"), "the refused file")
        before = served(url)
        watch.line(r"quiz: 1 file refused, 1 item unread")
        assert before["unread_items"] == 1
        metrics = get(f"{url}/metrics")[1]
        assert 'rankwatch_files_refused{benchmark="quiz"} 1.0' in metrics
        assert 'rankwatch_items_unread{benchmark="quiz"} 1.0' in metrics
        assert not before["result"]["settled"]["yes"]
    with Watch(data, folder, RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: served(url).get("events") == 120, "the state")
        assert of_reading(served(url)) == of_reading(before)
        write(folder / "b.jsonl", [{"benchmark": "quiz", "item_id": "lost", "model": "new", "score": 1}])
        until(lambda: not served(url)["refused"], "the repaired file")
        assert served(url)["unread_items"] == 0
        assert 'rankwatch_files_refused{benchmark="quiz"} 0.0' in get(f"{url}/metrics")[1]


def test_notes_and_failed_runs_are_those_of_report(tmp_path):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    samples = [inspect_sample(k, "C") for k in range(9)] + [inspect_sample(9, None, error="no")]
    inspect_json(folder / "a.json", samples)
    inspect_json(folder / "b.json", [inspect_sample(k, "CI"[k % 2]) for k in range(10)], model="other")
    inspect_json(folder / "c.json", [inspect_sample(k, "C") for k in range(10)], model="other", task_id="again")
    [expected] = report(folder)[0]["benchmarks"]
    assert expected["skipped"] == {"error": 1}
    assert any("both hold scores of" in text for text in expected["reading"])
    for _ in range(2):
        [benchmark] = once(data, folder).values()
        assert of_reading(benchmark) == of_reading(expected)


# --- items that differ ----------------------------------------------------------------------------------------------------------------


def lm_eval(folder, model, count=60, **metrics):
    """A run whose samples have metrics in this order: for each, every how many items it is 1."""
    samples = [sample(k, metrics={name: float(k % each == 0) for name, each in metrics.items()}) for k in range(count)]
    return lm_eval_run(folder / model, model, samples, better=dict.fromkeys(metrics, True))


def means(benchmark):
    return {each["model"]: round(each["mean"] * 60) for each in benchmark["models"]}


def test_a_later_file_is_read_by_the_metric_of_the_board_or_refused(tmp_path):
    folder, data, most = tmp_path / "runs", tmp_path / "data", ("--max-rejected", "0.9")
    lm_eval(folder, "b", exact_match=2)
    assert means(once(data, folder)["quiz"]) == {"b": 30}
    lm_eval(folder, "a", acc=1, exact_match=3)
    lm_eval(folder, "c", acc=1)
    after = once(data, folder, *most)["quiz"]
    assert means(after) == {"b": 30, "a": 20}
    [refused] = after["refused"]
    assert "/c/samples_quiz" in refused["path"]
    assert "there is no metric exact_match" in refused["reason"]
    lm_eval(folder, "d", acc=1, exact_match=4)
    assert means(once(data, folder, *most)["quiz"]) == {"b": 30, "a": 20, "d": 15}, "a restart keeps it too"
    ended = rankwatch("watch", "--once", folder, "--data-dir", data, "--metric", "acc", *most, code=1)
    assert "an earlier file of quiz has the metric exact_match" in ended.stderr
    assert "with --benchmark NAME to keep both" in ended.stderr
    runs = [folder / name for name in "bad"]
    assert means(report(*runs)[0]["benchmarks"][0]) == {"b": 30, "a": 20, "d": 15}


def test_a_second_send_is_read_by_the_metric_of_the_first_or_refused(tmp_path):
    """Each call chose for itself: models by acc and by exact_match were compared on one board without a word."""
    runs = tmp_path / "runs"
    lm_eval(runs, "b", exact_match=2)
    with Watch(tmp_path / "data") as watch:

        def send(model, *flags, code=0):
            place = ("--to", watch.url, "--data-dir", tmp_path / "sent", "--max-rejected", "0.9")
            return rankwatch("send", runs / model, *place, *flags, code=code)

        send("b")
        lm_eval(runs, "a", acc=1, exact_match=3)
        send("a")
        lm_eval(runs, "c", acc=1)
        for flags in ((), ("--metric", "acc"), ("--metric", "acc", "--again")):
            said = send("c", *flags, code=1).stderr
            assert "exact_match" in said
            assert "--metric" in said
        send("c", "--metric", "acc", "--benchmark", "by acc")

        def shown(name):
            status, text = get(f"{watch.url}/api/v1/benchmarks/{name}")
            return means(json.loads(text)["benchmarks"][0]) if status == 200 else {}

        assert until(lambda: shown("by%20acc"), "the last upload") == {"c": 60}
        assert shown("quiz") == {"b": 30, "a": 20}


def test_a_later_log_is_read_by_the_scorer_of_the_board(tmp_path):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    inspect_json(folder / "b.json", [inspect_sample(k, "CI"[k % 2]) for k in range(60)], model="b")
    assert means(once(data, folder)["quiz"]) == {"b": 30}
    two = [inspect_sample(k, "CII"[k % 3], choice="C") for k in range(60)]
    inspect_json(folder / "a.json", two, model="a", scorers=[{"name": "choice"}, {"name": "match"}])
    assert means(once(data, folder)["quiz"]) == {"b": 30, "a": 20}
    assert means(report(folder / "b.json", folder / "a.json")[0]["benchmarks"][0]) == {"b": 30, "a": 20}


def test_logs_of_different_items_end_the_verdicts_of_a_watch(tmp_path):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()

    def log(model, share, text="{}"):
        samples = [inspect_sample(k, "C" if k < 60 * share else "I") | {"input": text.format(k)} for k in range(60)]
        inspect_json(folder / f"{model}.json", samples, model=model)

    log("a", 1)
    log("b", 0)
    flags = ("--items", "60")
    [first] = once(data, folder, *flags).values()
    assert first["result"]["decided"]["yes"]
    assert first["differing"] is None
    log("c", 0.5, text="other {}")
    [second] = once(data, folder, *flags).values()
    assert "differs from the one in" in second["differing"]
    assert not second["result"]["settled"]["yes"]
    assert second["result"]["decided"]["held"]
    withdrawn = [change for change in changes(data) if change["kind"] == "invalidated"]
    assert withdrawn
    assert all(second["differing"] in change["sentence"] for change in withdrawn)
    assert [*once(data, folder, *flags).values()] == [second]


# --- scales ---------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_percent_scores_hold_a_followed_benchmark_and_name_the_flag(tmp_path, form):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    quiz(folder / "a.jsonl")
    score = lambda model, k: [0, 100, 1][k % 3] if model == "new" else 0  # noqa: E731 - a table in one line
    events = [{**row, "benchmark": "percent"} for row in rows(score)]
    write_results(folder / f"b.{form}", events)
    with Watch(data, folder, "--items", "percent=40", RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: served(url, "percent").get("off_scale"), "the scale")
        benchmark = served(url, "percent")
        assert "--scale 100" in benchmark["off_scale"]
        assert not benchmark["result"]["settled"]["yes"]
        assert benchmark["result"]["decided"]["held"]
        until(lambda: "".join(watch.errors).count("add --scale 100"), "one message")
        assert served(url)["off_scale"] is None, "of the other benchmark nothing is held"
    assert "".join(watch.errors).count("add --scale 100") == 1
    assert all(change["benchmark"] != "percent" for change in changes(data))
    with Watch(data, folder, RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: served(url, "percent").get("off_scale"), "the state")
        for verb in ("delete", "reopen"):
            rankwatch("board", verb, "percent", "--server", url, *(["--yes"] if verb == "delete" else []))
    with Watch(data, folder, "--scale", "percent=100", RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: served(url, "percent").get("events") == 80, "the scores on their scale")
        benchmark = served(url, "percent")
        assert benchmark["off_scale"] is None
        assert {m["model"]: round(m["mean"], 4) for m in benchmark["models"]} == {"new": 0.3283, "old": 0.0}


def test_one_wrong_score_holds_its_benchmark_until_it_is_begun_again_from_the_corrected_file(tmp_path):
    """On a scale of percent a hard benchmark has few right answers: one score above 1 may be the only one that shows it."""
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    path, right = folder / "a.jsonl", lambda model, _: int(model == "new")
    write_results(path, rows(lambda model, k: 50 if (model, k) == ("new", 7) else right(model, k)))
    with Watch(data, folder, "--items", "quiz=40", RANKWATCH_POLL_SECONDS="0.05") as watch:
        url = watch.url
        until(lambda: served(url).get("off_scale"), "the scale")
        until(lambda: "(1 above it, the largest 50, the first in " in "".join(watch.errors), "the place")
        assert "; correct a score that is wrong" in "".join(watch.errors)
        assert "which is 1 if a score was wrong and its file is correct now" in served(url)["off_scale"]
        write_results(path, rows(right))
        until(lambda: served(url)["events"] == 79 + 80, "the corrected file")
        assert served(url)["off_scale"], "what counted before may still be on another scale"
        for verb in ("delete", "reopen"):
            rankwatch("board", verb, "quiz", "--server", url, *(["--yes"] if verb == "delete" else []))
    with Watch(data, folder, "--scale", "quiz=1", RANKWATCH_POLL_SECONDS="0.05") as watch:
        until(lambda: served(watch.url).get("events") == 80, "all scores")
        assert served(watch.url)["off_scale"] is None


# --- declarations ---------------------------------------------------------------------------------------------------------------------


def seed(value):
    order = {"policy": "committed", "seed": value}
    return {"declare": "quiz", "order": order, "item_ids": [f"item {k}" for k in range(60)]}


def test_a_refused_declaration_is_part_of_the_result(tmp_path):
    folder, data = tmp_path / "runs", tmp_path / "data"
    folder.mkdir()
    path = write(folder / "a.jsonl", [seed("one"), seed("two"), *events(random.Random(5), CLEAR, 60, benchmark="quiz")])
    [expected] = report(path)[0]["benchmarks"]
    benchmark = once(data, folder)["quiz"]
    [refused] = benchmark["refused_declarations"]
    assert refused["where"] == f"line 2 of {path}"
    assert refused["field"] == "order"
    assert "the first ones count" in refused["reason"]
    assert benchmark["rejected"] == 1
    [of_files] = expected["refused_declarations"]
    assert (of_files["where"], of_files["field"]) == (refused["where"], refused["field"])
    assert once(data, folder)["quiz"]["refused_declarations"] == [refused]
    for form in ("table", "markdown", "html"):
        text = " ".join(rankwatch("report", path, "--format", form).stdout.split())
        assert "Declaration refused" in text
        assert "the first ones count" in text


def test_scores_that_the_benchmark_refuses_count_for_max_rejected(tmp_path):
    """Units that contradict what is declared: the lines can be read, and no score of them counts."""
    declared = {"declare": "quiz", "units": {f"item {k}": f"u{k // 2}" for k in range(60)}, "items": 60}
    made = events(random.Random(5), CLEAR, 60, benchmark="quiz")
    path = write(tmp_path / "a.jsonl", [declared, *(each | {"unit": "other"} for each in made[:20]), *made[20:]])
    benchmark, notes = report(path, code=1)
    assert benchmark["benchmarks"][0]["rejected"] == 20
    assert "20 of 120 lines, more than 10%, could not be read" in notes
    assert report(path, "--max-rejected", "0.5")
    assert rankwatch("gate", path, "--pair", "new", "old", code=1).stdout == ""
    ended = rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", code=1)
    assert "20 of 120 lines, more than 10%, could not be read" in ended.stderr
    rankwatch("watch", path, "--once", "--data-dir", tmp_path / "data", "--max-rejected", "0.5")

"""What is read of files, and in which order: PATHs one after the other, files that break off, files that are read again."""

import gzip
import json

import pytest

from tests import forked
from tests.commands import Watch, environment, get, rankwatch, report, until, watch_once, write
from tests.forked import RANKWATCH


def scores(values, model="a", benchmark="bench", **more):
    """One event an item."""
    return [
        {"benchmark": benchmark, "item_id": f"i{k}", "model": model, "score": value, **more}
        for k, value in enumerate(values)
    ]


def mean_of(result, model="a"):
    """The mean of a model in a report of one benchmark."""
    (benchmark,) = (json.loads(result) if isinstance(result, str) else result)["benchmarks"]
    return next(each["mean"] for each in benchmark["models"] if each["model"] == model)


def test_paths_are_read_in_the_order_given_and_a_folder_by_name(tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    last, first = write(tmp_path / "z.jsonl", scores([1] * 4)), write(tmp_path / "a.jsonl", scores([0] * 4))
    write(folder / "2.jsonl", scores([1] * 4))
    write(folder / "1.jsonl", scores([0.5] * 4))
    for paths, mean in (((last, first), 1), ((first, last), 0), ((folder, last), 0.5), ((last, folder), 1)):
        assert mean_of(report(*paths)[0]) == mean
        assert mean_of(watch_once(tmp_path / f"data {paths[0].name} {paths[1].name}", *paths)) == mean
        named = [f"a={path}" for path in paths]
        assert mean_of(report(*named)[0]) == mean
    with Watch(tmp_path / "data") as watch:
        rankwatch("send", last, first, "--to", watch.url, "--data-dir", tmp_path / "sent")
        until(lambda: json.loads(get(f"{watch.url}/api/v1/benchmarks")[1])["benchmarks"], "the scores")
        assert mean_of(get(f"{watch.url}/api/v1/benchmarks")[1]) == 1


def board(models="ab", items=40, benchmark="bench"):
    """The first model is right on all items but every tenth, the others on the rest."""
    return [
        {"benchmark": benchmark, "item_id": f"i{k}", "model": model, "score": int((model == "a") == (k % 10 > 0))}
        for model in models
        for k in range(items)
    ]


def cut(path, records, how):
    """Write a file, then a copy that breaks off: inside its gzip data, or inside its last line."""
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    whole = gzip.compress(text, mtime=0) if how == "gzip" else text
    path = path.with_suffix(".jsonl.gz" if how == "gzip" else ".jsonl")
    path.write_bytes(whole[: -len(whole) // 3] if how == "gzip" else whole[:-20])
    return path, whole


@pytest.mark.parametrize("how", ["gzip", "line"])
def test_no_run_ends_with_a_file_that_breaks_off(tmp_path, how):
    (tmp_path / "results").mkdir()
    path, whole = cut(tmp_path / "results/x", board(), how)
    other = write(tmp_path / "results/other.jsonl", board(benchmark="other"))
    data, missing = (
        tmp_path / "data",
        "the gzip data breaks off at byte" if how == "gzip" else "the last line is half-written",
    )
    command = ["watch", other, path, "--once", "--ended", "--data-dir", data, "--format", "json"]
    first = rankwatch(*command, code=1)
    assert f"bench: {path} is incomplete ({missing}" in first.stderr
    assert "), so no run was ended; complete the file, and run the command again" in first.stderr
    assert "rankwatch: 2 runs ended\n" in first.stderr
    bench, rest = json.loads(first.stdout)["benchmarks"]
    assert not any(model["run_ended"] for model in bench["models"])
    assert all(model["run_ended"] for model in rest["models"])
    path.write_bytes(whole)
    bench, _ = json.loads(rankwatch(*command).stdout)["benchmarks"]
    assert [(m["model"], m["items"], m["run_ended"]) for m in bench["models"]] == [("a", 40, True), ("b", 40, True)]
    assert bench["incomplete"] is None


@pytest.mark.parametrize("how", ["gzip", "line"])
def test_send_and_a_live_watch_end_no_run_with_a_file_that_breaks_off(tmp_path, how):
    path, whole = cut(tmp_path / "x", board(), how)
    other = write(tmp_path / "other.jsonl", board(benchmark="other"))

    def ended(watch):
        benchmarks = json.loads(get(f"{watch.url}/api/v1/benchmarks")[1])["benchmarks"]
        return {b["benchmark"]: [m["run_ended"] for m in b["models"]] for b in benchmarks}

    with Watch(tmp_path / "data") as watch:
        command = ["send", path, other, "--to", watch.url, "--data-dir", tmp_path / "sent", "--ended"]
        first = rankwatch(*command, code=1)
        assert f"bench: {path} is incomplete (" in first.stderr
        assert "; 2 runs ended" in first.stdout
        until(lambda: ended(watch).get("other") == [True, True], "the end of the other runs")
        assert not any(ended(watch)["bench"])
        path.write_bytes(whole)
        assert "; 2 runs ended" in rankwatch(*command).stdout
        until(lambda: ended(watch)["bench"] == [True, True], "the end of the runs")
    path, _ = cut(tmp_path / "x", board(), how)
    with Watch(tmp_path / "live", path, other, "--ended", RANKWATCH_POLL_SECONDS="0.05") as watch:
        until(lambda: any("2 runs ended" in line for line in watch.errors), "the end of the other runs")
        assert any(f"bench: {path} is incomplete (" in line for line in watch.errors)
        assert not any(ended(watch)["bench"])


@pytest.mark.parametrize("how", ["gzip", "line"])
def test_a_file_that_breaks_off_is_not_the_whole_benchmark(tmp_path, how):
    path, whole = cut(tmp_path / "x", board(), how)
    other = write(tmp_path / "other.jsonl", board(benchmark="other"))
    clause = f"{path} is incomplete ("
    for printed in (report(path, other)[0], json.loads(watch_once(tmp_path / "data", path, other))):
        bench, rest = printed["benchmarks"]
        assert bench["incomplete"].startswith(clause)
        assert bench["order"]["policy"] == "none"
        assert bench["order"]["reason"].startswith(clause)
        assert {pair["status"] for pair in bench["pairs"]} == {"held"}
        assert not any(model["run_ended"] for model in bench["models"])
        assert (rest["incomplete"], rest["pairs"][0]["status"]) == (None, "decided")
    for form in ("table", "markdown", "html"):
        text = rankwatch("report", path, "--format", form).stdout.replace("\\", "")
        assert "is incomplete (" in " ".join(text.split())
    assert clause in rankwatch("report", path, "--format", "csv").stderr
    gate = ["gate", path, "--pair", "a", "b"]
    assert clause in rankwatch(*gate, code=1).stderr
    assert clause in rankwatch(*gate, "--items", 40, code=1).stderr
    path.write_bytes(whole)
    rankwatch(*gate)
    assert "incomplete" not in rankwatch("report", path).stdout


def test_a_declared_item_count_holds_for_a_file_that_breaks_off(tmp_path):
    path, _ = cut(tmp_path / "x", board(models="ba"), "line")
    (bench,) = report(path, "--items", 40, "--missing", "ignorable")[0]["benchmarks"]
    assert (bench["order"]["policy"], bench["order"]["suspect"]) == ("completion", False)
    assert [each["code"] for each in bench["order"]["facts"]] == ["incomplete_file"]
    assert bench["order"]["reason"].startswith(f"{path} is incomplete (the last line is half-written), so its end")
    assert bench["pairs"][0]["status"] == "decided"


def places(result):
    """Epoch and mean of each model."""
    (benchmark,) = json.loads(result)["benchmarks"]
    assert not benchmark["conflicts"]
    return {m["model"]: (m["epoch"], m["mean"]) for m in benchmark["models"]}


UNCHANGED = "read with --epoch {} before, and nothing new was read; to read it again, give a newer number (--epoch N)"


@pytest.mark.parametrize("epoch", ["next", "1"])
def test_another_epoch_reads_a_file_again_and_the_same_does_not(tmp_path, epoch):
    path, data = write(tmp_path / "x.jsonl", scores([1, 0])), tmp_path / "data"
    command = ["watch", tmp_path, "--once", "--data-dir", data, "--format", "json"]
    assert places(rankwatch(*command).stdout) == {"a": (0, 0.5)}
    again = rankwatch(*command, "--epoch", epoch)
    assert places(again.stdout) == {"a": (1, 0.5)}
    assert UNCHANGED.format(epoch) not in again.stderr
    again = rankwatch(*command, "--epoch", epoch)
    assert places(again.stdout) == {"a": (1, 0.5)}
    assert f"rankwatch: {path} was {UNCHANGED.format(epoch)}\n" in again.stderr
    write(path, scores([1, 0, 0, 0])[2:], mode="a")
    assert places(rankwatch(*command).stdout) == {"a": (1, 0.25)}, "new lines belong to the epoch of the file"
    (benchmark,) = json.loads(rankwatch(*command, "--epoch", epoch).stdout)["benchmarks"]
    assert (benchmark["events"], benchmark["duplicates"]) == (6, 0)
    write(path, scores([0, 0]))
    if epoch == "next":
        assert places(rankwatch(*command, "--epoch", "next").stdout) == {"a": (2, 0)}
    else:
        assert places(rankwatch(*command, "--epoch", "5").stdout) == {"a": (5, 0)}


def test_standard_input_is_read_again_under_another_epoch(tmp_path):
    text = "".join(json.dumps(each) + "\n" for each in scores([1, 0])).encode()
    flags = ["--once", "--data-dir", str(tmp_path / "data"), "--format", "json"]

    def once(*more, text=text):
        command = [RANKWATCH, "watch", "-", *flags, *more]
        ended = forked.run(command, input=text, text=False, env=environment(), timeout=120)
        assert ended.returncode == 0, ended.stderr
        return places(ended.stdout), ended.stderr.decode()

    assert once()[0] == {"a": (0, 0.5)}
    assert once("--epoch", "next")[0] == {"a": (1, 0.5)}
    same, errors = once("--epoch", "next")
    assert same == {"a": (1, 0.5)}
    assert f"standard input was {UNCHANGED.format('next')}" in errors
    assert once("--epoch", "next", text=text.replace(b"0}", b"1}"))[0] == {"a": (2, 1)}
    assert once("--epoch", "4")[0] == {"a": (4, 0.5)}


def test_an_interrupted_next_stays_one_generation(tmp_path):
    """The scores of a model are in two files, and the first command stops between them."""
    folder, data = tmp_path / "results", tmp_path / "data"
    folder.mkdir()
    old = write(tmp_path / "old.jsonl", scores([1] * 4))
    watch_once(data, old)
    write(folder / "1.jsonl", scores([0] * 2))
    bad = write(folder / "2.jsonl", ["broken"] * 40)
    write(folder / "3.jsonl", scores([0] * 4)[2:])
    command = ["watch", folder, "--once", "--data-dir", data, "--format", "json", "--epoch", "next"]
    rankwatch(*command, "--max-rejected", "0", code=1)
    bad.unlink()
    assert places(rankwatch(*command).stdout) == {"a": (1, 0)}
    (benchmark,) = json.loads(rankwatch(*command).stdout)["benchmarks"]
    assert (benchmark["epochs"], benchmark["models"][0]["items"]) == ([0, 1], 4)


@pytest.mark.parametrize("epoch", ["next", "3"])
def test_send_reads_a_file_again_under_another_epoch(tmp_path, epoch):
    path = write(tmp_path / "x.jsonl", scores([1, 0]))
    number = 1 if epoch == "next" else 3
    with Watch(tmp_path / "data") as watch:
        command = ["send", path, "--to", watch.url, "--data-dir", tmp_path / "sent"]

        def newest():
            return places(get(f"{watch.url}/api/v1/benchmarks")[1])["a"][0]

        rankwatch(*command)
        assert "2 events of 1 benchmark sent" in rankwatch(*command, "--epoch", epoch).stdout
        until(lambda: newest() == number, "the newer epoch")
        again = rankwatch(*command, "--epoch", epoch)
        assert again.stdout.startswith("nothing new sent")
        assert f"{path} was {UNCHANGED.format(epoch)}" in again.stderr
        assert rankwatch(*command).stdout.startswith("nothing new sent")
        assert "2 events" in rankwatch(*command, "--epoch", epoch, "--again").stdout
        until(lambda: newest() == (2 if epoch == "next" else 3), "the newest epoch")


def repeated(count, models="ab", items=20):
    """The same score again under other labels."""
    return [{**each, "repeat": label} for each in board(models, items) for label in range(count)]


def test_undeclared_repeats_name_the_order_policy_that_they_leave_unused(tmp_path):
    path = write(tmp_path / "x.jsonl", repeated(8))
    unused = (
        "8 repeats an item: a score is their mean; the declared order policy trusted is not used: a has 2 repeats of item i0, and 1 is "
        "declared; declare as many as the items have (repeats: R), or all (repeats: all)"
    )
    (benchmark,) = report(path, "--order", "trusted")[0]["benchmarks"]
    assert benchmark["order"]["policy"] == "completion"
    assert benchmark["order"]["reason"].endswith(unused)
    for form in ("table", "markdown", "html"):
        text = rankwatch("report", path, "--order", "trusted", "--format", form).stdout.replace("\\", "")
        assert "the declared order policy trusted is not used: a has 2 repeats of item i0" in " ".join(text.split())
    flagged = unused.replace("(repeats: R)", "(--repeats R)").replace("(repeats: all)", "(--repeats all)")
    assert flagged in rankwatch("gate", path, "--pair", "a", "b", "--order", "trusted").stdout
    for flags in (("--order", "trusted", "--repeats", "8"), ("--repeats", "8"), ()):
        reason = report(path, *flags)[0]["benchmarks"][0]["order"]["reason"]
        assert "not used" not in (reason or "")
        assert "are declared" not in (reason or "")


@pytest.mark.parametrize(
    ("more", "number"), [([], "8 repeats an item"), (repeated(1, "c"), "5.7 repeats an item on average, 1 to 8")]
)
def test_more_repeats_than_declared_are_named(tmp_path, more, number):
    path = write(tmp_path / "x.jsonl", [*repeated(8), *more])
    for flags in (("--repeats", "2"), ("--repeats", "2", "--items", "20")):
        reason = report(path, *flags)[0]["benchmarks"][0]["order"]["reason"]
        assert reason.endswith(f"{number}, 2 are declared: a score is the mean of all")

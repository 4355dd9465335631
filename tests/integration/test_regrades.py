"""Boards that are scored again: each PATH or run a generation of its own."""

import json
import os
import random
import urllib.request

import pytest

from tests.commands import Watch, rankwatch, report, until, watch_once, write


def snapshots(models, items, count, changed, seed=1):
    """Boards, each with a share of the scores of the last one replaced; models in another order each time."""
    rng = random.Random(seed)
    names = [f"m{k:02}" for k in range(models)]
    easy = [rng.uniform(-0.25, 0.25) for _ in range(items)]
    skill = {name: 0.3 + 0.4 * k / models for k, name in enumerate(names)}

    def answer(name, item):
        return int(rng.random() < min(max(skill[name] + easy[item], 0.02), 0.98))

    board = {(name, item): answer(name, item) for name in names for item in range(items)}
    boards = []
    for _ in range(count):
        order = rng.sample(names, models)
        boards.append(
            [
                {"benchmark": "board", "item_id": f"q{item}", "model": name, "score": board[name, item]}
                for name in order
                for item in range(items)
            ]
        )
        board = {key: answer(*key) if rng.random() < changed else score for key, score in board.items()}
    return boards


def decided(result):
    (benchmark,) = result["benchmarks"]
    assert not benchmark["conflicts"]
    rows = [row for row in benchmark["pairs"] if row["status"] != "superseded"]
    return {frozenset({row["model_a"], row["model_b"]}) for row in rows if row["decided"]["anytime_family"]}, len(rows)


def check(tmp_path, models, items):
    """The last of five snapshots decides what a fresh benchmark decides, by report and by watch."""
    boards = snapshots(models, items, 5, 0.025)
    paths = [write(tmp_path / f"{k}.jsonl", board) for k, board in enumerate(boards)]
    for each in (
        lambda *files: report(*files, "--epoch", "next")[0],
        lambda *files: report(*files, "--epoch", "next", "--items", items)[0],
    ):
        fresh, pairs = decided(each(paths[-1]))
        last, same_pairs = decided(each(*paths))
        assert same_pairs == pairs == models * (models - 1) // 2
        assert len(last) >= 0.98 * len(fresh) > 0
    fresh, _ = decided(json.loads(watch_once(tmp_path / "fresh", paths[-1], "--items", items)))
    for path in paths:
        result = json.loads(watch_once(tmp_path / "data", path, "--items", items, "--epoch", "next"))
        (benchmark,) = result["benchmarks"]
    assert {model["epoch"] for model in benchmark["models"]} == {4}
    last, _ = decided(result)
    assert len(last) >= 0.98 * len(fresh) > 0
    print(f"{models} models: {len(last)} of {len(fresh)} by watch")


def test_the_last_snapshot_decides_what_a_fresh_board_decides(tmp_path):
    check(tmp_path, 9, 400)


@pytest.mark.full
@pytest.mark.skipif(os.environ.get("RANKWATCH_SLOW") != "1", reason="takes minutes: RANKWATCH_SLOW=1 runs it")
def test_a_board_of_77_models_loses_nothing_over_five_snapshots(tmp_path):
    check(tmp_path, 77, 1_700)


def test_next_is_refused_for_a_topic_and_a_wrong_epoch_everywhere(tmp_path):
    path = write(tmp_path / "x.jsonl", snapshots(2, 3, 1, 0)[0])
    refused = rankwatch("send", path, "--to", "kafka://localhost:1/x", "--epoch", "next", code=2)
    assert "give the number, --epoch N" in refused.stderr
    for command in (["report", path], ["watch", path, "--once", "--data-dir", tmp_path / "d"]):
        assert "use a whole number from 0" in rankwatch(*command, "--epoch", "soon", code=2).stderr


def partial(tmp_path):
    """A board of two models and 40 items, and a file that scores 10 of them again for one of the models."""
    board = [
        {"benchmark": "board", "item_id": f"q{item}", "model": name, "score": int(item % 4 > worst)}
        for name, worst in (("a", 0), ("b", 2))
        for item in range(40)
    ]
    again = [{**each, "score": 0} for each in board if each["model"] == "a"][:10]
    return board, write(tmp_path / "1.jsonl", board), write(tmp_path / "2.jsonl", again)


def expected(board):
    scores = {(each["model"], each["item_id"]): each["score"] for each in board}
    return {
        "a": (1, 40, sum(scores["a", f"q{item}"] for item in range(10, 40)) / 40),
        "b": (0, 40, sum(scores["b", f"q{item}"] for item in range(40)) / 40),
    }


def means(result):
    (benchmark,) = result["benchmarks"]
    assert not benchmark["rejected"]
    return {model["model"]: (model["epoch"], model["items"], model["mean"]) for model in benchmark["models"]}


def test_a_partial_regrade_inherits_what_it_does_not_replace(tmp_path):
    board, first, second = partial(tmp_path)
    flags = ("--epoch", "next", "--inherit")
    assert means(report(first, second, *flags)[0]) == expected(board)
    data = tmp_path / "data"
    watch_once(data, first)
    live = rankwatch("watch", second, "--once", "--format", "json", "--data-dir", data, *flags)
    assert "1 run ended; 1 of them keeps the scores of the epoch before where there is no new one" in live.stderr
    assert means(json.loads(live.stdout)) == expected(board)
    late = write(tmp_path / "3.jsonl", [{"benchmark": "board", "item_id": "new", "model": "a", "epoch": 1, "score": 1}])
    (after,) = json.loads(watch_once(data, late))["benchmarks"]
    assert after["rejected"] == 1, "the run has ended"


def test_a_watch_that_was_interrupted_inherits_the_next_time(tmp_path):
    board, first, second = partial(tmp_path)
    data = tmp_path / "data"
    watch_once(data, first)
    watch_once(data, second, "--epoch", "next")  # as if it had been killed before the run ended
    assert means(json.loads(watch_once(data, second, "--epoch", "next", "--inherit"))) == expected(board)


def test_following_files_inherits_once_what_they_hold_is_read(tmp_path):
    board, first, second = partial(tmp_path)
    data = tmp_path / "data"
    watch_once(data, first)
    with Watch(data, second, "--epoch", "next", "--inherit", RANKWATCH_POLL_SECONDS="0.05") as watch:
        until(lambda: any("1 run ended; 1 of them keeps" in line for line in watch.errors), "the end of the run")

        def shown():
            with urllib.request.urlopen(f"{watch.url}/api/v1/benchmarks/board") as response:
                return means(json.load(response)) == expected(board)

        until(shown, "the board of the last generation")  # a page is the report of a prefix of the log


def test_send_over_http_ends_the_runs_that_inherit_even_after_an_interruption(tmp_path):
    board, first, second = partial(tmp_path)
    with Watch(tmp_path / "data", RANKWATCH_POLL_SECONDS="0.05") as watch:
        to = ("--to", watch.url, "--data-dir", tmp_path / "sent")
        rankwatch("send", first, *to)
        bad = write(tmp_path / "3.jsonl", [{"benchmark": "board"}] * 30)
        stopped = rankwatch("send", second, bad, *to, "--epoch", "next", "--inherit", code=1)
        assert "ended" not in stopped.stdout
        printed = rankwatch("send", second, *to, "--epoch", "next", "--inherit").stdout
        assert "1 run ended; 1 of them keeps" in printed

        def shown():
            with urllib.request.urlopen(f"{watch.url}/api/v1/benchmarks/board") as response:
                return means(json.load(response)) == expected(board)

        until(shown, "the board of the last generation")  # a page is the report of a prefix of the log


def test_a_report_names_its_epochs_and_the_scores_that_are_not_ranked(tmp_path):
    _, first, second = partial(tmp_path)
    (benchmark,) = report(first, second, "--epoch", "next")[0]["benchmarks"]
    assert (benchmark["epochs"], benchmark["unranked"]) == ([0, 1], 30)
    sentence = "a model is ranked by its newest, and 30 scores on items that only an earlier epoch has are not ranked"
    for form in ("table", "markdown", "html"):
        plain = rankwatch("report", first, second, "--epoch", "next", "--format", form).stdout
        assert sentence in " ".join(plain.replace("\\", "").split())
        assert "only an earlier epoch" not in rankwatch("report", first, "--format", form).stdout


def test_inherit_needs_an_epoch(tmp_path):
    _, first, _ = partial(tmp_path)
    for command in (["report", first], ["watch", first, "--once"], ["send", first, "--to", "http://localhost:1"]):
        refused = rankwatch(*command, "--inherit", code=2)
        assert "--inherit: give the epoch of the new scores with --epoch N or --epoch next" in refused.stderr


def test_next_comes_after_the_scores_of_the_other_name_of_a_model(tmp_path):
    _, first, second = partial(tmp_path)
    renamed = [json.loads(line) | {"model": "new"} for line in second.read_text().splitlines()]
    second = write(tmp_path / "2.jsonl", renamed)
    (benchmark,) = report(first, second, "--epoch", "next", "--alias", "new=a")[0]["benchmarks"]
    assert benchmark["conflicts"] == 0
    assert {model["model"]: model["epoch"] for model in benchmark["models"]} == {"a": 1, "b": 0}

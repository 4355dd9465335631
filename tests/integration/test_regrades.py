"""Boards that are scored again: each PATH or run a generation of its own."""

import json
import os
import random

import pytest

from tests.commands import rankwatch, report, watch_once, write


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


def decided(found):
    (benchmark,) = found["benchmarks"]
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
        found = json.loads(watch_once(tmp_path / "data", path, "--items", items, "--epoch", "next"))
        (benchmark,) = found["benchmarks"]
    assert {model["epoch"] for model in benchmark["models"]} == {4}
    last, _ = decided(found)
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

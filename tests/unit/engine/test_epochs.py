"""Scores that a newer epoch replaces: superseded decisions, and a family of its own for each generation of scores."""

import json
import math

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.metrics_view import metrics_view
from schemas.results.reasons import Reason, fact
from stats.families.error_control import spending_alpha
from tests.fold_log import FoldLog, event, packed, paired

MODELS = ["a", "b", "c", "d"]
DECLARED = {"declare": "bench", "order": "trusted"}


def scores(epoch, models=MODELS, items=40):
    """Events of one epoch: each model is right on more items than the next one, and the first on all."""
    rights = {"a": items, "b": items // 2, "c": items // 4, "d": 0}
    return [
        event(item, model, int(item < rights[model]), **({"epoch": epoch} if epoch else {}))
        for model in models
        for item in range(items)
    ]


def places(benchmark):
    """Family places of pairs by (model, epoch), without those that have none."""
    names = [tuple(c) for c in benchmark.contestants]
    return {
        (names[i], names[j]): int(benchmark.family_index[j * (j - 1) // 2 + i])
        for j in range(len(names))
        for i in range(j)
        if benchmark.family_index[j * (j - 1) // 2 + i]
    }


def superseded(benchmark):
    return {
        (change.model_a, change.epoch_a, change.model_b, change.epoch_b, change.procedure): change
        for change in benchmark.changes.values()
        if change.kind == "superseded"
    }


def test_every_generation_is_a_family_of_its_own():
    log = FoldLog(DECLARED)
    for epoch in range(3):
        log.send(*scores(epoch))
        pure = [place for ((_, one), (_, other)), place in places(log.bench).items() if one == other == epoch]
        assert sorted(pure) == [1, 2, 3, 4, 5, 6]
    # Pairs of an old and a new epoch share a family too, apart from the others.
    mixed = [place for ((_, one), (_, other)), place in places(log.bench).items() if {one, other} == {1, 2}]
    assert sorted(mixed) == [1, 2, 3, 4, 5, 6]
    thresholds = log.bench.family_thresholds(np.arange(log.bench.pairs))
    last = log.bench.pairs - 1
    families = log.bench.families(np.arange(log.bench.pairs))
    decided = np.flatnonzero((families == families[last]) & (log.bench.latched["anytime_family"] != 0))
    spent = sum(spending_alpha(log.bench.family_index[k]) / 0.05 for k in decided if k != last)
    assert thresholds[last] == pytest.approx(-math.log(spending_alpha(6)) + math.log(1 - spent))


def test_a_regrade_of_everything_decides_what_a_fresh_benchmark_decides():
    again, fresh = FoldLog(DECLARED), FoldLog(DECLARED)
    for epoch in range(5):
        again.send(*scores(epoch))
    fresh.send(*scores(0))

    def decided(log):
        rows = benchmark_report(board_view(log.bench), pairs="all").as_dict()["pairs"]
        return {(r["model_a"], r["model_b"]): r["decided"] for r in rows if r["status"] != "superseded"}

    assert decided(again) == decided(fresh)
    assert sum(each["anytime_family"] is not None for each in decided(fresh).values()) >= 4


def test_a_newer_epoch_supersedes_each_decision_once_at_its_first_event():
    log = FoldLog(DECLARED)
    log.send(*scores(0))
    decisions = {field: change for field, change in log.bench.changes.items() if change.kind == "decided"}
    of_b = {field for field, change in decisions.items() if "b" in {change.model_a, change.model_b}}
    assert of_b
    assert of_b != set(decisions)
    delta = log.send(event(0, "b", None, epoch=1), event(1, "b", 1, epoch=1), event(0, "b", 1, epoch=2))
    ended = list(delta.benchmarks[0].changes.values())
    assert {field.replace("decided", "superseded") for field in of_b} == set(delta.benchmarks[0].changes)
    for change in ended:
        decision = decisions[
            next(f for f, c in log.bench.changes.items() if c == change).replace("superseded", "decided")
        ]
        assert (change.before, change.after, change.evidence) == (decision.after, None, decision.evidence)
        assert (change.epoch_a, change.epoch_b) == (0, 0)
        assert change.id.startswith(f"{delta.expected}-")  # the first event, which had no score
        assert "b was scored again, as epoch 1." in change.sentence
    assert len({change.id for change in ended}) == len(ended)
    assert log.bench.change_counts["anytime", "superseded"] == sum("anytime:" in f for f in of_b)
    assert metrics_view(board_view(log.bench)).changes["anytime_family", "superseded"] == sum(
        "family" in f for f in of_b
    )

    log.restart()
    assert log.bench.change_counts["anytime", "superseded"] == sum("anytime:" in f for f in of_b)
    assert not log.send(*scores(1, ["b"])).benchmarks[0].changes  # epoch 2 has begun


def test_scores_of_an_old_epoch_decide_nothing_once_there_is_a_newer_one():
    log = FoldLog(DECLARED)
    log.send(*scores(0, ["a"]), *scores(1, ["b"], items=2), *scores(0, ["b"]), *scores(0, ["d"]))
    names = [tuple(c) for c in log.bench.contestants]
    assert names == [("a", 0), ("b", 1), ("b", 0), ("d", 0)]
    assert {change.epoch_b for change in log.bench.changes.values() if change.model_b == "b"} <= {1}
    assert not any(("b", 0) in pair for pair in places(log.bench))
    # Its sums are kept, and the pair of the two current models is decided as ever.
    assert log.bench.n[1 + 0] == 40
    assert any(change.model_a == "a" and change.model_b == "d" for change in log.bench.changes.values())


def test_a_decision_that_no_longer_counted_is_not_superseded():
    log = FoldLog({"declare": "bench", "items": 40})
    log.send(*scores(0), event(40, "a", 1))
    kinds = [change.kind for change in log.bench.changes.values()]
    assert kinds.count("decided") + kinds.count("settled") == kinds.count("invalidated") > 0
    assert all(c.facts == [fact(Reason.INVALIDATED)] for c in log.bench.changes.values() if c.kind == "invalidated")
    log.send(*scores(1))
    assert not superseded(log.bench)


@pytest.mark.parametrize("restart", [False, pytest.param(True, marks=pytest.mark.full)])
def test_where_a_chunk_is_cut_does_not_move_a_supersession(restart):
    stream = [
        {"declare": "bench", "order": "trusted"},
        *scores(0),
        *scores(1, ["c", "a"]),
        *scores(2, ["c"]),
        *scores(0),
    ]
    whole = FoldLog(*stream)
    for size in (1, 7, 33, 90):
        cut = FoldLog()
        for start in range(0, len(stream), size):
            cut.send(*stream[start : start + size])
            if restart and size > 7:
                cut.restart()
        assert cut.bench.changes == whole.bench.changes
        assert places(cut.bench) == places(whole.bench)
    assert len(superseded(whole.bench)) > 4


def test_rows_name_their_epochs_and_what_a_later_generation_assumes():
    log = FoldLog(DECLARED)
    log.send(*scores(0), *scores(1, ["a", "b"]))
    rows = benchmark_report(board_view(log.bench), pairs="all").as_dict()["pairs"]
    epochs = {(r["model_a"], r["model_b"], r["status"]): (r["epoch_a"], r["epoch_b"]) for r in rows}
    assert epochs["a", "b", "decided"] == (1, 1)
    assert epochs["a", "d", "decided"] == (1, 0)
    assert epochs["a", "d", "superseded"] == (0, 0)
    assumed = "and that scores were replaced for reasons that do not depend on who was ahead."
    for row in rows:
        if row["status"] == "decided":
            assert row["reason"].endswith(assumed) == (max(row["epoch_a"], row["epoch_b"]) > 0)
    for change in log.bench.changes.values():
        if change.kind == "decided":
            assert change.sentence.endswith(assumed) == (max(change.epoch_a, change.epoch_b) > 0)


def test_a_capacity_counts_within_a_generation():
    log = FoldLog(DECLARED | {"family": {"policy": "capacity", "size": 6}})
    for epoch in range(3):
        log.send(*scores(epoch))
        report = benchmark_report(board_view(log.bench), pairs="all").as_dict()
        assert all("earlier pairs filled" not in row["reason"] for row in report["pairs"])
        assert metrics_view(board_view(log.bench)).beyond_capacity == 0
    log.send(*(event(item, "e", 1, epoch=2) for item in range(40)))
    assert metrics_view(board_view(log.bench)).beyond_capacity == 4


def test_graded_scores_and_committed_orders_stop_at_a_newer_epoch_too():
    items = [str(k) for k in range(60)]
    both = paired(55, 0, 5)
    for declared in (
        {"declare": "bench", "order": "trusted", "scores": "graded"},
        {"declare": "bench", "items": 60, "scores": "graded"},
        {"declare": "bench", "order": {"policy": "committed", "seed": "s"}, "item_ids": items},
    ):
        log = FoldLog(declared)
        log.send(packed(both, ["x", "y"]))
        had = {change.kind for change in log.bench.changes.values()}
        assert had == ({"decided"} if declared.get("order") == "trusted" else {"decided", "settled"})
        log.send(*(event(k, "x", 0, epoch=1) for k in range(60)))
        ends = superseded(log.bench)
        assert {key[:4] for key in ends} == {("x", 0, "y", 0)}
        assert all(each.facts == [fact(Reason.SCORED_AGAIN, model="x", epoch=1)] for each in ends.values())
        json.loads(next(iter(ends.values())).as_json())
        # The old pair is closed, whatever comes; the new one is judged.
        log.send(event(0, "x", 1), event(0, "y", 1))
        assert all(change.kind != "reversed" for change in log.bench.changes.values())

"""The goal of a benchmark in its report."""

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.view.metrics_view import metrics_view
from monitor.words.header import result
from schemas.results.reasons import Reason, fact
from tests.fold_log import FoldLog, packed

TRUTH = (0.95, 0.9, 0.5, 0.2)
MODELS = list("abcd")


def scores(items=400, seed=1):
    return (np.random.default_rng(seed).random((items, 4)) < TRUTH).astype(int)


def goal_of(goal, *, items=400, table=None, assert_complete=False, **spec):
    log = FoldLog({"declare": "bench", "items": items, "goal": goal, **spec})
    log.send(packed(scores() if table is None else table, MODELS))
    return benchmark_report(board_view(log.bench), assert_complete=assert_complete).goal


def test_no_goal_no_report():
    log = FoldLog({"declare": "bench", "items": 400})
    log.send(packed(scores(), MODELS))
    assert benchmark_report(board_view(log.bench)).goal is None


@pytest.mark.parametrize(
    ("goal", "models", "answer"),
    [
        ("top:2", ["a", "b"], {"kind": "top", "models": ["a", "b"], "count": 2}),
        ("pair:d,c", ["c"], {"kind": "pair", "models": ["c", "d"], "decided": True}),
        ("model:d", ["d"], {"kind": "model", "models": ["d"], "low": 4, "high": 4}),
        ("model:b,width=2", ["b"], {"kind": "model", "models": ["b"], "low": 2, "high": 2}),
        ("ranking,margin=0.2", MODELS, {"kind": "ranking", "models": MODELS, "count": 4, "margin": 0.2}),
        ("best,margin=0.2", ["a"], {"kind": "top", "models": ["a"], "count": 1, "margin": 0.2}),
    ],
)
def test_a_goal_that_is_met(goal, models, answer):
    report = goal_of(goal)
    assert (report.state, report.models, report.needed) == ("met", models, [])
    assert report.facts == [fact(Reason.GOAL_MET, **{"of": 4, "margin": None} | answer)]


def test_a_rank_may_have_a_range():
    table = scores()
    table[:, 1] = table[:, 0]
    assert goal_of("model:b", table=table).state == "impossible"
    (answer,) = goal_of("model:b,width=2", table=table).facts
    assert (answer["low"], answer["high"], answer["of"]) == (1, 2, 4)


def test_a_tie_at_the_end_is_out_of_reach():
    table = scores()
    table[:, 1] = table[:, 0]
    report = goal_of("best", table=table)
    assert (report.state, report.open_pairs, report.needed) == ("impossible", 1, [])
    assert report.facts == [fact(Reason.GOAL_IMPOSSIBLE, pairs=1, models=["a", "b"], count=2)]


def test_what_is_left_may_not_be_enough():
    table = scores()
    table[:, 1] = table[:, 0]
    assert goal_of("best", table=table, items=404).state == "impossible"
    assert goal_of("best", table=table, items=500).state == "open"


def test_an_open_goal_names_the_models_that_can_change_it():
    table = scores(200)
    table[:, 1] = table[:, 0]
    seed = {"policy": "committed", "seed": "s"}
    log = FoldLog({"declare": "bench", "order": seed, "item_ids": [str(k) for k in range(400)], "goal": "best"})
    listed = log.bench.committed.ids(0, 200)
    log.send(packed(table, MODELS, items=listed))
    report = benchmark_report(board_view(log.bench)).goal
    assert (report.state, report.needed) == ("open", ["a", "b"])
    assert report.facts == [fact(Reason.GOAL_OPEN, pairs=1, others=2, models=["a", "b"], count=2)]
    assert (report.items_run, report.items_full, report.saved_ratio) == (800, 1600, 0.5)


def test_what_each_model_ran():
    log = FoldLog({"declare": "bench", "items": 400, "goal": "best", "family": {"models": [*MODELS, "e"]}})
    log.send(packed(scores()[:, :2], MODELS[:2]), packed(scores(150)[:, 2:], MODELS[2:]))
    report = benchmark_report(board_view(log.bench)).goal
    runs = {run.model: (run.items_run, run.items_full, run.saved_ratio) for run in report.by_model}
    assert list(runs)[-1] == "e"
    assert [runs[model] for model in "ace"] == [(400, 400, 0.0), (150, 400, 0.625), (0, 400, 1.0)]
    assert sum(run.items_run for run in report.by_model) == report.items_run
    assert [run.model for run in report.by_model if not run.left] == report.needed


def test_without_an_item_count_nothing_is_saved():
    log = FoldLog({"declare": "bench", "goal": "best"})
    log.send(packed(scores(), MODELS))
    runs = benchmark_report(board_view(log.bench)).goal.by_model
    assert [(run.items_run, run.items_full, run.saved_ratio) for run in runs] == [(400, None, None)] * 4


def test_declared_models_without_a_score_count():
    report = goal_of("best", family={"models": [*MODELS, "e"]})
    assert (report.state, report.items_full) == ("open", 2000)
    assert "e" in report.needed


def test_a_model_that_is_unknown():
    report = goal_of("pair:a,x")
    assert (report.state, report.models) == ("open", [])
    assert report.facts == [fact(Reason.GOAL_WAITS, models=["x"], count=1)]


def test_an_alias_is_its_model():
    assert goal_of("pair:new,d", aliases={"new": "a"}).models == ["a"]


def test_a_held_benchmark_has_no_answer():
    log = FoldLog({"declare": "bench", "order": "none", "goal": "best"})
    log.send(packed(scores(), MODELS))
    report = benchmark_report(board_view(log.bench)).goal
    assert report.state == "open"
    assert report.facts == [fact(Reason.NO_VERDICT, because=[fact(Reason.NO_ORDER)])]


def test_the_goal_changes_freely_and_nothing_else_does():
    log = FoldLog({"declare": "bench", "items": 400, "goal": "best"})
    log.send(packed(scores(), MODELS))
    before = benchmark_report(board_view(log.bench), pairs="all")
    log.send({"declare": "bench", "items": 400, "goal": "top:2"})
    after = benchmark_report(board_view(log.bench), pairs="all")
    assert not log.letters
    assert (before.goal.goal, after.goal.goal) == ("best", "top:2")
    assert after.replace(goal=before.goal) == before
    log.restart()
    assert benchmark_report(board_view(log.bench)).goal == after.goal


def test_a_wrong_goal_is_a_rejected_record():
    log = FoldLog({"declare": "bench", "items": 400, "goal": "top:none"})
    (letter,) = log.letters
    assert "top:K needs a number of models K from 1" in letter.reason


def test_the_goal_is_a_line_of_the_result():
    log = FoldLog({"declare": "bench", "items": 400, "goal": "top:2"})
    log.send(packed(scores(), MODELS))
    word, line = result(benchmark_report(board_view(log.bench)))[0]
    assert (word, line.yes) == ("goal", True)
    assert line.text.startswith("Goal met: ")


def test_the_metrics_have_the_goal():
    log = FoldLog({"declare": "bench", "items": 400, "goal": "top:2"})
    log.send(packed(scores(), MODELS))
    assert metrics_view(board_view(log.bench)).goal == benchmark_report(board_view(log.bench)).goal

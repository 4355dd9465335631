"""Whether one look at complete files verifies the top models."""

import numpy as np
import pytest

from monitor.view.from_state import board_view
from monitor.view.pairs.table import PairTable
from monitor.view.ranking.verified import verify
from schemas.results.reasons import Reason
from stats.fixed_n.mcnemar import exact_p
from tests.fold_log import FoldLog, packed

MODELS = list("abcd")


def board(items=400, truth=(0.95, 0.85, 0.84, 0.2), seed=1):
    return (np.random.default_rng(seed).random((items, len(truth))) < truth).astype(float)


def verified(right, goal, *, files=True, models=MODELS, **spec):
    log = FoldLog({"declare": "bench", "goal": goal, **({"items": len(right)} | spec)})
    log.send(packed(right, models))
    return verify(PairTable.of(board_view(log.bench), assert_complete=files))


def test_the_leader_is_verified_by_its_largest_p():
    scores = board()
    found = verified(scores, "best")
    x = scores.astype(int)
    largest = max(float(exact_p(((x[:, 0] > x[:, k]).sum()), (x[:, 0] < x[:, k]).sum())) for k in (1, 2, 3))
    assert found.yes
    assert not found.held
    assert (found.models, found.p) == (["a"], pytest.approx(largest, rel=1e-12))
    (why,) = found.facts
    assert {name: why[name] for name in ("code", "models", "count", "of", "items", "exact")} == {
        "code": "verified",
        "models": ["a"],
        "count": 1,
        "of": 4,
        "items": 400,
        "exact": True,
    }


def test_a_set_with_a_tie_at_its_cut_is_not_verified():
    found = verified(board(), "top:2")
    assert not found.yes
    assert found.models == ["a", "c"]
    assert found.p > 0.05
    assert (found.facts[0]["code"], found.facts[0]["pair"]) == ("not_verified", ["c", "b"])
    assert verified(board(), "top:3").yes
    equal = board()
    equal[:, 1] = equal[:, 0]
    assert verified(equal, "best").p == 1


def test_it_needs_no_correction_and_says_where_it_is_of_large_samples():
    scores = np.zeros((200, 4))
    scores[:24, 0], scores[24:34, 1:] = 1, 1  # 24 against 10: p = .024
    found = verified(scores, "best")
    assert 0.05 * 2 / 3 > found.p > 0.05 / 3
    assert found.facts[0]["exact"]
    scores[22:24, 0] = 0  # 22 against 10: p = .050
    assert verified(scores, "best", alpha=0.06).facts[0]["exact"] is False
    assert "(large-sample)" in verified(scores, "best", alpha=0.06).text


@pytest.mark.parametrize(
    ("goal", "spec"),
    [("ranking", {}), ("pair:a,b", {}), ("model:a", {}), ("best,margin=0.01", {}), ("top:4", {}), (None, {})],
)
def test_other_goals_are_not_looked_at(goal, spec):
    assert verified(board(), goal, **spec) is None


def test_while_results_arrive_there_is_no_one_look():
    assert verified(board(), "best", files=False) is None


def missing_one(scores):
    scores[3, 3] = np.nan
    return scores


@pytest.mark.parametrize(
    ("scores", "spec", "needs"),
    [
        (missing_one(board()), {}, "items"),
        (missing_one(board()), {"order": {"policy": "trusted"}}, "items"),
        (board(), {"items": 500}, "items"),
        (board(), {"items": None, "order": {"policy": "trusted"}}, "count"),
        (board(), {"family": {"models": [*MODELS, "e"]}}, "models"),
        (board() / 2 + 0.25, {"scores": "graded"}, "scores"),
    ],
)
def test_what_a_look_lacks(scores, spec, needs):
    found = verified(scores, "best", **spec)
    assert (found.yes, found.models, found.p) == (False, [], None)
    assert (found.facts[0]["code"], found.facts[0]["needs"]) == (Reason.NOT_LOOKED_AT, needs)


def test_where_verdicts_are_held_the_goal_has_the_reason():
    assert verified(board(), "best", items=300) is None


def test_only_declared_models_take_part():
    scores = board()
    scores[:, 1] = scores[:, 0]
    assert not verified(scores, "best").yes
    assert verified(scores, "best", family={"models": ["a", "c"]}).facts[0]["of"] == 2

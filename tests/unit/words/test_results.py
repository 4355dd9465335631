"""The sentences of a result and of a goal."""

import pytest

from monitor.words.results import clause, line, listed
from schemas.results.reasons import Reason, fact

OPEN = {"model": "a", "count": 2, "others": 4, "items": 150}
NEIGHBOURS = {"decided": 1, "pairs": 2, "ties": 1, "undecided": 0, "all_decided": 2, "all_pairs": 3, "over": True}
ENOUGH = {"unit": "items", "resolved": 0, "gaps": 1, "anytime": None, "unknown": 0, "closest": None, "needed": None}
MET = {"of": 4, "margin": 0.2}


@pytest.mark.parametrize(
    ("code", "values", "sentence"),
    [
        (Reason.LEADS, {"model": "a", "items": 100}, "a leads on the 100 items."),
        (Reason.TRAILS, {"model": "a", "ahead": ["b"], "count": 1}, "a has the best mean score, but b leads on the items that both have."),
        (Reason.EQUAL, {"models": ["a", "b"], "count": 2, "items": 15}, "a and b have the same score on the 15 items."),
        (Reason.LEAD_OPEN, OPEN | {"state": "open", "rivals": ["b", "c"]}, "a leads on the items scored; only b and c may still pass it on all 150 items."),
        (Reason.LEAD_OPEN, OPEN | {"state": "open", "rivals": []}, "a leads on the items scored; 2 of 4 models may still pass it on all 150 items."),
        (Reason.LEAD_OPEN, OPEN | {"state": "ended", "rivals": ["b"], "count": 1}, "a leads on the items scored; the runs have ended, and only b could have passed it on all 150 items."),
        (Reason.LEAD_OPEN, OPEN | {"state": "too_many_items", "rivals": []}, "a has the best score so far; more items arrived than declared, so nothing is settled."),
        (Reason.LEAD_OPEN, OPEN | {"state": "no_item_count", "rivals": []}, "a has the best score so far; the number of items is not declared."),
        (Reason.LEAD_OPEN, OPEN | {"state": "no_order", "rivals": []}, "a has the best score so far; without an order policy nothing is settled."),
        (Reason.RATED, {"model": "a", "rating": 1012.4, "islands": 1}, "a has the highest rating (1,012). Battles have no last item: nothing is settled."),
        (Reason.RATED, {"model": "a", "rating": None, "islands": 2}, "2 islands of models never met, so there is no common ranking; in the largest, a is ahead, and unbeaten. Battles have no last item: nothing is settled."),
        (Reason.NEIGHBOURS, NEIGHBOURS, "1 of 2 pairs of neighbours in rank, 1 tie; 2 of all 3 pairs."),
        (Reason.NEIGHBOURS, NEIGHBOURS | {"ties": 0, "undecided": 1}, "1 of 2 pairs of neighbours in rank, 1 undecided so far; 2 of all 3 pairs."),
        (Reason.NEIGHBOURS, NEIGHBOURS | {"decided": 0, "ties": 2, "all_decided": 1}, "No pair of neighbours in rank is decided: 2 ties; 1 of all 3 is."),
        (Reason.NEIGHBOURS, NEIGHBOURS | {"all_decided": 0}, "No pair is decided."),
        (Reason.NEIGHBOURS, NEIGHBOURS | {"all_decided": 0, "over": False}, "No pair is decided yet."),
        (Reason.ENOUGH_ITEMS, ENOUGH, "Enough items for none of 1 gap between neighbours in a planned test."),
        (Reason.ENOUGH_ITEMS, ENOUGH | {"unknown": 1}, "Enough items for none of 1 gap between neighbours in a planned test; unknown for 1, as every item differs alike."),
        (Reason.ENOUGH_ITEMS, ENOUGH | {"resolved": 1, "gaps": 2, "anytime": 1, "closest": 2, "needed": 152.3}, "Enough items for 1 of 2 gaps between neighbours in a planned test, 1 if you look as results arrive; ranks 2 and 3 need about 150 more items."),
        (Reason.ENOUGH_ITEMS, ENOUGH | {"closest": 1, "needed": 0.3}, "Enough items for none of 1 gap between neighbours in a planned test; ranks 1 and 2 need about 1 more item."),
        (Reason.GOAL_WAITS, {"models": ["x"], "count": 1}, "x has no scores yet."),
        (Reason.GOAL_OF_STRANGER, {}, "It names a model that does not take part."),
        (Reason.GOAL_OPEN, {"pairs": 1, "models": ["a", "b"], "count": 2, "others": 2}, "It depends on 1 undecided pair of a and b; no further item of another model can change the answer."),
        (Reason.GOAL_IMPOSSIBLE, {"pairs": 1, "models": ["a", "b"], "count": 2}, "It depends on 1 undecided pair of a and b, and no item that may still come can decide it."),
        (Reason.GOAL_MET, MET | {"kind": "ranking"}, "The order of 4 models is decided, up to gaps of 20 points."),
        (Reason.GOAL_MET, MET | {"kind": "top", "models": ["a"], "count": 1}, "a is the best of 4 models, up to gaps of 20 points."),
        (Reason.GOAL_MET, MET | {"kind": "top", "models": ["a", "b", "c"], "count": 4}, "The board has 4 models."),
        (Reason.GOAL_MET, MET | {"kind": "pair", "models": ["c", "d"], "decided": True}, "c is decided better than d."),
        (Reason.GOAL_MET, MET | {"kind": "model", "models": ["c"], "low": 1, "high": 2}, "c has rank 1 to 2 of 4, up to gaps of 20 points."),
        (Reason.OUTSIDE_GOAL, {"models": ["x", "y"], "count": 2}, "Outside the declared models, so not counted: x and y."),
        (Reason.NO_VERDICT, {"because": [{"code": "other_items", "detail": "the runs have other items"}]}, "No verdict: the runs have other items."),
    ],
)  # fmt: skip
def test_a_fact_as_a_sentence(code, values, sentence):
    assert line([fact(code, **values)]) == sentence
    assert clause([fact(code, **values)]) == sentence[:-1]


def test_models_that_are_many_are_counted():
    assert listed(["a", "b", "c"], 9) == "a, b, c and 6 more models"

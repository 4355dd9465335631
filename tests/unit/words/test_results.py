"""The sentences of a result and of a goal."""

import pytest

from monitor.words.results import clause, line, listed
from schemas.results.reasons import Reason, fact

OPEN = {"model": "a", "count": 2, "others": 4, "items": 150}
NEIGHBOURS = {"decided": 1, "pairs": 2, "ties": 1, "undecided": 0, "all_decided": 2, "all_pairs": 3, "over": True}
BUT = {"model": "a", "better": 27, "others": 28, "rivals": ["d"], "missing": 1_681}
TWO = {
    "models": ["new", "old"],
    "side": None,
    "gap": 0.02,
    "p": 1.0,
    "threshold": 0.05,
    "n": 50,
    "over": True,
    "close": False,
    "missing": 0,
    "of": 50,
}
TURNED = {"differ": 9, "wins": 8, "gap": 0.14, "turned": 3, "p": 0.0391}
ENOUGH = {"unit": "items", "resolved": 0, "gaps": 1, "anytime": None, "unknown": 0}
MET = {"of": 4, "margin": 0.2}
VERIFIED = {"models": ["a"], "count": 1, "of": 51, "items": 800, "p": 0.0363, "alpha": 0.05, "exact": False}


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
        (Reason.ENOUGH_ITEMS, ENOUGH | {"resolved": 1, "gaps": 2, "anytime": 1}, "Enough items for 1 of 2 gaps between neighbours in a planned test, 1 if you look as results arrive."),
        (Reason.BEST, {"model": "a", "others": 28}, "a is better than all 28 others."),
        (Reason.BEST_BUT, BUT | {"over": False}, "a is better than 27 of the 28 others. d could still pass it."),
        (Reason.BEST_BUT, BUT | {"over": True}, "a is better than 27 of the 28 others. d lacks 1,681 items and could have passed it."),
        (Reason.BEST_BUT, BUT | {"over": True, "rivals": ["d", "e"], "missing": None}, "a is better than 27 of the 28 others. d and e lack items and could have passed it."),
        (Reason.BEST_BUT, BUT | {"over": True, "missing": 0}, "a is better than 27 of the 28 others. a lacks items, and d could have passed it."),
        (Reason.FIRST_OPEN, {"models": [], "count": 12, "of": 44}, "First place is open: 12 of 44 models may hold it."),
        (Reason.FIRST_OPEN, {"models": [], "count": 44, "of": 44}, "First place is open: any of the 44 models may hold it."),
        (Reason.FIRST_TIE, {"models": ["a", "b"], "count": 2, "of": 9}, "First place is a tie: a and b."),
        (Reason.HELD_RESULT, {"because": [{"code": "other_items", "detail": "the runs have other items"}]}, "Held: the runs have other items."),
        (Reason.HELD_RESULT, {"because": [{"code": "no_order"}]}, "Held: no order is declared. Declare the number of items before the first score."),
        (Reason.HELD_RESULT, {"because": [{"code": "order_refuted", "model": "a", "items": 128}], "withdrawn": True}, "Withdrawn: the order of arrival was not random, as the first 128 items of a show."),
        (Reason.TWO_MODELS, TWO, "Not decided: new is 2 points ahead of old, and 50 items cannot show that."),
        (Reason.TWO_MODELS, TWO | {"missing": 6}, "Not decided: new is 2 points ahead of old on 50 items, and 6 are missing."),
        (Reason.TWO_MODELS, TWO | {"gap": 0.03, "p": 0.0545, "close": True}, "Not decided: new is 3 points ahead of old, p = 0.0545 against 0.0500."),
        (Reason.TWO_MODELS, TWO | {"gap": -0.03, "p": 0.0545, "close": True}, "Not decided: old is 3 points ahead of new, p = 0.0545 against 0.0500."),
        (Reason.TWO_MODELS, TWO | {"gap": 0.0}, "Not decided: new and old are level."),
        (Reason.TWO_MODELS, TWO | {"over": False, "close": True, "of": 200}, "Not decided yet: new is 2 points ahead of old after 50 of 200 items, p = 1.00 against 0.05."),
        (Reason.TWO_MODELS, TWO | {"side": "a", "gap": 0.1, "p": 0.0078}, "Decided: new is better than old, 10 points ahead, p = 0.0078 against 0.05."),
        (Reason.TWO_MODELS, TWO | {"side": "b", "gap": -0.1, "p": None}, "Decided: old is better than new, 10 points ahead."),
        (Reason.TWO_COUNTS, {"models": ["new", "old"], "low": -0.1, "high": 0.15, "wins": 5, "losses": 4, "alike": 41, "missing": 0}, "The interval of the gap is -10.00 to +15.00 points. Only new is right on 5 items, only old on 4; 41 are alike."),
        (Reason.STEPS, {"decided": 14, "steps": 28, "ties": 12, "open": 2, "over": True}, "14 of 28 steps of the ranking are real, 12 are ties, 2 lack items."),
        (Reason.STEPS, {"decided": 1, "steps": 3, "ties": 1, "open": 1, "over": False}, "1 of 3 steps of the ranking is real, 1 is a tie, 1 is open."),
        (Reason.STEPS, {"decided": 1, "steps": 3, "ties": 1, "open": 1, "over": False, "missing": True}, "1 of 3 steps of the ranking is real, 1 is a tie, 1 waits for missing items."),
        (Reason.WOULD_CHANGE, {"models": ["d"], "missing": 1681}, "What would change it: the 1,681 items that d lacks."),
        (Reason.CLOSEST_TIE, {"rank": 26, "items": 57_012.0, "of": 12_032}, "Closest tie: ranks 26 and 27 need about 57,000 items; there are 12,032."),
        (Reason.WOULD_DECIDE, TURNED, "With 9 items that differ, the smallest gap that decides is 14 points (8 to 1)."),
        (Reason.WOULD_DECIDE, {"differ": 4, "wins": None}, "With 4 items that differ, no gap decides."),
        (Reason.WOULD_DECIDE, TURNED | {"units": True}, "With 9 units that differ, the smallest gap that decides is 14 points (8 to 1)."),
        (Reason.WOULD_DECIDE, TURNED | {"turned": 1}, "1 item turned would decide it: 8 to 1 items give p = 0.0391."),
        (Reason.FOUND_HERE, {"gap": 0.168}, "A gap of 17 points is found in 4 of 5 tests of this size."),
        (Reason.CLOSEST_TIE, {"rank": 2, "items": 90.0, "of": 50, "open": True}, "Closest open step: ranks 2 and 3 need about 90 items; there are 50."),
        (Reason.GAP_NEEDS, {"gap": 0.02, "items": 3_512.0}, "A gap of 2 points needs about 3,500 items in all, to be found in 4 of 5 tests."),
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
        (Reason.VERIFIED, VERIFIED, "Verified: a is better than each of the other 50 models on items of this kind (largest p = 0.0363 against 0.05). One look at a planned 800 items, for a question fixed in advance, names a model that is not better than all others with a chance of at most 5 % (large-sample). This is about first place alone."),
        (Reason.VERIFIED, VERIFIED | {"models": ["a", "b"], "count": 2, "of": 3, "exact": True, "units": True}, "Verified: a and b are each better than the other model on units of this kind (largest p = 0.0363 against 0.05). One look at a planned 800 units, for a question fixed in advance, names a set that is not the best 2 with a chance of at most 5 %. This is about the set, and not about the order in it."),
        (Reason.NOT_VERIFIED, VERIFIED | {"p": 0.3770, "pair": ["a", "b"]}, "Not verified: one look at a planned 800 items does not show that a is better than b (p = 0.377 against 0.050)."),
        (Reason.NOT_LOOKED_AT, {"needs": "count"}, "Not verified: one look needs a planned number of items; declare it (items: N)."),
        (Reason.NOT_LOOKED_AT, {"needs": "models", "models": ["x"], "count": 1}, "Not verified: x has no scores yet."),
        (Reason.NOT_LOOKED_AT, {"needs": "scores"}, "Not verified: one look needs scores that are right or wrong, an item once, and each item counting the same."),
        (Reason.NOT_LOOKED_AT, {"needs": "items", "items": 800, "shared": 790}, "Not verified: one look needs every model's score on the planned 800 items, and all have 790 items."),
        (Reason.NO_VERDICT, {"because": [{"code": "other_items", "detail": "the runs have other items"}]}, "No verdict: the runs have other items."),
    ],
)  # fmt: skip
def test_a_fact_as_a_sentence(code, values, sentence):
    assert line([fact(code, **values)]) == sentence
    assert clause([fact(code, **values)]) == sentence[:-1]


def test_models_that_are_many_are_counted():
    assert listed(["a", "b", "c"], 9) == "a, b, c and 6 more models"

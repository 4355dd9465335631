"""The result in three lines."""

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from monitor.words.results import line
from schemas.results.reasons import Reason, fact, has
from tests.fold_log import FoldLog, event, packed, paired
from tests.unit.engine.test_battles import stream


def lines(*records, assert_complete=False, **spec):
    """The three lines of a benchmark: whether, and the facts."""
    log = FoldLog(*([{"declare": "bench", **spec}] if spec else []))
    log.send(*records)
    result = benchmark_report(board_view(log.bench), assert_complete=assert_complete).result
    words = result.__struct_fields__ if result else ()
    return result and {word: (line := getattr(result, word)) and (line.yes, line.facts) for word in words}


def neighbours(decided, pairs, all_decided, all_pairs, ties=0, undecided=0):
    counts = {"decided": decided, "pairs": pairs, "all_decided": all_decided, "all_pairs": all_pairs}
    return [fact(Reason.NEIGHBOURS, **counts, ties=ties, undecided=undecided, over=not undecided)]


def lead_open(state, rivals, items, others=2):
    counts = {"count": len(rivals), "others": others, "items": items}
    return [fact(Reason.LEAD_OPEN, model="a", state=state, rivals=rivals, **counts)]


def enough(resolved, gaps, **others):
    values = {"unit": "items", "anytime": None, "unknown": 0}
    return [fact(Reason.ENOUGH_ITEMS, **values | {"resolved": resolved, "gaps": gaps} | others)]


def three(items=100):
    """a is much better than b, and c is b but for one item."""
    scores = np.zeros((items, 3), int)
    scores[: items * 9 // 10, 0], scores[: items // 2, 1:] = 1, 1
    scores[0, 2] = 0
    return np.random.default_rng(1).permutation(scores)


def test_complete_files():
    result = lines(packed(three(), ["a", "b", "c"]), assert_complete=True)
    assert result["settled"] == (True, [fact(Reason.LEADS, model="a", items=100)])
    assert result["decided"] == (True, neighbours(1, 2, 2, 3, ties=1))
    assert result["resolved"] == (True, enough(1, 2, anytime=1))
    assert result["best"] == (True, [fact(Reason.BEST, model="a", others=2)])
    assert result["steps"] == (True, [fact(Reason.STEPS, decided=1, steps=2, ties=1, open=0, over=True)])
    _, (closest,) = result["change"]
    assert (closest["code"], closest["rank"], closest["of"]) == (Reason.CLOSEST_TIE, 2, 100)


def test_what_separates_two_models_is_compared_with_what_they_share():
    battles = [{**battle, "benchmark": "bench"} for battle in stream(1, 900, models=5, prompts=2_000_000)]
    _, (closest,) = lines(*battles, order="trusted")["change"]
    assert (closest["rank"], closest["shared"]) == (1, True)
    assert 50 < closest["of"] < 150, "two of five models share a tenth of the battles"
    sentence = line([closest])
    assert sentence.endswith(f"prompts; they share {closest['of']}.")


@pytest.mark.parametrize(("ended", "code"), [("", "open"), ("abc", "over")])
def test_a_model_that_lacks_items_may_still_be_best(ended, code):
    scores = np.vstack([three(), np.full((30, 3), np.nan)])
    scores[100:, 0], scores[100:, 1] = 1, 0
    records = [packed(scores, ["a", "b", "c"]), *({"ended": "bench", "model": each} for each in ended)]
    found = lines(*records, items=130)
    _, (best,) = found["best"]
    assert best["code"] == Reason.BEST_BUT
    waits = fact(Reason.WOULD_CHANGE, models=["c"], missing=30)
    assert (found["change"] is not None and waits in found["change"][1]) == (code == "open"), "once"
    assert (best["model"], best["better"], best["others"], best["rivals"]) == ("a", 1, 2, ["c"])
    assert (best["over"], best["missing"]) == (code == "over", 30)


def test_the_items_that_a_rival_lacks_are_its_own():
    """a lacks 4 items and c 30 others: their pair lacks 34, and c is said to lack 30."""
    scores = np.vstack([three(), np.full((40, 3), np.nan)])
    scores[100:, 1] = 0
    scores[100:136, 0] = 1
    scores[130:, 2] = 0
    ended = [{"ended": "bench", "model": each} for each in "abc"]
    (best,) = lines(packed(scores, ["a", "b", "c"]), *ended, items=140)["best"][1]
    assert (best["code"], best["rivals"], best["missing"]) == (Reason.BEST_BUT, ["c"], 30)


def test_first_place_is_a_tie_or_open():
    result = lines(packed(three()[:, [1, 2, 0]] * [1, 1, 0], ["b", "c", "d"]), assert_complete=True)
    assert result["best"] == (False, [fact(Reason.FIRST_TIE, models=["b", "c"], count=2, of=3)])
    early = lines(packed(three()[:, [1, 2, 0]] * [1, 1, 0], ["b", "c", "d"]), items=300)
    assert early["best"][1][0]["code"] == Reason.FIRST_OPEN


def test_two_models_have_a_gap_a_p_and_the_counts_that_would_decide():
    """The smallest gap that decides, and the items that this gap needs, by the formulas of a planned test."""
    result = lines(packed(paired(5, 4, 41), ["a", "b"]), assert_complete=True)
    assert result["steps"] is None
    yes, (two,) = result["best"]
    assert (yes, two["code"], two["side"], two["n"], two["over"]) == (False, Reason.TWO_MODELS, None, 50, True)
    assert two["gap"] == pytest.approx(0.02)
    assert two["p"] == pytest.approx(1.0)
    assert two["threshold"] == pytest.approx(0.05)
    assert not two["close"]
    _, (counts, decides, found, needs) = result["change"]
    assert (counts["wins"], counts["losses"], counts["alike"]) == (5, 4, 41)
    assert (decides["differ"], decides["wins"], decides["turned"]) == (9, 8, 3)
    assert decides["p"] == pytest.approx(2 * 10 / 2**9)
    assert found == fact(Reason.FOUND_HERE, gap=pytest.approx((1.959964 + 0.841621) * 0.423792 / 50**0.5, rel=0.02))
    assert decides["gap"] == pytest.approx(0.14)
    assert needs["items"] == pytest.approx((1.959964 + 0.841621) ** 2 * (50 * 9 / 1 - 1), rel=1e-5)
    close = lines(packed(paired(129, 99, 772), ["a", "b"]), assert_complete=True)
    assert close["best"][1][0]["close"]
    assert [each["code"] for each in close["change"][1]] == [Reason.TWO_COUNTS, Reason.WOULD_DECIDE, Reason.GAP_NEEDS]
    assert close["change"][1][1]["turned"] == 1
    decided = lines(packed(paired(36, 16, 148), ["a", "b"]), assert_complete=True)
    assert decided["best"][0]
    assert [each["code"] for each in decided["change"][1]] == [Reason.TWO_COUNTS]


def test_missing_items_and_no_turned_ones_keep_two_models_undecided():
    """17 to 6 of 23 would decide, but not with six missing items at their worst."""
    records = [packed(paired(16, 7, 31), ["a", "b"])]
    records += [event(f"missing {k}", "a" if k % 2 else "b", 1) for k in range(6)]
    result = lines(*records, assert_complete=True)
    (two,) = result["best"][1]
    assert (two["n"], two["missing"], two["side"]) == (54, 6, None)
    codes = [each["code"] for each in result["change"][1]]
    assert codes == [Reason.TWO_COUNTS, Reason.GAP_NEEDS]
    assert result["change"][1][0]["missing"] == 6


def test_the_closest_tie_lacks_no_items():
    scores = np.vstack([three(), np.full((30, 3), np.nan)])
    scores[100:, :2] = 1
    ended = [{"ended": "bench", "model": each} for each in "abc"]
    (step,) = lines(packed(scores, ["a", "b", "c"]), *ended, items=130)["steps"][1]
    assert (step["ties"], step["open"]) == (0, 1)
    assert lines(packed(scores, ["a", "b", "c"]), *ended, items=130)["change"] is None
    lacking, live = lines(packed(scores, ["a", "b", "c"]), items=130)["change"][1]
    assert (lacking["code"], live["open"]) == (Reason.WOULD_CHANGE, 1)


def test_the_lines_count_all_pairs_whatever_the_report_shows():
    log = FoldLog({"declare": "bench", "items": 100})
    log.send(packed(three(), ["a", "b", "c"]))
    assert (
        benchmark_report(board_view(log.bench), pairs="all").result
        == benchmark_report(board_view(log.bench), pairs="adjacent").result
    )


def test_what_may_still_come_is_open():
    result = lines(packed(three(), ["a", "b", "c"]), items=150)
    assert result["settled"] == (False, lead_open("open", ["b", "c"], 150))
    assert result["decided"] == (False, neighbours(0, 2, 0, 3, undecided=2))
    nearly = lines(packed(three(), ["a", "b", "c"]), items=105)
    assert nearly["decided"] == (True, neighbours(1, 2, 2, 3, undecided=1))


@pytest.mark.parametrize(
    ("spec", "ended", "state"),
    [({"items": 150}, "abc", "ended"), ({"items": 150}, "ab", "open"), ({"items": 150}, "", "open")],
)
def test_after_the_end_of_the_runs_no_model_may_still_pass_the_leader(spec, ended, state):
    records = [packed(three(), ["a", "b", "c"]), *({"ended": "bench", "model": model} for model in ended)]
    assert lines(*records, **spec)["settled"] == (False, lead_open(state, ["b", "c"], 150))


def test_in_complete_files_nothing_more_comes():
    records = [packed(paired(6, 5, 5), ["a", "b"]), event("another", "b", 1), event("a third", "b", 0)]
    assert lines(*records, assert_complete=True)["settled"] == (False, lead_open("ended", ["b"], 18, others=1))


@pytest.mark.parametrize("policy", ["completion", "trusted"])
def test_with_more_items_than_declared_nothing_is_settled(policy):
    result = lines(packed(three(), ["a", "b", "c"]), items=90, order=policy)
    yes, (open_lead,) = result["settled"]
    assert (yes, open_lead["state"]) == (False, "too_many_items")


def test_neighbours_may_be_ties_where_other_pairs_are_decided():
    scores = np.zeros((60, 3), int)
    scores[:45, 0], scores[:35, 1], scores[:25, 2] = 1, 1, 1
    rolled = np.column_stack([np.roll(scores[:, k], 20 * k) for k in range(3)])
    result = lines(packed(rolled, ["a", "b", "c"]), assert_complete=True)
    assert result["decided"] == (False, neighbours(0, 2, 1, 3, ties=2))
    assert lines(packed(scores[::20], ["a", "b", "c"]), assert_complete=True)["decided"] == (
        False,
        neighbours(0, 2, 0, 3, ties=2),
    )


def test_many_rivals_are_counted():
    scores = np.ones((4, 5), int)
    scores[0, 1:] = 0
    result = lines(packed(scores, list("abcde")), items=9)
    assert result["settled"] == (False, [lead_open("open", [], 9, others=4)[0] | {"count": 4}])


def test_equal_scores_at_the_top():
    result = lines(packed(paired(5, 5, 5), ["a", "b"]), items=15)
    assert result["settled"] == (True, [fact(Reason.EQUAL, models=["a", "b"], count=2, items=15)])
    # No number of items detects a gap of 0.
    assert result["resolved"] == (False, enough(0, 1))


def test_a_benchmark_without_an_order_is_held():
    result = lines(packed(three(), ["a", "b", "c"]))
    assert result["settled"][1][0]["state"] == "no_item_count"
    yes, facts = result["decided"]
    assert not yes
    assert has(facts, Reason.NO_FURTHER_VERDICT, Reason.NO_VERDICT)
    counted = lines(packed(three(), ["a", "b", "c"]), items=100, order={"policy": "none"})
    assert counted["settled"][1][0]["state"] == "no_order"


def test_the_best_mean_may_trail_on_the_shared_items():
    records = [event(f"i{k}", "a", int(k > 0)) for k in range(2)] + [event(f"j{k}", "a", 1) for k in range(8)]
    records += [event(f"i{k}", "b", 1) for k in range(2)] + [event(f"j{k}", "b", 0) for k in range(8, 12)]
    result = lines(*records, assert_complete=True)
    assert not result["settled"][0]


@pytest.mark.parametrize("records", [[event("i", "a", 1)], [event("i", "a", 1), event("j", "b", 1)]])
def test_models_that_share_nothing_have_no_result(records):
    assert lines(*records, assert_complete=True) is None


@pytest.mark.parametrize("items", [1, 30])
def test_nothing_is_resolved_without_a_spread_of_differences(items):
    """Every such gap counted as one with enough items, next to a pair without N*."""
    resolved = lines(packed(np.tile([1, 0], (items, 1)), ["a", "b"]), assert_complete=True)["resolved"]
    assert resolved == (False, enough(0, 1, unknown=1))

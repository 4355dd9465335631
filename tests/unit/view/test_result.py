"""The result in three lines."""

import numpy as np
import pytest

from monitor.view.build import benchmark_report
from monitor.view.from_state import board_view
from tests.fold_log import FoldLog, event, packed, paired


def lines(*records, assert_complete=False, **spec):
    """The three lines of a benchmark: whether, and the text."""
    log = FoldLog(*([{"declare": "bench", **spec}] if spec else []))
    log.send(*records)
    result = benchmark_report(board_view(log.bench), assert_complete=assert_complete).result
    return result and {word: (line.yes, line.text) for word, line in result}


def three(items=100):
    """a is much better than b, and c is b but for one item."""
    scores = np.zeros((items, 3), int)
    scores[: items * 9 // 10, 0], scores[: items // 2, 1:] = 1, 1
    scores[0, 2] = 0
    return np.random.default_rng(1).permutation(scores)


def test_complete_files():
    result = lines(packed(three(), ["a", "b", "c"]), assert_complete=True)
    assert result["settled"] == (True, "a leads on the 100 items.")
    assert result["decided"] == (True, "1 of 2 pairs of neighbours in rank, 1 tie; 2 of all 3 pairs.")
    yes, text = result["resolved"]
    assert yes
    assert text.startswith(
        "Enough items for 1 of 2 gaps between neighbours in a planned test, 1 if you look as results arrive; "
    )
    assert "ranks 2 and 3 need about" in text


def test_a_part_of_an_item_that_is_missing_takes_a_whole_one():
    scores = [[1, 1 / 3], [1, 0], [1 / 3, 1 / 3], [1, 2 / 3]]
    _, text = lines(packed(scores, ["a", "b"]), assert_complete=True)["resolved"]
    assert text.endswith("in a planned test; ranks 1 and 2 need about 1 more item.")


def test_the_lines_count_all_pairs_whatever_the_report_shows():
    log = FoldLog({"declare": "bench", "items": 100})
    log.send(packed(three(), ["a", "b", "c"]))
    assert (
        benchmark_report(board_view(log.bench), pairs="all").result
        == benchmark_report(board_view(log.bench), pairs="adjacent").result
    )


def test_what_may_still_come_is_open():
    result = lines(packed(three(), ["a", "b", "c"]), items=150)
    assert result["settled"] == (False, "a leads on the items scored; only b and c may still pass it on all 150 items.")
    assert result["decided"] == (False, "No pair is decided yet.")
    nearly = lines(packed(three(), ["a", "b", "c"]), items=105)
    assert nearly["decided"] == (True, "1 of 2 pairs of neighbours in rank, 1 undecided so far; 2 of all 3 pairs.")


@pytest.mark.parametrize(
    ("spec", "ended", "text"),
    [
        ({"items": 150}, "abc", "the runs have ended, and only b and c could have passed it on all 150 items."),
        ({"items": 150}, "ab", "only b and c may still pass it on all 150 items."),
        ({"items": 150}, "", "only b and c may still pass it on all 150 items."),
    ],
)
def test_after_the_end_of_the_runs_no_model_may_still_pass_the_leader(spec, ended, text):
    records = [packed(three(), ["a", "b", "c"]), *({"ended": "bench", "model": model} for model in ended)]
    assert lines(*records, **spec)["settled"] == (False, f"a leads on the items scored; {text}")


def test_in_complete_files_nothing_more_comes():
    records = [packed(paired(6, 5, 5), ["a", "b"]), event("another", "b", 1), event("a third", "b", 0)]
    text = "a leads on the items scored; the runs have ended, and only b could have passed it on all 18 items."
    assert lines(*records, assert_complete=True)["settled"] == (False, text)


@pytest.mark.parametrize("policy", ["completion", "trusted"])
def test_with_more_items_than_declared_nothing_is_settled(policy):
    result = lines(packed(three(), ["a", "b", "c"]), items=90, order=policy)
    text = "a has the best score so far; more items arrived than declared, so nothing is settled."
    assert result["settled"] == (False, text)


def test_neighbours_may_be_ties_where_other_pairs_are_decided():
    scores = np.zeros((60, 3), int)
    scores[:45, 0], scores[:35, 1], scores[:25, 2] = 1, 1, 1
    rolled = np.column_stack([np.roll(scores[:, k], 20 * k) for k in range(3)])
    result = lines(packed(rolled, ["a", "b", "c"]), assert_complete=True)
    assert result["decided"] == (
        False,
        "No pair of neighbours in rank is decided: 2 ties; 1 of all 3 is.",
    )
    assert lines(packed(scores[::20], ["a", "b", "c"]), assert_complete=True)["decided"] == (
        False,
        "No pair is decided.",
    )


def test_many_rivals_are_counted():
    scores = np.ones((4, 5), int)
    scores[0, 1:] = 0
    result = lines(packed(scores, list("abcde")), items=9)
    assert result["settled"] == (False, "a leads on the items scored; 4 of 4 models may still pass it on all 9 items.")


def test_equal_scores_at_the_top():
    result = lines(packed(paired(5, 5, 5), ["a", "b"]), items=15)
    assert result["settled"] == (True, "a and b have the same score on the 15 items.")
    # No number of items detects a gap of 0.
    assert result["resolved"] == (False, "Enough items for none of 1 gap between neighbours in a planned test.")


def test_a_benchmark_without_an_order_is_held():
    result = lines(packed(three(), ["a", "b", "c"]))
    assert result["settled"] == (False, "a has the best score so far; the number of items is not declared.")
    yes, text = result["decided"]
    assert not yes
    assert "No further verdict: " in text or text.startswith("No verdict: ")
    counted = lines(packed(three(), ["a", "b", "c"]), items=100, order={"policy": "none"})
    assert counted["settled"] == (False, "a has the best score so far; without an order policy nothing is settled.")


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
    yes, text = lines(packed(np.tile([1, 0], (items, 1)), ["a", "b"]), assert_complete=True)["resolved"]
    assert not yes
    assert text == (
        "Enough items for none of 1 gap between neighbours in a planned test; unknown for 1, as every item differs alike."
    )

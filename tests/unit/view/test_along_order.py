"""The first claim that holds along the order of `gate --run`."""

import numpy as np
import pytest

from monitor.view.gates.along_order import compare_along_order, first_decision, questions_of
from monitor.view.gates.gate import gate_report
from monitor.view.gates.margin import Margin


def judge(losses, ties, items, margin=0.5):
    """The answer after some items of a candidate that loses the first items and ties on the others."""
    (question,) = questions_of("bench", ["new"], "old", Margin(margin), 0.05)
    candidate = np.repeat([0.0, 1.0], [losses, ties])[:items]
    row = compare_along_order(candidate, np.ones(items), losses + ties, question)
    return row, gate_report([row], question.margin, alpha=0.05)


@pytest.mark.parametrize("items", [8, 10, 60, 68])
def test_items_after_the_decision_change_no_verdict(items):
    """It is worse by the eighth item, and not worse by more than half within the same block, if that is a large one."""
    row, report = judge(8, 60, items)
    assert (row.verdict, row.decided_at_n, report.verdict) == ("fail", 8, "fail")
    assert (row.p_worse, row.p_not_worse) == (pytest.approx(2 * 9 / (2**9 - 1)), 1)
    late = first_decision(
        np.repeat([0.0, 1.0], [7, 61]), np.ones(68), questions_of("b", "n", "o", Margin(0.5), 0.05)[0]
    )
    assert late is not None
    assert late[0] == "pass"


def test_each_candidate_has_an_equal_share_of_alpha_however_the_others_end():
    questions = questions_of("bench", ["a", "b", "c"], "old", Margin(0.03), 0.05)
    assert [(each.candidate, each.alpha) for each in questions] == [(name, pytest.approx(0.05 / 3)) for name in "abc"]


def test_the_headline_names_the_benchmarks_that_the_family_shows_to_be_worse():
    (question,) = questions_of("bench", ["new"], "old", Margin(0.03), 0.05)
    empty = compare_along_order(np.zeros(0), np.zeros(0), 10, question)
    rows = [empty.replace(benchmark=name, p_worse=p) for name, p in (("a", 0.001), ("b", 0.04), ("c", 0.5))]
    assert gate_report(rows, Margin(0.03)).headline == "fail: new is worse than old on a (alpha = 0.05)"

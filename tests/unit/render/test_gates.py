"""What a gate prints next to its p: what was done with missing items."""

from math import isclose

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.render.gates import gate, margin
from monitor.view.build import report_view
from monitor.view.from_state import board_view
from monitor.view.gates.comparison import compare_with_margin
from monitor.view.gates.gate import gate_report
from monitor.view.gates.margin import Margin
from monitor.words import header
from monitor.words.numbers import apart, p_value
from tests import report_factory
from tests.fold_log import FoldLog, packed, paired


@pytest.mark.parametrize(("missing", "words"), [("worst", "at their worst"), ("ignorable", "ignored")])
def test_p_is_printed_with_what_it_does_with_missing_items(missing, words):
    scores = np.hstack([paired(60, 5, 35), np.zeros((100, 1))])
    scores[65:80, 1] = np.nan
    log = FoldLog({"declare": "bench", "missing": missing})
    log.send(packed(scores, "abc"))
    view = report_view(board_view(log["bench"]), pairs="all", assert_complete=True)
    for pair in view.report.pairs:
        models, lacks = (pair.model_a, pair.model_b), pair.n < 100
        expected = f"missing items {words if lacks else 'at their worst'}"
        assert f"of the exact test, {expected};" in gate.as_text(gate.answer(view.report, pair, models))
        size = Margin(0.02)
        judged = gate_report([compare_with_margin(view.table, pair, *models, size)], size)
        assert f"of the exact test, {expected};" in margin.as_text(judged)
    assert {pair.n for pair in view.report.pairs} == {85, 100}


@pytest.mark.parametrize(("alpha", "p", "limit"), [(0.05, "0.05002", "0.05000"), (0.05002, "0.050016", "0.05002")])
def test_p_beside_its_threshold_has_the_digits_that_decide(alpha, p, limit):
    """The exact p of 159 to 125 is .0500163."""
    log = FoldLog({"declare": "bench", "alpha": alpha})
    log.send(packed(paired(159, 125, 100), "ab"))
    view = report_view(board_view(log["bench"]), pairs="all", assert_complete=True)
    (pair,) = view.report.pairs
    assert pair.p_anytime == pytest.approx(0.0500163189)
    assert f"p = {p} of the exact test, missing items at their worst; decided at p <= {limit}\n" in gate.as_text(
        gate.answer(view.report, pair, ("a", "b"))
    )


@given(st.floats(1e-12, 1), st.floats(-0.999, 1), st.integers(0, 9))  # p of 0 is shown as a bound
def test_a_p_value_beside_a_threshold_shows_which_is_smaller(limit, by, digits):
    p = min(1.0, limit * (1 + by / 10**digits))
    shown = [float(text) for text in apart(p_value, p, limit)]
    if isclose(p, limit, rel_tol=1e-10):
        assert shown[0] == pytest.approx(shown[1])
    else:
        assert (shown[0] < shown[1]) == (p < limit)
        assert shown[0] != shown[1]


def test_ln_e_in_a_table_has_the_digits_that_decide():
    pairs = [report_factory.pair(log_e=5.2), report_factory.pair("beta", "gamma", log_e=-2.0)]
    board = report_factory.benchmark(pairs)
    assert header.log_e_digits(board) == 2, "ln 180 is 5.19296"
    board = report_factory.benchmark([report_factory.pair(log_e=5.1932)])
    assert header.log_e_digits(board) == 4
    assert ">= 5.1930 in the family" in header.thresholds(board)


def test_an_estimate_of_items_has_two_digits():
    log = FoldLog({"declare": "bench"})
    log.send(packed(paired(10, 10, 180), "ab"))
    view = report_view(board_view(log["bench"]), pairs="all", assert_complete=True)
    (pair,) = view.report.pairs
    judged = compare_with_margin(view.table, pair, "a", "b", Margin(0.03))
    assert judged.items_needed == pytest.approx(734, abs=1)
    assert "a test of about 740 items decides this in 4 of 5 runs" in judged.reason


@pytest.mark.parametrize("items", range(3, 9))
def test_a_gate_fails_where_the_report_decides_at_exactly_alpha(items):
    """The p-value is the exponential of a logarithm, and was a little above alpha for most of these."""
    log = FoldLog({"declare": "bench", "items": items, "alpha": 2.0 ** (1 - items)})
    log.send(packed(np.tile([0, 1], (items, 1)), ["new", "old"]))
    view = report_view(board_view(log["bench"]), pairs="all", assert_complete=True)
    (pair,) = view.report.pairs
    assert pair.decided.anytime is not None
    size = Margin(0.01)
    assert gate_report([compare_with_margin(view.table, pair, "new", "old", size)], size).verdict == "fail"


def test_a_gate_on_a_look_names_what_decides():
    """31 against 12 of 100 items along a committed order: the exact test at the end decides, and no e-value does."""
    ids = [f"i{k}" for k in range(100)]
    log = FoldLog({"declare": "bench", "order": {"policy": "committed", "seed": "s"}, "item_ids": ids, "look": 0.5})
    for k, item in enumerate(ids):
        scores = {"a": int(k < 31), "b": int(31 <= k < 43)}
        log.send(*({"benchmark": "bench", "item_id": item, "model": model, "score": scores[model]} for model in "ab"))
    view = report_view(board_view(log["bench"]), pairs="all", assert_complete=False)
    (pair,) = view.report.pairs
    text = gate.as_text(gate.answer(view.report, pair, ("a", "b")))
    assert pair.decided.anytime == "a"
    assert f"p = {p_value(pair.p_anytime)} by bets or by one exact test of all items; decided at p <= 0.05" in text
    assert "1/alpha" not in text

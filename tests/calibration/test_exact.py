"""Rules with one look at all items keep their error rates exactly; all of them: `python -m tests.calibration.exact`."""

import json

import pytest

from tests.calibration import exact


@pytest.mark.parametrize(
    ("items", "margin", "alpha"),
    [(25, 0.1, 0.05), (52, 0.05, 0.05), (88, 0.03, 0.05), (133, 0.02, 0.05), (15, 0.1, 0.1), (33, 0.05, 0.1)],
)
def test_a_gate_passes_falsely_at_most_at_alpha(items, margin, alpha):
    """The score test passes falsely in .0718, .0694, .0685, .0681, and at alpha = .1 in .206 and .184: where no item is lost."""
    assert exact.false_pass(items, margin, alpha).rate <= alpha


@pytest.mark.parametrize(("items", "right", "wrong"), exact.LISTED)
def test_the_interval_misses_the_gap_at_most_at_alpha_where_the_score_interval_did_not(items, right, wrong):
    assert exact.missed_gap(items, 0.05, [(right, wrong)]).rate <= 0.05


@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.05 / 9, 0.05 / 406])
@pytest.mark.parametrize("items", [20, 50])
def test_the_interval_misses_no_gap_more_often_than_alpha_also_in_families(items, alpha):
    """The score interval misses a gap of .99 in 79 times alpha / 406 with 50 items."""
    assert exact.missed_gap(items, alpha, exact.cells(50)).rate <= alpha


def test_the_bound_of_a_gate_is_above_the_gap_at_most_at_alpha():
    assert exact.missed_bound(25, 0.1, 0.05).rate <= 0.05


def test_the_items_that_a_gate_asks_for_have_the_power_it_names():
    items, power = exact.power(0.05, 0.05, 0.05, 0.05)
    assert items == 284
    assert 0.8 <= power <= 0.83


def test_the_rates_that_the_documentation_shows():
    kept = json.loads(exact.KEPT.read_text(encoding="utf-8"))
    for name in ("false_pass", "listed", "interval"):
        for case, (alpha, rate, *_) in kept[name].items():
            assert rate <= alpha, (name, case)
    for case, (alpha, rate, *_) in kept["bound"].items():
        assert rate <= (1.1 if alpha < 0.05 else 1) * alpha, case
    assert all(0.8 <= power <= 0.93 for _, power in kept["power"].values())

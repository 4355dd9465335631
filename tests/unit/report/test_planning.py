"""Plans: both ways round, against the formulas, the paper and simulation-free identities."""

import json
import math

import pytest
from scipy.stats import norm

from monitor.render.terminal.plan import render_plan
from stats.comparison_plan import Likeness, plan_items

K = (norm.ppf(0.975) + norm.ppf(0.8)) ** 2


def test_items_for_a_gap_are_the_formula():
    needed = plan_items(Likeness(discordance=0.25), gap=0.02, items=None, family=45, design_effect=3.0).needed
    assert needed["fixed_n"] == pytest.approx(K * (0.25 - 0.02**2) / 0.02**2)
    assert needed["clustered"] == pytest.approx(3 * needed["fixed_n"])
    assert needed["bonferroni"] / needed["fixed_n"] == pytest.approx(2.1442, abs=1e-4)
    assert needed["fixed_n"] < needed["anytime"] < needed["anytime_family"]
    assert needed["bonferroni"] < needed["anytime_family"]


def test_the_calculator_example_of_the_paper():
    needed = plan_items(Likeness(accuracy=0.625, rho=0.3), gap=0.05, items=None).needed
    assert needed["fixed_n"] == pytest.approx(1028, abs=1)


def test_a_discordance_and_its_accuracy_and_correlation_plan_the_same():
    accuracy, rho, gap = 0.7, 0.4, 0.03
    p, q = accuracy + gap / 2, accuracy - gap / 2
    both = p * q + rho * math.sqrt(p * (1 - p) * q * (1 - q))
    by_discordance = plan_items(Likeness(discordance=p + q - 2 * both), gap=gap, items=None, family=9).needed
    assert by_discordance == pytest.approx(plan_items(Likeness(accuracy, rho), gap=gap, items=None, family=9).needed)


@pytest.mark.parametrize("likeness", [Likeness(discordance=0.26), Likeness(0.6, 0.5), Likeness(0.9, 0.8)])
def test_the_smallest_gap_is_the_one_that_needs_these_items(likeness):
    detectable = plan_items(likeness, gap=None, items=12_032, family=9, design_effect=2.0).detectable
    for name, gap in detectable.items():
        needed = plan_items(likeness, gap=gap, items=None, family=9, design_effect=2.0).needed
        assert needed[name] == pytest.approx(12_032, rel=1e-6)


def test_too_few_items_detect_nothing():
    planned = plan_items(Likeness(discordance=0.2), gap=None, items=3)
    assert planned.detectable["anytime"] is None
    assert planned.curve == []


def test_the_curve_stays_within_what_is_possible():
    curve = plan_items(Likeness(discordance=0.05), gap=0.03, items=None).curve
    gaps = [gap for gap, _ in curve]
    assert 0.03 in gaps
    assert max(gaps) <= 0.05
    assert [needs["anytime"] for _, needs in curve] == sorted((needs["anytime"] for _, needs in curve), reverse=True)


@pytest.mark.parametrize(
    ("likeness", "gap", "says"),
    [
        (Likeness(discordance=0.3), 0.4, "at most 0.3"),
        (Likeness(0.9, 0.5), 0.3, "at most 0.1"),
        (Likeness(0.9, -0.9), 0.1, "Hoeffding bounds"),
        (Likeness(0.6, 0.5), 0.0, "above 0 and at most"),
    ],
)
def test_what_cannot_be_is_refused(likeness, gap, says):
    with pytest.raises(ValueError, match=says):
        plan_items(likeness, gap=gap, items=None)


def test_json_has_every_number():
    planned = plan_items(Likeness(0.6, 0.5), gap=0.02, items=500, family=9)
    numbers = json.loads(render_plan(planned, "as given", as_json=True))
    assert numbers["required_n"] == planned.needed
    assert numbers["mde"] == planned.detectable
    assert [point["gap"] for point in numbers["curve"]] == [gap for gap, _ in planned.curve]

"""Plans: both ways round, at their own thresholds, and at every extreme."""

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console

from monitor.render.terminal.plan import render_plan
from stats.families.error_control import spending_alpha
from stats.fixed_n.power import exact_power
from stats.planning.comparison_plan import Clusters, Likeness, plan_items, spending_levels
from stats.planning.pilot import PilotEffect
from stats.planning.stopping import AnytimeLaw
from tests.calibration.test_look import peaks


def text_of(planned):
    out = io.StringIO()
    Console(width=200, file=out).print(render_plan(planned, "as given", as_json=False))
    return out.getvalue()


def test_each_procedure_is_planned_at_its_own_threshold():
    planned = plan_items(Likeness(discordance=0.25), gap=0.05, family=45)
    levels = {row.procedure.name: row.procedure.alpha for row in planned.rows}
    assert levels["completion"] == levels["anytime"] == levels["fixed_n"] == 0.05
    assert levels["bonferroni"] == levels["completion_family"] == levels["anytime_family"] == 0.05 / 45
    assert levels["anytime_spending"] == levels["completion_spending"] == spending_alpha(45, 0.05)
    assert levels["anytime_spending"] < levels["anytime_spending_last"] < 0.05 / 45
    for row in planned.rows:
        assert row.needed > 0
    assert planned["completion"].needed == planned["fixed_n"].needed
    assert exact_power(planned["fixed_n"].needed, 0.15, 0.1) == pytest.approx(0.8, abs=0.003)
    needed = [
        planned[name].needed for name in ("anytime", "anytime_family", "anytime_spending_last", "anytime_spending")
    ]
    assert needed == sorted(needed)


def test_the_last_pair_of_a_growing_family_has_what_the_others_leave():
    first, last = spending_levels(4, 0.05)
    weights = [float(spending_alpha(j, 0.5)) * 2 for j in (1, 2, 3, 4)]
    assert first == pytest.approx(0.05 * weights[3])
    assert last == pytest.approx(0.05 * weights[3] / (1 - sum(weights[:3])))
    far = spending_levels(10**9, 0.05)
    assert 0 < far[0] < far[1] < 1e-9


def test_a_decision_is_expected_when_the_law_expects_it():
    planned = plan_items(Likeness(0.6, 0.5), gap=0.05)
    law = AnytimeLaw(*Likeness(0.6, 0.5).rates(0.05), math.log(20))
    row = planned["anytime"]
    assert row.decided_by[0.5] == law.quantile(0.5) < row.needed == law.quantile(0.8) < row.decided_by[0.9]
    assert 0.9 not in planned["completion"].decided_by  # .8 is all that these items give
    assert planned["completion"].decided_by[0.5] < planned["completion"].needed


def test_a_discordance_and_its_accuracy_and_correlation_plan_the_same():
    accuracy, rho, gap = 0.7, 0.4, 0.06
    p, q = accuracy + gap / 2, accuracy - gap / 2
    both = p * q + rho * math.sqrt(p * (1 - p) * q * (1 - q))
    by_discordance = plan_items(Likeness(discordance=p + q - 2 * both), gap=gap)
    by_rho = plan_items(Likeness(accuracy, rho), gap=gap)
    assert "correlation (phi) of the 0/1 scores 0.4" in text_of(by_rho)
    assert [row.needed for row in by_discordance.rows] == [row.needed for row in by_rho.rows]


@pytest.mark.parametrize("likeness", [Likeness(discordance=0.26), Likeness(0.6, 0.5), Likeness(0.9, 0.8)])
def test_the_smallest_gap_is_the_one_that_these_items_detect(likeness):
    clusters = Clusters(40, 0.01)
    for row in plan_items(likeness, items=2_000, clusters=clusters).rows:
        at = plan_items(likeness, gap=row.detectable, items=2_000, clusters=clusters)[row.procedure.name]
        assert at.power == pytest.approx(0.8, abs=0.001)


def test_too_few_items_detect_nothing():
    planned = plan_items(Likeness(discordance=0.2), items=3)
    assert planned["anytime"].detectable is None
    assert planned.curve == []


def test_clusters_have_a_floor_that_is_named():
    planned = plan_items(Likeness(discordance=0.25), gap=0.05, clusters=Clusters(14, 0.05, 80))
    assert planned["clustered"].needed == math.inf
    assert 14 < planned.cluster_need["any_size"] < planned.cluster_need["same_size"]
    assert "With 14 clusters (ICC 0.05) no number of items suffices" in text_of(planned)
    enough = plan_items(Likeness(discordance=0.25), gap=0.05, clusters=Clusters(200, 0.05))
    assert enough["clustered"].needed % 200 == 0
    assert "in each of 200 clusters" in text_of(enough)


def test_a_pilot_prints_the_range_ahead_of_the_average():
    effect = PilotEffect(200, 40, 20)
    planned = plan_items(
        Likeness(discordance=effect.discordance), effect=effect, items=1_000, family=3, clusters=Clusters(20, 0.01)
    )
    for row in planned.rows:
        lower, upper = row.interval
        assert upper < row.needed < lower
        assert 0 < row.power < 1
    lines = text_of(planned).splitlines()
    assert "the gap is between" in lines[1]
    assert planned.gap is None


def test_a_pilot_without_a_clear_leader_has_no_upper_end():
    effect = PilotEffect(100, 11, 9)
    row = plan_items(Likeness(discordance=effect.discordance), effect=effect)["fixed_n"]
    assert row.interval[0] == math.inf
    assert row.interval[1] < row.needed


def test_the_curve_stays_within_what_is_possible():
    curve = plan_items(Likeness(discordance=0.05), gap=0.03).curve
    gaps = [gap for gap, _ in curve]
    assert 0.03 in gaps
    assert max(gaps) <= 0.05
    assert [needs["anytime"] for _, needs in curve] == sorted((needs["anytime"] for _, needs in curve), reverse=True)


@pytest.mark.parametrize(
    ("likeness", "gap", "says"),
    [
        (Likeness(discordance=0.3), 0.4, "at most 0.3"),
        (Likeness(discordance=0.3), -0.1, "at most 0.3"),
        (Likeness(0.9, 0.5), 0.3, "at most 0.1"),
        (Likeness(0.9, -0.9), 0.1, "Hoeffding bounds"),
        (Likeness(0.6, 0.5), 0.0, "no number of items decides a gap of 0"),
        (Likeness(0.5, 1.0), 0.1, "no gap is possible"),
        (Likeness(1.0, 0.0), 0.1, "no gap is possible"),
        (Likeness(discordance=0.0), 0.1, "no gap is possible"),
    ],
)
def test_what_cannot_be_is_refused(likeness, gap, says):
    with pytest.raises(ValueError, match=says):
        plan_items(likeness, gap=gap)


@pytest.mark.parametrize(
    ("likeness", "asked"),
    [
        (Likeness(0.5, 0.0), {"gap": 0.5}),
        (Likeness(0.5, 0.0), {"gap": 1.0}),
        (Likeness(0.5, -1.0), {"gap": 0.1}),
        (Likeness(discordance=1.0), {"items": 100}),
        (Likeness(discordance=1.0), {"gap": 1.0}),
        (Likeness(discordance=0.2), {"gap": 1e-9}),
        (Likeness(discordance=1e-9), {"gap": 1e-10}),
        (Likeness(discordance=0.2), {"gap": 0.1, "items": 1}),
        (Likeness(discordance=0.2), {"gap": 0.1, "family": 10**9}),
        (Likeness(discordance=0.2), {"gap": 0.1, "power": 0.999999}),
        (Likeness(discordance=0.2), {"gap": 0.1, "alpha": 1e-6}),
        (Likeness(discordance=0.2), {"gap": 0.1, "alpha": 0.5, "power": 0.5}),
        (Likeness(discordance=0.2), {"gap": 0.2, "items": 10**12}),
        (Likeness(discordance=0.2), {"gap": 0.1, "clusters": Clusters(2, 1.0), "items": 1}),
        (Likeness(discordance=0.2), {"gap": 0.1, "mixture": "two_point(.1,.9)"}),
    ],
)
def test_extremes_have_a_plan(likeness, asked):
    planned = plan_items(likeness, **asked)
    json.loads(render_plan(planned, "as given", as_json=True), parse_constant=pytest.fail)
    text = text_of(planned)
    assert "nan" not in text
    assert "Half the gap" not in text


@pytest.mark.parametrize("asked", [{"gap": 0.02}, {"gap": 0.02, "items": 12_032}, {"items": 12_032}])
def test_tables_fit_a_hundred_columns(asked):
    planned = plan_items(Likeness(discordance=0.26), family=4_950, clusters=Clusters(140, 0.02, 86), **asked)
    lines = text_of(planned).splitlines()
    assert max(len(line) for line in lines if not line.endswith(".")) <= 100
    rows = [line for line in lines if line.startswith(("completion", "anytime", "fixed n", "Bonferroni", "clustered"))]
    assert len(rows) == len(planned.rows)
    assert all(line.rstrip().endswith(("end", "arrival", "trusted", "clusters", "first", "last")) for line in rows)


def test_json_has_every_number():
    planned = plan_items(Likeness(0.6, 0.5), gap=0.05, items=500, family=9)
    numbers = json.loads(render_plan(planned, "as given", as_json=True))
    assert numbers["required_n"] == {row.procedure.name: row.needed for row in planned.rows}
    assert numbers["power_at_items"] == {row.procedure.name: row.power for row in planned.rows}
    assert numbers["decided_by"]["anytime"]["0.5"] == planned["anytime"].decided_by[0.5]
    assert numbers["tests"] == planned.tests
    assert [point["gap"] for point in numbers["curve"]] == [gap for gap, _ in planned.curve]


@pytest.mark.parametrize("items", [300, 800])
def test_a_plan_with_a_look_is_at_the_thresholds_of_its_verdicts(items):
    """At least the planned power, and little more: one of the two tests decides nearly all that either does."""
    likeness, look = Likeness(discordance=0.25), 0.2
    row = plan_items(likeness, gap=0.07, items=items, look=look)["anytime"]
    assert (row.procedure.alpha, row.procedure.at_end) == pytest.approx((0.04, 0.01))
    draw = np.random.default_rng(items).random((items, 2_000))
    won, lost = likeness.rates(0.07)
    evidence = peaks((draw < won) * 1.0, (draw > 1 - lost) * 1.0, look)[-1]
    share = (evidence >= np.log(20)).mean()
    assert row.power - 0.03 < share < row.power + 0.08
    assert row.power > plan_items(likeness, gap=0.07, items=items)["anytime"].power

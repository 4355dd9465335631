"""The power that a plan states, and the items by which it expects decisions, next to 20,000 simulated experiments a setting."""

import numpy as np
import pytest

from stats.clusters.robust import clustered_p
from stats.evidence.curtailed import curtailed_side
from stats.evidence.eprocess import log_e_value
from stats.fixed_n.mcnemar import chi2_p, corrected_p, exact_p, mid_p
from stats.planning.comparison_plan import Clusters, Likeness, plan_items, procedures
from stats.planning.pilot import ADDED_WINS, PilotEffect

pytestmark = pytest.mark.slow

EXPERIMENTS, BATCH = 20_000, 1_000
NEAR = 0.01
P_VALUES = {"exact": exact_p, "mid": mid_p, "chi2": chi2_p, "corrected": corrected_p}
LIKE = {"many ties": Likeness(0.8, 0.6), "few ties": Likeness(discordance=0.6), "no ties": Likeness(discordance=1.0)}


def assert_near(stated, hits, what=""):
    """Assert that a stated probability is within .01 of a share of experiments."""
    share = float(np.mean(hits))
    error = np.sqrt(share * (1 - share) / EXPERIMENTS)
    assert abs(stated - share) <= NEAR, (
        f"{what}: stated {stated:.4f}, simulated {share:.4f} (standard error {error:.4f})"
    )


def assert_first(share, item, when):
    """Assert that an item is the first by which a share of experiments is decided, up to .01 of them."""
    assert np.mean(when <= item) >= share - NEAR, f"{share} by item {item}"
    assert np.mean(when <= item - 1) <= share + NEAR, f"{share} before item {item}"


def counts(rng, items, likeness, gap):
    """Draw the items that only A and only B has right, among so many."""
    rate_b, rate_c = likeness.rates(gap)
    return rng.multinomial(items, [rate_b, rate_c, 1 - rate_b - rate_c], EXPERIMENTS).T[:2]


@pytest.mark.parametrize(
    ("kind", "gap", "family"),
    [
        ("many ties", 0.1, 1),
        ("many ties", 0.06, 45),
        ("few ties", 0.25, 1),
        ("no ties", 0.3, 10),
        ("many ties", 0.15, 3),
    ],
)
def test_fixed_n_tests_have_the_power_that_a_plan_states(kind, gap, family):
    rng = np.random.default_rng(41)
    planned = plan_items(LIKE[kind], gap=gap, family=family)
    b, c = counts(rng, int(planned["fixed_n"].needed), LIKE[kind], gap)
    for test, stated in planned.tests.items():
        assert_near(stated, (P_VALUES[test](b, c) <= 0.05) & (b > c), test)
    name, alpha = ("bonferroni", 0.05 / family) if family > 1 else ("fixed_n", 0.05)
    needed = int(planned[name].needed)
    for items in (needed, needed // 2, 2 * needed):
        stated = plan_items(LIKE[kind], gap=gap, family=family, items=items)[name].power
        b, c = counts(rng, items, LIKE[kind], gap)
        assert_near(stated, (exact_p(b, c) <= alpha) & (b > c), f"{name}, {items} items")
        assert (stated >= 0.8) == (items >= needed)


def paths(rng, items, likeness, gap):
    """Draw the running wins of A and of B over the items, in batches of experiments."""
    rate_b, rate_c = likeness.rates(gap)
    for _ in range(EXPERIMENTS // BATCH):
        x = rng.random((BATCH, items), dtype=np.float32)
        won, lost = x < rate_b, (x >= rate_b) & (x < rate_b + rate_c)
        yield won.cumsum(1, dtype=np.int32), lost.cumsum(1, dtype=np.int32)


def first(decided):
    """Return the first item at which each experiment is decided; a million if it never is."""
    return np.where(decided.any(1), decided.argmax(1) + 1, 10**6)


@pytest.mark.parametrize(
    ("kind", "gap", "name", "family"),
    [
        ("many ties", 0.1, "completion", 1),
        ("many ties", 0.12, "completion_family", 10),
        ("few ties", 0.25, "completion", 1),
        ("few ties", 0.3, "completion_spending", 10),
        ("few ties", 0.3, "completion_spending_last", 10),
        ("no ties", 0.3, "completion_family", 3),
    ],
)
def test_completion_decides_by_the_items_that_a_plan_states(kind, gap, name, family):
    row = plan_items(LIKE[kind], gap=gap, family=family)[name]
    size, threshold = int(row.needed), -np.log(row.procedure.alpha)
    missing = size - np.arange(1, size + 1)
    when = np.concatenate(
        [
            first(curtailed_side(b, c, missing, threshold) == 1)
            for b, c in paths(np.random.default_rng(42), size, LIKE[kind], gap)
        ]
    )
    for share, item in row.decided_by.items():
        assert_first(share, item, when)
    assert_near(plan_items(LIKE[kind], gap=gap, family=family, items=size)[name].power, when <= size)


def crossing_items(rng, likeness, gap, threshold, mixture, longest):
    """Return the item at which each experiment's e-process decides for A; ties are drawn between discordant items."""
    rate_b, rate_c = likeness.rates(gap)
    when = []
    m = np.arange(1, longest + 1)
    for _ in range(EXPERIMENTS // BATCH):
        b = (rng.random((BATCH, longest), dtype=np.float32) < rate_b / (rate_b + rate_c)).cumsum(1, dtype=np.int32)
        crossed = log_e_value(b, m - b, mixture) >= threshold
        at = first(crossed)
        place = np.minimum(at, longest) - 1
        for_a = 2 * b[np.arange(BATCH), place] > place + 1
        ties = rng.negative_binomial(place + 1, rate_b + rate_c)
        when.append(np.where((at <= longest) & for_a, at + ties, 10**9))
    return np.concatenate(when)


@pytest.mark.parametrize(
    ("kind", "gap", "name", "family", "mixture", "longest"),
    [
        ("many ties", 0.1, "anytime", 1, "beta(1,1)", 700),
        ("many ties", 0.04, "anytime", 1, "beta(10,10)", 1_600),
        ("many ties", 0.1, "anytime_family", 45, "beta(1,1)", 700),
        ("many ties", 0.12, "anytime_spending", 45, "beta(1,1)", 600),
        ("many ties", 0.12, "anytime_spending_last", 45, "beta(1,1)", 600),
        ("few ties", 0.2, "anytime", 1, "beta(1,1)", 500),
        ("few ties", 0.2, "anytime", 1, "two_point(.35,.65)", 500),
        ("few ties", 0.25, "anytime_family", 10, "beta(2,2)", 500),
        ("no ties", 0.3, "anytime", 1, "beta(1,1)", 400),
        ("no ties", 0.5, "anytime_family", 100, "beta(1,1)", 200),
        ("many ties", 0.15, "anytime_spending", 3, "beta(1,1)", 300),
    ],
)
def test_e_processes_decide_by_the_items_that_a_plan_states(kind, gap, name, family, mixture, longest):
    row = plan_items(LIKE[kind], gap=gap, family=family, mixture=mixture)[name]
    when = crossing_items(np.random.default_rng(43), LIKE[kind], gap, -np.log(row.procedure.alpha), mixture, longest)
    assert len(row.decided_by) >= 4
    for share, item in row.decided_by.items():
        assert_first(share, item, when)
    for item in (row.needed, row.needed // 2):
        stated = plan_items(LIKE[kind], gap=gap, family=family, mixture=mixture, items=int(item))[name].power
        assert_near(stated, when <= item, f"by item {item}")


@pytest.mark.parametrize(
    ("clusters", "size", "icc", "gap"),
    [
        (3, 200, 0.005, 0.1),
        (14, 60, 0.036, 0.08),
        (14, 2_000, 0.036, 0.066),
        (50, 10, 0.03, 0.08),
        (5, 400, 0.01, 0.12),
    ],
)
def test_clustered_plans_have_the_power_that_they_state(clusters, size, icc, gap):
    rng = np.random.default_rng(44)
    likeness = Likeness(discordance=0.4)
    stated = plan_items(likeness, gap=gap, items=clusters * size, clusters=Clusters(clusters, icc))["clustered"].power
    spread = np.sqrt(icc * (0.4 - gap**2))
    gaps = np.clip(gap + spread * rng.standard_normal((EXPERIMENTS, clusters)), -0.4, 0.4)
    wins = rng.binomial(size, (0.4 + gaps) / 2)
    losses = rng.binomial(size - wins, np.clip((0.4 - gaps) / 2 / (1 - (0.4 + gaps) / 2), 0, 1))
    d = wins - losses
    assert_near(stated, (clustered_p(np.full(d.shape, size), d) <= 0.05) & (d.sum(1) > 0))


@pytest.mark.parametrize(("n", "b", "c", "items"), [(100, 14, 6, 600), (400, 60, 40, 2_000)])
def test_plans_from_a_pilot_have_the_average_power_that_they_state(n, b, c, items):
    rng = np.random.default_rng(45)
    effect = PilotEffect(n, b, c)
    planned = plan_items(Likeness(discordance=effect.discordance), effect=effect, items=items)
    share = rng.beta(0.5 + b + c, 0.5 + n - b - c, EXPERIMENTS)
    theta = rng.beta(ADDED_WINS + b, ADDED_WINS + c, EXPERIMENTS)
    better = np.maximum(theta, 1 - theta)
    discordant = rng.binomial(items, share)
    wins = rng.binomial(discordant, better)
    losses = discordant - wins
    assert_near(planned["fixed_n"].power, (exact_p(wins, losses) <= 0.05) & (wins > losses))
    low, high = effect.interval()
    assert_near(0.95, (share * (2 * theta - 1) >= low) & (share * (2 * theta - 1) <= high))


def test_every_procedure_of_the_product_is_planned():
    names = {each.name for each in procedures(45, 0.05, clustered=True)}
    assert names == {"fixed_n", "bonferroni", "clustered"} | {
        policy + family
        for policy in ("completion", "anytime")
        for family in ("", "_family", "_spending", "_spending_last")
    }

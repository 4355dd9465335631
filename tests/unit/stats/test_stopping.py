"""Laws of the deciding item, next to programs that follow every count."""

import numpy as np
import pytest
from scipy.stats import binom

from stats.evidence.curtailed import curtailed_side
from stats.evidence.eprocess import log_e_value
from stats.fixed_n.power import exact_power, items_for_power, leader_power
from stats.planning import stopping
from stats.planning.stopping import AnytimeLaw, CompletionLaw


def decided_by_counting(items, rate_b, rate_c, side):
    """Return the probability that A is decided by each item; `side` is what (b, c) after t items decides."""
    alive = np.zeros((items + 2, items + 2))
    alive[0, 0] = 1
    decided, found = 0.0, []
    for t in range(1, items + 1):
        after = alive * (1 - rate_b - rate_c)
        after[1:] += alive[:-1] * rate_b
        after[:, 1:] += alive[:, :-1] * rate_c
        b, c = np.indices(after.shape)
        which = side(b, c, t)
        decided += after[which == 1].sum()
        alive = np.where(which == 0, after, 0)
        found.append(decided)
    return np.array(found)


@pytest.mark.parametrize("mixture", ["beta(1,1)", "beta(10,10)", "grid98", "beta(2,5)"])
@pytest.mark.parametrize(("rate_b", "rate_c"), [(0.4, 0.1), (0.2, 0.15), (0.1, 0.3)])
def test_the_e_process_decides_as_often_as_a_program_over_all_counts(mixture, rate_b, rate_c):
    def side(b, c, t):
        crossed = log_e_value(b, c, mixture) >= np.log(20)
        return np.where(crossed, np.sign(b - c), 0)

    expected = decided_by_counting(60, rate_b, rate_c, side)
    law = AnytimeLaw(rate_b, rate_c, np.log(20), mixture)
    assert [law.by(t) for t in range(1, 61)] == pytest.approx(expected, abs=1e-10)
    target = expected[-1] * 0.9
    if rate_b > rate_c and target > 0.01:
        assert law.quantile(target) == 1 + np.argmax(expected >= target - 1e-12)


@pytest.mark.parametrize(
    ("rate_b", "rate_c", "alpha"), [(0.4, 0.1, 0.05), (0.5, 0.5, 0.05), (0.3, 0.1, 0.01), (1, 0, 0.05)]
)
def test_completion_decides_as_often_as_a_program_over_all_counts(rate_b, rate_c, alpha):
    items = 40

    def side(b, c, t):
        return curtailed_side(b, c, np.full(b.shape, items - t), -np.log(alpha))

    expected = decided_by_counting(items, rate_b, rate_c, side)
    law = CompletionLaw(items, rate_b, rate_c, alpha)
    assert [law.by(t) for t in range(1, items + 1)] == pytest.approx(expected, abs=1e-9)
    assert law.by(items) == pytest.approx(leader_power(items, rate_b, rate_c, alpha))
    if expected[-1] > 0.5:
        assert law.quantile(0.5) == 1 + np.argmax(expected >= 0.5)
    assert law.quantile(min(expected[-1] + 1e-6, 0.999999)) == np.inf or expected[-1] > 0.999


@pytest.mark.slow
@pytest.mark.parametrize(("lead", "threshold"), [(0.02, 3.0), (0.02, 8.9)])
def test_longer_strides_change_probabilities_by_less_than_the_stated_bound(lead, threshold, monkeypatch):
    rates = 0.5 + lead / 2, 0.5 - lead / 2
    law = AnytimeLaw(*rates, threshold)
    at = [law.quantile(q) for q in (0.1, 0.25, 0.5, 0.8, 0.9)]
    coarse = [law.by(item) for item in at]
    assert at[-1] > stopping._EXACT
    stopping._walk.cache_clear()
    monkeypatch.setattr(stopping, "_EXACT", int(at[-1]) + 1)
    exact = AnytimeLaw(*rates, threshold)
    assert [exact.by(item) for item in at] == pytest.approx(coarse, abs=0.003)
    stopping._walk.cache_clear()


def test_a_decision_for_the_worse_model_limits_what_the_e_process_reaches():
    law = AnytimeLaw(0.55, 0.45, np.log(20))
    assert law.quantile(0.999) == np.inf
    assert 0.98 < law.by(100_000) < 0.999
    assert law.by(100_000) + AnytimeLaw(0.45, 0.55, np.log(20)).by(100_000) == pytest.approx(1, abs=1e-6)


def test_a_mixture_that_never_finds_a_small_gap_has_no_number():
    assert AnytimeLaw(0.51, 0.49, np.log(20), "two_point(.3,.7)").quantile(0.8) == np.inf


@pytest.mark.parametrize(("rate_b", "rate_c"), [(0.3, 0.1), (0.62, 0.38), (1, 0), (0.05, 0.01), (0.7, 0.2)])
@pytest.mark.parametrize("test", ["exact", "mid", "chi2", "corrected"])
def test_items_are_those_from_which_on_the_power_is_reached(rate_b, rate_c, test):
    needed = items_for_power(rate_b, rate_c, test=test)
    power = np.array([leader_power(n, rate_b, rate_c, test=test) for n in range(1, int(1.6 * needed) + 30)])
    assert needed == 1 + np.flatnonzero(power < 0.8).max(initial=-1) + 1


def test_power_for_the_leader_is_one_of_two_tails():
    both = leader_power(200, 0.2, 0.1), leader_power(200, 0.1, 0.2)
    assert sum(both) == pytest.approx(exact_power(200, 0.2, 0.1))
    assert both[0] > 100 * both[1]
    # The formula states .80 at 164 items.
    assert leader_power(164, 0.11, 0.03) == pytest.approx(0.7499, abs=1e-4)


def test_many_outcomes_are_visited_in_strides():
    outcomes, weight = stopping.binomial_outcomes(4e6, 0.3)
    assert np.diff(outcomes).max() > 1
    assert weight.sum() == pytest.approx(1)
    assert weight[outcomes <= 1.2e6].sum() == pytest.approx(binom.cdf(1.2e6, 4e6, 0.3), abs=0.01)

"""Drift: reference values, the laws that its promises rest on, and plain code that shares nothing with it."""

import itertools
from math import exp, isnan, log

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest, norm

from stats.drift.detector import DROPS, WINDOW, begin, localize, log_bet, log_ever, log_sum, step
from stats.drift.power import detection_delay, run_spread
from stats.drift.ranks import generator, item_sums, p_dispersion, p_items, p_runs, run_scores, uniform
from stats.drift.size import drift_size

REFERENCE = np.array(
    [[((7919 * (6 * t + i) + 13) % 1009) / 1009 < 0.5 + 0.08 * i for i in range(6)] for t in range(12)], float
)
REFERENCE[3, 2], REFERENCE[11] = np.nan, [0, 0, 1, 0, 1, 1]
PATH = [(7919 * i % 1009) / 1009 * (1 if i <= 20 else 0.15) for i in range(1, 29)]


def plain_scores(bag):
    """Return the scores of runs, one run and item after the other."""
    spreads, means = [], []
    for column in bag.T:
        scores = [x for x in column if not isnan(x)]
        mean = sum(scores) / len(scores)
        means.append(mean)
        spreads.append((sum((x - mean) ** 2 for x in scores) + 0.5) / (len(scores) + 1))
    scores = []
    for row in bag:
        terms = [(x - mean) / v**0.5 for x, mean, v in zip(row, means, spreads, strict=True) if not isnan(x)]
        scores.append(sum(terms) / max(len(terms), 1) ** 0.5)
    return scores


def plain_bet(p, d, n, k):
    low, high, w = -40.0, 40.0, n / (n + k)
    for _ in range(200):
        y = (low + high) / 2
        low, high = (low, y) if w * norm.cdf(y) + (1 - w) * norm.cdf(y + d) > p else (y, high)
    r = exp(-d * y - d * d / 2)
    return r / (w + (1 - w) * r)


def followed(path, ranks="runs"):
    state = begin()
    for p in path:
        state = step(state, p, ranks)
        yield state


def test_the_scores_of_runs_are_those_of_the_definition():
    assert run_scores(REFERENCE) == pytest.approx(plain_scores(REFERENCE), abs=1e-9)
    assert np.nansum(REFERENCE, 0).tolist() == [6, 6, 8, 9, 10, 11]
    _, weight = item_sums(REFERENCE).law()
    assert weight**-2 == pytest.approx([0.26923077, 0.26923077, 0.22348485, 0.21153846, 0.16666667, 0.10897436])
    assert p_runs(REFERENCE, 0.5) == 0.125


def test_sums_that_grow_give_the_same_p_values():
    sums = item_sums(REFERENCE[:1])
    for t in range(1, 12):
        sums = sums.with_run(REFERENCE[t])
        bag = REFERENCE[: t + 1]
        assert run_scores(bag, sums).tolist() == run_scores(bag).tolist()


def test_p_of_items_is_that_of_the_exact_law():
    _, weight = item_sums(REFERENCE).law()
    observed, less, equal = REFERENCE[-1] @ weight, 0.0, 0.0
    columns = [[x for x in column if not isnan(x)] for column in REFERENCE.T]
    for outcome in itertools.product((0, 1), repeat=6):
        chance = np.prod([np.mean(np.equal(column, x)) for column, x in zip(columns, outcome, strict=True)])
        total = np.dot(weight, outcome)
        less += chance * (total < observed - 1e-9)
        equal += chance * (abs(total - observed) <= 1e-9)
    assert (less, equal) == (pytest.approx(0.16090593), pytest.approx(0.03472222))
    drawn = [p_items(REFERENCE, 0.5, np.random.default_rng(k)) for k in range(8)]
    assert np.mean(drawn) == pytest.approx(0.17826705, abs=4 * 0.004 / 8**0.5)


@pytest.mark.parametrize("bag", [np.zeros(3), np.zeros((0, 3)), [[0.5, 1.2]], [[-0.1]], [[np.inf]]])
def test_a_bag_of_another_shape_or_range_is_refused(bag):
    with pytest.raises(ValueError, match="bag"):
        run_scores(bag)


@pytest.mark.parametrize("ranks", ["runs", "items"])
@pytest.mark.parametrize("p", [1e-9, 0.003, 0.05, 0.5, 0.93, 1 - 1e-7])
def test_bets_are_the_density_of_a_lower_rank(p, ranks):
    for d, n, k in [(0.5, 30, 1), (1.0, 14, 9), (2.0, 2, 200), (4.0, 1, 1)]:
        e = d * n / (n + k)
        plain = plain_bet(p, d, n, k) if ranks == "runs" else exp(-e * norm.ppf(p) - e * e / 2)
        assert exp(log_bet(p, d, n, k, ranks)) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("ranks", ["runs", "items"])
@pytest.mark.parametrize(("d", "n", "k"), [(0.5, 3, 1), (2.0, 14, 3), (4.0, 40, 40)])
def test_a_bet_has_mean_one_where_nothing_changes(d, n, k, ranks):
    mean, _ = quad(lambda z: exp(log_bet(norm.cdf(z), d, n, k, ranks)) * norm.pdf(z), -7, 7, limit=400)
    assert mean == pytest.approx(1, abs=1e-6)


def test_a_bet_on_a_rank_is_bounded_by_what_the_rank_can_show():
    assert exp(log_bet(0.0, 4, 14, 1)) <= 15
    assert exp(log_bet(0.0, 4, 14, 7)) <= 3


def test_the_sums_follow_the_reference_path():
    runs = {state.runs: exp(log_sum(state)) for state in followed(PATH) if state.runs > 1}
    items = {state.runs: exp(log_sum(state)) for state in followed(PATH, "items") if state.runs > 1}
    ever = {state.runs: exp(log_ever(state)) for state in followed(PATH)}
    at = (2, 20, 24, 28)
    assert [runs[t] for t in at] == pytest.approx([0.47808757, 4.89624436, 94.42907943, 18548.05803176], rel=1e-8)
    assert [items[t] for t in at] == pytest.approx([0.48624963, 5.11695004, 53.66179496, 4415.64985226], rel=1e-8)
    assert [ever[t] for t in at] == pytest.approx([0.73904379, 0.46606529, 0.78781665, 40.66753170], rel=1e-8)
    assert ever[1] == 1


def test_starts_that_lie_too_far_back_are_given_up():
    *_, last = followed([0.5] * (WINDOW + 40))
    assert last.starts.tolist() == list(range(41 + 0, WINDOW + 41))
    assert last.log_capital.shape == (WINDOW, len(DROPS))


def test_a_change_is_localized_by_the_shares_of_its_starts():
    *_, last = followed(PATH)
    found = localize(last)
    assert (found.start, found.first, found.last, found.starts.tolist()) == (21, 21, 24, [21, 22, 23, 24])
    with pytest.raises(ValueError, match="two runs"):
        localize(begin())
    with pytest.raises(ValueError, match="p must be"):
        step(begin(), float("nan"))


def test_the_size_is_the_hull_over_every_start():
    means = np.r_[np.tile([0.70, 0.72], 10), 0.66, 0.65, 0.66]
    size = drift_size(means, 21, [20, 21, 22])
    assert size.low < 0.04 < size.before - size.after < size.high
    assert drift_size(means, 21, [21]).low > size.low
    # A single run before the set has no spread of its own.
    early = drift_size(means, 21, [2, 21])
    assert early.high - early.low > size.high - size.low
    assert drift_size([0.7, 0.6, 0.7, 0.6, 0.7], 2, [2]).low < 0
    for start in (1, 24):
        with pytest.raises(ValueError, match="start"):
            drift_size(means, start, [start])


def test_the_number_that_splits_ties_is_a_function_of_three_names():
    assert (uniform("s", "m", "r1"), uniform("s", "m", "r2")) == (0.7086811813969662, 0.3886586921208785)
    assert generator("s", "m", "r1").random() == generator("s", "m", "r1").random()
    assert len({uniform("s", "m", f"r{k}") for k in range(100)}) == 100


# --- laws, by simulation --------------------------------------------------------------------------------------------------------------


def histories(kind, rng, count, runs, items):
    """Yield bags in which nothing changes."""
    for _ in range(count):
        chance = rng.beta(1.4, 0.6, items)
        bag = (rng.random((runs, items)) < chance).astype(float)
        if kind == "graded":
            bag = rng.beta(5 * chance + 0.1, 5 * (1 - chance) + 0.1, (runs, items))
        elif kind == "shocks":
            shock = rng.normal(0, 0.1, (runs, 1))
            bag = (rng.random((runs, items)) < np.clip(chance + shock, 0, 1)).astype(float)
        elif kind == "some items a run":
            bag[rng.random((runs, items)) < 0.6] = np.nan
            bag[:, 0] = np.where(np.isnan(bag[:, 0]), 1.0, bag[:, 0])
        elif kind == "wrong answers missing":
            bag[(bag == 0) & (rng.random((runs, items)) < 0.4)] = np.nan
        yield bag


@pytest.mark.parametrize("kind", ["0/1", "graded", "shocks", "some items a run", "wrong answers missing"])
def test_p_values_of_runs_are_uniform_and_independent_where_nothing_changes(kind):
    rng = np.random.default_rng(11)
    bags = histories(kind, rng, 100, 16, 12)
    p = np.array([[p_runs(bag[:t], rng.random()) for t in range(2, 17)] for bag in bags])
    assert kstest(p.ravel(), "uniform").pvalue > 0.001
    assert abs(np.corrcoef(p[:, :-1].ravel(), p[:, 1:].ravel())[0, 1]) < 4 / p[:, 1:].size ** 0.5


def test_p_values_of_items_are_uniform_where_items_are_independent():
    rng = np.random.default_rng(12)
    p = [p_items(bag, rng.random(), rng, 199) for bag in histories("0/1", rng, 400, 9, 12)]
    assert kstest(p, "uniform").pvalue > 0.001


def test_runs_that_differ_by_more_than_their_items_are_found():
    rng = np.random.default_rng(13)
    quiet = [p_dispersion(bag, rng, 99) for bag in histories("0/1", rng, 60, 12, 30)]
    moved = [p_dispersion(bag, rng, 99) for bag in histories("shocks", rng, 20, 40, 200)]
    assert np.mean(np.less_equal(quiet, 0.1)) <= 0.1 + 4 * (0.09 / 60) ** 0.5
    assert np.mean(np.less_equal(moved, 0.01)) >= 0.9


def test_no_more_false_alarms_come_than_the_bound_allows():
    rng, limit, runs, streams = np.random.default_rng(14), 15, 60, 60
    alarms = 0
    for _ in range(streams):
        state = begin()
        for p in rng.random(runs):
            state = step(state, p)
            if log_sum(state) >= log(limit):
                alarms, state = alarms + 1, begin()
    expected = streams * runs / limit
    assert alarms <= expected + 4 * expected**0.5
    assert alarms >= 0.2 * expected, "the bound would be far too wide"


@pytest.mark.parametrize(
    ("items", "variance", "drop", "history", "arl", "low", "high"),
    [
        (50, 0.14, 0.08, 30, 365, 5, 9),  # reference: 7
        (200, 0.14, 0.04, 90, 365, 5, 7),  # 6
        (20, 0.14, 0.02, 14, 1825, 61, np.inf),  # > 180
    ],
)
def test_delays_are_those_of_the_reference(items, variance, drop, history, arl, low, high):
    delay = detection_delay(drop, run_spread([variance] * items), history, arl, simulations=60, horizon=60)
    assert low <= delay.median <= high


@pytest.mark.parametrize(("drop", "spread", "history"), [(0, 0.1, 9), (0.1, 0, 9), (0.1, 0.1, 0)])
def test_a_delay_of_nothing_is_refused(drop, spread, history):
    with pytest.raises(ValueError, match="history"):
        detection_delay(drop, spread, history, 365)

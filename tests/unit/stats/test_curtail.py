"""A verdict before the end of a full run is the verdict of the full run, for any rule and order."""

import os
from functools import partial
from itertools import product

import numpy as np
import pytest

import stats

SIMULATIONS = 200 if os.environ.get("RANKWATCH_SLOW") == "1" else 100


def mean_rule(margin, new, old):
    return bool(new.mean() >= old.mean() - margin - 1e-12)


def exact_tests(margin, new, old):
    b, c = int((new > old).sum()), int((new < old).sum())
    if float(stats.excess_p(old.size, b, c, -margin)) <= 0.05:
        return "pass"
    return "fail" if c > b and float(stats.exact_p(b, c)) <= 0.05 else "undecided"


@pytest.mark.parametrize("rule", [partial(mean_rule, 0.0), partial(mean_rule, 0.1), partial(exact_tests, 0.2)])
def test_it_always_equals_the_verdict_of_the_full_run(rule):
    rng = np.random.default_rng(4)
    early = 0
    for _ in range(60):
        n = int(rng.integers(5, 40))
        old = (rng.random(n) < rng.random()).astype(float)
        new = np.where(rng.random(n) < 0.3 * rng.random(), rng.random(n) < 0.6, old).astype(float)
        for order in (np.arange(n), stats.old_right_first(old)):
            items, found = stats.items_until_certain(new[order], old[order], rule)
            assert found == rule(new, old)
            assert stats.certain(new[order][:items], old[order], rule) == found
            if items:
                assert stats.certain(new[order][: items - 1], old[order], rule) is None
            early += items < n
    assert early > 30


def test_it_is_certain_exactly_where_all_completions_agree():
    rule = partial(exact_tests, 0.6)
    for seed, known in product(range(12), range(9)):
        rng = np.random.default_rng(seed)
        old = (rng.random(8) < 0.6).astype(float)
        new = (rng.random(known) < 0.5).astype(float)
        ends = {rule(np.concatenate([new, end]), old) for end in product((0.0, 1.0), repeat=8 - known)}
        assert stats.certain(new, old, rule) == (ends.pop() if len(ends) == 1 else None)


def test_graded_scores_lose_at_most_the_old_score():
    rule = partial(mean_rule, 0.0)
    assert stats.certain([0.5, 0.6], [0.5, 0.5, 0.1], rule)
    assert stats.certain([0.5, 0.59], [0.5, 0.5, 0.1], rule) is None


@pytest.mark.parametrize(
    ("items", "discordance", "gap", "shares"),
    [
        (50, 0.04, 0.0, (0.956, 0.739)),
        (200, 0.04, 0.0, (0.969, 0.744)),
        (500, 0.04, 0.0, (0.970, 0.736)),
        (1319, 0.04, 0.0, (0.972, 0.720)),
        (50, 0.13, 0.0, (0.925, 0.852)),
        (200, 0.13, 0.0, (0.956, 0.890)),
        (500, 0.13, 0.0, (0.967, 0.906)),
        (1319, 0.13, 0.0, (0.973, 0.913)),
        (50, 0.04, -0.04, (0.942, 0.858)),
        (200, 0.04, -0.04, (0.943, 0.956)),
        (500, 0.04, -0.04, (0.943, 0.979)),
        (1319, 0.04, -0.04, (0.940, 0.980)),
        (50, 0.13, -0.06, (0.881, 0.917)),
        (200, 0.13, -0.06, (0.900, 0.956)),
        (500, 0.13, -0.06, (0.892, 0.956)),
        (1319, 0.13, -0.06, (0.893, 0.957)),
    ],
)
def test_the_share_of_items_is_that_of_the_reference(items, discordance, gap, shares):
    """Rule: the mean is at most 2 points lower; old is right on 70 %. In random order, and old-right-first."""
    rng = np.random.default_rng(items)
    rule, run = partial(mean_rule, 0.02), []
    for _ in range(SIMULATIONS):
        old = (rng.random(items) < 0.7).astype(float)
        lost = (old == 1) & (rng.random(items) < (discordance - gap) / 2 / 0.7)
        won = (old == 0) & (rng.random(items) < (discordance + gap) / 2 / 0.3)
        new = np.where(lost, 0.0, np.where(won, 1.0, old))
        orders = (np.arange(items), stats.old_right_first(old))
        run.append([stats.items_until_certain(new[order], old[order], rule)[0] / items for order in orders])
    error = 4 * np.std(run, axis=0) / np.sqrt(SIMULATIONS) + 0.005
    assert (np.abs(np.mean(run, axis=0) - shares) <= error).all(), np.mean(run, axis=0)


@pytest.mark.parametrize(
    "call", [lambda: stats.certain([1, 1], [1], max), lambda: stats.items_until_certain([1], [1, 0], exact_all)]
)
def test_scores_that_do_not_fit_are_an_error(call):
    with pytest.raises(ValueError, match="candidate"):
        call()


def exact_all(new, old):
    return bool(new.sum() > old.sum())

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stats import (
    benjamini_hochberg,
    benjamini_yekutieli,
    bonferroni,
    capacity_alpha,
    closed_averaging,
    e_bh,
    e_bonferroni,
    e_holm,
    e_lond,
    holm,
    log_e_value,
    rank_intervals,
    sidak,
    spending_alpha,
    tie_groups,
)
from stats.families.error_control import spent_before
from tests.published_pairs import B, C


@pytest.mark.parametrize(
    ("adjust", "method"),
    [
        (bonferroni, "bonferroni"),
        (sidak, "sidak"),
        (holm, "holm"),
        (benjamini_hochberg, "fdr_bh"),
        (benjamini_yekutieli, "fdr_by"),
    ],
)
def test_adjusted_p_values_against_statsmodels(adjust, method):
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(5)
    for size in (1, 2, 9, 40):
        p = rng.random(size) ** 3
        p[rng.random(size) < 0.2] = 0.01  # ties
        np.testing.assert_allclose(adjust(p), multipletests(p, method=method)[1], atol=1e-14)


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_the_smallest_p_values_of_a_family_are_rejected_as_with_all_of_it(adjust):
    rng = np.random.default_rng(6)
    for size in (1, 2, 9, 40, 300):
        p = rng.random(size) ** 8
        p[rng.random(size) < 0.2] = 0.01  # ties
        small = p <= 0.05
        assert (adjust(p[small], size) <= 0.05).tolist() == (adjust(p) <= 0.05)[small].tolist()
    with pytest.raises(ValueError, match="m declares 1 hypotheses but 2 are given"):
        adjust([0.1, 0.2], 1)


@pytest.mark.parametrize("mixture", ["grid98", "beta(1,1)"])
def test_reference_decisions_on_the_nine_pairs(mixture):
    log_e = log_e_value(B, C, mixture)
    four = np.array([1, 1, 0, 1, 0, 0, 1, 0, 0], dtype=bool)
    five = np.array([1, 1, 0, 1, 1, 0, 1, 0, 0], dtype=bool)
    for procedure in (e_bonferroni, e_holm, closed_averaging, e_lond):
        np.testing.assert_array_equal(procedure(log_e), four)
    np.testing.assert_array_equal(e_bh(log_e), five)


def test_closed_averaging_is_the_closure_of_averaging():
    rng = np.random.default_rng(11)
    for _ in range(60):
        log_e = rng.normal(2.5, 2.5, 7)
        e = np.exp(log_e)
        expected = [
            all(
                e[[i, *others]].mean() >= 20
                for size in range(7)
                for others in combinations([j for j in range(7) if j != i], size)
            )
            for i in range(7)
        ]
        assert closed_averaging(log_e, 0.05).tolist() == expected


def test_e_bh_by_definition():
    rng = np.random.default_rng(12)
    for _ in range(60):
        e = np.exp(rng.normal(2, 2.5, 8))
        k = max((k for k in range(1, 9) if np.sort(e)[-k] >= 8 / (0.05 * k)), default=0)
        assert e_bh(np.log(e), 0.05).sum() == k
        assert not k or e[e_bh(np.log(e), 0.05)].min() >= np.sort(e)[-k]


def test_an_empty_family_decides_nothing():
    for procedure in (e_bonferroni, e_holm, e_bh, closed_averaging, e_lond):
        assert procedure([]).size == 0
    for adjust in (bonferroni, sidak, holm, benjamini_hochberg, benjamini_yekutieli):
        assert adjust([]).size == 0


def test_e_values_beyond_the_floating_range():
    huge = [1e6, 5000.0, -1e6, 0.0]
    for procedure in (e_bonferroni, e_holm, e_bh, closed_averaging, e_lond):
        assert procedure(huge).tolist() == [True, True, False, False]


def test_spending_never_exceeds_alpha_and_is_nearly_spent():
    # Far out the remaining sum is the integral the proof bounds it by, and what the models to come have.
    models = 2_000
    j = np.arange(1, models * (models - 1) // 2 + 1)
    spent = spending_alpha(j, 0.05).sum()
    rest = 0.05 / 2 * (np.log(20.5) / np.log(j[-1] + 20.5) + 1 / models)
    assert spent + rest == pytest.approx(0.05, rel=1e-4)
    assert spent + rest <= 0.05
    assert (np.diff(spending_alpha(j, 0.05)) < 0).all()
    assert spent_before(j.size + 1) == pytest.approx(spent / 0.05)
    for m in (1, 2, 3, 4, 6, 7, 700, 1_500_000, 1_500_001):
        assert spent_before(m) == pytest.approx(spending_alpha(j[: m - 1], 0.05).sum() / 0.05, abs=1e-9)


def test_half_of_spending_goes_to_the_first_models():
    """Two models are judged at about alpha/4; the k-th model that joins brings 1/(k (k - 1)) for its k - 1 pairs."""
    slow = np.array([np.log(20.5) / ((j + 20) * np.log(j + 20) ** 2) for j in range(1, 46)])
    first = [1 / (k * (k - 1) ** 2) for k in range(2, 11) for _ in range(k - 1)]
    assert_allclose(spending_alpha(np.arange(1, 46), 0.05), 0.05 * (np.array(first) + slow) / 2, rtol=1e-13)
    assert 1 / 4 < spending_alpha(1, 0.05) / 0.05 < 0.26
    assert np.log(slow[44] / 2) < np.log(spending_alpha(45) / 0.05)  # the tail costs at most ln 2


def test_places_of_many_models_are_counted_exactly():
    for models in (2, 3, 46_341, 10**7):
        last = models * (models - 1) // 2  # the last place of this many models: the next one is of one more
        shares = spending_alpha([last, last + 1], 0.05) / 0.05
        slow = [np.log(20.5) / ((j + 20) * np.log(j + 20) ** 2) for j in (last, last + 1)]
        expected = [(1 / (k * (k - 1) ** 2) + x) / 2 for k, x in zip((models, models + 1), slow, strict=True)]
        assert_allclose(shares, expected, rtol=1e-12)


@pytest.mark.parametrize(("m", "difference"), [(1, 1.36), (3, 1.93), (45, 2.43), (435, 3.05), (4950, 3.76)])
def test_spending_cost_is_the_documented_one(m, difference):
    assert np.log(0.05 / m / spending_alpha(m)) == pytest.approx(difference, abs=0.006)


def test_capacity_gives_no_level_beyond_what_was_declared():
    assert capacity_alpha(np.arange(1, 12), 0.09, 9).tolist() == [0.01] * 9 + [0.0] * 2
    assert capacity_alpha(np.arange(1, 100), 0.05, 9).sum() == pytest.approx(0.05)


def test_rank_intervals_hold_every_order_the_decisions_allow():
    from itertools import permutations

    rng = np.random.default_rng(2)
    for _ in range(20):
        truth = rng.permutation(5)
        better = np.zeros((5, 5), dtype=bool)
        for i, j in combinations(range(5), 2):
            if rng.random() < 0.4:
                better[truth[i], truth[j]] = True
        low, high = rank_intervals(better)
        for order in permutations(range(5)):
            rank = np.argsort(order) + 1
            if all(rank[i] < rank[j] for i, j in zip(*np.nonzero(better), strict=True)):
                assert (low <= rank).all()
                assert (rank <= high).all()


def test_tie_groups_are_maximal_runs_without_a_decision():
    rng = np.random.default_rng(4)
    for _ in range(50):
        order = rng.permutation(6)
        better = np.zeros((6, 6), dtype=bool)
        for i, j in combinations(range(6), 2):
            better[order[i], order[j]] = rng.random() < 0.25
        groups = tie_groups(order, better)
        runs = groups[order]
        assert set(np.diff(runs).tolist()) <= {0, 1}
        assert runs[0] == 1
        for group in np.unique(runs):
            members = order[runs == group]
            assert not better[np.ix_(members, members)].any()
            following = order[runs == group + 1]
            if following.size:
                assert better[members, following[0]].any()


def test_one_model_has_rank_one():
    low, high = rank_intervals([[False]])
    assert (low.tolist(), high.tolist(), tie_groups([0], [[False]]).tolist()) == ([1], [1], [1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: holm([0.1, 1.2]), "p must lie in"),
        (lambda: holm([[0.1]]), "p must be one-dimensional"),
        (lambda: benjamini_hochberg([np.nan]), "p must be finite"),
        (lambda: bonferroni([0.1, 0.2, 0.3], m=2), "m declares 2 hypotheses but 3 are given"),
        (lambda: e_bonferroni([1.0, 2.0], m=1), "m declares 1 hypotheses"),
        (lambda: spending_alpha(0), "j must lie in"),
        (lambda: spending_alpha(1.5), "j must be whole"),
        (lambda: capacity_alpha(1, 0.05, 0), "m must be at least 1"),
        (lambda: e_bh([1.0], alpha=2), "alpha must lie strictly"),
        (lambda: rank_intervals([[0, 1]]), "square matrix"),
        (lambda: rank_intervals([[0, 1], [1, 0]]), "both directions"),
        (lambda: tie_groups([0, 0], [[0, 1], [0, 0]]), "order must be a permutation"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

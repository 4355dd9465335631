"""Every public function refuses what it cannot use, naming the argument, and warns of nothing at its limits."""

import numpy as np
import pytest

import stats

# Valid scalar arguments, by name: each is spoilt in turn.
CALLS = {
    "chi2_p": {"b": 5, "c": 3},
    "corrected_p": {"b": 5, "c": 3},
    "exact_p": {"b": 5, "c": 3},
    "mid_p": {"b": 5, "c": 3},
    "log_e_value": {"b": 5, "c": 3},
    "pair_evidence": {"b": 5, "c": 3},
    "log_e_halves": {"b": 5, "c": 3},
    "log_completion_bound": {"b": 5, "c": 3, "missing": 2},
    "curtailed_log_p": {"b": 5, "c": 3, "missing": 2},
    "curtailed_leader_log_p": {"b": 5, "c": 3, "missing": 2},
    "missing_tolerated": {"b": 50, "c": 3, "alpha": 0.05},
    "items_to_exact_decision": {"n": 100, "b": 30, "c": 10, "threshold_log": 3.0},
    "items_to_curtailed_decision": {"n": 100, "b": 30, "c": 10, "missing": 50, "threshold_log": 3.0},
    "log_leader_bound": {"b": 5, "c": 3, "missing": 2},
    "boundary_u": {"m": 50, "alpha": 0.05},
    "anytime_inflation": {"m": 50, "alpha": 0.05, "power": 0.8},
    "anytime_required_n": {"n": 100, "b": 5, "c": 3, "alpha": 0.05, "power": 0.8},
    "required_n": {"n": 100, "b": 5, "c": 3, "alpha": 0.05, "power": 0.8},
    "resolution_ratio": {"n": 100, "n_star": 50},
    "mde": {"n": 100, "sd": 0.5, "alpha": 0.05, "power": 0.8},
    "required_n_paired": {"gap": 0.1, "sd": 0.5, "alpha": 0.05, "power": 0.8},
    "inflation": {"m": 9, "alpha": 0.05, "power": 0.8},
    "rho_sensitivity": {"p_a": 0.6, "p_b": 0.5, "rho": 0.3, "alpha": 0.05, "power": 0.8},
    "shortcut_n": {"p_a": 0.6, "p_b": 0.5, "rho": 0.3, "alpha": 0.05, "power": 0.8},
    "shortcut_constant": {"p": 0.6, "rho": 0.3},
    "admissible_delta": {"p": 0.6, "rho": 0.3, "epsilon": 0.05},
    "unpaired_required_n": {"p_a": 0.6, "p_b": 0.5, "alpha": 0.05, "power": 0.8},
    "cohens_h": {"p1": 0.6, "p2": 0.5},
    "moments": {"n": 100, "b": 5, "c": 3},
    "moments_from_sums": {"n": 100, "s1": 5, "s2": 8},
    "difference_variance": {"p_a": 0.6, "p_b": 0.5, "rho": 0.3},
    "phi_correlation": {"n11": 10, "b": 5, "c": 3, "n00": 10},
    "correlation": {"n": 28, "b": 5, "c": 3, "right_a": 15, "right_b": 13},
    "hoeffding_bounds": {"p_a": 0.6, "p_b": 0.5},
    "paired_t": {"n": 100, "s1": 5, "s2": 8},
    "paired_t_from_moments": {"n": 100, "gap": 0.05, "sd": 0.3},
    "wald_power": {"n": 100, "gap": 0.1, "sd": 0.5, "alpha": 0.05},
    "items_to_decision": {"n": 100, "b": 20, "c": 10, "threshold_log": 3.0},
    "expected_items_to_decision": {"n": 100, "b": 20, "c": 10, "threshold_log": 3.0},
    "gap_interval": {"n": 100, "b": 20, "c": 10, "alpha": 0.05},
    "score_z": {"n": 100, "b": 20, "c": 10, "gap": 0.1},
    "score_interval": {"n": 100, "b": 20, "c": 10, "alpha": 0.05},
    "excess_log_e": {"n": 100, "b": 20, "c": 10, "bound": -0.02},
    "excess_p": {"n": 100, "b": 20, "c": 10, "bound": -0.02, "missing": 5},
    "excess_low": {"n": 100, "b": 20, "c": 10, "alpha": 0.05, "missing": 5},
    "excess_low_anytime": {"n": 100, "b": 20, "c": 10, "alpha": 0.05},
    "completion_interval": {"items": 100, "b": 20, "c": 10, "missing": 5, "alpha": 0.05},
    "clopper_pearson_gap": {"items": 100, "b": 20, "c": 10, "missing": 5, "alpha": 0.05},
    "mean_interval": {"total": 50, "scored": 100, "alpha": 0.05},
    "asymptotic_interval": {"n": 100, "gap": 0.1, "sd": 0.5, "alpha": 0.05, "t_star": 5000},
    "cluster_power": {"gap": 0.1, "sd": 0.5, "clusters": 8, "size": 50, "icc": 0.02, "alpha": 0.05},
    "spending_alpha": {"j": 3, "alpha": 0.05},
    "capacity_alpha": {"j": 3, "alpha": 0.05},
    "required_n_interval": {"n": 100, "b": 30, "c": 10},
    "succession_p": {"successions": 99, "same": 30, "like_pairs": 800},
    "rank_correlation_p": {"n": 50, "correlation": 0.4},
    "bernoulli_joint": {"p_a": 0.6, "p_b": 0.5, "rho": 0.3},
    "latent_joint": {"p_a": 0.6, "p_b": 0.5, "rho": 0.3},
}
VECTORS = [
    "bonferroni", "sidak", "holm", "benjamini_hochberg", "benjamini_yekutieli",
    "e_bonferroni", "e_holm", "e_bh", "closed_averaging", "e_lond",
]  # fmt: skip
ARGUMENTS = [(name, argument) for name, arguments in CALLS.items() for argument in arguments]


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS, ids=lambda part: part)
def test_what_is_not_a_number_is_named(name, argument):
    function = getattr(stats, name)
    assert np.isfinite(function(**CALLS[name])).all()
    for bad in (np.nan, "many"):
        with pytest.raises(ValueError, match=rf"\b{argument} must"):
            function(**{**CALLS[name], argument: bad})


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS, ids=lambda part: part)
def test_arrays_of_unequal_length_are_refused(name, argument):
    given = CALLS[name]
    for other in given.keys() - {argument}:
        with pytest.raises(ValueError, match=rf"unequal length: .*\b{argument} \(2,\)"):
            getattr(stats, name)(**{**given, argument: [given[argument]] * 2, other: [given[other]] * 3})


@pytest.mark.parametrize("name", VECTORS)
def test_families_of_what_is_not_a_number_are_refused(name):
    for bad in ([0.1, np.nan], [0.1, np.inf], ["many"], [[0.1]]):
        with pytest.raises(ValueError, match=r"\b(p|log_e) must be"):
            getattr(stats, name)(bad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: stats.hedged_betting([0.1, 0.2], alpha=2), "alpha must lie strictly"),
        (lambda: stats.empirical_bernstein([0.1], alpha=0), "alpha must lie strictly"),
        (lambda: stats.update_capital(stats.initial_capital((3,)), np.zeros((3, 5)), [0.1]), "capital of shape"),
        (lambda: stats.update_capital(stats.initial_capital((3,)), np.zeros((2, 5))), "capital of shape"),
        (lambda: stats.rank_intervals([[0, np.nan], [0, 0]]), "decided must hold booleans"),
        (lambda: stats.design_effect(0.1, np.nan), "mean_size must be finite"),
        (lambda: stats.order_diagnostic([0], [0], [np.nan]), "positions must be finite"),
        (lambda: stats.sidak([0.1, 0.2], m=1), "m declares 1 hypotheses but 2 are given"),
        (lambda: stats.max_t_intervals([[1, 0, 1]]), "at least 2 models"),
        (lambda: stats.max_t_intervals([[1, 0, np.nan], [1, 1, 0]]), "scores must be finite"),
        (lambda: stats.exact_power(10, np.nan, 0.1), "rate_b must be finite"),
        (lambda: stats.AnytimeLaw(0.1, 0.1, 0.0), "threshold_log must be above 0"),
        (lambda: stats.AnytimeLaw(0.7, 0.7, 3.0), "must not exceed 1"),
        (lambda: stats.CompletionLaw(100, 0.2, 0.1, alpha=2), "alpha must lie strictly"),
        (lambda: stats.cluster_power(0.1, 0.5, 1, 50, 0.02), "clusters must be at least 2"),
        (lambda: stats.PilotEffect(0, 0, 0), "n must be at least 1"),
    ],
)
def test_other_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_limits_have_documented_values():
    assert stats.chi2_p(0, 0) == stats.corrected_p(0, 0) == stats.exact_p(0, 0) == stats.mid_p(0, 0) == 1
    assert stats.required_n(100, 5, 5) == np.inf
    assert stats.resolution_ratio(100, np.inf) == stats.resolution_ratio(0, np.inf) == 0
    assert stats.anytime_required_n(0, 0, 0) == np.inf
    assert stats.mde(0, 0.5) == np.inf
    assert stats.log_e_value(0, 0) == pytest.approx(0, abs=1e-15)
    assert stats.log_e_halves(0, 0) == (pytest.approx(0, abs=1e-15), pytest.approx(0, abs=1e-15))
    assert stats.log_completion_bound(0, 0, 0) == (pytest.approx(-np.log(2)), pytest.approx(-np.log(2)))
    assert stats.gap_interval(0, 0, 0) == (-1, 1)
    assert stats.mean_interval(0, 0) == (0, 1)
    assert stats.items_to_decision(0, 0, 0, 3.0) == (np.inf, np.inf, np.inf)
    assert stats.shortcut_n(0.5, 0.5) == stats.unpaired_required_n(0.5, 0.5) == np.inf
    assert stats.items_for_power(0.1, 0.1) == stats.AnytimeLaw(0.1, 0.1, 3.0).quantile(0.8) == np.inf
    assert stats.cluster_size_for_power(0.0, 0.5, 8, 0.02) == stats.clusters_for_power(0.0, 0.5, 50, 0.02) == np.inf
    assert stats.moments(0, 0, 0) == (0, 0)
    assert stats.paired_t(0, 0, 0) == (0, 1)

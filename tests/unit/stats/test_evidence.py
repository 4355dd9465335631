"""Evidence that shares one integral, against the functions that compute each by itself."""

import numpy as np
import pytest

import stats
from stats.numerics.checks import by_distinct


@pytest.mark.parametrize("mixture", ["beta(1,1)", "beta(2,2)", "grid98"])
@pytest.mark.parametrize("most", [3, 60, 3_000, 1_000_000])
def test_together_is_as_one_by_one(mixture, most):
    rng = np.random.default_rng(most)
    m = rng.integers(0, most, 300)
    b = rng.binomial(m, rng.choice([0.5, 0.45, 0.7, 1], m.size))
    c = m - b
    evidence = stats.pair_evidence(b, c, mixture)
    np.testing.assert_allclose(evidence.p_exact, stats.exact_p(b, c), rtol=1e-11)
    np.testing.assert_allclose(evidence.p_mid, stats.mid_p(b, c), rtol=1e-11)
    # Decisions compare these with thresholds: not one bit may depend on who asks.
    assert evidence.log_e.tolist() == stats.log_e_value(b, c, mixture).tolist()
    for half, alone in zip(evidence[3:], stats.log_e_halves(b, c, mixture), strict=True):
        np.testing.assert_allclose(half, alone, rtol=1e-14, atol=1e-14)


def test_long_vectors_are_cut_into_slabs_without_a_trace():
    rng = np.random.default_rng(1)
    n = rng.integers(50, 190, 30_000)
    b, c = (n[:, None] * rng.random((n.size, 2)) / 2).astype(int).T
    calls = {
        "moments": (n, b, c),
        "required_n": (n, b, c),
        "mde": (n, rng.random(n.size)),
        "chi2_p": (b, c),
        "resolution_ratio": (n, n / 2),
        "anytime_required_n": (n, b, c),
        "pair_evidence": (b, c),
        "exact_p": (b, c),
        "mid_p": (b, c),
        "log_e_value": (b, c),
        "log_e_halves": (b, c),
        "log_completion_bound": (b, c, n - b - c + 9),
        "log_leader_bound": (b, c, n - b - c + 9),
        "expected_items_to_decision": (n, b, c, 3.0),
        "spending_alpha": (np.arange(1, n.size + 1),),
    }
    for name, arguments in calls.items():
        function = getattr(stats, name)
        whole = np.atleast_2d(function(*arguments))
        part = [
            np.atleast_2d(function(*(x[k : k + 5_000] if np.ndim(x) else x for x in arguments)))
            for k in range(0, n.size, 5_000)
        ]
        assert whole.tolist() == np.concatenate(part, axis=1).tolist(), name
        table = np.atleast_2d(function(*(x.reshape(2, -1) if np.ndim(x) else x for x in arguments)))
        assert whole.ravel().tolist() == table.ravel().tolist(), name
    spoilt = b.copy()
    spoilt[20_000] = -1
    with pytest.raises(ValueError, match="b must be non-negative"):
        stats.chi2_p(spoilt, c)
    with pytest.raises(ValueError, match="unequal length"):
        stats.chi2_p(b, c[:-1])


@pytest.mark.parametrize("values", [[], [0.0], [3.0, 1.0, 3.0, 7.0], [0.5, 2.0, 0.5], [1e15, 2.0], [1e300, 1.0]])
def test_what_is_computed_once_for_equal_counts_is_found_again(values):
    values = np.array(values, float)
    asked = []

    def square(x):
        asked.append(x.tolist())
        return x**2 + 1

    with np.errstate(over="ignore"):
        squares = by_distinct(square, values)
        assert squares.tolist() == (values**2 + 1).tolist()
    assert asked == [sorted(set(values.tolist()))]
    table = by_distinct(square, np.array([[3.0, 1.0], [1.0, 1.0]]))
    assert table.tolist() == [[10.0, 2.0], [2.0, 2.0]]

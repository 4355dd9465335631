import numpy as np
import pytest

from stats import items_to_decision, log_e_value
from stats.numerics.rootfind import bracketed_root


@pytest.mark.parametrize(("mixture", "tolerance"), [("beta(1,1)", 0.01), ("grid98", 0.04), ("two_point(.4,.6)", 1e-5)])
def test_mid_is_the_crossing_of_the_expected_path(mixture, tolerance):
    rng = np.random.default_rng(0)
    n = rng.integers(20, 12000, 500)
    b = (n * rng.random(500) * 0.5).astype(int)
    c = np.clip((b * (1 + 0.3 * rng.standard_normal(500))).astype(int), 0, n - b)
    _, mid, _ = items_to_decision(n, b, c, 5.0, mixture)
    at = np.isfinite(mid) & (mid > 0)
    n, b, c, mid = n[at], b[at], c[at], mid[at]

    def excess(k):
        return log_e_value(b * (1 + k / n), c * (1 + k / n), mixture) - 5.0

    root = bracketed_root(excess, np.zeros(mid.size), 4 * mid)
    assert at.sum() > 50
    np.testing.assert_allclose(mid, root, rtol=tolerance)


def test_range_brackets_mid_and_widens_to_never():
    low, mid, high = items_to_decision(1000, [60, 52, 50], [40, 48, 50], np.log(20))
    assert (low < mid).all()
    assert (mid <= high).all()
    assert np.isfinite(high).tolist() == [True, False, False]
    assert np.isfinite(mid).tolist() == [True, True, False]
    assert np.isfinite(low).all()


def test_decided_pairs_need_nothing_and_stricter_thresholds_more():
    assert items_to_decision(12032, 1680, 1454, np.log(20)) == (0, 0, 0)
    mids = [float(items_to_decision(12032, 1680, 1454, t)[1]) for t in (5, 6, 7)]
    assert 0 < mids[0] < mids[1] < mids[2]


def test_nothing_seen_says_never():
    assert items_to_decision(0, 0, 0, 3.0) == (np.inf, np.inf, np.inf)
    assert items_to_decision(10, 0, 0, 3.0) == (np.inf, np.inf, np.inf)


def test_direction_does_not_matter():
    assert items_to_decision(1000, 60, 40, 5.0) == items_to_decision(1000, 40, 60, 5.0)


def test_roots_of_functions_with_known_roots():
    target = np.array([1e-6, 0.3, 2.0, 50.0, 1e4])
    root = bracketed_root(lambda x: x**3 - target, np.zeros(5), np.full(5, 100.0))
    np.testing.assert_allclose(root, np.cbrt(target), rtol=1e-9)


def test_no_pairs_have_no_forecast():
    none = np.zeros(0)
    assert [x.size for x in items_to_decision(none, none, none, none)] == [0, 0, 0]

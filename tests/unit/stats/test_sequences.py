import numpy as np
import pytest

from stats import EmpiricalBernstein, asymptotic_interval, empirical_bernstein, hedged_betting, moments

I = np.arange(1, 201)  # noqa: E741
X = 0.6 * ((7919 * I) % 1009) / 1008 + 0.3 * (I % 3 == 0)


def test_empirical_bernstein_reference():
    low, high = empirical_bernstein(X)
    assert (low[49], high[49]) == pytest.approx((0.235028, 0.573396), abs=5e-7)
    assert (low[199], high[199]) == pytest.approx((0.343506, 0.461917), abs=5e-7)


def test_hedged_reference():
    assert hedged_betting(X[:50]) == pytest.approx((0.315, 0.505))
    assert hedged_betting(X) == pytest.approx((0.354, 0.452))


def test_asymptotic_reference():
    gap, sd = moments(12032, 1680, 1454)
    unbiased = sd * np.sqrt(12032 / 12031)
    assert asymptotic_interval(12032, gap, unbiased) == pytest.approx((0.004480, 0.033087), abs=5e-7)


def test_streaming_equals_batch_whatever_the_chunks():
    low, high = empirical_bernstein(np.stack([X, X[::-1]]), 0.1)
    state = EmpiricalBernstein.start(0.1, (2,))
    lows, highs = [], []
    for chunk in np.split(np.stack([X, X[::-1]]), [1, 2, 50, 50, 133], axis=1):
        state, chunk_low, chunk_high = state.update(chunk)
        lows.append(chunk_low)
        highs.append(chunk_high)
    np.testing.assert_array_equal(np.concatenate(lows, axis=1), low)
    np.testing.assert_array_equal(np.concatenate(highs, axis=1), high)
    assert state.items == 200


def test_mirrored_scores_mirror_the_bounds():
    low, high = empirical_bernstein(X)
    mirrored_low, mirrored_high = empirical_bernstein(1 - X)
    np.testing.assert_allclose(mirrored_low, 1 - high, atol=1e-12)
    np.testing.assert_allclose(mirrored_high, 1 - low, atol=1e-12)
    assert hedged_betting(1 - X) == pytest.approx((1 - 0.452, 1 - 0.354))


def test_a_coarse_grid_is_rounded_outward():
    x = np.tile(X, 50)
    fine, coarse = hedged_betting(x), hedged_betting(x, breaks=8)
    assert fine[1] - fine[0] < 0.03
    assert coarse == (0.25, 0.5)
    assert hedged_betting([0.5]) == (0, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: empirical_bernstein([]), "at least one item"),
        (lambda: empirical_bernstein([1.2]), "x must lie in"),
        (lambda: hedged_betting([[0.5]]), "x must be one-dimensional"),
        (lambda: hedged_betting([0.5], breaks=1), "breaks must be at least 2"),
        (lambda: asymptotic_interval(0, 0.0, 0.5), "must be at least 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

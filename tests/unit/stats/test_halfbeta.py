"""Beta integrals against exact integer arithmetic and scipy."""

from fractions import Fraction
from math import comb, log

import numpy as np
import pytest
from scipy.special import betainc

from stats.numerics.mixtures import half_beta_tail, log_beta, log_half_and_whole, log_upper_beta


def fair_tails(m):
    """P(X <= k) for X ~ Binomial(m, 1/2) and k = 0, ..., m, exactly."""
    total, tails = 0, []
    for k in range(m + 1):
        total += comb(m, k)
        tails.append(Fraction(total, 2**m))
    return tails


def log_of(fraction):
    return log(fraction.numerator) - log(fraction.denominator)


@pytest.mark.parametrize("m", [1, 7, 60, 98, 99, 100, 101, 150, 1001, 3000])
def test_tails_of_a_fair_binomial_are_exact(m):
    k = np.arange((m - 1) // 2 + 1)
    k = k[:: max(1, k.size // 60)]
    tails = fair_tails(m)
    p, q = (m - k).astype(float), k + 1.0
    p = np.maximum(p, q)
    expected = np.array([log_of(tails[int(i)]) for i in k])
    np.testing.assert_allclose(np.subtract(*log_half_and_whole(p, q)), expected, atol=2e-12)
    seen = expected > -600
    np.testing.assert_allclose(half_beta_tail(p, q)[seen], np.exp(expected)[seen], rtol=1e-11)


def test_both_sides_of_the_switch_agree_with_scipy():
    rng = np.random.default_rng(0)
    p, q = rng.uniform(0.3, 90, (2, 2000))
    p, q = np.maximum(p, q), np.minimum(p, q)
    np.testing.assert_allclose(half_beta_tail(p, q), betainc(p, q, 0.5), rtol=1e-12)
    p, q = rng.uniform(50, 5000, (2, 2000))
    p, q = np.maximum(p, q), np.minimum(p, q)
    at = betainc(p, q, 0.5) > 1e-280
    np.testing.assert_allclose(half_beta_tail(p, q)[at], betainc(p, q, 0.5)[at], rtol=1e-11)


def test_ten_million_items():
    for d in (0.0, 3.0, 3000.0, 3e4):
        p, q = np.array(5e6 + d), np.array(5e6 - d)
        assert half_beta_tail(p, q) == pytest.approx(betainc(p, q, 0.5), rel=1e-9)


def test_one_sided_wins_are_elementary():
    # q = 1: the integral of (1-s)^(p-1) is 1/p, at any size.
    p = np.array([1.0, 2.0, 50.0, 99.0, 1e3, 1e5, 1e7])
    np.testing.assert_allclose(log_half_and_whole(p, np.ones(7))[0], np.log(2 / p), atol=1e-12)


def test_the_two_halves_make_the_whole():
    rng = np.random.default_rng(1)
    p, q = rng.uniform(0.4, [[60], [4000]], (2, 2, 500))
    upper, lower = log_upper_beta(p, q), log_upper_beta(q, p)
    np.testing.assert_allclose(np.logaddexp(upper, lower), log_beta(p, q), atol=1e-11)


def test_numbers_and_empty_arrays():
    assert half_beta_tail(np.array(3.0), np.array(3.0)).shape == ()
    assert log_upper_beta(np.array(3.0), np.array(9.0)).shape == ()
    assert log_upper_beta(np.zeros((0, 2)), np.zeros((0, 2))).shape == (0, 2)

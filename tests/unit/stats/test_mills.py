"""The looked-up integral against exact binomial tails, closed forms and another quadrature."""

from fractions import Fraction
from itertools import accumulate
from math import comb, lgamma, pi

import numpy as np
import pytest

from stats.numerics.mixtures import LEAST, half_sech


@pytest.mark.parametrize("m", [100, 101, 117, 160, 250, 401, 1000, 2400])
def test_every_count_of_a_fair_coin_is_exact_to_thirteen_digits(m):
    # Twice the integral is 2^m B(p, q) I_1/2(p, q): for whole p + q = m, I is a binomial tail and B a ratio of factorials, both exact.
    tails = list(accumulate(comb(m - 1, k) for k in range(m // 2)))
    q = np.arange(1, len(tails) + 1)
    expected = [float(Fraction(tail, (m - 1) * comb(m - 2, k))) for k, tail in enumerate(tails)]
    np.testing.assert_allclose(half_sech(m - 2.0 * q, np.full(q.shape, float(m))), expected, rtol=1.1e-13)


def test_one_sided_and_even_counts_are_elementary_at_any_size():
    p = np.concatenate([np.arange(99.0, 3000), 10.0 ** np.arange(4, 10)])
    np.testing.assert_allclose(half_sech(p - 1, p + 1), 1 / p, rtol=1e-13)
    m = np.array([100.0, 150.5, 1e3, 2.5e3])
    even = [np.sqrt(pi) / 2 * np.exp(lgamma(x / 2) - lgamma((x + 1) / 2)) for x in m]
    np.testing.assert_allclose(half_sech(np.zeros(4), m), even, rtol=1e-12)


def test_between_whole_numbers_it_is_the_integral():
    rng = np.random.default_rng(0)
    m = np.concatenate([rng.uniform(LEAST, 130, 400), 10 ** rng.uniform(2, 7, 400)])
    a = np.where(
        rng.random(m.size) < 0.5, np.minimum(rng.uniform(0, 12, m.size) * np.sqrt(m), m), rng.random(m.size) * m
    )
    nodes, weights = np.polynomial.legendre.leggauss(40)
    reach = 80 / (a + np.sqrt(a**2 + 80 * m))
    t = reach[:, None] * (nodes + 1) / 2
    log_cosh = np.log1p(2 * np.sinh(t / 2) ** 2)
    expected = np.exp(-a[:, None] * t - m[:, None] * log_cosh) @ weights * reach / 2
    np.testing.assert_allclose(half_sech(a, m), expected, rtol=2e-13)


def test_neighbouring_intervals_of_the_table_meet():
    # Across a border of two intervals the value moves as the integral does, by its derivative, and not by a step of its own.
    x = 2 / (np.arange(1, 1024) / 1024) - 2
    for m in (100.0, 1e4):
        inside = x[x < np.sqrt(m) - 1] * np.sqrt(m)
        width = np.full(inside.shape, m)
        left, right = half_sech(inside * (1 - 1e-13), width), half_sech(inside * (1 + 1e-13), width)
        np.testing.assert_allclose(left, right, rtol=4e-13)

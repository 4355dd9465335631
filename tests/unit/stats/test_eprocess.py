from fractions import Fraction
from math import comb, log, prod

import numpy as np
import pytest

from stats import (
    anytime_inflation,
    anytime_required_n,
    boundary_u,
    gap_interval,
    log_completion_bound,
    log_e_halves,
    log_e_value,
    log_leader_bound,
    parse_mixture,
    required_n,
    resolution_ratio,
)

SYMMETRIC = (
    "beta(.01,.01)",
    "beta(.5,.5)",
    "beta(1,1)",
    "beta(2,2)",
    "beta(10,10)",
    "beta(100,100)",
    "beta(5000,5000)",
)
MIXTURES = (*SYMMETRIC, "beta(3,1)", "grid98", "two_point(.4,.6)", "two_point(.3,.6)")


@pytest.mark.parametrize(
    ("counts", "beta", "grid"),
    [
        ((0, 5), 1.6739764336, 1.6620432657),
        ((10, 2), 1.5631620672, 1.5812671349),
        ((1680, 1454), 4.3536820118, 4.3737559114),
    ],
)
def test_reference_values(counts, beta, grid):
    assert log_e_value(*counts) == pytest.approx(beta, abs=1e-10)
    assert log_e_value(*counts, "grid98") == pytest.approx(grid, abs=1e-10)


@pytest.mark.parametrize(
    ("mixture", "five", "seven"), [("beta(10,10)", 5.5638, 8.1989), ("beta(100,100)", 6.2601, 6.9636)]
)
def test_reference_values_of_narrower_mixtures(mixture, five, seven):
    assert log_e_value(1680, 1454, mixture) == pytest.approx(five, abs=5e-5)
    assert log_e_value(352, 242, mixture) == pytest.approx(seven, abs=5e-5)


@pytest.mark.parametrize("a", [1, 2, 3, 10, 100, 999, 1000, 10**5, 10**6])
def test_symmetric_mixtures_of_whole_parameters_are_exact(a):
    # B(b + a, c + a) / B(a, a) is a ratio of products of whole numbers.
    for b, c in ((0, 0), (1, 0), (0, 5), (10, 2), (168, 145), (3, 600)):
        exact = Fraction(
            prod(range(a, a + b)) * prod(range(a, a + c)) * 2 ** (b + c), prod(range(2 * a, 2 * a + b + c))
        )
        assert log_e_value(b, c, f"beta({a},{a})") == pytest.approx(
            log(exact.numerator) - log(exact.denominator), abs=2e-12
        )


@pytest.mark.parametrize("mixture", SYMMETRIC)
def test_the_interval_and_the_boundary_of_a_symmetric_mixture_are_those_of_its_evidence(mixture):
    m = np.array([40, 400, 3134, 100_000])
    u = boundary_u(m, 0.05, mixture)
    assert (log_e_value(m, 0, mixture) < np.log(20))[np.isinf(u)].all()
    m, d = m[np.isfinite(u)], (u * np.sqrt(m))[np.isfinite(u)]
    np.testing.assert_allclose(log_e_value((m + d) / 2, (m - d) / 2, mixture), np.log(20), atol=1e-8)
    short = np.ceil(d / 2) * 2 - 2  # of two whole neighbours the boundary lies between
    for d, decided in ((short, False), (short + 2, True)):
        low, high = gap_interval(4 * m, (m + d) / 2, (m - d) / 2, 0.05, mixture)
        assert ((low > 0) == decided).all()
        assert (high > 0).all()


def test_narrower_mixtures_reach_close_pairs_sooner():
    u = [float(boundary_u(3134, 0.05, f"beta({a},{a})")) for a in (1, 2, 10, 100)]
    assert u == pytest.approx([3.6858, 3.5754, 3.3373, 3.0598], abs=5e-5)


def test_two_point_reference():
    assert log_e_value(1680, 1454, "two_point(.4,.6)") == pytest.approx(-18.8, abs=0.05)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_expectation_is_one_under_the_null(mixture):
    for m in (0, 1, 2, 7, 16):
        b = np.arange(m + 1)
        weight = np.array([comb(m, k) for k in b]) / 2.0**m
        plus, minus = log_e_halves(b, m - b, mixture)
        for log_e in (log_e_value(b, m - b, mixture), plus, minus):
            assert weight @ np.exp(log_e) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mixture", MIXTURES)
def test_halves_weigh_up_to_the_whole(mixture):
    rng = np.random.default_rng(0)
    b, c = rng.integers(0, [[20], [5000]], (2, 2, 200))
    plus, minus = log_e_halves(b, c, mixture)
    weight = parse_mixture(mixture).weight_a
    whole = np.logaddexp(plus + np.log(weight), minus + np.log1p(-weight))
    np.testing.assert_allclose(whole, log_e_value(b, c, mixture), atol=1e-10)


@pytest.mark.parametrize("mixture", ["beta(1,1)", "beta(.5,.5)", "beta(3,1)"])
def test_halves_by_quadrature(mixture):
    from scipy.integrate import quad

    a, b = parse_mixture(mixture).beta
    for wins, losses in ((0, 5), (10, 2), (40, 43)):

        def density(t, wins=wins, losses=losses):
            return (2 * t) ** wins * (2 * (1 - t)) ** losses * t ** (a - 1) * (1 - t) ** (b - 1)

        def prior(t):
            return t ** (a - 1) * (1 - t) ** (b - 1)

        plus, minus = log_e_halves(wins, losses, mixture)
        for log_e, ends in ((plus, (0.5, 1)), (minus, (0, 0.5))):
            expected = quad(density, *ends, epsabs=0, epsrel=1e-10)[0] / quad(prior, *ends, epsabs=0, epsrel=1e-10)[0]
            assert log_e == pytest.approx(np.log(expected), abs=1e-7)


def test_losing_half_far_beyond_underflow():
    # beta(1,1) with c = 0: the halves of the integral of (2t)^b are elementary.
    for wins in (10, 1_000, 100_000, 10_000_000):
        plus, minus = log_e_halves(wins, 0)
        assert minus == pytest.approx(-np.log1p(wins), abs=1e-9)
        both = (wins + 1) * np.log(2) - np.log1p(wins)
        assert plus == pytest.approx(both + np.log1p(-(0.5 ** (wins + 1))), rel=1e-12)


def test_the_continued_fraction_meets_the_beta_function():
    # Either side of the switch at 1e-290 the losing half must be one smooth function of the counts.
    wins = np.arange(900, 1300)
    _, minus = log_e_halves(wins, 10)
    assert np.abs(np.diff(minus, 2)).max() < 1e-4
    _, deep = log_e_halves(2_000_000, 1_000_000)
    assert np.isfinite(deep)


def test_ten_million_items_keep_their_digits():
    from decimal import Decimal, getcontext

    getcontext().prec = 60

    def log_gamma(x):  # Stirling to twelve terms, in 60 digits: an oracle for arguments above 1e6
        z = Decimal(x)
        series = 1 / (12 * z) - 1 / (360 * z**3) + 1 / (1260 * z**5)
        log_2pi = Decimal("1.837877066409345483560659472811235279722794947275566825634303")
        return (z - Decimal("0.5")) * z.ln() - z + log_2pi / 2 + series

    b, c = 10_000_000, 9_990_000
    exact = log_gamma(b + 1) + log_gamma(c + 1) - log_gamma(b + c + 2) + (b + c) * Decimal(2).ln()
    assert log_e_value(b, c) == pytest.approx(float(exact), abs=1e-8)


@pytest.mark.parametrize(("m", "threshold", "difference"), [
    (8, 20, 8), (10, 20, 10), (100, 20, 32), (364, 20, 66), (3134, 20, 208), (100, 180, 38), (364, 180, 76), (3134, 180, 238),
])  # fmt: skip
def test_integer_thresholds(m, threshold, difference):
    d = np.arange(m % 2, m + 1, 2)
    reached = log_e_value((m + d) // 2, (m - d) // 2, "grid98") >= np.log(threshold)
    assert d[reached][0] == difference
    if m == 8:
        assert np.exp(log_e_value(8, 0, "grid98")) == pytest.approx(27.726, abs=5e-4)


def test_anytime_resolution_of_5v6():
    u = boundary_u(3134, 0.05, "grid98")
    assert u == pytest.approx(3.680, abs=5e-4)
    assert anytime_inflation(3134, mixture="grid98") == pytest.approx(2.605, abs=5e-4)
    assert anytime_inflation(52, mixture="grid98") == pytest.approx(1.94, abs=5e-3)
    for mixture, q in (("grid98", 0.798), ("beta(1,1)", 0.796)):
        needed = anytime_required_n(12032, 1680, 1454, mixture=mixture)
        assert resolution_ratio(12032, needed) == pytest.approx(q, abs=5e-4)
    assert resolution_ratio(12032, required_n(12032, 1680, 1454)) == pytest.approx(2.079, abs=5e-4)


@pytest.mark.parametrize("mixture", ["beta(1,1)", "grid98"])
def test_the_boundary_is_where_e_reaches_the_threshold(mixture):
    m, alpha = np.array([20, 100, 3134, 20, 100]), np.array([0.05, 0.05, 0.05, 0.01, 0.001])
    d = boundary_u(m, alpha, mixture) * np.sqrt(m)
    np.testing.assert_allclose(log_e_value((m + d) / 2, (m - d) / 2, mixture), -np.log(alpha), atol=1e-9)


def test_boundary_is_infinite_where_it_cannot_be_reached():
    assert np.isinf(boundary_u([0, 1, 7])).tolist() == [True, True, True]
    assert log_e_value(7, 0) < np.log(20) < log_e_value(8, 0)
    assert np.isfinite(boundary_u(8))
    assert anytime_required_n(7, 7, 0) == np.inf
    assert anytime_required_n(100, 10, 10) == np.inf


@pytest.mark.parametrize(
    ("counts", "missing"),
    [((1871, 1076), 575), ((284, 76), 132), ((253, 111), 70), ((352, 242), 24), ((1680, 1454), 18)],
)
def test_missing_items_that_a_verdict_tolerates(counts, missing):
    tolerated = np.arange(1000)
    for_a, for_b = log_completion_bound(*counts, tolerated)
    assert np.flatnonzero(for_a >= np.log(20))[-1] == missing
    assert (for_b < np.log(20)).all()


def test_completion_bound_holds_for_every_completion():
    for mixture in MIXTURES:
        for_a, for_b = log_completion_bound(12, 5, 6, mixture)
        for wins in range(7):
            for losses in range(7 - wins):
                final = log_e_value(12 + wins, 5 + losses, mixture)
                assert final >= max(for_a, for_b) - 1e-12


@pytest.mark.parametrize("mixture", [*MIXTURES, "beta(1,40)", "beta(40,1)"])
def test_only_the_bound_of_the_leader_can_be_positive(mixture):
    b, c, missing = (x.ravel() for x in np.meshgrid([*range(25), 300, 4000], [*range(25), 290, 3800], range(0, 60, 7)))
    both = np.stack(log_completion_bound(b, c, missing, mixture))
    leader = log_leader_bound(b, c, missing, mixture)
    assert leader.tolist() == np.where(b >= c, *both).tolist()
    assert np.where(b >= c, both[1], both[0]).max() < 1e-12
    assert leader[np.maximum(b, c) <= np.minimum(b, c) + missing].max() < 1e-12
    assert (leader > 3).any()


def test_a_value_does_not_depend_on_its_batch():
    rng = np.random.default_rng(3)
    b, c = rng.integers(0, 4000, (2, 20_001))
    for mixture in ("beta(1,1)", "grid98"):
        batch = log_e_value(b, c, mixture)
        alone = [float(log_e_value(int(x), int(y), mixture)) for x, y in zip(b[::500], c[::500], strict=True)]
        assert batch[::500].tolist() == alone
        for function, arguments in ((log_e_halves, (b, c)), (log_completion_bound, (b, c, b // 7))):
            for side, values in enumerate(function(*arguments, mixture)):
                alone = [float(function(*(int(x[i]) for x in arguments), mixture)[side]) for i in range(0, b.size, 500)]
                assert values[::500].tolist() == alone


@pytest.mark.parametrize(
    "name", ["beta", "beta(0,1)", "beta(1)", "beta(a,b)", "grid", "two_point(.6,.4)", "beta(inf,1)"]
)
def test_unknown_mixtures_are_named(name):
    with pytest.raises(ValueError, match=r"is unknown; use 'beta\(a,b\)'"):
        log_e_value(1, 1, name)


def test_mixture_names_are_canonical():
    assert parse_mixture("Beta(1.0, 1)").name == "beta(1,1)"
    assert parse_mixture(parse_mixture("grid98").name) is parse_mixture("grid98")
    assert parse_mixture("two_point(.4,.6)") == parse_mixture("two_point(0.4,0.6)")

"""The curtailed exact test against reference values, whole-number arithmetic and enumeration of every outcome."""

from fractions import Fraction
from itertools import accumulate
from math import comb, log

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats as scipy_stats

from stats import (
    curtailed_leader_log_p,
    curtailed_log_p,
    curtailed_may_decide,
    curtailed_side,
    exact_p,
    items_to_curtailed_decision,
    items_to_exact_decision,
    missing_tolerated,
)

# MMLU-Pro, ranks 1 v 2, 2 v 3, 4 v 5, 5 v 6, 7 v 8, 8 v 9.
B = np.array([253, 284, 1871, 1680, 352, 787])
C = np.array([111, 76, 1076, 1454, 242, 684])
LEVELS = (0.5, 0.05, 0.0625, 0.05 / 9, 2.0**-10, 1e-4, 1e-9)


def tail(m, k):
    """Return P(X >= k) of a fair binomial, exactly."""
    return Fraction(sum(comb(m, j) for j in range(k, m + 1)), 2**m)


def every_table(largest):
    return np.array(
        [(b, m - b - rest, rest) for m in range(largest + 1) for b in range(m + 1) for rest in range(m - b + 1)]
    )


def test_reference_values():
    p = np.exp(curtailed_log_p(1680, 1454, [0, 50, 100, 113, 114])[0])
    assert_allclose(p, [5.80103e-5, 0.00192182, 0.0279292, 0.0493377, 0.051438], rtol=3e-6)
    assert missing_tolerated(B, C).tolist() == [98, 162, 676, 113, 58, 26]
    assert missing_tolerated(B, C, 0.05 / 9).tolist() == [82, 144, 628, 68, 39, -1]


def test_both_directions_are_the_binomial_tails_exactly():
    b, c, rest = every_table(24).T
    for_a, for_b = curtailed_log_p(b, c, rest)
    for got, lead in ((for_a, b), (for_b, c)):
        exact = [min(1, 2 * tail(m, k)) for m, k in zip((b + c + rest).tolist(), lead.tolist(), strict=True)]
        assert_allclose(got, [log(p) for p in exact], atol=1e-13)
    assert ((for_a == 0) | (for_b == 0)).all()
    assert_array_equal(curtailed_leader_log_p(b, c, rest), np.minimum(for_a, for_b))


@pytest.mark.parametrize("m", [99, 100, 1031, 3134])
def test_it_is_exact_far_in_the_tails(m):
    leads = np.arange(m, m // 2, -1)
    ways = accumulate(range(m, m // 2 + 1, -1), lambda number, k: number * k // (m - k + 1), initial=1)
    tails = accumulate(ways)

    def logarithm(x):
        spare = max(x.bit_length() - 900, 0)
        return log(x >> spare) - (m - 1 - spare) * log(2)

    expected = np.minimum([logarithm(x) for x in tails], 0)
    got = curtailed_leader_log_p(leads, 0, m - leads)
    assert_allclose(got, expected, rtol=2e-12, atol=1e-13)
    assert got[0] == pytest.approx(-(m - 1) * log(2), rel=1e-13)


def test_with_nothing_missing_it_is_the_exact_mcnemar_test():
    b, c = np.random.default_rng(0).integers(0, 3000, (2, 500))
    assert_allclose(np.exp(curtailed_leader_log_p(b, c, 0)), exact_p(b, c), rtol=1e-11, atol=1e-300)
    expected = [scipy_stats.binomtest(int(x), int(x + y), 0.5).pvalue for x, y in zip(b[:50], c[:50], strict=True)]
    assert_allclose(np.exp(curtailed_leader_log_p(b[:50], c[:50], 0)), expected, rtol=1e-9)


def test_p_never_rises_whatever_an_item_brings():
    b, c, rest = every_table(24).T
    some = rest > 0
    b, c, rest = b[some], c[some], rest[some]
    now = curtailed_log_p(b, c, rest)
    for win, loss in ((1, 0), (0, 1), (0, 0)):
        after = curtailed_log_p(b + win, c + loss, rest - 1)
        assert (np.stack(after) <= np.stack(now) + 1e-14).all()


@pytest.mark.parametrize("alpha", LEVELS)
def test_the_verdict_is_that_of_whole_numbers(alpha):
    b, c, rest = every_table(40).T
    limit = Fraction(alpha)
    least = {m: next((k for k in range(m // 2, m + 1) if 2 * tail(m, k) <= limit), m + 1) for m in range(41)}
    least = np.array([least[m] for m in (b + c + rest).tolist()])
    expected = np.where(b >= least, 1, np.where(c >= least, -1, 0))
    assert_array_equal(curtailed_side(b, c, rest, -log(alpha)), expected)
    # Integer and float counts, scalar and array thresholds are alike.
    assert_array_equal(
        curtailed_side(*(x.astype(np.int32) for x in (b, c, rest)), np.full(b.shape, -log(alpha))), expected
    )
    assert_array_equal(curtailed_side(*(x.astype(float) for x in (b, c, rest)), -log(alpha)), expected)


def test_a_p_value_equal_to_its_level_decides():
    assert [int(curtailed_side(k, 0, 0, (k - 1) * log(2))) for k in (3, 5, 11, 40)] == [1, 1, 1, 1]
    assert curtailed_side(5, 0, 0, 4 * log(2) + 1e-9) == 0


@pytest.mark.parametrize("m", [1, 2, 3, 10, 99, 100, 101, 1000, 12032, 400_000])
def test_the_fast_rule_never_excludes_a_decided_pair(m):
    most = min(m, m // 2 + int(10 * m**0.5))
    lead = np.arange(m // 2 + 1, most + 1)
    own = -curtailed_leader_log_p(lead, m - lead, 0)
    assert curtailed_may_decide(lead, m - lead, np.zeros_like(lead), own).all()
    for need in (log(20), log(8120), 25.0):
        may, decided = curtailed_may_decide(lead, m - lead, 0, need), own >= need
        assert (may | ~decided).all()
        assert (may & ~decided).sum() <= 1 + 0.2 * m**0.5


def test_thresholds_differ_by_pair_and_infinity_is_never_reached():
    rng = np.random.default_rng(3)
    b, c, rest = rng.integers(0, 60, (3, 40_000)).astype(np.int32)
    need = rng.choice([log(20), log(500), 12.0, np.inf], b.size)
    expected = np.where(-curtailed_leader_log_p(b, c, rest) >= need, np.sign(b - c), 0)
    side = curtailed_side(b, c, rest, need)
    assert_array_equal(side, expected)
    assert not side[np.isinf(need)].any()
    assert np.unique(side).tolist() == [-1, 0, 1]
    square = (x.reshape(200, 200) for x in (b, c, rest, need))
    assert_array_equal(curtailed_side(*square), side.reshape(200, 200))
    assert curtailed_side([], [], [], []).shape == (0,)


@pytest.mark.parametrize("alpha", LEVELS)
def test_missing_tolerated_is_the_last_that_decides(alpha):
    b, c = (x.ravel() for x in np.meshgrid(np.arange(45), np.arange(45)))
    most = missing_tolerated(b, c, alpha)
    some = most >= 0
    assert (curtailed_side(b[some], c[some], most[some], -log(alpha)) != 0).all()
    assert (curtailed_side(b, c, most + 1, -log(alpha)) == 0).all()
    assert some.any() == (alpha > 2.0**-44)


def test_the_forecast_reaches_its_threshold_there_and_not_before():
    seen = [(6016, 840, 727, 6016), (6016, 780, 727, 100), (300, 90, 60, 700)]
    n, b, c, rest = np.array([*seen, (0, 0, 0, 50), (6016, 725, 724, 6016), (40, 40, 0, 3)]).T
    for threshold in (log(20), log(180)):
        more = items_to_curtailed_decision(n, b, c, rest, threshold)
        at = np.isfinite(more) & (more > 0)
        assert at.any()

        def evidence(k, at=at):
            grown = 1 + k / n[at]
            return -curtailed_leader_log_p(b[at] * grown, c[at] * grown, rest[at] - k)

        assert_allclose(evidence(more[at]), threshold, atol=1e-3)
        assert (evidence(0.99 * more[at]) < threshold).all()
        assert_allclose(items_to_curtailed_decision(n, c, b, rest, threshold), more, rtol=1e-6)
    assert np.isinf(more[[1, 3, 4]]).all()  # too few items left, none seen, as good as tied
    assert more[5] == 0
    one = items_to_curtailed_decision(6016, 840, 727, 6016, log(180))
    assert (one.shape, items_to_curtailed_decision([], [], [], [], 3.0).shape) == ((), (0,))
    assert_allclose(one, more[0], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10, 1, 1, -1, 3.0), "missing must be non-negative"),
        ((10, 1, 1, 5, np.nan), "threshold_log must be finite"),
        (([10, 10], 1, 1, [1, 2, 3], 3.0), "arrays of unequal length"),
    ],
)
def test_a_forecast_refuses_bad_input(arguments, message):
    with pytest.raises(ValueError, match=message):
        items_to_curtailed_decision(*arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: curtailed_side([1, -1], 0, 0, 3.0), "b must be non-negative"),
        (lambda: curtailed_side(np.array([-1], np.int32), 0, 0, 3.0), "b must be non-negative"),
        (lambda: curtailed_side(1, 0, 0, np.nan), "threshold_log must not be NaN"),
        (lambda: curtailed_side([1, 1], 0, [1, 2, 3], 3.0), "arrays of unequal length"),
        (lambda: curtailed_may_decide(1, np.nan, 0, 3.0), "c must be finite"),
        (lambda: missing_tolerated(1, 0, 1.0), "alpha must lie strictly"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("n", "b", "c"), [(1_000, 290, 260), (4_000, 410, 380), (12_032, 1_067, 1_012)])
@pytest.mark.parametrize("threshold", [np.log(20), np.log(540)])
def test_the_larger_benchmark_that_the_exact_test_decides(n, b, c, threshold):
    more = float(items_to_exact_decision(n, b, c, threshold))
    assert more == float(items_to_exact_decision(n, c, b, threshold))
    for items, decides in ((0.97, False), (1.03, True)):
        grown = (n + more) * items / n
        p = scipy_stats.binomtest(round(b * grown), round(b * grown) + round(c * grown)).pvalue
        assert (-np.log(p) >= threshold) == decides

import numpy as np
import pytest

from stats import items_to_completion_decision, log_completion_bound

N = np.array([6016, 6016, 300, 0, 6016, 40])
B = np.array([840, 840, 90, 0, 725, 40])
C = np.array([727, 727, 60, 0, 724, 0])
MISSING = np.array([6016, 100, 700, 50, 6016, 3])


@pytest.mark.parametrize("mixture", ["beta(1,1)", "grid98", "beta(3,1)"])
def test_the_bound_reaches_its_threshold_there_and_not_before(mixture):
    for threshold in (np.log(20), np.log(180)):
        more = items_to_completion_decision(N, B, C, MISSING, threshold, mixture)
        at = np.isfinite(more) & (more > 0)
        assert at.any()

        def bound(k, at=at):
            grown = 1 + k / N[at]
            return np.maximum(*log_completion_bound(B[at] * grown, C[at] * grown, MISSING[at] - k, mixture))

        np.testing.assert_allclose(bound(more[at]), threshold, atol=1e-3)
        assert (bound(0.99 * more[at]) < threshold).all()


def test_limits():
    more = items_to_completion_decision(N, B, C, MISSING, np.log(20))
    assert np.isinf(more[[1, 3, 4]]).all()  # too few items left, none seen, as good as tied
    assert more[5] == 0
    assert ((more >= 0) & ((more <= MISSING) | np.isinf(more))).all()


def test_swapping_the_models_changes_nothing_and_scalars_are_the_same():
    more = items_to_completion_decision(N, B, C, MISSING, np.log(20))
    np.testing.assert_allclose(items_to_completion_decision(N, C, B, MISSING, np.log(20)), more, rtol=1e-6)
    one = items_to_completion_decision(6016, 840, 727, 6016, np.log(20))
    assert one.shape == ()
    assert one == pytest.approx(more[0], rel=1e-6)
    assert items_to_completion_decision([], [], [], [], 3.0).shape == (0,)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: items_to_completion_decision(10, 1, 1, -1, 3.0), "missing must be non-negative"),
        (lambda: items_to_completion_decision(10, 1, 1, 5, np.nan), "threshold_log must be finite"),
        (lambda: items_to_completion_decision([10, 10], 1, 1, [1, 2, 3], 3.0), "arrays of unequal length"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()

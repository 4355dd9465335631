"""The interval for the gap of graded scores under policy completion: bets of fixed size on D - g, whose product has no order.

For a hypothesised gap g and 0 < lambda < 1 the bets

    1 + lambda (D - g) / (1 + g) = 1 - lambda + lambda (1 + D) / (1 + g) > 0

have mean 1, and at g = 0 they are those of `stats.evidence.graded`. Their product over the items, averaged over lambda, falls with g: so
the gaps that it does not reject at 2/alpha are those above a bound. Missing items enter with the lowest D, -1. The upper bound is that of
the exchanged models. Nothing here depends on the order of arrival; empirical Bernstein intervals do, and err under this policy.
"""

import numpy as np
import numpy.typing as npt

from stats.evidence.graded import LAMBDAS
from stats.numerics.checks import FloatArray, level, non_negative
from stats.numerics.rootfind import bracketed_root

_NOTHING = float(np.finfo(np.float64).tiny)
_EDGE = -1 + 1e-9
_CELLS = 1_000_000


def graded_completion_low(
    values: npt.ArrayLike,
    counts: npt.ArrayLike,
    missing: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
    lambdas: npt.ArrayLike = LAMBDAS,
) -> FloatArray:
    """Return the lower bound of the interval, for counts that may be fractions.

    An item between two values may count at both, with weights that keep its difference: ln(1 + lambda D) is concave, so the bound only
    falls. The upper bound is the negative of the lower one of ``-values``.

    Examples
    --------
    >>> float(graded_completion_low([-1, 0, 1], [[40.0, 130.0, 90.0]], [0]).round(3)[0])
    0.053
    >>> float(graded_completion_low([-1, 0, 0.5, 1], [[40, 100, 60, 60]], [0]).round(3)[0])
    0.06
    """
    (number,), (rest,), (a,) = non_negative(counts=counts), non_negative(missing=missing), level(alpha=alpha)
    rest, a = np.broadcast_arrays(rest, a)
    return _low(np.asarray(values, np.float64), number, rest, a, np.asarray(lambdas, np.float64))


def _low(values: FloatArray, counts: FloatArray, rest: FloatArray, alpha: FloatArray, bets: FloatArray) -> FloatArray:
    """Return the lower bound of each row of counts."""
    lost = rest[:, None] * np.log1p(-bets)
    step = max(1, _CELLS // max(1, counts.shape[0] * bets.size))

    def excess(gap: FloatArray) -> FloatArray:
        capital = lost.copy()
        for start in range(0, values.size, step):
            part = slice(start, start + step)
            moves = ((values[part] - gap[:, None]) / (1 + gap[:, None]))[..., None]
            capital += (counts[:, part, None] * np.log1p(bets * moves)).sum(axis=1)
        peak = capital.max(axis=1)
        return np.asarray(peak + np.log(np.exp(capital - peak[:, None]).mean(axis=1)) - np.log(2 / alpha))

    total = counts.sum(axis=1) + rest
    # At the mean with missing items at their worst no bet has gained.
    end = np.clip((counts @ values - rest) / np.maximum(total, 1), _EDGE, 1 - 1e-9)
    start = np.full(end.shape, _EDGE)
    return np.where(excess(start) > 0, bracketed_root(excess, start, end, tolerance=1e-11), -1.0)

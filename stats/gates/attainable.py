"""What a gate can show at all with n items: whether any outcome passes, whether equal answers do, and how often models of a known gap do.

For scores 0 and 1 at one look: "not worse by more than a margin" by the exact unconditional test, "worse" by the exact McNemar test. Both
at once, worse by less than the margin, is a pass. Where an item scores the mean of its repeats, bets take the place of both tests.
"""

from math import ceil, log, log1p
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.evidence.margin import excess_p, graded_excess_log_e
from stats.fixed_n.power import critical_count
from stats.fixed_n.tango import score_z
from stats.fixed_n.unconditional import unconditional_p
from stats.numerics.checks import BoolArray, FloatArray
from stats.numerics.special import gammaln

_ROUNDING = 1e-9
_REACH = 8.0  # standard deviations of the counts that are enumerated: beyond lies less than 1e-14


class GateRates(NamedTuple):
    """How often a gate at one look passes and fails; the rest is undecided.

    Attributes
    ----------
    passed, failed : float
    """

    passed: float
    failed: float

    @property
    def undecided(self) -> float:
        """Return the rest."""
        return max(0.0, 1 - self.passed - self.failed)


def least_discordant(alpha: float = 0.05) -> int:
    """Return the fewest differing items that decide the exact test if one model wins them all.

    Examples
    --------
    >>> least_discordant(), least_discordant(0.05 / 45)
    (6, 11)
    """
    _check(alpha=alpha)
    return ceil(1 - log(alpha) / log(2) - _ROUNDING)


def equal_items(margin: float, alpha: float = 0.05) -> int:
    """Return the fewest items at which a candidate with the same answers as the baseline passes "not worse by more than the margin".

    Notes
    -----
    No loss among n items has the probability (1 - margin)^n where the candidate is worse by the margin. The exact test takes a few more
    where the margin is large.

    Examples
    --------
    >>> [equal_items(margin) for margin in (0.01, 0.02, 0.03, 0.05, 0.3)]
    [299, 149, 99, 59, 10]
    """
    _check(margin=margin, alpha=alpha)
    items = ceil(log(alpha) / log1p(-margin) - _ROUNDING)
    while float(excess_p(items, 0, 0, -margin)) > alpha:
        items += 1
    return items


def best_items(margin: float, wrong: float = 1.0, alpha: float = 0.05) -> int:
    """Return the fewest items at which the best outcome passes: the candidate is right everywhere.

    Parameters
    ----------
    wrong : float
        Share of the items that the baseline has wrong, so that the candidate can win them.

    Examples
    --------
    >>> [best_items(0.02, wrong) for wrong in (1.0, 0.3, 0.1, 0.0)]
    [5, 10, 30, 149]
    """
    _check(margin=margin, alpha=alpha)
    if not 0 <= wrong <= 1:
        raise ValueError(f"wrong must lie in [0, 1], got {wrong}")

    def passes(items: int) -> bool:
        return float(excess_p(items, int(wrong * items + _ROUNDING), 0, -margin)) <= alpha

    low, high = 0, equal_items(margin, alpha)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    # A win comes only now and then, so what passes is not quite monotone.
    return next(items for items in range(max(1, high - ceil(1 / max(wrong, 1 / high))), high + 1) if passes(items))


def gate_rates(items: int, gap: float, discordance: float, margin: float, alpha: float = 0.05) -> GateRates:
    """Return how often a gate passes and fails with so many items, by enumeration of what may come.

    Parameters
    ----------
    gap : float
        True difference, candidate minus baseline.
    discordance : float
        Share of the items that exactly one of the two has right, at least ``abs(gap)``.

    Examples
    --------
    >>> [round(rate, 3) for rate in gate_rates(1319, 0.0, 0.04, 0.03)], round(gate_rates(1319, -0.03, 0.04, 0.03).passed, 3)
    ([1.0, 0.0], 0.046)
    """
    _check(margin=margin, alpha=alpha)
    if not (items >= 1 and abs(gap) <= discordance <= 1):
        raise ValueError("rates take at least one item, and a discordance from |gap| to 1")
    win, loss = (discordance + gap) / 2, (discordance - gap) / 2
    wins, losses = (_likely(items, rate) for rate in (win, loss))
    b, c = (x.ravel() for x in np.meshgrid(wins, losses, indexing="ij"))
    inside = b + c <= items
    b, c = b[inside], c[inside]
    chance = _chance(items, b, c, win, loss)
    passed = passes(items, b, c, margin, alpha)
    failed = (c > b) & (b <= critical_count(b + c, alpha)) & ~passed
    return GateRates(min(1.0, float(chance[passed].sum())), min(1.0, float(chance[failed].sum())))


def mean_rates(
    answers: npt.ArrayLike,
    items: int,
    repeats: int,
    gap: float,
    margin: float,
    alpha: float = 0.05,
    *,
    simulations: int = 400,
    seed: int = 0,
) -> GateRates:
    """Return the same where an item scores the mean of its repeats: by simulation, with bets on graded scores.

    Parameters
    ----------
    answers : array_like, shape (cases, runs)
        Scores of the baseline, nan where there is none. Each simulated item is one of these cases, and each of its answers one of the
        case's own.
    items, repeats : int
        Of the gate.
    gap : float
        At most 0: so many of the candidate's answers are lost.
    simulations, seed : int

    Examples
    --------
    >>> steady = [[1, 1, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]]
    >>> [mean_rates(steady, 300, 3, gap, 0.05, simulations=100).passed > 0.5 for gap in (0.0, -0.05)]
    [True, False]
    """
    _check(margin=margin, alpha=alpha)
    values = np.asarray(answers, dtype=np.float64)
    count = (~np.isnan(values)).sum(axis=1)
    if values.ndim != 2 or not values.size or not count.all():
        raise ValueError("answers must be of shape (cases, runs), with an answer to each case")
    if not -1 < gap <= 0:
        raise ValueError(f"gap must lie in (-1, 0], got {gap}")
    mean = float(np.nanmean(values, axis=1).mean())
    if mean + gap < 0:
        raise ValueError(f"gap must leave some of the mean score {mean:.4g}, got {gap}")
    values = np.take_along_axis(values, np.argsort(np.isnan(values), axis=1, kind="stable"), axis=1)
    rng = np.random.default_rng(seed)
    kept = 1 + gap / mean if mean > 0 else 1.0
    need = log(1 / alpha)
    passed = failed = 0
    for _ in range(simulations):
        case = rng.integers(0, len(values), items)[:, None]
        old, new = (values[case, (rng.random((items, repeats)) * count[case]).astype(np.intp)] for _ in range(2))
        d = (new * (rng.random((items, repeats)) < kept) - old).mean(axis=1)
        if float(graded_excess_log_e(d, -margin)) >= need:
            passed += 1
        elif float(graded_excess_log_e(-d, 0.0)) - log(2) >= need:
            failed += 1
    return GateRates(passed / simulations, failed / simulations)


def passes(items: int, b: FloatArray, c: FloatArray, margin: float, alpha: float = 0.05) -> BoolArray:
    """Return for which counts the exact test of ``gap = -margin`` passes: the p-value follows the score statistic, so one search finds all.

    Parameters
    ----------
    b, c : ndarray
        Items that the candidate alone, the baseline alone has right, of so many in all.

    Examples
    --------
    >>> passes(300, np.array([6.0, 6.0]), np.array([6.0, 9.0]), 0.03).tolist()
    [True, False]
    """
    z = score_z(items, b, c, -margin)
    order = np.argsort(-z)
    low, high = 0, order.size  # the first `low` pass
    while low < high:
        middle = (low + high) // 2
        at = order[middle]
        decided = unconditional_p(items, int(b[at]), int(c[at]), -margin) <= alpha
        low, high = (middle + 1, high) if decided else (low, middle)
    out = np.zeros(b.shape, dtype=np.bool_)
    out[order[:low]] = True
    return out


def _likely(items: int, rate: float) -> FloatArray:
    reach = _REACH * (np.sqrt(items * rate * (1 - rate)) + 1)
    return np.arange(max(0, int(items * rate - reach)), min(items, int(items * rate + reach)) + 1, dtype=np.float64)


def _chance(items: int, b: FloatArray, c: FloatArray, win: float, loss: float) -> FloatArray:
    ties = items - b - c
    ways = gammaln(items + 1) - gammaln(b + 1) - gammaln(c + 1) - gammaln(ties + 1)
    rates = (np.log(max(rate, 1e-300)) for rate in (win, loss, 1 - win - loss))
    return np.asarray(np.exp(ways + sum(k * rate for k, rate in zip((b, c, ties), rates, strict=True))))


def _check(**named: float) -> None:
    for name, value in named.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value}")

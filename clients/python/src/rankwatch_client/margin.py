"""Whether scores are not worse than a baseline by more than a margin, in the standard library alone.

The same tests as in rankwatch's `gate --margin` on complete results: the score test (Tango) for scores 0 and 1, bets on each item for
scores between, each missing item counted as lost; and the exact McNemar test, or the same bets, for "worse".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

BETS = (0.002, 0.005, 0.01, *(k / 50 for k in range(1, 50)))
"""Sizes of the bets on graded scores, those of rankwatch."""


class Verdict(NamedTuple):
    """The comparison of a run with its baseline.

    Attributes
    ----------
    verdict : str
        ``pass``, ``fail`` or ``undecided``.
    shared, missing : int
        Items with both scores, and items of the run without one.
    gap : float
        Mean score less the baseline's, on shared items.
    p_not_worse, p_worse : float
    needed : float
        Items with which a gap like this would pass with a power of .8; infinite if it would not.
    """

    verdict: str
    shared: int
    missing: int
    gap: float
    p_not_worse: float
    p_worse: float
    needed: float


def compare(
    scores: Sequence[float], baseline: Sequence[float], margin: float, alpha: float = 0.05, missing: int = 0
) -> Verdict:
    """Compare the scores of items with those of the baseline.

    Examples
    --------
    >>> compare([1] * 100, [1] * 100, 0.05).verdict
    'pass'
    >>> compare([0] * 20 + [1] * 80, [1] * 100, 0.05).verdict
    'fail'
    >>> compare([1] * 10, [1] * 10, 0.05).verdict
    'undecided'
    """
    d = [x - y for x, y in zip(scores, baseline)]  # noqa: B905 - Python 3.9 has no strict
    n = len(d)
    gap = math.fsum(d) / n if n else 0.0
    if all(x in (0, 1) for x in (*scores, *baseline)):
        b, c = sum(x > 0 for x in d), sum(x < 0 for x in d)
        not_worse = NormalDist().cdf(-score_z(n + missing, b, c + missing, -margin))
        worse = exact_p(b + missing, c) if c > b + missing else 1.0
    else:
        lost = [-1.0] * missing
        not_worse = math.exp(-max(0.0, log_e(d + lost, -margin)))
        worse = math.exp(-max(0.0, log_e([-x for x in d] + lost, 0.0) - math.log(2)))
    spread = math.fsum(x * x for x in d) / n - gap * gap if n else 0.0
    verdict = "pass" if not_worse <= alpha else "fail" if worse <= alpha else "undecided"
    return Verdict(verdict, n, missing, gap, not_worse, worse, _needed(gap, spread, margin, alpha))


def _needed(gap: float, variance: float, margin: float, alpha: float) -> float:
    if gap <= -margin:
        return math.inf
    z = NormalDist().inv_cdf(1 - alpha) + NormalDist().inv_cdf(0.8)
    return z * z * max(variance, margin - margin * margin) / (gap + margin) ** 2


def score_z(n: int, b: int, c: int, gap: float) -> float:
    """Return the score statistic against a hypothesised gap; see `stats.score_z` of rankwatch.

    Examples
    --------
    >>> round(score_z(100, 12, 5, 0.1), 4)
    -0.7191
    """
    linear = (2 * n - b + c) * gap - (b + c)
    constant = c * gap * (1 - gap)
    root = math.sqrt(max(linear * linear + 8 * n * constant, 0.0))
    q = 2 * constant / max(linear + root, 1e-300) if linear > 0 else (root - linear) / (4 * max(n, 1))
    variance = n * max(2 * q + gap * (1 - gap), 0.0)
    distance = b - c - n * gap
    if variance > 0:
        return distance / math.sqrt(variance)
    return 0.0 if abs(distance) <= 1e-9 * max(n, 1) else math.copysign(math.inf, distance)


def exact_p(b: int, c: int) -> float:
    """Return the two-sided p-value of the exact McNemar test.

    Examples
    --------
    >>> round(exact_p(295, 249), 7)
    0.0535864
    """
    n = b + c
    logs = [
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2) for k in range(min(b, c) + 1)
    ]
    return min(1.0, 2 * math.fsum(math.exp(x) for x in logs))


def log_e(differences: Sequence[float], bound: float) -> float:
    """Return ln of the e-value against "the mean difference is at most `bound`"; see `stats.graded_excess_log_e` of rankwatch.

    Examples
    --------
    >>> round(log_e([0.5] * 20, -0.1), 4)
    7.9638
    """
    capital: list[float] = [math.fsum(math.log1p(bet * (x - bound) / (1 + bound)) for x in differences) for bet in BETS]
    peak = max(capital)
    return peak + math.log(math.fsum(math.exp(x - peak) for x in capital) / len(capital))

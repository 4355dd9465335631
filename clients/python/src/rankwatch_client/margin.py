"""Whether scores are not worse than a baseline by more than a margin, in the standard library alone.

The same tests as in rankwatch's `gate --margin` on complete results: the exact unconditional test for scores 0 and 1, bets on each item
for scores between, each missing item counted as lost; and the exact McNemar test, or the same bets, for "worse".
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
        not_worse = unconditional_p(n + missing, b, c + missing, margin)
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
    discordant = min(max(variance + gap * gap, abs(gap)), 1.0)
    lost = _likeliest_loss_rate(1, (discordant + gap) / 2, (discordant - gap) / 2, -margin)
    at_margin = max(2 * lost - margin * (1 + margin), 0.0)
    deviations = NormalDist().inv_cdf(1 - alpha) * math.sqrt(at_margin) + NormalDist().inv_cdf(0.8) * math.sqrt(
        variance
    )
    return (deviations / (gap + margin)) ** 2 + 0.5 / (gap + margin)


def unconditional_p(n: int, b: int, c: int, margin: float) -> float:
    """Return the exact p-value against "worse by the margin or more"; see `stats.excess_p` of rankwatch.

    It is at most .1 % too large, 1 % from 20,000 items on, and takes .2 s with 1,300 items and up to 4 s with 12,000.

    Examples
    --------
    >>> round(unconditional_p(25, 0, 0, 0.1), 3)
    0.072
    """
    z = score_z(n, b, c, -margin)
    if z <= 1e-9:
        return 1.0
    tail = _Tail(n, margin, z)
    # Cells of the probability that the candidate alone is right, in angles: halved until no bound exceeds the largest probability by more.
    most = 1 + min(max(1e-3, n / 2e6), 1e-2)
    count = math.ceil(math.pi * math.sqrt(n) / 0.4)
    cells = [(math.pi / 2 * k / count, math.pi / 2 * (k + 1) / count) for k in range(count)]
    largest = bound = 0.0
    while cells:
        bounds = []
        for low, high in cells:
            at, above = tail.cell(low, high)
            largest = max(largest, at)
            bounds.append((above, low, high))
        bound = max([bound, *(above for above, *_ in bounds if above <= largest * most)])
        cells = [
            half
            for above, low, high in bounds
            if above > largest * most
            for half in ((low, (low + high) / 2), ((low + high) / 2, high))
        ]
    return min(max(bound, largest), 1.0)


class _Tail:
    """The outcomes that speak as much against a loss of the margin, by losses, and what one more takes from P(enough wins | losses)."""

    def __init__(self, n: int, margin: float, z: float) -> None:
        self.n, self.margin, self.z = n, margin, z
        log_factorial = [math.lgamma(k + 1) for k in range(n + 1)]
        first = self._first_wins()
        self.loss_ways = [log_factorial[n] - log_factorial[c] - log_factorial[n - c] for c in range(len(first))]
        self.terms: list[list[tuple[float, int, int, bool]]] = []
        """For each number of losses: ln of the ways, wins and ties of single outcomes, and whether one more win belongs to it."""
        for lost, wins in enumerate(first):
            rest = n - lost - 1
            after = first[lost + 1] if lost + 1 < len(first) else rest + 1
            self.terms.append(
                [
                    (log_factorial[rest] - log_factorial[k] - log_factorial[rest - k], k, rest - k, k < wins)
                    for k in range(max(wins - 1, 0), min(after, rest + 1))
                ]
            )

    def _first_wins(self) -> list[int]:
        """Return for each number of losses the fewest wins with which the score statistic is z or more."""
        n, margin = self.n, self.margin
        slack = -margin * (1 + margin)
        first: list[int] = []
        for lead in range(math.floor(-n * margin) + 1, n + 1):
            q = ((lead + n * margin) ** 2 / (n * self.z**2) * (1 + 1e-9) - slack) / 2
            if q < margin:
                continue
            losses = q * (2 * n * q - (2 * n - lead) * margin - lead) / (2 * q + slack)
            most = min(math.floor(losses + 1e-9 * max(losses, 1.0)), (n - lead) // 2)
            first += [max(lost + lead, 0) for lost in range(len(first), most + 1)]
        return first

    def cell(self, low: float, high: float) -> tuple[float, float]:
        """Return the probability in the middle of a cell, and a bound over it: the logarithm of each outcome's lies below its tangent."""
        at, *ends = ((1 - self.margin) / 2 * math.sin(x) ** 2 for x in ((low + high) / 2, low, high))
        right, wrong, tie = at, at + self.margin, 1 - self.margin - 2 * at
        above = 0.0
        for end in ends:
            shift = end - at
            win, loss = right * math.exp(shift / right), wrong * math.exp(shift / wrong)
            total = win + loss + tie * math.exp(-2 * shift / tie)
            log_scale = self.n * math.log(total)
            scale = math.inf if log_scale > 700 else math.exp(log_scale)
            above = max(above, scale * self.chance(win / total, loss / total))
        return self.chance(right, wrong), above

    def chance(self, right: float, wrong: float) -> float:
        """Return the probability of the tail; what it leaves out is below 1e-5 of it."""
        exp, n, win = math.exp, self.n, right / (1 - wrong)
        log_wrong, log_kept, log_win, log_no_win = math.log(wrong), math.log1p(-wrong), math.log(win), math.log1p(-win)
        reach = (5 + self.z) * (math.sqrt(n * wrong * (1 - wrong)) + 1)
        total = at_most = 0.0
        for lost in range(min(max(0, math.floor(n * wrong - reach)), len(self.terms) - 1), len(self.terms)):
            at_most += exp(self.loss_ways[lost] + lost * log_wrong + (n - lost) * log_kept)
            part = 0.0
            for ways, wins, ties, one_more in self.terms[lost]:
                single = exp(ways + wins * log_win + ties * log_no_win)
                part += win * single if one_more else single
            total += part * at_most
            if lost > n * wrong and part * at_most < 1e-8 * total:
                break
        return total


def score_z(n: int, b: int, c: int, gap: float) -> float:
    """Return the score statistic against a hypothesised gap; see `stats.score_z` of rankwatch.

    Examples
    --------
    >>> round(score_z(100, 12, 5, 0.1), 4)
    -0.7191
    """
    q = _likeliest_loss_rate(n, b, c, gap)
    variance = n * max(2 * q + gap * (1 - gap), 0.0)
    distance = b - c - n * gap
    if variance > 0:
        return distance / math.sqrt(variance)
    return 0.0 if abs(distance) <= 1e-9 * max(n, 1) else math.copysign(math.inf, distance)


def _likeliest_loss_rate(n: float, b: float, c: float, gap: float) -> float:
    linear = (2 * n - b + c) * gap - (b + c)
    constant = c * gap * (1 - gap)
    root = math.sqrt(max(linear * linear + 8 * n * constant, 0.0))
    return 2 * constant / max(linear + root, 1e-300) if linear > 0 else (root - linear) / (4 * max(n, 1))


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

"""The margin of a gate: by how much a candidate may be worse, and the bets that show that it is not."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from monitor.view.board import Floats
from monitor.words.gates import margin
from schemas.results.gate import GateVerdict, Rule
from stats.evidence.graded import LAMBDAS
from stats.evidence.margin import excess_log_e, graded_excess_log_e, items_to_excess
from stats.gates.attainable import equal_items


@dataclass(frozen=True)
class Margin:
    """By how much a candidate may be worse."""

    size: float
    relative: bool = False

    @property
    def text(self) -> str:
        """The margin in words."""
        return margin(self.size, relative=self.relative)

    @property
    def bound(self) -> float:
        """What the mean difference has to exceed."""
        return 0.0 if self.relative else -self.size

    @property
    def worst(self) -> float:
        """The lowest difference of an item."""
        return self.size - 1 if self.relative else -1.0

    def differences(self, candidate: Floats, baseline: Floats) -> Floats:
        """Return the differences that bet."""
        return candidate - (1 - self.size) * baseline if self.relative else candidate - baseline


def evidence_path(differences: Floats, margin: Margin, mixture: str, *, binary: bool, since: int = 0) -> Floats:
    """Return ln e of the claim "not worse by more than the margin" after each item, the first `since` omitted."""
    if not binary or margin.relative:
        return graded_excess_log_e(differences, margin.bound, path=True)[since:]
    n = np.arange(since + 1, differences.size + 1)
    b, c = (np.cumsum(differences * sign > 0)[since:] for sign in (1, -1))
    return excess_log_e(n, b, c, margin.bound, mixture)


def items_to_margin(differences: Floats, margin: Margin, mixture: str, alpha: float, *, binary: bool) -> float:
    """Return how many items the claim takes in all if they go on like these; infinite where no number of items suffices."""
    if not binary or margin.relative:
        return items_to_bets(differences, margin, alpha)
    n, b, c = differences.size, int((differences > 0).sum()), int((differences < 0).sum())

    def grown(factor: float) -> float:
        return float(excess_log_e(factor * n, factor * b, factor * c, margin.bound, mixture))

    return items_to_excess(grown, n, -np.log(alpha))


def items_to_bets(differences: Floats, margin: Margin, alpha: float) -> float:
    """Return the same for the bets on any scores."""
    values, counts = np.unique(differences, return_counts=True)
    gained = counts @ np.log1p(np.multiply.outer((values - margin.bound) / (1 + margin.bound), np.array(LAMBDAS)))

    def grown(factor: float) -> float:
        peak = factor * float(gained.max())
        return peak + float(np.log(np.exp(factor * gained - peak).mean()))

    return items_to_excess(grown, differences.size, -np.log(alpha))


def agreeing_bound(low: float, margin: Margin, verdict: GateVerdict) -> float | None:
    """Return a bound that is above the margin exactly where the claim holds: it may have held at an earlier item."""
    if margin.relative:
        return None
    return max(low, -margin.size) if verdict == "pass" else min(low, -margin.size)


def worse_bound(high: float | None, verdict: GateVerdict) -> float | None:
    """Return an upper bound of the gap that is below 0 where the candidate is worse."""
    return high if high is None or verdict != "fail" else min(high, 0.0)


def equal_answers(margin: float, alpha: float, rule: Rule) -> int:
    """Return the items from which on equal answers pass at one look."""
    return items_of_bets(np.zeros(1), margin, alpha) if rule == "bets" else equal_items(margin, alpha)


def items_of_bets(differences: Floats, margin: float, alpha: float) -> int:
    """Return the items at which the bets on graded scores reach 1 / alpha if all are like these, none below minus the margin."""
    gains = np.log1p(np.multiply.outer((differences + margin) / (1 - margin), np.array(LAMBDAS))).mean(axis=0)

    def reached(items: int) -> bool:
        return bool(np.logaddexp.reduce(items * gains) - np.log(gains.size) >= -np.log(alpha))

    high = 1
    while not reached(high):
        high *= 2
    return bisect_left(range(high + 1), True, lo=1, key=reached)

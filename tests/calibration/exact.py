"""Exact error rates of the rules with one look at all items, summed over every table of counts: no simulation, no standard error.

`python -m tests.calibration.exact` writes those that the documentation names to exact.json (4 min).
"""

import json
from collections.abc import Iterator, Sequence
from itertools import product
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, xlogy

import stats
from monitor.view.gates.margin import Margin, agreeing_bound

KEPT = Path(__file__).with_name("exact.json")

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

ALPHAS = (0.1, 0.05, 0.05 / 9, 0.05 / 45, 0.05 / 406)
"""Levels of the interval: of a pair, and of one in a family."""

MARGINS = (
    (25, 0.1),
    (52, 0.05),
    (88, 0.03),
    (133, 0.02),
    (15, 0.1),
    (33, 0.05),
    (50, 0.1),
    (60, 0.03),
    (100, 0.05),
    (200, 0.03),
    (400, 0.02),
)
"""Items and margins of a gate; the score test passes falsely in up to .0718 of them at alpha = .05, and .206 at .1."""

LISTED = ((300, 0.5, 0.0), (75, 0.5, 0.0), (50, 0.99, 0.0), (1000, 0.5, 0.0))
"""Items, and probabilities that A alone and B alone is right, where the score interval misses the gap in .054 to .089."""

PLANS = (
    (0.02, 0.02, 0.03),
    (0.01, 0.01, 0.03),
    (0.05, 0.05, 0.05),
    (0.1, 0.1, 0.05),
    (0.02, 0.03, 0.05),
    (0.002, 0.002, 0.02),
    (0.15, 0.15, 0.1),
    (0.03, 0.03, 0.02),
)
"""Probabilities that the candidate alone and the baseline alone is right, and a margin."""


class Error(NamedTuple):
    """The largest error of a rule, and where: probabilities that A alone and B alone is right."""

    rate: float
    right: float
    wrong: float


class Tables:
    """Every table of some items: b items that A alone has right, c that B alone has."""

    def __init__(self, items: int) -> None:
        self.items = items
        b, c = np.indices((items + 1, items + 1))
        self.b, self.c = b[b + c <= items], c[b + c <= items]
        self.ties = items - self.b - self.c
        self._log_ways = gammaln(items + 1) - sum(gammaln(k + 1) for k in (self.b, self.c, self.ties))

    def near(self, right: float, wrong: float) -> Flags:
        """Return the tables whose probability is above rounding."""
        near = np.abs(self.b - self.items * right) <= self._reach(right)
        return near & (np.abs(self.c - self.items * wrong) <= self._reach(wrong))

    def probability(self, of: Flags, right: float, wrong: float) -> float:
        """Return the probability of some tables."""
        some = np.flatnonzero(of & self.near(right, wrong))
        log = xlogy(self.b[some], right) + xlogy(self.c[some], wrong)
        log += xlogy(self.ties[some], max(round(1 - right - wrong, 12), 0))
        return float(np.exp(self._log_ways[some] + log).sum())

    def _reach(self, chance: float) -> float:
        return float(9 * np.sqrt(self.items * chance * (1 - chance)) + 20)


def passing(tables: Tables, margin: float, alpha: float) -> Flags:
    """Return the tables with which the gate passes: p falls with the score statistic, so a bisection finds the smallest that passes."""
    z = stats.score_z(tables.items, tables.b, tables.c, -margin)
    order = np.argsort(z, kind="stable")
    low, high = 0, order.size
    while low < high:
        middle = (low + high) // 2
        b, c = (int(x[order[middle]]) for x in (tables.b, tables.c))
        passes = float(stats.excess_p(tables.items, b, c, -margin)) <= alpha
        low, high = (low, middle) if passes else (middle + 1, high)
    return z >= z[order[low]] if low < order.size else np.zeros(z.shape, bool)


def at_the_margin(margin: float, points: int = 150) -> Iterator[tuple[float, float]]:
    """Yield probabilities with a gap of exactly minus the margin, from no win to no tie."""
    for q in (1 - margin) / 2 * np.sin(np.linspace(0, np.pi / 2, points)) ** 2:
        yield float(q), float(q + margin)


def false_pass(items: int, margin: float, alpha: float) -> Error:
    """Return the largest probability that a candidate passes that is worse by exactly the margin."""
    tables = Tables(items)
    passes = passing(tables, margin, alpha)
    return max(Error(tables.probability(passes, *cell), *cell) for cell in at_the_margin(margin))


def cells(points: int = 100, few: int = 16) -> list[tuple[float, float]]:
    """Return probabilities of a gap of 0 or more, closer to each other near 0 and 1."""
    fine = sorted({*(k / points for k in range(points)), 0.001, 0.003, 0.005, 0.015, 0.985, 0.992, 0.995, 0.997, 0.999})
    coarse = (0, 0.0003, 0.001, 0.002, 0.004, 0.007, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.3, 0.4, 0.5)
    return [(right, wrong) for right, wrong in product(fine, coarse[:few]) if wrong <= right <= 1 - wrong]


def missed_gap(items: int, alpha: float, at: Sequence[tuple[float, float]]) -> Error:
    """Return the largest probability that the interval of policy `completion` misses the gap."""
    tables = Tables(items)
    low, high = np.zeros((2, tables.b.size))
    some = tables.near(*at[0]) if len(at) == 1 else np.ones(tables.b.shape, bool)
    low[some], high[some] = stats.completion_interval(items, tables.b[some], tables.c[some], 0, alpha)

    def missed(right: float, wrong: float) -> float:
        gap = right - wrong
        return tables.probability((low > gap + 1e-12) | (high < gap - 1e-12), right, wrong)

    return max(Error(missed(*cell), *cell) for cell in at)


def missed_bound(items: int, margin: float, alpha: float) -> Error:
    """Return the largest probability that the lower bound of the gate is above the gap; the verdict may have moved it to the margin."""
    tables, size = Tables(items), Margin(margin)
    passes = passing(tables, margin, alpha)
    low = stats.excess_low(items, tables.b, tables.c, alpha)
    shown = np.array(
        [agreeing_bound(float(x), size, "pass" if y else "undecided") for x, y in zip(low, passes, strict=True)]
    )

    def missed(right: float, wrong: float) -> float:
        return tables.probability(shown > right - wrong + 1e-12, right, wrong)

    mirrored = [(wrong, right) for right, wrong in cells(50)]
    return max(Error(missed(*cell), *cell) for cell in [*cells(50), *mirrored, *at_the_margin(margin, 50)])


def power(right: float, wrong: float, margin: float, alpha: float) -> tuple[int, float]:
    """Return the items that an undecided gate says it takes, and the probability that it passes with them."""
    gap = right - wrong
    items = ceil(stats.excess_required_n(gap, right + wrong - gap**2, -margin, alpha))
    tables = Tables(items)
    return items, tables.probability(passing(tables, margin, alpha), right, wrong)


def main() -> None:
    """Write the errors."""
    intervals = {
        f"{items} items, alpha {alpha:.3g}": [alpha, *missed_gap(items, alpha, cells())]
        for items, alpha in product((10, 20, 30, 50, 75, 100, 150, 300), ALPHAS)
    }
    intervals["1000 items, alpha 0.05"] = [0.05, *missed_gap(1000, 0.05, cells(50, 7))]
    kept = {
        "false_pass": {
            f"{items} items, margin {margin}, alpha {alpha}": [alpha, *false_pass(items, margin, alpha)]
            for (items, margin), alpha in product(MARGINS, (0.1, 0.05, 0.01))
        },
        "listed": {
            f"{items} items, {right} v {wrong}": [0.05, *missed_gap(items, 0.05, [(right, wrong)])]
            for items, right, wrong in LISTED
        },
        "interval": intervals,
        "bound": {
            f"{items} items, margin {margin}, alpha {alpha}": [alpha, *missed_bound(items, margin, alpha)]
            for (items, margin), alpha in product(MARGINS[:6], (0.1, 0.05, 0.01))
        },
        "power": {
            f"{right} v {wrong}, margin {margin}": power(right, wrong, margin, 0.05) for right, wrong, margin in PLANS
        },
    }
    KEPT.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""The numbers of a plan: N for a gap, and the smallest gap for an N."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stats.eprocess import anytime_inflation
from stats.paired import admissible_rho, difference_variance, hoeffding_bounds
from stats.planning import plan
from stats.resolution import required_n_paired

Floats = NDArray[np.float64]

CURVE: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Multiples of the target gap on the curve."""

_HALVINGS: Final = 60
_SMALLEST: Final = 1e-9
_POINTS, _ROUNDS = 24, 8


@dataclass(frozen=True)
class Likeness:
    """How alike the scores of two models are: accuracy and correlation, or the share of items on which exactly one is right."""

    accuracy: float | None = None
    rho: float | None = None
    discordance: float | None = None

    def joint(self, gap: Floats) -> tuple[float, Floats]:
        """Return an accuracy, and for each gap a correlation, that have this likeness.

        A discordance fixes the variance of D, which is all that a plan takes from accuracy and correlation: any pair of them that gives
        this variance stands for it, and at an accuracy of 1/2 every discordance from the gap to 1 can be reached.
        """
        if self.discordance is None:
            assert self.accuracy is not None
            assert self.rho is not None
            return self.accuracy, np.full(gap.shape, self.rho)
        variance = self.discordance - gap**2
        each = 0.25 - gap**2 / 4
        return 0.5, 1 - variance / (2 * each)

    def discordance_at(self, gap: Floats) -> Floats:
        """Return the share of items on which exactly one model is right, E[D^2], for each gap."""
        accuracy, rho = self.joint(gap)
        return difference_variance(accuracy + gap / 2, accuracy - gap / 2, rho) + gap**2

    def largest_gap(self) -> float:
        """Return the largest gap that two models this alike can have.

        Raises
        ------
        ValueError
            No two models of this accuracy have this correlation.
        """
        if self.discordance is not None:
            return self.discordance
        assert self.accuracy is not None
        assert self.rho is not None
        admissible_rho(self.accuracy, self.accuracy, self.rho)
        low, high = 0.0, 2 * min(self.accuracy, 1 - self.accuracy)
        for _ in range(_HALVINGS):  # the bounds of rho close in as the gap grows
            middle = (low + high) / 2
            least, most = hoeffding_bounds(self.accuracy + middle / 2, self.accuracy - middle / 2)
            low, high = (middle, high) if least <= self.rho <= most else (low, middle)
        return low


@dataclass(frozen=True)
class Planned:
    """A plan; numbers of items are unrounded, and infinite where no number is enough.

    Attributes
    ----------
    gap : float or None
        Target, in score units.
    needed : dict
        Items for the target by procedure; empty without a target.
    items : int or None
        Items that there are, or can be had.
    detectable : dict
        Smallest gap that so many items detect, by procedure; None where none is.
    curve : list of (gap, dict)
        Items for gaps around the target.
    """

    likeness: Likeness
    gap: float | None
    items: int | None
    family: int
    design_effect: float | None
    alpha: float
    power: float
    mixture: str
    needed: dict[str, float]
    detectable: dict[str, float | None]
    curve: list[tuple[float, dict[str, float]]]


def plan_items(
    likeness: Likeness,
    *,
    gap: float | None,
    items: int | None,
    family: int = 1,
    design_effect: float | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    mixture: str = "beta(1,1)",
) -> Planned:
    """Plan a comparison of two models.

    Parameters
    ----------
    likeness : Likeness
    gap : float or None
        Target gap, in score units.
    items : int or None
        How many items there are.
    family : int
        Pairs that share alpha.
    design_effect : float or None
        Factor that clustering puts on the variance of the gap; None: items are independent.
    alpha, power, mixture
        As in `stats.planning.plan`.

    Raises
    ------
    ValueError
        Gaps, accuracies and correlations that do not go together, in words for whoever gave them.

    Examples
    --------
    >>> planned = plan_items(Likeness(accuracy=0.6, rho=0.5), gap=0.02, items=None, family=9)
    >>> {name: round(items) for name, items in planned.needed.items()}
    {'fixed_n': 4708, 'bonferroni': 7836, 'anytime': 12247, 'anytime_family': 15615}
    """

    def needs(gaps: Floats) -> dict[str, Floats]:
        accuracy, rho = likeness.joint(gaps)
        one, many = (
            plan(gaps, accuracy, rho, hypotheses=m, alpha=alpha, power=power, mixture=mixture) for m in (1, family)
        )
        found = {"fixed_n": one.fixed, "bonferroni": many.fixed, "anytime": one.anytime, "anytime_family": many.anytime}
        return found if design_effect is None else found | {"clustered": one.fixed * design_effect}

    largest = likeness.largest_gap()
    if gap is not None and not 0 < gap <= largest:
        raise ValueError(
            f"a gap of {gap:g} cannot be: models this alike differ by more than 0 and at most {largest:.3g}"
        )
    needed = {} if gap is None else {name: float(n[0]) for name, n in needs(np.array([gap])).items()}
    curve = []
    if gap is not None:
        gaps = gap * np.array([factor for factor in CURVE if gap * factor <= largest])
        columns = needs(gaps)
        curve = [(float(g), {name: float(n[k]) for name, n in columns.items()}) for k, g in enumerate(gaps)]
    detectable = {}
    if items is not None:
        detect = _Detect(likeness, items, largest, power, mixture)
        detectable = {
            "fixed_n": detect(alpha),
            "bonferroni": detect(alpha / family),
            "anytime": detect(alpha, anytime=True),
            "anytime_family": detect(alpha / family, anytime=True),
        }
        if design_effect is not None:
            detectable["clustered"] = detect(alpha, factor=design_effect)
    return Planned(likeness, gap, items, family, design_effect, alpha, power, mixture, needed, detectable, curve)


@dataclass(frozen=True)
class _Detect:
    """Finds the gap whose N is the number of items there are.

    With N known the anytime boundary is known too, so no fixed point has to be found for each gap as it is the other way round.
    """

    likeness: Likeness
    items: int
    largest: float
    power: float
    mixture: str

    def __call__(self, alpha: float, *, anytime: bool = False, factor: float = 1.0) -> float | None:
        low, high = np.log(self.largest * _SMALLEST), np.log(self.largest)
        if self._needed(np.array([self.largest]), alpha, factor, anytime=anytime)[0] > self.items:
            return None
        for _ in range(_ROUNDS):  # N falls as the gap grows
            grid = np.linspace(low, high, _POINTS)
            grid[-1] = high
            gaps = np.minimum(np.exp(grid), self.largest)
            enough = self._needed(gaps, alpha, factor, anytime=anytime) <= self.items
            first = int(np.argmax(enough))
            low, high = grid[max(first - 1, 0)], grid[first]
        return float(min(np.exp(high), self.largest))

    def _needed(self, gaps: Floats, alpha: float, factor: float, *, anytime: bool) -> Floats:
        discordance = self.likeness.discordance_at(gaps)
        sd = np.sqrt(np.maximum(discordance - gaps**2, 0))
        needed = factor * required_n_paired(gaps, sd, alpha, self.power)
        if not anytime:
            return needed
        return np.asarray(needed * anytime_inflation(self.items * discordance, alpha, self.power, self.mixture))


def likeness_of(n: int, b: int, c: int) -> tuple[Likeness, float]:
    """Return the likeness and the gap that a pilot shows."""
    return Likeness(discordance=(b + c) / n), abs(b - c) / n

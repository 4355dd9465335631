"""The plan of a comparison of two models: items for a gap, and the smallest gap for a number of items."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
    """The likeness of the scores of two models: accuracy and correlation, or the share of items on which exactly one is right."""

    accuracy: float | None = None
    rho: float | None = None
    discordance: float | None = None

    def joint(self, gap: Floats) -> tuple[float, Floats]:
        """Return an accuracy, and for each gap a correlation, that have this likeness.

        A plan uses accuracy and correlation only through the variance of D, which a discordance fixes. An accuracy of 1/2 reaches every
        discordance from the gap to 1.
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
        """Return the largest gap that two models of this likeness can have.

        Raises
        ------
        ValueError
            If no two models of this accuracy can have this correlation.
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
        Target gap, in score units.
    needed : dict
        Items for the target by procedure; empty without a target.
    items : int or None
        Items that are available.
    detectable : dict
        Smallest gap that these items detect, by procedure; None where there is none.
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
        Items that are available.
    family : int
        Pairs that share alpha.
    design_effect : float or None
        Factor that clustering puts on the variance of the gap; None: items are independent.
    alpha, power, mixture
        As in `stats.planning.plan`.

    Raises
    ------
    ValueError
        If the gap, accuracy and correlation contradict each other.

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
        needed = {
            "fixed_n": one.fixed,
            "bonferroni": many.fixed,
            "anytime": one.anytime,
            "anytime_family": many.anytime,
        }
        return needed if design_effect is None else needed | {"clustered": one.fixed * design_effect}

    largest = likeness.largest_gap()
    if gap is not None and not 0 < gap <= largest:
        raise ValueError(
            f"a gap of {gap:g} is not possible between two such models; use a gap above 0 and at most {largest:.3g}"
        )
    needed = {} if gap is None else {name: float(n[0]) for name, n in needs(np.array([gap])).items()}
    curve = []
    if gap is not None:
        gaps = gap * np.array([factor for factor in CURVE if gap * factor <= largest])
        columns = needs(gaps)
        curve = [(float(g), {name: float(n[k]) for name, n in columns.items()}) for k, g in enumerate(gaps)]
    detectable = {}
    if items is not None:

        def needs_with_items(gaps: Floats, level: float, effect: float = 1.0, *, anytime: bool = False) -> Floats:
            discordance = likeness.discordance_at(gaps)
            sd = np.sqrt(np.maximum(discordance - gaps**2, 0))
            # With N known the anytime boundary is known: there is no fixed point to search for each gap.
            factor = anytime_inflation(items * discordance, level, power, mixture) if anytime else 1.0
            return np.asarray(effect * required_n_paired(gaps, sd, level, power) * factor)

        cases = {
            "fixed_n": partial(needs_with_items, level=alpha),
            "bonferroni": partial(needs_with_items, level=alpha / family),
            "anytime": partial(needs_with_items, level=alpha, anytime=True),
            "anytime_family": partial(needs_with_items, level=alpha / family, anytime=True),
        }
        if design_effect is not None:
            cases["clustered"] = partial(needs_with_items, level=alpha, effect=design_effect)
        detectable = {name: _smallest_gap(case, items, largest) for name, case in cases.items()}
    return Planned(likeness, gap, items, family, design_effect, alpha, power, mixture, needed, detectable, curve)


def _smallest_gap(needs_of: Callable[[Floats], Floats], items: int, largest: float) -> float | None:
    """Return the smallest gap that some items are enough for, or None if they are not enough for the largest."""
    if needs_of(np.array([largest]))[0] > items:
        return None
    low, high = np.log(largest * _SMALLEST), np.log(largest)
    for _ in range(_ROUNDS):  # N falls as the gap grows
        grid = np.linspace(low, high, _POINTS)
        grid[-1] = high
        first = int(np.argmax(needs_of(np.minimum(np.exp(grid), largest)) <= items))
        low, high = grid[max(first - 1, 0)], grid[first]
    return float(min(np.exp(high), largest))


def likeness_of(n: int, b: int, c: int) -> tuple[Likeness, float]:
    """Return the likeness and the gap that a pilot shows."""
    return Likeness(discordance=(b + c) / n), abs(b - c) / n

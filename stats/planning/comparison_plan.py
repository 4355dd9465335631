"""The plan of a comparison of two models: power, items and deciding items for each procedure at its own threshold."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import exp, inf, isfinite, log, sqrt
from typing import Final, Literal

import numpy as np

from stats.clusters.design import MANY, cluster_power, cluster_size_for_power, clusters_for_power
from stats.families.error_control import spending_alpha, spent_before
from stats.fixed_n.power import items_for_power, leader_power
from stats.fixed_n.resolution import admissible_rho, difference_variance, hoeffding_bounds
from stats.planning.pilot import PilotEffect
from stats.planning.stopping import AnytimeLaw, CompletionLaw

CURVE: Final = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
"""Multiples of the target gap on the curve."""

QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Shares of the runs, for the items by which so many are decided."""

TESTS: Final = ("exact", "mid", "chi2", "corrected")

_ON_THE_CURVE: Final = {"fixed_n", "bonferroni", "anytime", "anytime_family", "anytime_spending"}
_HALVINGS: Final = 60
_SMALLEST: Final = 1e-9

Kind = Literal["exact", "completion", "anytime", "clustered"]


@dataclass(frozen=True)
class Likeness:
    """The likeness of the scores of two models: accuracy and correlation, or the share of items on which exactly one is right."""

    accuracy: float | None = None
    rho: float | None = None
    discordance: float | None = None

    def discordance_at(self, gap: float) -> float:
        """Return the share of items on which exactly one model is right, E[D^2], at a gap."""
        if self.discordance is not None:
            return self.discordance
        assert self.accuracy is not None
        assert self.rho is not None
        p_a, p_b = min(self.accuracy + gap / 2, 1.0), max(self.accuracy - gap / 2, 0.0)
        low, high = hoeffding_bounds(p_a, p_b)  # rounding may leave a rho just outside
        variance = float(difference_variance(p_a, p_b, np.clip(self.rho, low, high)))
        return min(variance + gap**2, 1.0)

    def rates(self, gap: float) -> tuple[float, float]:
        """Return the probabilities that an item is won by the better and by the other model."""
        discordance = self.discordance_at(gap)
        losses = max((discordance - gap) / 2, 0.0)
        return discordance - losses, losses

    def largest_gap(self) -> float:
        """Return the largest gap that two models of this likeness can have."""
        if self.discordance is not None:
            return self.discordance
        assert self.accuracy is not None
        assert self.rho is not None
        admissible_rho(self.accuracy, self.accuracy, self.rho)
        low, high = 0.0, 2 * min(self.accuracy, 1 - self.accuracy)
        if self.rho == 0:  # within every bound
            return high
        for _ in range(_HALVINGS):  # the bounds of rho close in as the gap grows
            middle = (low + high) / 2
            least, most = hoeffding_bounds(self.accuracy + middle / 2, self.accuracy - middle / 2)
            low, high = (middle, high) if least <= self.rho <= most else (low, middle)
        return low if low > _SMALLEST else 0.0


@dataclass(frozen=True)
class Clusters:
    """The clusters of the items: how many, the intra-cluster correlation of D, and the items in each, if they are known."""

    number: int
    icc: float
    size: float | None = None


@dataclass(frozen=True)
class Procedure:
    """A procedure at a threshold.

    Attributes
    ----------
    name : str
    kind : str
        "exact": the exact test with all items in. "completion": the same test, curtailed. "anytime": the e-process, under `trusted` or
        `committed`. "clustered": the cluster-robust test.
    alpha : float
        Its level: p is at most this, or e at least its inverse.
    at_end : float
        "anytime": the level of the exact test of all items, at the end of a committed order; 0 without one.
    """

    name: str
    kind: Kind
    alpha: float
    at_end: float = 0.0


@dataclass(frozen=True)
class Row:
    """The plan by one procedure; items are whole numbers, and infinite where no number is enough.

    Attributes
    ----------
    needed : float or None
        Items that give the power; None without a target.
    interval : (float, float) or None
        Items that the two ends of a pilot's interval need; the larger number first is infinite where the interval includes 0.
    decided_by : dict of float to float
        The first item by which a share of the runs is decided for the better model, where it is reached.
    power : float or None
        Probability of a decision for the better model with the available items.
    detectable : float or None
        Smallest gap that the available items detect with the power; None where there is none, or where it was not asked for.
    """

    procedure: Procedure
    needed: float | None = None
    interval: tuple[float, float] | None = None
    decided_by: dict[float, float] = field(default_factory=dict)
    power: float | None = None
    detectable: float | None = None


@dataclass(frozen=True)
class Planned:
    """A plan.

    Attributes
    ----------
    gap : float or None
        Target gap, in score units.
    effect : PilotEffect or None
        What a pilot shows; its average power is planned for where there is no target.
    items : int or None
        Items that are available.
    rows : list of Row
    tests : dict
        Power of each fixed-n test at the items of the first row, or at the available ones; empty without a target.
    cluster_need : dict
        Clusters needed, of the present size and of any size; empty without clusters and target.
    curve : list of (gap, dict)
        Items for gaps around the target, by name.
    """

    likeness: Likeness
    gap: float | None
    effect: PilotEffect | None
    items: int | None
    family: int
    clusters: Clusters | None
    alpha: float
    power: float
    mixture: str
    rows: list[Row]
    tests: dict[str, float]
    cluster_need: dict[str, float]
    curve: list[tuple[float, dict[str, float]]]

    def __getitem__(self, name: str) -> Row:
        """Return the row of a procedure."""
        return next(row for row in self.rows if row.procedure.name == name)


def procedures(family: int, alpha: float, *, clustered: bool = False, look: float = 0.0) -> list[Procedure]:
    """Return the procedures of a plan, each at its own threshold.

    A declared family of m pairs starts at alpha/m. As pairs are decided the threshold of the others relaxes, to alpha for the last one:
    that of one pair. A growing family (`spending`, the default of live monitoring) gives its m-th pair alpha_m at first, and
    alpha_m / (1 - the weights of the others) once the others are decided.

    Examples
    --------
    >>> [(each.name, round(1 / each.alpha)) for each in procedures(45, 0.05) if each.kind == "anytime"]
    [('anytime', 20), ('anytime_family', 900), ('anytime_spending', 10253), ('anytime_spending_last', 4236)]
    """
    procedures = [Procedure("fixed_n", "exact", alpha), *_watched("", alpha, look)]
    if clustered:
        procedures.append(Procedure("clustered", "clustered", alpha))
    if family > 1:
        first, last = spending_levels(family, alpha)
        procedures += [Procedure("bonferroni", "exact", alpha / family), *_watched("_family", alpha / family, look)]
        procedures += [*_watched("_spending", first, look), *_watched("_spending_last", last, look)]
    return procedures


def _watched(suffix: str, alpha: float, look: float) -> list[Procedure]:
    bets = Procedure("anytime" + suffix, "anytime", alpha * (1 - look), alpha * look)
    return [Procedure("completion" + suffix, "completion", alpha), bets]


def spending_levels(family: int, alpha: float) -> tuple[float, float]:
    """Return the first and the last level of the m-th pair of a growing family: no other pair decided, and all m - 1 others.

    Examples
    --------
    >>> [round(1 / level) for level in spending_levels(45, 0.05)]
    [10253, 4236]
    """
    own = float(spending_alpha(family, alpha))
    return own, own / (1 - spent_before(family))


def plan_items(
    likeness: Likeness,
    *,
    gap: float | None = None,
    effect: PilotEffect | None = None,
    items: int | None = None,
    family: int = 1,
    clusters: Clusters | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
    mixture: str = "beta(1,1)",
    look: float = 0.0,
) -> Planned:
    """Plan a comparison of two models.

    Parameters
    ----------
    likeness : Likeness
    gap : float or None
        Target gap, in score units.
    effect : PilotEffect or None
        What a pilot shows, in place of a target gap: power is averaged over it.
    items : int or None
        Items that are available.
    family : int
        Pairs that share alpha.
    clusters : Clusters or None
        Clusters of the items; None: items are independent.
    alpha, power, mixture
        Error rate, probability of a decision for the better model, and mixture of the e-process.
    look : float
        Share of alpha for the exact test of all items, at the end of a committed order; the e-process has the rest.

    Examples
    --------
    >>> planned = plan_items(Likeness(accuracy=0.6, rho=0.5), gap=0.02, family=9)
    >>> [(name, int(planned[name].needed)) for name in ("fixed_n", "completion", "anytime", "anytime_family", "anytime_spending")]
    [('fixed_n', 4807), ('completion', 4807), ('anytime', 10505), ('anytime_family', 14062), ('anytime_spending', 17619)]
    """
    largest = likeness.largest_gap()
    if largest == 0:
        raise ValueError(
            "two such models are right on the same items, so no gap is possible; give a lower --rho or a discordance"
        )
    if gap == 0:
        raise ValueError(f"no number of items decides a gap of 0; use a gap above 0 and at most {largest:.3g}")
    if gap is not None and not 0 < gap <= largest:
        raise ValueError(
            f"a gap of {gap:g} is not possible between two such models; use a gap above 0 and at most {largest:.3g}"
        )
    plan = _Plan(likeness, largest, alpha, power, mixture, clusters)
    rows = []
    for procedure in procedures(family, alpha, clustered=clusters is not None, look=look):
        if gap is not None:
            rows.append(plan.at_gap(procedure, gap, items))
        elif effect is not None:
            # The curtailed test has the power of the exact test at its level.
            twin = next((row for row in rows if row.procedure.alpha == procedure.alpha), None)
            same = procedure.kind == "completion" and twin is not None and twin.procedure.kind == "exact"
            rows.append(
                replace(twin, procedure=procedure) if same and twin else plan.at_effect(procedure, effect, items)
            )
        else:
            assert items is not None
            rows.append(Row(procedure, detectable=plan.smallest_gap(procedure, items)))
    tests: dict[str, float] = {}
    need: dict[str, float] = {}
    curve = []
    if gap is not None:
        at = items if items is not None else rows[0].needed
        if at is not None and isfinite(at):
            tests = {test: leader_power(at, *likeness.rates(gap), alpha, test) for test in TESTS}
        if clusters is not None:
            need = plan.cluster_need(gap, clusters)
        shown = [row.procedure for row in rows if row.procedure.name in _ON_THE_CURVE]
        gaps = [gap * factor for factor in CURVE if gap * factor <= largest]
        curve = [(each, {p.name: plan.needed(p, each) for p in shown}) for each in gaps]
    return Planned(likeness, gap, effect, items, family, clusters, alpha, power, mixture, rows, tests, need, curve)


_exact_items = lru_cache(maxsize=64)(items_for_power)
_anytime_law = lru_cache(maxsize=64)(AnytimeLaw)


@dataclass(frozen=True)
class _Plan:
    likeness: Likeness
    largest: float
    alpha: float
    power: float
    mixture: str
    clusters: Clusters | None

    def at_gap(self, procedure: Procedure, gap: float, items: int | None) -> Row:
        needed = self.needed(procedure, gap)
        reached = None if items is None else self.reached(procedure, gap, items)
        return Row(procedure, needed, None, self._decided_by(procedure, gap, items or needed), reached)

    def at_effect(self, procedure: Procedure, effect: PilotEffect, items: int | None) -> Row:
        low, high = effect.interval()
        ends = sorted(abs(gap) for gap in (low, high))
        if low < 0 < high:
            ends[0] = 0.0
        interval = [self.needed(procedure, min(gap, self.largest)) if gap else inf for gap in ends]
        needed = reached = None
        if procedure.kind == "anytime":
            threshold = -log(procedure.alpha)
            needed = effect.items_for_anytime_power(threshold, self.power, self.mixture)
            reached = None if items is None else effect.anytime_power(items, threshold, self.mixture)
            if procedure.at_end:
                needed = min(needed, effect.items_for_test_power(procedure.at_end, self.power))
                reached = None if items is None else max(reached or 0.0, effect.test_power(items, procedure.at_end))
        elif procedure.kind == "clustered":
            assert self.clusters is not None
            number, icc = self.clusters.number, self.clusters.icc
            needed = effect.items_for_cluster_power(number, icc, procedure.alpha, self.power)
            if items is not None and items >= number:
                reached = effect.cluster_power(number, items / number, icc, procedure.alpha)
        else:
            needed = effect.items_for_test_power(procedure.alpha, self.power)
            reached = None if items is None else effect.test_power(items, procedure.alpha)
        return Row(procedure, needed, (interval[0], interval[1]), {}, reached)

    def needed(self, procedure: Procedure, gap: float) -> float:
        """Return the items that give the power."""
        if procedure.kind == "anytime":
            bets = self._law(procedure, gap).quantile(self.power)
            if not procedure.at_end:
                return bets
            return min(bets, _exact_items(*self.likeness.rates(gap), procedure.at_end, self.power))
        if procedure.kind == "clustered":
            assert self.clusters is not None
            number, icc = self.clusters.number, self.clusters.icc
            size = cluster_size_for_power(gap, self._sd(gap), number, icc, procedure.alpha, self.power)
            return size * number
        # The curtailed test has the power of the exact test at its level.
        return _exact_items(*self.likeness.rates(gap), procedure.alpha, self.power)

    def reached(self, procedure: Procedure, gap: float, items: float) -> float:
        """Return the power that some items give."""
        if procedure.kind == "anytime":
            bets = self._law(procedure, gap).by(items)
            if not procedure.at_end:
                return bets
            return max(bets, leader_power(items, *self.likeness.rates(gap), procedure.at_end))
        if procedure.kind == "clustered":
            assert self.clusters is not None
            size = max(items / self.clusters.number, 1.0)
            number = min(self.clusters.number, items)
            if number < 2:
                return 0.0
            return float(cluster_power(gap, self._sd(gap), number, size, self.clusters.icc, procedure.alpha))
        return leader_power(items, *self.likeness.rates(gap), procedure.alpha)

    def smallest_gap(self, procedure: Procedure, items: int) -> float | None:
        """Return the smallest gap that some items detect, or None if they do not detect the largest."""
        if self.reached(procedure, self.largest, items) < self.power:
            return None
        low, high = log(self.largest * _SMALLEST), log(self.largest)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            enough = self.reached(procedure, exp(middle), items) >= self.power
            low, high = (low, middle) if enough else (middle, high)
            if high - low < 1e-6:
                break
        return min(exp(high), self.largest)

    def cluster_need(self, gap: float, clusters: Clusters) -> dict[str, float]:
        """Return how many clusters give the power: of the size that the clusters have, and of any size."""
        sizes = {"any_size": MANY} | ({} if clusters.size is None else {"same_size": clusters.size})
        arguments = clusters.icc, self.alpha, self.power
        return {name: clusters_for_power(gap, self._sd(gap), size, *arguments) for name, size in sizes.items()}

    def _decided_by(self, procedure: Procedure, gap: float, items: float) -> dict[float, float]:
        law: AnytimeLaw | CompletionLaw
        if procedure.kind == "anytime":
            law = self._law(procedure, gap)
        elif procedure.kind == "completion" and isfinite(items):
            law = CompletionLaw(items, *self.likeness.rates(gap), procedure.alpha)
        else:
            return {}
        first = {share: law.quantile(share) for share in QUANTILES}
        if procedure.at_end and isfinite(items):
            at_end = CompletionLaw(items, *self.likeness.rates(gap), procedure.at_end)
            first = {share: min(item, at_end.quantile(share)) for share, item in first.items()}
        return {share: item for share, item in first.items() if isfinite(item)}

    def _law(self, procedure: Procedure, gap: float) -> AnytimeLaw:
        return _anytime_law(*self.likeness.rates(gap), -log(procedure.alpha), self.mixture)

    def _sd(self, gap: float) -> float:
        return sqrt(max(self.likeness.discordance_at(gap) - gap**2, 0))

"""What a pilot shows of the gap of two models: an effect with its uncertainty, shrunk towards no gap.

The gap of a small pilot is a bad plan. It is too large whenever luck helped, and a plan made from it then falls short. So the effect is a
distribution: the share of discordant items is Beta(1/2 + b + c, 1/2 + ties), and the share of those that A wins is Beta(5 + b, 5 + c), as
if each model had won five more items. Power is averaged over it.
"""

from math import inf

import numpy as np

from stats.clusters.design import MANY, cluster_power
from stats.fixed_n.power import first_items, power_by_theta
from stats.numerics.checks import FloatArray, level, paired_counts
from stats.numerics.special import betaincinv
from stats.planning.stopping import AnytimeLaw

ADDED_WINS = 5.0
"""Wins added to each model: the shrinkage."""

_SHARES, _THETAS = 3, 24  # nodes of equal probability of the two distributions
_GRID = 400
_PRECISION = 0.005  # relative, of the items: no pilot justifies more


class PilotEffect:
    """The effect that a pilot shows.

    Parameters
    ----------
    n, b, c : int
        Shared items of the pilot, and those that only A, only B has right.

    Examples
    --------
    >>> effect = PilotEffect(200, 30, 20)
    >>> round(effect.pilot_gap, 3), round(effect.gap, 3), [round(gap, 3) for gap in effect.interval()]
    (0.05, 0.042, [-0.021, 0.106])
    """

    def __init__(self, n: int, b: int, c: int) -> None:
        items, wins, losses = (float(x) for x in paired_counts(n, b, c))
        if items < 1:
            raise ValueError("n must be at least 1: a pilot without shared items shows nothing")
        self.pilot_gap = (wins - losses) / items
        self._share = 0.5 + wins + losses, 0.5 + items - wins - losses
        self._theta = ADDED_WINS + wins, ADDED_WINS + losses
        self.discordance = self._share[0] / sum(self._share)
        self.gap = self.discordance * (self._theta[0] - self._theta[1]) / sum(self._theta)

    def interval(self, coverage: float = 0.95) -> tuple[float, float]:
        """Return the central interval of the gap, in score units."""
        (mass,) = level(coverage=coverage)
        share, theta = (_nodes(parameters, _GRID) for parameters in (self._share, self._theta))
        gaps = np.multiply.outer(share, 2 * theta - 1).ravel()
        low, high = np.quantile(gaps, [(1 - mass) / 2, (1 + mass) / 2])
        return float(low), float(high)

    def test_power(self, items: float, alpha: float = 0.05) -> float:
        """Return the average probability that the exact test over these items decides for the better model."""
        theta = self._better()
        return float(np.mean([power_by_theta(items, share, theta, alpha) for share in self._shares()]))

    def anytime_power(self, items: float, threshold_log: float, mixture: str = "beta(1,1)") -> float:
        """Return the average probability that the e-process decides for the better model by this item."""
        return float(np.mean([law.by(items) for law in self._laws(threshold_log, mixture)]))

    def cluster_power(self, clusters: float, size: float, icc: float, alpha: float = 0.05) -> float:
        """Return the average probability that the cluster-robust test decides for the better model."""
        share = self._shares()[:, None]
        gap = share * (2 * self._better() - 1)
        return float(cluster_power(gap, np.sqrt(share - gap**2), clusters, size, icc, alpha).mean())

    def items_for_test_power(self, alpha: float = 0.05, power: float = 0.8) -> float:
        """Return the fewest items with an average power of the exact test, to within .5 %; infinite if there is no number."""
        return first_items(lambda items: self.test_power(items, alpha), power, self._guess(), _PRECISION)

    def items_for_anytime_power(self, threshold_log: float, power: float = 0.8, mixture: str = "beta(1,1)") -> float:
        """Return the first item by which the e-process has an average power, to within .5 %; infinite if there is none."""
        laws = self._laws(threshold_log, mixture)
        return first_items(
            lambda items: float(np.mean([law.by(items) for law in laws])), power, self._guess(), _PRECISION
        )

    def items_for_cluster_power(self, clusters: float, icc: float, alpha: float = 0.05, power: float = 0.8) -> float:
        """Return the fewest items in so many clusters with an average power, to within .5 %; infinite if no number suffices."""
        if self.cluster_power(clusters, MANY, icc, alpha) < power:
            return inf

        def reached(items: float) -> float:
            return self.cluster_power(clusters, max(items / clusters, 1.0), icc, alpha)

        return first_items(reached, power, self._guess(), _PRECISION)

    def _guess(self) -> float:
        return 16 / (self.discordance * (2 * float(np.mean(self._better())) - 1) ** 2)

    def _shares(self) -> FloatArray:
        return _nodes(self._share, _SHARES)

    def _better(self) -> FloatArray:
        theta = _nodes(self._theta, _THETAS)
        return np.maximum(theta, 1 - theta)

    def _laws(self, threshold_log: float, mixture: str) -> list[AnytimeLaw]:
        return [
            AnytimeLaw(share * theta, share * (1 - theta), threshold_log, mixture)
            for share in self._shares().tolist()
            for theta in self._better().tolist()
        ]


def _nodes(parameters: tuple[float, float], count: int) -> FloatArray:
    """Return the middles of intervals of equal probability of a Beta distribution."""
    return np.asarray(betaincinv(*parameters, (np.arange(count) + 0.5) / count))

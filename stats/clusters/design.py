"""Power of the cluster-robust test, and the clusters and items that give a power.

D of an item has variance sd^2, of which the share ICC is common to its cluster. The mean over G clusters of m items each has variance

    sd^2 ((1 - ICC) / (G m) + ICC / G),

which more items of the same clusters do not bring below sd^2 ICC / G. The test is `clustered_p`: Student's t with G - 1 degrees of freedom,
whose power is that of the noncentral t where the means of the clusters are normal.
"""

from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from stats.fixed_n.power import MOST_ITEMS
from stats.numerics.checks import FloatArray, aligned, between, finite, level, non_negative
from stats.numerics.special import nctdtr, stdtrit

MANY: Final = 1e300
"""As many items in a cluster as there could be."""

_FEWEST = 2  # clusters that give a standard error
_SHIFT = 1e6  # noncentrality that is certain to be detected


def cluster_power(
    gap: npt.ArrayLike,
    sd: npt.ArrayLike,
    clusters: npt.ArrayLike,
    size: npt.ArrayLike,
    icc: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
) -> FloatArray:
    """Return the probability that `clustered_p` decides for the better model, with clusters of equal size.

    Parameters
    ----------
    gap, sd : array_like
        True gap and standard deviation of D, over items and clusters.
    clusters, size : array_like
        Number of clusters G, at least 2, and items in each, at least 1.
    icc : array_like
        Intra-cluster correlation of D, from 0 to 1.

    Examples
    --------
    >>> cluster_power(0.05, 0.5, 14, [100, 1000, 10_000], 0.02).round(3).tolist()
    [0.519, 0.666, 0.685]
    """
    aligned(gap=gap, sd=sd, clusters=clusters, size=size, icc=icc, alpha=alpha)
    (difference,), (spread, number) = finite(gap=gap), non_negative(sd=sd, clusters=clusters)
    (share,), (a,) = between(0, 1, icc=icc), level(alpha=alpha)
    (each,) = non_negative(size=size)
    if not (number >= _FEWEST).all() or not (each >= 1).all():
        raise ValueError("clusters must be at least 2, of at least one item each")
    with np.errstate(divide="ignore", invalid="ignore"):
        error = spread * np.sqrt(((1 - share) / each + share) / number)
        shift = np.where(difference == 0, 0.0, np.minimum(np.abs(difference) / error, _SHIFT))
    certain = shift >= _SHIFT
    critical = -stdtrit(number - 1, a / 2)
    return np.where(certain, 1.0, 1 - nctdtr(number - 1, np.where(certain, 0, shift), critical))


def cluster_size_for_power(
    gap: float, sd: float, clusters: float, icc: float, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the fewest items in each of G clusters that give a power; infinite where no number of items suffices.

    Examples
    --------
    >>> cluster_size_for_power(0.05, 0.5, 14, 0.02), cluster_size_for_power(0.05, 0.5, 30, 0.02)
    (inf, 63.0)
    """
    level(power=power)
    if gap == 0 or float(cluster_power(gap, sd, clusters, MANY, icc, alpha)) < power:
        return inf
    low, high = 0.0, 1.0
    while float(cluster_power(gap, sd, clusters, high, icc, alpha)) < power:
        low, high = high, 2 * high
        if high * clusters > MOST_ITEMS:
            return inf
    while high - low > 1:
        middle = (low + high) // 2
        enough = float(cluster_power(gap, sd, clusters, middle, icc, alpha)) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def clusters_for_power(
    gap: float, sd: float, size: float, icc: float, alpha: float = 0.05, power: float = 0.8
) -> float:
    """Return the fewest clusters, of ``size`` items each, that give a power; infinite at gap 0.

    Examples
    --------
    >>> clusters_for_power(0.05, 0.5, 100, 0.02), clusters_for_power(0.05, 0.5, MANY, 0.02)
    (26.0, 18.0)
    """
    level(power=power)
    if gap == 0:
        return inf
    low, high = 1.0, 2.0
    while float(cluster_power(gap, sd, high, size, icc, alpha)) < power:
        low, high = high, 2 * high
        if high > MOST_ITEMS:
            return inf
    while high - low > 1:
        middle = (low + high) // 2
        enough = float(cluster_power(gap, sd, middle, size, icc, alpha)) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high

"""The e-process whose unit is the cluster: evidence about categories not yet seen, one bet per closed cluster.

The claim of the item e-process is about the mix of clusters in this benchmark. For a claim about new categories, the clusters
themselves are the sample: each closed cluster k contributes its mean difference, and

    E = sum_j w_j prod_k (1 + lambda_j Dbar_k)

is a test martingale over the sequence of closed clusters iff the mean of Dbar_k given the earlier clusters is 0.
"""

import numpy as np
from numpy.typing import ArrayLike

from stats.clusters.robust import check_sums
from stats.numerics.checks import FloatArray, level
from stats.numerics.mixtures import Mixture, parse_mixture

_GRID98 = np.arange(2, 100, 2) / 100


def _bets(mixture: str | Mixture, clusters: int) -> tuple[FloatArray, FloatArray]:
    """Return the positive bets and the weights of one directional half, which sum to 1."""
    name = parse_mixture(mixture).name
    if name == "grid98":
        return _GRID98, np.full(_GRID98.size, 1 / _GRID98.size)
    if name == "beta(1,1)":
        # lambda uniform on (0, 1): the capital is a polynomial of degree `clusters`, integrated exactly
        # (beyond 2,000 clusters the cap costs no digit that matters, and saves quadratic time).
        from scipy.special import roots_legendre  # noqa: PLC0415 - it loads all of scipy.special, for 0.2 s of each report

        x, weights = roots_legendre(min(clusters // 2 + 1, 1000))
        return (x + 1) / 2, weights / 2
    raise ValueError(f'mixture must be "grid98" or "beta(1,1)" for clusters: got {name!r}')


def cluster_e_process(
    n: ArrayLike, s1: ArrayLike, closed: ArrayLike | None = None, mixture: str | Mixture = "grid98"
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log e-value of a pair against "the mean gap of a new cluster is 0", from its closed clusters.

    Parameters
    ----------
    n, s1
        items and sums of D per cluster, shape (P, G) or (G,); a cluster without items makes no bet.
    closed
        boolean, broadcastable to n: the clusters that are complete, hence may bet. All by default. A cluster must close
        for a reason that does not depend on its scores (all its items are in), and then it bets once.
    mixture
        "grid98", theta of the paper's grid as lambda = 2 theta - 1, or "beta(1,1)", lambda uniform on (-1, 1).

    Returns
    -------
    log_e, log_e_plus, log_e_minus
        natural logs, shape (P,): the two-sided e-value (e+ + e-) / 2 and its directional halves, e+ for "A is better".

    Notes
    -----
    It assumes that clusters arrive as an exchangeable sample of categories. It moves slowly: with 14 clusters even
    D = 1 on every item gives e = 1033, and `clusters_needed` returns how many clusters a smaller gap needs.

    Examples
    --------
    >>> log_e, plus, minus = cluster_e_process([10] * 14, [10] * 14)
    >>> round(float(np.exp(log_e)), 2)
    1032.91
    >>> [round(float(x), 4) for x in cluster_e_process([5, 5], [5, -5])]
    [-0.4005, -0.4005, -0.4005]
    """
    size, d1, _ = check_sums(n, s1)
    betting = (size > 0) & (True if closed is None else np.asarray(closed, dtype=bool))
    means = np.where(betting, d1 / np.maximum(size, 1), 0.0)
    lambdas, weights = _bets(mixture, means.shape[-1])
    halves = []
    for direction in (1.0, -1.0):
        capital = np.full(means.shape[:-1], -np.inf)
        for bet, weight in zip(direction * lambdas, weights, strict=True):
            capital = np.logaddexp(capital, np.log(weight) + np.log1p(bet * means).sum(-1))
        halves.append(capital)
    return np.logaddexp(*halves) - np.log(2), halves[0], halves[1]


def clusters_needed(mean_gap: float, alpha: float = 0.05, mixture: str | Mixture = "grid98") -> int:
    """Return how many clusters the two-sided e-value needs to reach 1/alpha, if every cluster shows the same mean gap.

    With `grid98` and e >= 20: 57 clusters at a gap of .10, 111 at .05. Clusters whose means vary need more.

    Parameters
    ----------
    mean_gap
        mean of D in every cluster, in [-1, 1] and not 0.
    alpha
        level; the threshold is 1/alpha.

    Examples
    --------
    >>> clusters_needed(0.10), clusters_needed(0.05)
    (57, 111)
    """
    if not 0 < abs(mean_gap) <= 1:
        raise ValueError(
            f"mean_gap must lie in [-1, 1] and not be 0, where no number of clusters suffices: got {mean_gap}"
        )
    level(alpha=alpha)

    def short(clusters: int) -> bool:
        sums = np.full(clusters, mean_gap)
        return bool(cluster_e_process(np.ones(clusters), sums, mixture=mixture)[0] < -np.log(alpha))

    high = 1
    while short(high):
        high *= 2
    low = high // 2
    while high - low > 1:  # e is convex in the number of clusters and starts at 1: once above, it only grows
        middle = (low + high) // 2
        low, high = (middle, high) if short(middle) else (low, middle)
    return high

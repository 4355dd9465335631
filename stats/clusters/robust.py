"""Clustered items: intra-cluster correlation, design effect and the cluster-robust test of a pair.

Every function takes sums per pair and cluster, so that a stream keeps three arrays and no items:

``n`` (P, G)
    shared items of pair p in cluster g; a cluster with ``n = 0`` is empty and does not count for that pair.
``s1`` (P, G)
    sum of the paired differences D = x_A - x_B in [-1, 1]; for 0/1 scores ``b_g - c_g``.
``s2`` (P, G)
    sum of D^2; for 0/1 scores ``b_g + c_g``.

A single pair may be given as vectors of length G. Below, G is the number of a pair's non-empty clusters and N = sum n.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stats.families.error_control import holm
from stats.fixed_n.resolution import z_sum
from stats.numerics.checks import FloatArray, aligned, finite
from stats.numerics.special import stdtr, stdtrit

FEW_CLUSTERS: Final = 10.0
"""Effective number of clusters below which the standard error is CR3, and a reader is warned."""

# Sums of graded scores carry rounding: a spread below this share of its own scale is none at all.
_NOISE = 1e-12

_ROUNDS: Final = 50
"""Rounds of `holm_rejects` after which the p-values are computed: five to ten are usual."""


class Anova(NamedTuple):
    """The six totals over clusters that the one-way analysis of variance needs, each of shape (...,).

    All are sums over clusters of per-cluster terms, so weighting a cluster (bootstrap) or subtracting it
    (leave-one-out) is linear in them.
    """

    clusters: FloatArray
    items: FloatArray
    squared_sizes: FloatArray
    sum_d: FloatArray
    sum_d2: FloatArray
    between: FloatArray

    def icc(self) -> FloatArray:
        """Return the intra-cluster correlation (MSB - MSW) / (MSB + (n0 - 1) MSW); see `cluster_icc`."""
        with np.errstate(divide="ignore", invalid="ignore"):
            n0 = (self.items - self.squared_sizes / self.items) / (self.clusters - 1)
            msb = np.maximum(self.between - self.sum_d**2 / self.items, 0) / (self.clusters - 1)
            msw = np.maximum(self.sum_d2 - self.between, 0) / (self.items - self.clusters)
            spread = msb + (n0 - 1) * msw
            icc = np.where((spread > 0) & ~self.constant(), (msb - msw) / spread, 0.0)
        icc = np.where(self.items > self.clusters, icc, 0.0)  # of single items there is nothing to correlate
        return np.where((self.clusters >= 2) & (self.items >= self.clusters), icc, np.nan)

    def constant(self) -> NDArray[np.bool_]:
        """Return whether D is the same on every item, up to the rounding of sums."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.sum_d2 - self.sum_d**2 / self.items <= _NOISE * self.sum_d2)

    def mean_size(self) -> FloatArray:
        """Return the mean cluster size N / G; nan where there is no cluster."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.items / self.clusters


def cluster_sums(differences: ArrayLike, labels: ArrayLike, clusters: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Reduce item-level differences to sums per pair and cluster.

    Parameters
    ----------
    differences
        D, shape (P, I) or (I,), in [-1, 1]; nan where a pair does not share the item.
    labels
        cluster of each item, shape (I,), integers in 0..clusters-1.
    clusters
        number of clusters G.

    Returns
    -------
    n, s1, s2
        arrays of shape (P, G), or (G,) for one pair.

    Examples
    --------
    >>> n, s1, s2 = cluster_sums([1, 0, -1, float("nan")], [0, 0, 1, 1], 2)
    >>> n.tolist(), s1.tolist(), s2.tolist()
    ([2.0, 1.0], [1.0, -1.0], [1.0, 1.0])
    """
    d = np.asarray(differences, dtype=np.float64)
    label = np.asarray(labels)
    if label.ndim != 1 or d.shape[-1:] != label.shape:
        raise ValueError(f"labels must hold one cluster per item: got shape {label.shape} for differences {d.shape}")
    if label.size and (label.dtype.kind not in "iu" or label.min() < 0 or label.max() >= clusters):
        raise ValueError(
            f"labels must be integers in 0..{clusters - 1}: got {label.min()}..{label.max()} ({label.dtype})"
        )
    shared = ~np.isnan(d)
    d = np.where(shared, d, 0.0)
    if np.any(np.abs(d) > 1):
        raise ValueError(f"differences must lie in [-1, 1]: found {d.flat[np.argmax(np.abs(d))]}")
    member = np.zeros((label.size, clusters))
    member[np.arange(label.size), label] = 1.0
    return shared @ member, d @ member, (d * d) @ member


def check_sums(n: ArrayLike, s1: ArrayLike, s2: ArrayLike | None = None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return n, s1, s2 as float arrays of one shape (..., G), or raise ValueError naming the array and the rule.

    Without ``s2`` the third array is the largest possible one, n.
    """
    size, d1 = np.asarray(n, dtype=np.float64), np.asarray(s1, dtype=np.float64)
    d2 = size if s2 is None else np.asarray(s2, dtype=np.float64)
    for name, array in (("n", size), ("s1", d1), *((("s2", d2),) if s2 is not None else ())):
        if array.ndim == 0 or array.shape != size.shape:
            raise ValueError(f"{name} must have shape (pairs, clusters) like n {size.shape}: got {array.shape}")
        if not np.all(np.isfinite(array)):
            raise ValueError(f"{name} must be finite: found nan or infinity; leave an empty cluster at n = s1 = s2 = 0")
    if np.any(size < 0) or np.any(d2 < 0):
        raise ValueError(f"n and s2 must be >= 0, a count and a sum of squares: found {min(size.min(), d2.min())}")
    slack = _NOISE * size**2
    if (s2 is not None and np.any(d2 > size + slack)) or np.any(d1**2 > size * d2 + slack):
        raise ValueError("s1 and s2 must be sums of differences in [-1, 1]: s1^2 <= n s2 and s2 <= n in every cluster")
    return size, d1, d2


def anova(n: ArrayLike, s1: ArrayLike, s2: ArrayLike) -> Anova:
    """Return the totals of the one-way analysis of variance of D over clusters, for each pair."""
    size, d1, d2 = check_sums(n, s1, s2)
    between = d1**2 / np.maximum(size, 1)
    occupied = (size > 0).sum(-1).astype(np.float64)
    return Anova(occupied, size.sum(-1), (size**2).sum(-1), d1.sum(-1), d2.sum(-1), between.sum(-1))


def cluster_icc(n: ArrayLike, s1: ArrayLike, s2: ArrayLike) -> FloatArray:
    """Return the one-way ANOVA estimate of the intra-cluster correlation of the paired difference D.

    ICC = (MSB - MSW) / (MSB + (n0 - 1) MSW) with the classic n0 = (N - sum n_g^2 / N) / (G - 1). It may be negative;
    it is 0 when D does not vary at all, and nan for a pair with fewer than two clusters or no two items in one.

    References
    ----------
    The paper, "Cluster-aware sensitivity"; Donner & Koval, Biometrics 36 (1980), 19-25.

    Examples
    --------
    >>> round(float(cluster_icc([4, 4], [4, 0], [4, 0])), 3)  # D is 1 throughout one cluster, 0 throughout the other
    1.0
    """
    return anova(n, s1, s2).icc()


def design_effect(icc: ArrayLike, mean_size: ArrayLike) -> FloatArray:
    """Return the design effect 1 + (m - 1) max(ICC, 0), by which clusters multiply the variance of the mean gap.

    Parameters
    ----------
    icc
        intra-cluster correlation of D, broadcastable; nan is passed through.
    mean_size
        mean cluster size m = N / G (the paper's convention; not the n0 of the ICC). For MMLU-Pro 12,032 / 14 = 859.43.

    Examples
    --------
    >>> round(float(design_effect(0.0067, 12032 / 14)), 2)
    6.75
    """
    aligned(icc=icc, mean_size=mean_size)
    rho = np.asarray(icc, dtype=np.float64)
    (size,) = finite(mean_size=mean_size)
    if np.any(size < 1):
        raise ValueError(f"mean_size must be at least one item: found {size.min()}")
    if np.any(rho > 1 + _NOISE):
        raise ValueError(f"icc must be at most 1: found {np.nanmax(rho)}")
    return np.asarray(1 + (size - 1) * np.maximum(rho, 0.0))


def iid_required_n(totals: Anova, alpha: float, power: float) -> FloatArray:
    """Return N* of each pair as if items were independent, (z_(1-alpha/2) + z_power)^2 Var(D) / gap^2; inf at gap 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        required = z_sum(alpha, power) ** 2 * (totals.items * totals.sum_d2 / totals.sum_d**2 - 1)
    return np.where(totals.sum_d != 0, np.where(totals.constant(), 0.0, np.maximum(required, 0.0)), np.inf)


def cluster_required_n(
    n: ArrayLike, s1: ArrayLike, s2: ArrayLike, alpha: float = 0.05, power: float = 0.8
) -> FloatArray:
    """Return the items needed for (alpha, power) at the observed gap when items are clustered: N* x design effect.

    Returns
    -------
    ndarray, shape (P,)
        items; inf where the gap is 0, nan where the ICC is (`cluster_icc`).

    References
    ----------
    The paper, equation (reqn_exact) times DE, with the mean cluster size N / G.

    Examples
    --------
    >>> n, s1, s2 = [100, 100], [10, 10], [30, 30]  # two clusters that agree: no design effect
    >>> round(float(cluster_required_n(n, s1, s2)), 2)
    227.62
    """
    totals = anova(n, s1, s2)
    effect = design_effect(totals.icc(), np.fmax(totals.mean_size(), 1.0))  # a pair without items has no size
    return iid_required_n(totals, alpha, power) * effect


def effective_clusters(n: ArrayLike) -> FloatArray:
    """Return the effective number of clusters (sum n_g)^2 / sum n_g^2: as many of equal size vary as much in their weights.

    It is G where all clusters have one size, and near 1 where one of them holds nearly all items.

    Parameters
    ----------
    n
        items per cluster, shape (P, G) or (G,).

    Returns
    -------
    ndarray, shape (P,)
        nan for a pair without items.

    References
    ----------
    Carter, Schnepel & Steigerwald, Review of Economics and Statistics 99 (2017), 698-709, with an ICC of 1.

    Examples
    --------
    >>> effective_clusters([[10, 10, 10], [28, 1, 1]]).round(2).tolist()
    [3.0, 1.15]
    """
    size, _, _ = check_sums(n, np.zeros(np.shape(n)))
    return _effective(size)


def _effective(size: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore"):
        return np.asarray(size.sum(-1) ** 2 / (size**2).sum(-1))


def _score_sums(size: FloatArray, d1: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return N, G, sum D and the squares of the standard error: its square is G / (G - 1) / N^4 times them.

    They are sum_g (N (s1_g - n_g gap))^2 (CR1): scaled by N, the terms of 0/1 scores are exact integers. With few effective clusters each
    term is divided by its share of what is left without the cluster (CR3), which changes nothing where all have one size.
    """
    items, total = size.sum(-1), d1.sum(-1)
    scores = items[..., None] * d1 - size * total[..., None]
    scores *= np.abs(scores) > (_NOISE * items)[..., None] * size
    clusters = (size > 0).sum(-1).astype(np.float64)
    few = (_effective(size) < FEW_CLUSTERS) & (clusters >= 2)
    if few.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            wider = ((1 - 1 / clusters) * items)[..., None] / (items[..., None] - size)
        scores *= wider if few.all() else np.where(few[..., None], wider, 1.0)
    return items, clusters, total, (scores * scores).sum(-1)


def clustered_se(n: ArrayLike, s1: ArrayLike) -> FloatArray:
    """Return the cluster-robust standard error of the mean gap.

    sqrt(G / (G - 1) sum_g (s1_g - n_g gap)^2) / N ("CR1"): the sandwich estimator for a mean, which assumes nothing about the
    correlation inside a cluster. Below `FEW_CLUSTERS` effective clusters it is sqrt((G - 1) / G sum_g (gap without g - gap)^2) ("CR3", the
    jackknife), which is the same where all clusters have one size, and larger where one dominates.
    Its square over Var(D) / N is the check on the design effect, `robust_design_effect`.

    Returns
    -------
    ndarray, shape (P,)
        in units of the gap; nan with fewer than two clusters.

    References
    ----------
    Liang & Zeger, Biometrika 73 (1986), 13-22; MacKinnon, Nielsen & Webb, Journal of Applied Econometrics 38 (2023), 671-694.

    Examples
    --------
    >>> clustered_se([[10, 10], [19, 1]], [[4, 0], [4, 1]]).round(3).tolist()
    [0.2, 0.531]
    """
    items, clusters, _, squares = _score_sums(*check_sums(n, s1)[:2])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(clusters >= 2, np.sqrt(clusters / (clusters - 1) * squares) / items**2, np.nan)


def robust_design_effect(n: ArrayLike, s1: ArrayLike, s2: ArrayLike) -> FloatArray:
    """Return the design effect implied by the cluster-robust standard error: its square over Var(D) / N, shape (P,).

    Unlike `design_effect` it needs no common ICC and no common cluster size. nan where D does not vary or G < 2.

    Examples
    --------
    >>> round(float(robust_design_effect([10, 10], [4, 0], [4, 0])), 2)
    5.0
    """
    totals = anova(n, s1, s2)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = totals.sum_d2 / totals.items - (totals.sum_d / totals.items) ** 2
        return np.where(variance > 0, clustered_se(n, s1) ** 2 * totals.items / variance, np.nan)


def clustered_p(n: ArrayLike, s1: ArrayLike) -> FloatArray:
    """Return the two-sided p-value of a zero mean gap, robust to any correlation inside clusters.

    gap / `clustered_se` against Student's t with G - 1 degrees of freedom. It keeps its level with clusters of equal size, from three on.
    The more one cluster dominates the more CR1 errs (.22 with 5, .53 with 14 clusters, one of which has two thirds of the items), and no
    number of clusters makes up for it. CR3, taken below `FEW_CLUSTERS` effective clusters, errs up to .12 there, and up to .23 where two
    clusters dominate. Valid at a planned n only.

    Parameters
    ----------
    n, s1
        items and sums of D per cluster, shape (P, G) or (G,).

    Returns
    -------
    ndarray, shape (P,)
        1 where there is no test: gap 0, fewer than two clusters, or no spread between clusters to measure it by.

    Examples
    --------
    >>> round(float(clustered_p([10, 10, 10], [4, 3, 5])), 4)
    0.0202
    """
    t, df = clustered_t(*check_sums(n, s1)[:2])
    return np.where(t > 0, 2 * stdtr(np.maximum(df, 1), -t), 1.0)


def clustered_t(n: FloatArray, s1: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return |gap| / `clustered_se`, the t of `clustered_p`, and its degrees of freedom G - 1; t is 0 where there is no test.

    The sums are not checked: they are counted, and of many pairs.

    Examples
    --------
    >>> t, df = clustered_t(np.array([10.0, 10, 10]), np.array([4.0, 3, 5]))
    >>> round(float(t), 2), float(df)
    (6.93, 2.0)
    """
    items, clusters, total, squares = _score_sums(n, s1)
    testable = (clusters >= 2) & (squares > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # gap / se = (S / N) / (sqrt(G / (G - 1) squares) / N^2)
        t = np.abs(total) * items / np.sqrt(clusters / (clusters - 1) * squares)
    return np.where(testable, t, 0.0), clusters - 1


def holm_rejects(t: FloatArray, df: FloatArray, m: int, alpha: float) -> NDArray[np.bool_]:
    """Return which of m hypotheses Holm's procedure rejects at alpha, given t and its degrees of freedom of some of them.

    As by `holm` of the two-sided p-values, of which half a million take a tenth of a second. Thresholds on t take the place of p: where r
    hypotheses are rejected, so is each with p <= alpha / (m - r), until none is left.

    Examples
    --------
    >>> holm_rejects(np.array([2.0, 12.0, 7.0]), np.full(3, 4.0), 3, 0.05).tolist()
    [False, True, True]
    """
    freedom = np.maximum(df, 1).astype(np.int64)
    degrees = np.flatnonzero(np.bincount(freedom))
    rejected, left = np.zeros(t.size, bool), m
    for _ in range(_ROUNDS):
        critical = np.full(int(degrees.max(initial=0)) + 1, np.inf)
        critical[degrees] = -stdtrit(degrees.astype(np.float64), alpha / left / 2)
        rejected = t >= critical[freedom]
        before, left = left, max(m - int(np.count_nonzero(rejected)), 1)
        if left == before:
            return rejected
    return holm(np.where(t > 0, 2 * stdtr(freedom, -t), 1.0), m) <= alpha

"""Bradley-Terry strengths of models from battles: P(i beats j) = 1 / (1 + exp(-(s_i - s_j))), a tie as half a win.

A battle is one prompt on which two models were compared: ``first`` and ``second`` are the models, ``points`` is what the first one gets,
from 0 (lost) to 1 (won). The order in which the two were shown may be a covariate: ``shown`` is 1 where the first model was shown first, -1
where the second was, and 0 where that is unknown or both orders were averaged.

Strengths have a finite maximum of the likelihood only among models of which each has beaten each other, directly or through others; such
models are one *group*. Models that battles connect in any direction are one *island*. Strengths of two groups or islands do not compare.

Intervals are asymptotic and for a number of battles that was planned; they hold no error rate under repeated looks.
"""

from math import log
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray, between

ELO: Final = 400 / log(10)
"""Rating points of one unit of strength: 400 points are odds of 10 to 1."""

_STEPS: Final = 200
_PRECISION: Final = 1e-11
_ENDLESS: Final = 25.0
"""Log odds of the position beyond which its likelihood has no maximum."""


class Groups(NamedTuple):
    """How models are connected; arrays of shape (models,).

    Attributes
    ----------
    island : ndarray of int
        Number of the island, from 0: larger islands first, then by their first model.
    group : ndarray of int
        Number of the group, from 0, in no order.
    level : ndarray of int
        Groups above this one, along the longest chain of wins: 0 for a model of a group that lost to no other.
    """

    island: IntArray
    group: IntArray
    level: IntArray


class BradleyTerry(NamedTuple):
    """Strengths and their covariance.

    Attributes
    ----------
    strength : ndarray, shape (models,)
        Log odds, with mean 0 over each group.
    position : float
        Log odds that the model gains that is shown first; 0 where the orders do not vary, NaN where no finite value fits best.
    covariance : ndarray, shape (models + 1, models + 1)
        Of the strengths and, last, of the position: a sandwich estimate, by cluster. NaN with fewer than two clusters.
    """

    strength: FloatArray
    position: float
    covariance: FloatArray

    def error(self, anchor: int | None = None) -> FloatArray:
        """Return the standard error of each strength, against the mean of its group or against one model.

        Examples
        --------
        >>> fit = bradley_terry([0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 0.5], 2)
        >>> fit.error().round(3).tolist(), fit.error(anchor=0).round(3).tolist()
        ([0.511, 0.511], [0.0, 1.021])
        """
        cov = self.covariance[:-1, :-1]
        variance = np.diag(cov)
        if anchor is not None:
            variance = variance + cov[anchor, anchor] - 2 * cov[anchor]
        return np.sqrt(np.maximum(variance, 0))


def groups_of(first: npt.ArrayLike, second: npt.ArrayLike, points: npt.ArrayLike, models: int) -> Groups:
    """Return the islands and groups of models that battles connect.

    Examples
    --------
    >>> found = groups_of([0, 1, 2, 4], [1, 0, 0, 5], [1, 1, 1, 0.5], 6)
    >>> found.island.tolist(), found.level.tolist()
    ([0, 0, 0, 2, 1, 1], [1, 1, 0, 0, 0, 0])
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - only battles need scipy's graphs
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    i, j, y = _battles(first, second, points, models)
    won = np.zeros(models * models, bool)
    won[(i * models + j)[y > 0]] = True
    won[(j * models + i)[y < 1]] = True
    better = np.divmod(np.flatnonzero(won), max(models, 1))
    beats = csr_array((np.ones(better[0].size, np.int8), better), shape=(models, models))
    _, weak = connected_components(beats, directed=True, connection="weak")
    _, strong = connected_components(beats, directed=True, connection="strong")
    sizes = np.bincount(weak, minlength=1)
    begins = np.unique(weak, return_index=True)[1] if models else np.zeros(0, np.int64)
    number = np.argsort(np.lexsort((begins, -sizes[: begins.size])))
    return Groups(number[weak].astype(np.int64), strong.astype(np.int64), _levels(strong, better))


def _levels(group: npt.NDArray[np.int32], wins: tuple[IntArray, IntArray]) -> IntArray:
    """Return the longest chain of groups above that of each model."""
    above, below = group[wins[0]], group[wins[1]]
    edges = np.unique(np.stack([above, below])[:, above != below], axis=1)
    level = np.zeros(int(group.max(initial=-1)) + 1, np.int64)
    while edges.size:
        least = np.zeros_like(level)
        np.maximum.at(least, edges[1], level[edges[0]] + 1)
        if (least <= level).all():
            break
        level = np.maximum(level, least)
    return level[group]


def bradley_terry(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    points: npt.ArrayLike,
    models: int,
    *,
    shown: npt.ArrayLike | None = None,
    cluster: npt.ArrayLike | None = None,
) -> BradleyTerry:
    """Fit strengths by maximum likelihood; battles between two groups have no part in it.

    Parameters
    ----------
    first, second : array_like of int, shape (battles,)
        The models of each battle, from 0.
    points : array_like, shape (battles,)
        What the first one gets, in [0, 1].
    models : int
    shown : array_like of int, shape (battles,), optional
        Which of the two was shown first: 1, -1, or 0. With both 1 and -1 among them, the effect of the position is estimated too.
    cluster : array_like of int, shape (battles,), optional
        Cluster of each battle, from 0, such as its prompt; each battle is one by default.

    Examples
    --------
    >>> fit = bradley_terry([0] * 4, [1] * 4, [1, 1, 1, 0], 2)
    >>> bool(np.isclose(fit.strength[0] - fit.strength[1], log(3)))
    True
    """
    i, j, y = _battles(first, second, points, models)
    group = groups_of(i, j, y, models).group
    inside = np.flatnonzero(group[i] == group[j])
    clusters = np.arange(i.size) if cluster is None else np.asarray(cluster, np.int64)
    order = np.zeros(i.size, np.int64) if shown is None else np.asarray(shown, np.int64)
    i, j, y, clusters, order = i[inside], j[inside], y[inside], clusters[inside], order[inside]
    placed = bool((order > 0).any() and (order < 0).any())
    if not placed:
        order = np.zeros_like(order)
    same = (group[:, None] == group) / np.bincount(group, minlength=1)[group]
    fit = _maximum(i, j, y, order, same) if placed else None
    position = float("nan") if placed and fit is None else None
    if fit is None:
        order = np.zeros_like(order)
        fit = _maximum(i, j, y, order, same)
    assert fit is not None, "each model of a group has beaten each other"
    theta, hessian = fit
    covariance = _sandwich(theta, np.asarray(np.linalg.inv(hessian), np.float64), (i, j, order), y, clusters)
    strength = theta[:-1] - same @ theta[:-1]
    return BradleyTerry(strength, float(theta[-1]) if position is None else position, covariance)


def _maximum(
    i: IntArray, j: IntArray, y: FloatArray, order: IntArray, same: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return the strengths and the position of the largest likelihood, and its negative Hessian there; None without a finite maximum."""
    models = len(same)
    # Battles of one pair in one order count together.
    flip = i > j
    low, high = np.where(flip, j, i), np.where(flip, i, j)
    gained, side = np.where(flip, 1 - y, y), np.where(flip, -order, order)
    key, place = np.unique((low * models + high) * 3 + side + 1, return_inverse=True)
    n, won = np.bincount(place, minlength=key.size), np.bincount(place, gained, key.size)
    a, b, s = key // 3 // models, key // 3 % models, key % 3 - 1
    theta = np.zeros(models + 1)
    for _ in range(_STEPS):
        p = _chance(theta[a] - theta[b] + theta[-1] * s)
        gradient, hessian = _derivatives(a, b, s, won - n * p, n * p * (1 - p), models)
        hessian[:-1, :-1] += same
        if not s.any():
            hessian[-1, -1] = 1.0
        if abs(theta[-1]) > _ENDLESS:
            return None
        step = np.linalg.solve(hessian, gradient)
        # Far from the maximum a whole step may pass it; the likelihood is concave, so a bounded one never loses the way.
        largest = float(np.abs(step).max(initial=0.0))
        theta += step / max(1.0, largest)
        if largest < _PRECISION:
            break
    return theta, hessian


def _derivatives(
    a: IntArray, b: IntArray, s: IntArray, rest: FloatArray, weight: FloatArray, models: int
) -> tuple[FloatArray, FloatArray]:
    """Return the gradient of the log likelihood and its negative Hessian, the position last."""
    size = models + 1
    gradient, hessian = np.zeros(size), np.zeros((size, size))
    np.add.at(gradient, a, rest)
    np.add.at(gradient, b, -rest)
    gradient[-1] = rest @ s
    np.add.at(hessian, (a, a), weight)
    np.add.at(hessian, (b, b), weight)
    np.add.at(hessian, (a, b), -weight)
    np.add.at(hessian, (b, a), -weight)
    for member, sign in ((a, 1), (b, -1)):
        np.add.at(hessian[-1], member, sign * weight * s)
        np.add.at(hessian[:, -1], member, sign * weight * s)
    hessian[-1, -1] = weight @ (s * s)
    return gradient, hessian


def _sandwich(
    theta: FloatArray,
    bread: FloatArray,
    members: tuple[IntArray, IntArray, IntArray],
    points: FloatArray,
    cluster: IntArray,
) -> FloatArray:
    """Return the covariance of the estimates, whose scores are added up by cluster."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - only battles need sparse matrices

    i, j, s = members
    size = theta.size
    count = np.count_nonzero(np.bincount(cluster))
    if count < 2:
        return np.full((size, size), np.nan)
    rest = points - _chance(theta[i] - theta[j] + theta[-1] * s)
    row = np.concatenate([cluster, cluster, cluster])
    column = np.concatenate([i, j, np.full(i.size, size - 1)])
    scores = csr_array((np.concatenate([rest, -rest, rest * s]), (row, column)), shape=(int(cluster.max()) + 1, size))
    meat = (scores.T @ scores).toarray() * (count / (count - 1))
    return np.asarray(bread @ meat @ bread)


def _chance(log_odds: FloatArray) -> FloatArray:
    return 1 / (1 + np.exp(-log_odds))


def _battles(
    first: npt.ArrayLike, second: npt.ArrayLike, points: npt.ArrayLike, models: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Return checked battles."""
    (y,) = between(0, 1, points=points)
    i, j = np.asarray(first, np.int64), np.asarray(second, np.int64)
    if i.ndim != 1 or i.shape != j.shape or i.shape != y.shape:
        raise ValueError(f"first, second and points must be lists of one length, got {i.shape}, {j.shape}, {y.shape}")
    if (i == j).any():
        raise ValueError("first and second must differ: a model has no battle with itself")
    if i.size and (min(i.min(), j.min()) < 0 or max(i.max(), j.max()) >= models):
        raise ValueError(f"first and second must be numbers of models from 0 to {models - 1}")
    return i, j, y

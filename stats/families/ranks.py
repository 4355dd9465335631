"""Rank intervals and tie groups from pairwise decisions.

``decided`` is a K x K matrix of booleans: ``decided[i, j]`` means that model i is decided to be better than model j.
"""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import BoolArray, IntArray


def rank_intervals(decided: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """Return the best and worst rank, 1-based, that the decisions leave open for each model.

    ``low`` = 1 + the number of models decided better; ``high`` = K - the number decided worse. If the decisions are
    all correct with probability at least 1 - alpha (a family-wise procedure), so are all the intervals at once.

    Examples
    --------
    >>> low, high = rank_intervals([[0, 1, 1], [0, 0, 0], [0, 0, 0]])
    >>> low.tolist(), high.tolist()
    ([1, 2, 2], [1, 3, 3])
    """
    better = _decisions(decided)
    return 1 + better.sum(axis=0), better.shape[0] - better.sum(axis=1)


def tie_groups(order: npt.ArrayLike, decided: npt.ArrayLike) -> IntArray:
    """Return the tie group of each model, numbered from 1 along the ranking.

    Going down the ranking, a model joins the current group while no pair within the group is decided, and otherwise
    opens the next one. A group is thus a run of neighbours that are not decided from one another; models of different groups may
    be undecided too (their rank intervals then overlap).

    Parameters
    ----------
    order : array_like of int
        The ranking, best first: a permutation of 0, ..., K - 1.
    decided : array_like of bool
        K x K decisions.

    Returns
    -------
    ndarray of int
        Group of model i at position i (the index of ``decided``, not the rank).

    Examples
    --------
    >>> tie_groups([2, 0, 1], [[0, 1, 0], [0, 0, 0], [0, 1, 0]]).tolist()
    [1, 2, 1]
    """
    better = _decisions(decided)
    either = better | better.T
    ranking = np.asarray(order)
    if sorted(ranking.ravel().tolist()) != list(range(better.shape[0])):
        raise ValueError(f"order must be a permutation of 0, ..., {better.shape[0] - 1}, got {ranking.tolist()}")
    groups = np.zeros(better.shape[0], dtype=np.int64)
    group, start = 0, 0
    for position, model in enumerate(ranking):
        if group == 0 or either[model, ranking[start:position]].any():
            group, start = group + 1, position
        groups[model] = group
    return groups


def _decisions(decided: npt.ArrayLike) -> BoolArray:
    given = np.asarray(decided)
    better = given.astype(np.bool_)
    if (given != better).any():
        raise ValueError("decided must hold booleans: a NaN is no decision")
    if better.ndim != 2 or better.shape[0] != better.shape[1]:
        raise ValueError(f"decided must be a square matrix, got shape {better.shape}")
    if (better & better.T).any():
        raise ValueError("decided must not hold in both directions, nor on the diagonal")
    return better

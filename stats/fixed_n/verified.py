"""The top models at a planned N, by one look at complete scores: one question at the full alpha, however many models there are."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.fixed_n.mcnemar import exact_p
from stats.numerics.pairs import Index

_ROWS = 8_192  # items at a time: sums of 0 and 1 in float32 are exact


class TopSet(NamedTuple):
    """The models with the largest totals, and the pair of one of them and another model that is least apart."""

    models: Index
    p: float
    inside: int
    outside: int


def top_set(right: npt.ArrayLike, size: int) -> TopSet:
    """Return the models with the largest totals, and the largest exact McNemar p of one of them and another model.

    Parameters
    ----------
    right : array_like of bool
        Shape (items, models): which items each model has right. Every model has every item.
    size : int
        Models of the set: 1 or more, and fewer than there are.

    Notes
    -----
    The set is verified where ``p <= alpha``, without a correction for the number of pairs. For Gaussian means with any covariance a wrong
    set is then verified with probability at most alpha: the places where T is the top set are a convex polyhedron, and T is verified
    where a ball of radius z lies in it. By isoperimetry that has at most the probability g(P(T)), g(x) = Phi(Phi^-1(x) - z), which is
    convex; a wrong T has P(T) <= 1/2, and 2 g(1/2) = alpha. So it is for large samples, for one look, and for one size fixed before it.
    In samples of any size ``p <= 2 alpha / (size (models - size))`` is enough.

    Examples
    --------
    >>> models, p, inside, outside = top_set([[1, 0, 0]] * 9 + [[1, 1, 0]] * 5 + [[0, 1, 0]], 1)
    >>> models, round(p, 4), inside, outside
    (array([0]), 0.0215, 0, 1)
    """
    scores = np.asarray(right, bool)
    totals = scores.sum(axis=0)
    order = np.argsort(-totals, kind="stable")
    inside, outside = order[:size], order[size:]
    both = np.zeros((inside.size, outside.size), np.int64)
    for start in range(0, len(scores), _ROWS):
        part = scores[start : start + _ROWS].astype(np.float32)
        both += (part[:, inside].T @ part[:, outside]).astype(np.int64)
    p = exact_p(totals[inside][:, None] - both, totals[outside] - both)
    i, j = np.unravel_index(int(p.argmax()), p.shape)
    return TopSet(inside, float(p[i, j]), int(inside[i]), int(outside[j]))

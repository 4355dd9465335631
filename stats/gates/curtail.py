"""The verdict of a full run before its end: certain once nothing that is missing can change it, with the old scores known.

An unfinished item i loses at most old_i and wins at most 1 - old_i. A verdict that never gets worse where the candidate's score of an item
rises is certain once it is the same with every unfinished item lost and with every one won. Nothing is assumed of the items, and the order
may depend on the old scores; so such an order must feed no e-process.
"""

from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray, between, vector

Verdict = TypeVar("Verdict")


def old_right_first(baseline: npt.ArrayLike) -> IntArray:
    """Return the order in which a pass is certain soonest: old scores descending, ties as they come.

    Nothing can be lost after the last item that old had right.

    Examples
    --------
    >>> old_right_first([0, 1, 0.5, 1]).tolist()
    [1, 3, 2, 0]
    """
    return np.argsort(-vector(baseline=baseline), kind="stable")


def certain(
    candidate: npt.ArrayLike, baseline: npt.ArrayLike, verdict: Callable[[FloatArray, FloatArray], Verdict]
) -> Verdict | None:
    """Return the verdict of the full run if no missing item can change it, else None.

    Parameters
    ----------
    candidate : array_like, shape (T,)
        Scores in [0, 1] of the first items; those from T on are missing.
    baseline : array_like, shape (N,)
        Scores of all items, in the same order.
    verdict : callable
        Maps the scores of both on all items to a verdict, which never gets worse where a score of the candidate rises.

    Examples
    --------
    >>> rule = lambda new, old: bool(new.mean() >= old.mean() - 0.25)
    >>> [certain([1, 1], [1, 1, 1, 0], rule), certain([1, 1, 0], [1, 1, 1, 0], rule), certain([0, 0, 0], [1, 1, 1, 0], rule)]
    [True, True, False]
    """
    new = vector(candidate=candidate)
    (old,) = between(0, 1, baseline=baseline)
    between(0, 1, candidate=new)
    if new.size > old.size:
        raise ValueError(f"candidate has {new.size} scores, and baseline {old.size}: give the old score of each item")
    rest = np.ones(old.size - new.size)
    worst = verdict(np.concatenate([new, 0 * rest]), old)
    return worst if worst == verdict(np.concatenate([new, rest]), old) else None


def items_until_certain(
    candidate: npt.ArrayLike, baseline: npt.ArrayLike, verdict: Callable[[FloatArray, FloatArray], Verdict]
) -> tuple[int, Verdict]:
    """Return after how many items, in order, the verdict of the full run is certain, and that verdict.

    Examples
    --------
    >>> items_until_certain([1, 1, 0, 0], [1, 1, 1, 0], lambda new, old: bool(new.mean() >= old.mean() - 0.25))
    (2, True)
    """
    new = vector(candidate=candidate)
    low, high = -1, new.size
    while high - low > 1:  # what is certain stays certain
        middle = (low + high) // 2
        low, high = (middle, high) if certain(new[:middle], baseline, verdict) is None else (low, middle)
    found = certain(new[:high], baseline, verdict)
    if found is None:
        raise ValueError("candidate must have a score of each item of baseline")
    return high, found

"""What follows from decisions where all pairs share their items: there, who is better is transitive."""

import numpy as np

from stats.numerics.checks import BoolArray

CLOSURE_MODELS = 500
"""Models up to which decisions are closed transitively; above it the matrix products cost too much."""


def transitive_closure(decided: BoolArray) -> BoolArray:
    """Add to decisions what follows from them: A over B and B over C make A over C.

    With probability 1 - alpha no family-wise decision is false, and then nothing that follows from them is: the closure adds no error. This
    holds among models that are compared on the same items only.
    Decisions that contradict each other (a cycle) cannot all be true; they are returned unchanged.

    Parameters
    ----------
    decided : array of bool, shape (models, models)
        ``decided[i, j]``: model i is decided to be better than model j.

    Examples
    --------
    >>> transitive_closure(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], bool))[0].tolist()
    [False, True, True]
    """
    closed = decided
    while True:
        steps = closed.astype(np.float32)
        grown = closed | (steps @ steps > 0)
        if (grown == closed).all():
            break
        closed = grown
    return decided if closed.diagonal().any() else closed

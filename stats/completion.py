"""How soon a pair of a benchmark of known size will be decided, when every missing item counts against the leader."""

import numpy as np
import numpy.typing as npt

from stats.checks import FloatArray, non_negative
from stats.eprocess import log_completion_bound
from stats.mixtures import Mixture

_STEPS = 40


def items_to_completion_decision(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    missing: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    mixture: str | Mixture = "beta(1,1)",
) -> FloatArray:
    """Further items until the completion bound reaches a threshold, if the rates of b and c stay what they are.

    Parameters
    ----------
    n, b, c : array_like
        Shared items so far and discordant counts.
    missing : array_like
        Items of the benchmark that the pair does not share yet.
    threshold_log : array_like
        ln 1/alpha, or ln 1/alpha_j in a family.
    mixture : str or Mixture

    Returns
    -------
    ndarray
        Between 0 and ``missing``; infinite where even the completed benchmark does not decide at these rates, or n = 0.

    Examples
    --------
    >>> round(float(items_to_completion_decision(6016, 840, 727, 6016, np.log(20))))
    5997
    """
    items, wins, losses, rest = non_negative(n=n, b=b, c=c, missing=missing)
    items, wins, losses, rest, need = np.broadcast_arrays(items, wins, losses, rest, np.asarray(threshold_log, float))
    seen = np.maximum(items, 1)

    def bound(more: FloatArray) -> FloatArray:
        grown = 1 + more / seen
        return np.maximum(*log_completion_bound(wins * grown, losses * grown, rest - more, mixture))

    low, high = np.zeros(rest.shape), np.array(rest, np.float64)
    reached = (bound(high) >= need) & (items > 0)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = bound(middle) >= need
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(reached, np.where(bound(np.zeros(rest.shape)) >= need, 0.0, high), np.inf)

"""How soon a pair of a benchmark of known size will be decided, when every missing item counts against the leader."""

import numpy as np
import numpy.typing as npt

from stats.checks import FloatArray, IntArray, aligned, finite, non_negative
from stats.eprocess import log_leader_bound
from stats.mixtures import Mixture, parse_mixture
from stats.rootfind import bracketed_root
from stats.slabs import slabbed


@slabbed
def items_to_completion_decision(
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    missing: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
    mixture: str | Mixture = "beta(1,1)",
) -> FloatArray:
    """Return how many more items the completion bound needs to reach a threshold, if the rates of b and c do not change.

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
    aligned(n=n, b=b, c=c, missing=missing, threshold_log=threshold_log)
    items, wins, losses, rest = non_negative(n=n, b=b, c=c, missing=missing)
    (need,) = finite(threshold_log=threshold_log)
    columns = np.broadcast_arrays(items, wins, losses, rest, need)
    shape = columns[0].shape
    items, wins, losses, rest, need = (x.ravel() for x in columns)
    prior = parse_mixture(mixture)

    def excess(more: FloatArray, at: IntArray) -> FloatArray:  # grows with more: the leader's bound rises all along
        grown = 1 + more / items[at]
        return log_leader_bound(wins[at] * grown, losses[at] * grown, rest[at] - more, prior) - need[at]

    out = np.full(items.shape, np.inf)
    possible = np.flatnonzero(items > 0)
    possible = possible[excess(rest[possible], possible) >= 0]
    decided = excess(np.zeros(possible.size), possible) >= 0
    out[possible[decided]] = 0
    at = possible[~decided]
    if at.size:
        low = np.zeros(at.size)
        out[at] = bracketed_root(lambda more: excess(more, at), low, rest[at], tolerance=1e-5)
    return out.reshape(shape)

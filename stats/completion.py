"""How soon a pair of a benchmark of known size will be decided, when every missing item counts against the leader."""

import numpy as np
import numpy.typing as npt

from stats.checks import BoolArray, FloatArray, aligned, finite, non_negative
from stats.eprocess import log_completion_bound
from stats.mixtures import Mixture, parse_mixture
from stats.rootfind import bracketed_root


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
    aligned(n=n, b=b, c=c, missing=missing, threshold_log=threshold_log)
    items, wins, losses, rest = non_negative(n=n, b=b, c=c, missing=missing)
    (need,) = finite(threshold_log=threshold_log)
    items, wins, losses, rest, need = np.broadcast_arrays(items, wins, losses, rest, need)
    prior = parse_mixture(mixture)

    def excess(more: FloatArray, at: BoolArray) -> FloatArray:  # grows with more: the leader's bound rises all along
        grown = 1 + more / np.maximum(items[at], 1)
        return (
            np.maximum(*log_completion_bound(wins[at] * grown, losses[at] * grown, rest[at] - more, prior)) - need[at]
        )

    seen = np.asarray(items > 0)
    decided, possible = seen.copy(), seen.copy()
    decided[seen] = excess(np.zeros(seen.sum()), seen) >= 0
    possible[seen] = excess(rest[seen], seen) >= 0
    undecided = possible & ~decided
    out = np.where(decided, 0.0, np.inf)
    if undecided.any():
        low = np.zeros(undecided.sum())
        out[undecided] = bracketed_root(lambda more: excess(more, undecided), low, rest[undecided], tolerance=1e-5)
    return out

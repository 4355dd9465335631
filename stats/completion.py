"""How soon a pair of a benchmark of known size will be decided, when every missing item counts against the leader."""

import numpy.typing as npt

from stats.checks import FloatArray
from stats.eprocess import log_leader_bound
from stats.growth import items_until
from stats.mixtures import Mixture, parse_mixture
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
    >>> round(float(items_to_completion_decision(6016, 840, 727, 6016, 2.99573)))
    5997
    """
    prior = parse_mixture(mixture)

    def evidence(wins: FloatArray, losses: FloatArray, rest: FloatArray) -> FloatArray:
        return log_leader_bound(wins, losses, rest, prior)

    return items_until(evidence, n, b, c, missing, threshold_log)

"""Bets that a run is worse than its past by d spreads, given how many of the runs in its bag are worse as well."""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray
from stats.numerics.special import ndtr, ndtri

Ranks = Literal["runs", "items"]
"""What a p-value comes from: the rank of the run, or items drawn one by one."""

DROPS: Final = (0.5, 1.0, 2.0, 4.0)
"""The drops that are bet on, in spreads of a run, equally weighted."""

_LEAST = 1e-12
_STEPS = 60
_PRECISION = 1e-13


def log_bet(
    p: npt.ArrayLike, d: npt.ArrayLike, before: npt.ArrayLike, since: npt.ArrayLike, ranks: Ranks = "runs"
) -> FloatArray:
    """Return ln f(p) of the bet that a run is d spreads lower: f has mean 1 for a uniform p.

    For ranks of runs, f is the density of the rank of a run that is d lower among `before` old runs and `since` runs as low as itself:
    f = r / (w + (1 - w) r), w = before / (before + since), r = exp(-d y - d^2 / 2), where w Phi(y) + (1 - w) Phi(y + d) = p. It is at most
    (before + since) / since. For items, f = exp(-e z - e^2 / 2), e = d w, z = Phi^-1(p).

    Parameters
    ----------
    p : array_like
        p-values, cut to [1e-12, 1 - 1e-12].
    d : array_like
        Drops in spreads of a run, > 0.
    before, since : array_like of int
        Runs before the start of the drop, and from it on, the newest included.
    ranks : "runs" or "items"

    Returns
    -------
    ndarray
        In nats, of the broadcast shape.

    Examples
    --------
    >>> np.exp(log_bet([.05, .05, .5, .01], [1, 1, 2, 4], [30, 30, 10, 14], [1, 5, 1, 3])).round(10).tolist()
    [3.1148946374, 2.8394272983, 0.1853562959, 5.6666509141]
    >>> np.exp(log_bet(.05, 1, 30, 1, "items")).round(10).tolist()
    3.0756971951
    """
    of = np.clip(np.asarray(p, float), _LEAST, 1 - _LEAST)
    drop, n = np.asarray(d, float), np.asarray(before, float)
    w = n / (n + np.asarray(since, float))
    if ranks == "items":
        e = drop * w
        return np.asarray(-e * ndtri(of) - e**2 / 2)
    of, drop, w = np.broadcast_arrays(of, drop, w)
    y = _root(of, drop, w)
    log_r = -drop * y - drop**2 / 2
    return np.asarray(log_r - np.logaddexp(np.log(w), np.log1p(-w) + log_r))


def _root(p: FloatArray, d: FloatArray, w: FloatArray) -> FloatArray:
    """Solve w Phi(y) + (1 - w) Phi(y + d) = p for y, by Newton's steps inside a bracket; each root only until it is found."""
    found = np.array(ndtri(p) - (1 - w) * d)
    left = np.arange(found.size)
    high: FloatArray = np.asarray(ndtri(p.ravel()))
    columns: list[FloatArray] = [p.ravel(), d.ravel(), w.ravel(), high - d.ravel(), high, found.flatten()]
    for _ in range(_STEPS):
        of, drop, share, low, high, y = columns
        excess = share * ndtr(y) + (1 - share) * ndtr(y + drop) - of
        low, high = np.where(excess < 0, y, low), np.where(excess < 0, high, y)
        density = (share * np.exp(-(y**2) / 2) + (1 - share) * np.exp(-((y + drop) ** 2) / 2)) / np.sqrt(2 * np.pi)
        nearer = y - excess / np.maximum(density, np.finfo(float).tiny)
        nearer = np.where((nearer >= low) & (nearer <= high), nearer, (low + high) / 2)
        found.flat[left] = nearer
        on = np.abs(nearer - y) >= _PRECISION
        if not on.any():
            break
        left = left[on]
        columns = [each[on] for each in (of, drop, share, low, high, nearer)]
    return found

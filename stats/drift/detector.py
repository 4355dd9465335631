"""The alarm: a sum of bets over every start that a change may have had.

For a start nu, Lambda is the mean over `DROPS` of the product of the bets on the runs from nu on. M_t is the Shiryaev-Roberts sum: Lambda
over the starts of the last 365 runs. While nothing changes it grows by at most 1 a run on average. So with an alarm at M_t >= A, and a new
segment after it, at most T / A false alarms are expected in any T runs. The bound adds up over monitors, under any dependence.

With starts weighted by 1 / (nu (nu - 1)) the sum is a supermartingale that begins at 1: the chance of any false alarm in a segment, ever,
is at most alpha with an alarm at 1 / alpha (`log_ever`).

References
----------
Vovk, "Testing randomness online", Statistical Science 36 (2021).
Shin, Ramdas & Rinaldo, "E-detectors: a nonparametric framework for sequential change detection", NEJSDS 2 (2024).
"""

from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray
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


WINDOW = 365
"""Starts that lie further back, in runs, are given up."""


class DriftState(NamedTuple):
    """A detector after some runs of a segment.

    Attributes
    ----------
    runs : int
    starts : ndarray of int64, shape (S,)
        The first run after each possible change, counted from 1; none is below 2.
    log_capital : ndarray, shape (S, 4)
        ln of the capital of each start and drop.
    """

    runs: int
    starts: IntArray
    log_capital: FloatArray


class ChangePoint(NamedTuple):
    """When a change may have begun; descriptive, without a proof.

    Attributes
    ----------
    start : int
        The most likely first run after the change, counted from 1.
    first, last : int
        The earliest and the latest start among those with the largest shares, which together have `mass`.
    starts : ndarray of int64
        These starts, in order.
    """

    start: int
    first: int
    last: int
    starts: IntArray


def begin() -> DriftState:
    """Return the detector of a new segment."""
    return DriftState(0, np.zeros(0, np.int64), np.zeros((0, len(DROPS))))


def step(state: DriftState, p: float, ranks: Ranks = "runs") -> DriftState:
    """Return the detector after one more run with p-value `p`; 1 - p looks for a model that got better.

    Parameters
    ----------
    state : DriftState
    p : float
        From `p_runs` or `p_items`.
    ranks : "runs" or "items"
        Which of the two.

    Examples
    --------
    >>> state = begin()
    >>> for i in range(1, 29):
    ...     state = step(state, (7919 * i % 1009) / 1009 * (1 if i <= 20 else .15))
    >>> round(float(np.exp(log_sum(state))), 8), round(float(np.exp(log_ever(state))), 8)
    (18548.05803176, 40.6675317)
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p must be in [0, 1], not {p}")
    now = state.runs + 1
    kept = state.starts > now - WINDOW
    starts, capital = state.starts[kept], state.log_capital[kept]
    if now >= 2:
        starts, capital = np.append(starts, now), np.vstack([capital, np.zeros(len(DROPS))])
    old = starts[:, None] - 1
    return DriftState(now, starts, capital + log_bet(p, DROPS, old, now - old, ranks))


def log_sum(state: DriftState) -> float:
    """Return ln M, the sum over the starts; alarm at ln A, where at most T / A false alarms in T runs may be expected."""
    return float(np.logaddexp.reduce(_log_starts(state))) if state.starts.size else -np.inf


def log_ever(state: DriftState) -> float:
    """Return ln S, the sum weighted by 1 / (nu (nu - 1)); alarm at ln(1 / alpha) for a chance of at most alpha in the whole segment."""
    if not state.starts.size:
        return 0.0
    weighted = _log_starts(state) - np.log(state.starts * (state.starts - 1.0))
    return float(
        np.logaddexp(np.logaddexp.reduce(weighted), -np.log(state.runs))
    )  # and the weight of the starts to come


def localize(state: DriftState, mass: float = 0.9) -> ChangePoint:
    """Return when a change may have begun; `mass` is the share of the sum that the set of starts has.

    Examples
    --------
    >>> state = begin()
    >>> for i in range(1, 29):
    ...     state = step(state, (7919 * i % 1009) / 1009 * (1 if i <= 20 else .15))
    >>> localize(state)[:3]
    (21, 21, 24)
    """
    if not state.starts.size:
        raise ValueError("a change point takes at least two runs")
    logs = _log_starts(state)
    share = np.exp(logs - np.logaddexp.reduce(logs))
    by_share = np.argsort(-share, kind="stable")
    most = by_share[: int(np.searchsorted(np.cumsum(share[by_share]), mass)) + 1]
    chosen = np.sort(state.starts[most])
    return ChangePoint(int(state.starts[by_share[0]]), int(chosen[0]), int(chosen[-1]), chosen)


def _log_starts(state: DriftState) -> FloatArray:
    """Return ln Lambda of each start."""
    return np.asarray(np.logaddexp.reduce(state.log_capital, axis=1) - np.log(len(DROPS)))

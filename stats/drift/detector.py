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

from typing import NamedTuple

import numpy as np

from stats.drift.bets import DROPS, Ranks, log_bet
from stats.numerics.checks import FloatArray, IntArray

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

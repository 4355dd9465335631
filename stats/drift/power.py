"""How soon a lasting drop would be found, by simulation of the runs and of the detector."""

from math import ceil, inf, log, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.drift.detector import DROPS, WINDOW, Ranks, log_bet
from stats.numerics.checks import FloatArray
from stats.numerics.special import ndtr

SIMULATIONS = 200

_WARM = 60
"""Runs before the change in which a start may lie: the capital of earlier starts is all but lost by then, and costs the most time."""


class Delays(NamedTuple):
    """Runs until the alarm.

    Attributes
    ----------
    median : float
        In runs after the change, its run included; infinite where fewer than half of the simulations alarmed within `horizon`.
    found : float
        Share that alarmed within `horizon`.
    horizon : int
        Runs after the change.
    """

    median: float
    found: float
    horizon: int


def run_spread(variances: npt.ArrayLike) -> float:
    """Return the standard deviation of a run's mean, from the variance of each item's score between runs, shape (I,).

    Examples
    --------
    >>> round(run_spread([0.14] * 50), 4)
    0.0529
    """
    of = np.asarray(variances, float)
    if of.ndim != 1 or of.size == 0 or of.min() < 0:
        raise ValueError("variances must be a vector of numbers >= 0, one an item")
    return sqrt(float(of.mean()) / of.size)


def least_history(drop: float, spread: float, false_alarm_runs: float) -> int:
    """Return the runs of history below which a drop is unlikely to be found, however long one waits.

    A history of n runs knows its level to within spread / sqrt(n). So it bounds the evidence of all later runs: about
    (drop / spread)^2 n / 2 nats, where an alarm takes ln A.

    Parameters
    ----------
    drop, spread : float
        In score units, > 0.
    false_alarm_runs : float
        The bound A.

    Examples
    --------
    Four points on 50 items at temperature 1, one false alarm in five years:

    >>> least_history(.04, run_spread([.14] * 50), 1825)
    27
    """
    if not (drop > 0 and spread > 0):
        raise ValueError("a history takes a drop > 0 and a spread > 0")
    return max(1, ceil(2 * log(false_alarm_runs) * (spread / drop) ** 2))


def detection_delay(
    drop: float,
    spread: float,
    history: int,
    false_alarm_runs: float,
    *,
    ranks: Ranks = "runs",
    horizon: int = 180,
    simulations: int = SIMULATIONS,
    seed: int = 0,
) -> Delays:
    """Return how soon a drop that lasts is found: runs are normal around their mean.

    Parameters
    ----------
    drop : float
        In score units, > 0.
    spread : float
        Standard deviation of a run's mean; see `run_spread`.
    history : int
        Runs before the change, of the same segment.
    false_alarm_runs : float
        The bound A: one false alarm may be expected in so many runs.
    ranks : "runs" or "items"
    horizon, simulations, seed : int

    Examples
    --------
    Eight points on 200 items of low noise, after 30 runs:

    >>> detection_delay(.08, run_spread([.042] * 200), 30, 1825, simulations=60).median
    4.0
    """
    if not (drop > 0 and spread > 0 and history >= 1):
        raise ValueError("a delay takes a drop > 0, a spread > 0 and at least one run of history")
    rng = np.random.default_rng(seed)
    runs = rng.standard_normal((simulations, history + horizon))
    runs[:, history:] -= drop / spread
    p = _p_values(runs, rng) if ranks == "runs" else _p_of_normal(runs)
    late = _alarms(p, np.log(false_alarm_runs), history, ranks)
    return Delays(float(np.median(late)), float(np.isfinite(late).mean()), horizon)


def _p_values(runs: FloatArray, rng: "np.random.Generator") -> FloatArray:
    """Return the p-value of each run by its rank among the runs so far; shape (S, T)."""
    p = np.empty_like(runs)
    for t in range(runs.shape[1]):
        below = (runs[:, :t] < runs[:, t : t + 1]).sum(1)
        p[:, t] = (below + rng.random(runs.shape[0])) / (t + 1)
    return p


def _p_of_normal(runs: FloatArray) -> FloatArray:
    """Return the p-value of each run against draws around the mean of its bag."""
    bags = np.cumsum(runs, axis=1) / np.arange(1, runs.shape[1] + 1)
    return np.asarray(ndtr(runs - bags))


def _alarms(p: FloatArray, limit: float, history: int, ranks: Ranks) -> FloatArray:
    """Return at which run after the change each simulation alarms, infinite where none does; without those that alarm before it."""
    found = np.full(p.shape[0], inf)
    log_capital = np.zeros((p.shape[0], 0, len(DROPS)))
    open_ = np.arange(p.shape[0])
    for t in range(max(1, history - _WARM), p.shape[1] + 1):
        log_capital = log_capital[:, -(WINDOW - 1) :]
        if t >= 2:
            log_capital = np.concatenate([log_capital, np.zeros((open_.size, 1, len(DROPS)))], axis=1)
        if not log_capital.size:
            continue
        old = np.arange(t - log_capital.shape[1] + 1, t + 1)[None, :, None] - 1
        log_capital = log_capital + log_bet(p[open_, t - 1][:, None, None], DROPS, old, t - old, ranks)
        alarm = np.logaddexp.reduce(log_capital, axis=(1, 2)) - np.log(len(DROPS)) >= limit
        if t <= history:
            found[open_[alarm]] = np.nan  # a new segment begins, with a shorter history than was asked for
        else:
            found[open_[alarm]] = t - history
        open_, log_capital = open_[~alarm], log_capital[~alarm]
        if not open_.size:
            break
    return np.asarray(found[~np.isnan(found)])

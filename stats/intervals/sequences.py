"""Confidence sequences for the mean of graded scores in [0, 1].

For the gap of a pair use x = (D + 1) / 2 and map the bounds back by 2 x - 1. Items run along the last axis, pairs along
the leading ones; the bounds at position t cover the mean at all t at once with probability at least 1 - alpha.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, between, level, non_negative

_CELLS = 100_000  # candidate means times items at a time


@dataclass(frozen=True)
class EmpiricalBernstein:
    """State of the predictable plug-in empirical Bernstein sequence: O(1) per item, any number of pairs.

    Attributes
    ----------
    alpha : float or array
        1 - coverage, uniformly over time; an array broadcasts against the items, so (*P, 1) gives each pair its own.
    items : int
        Items seen.
    total, squares : ndarray
        Sums of x and of (x - running mean)^2.
    weight, weighted : ndarray
        Sums of lambda and of lambda x.
    penalty_low, penalty_high : ndarray
        Sums of v psi(lambda) of the two bounds.

    Notes
    -----
    Waudby-Smith and Ramdas (2024), theorem 2, with lambda capped at 1/2. Each item is predicted by the mean of those
    before it; the first, which may be predicted by anything, by 0 for the lower and 1 for the upper bound, the
    convention of the authors' software.
    """

    alpha: float | FloatArray
    items: int
    total: FloatArray
    squares: FloatArray
    weight: FloatArray
    weighted: FloatArray
    penalty_low: FloatArray
    penalty_high: FloatArray

    @classmethod
    def start(cls, alpha: float | FloatArray = 0.05, shape: tuple[int, ...] = ()) -> "EmpiricalBernstein":
        """Return the state before the first item."""
        level(alpha=alpha)
        zero = np.zeros(shape)
        return cls(alpha, 0, zero, zero, zero, zero, zero, zero)

    def update(self, x: npt.ArrayLike) -> tuple["EmpiricalBernstein", FloatArray, FloatArray]:
        """Return ``(state, low, high)`` after items ``x`` of shape (*P, T): the bounds have that shape too."""
        (values,) = between(0, 1, x=x)
        if values.shape[-1] == 0:
            return self, values, values
        lam, total, squares = _plug_in(values, self.items, self.total, self.squares, self.alpha)
        lam = np.minimum(lam, 0.5)
        psi = -np.log1p(-lam) - lam
        seen = self.items + np.arange(values.shape[-1])
        before = np.concatenate([self.total[..., None], total[..., :-1]], axis=-1) / np.maximum(seen, 1)
        penalty_low = _carry(self.penalty_low, psi * (values - before) ** 2)
        penalty_high = _carry(self.penalty_high, psi * (values - np.where(seen == 0, 1.0, before)) ** 2)
        weight = _carry(self.weight, lam)
        weighted = _carry(self.weighted, lam * values)
        log_level = np.log(2 / self.alpha)
        low, high = (weighted - log_level - penalty_low) / weight, (weighted + log_level + penalty_high) / weight
        state = replace(
            self,
            items=self.items + values.shape[-1],
            total=total[..., -1],
            squares=squares[..., -1],
            weight=weight[..., -1],
            weighted=weighted[..., -1],
            penalty_low=penalty_low[..., -1],
            penalty_high=penalty_high[..., -1],
        )
        return state, np.clip(low, 0, 1), np.clip(high, 0, 1)


def empirical_bernstein(x: npt.ArrayLike, alpha: float | FloatArray = 0.05) -> tuple[FloatArray, FloatArray]:
    """Bound the mean at every item by the empirical Bernstein confidence sequence.

    Parameters
    ----------
    x : array_like, shape (*P, T)
        Scores in [0, 1], items along the last axis.
    alpha : float or array
        1 - coverage; of each pair its own if it has shape (*P, 1).

    Examples
    --------
    >>> i = np.arange(1, 201)
    >>> x = 0.6 * (7919 * i % 1009) / 1008 + 0.3 * (i % 3 == 0)
    >>> low, high = empirical_bernstein(x)
    >>> low[[49, 199]].round(6).tolist(), high[[49, 199]].round(6).tolist()
    ([0.235028, 0.343506], [0.573396, 0.461917])
    """
    values = _items(x)
    _, low, high = EmpiricalBernstein.start(alpha, values.shape[:-1]).update(values)
    return low, high


def hedged_betting(x: npt.ArrayLike, alpha: float = 0.05, breaks: int = 1000) -> tuple[float, float]:
    """Return the bounds of the hedged betting confidence sequence after the last item; tighter, O(breaks) per item.

    Parameters
    ----------
    x : array_like, shape (T,)
        Scores in [0, 1] in order.
    alpha : float
        1 - coverage, uniformly over time.
    breaks : int
        Number of intervals the candidate means 0, ..., 1 are spaced by; the bounds are outward by at most one.

    Notes
    -----
    Waudby-Smith and Ramdas (2024), theorem 3 with theta = 1/2, and bets truncated at 1/(2m), 1/(2(1-m)). A candidate m
    is in the set while max(K+(m), K-(m)) / 2 < 1/alpha.

    Examples
    --------
    >>> i = np.arange(1, 51)
    >>> low, high = hedged_betting(0.6 * (7919 * i % 1009) / 1008 + 0.3 * (i % 3 == 0))
    >>> round(low, 3), round(high, 3)
    (0.315, 0.505)
    """
    values = _items(x)
    if values.ndim != 1:
        raise ValueError(f"x must be one-dimensional, got shape {values.shape}")
    if breaks < 2:
        raise ValueError(f"breaks must be at least 2, got {breaks}")
    level(alpha=alpha)
    m = np.linspace(0, 1, breaks + 1)[:, None]
    bets, _, _ = _plug_in(values, 0, np.zeros(()), np.zeros(()), alpha)
    up, down = np.zeros(m.size), np.zeros(m.size)
    rows = max(1, _CELLS // m.size)
    for start in range(0, values.size, rows):
        gain_up, gain_down = _hedged_gains(values[start : start + rows], bets[start : start + rows], m)
        up += gain_up.sum(axis=1)
        down += gain_down.sum(axis=1)
    log_capital = np.maximum(up, down) - np.log(2)
    m = m[:, 0]
    # The set always holds the best candidate, even where it has become narrower than the grid.
    inside = np.flatnonzero(log_capital < max(-np.log(alpha), np.nextafter(log_capital.min(), np.inf)))
    return float(m[max(inside[0] - 1, 0)]), float(m[min(inside[-1] + 1, breaks)])


def asymptotic_interval(
    n: npt.ArrayLike, gap: npt.ArrayLike, sd: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, t_star: npt.ArrayLike = 5000
) -> tuple[FloatArray, FloatArray]:
    """Return the asymptotic confidence sequence for a gap, tightest at ``t_star`` items; its coverage is asymptotic only.

    Notes
    -----
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (arXiv 2103.06476), eq. 9, with rho chosen for ``t_star``.

    Examples
    --------
    >>> low, high = asymptotic_interval(12032, 226 / 12032, 0.51004)
    >>> round(float(low), 6), round(float(high), 6)
    (0.00448, 0.033087)
    """
    aligned(n=n, gap=gap, sd=sd, alpha=alpha, t_star=t_star)
    items, spread, best = non_negative(n=n, sd=sd, t_star=t_star)
    (centre,), (a,) = between(-1, 1, gap=gap), level(alpha=alpha)
    if (items < 1).any() or (best < 1).any():
        raise ValueError("n and t_star must be at least 1")
    rho2 = (-2 * np.log(a) + np.log1p(-2 * np.log(a))) / best
    half = spread * np.sqrt(2 * (items * rho2 + 1) / (items**2 * rho2) * np.log(np.sqrt(items * rho2 + 1) / a))
    return centre - half, centre + half


def _items(x: npt.ArrayLike) -> FloatArray:
    (values,) = between(0, 1, x=x)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise ValueError("x must hold at least one item along its last axis")
    return values


def _hedged_gains(values: FloatArray, bets: FloatArray, m: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log gains, item by item, of the bets that the mean is above and below ``m``; everything broadcasts."""
    with np.errstate(divide="ignore"):
        up, down = np.minimum(bets, 0.5 / m), np.minimum(bets, 0.5 / (1 - m))
    return np.log1p(up * (values - m)), np.log1p(-down * (values - m))


def _plug_in(
    values: FloatArray, seen: int, total_before: FloatArray, squares_before: FloatArray, alpha: float | FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return uncapped predictable bets, each from the earlier items, and their running sums."""
    t = seen + np.arange(1, values.shape[-1] + 1)
    total = _carry(total_before, values)
    mean = (0.5 + total) / (t + 1)
    squares = _carry(squares_before, (values - mean) ** 2)
    squares_prior = np.concatenate([squares_before[..., None], squares[..., :-1]], axis=-1)
    variance = (0.25 + squares_prior) / t
    lam = np.sqrt(2 * np.log(2 / alpha) / (variance * t * np.log1p(t)))
    return lam, total, squares


def _carry(start: FloatArray, steps: FloatArray) -> FloatArray:
    """Continue running sums from ``start``, adding in the same order for any chunking."""
    return np.cumsum(np.concatenate([start[..., None], steps], axis=-1), axis=-1)[..., 1:]

"""A vectorised bracketed root search, and the items at which evidence reaches a threshold by it."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, finite, non_negative


def bracketed_root(
    function: Callable[[FloatArray], FloatArray],
    low: FloatArray,
    high: FloatArray,
    tolerance: float = 1e-13,
    ends: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Return roots of ``function`` elementwise between ``low`` and ``high``, where its signs differ (Chandrupatla, 1997).

    Inverse quadratic interpolation where the last three points allow it, bisection otherwise: never slower than
    bisection by more than a constant, usually below ten evaluations.

    Parameters
    ----------
    function : callable
        Maps an array of points to an array of values, elementwise.
    low, high : ndarray
        Ends of the brackets, of one shape. Where the signs agree the result is meaningless: the caller masks it.
    tolerance : float
        Bracket width, relative to the larger of 1e-3 and |root|, at which the search ends.
    ends : tuple of ndarray, optional
        The values of a nearly straight function at ``low`` and ``high``: the search then begins where the line through them is 0, and ends
        too at a value within ``tolerance`` of 0, relative to their distance.
    """
    a, b = np.array(high, dtype=np.float64), np.array(low, dtype=np.float64)
    t = np.full(a.shape, 0.5)
    near = np.zeros(a.shape)
    if ends is None:
        fa, fb = function(a), function(b)
    else:
        fb, fa = ends
        near = tolerance * np.abs(fa - fb)
        np.divide(fa, fa - fb, out=t, where=(fa > 0) != (fb > 0))
    c, fc = a.copy(), fa.copy()
    for _ in range(100):
        x = a + t * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        width = np.abs(b - a)
        limit = tolerance * np.maximum(np.abs(best), 1e-3)
        done = (width <= 2 * limit) | (np.abs(fa) <= near) | ((fa > 0) == (fb > 0))
        if done.all():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            xi = (a - b) / (c - b)
            phi = (fa - fb) / (fc - fb)
            interpolate = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
            step = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
            edge = np.where(width > 0, limit / width, 0.5)
        t = np.where(interpolate & np.isfinite(step), step, 0.5)
        t = np.where(done, 0.0, np.clip(t, np.minimum(edge, 0.5), np.maximum(1 - edge, 0.5)))
    return np.where(np.abs(fa) < np.abs(fb), a, b)


def items_until(
    evidence: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    n: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    missing: npt.ArrayLike,
    threshold_log: npt.ArrayLike,
) -> FloatArray:
    """Return how many of the missing items evidence needs to reach a threshold, if the rates of b and c do not change.

    Parameters
    ----------
    evidence : callable
        Maps b, c and the items still missing, elementwise, to evidence that grows along this path.
    n, b, c, missing : array_like
        Shared items and discordant counts, and the items of the benchmark that the pair does not share yet.
    threshold_log : array_like
        ln(1/alpha) of the pair, in nats.

    Returns
    -------
    ndarray
        Between 0 and ``missing``; infinite where even the complete benchmark does not reach it at these rates, or n = 0.
    """
    aligned(n=n, b=b, c=c, missing=missing, threshold_log=threshold_log)
    items, wins, losses, rest = non_negative(n=n, b=b, c=c, missing=missing)
    (need,) = finite(threshold_log=threshold_log)
    columns = np.broadcast_arrays(items, wins, losses, rest, need)
    shape = columns[0].shape
    items, wins, losses, rest, need = (x.ravel() for x in columns)

    def excess(more: FloatArray, at: npt.NDArray[np.intp]) -> FloatArray:
        grown = 1 + more / items[at]
        return evidence(wins[at] * grown, losses[at] * grown, rest[at] - more) - need[at]

    out = np.full(items.shape, np.inf)
    possible = np.flatnonzero(items > 0)
    possible = possible[excess(rest[possible], possible) >= 0]
    decided = excess(np.zeros(possible.size), possible) >= 0
    out[possible[decided]] = 0
    at = possible[~decided]
    if at.size:
        out[at] = bracketed_root(lambda more: excess(more, at), np.zeros(at.size), rest[at], tolerance=1e-5)
    return out.reshape(shape)

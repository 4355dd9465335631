"""The exact test at N items, curtailed: a verdict as soon as the items still missing can no longer undo it.

A benchmark of known size is tested once, with all N items, by the exact McNemar test. With ``missing`` items to come, counting each of them
against the leader bounds the p-value of that one test from above:

    p_A = min(1, 2 P(X >= b)),    X ~ Binomial(b + c + missing, 1/2),

and p_B with b and c exchanged. At most one of the two is below 1. No outcome of an item raises p, and it ends as the p-value
with all items in. So it may be checked at any time, in any order of arrival, and the error is that of one look at N: alpha for calling two
equal models different, alpha/2 for the wrong direction.

A pair is decided where p <= alpha. Both are compared in logarithms with a tolerance of 1e-12, far above the rounding errors (3e-14) and far
below what matters, so that p = 1/16 decides at alpha = 1/16. Every function here uses this one comparison.
"""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import TOLERANCE, BoolArray, FloatArray, IntArray, aligned, level, non_negative, slabbed
from stats.numerics.mixtures import log_half_and_whole
from stats.numerics.rootfind import items_until

_LOG2 = float(np.log(2))
_SLAB = 12_288  # pairs at a time, so that the temporaries stay in cache


@slabbed
def curtailed_log_p(b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return ln p of the curtailed exact test ``(for_a, for_b)``, every missing item counted against the model in question.

    Parameters
    ----------
    b, c : array_like
        Discordant counts: items that A alone, B alone has right.
    missing : array_like
        Items of the benchmark that the pair does not share yet.

    Returns
    -------
    for_a, for_b : ndarray
        ln p, at most 0; the absolute error is below 1e-12 wherever p matters, and the values do not underflow.

    Notes
    -----
    P(X >= b) = I_1/2(b, c + missing + 1), the integral that `stats.exact_p` looks up. Evidence in the sense of a threshold ln(1/alpha) is
    ``-ln p``.

    Examples
    --------
    >>> np.exp(curtailed_log_p(1680, 1454, [0, 100, 113, 114])[0]).round(7).tolist()
    [5.8e-05, 0.0279292, 0.0493377, 0.051438]
    """
    wins, losses, rest = np.broadcast_arrays(*non_negative(b=b, c=c, missing=missing))
    side = np.where(wins >= losses, 1.0, -1.0)
    log_p = _leader_log_p(np.maximum(wins, losses), np.minimum(wins, losses) + rest)
    return np.where(side > 0, log_p, 0.0), np.where(side < 0, log_p, 0.0)


@slabbed
def curtailed_leader_log_p(b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike) -> FloatArray:
    """Return ln p of the curtailed exact test for the leader; the other direction has p = 1.

    Examples
    --------
    >>> round(float(np.exp(curtailed_leader_log_p(1454, 1680, 50))), 8)
    0.00192182
    """
    wins, losses, rest = np.broadcast_arrays(*non_negative(b=b, c=c, missing=missing))
    return _leader_log_p(np.maximum(wins, losses), np.minimum(wins, losses) + rest)


def curtailed_may_decide(
    b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike, threshold_log: npt.ArrayLike
) -> BoolArray:
    """Rule out pairs that are certainly undecided, for a fraction of the cost of the test.

    Parameters
    ----------
    b, c, missing : array_like of int
        See `curtailed_log_p`; not negative (not checked).
    threshold_log : array_like
        ln(1/alpha) of each pair; infinity for a pair that cannot be decided.

    Returns
    -------
    ndarray of bool
        False only where p > alpha. Of the undecided pairs of a complete benchmark with 1,000 models, 1 % are kept.

    Notes
    -----
    With M = b + c + missing, d = |b - c| - missing > 0, x = d / sqrt(M), u = d / M, McKay's inequality (Adv. Appl. Prob. 21, 1989) and
    Ash's for a single binomial probability give, for Mills' ratio Y of the normal distribution,

        P(X >= (M + d)/2) >= (1 + u) / sqrt(8 (1 - u^2)) Y(x) exp(-M KL),    M KL <= (x^2 / 2) (1 + (2 ln 2 - 1) u^2).

    Y falls, so the right-hand side is at least sqrt(pi)/2 Q(z), z^2 = x^2 (1 + (2 ln 2 - 1) u^2) and Q the tail of the normal distribution.
    Birnbaum's bound on Q then turns p <= alpha into a lower bound on z^2.

    Examples
    --------
    >>> curtailed_may_decide([1680, 1680], [1454, 1454], [113, 200], np.log(20)).tolist()
    [True, False]
    """
    shape, *columns = _columns(b, c, missing, threshold_log)
    out = np.zeros(columns[0].shape, dtype=np.bool_)
    for start in range(0, out.size, _SLAB):
        out[_near(*(x[start : start + _SLAB] for x in columns)) + start] = True
    return out.reshape(shape)


def curtailed_side(
    b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike, threshold_log: npt.ArrayLike
) -> npt.NDArray[np.int8]:
    """Return the verdict of the curtailed exact test: 1 for A, -1 for B, 0 for none.

    The test itself is computed only for pairs that `curtailed_may_decide` leaves.

    Parameters
    ----------
    b, c, missing : array_like of int
        See `curtailed_log_p`.
    threshold_log : array_like
        ln(1/alpha) of each pair; infinity for a pair that cannot be decided.

    Examples
    --------
    >>> curtailed_side([1680, 1454, 1680], [1454, 1680, 1454], [113, 113, 114], np.log(20)).tolist()
    [1, -1, 0]
    """
    shape, *columns = _columns(b, c, missing, threshold_log)
    out = np.zeros(columns[0].shape, dtype=np.int8)
    for start in range(0, out.size, _SLAB):
        part = [x[start : start + _SLAB] for x in columns]
        some = _near(*part)
        wins, losses, rest, need = (x[some] for x in part)
        lead, trail = (f(wins, losses).astype(np.float64) for f in (np.maximum, np.minimum))
        decided = -_leader_log_p(lead, trail + rest) >= need - TOLERANCE
        out[start + some[decided]] = np.sign(wins - losses)[decided]
    return out.reshape(shape)


def missing_tolerated(b: npt.ArrayLike, c: npt.ArrayLike, alpha: npt.ArrayLike = 0.05) -> IntArray:
    """Return how many items may be missing while the pair is decided at these counts; -1 where it is undecided with none missing.

    Parameters
    ----------
    b, c : array_like of int
        Discordant counts of the items that the pair shares.
    alpha : array_like
        Level of each pair, alpha or alpha_j.

    Examples
    --------
    >>> missing_tolerated([1680, 787, 1449], [1454, 684, 1439]).tolist()
    [113, 26, -1]
    >>> missing_tolerated([1680, 787], [1454, 684], 0.05 / 9).tolist()
    [68, -1]
    """
    wins, losses = non_negative(b=b, c=c)
    (a,) = level(alpha=alpha)
    aligned(b=b, c=c, alpha=alpha)
    wins, losses, need = np.broadcast_arrays(wins, losses, -np.log(a))
    lead, trail = np.maximum(wins, losses), np.minimum(wins, losses)
    most = np.ceil(lead - trail)  # the lead is gone with this many
    low, high = np.full(lead.shape, -1.0), most
    for _ in range(int(np.log2(most.max(initial=0) + 2)) + 1):
        middle = np.floor((low + high) / 2)
        decided = -_leader_log_p(lead, trail + np.maximum(middle, 0)) >= need - TOLERANCE
        low, high = np.where(decided & (middle >= 0), middle, low), np.where(decided, high, middle)
    return low.astype(np.int64)


@slabbed
def items_to_curtailed_decision(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike, threshold_log: npt.ArrayLike
) -> FloatArray:
    """Return how many more items the curtailed test needs to decide, if the rates of b and c do not change.

    Parameters
    ----------
    missing : array_like
        Items of the benchmark that the pair does not share yet.
    threshold_log : array_like
        ln(1/alpha), or ln(1/alpha_j) in a family.

    Returns
    -------
    ndarray
        Between 0 and ``missing``; infinite where even the complete benchmark does not decide at these rates, or n = 0.

    Examples
    --------
    >>> round(float(items_to_curtailed_decision(6016, 840, 727, 6016, np.log(20))))
    5904
    """
    return items_until(_at_worst, n, b, c, missing, threshold_log)


def items_to_exact_decision(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, threshold_log: npt.ArrayLike
) -> FloatArray:
    """Return how many more items a benchmark needs for the exact test of all its items to decide, if the rates of b and c do not change.

    Parameters
    ----------
    threshold_log : array_like
        ln(1/alpha), or ln(1/alpha_j) in a family.

    Returns
    -------
    ndarray
        From 0 on; infinite without a gap, beyond 10^9 items, or for n = 0.

    Examples
    --------
    >>> round(float(items_to_exact_decision(12032, 1067, 1012, np.log(27 / 0.05))))
    68533
    """
    return items_until(lambda wins, losses, _: _at_worst(wins, losses, 0), n, b, c, _MOST_ITEMS, threshold_log)


def _at_worst(wins: FloatArray, losses: FloatArray, rest: FloatArray | int) -> FloatArray:
    """Return the evidence with `rest` missing items against the leader: -ln p, and where p is 1 the lead, so that a search has a slope."""
    lead, trail = np.maximum(wins, losses), np.minimum(wins, losses) + rest
    return np.where(lead > trail, -_leader_log_p(lead, trail), lead - trail) + TOLERANCE


def _leader_log_p(lead: FloatArray, trail: FloatArray) -> FloatArray:
    """Return ln min(1, 2 P(X >= lead)), X ~ Binomial(lead + trail, 1/2); 0 where the lead does not exceed the trail."""
    shape = lead.shape
    lead, trail = lead.ravel(), trail.ravel()
    log_p = np.zeros(lead.shape)
    for start in range(0, lead.size, _SLAB):
        part = slice(start, start + _SLAB)
        ahead = np.flatnonzero(lead[part] >= trail[part] + 1) + start
        half, whole = log_half_and_whole(lead[ahead], trail[ahead] + 1)
        log_p[ahead] = np.minimum(half - whole + _LOG2, 0)
    return log_p.reshape(shape)


_MOST_ITEMS = 10**9
_KL = 2 * _LOG2 - 1
_HALF_LOG_PI = float(np.log(np.pi) / 2)


def _near(wins: FloatArray, losses: FloatArray, rest: FloatArray, need: FloatArray) -> npt.NDArray[np.intp]:
    """Return the places of vectors where `curtailed_may_decide` holds."""
    lead = np.abs(wins - losses) - rest
    near = lead > 0
    # First for the lowest threshold of all, where u is at most 1; single precision errs by less than the room left.
    lowest = float(_least_square(need.min(keepdims=True))[0]) if need.size else 0.0
    rough = lead.astype(np.float32)
    rough *= rough
    near &= rough >= np.float32(lowest / (1 + _KL) * (1 - 1e-5)) * (wins + losses + rest).astype(np.float32)
    some = np.flatnonzero(near)
    total = (wins[some] + losses[some] + rest[some]).astype(np.float64)
    square = lead[some].astype(np.float64) ** 2
    square *= 1 + _KL * square / (total * total)
    return np.asarray(some[square >= _least_square(need[some]) * total])


def _least_square(need: FloatArray) -> FloatArray:
    """Return a lower bound on the z^2 of `curtailed_may_decide` where -ln p reaches ``need``, at least 0.

    p <= alpha implies Q(z) <= alpha / sqrt(pi) = exp(-y); at equality z^2 >= 2 y - ln(2 pi (z^2 + 2)) and z^2 <= 2 y - 2 ln 2.
    """
    y = need + (_HALF_LOG_PI - TOLERANCE)
    y = np.minimum(y, 1e15)  # an infinite threshold is out of reach either way
    return np.asarray(np.maximum(2 * y - np.log(2 * np.pi * np.maximum(2 * y - 2 * _LOG2 + 2, 2)), 0))


def _columns(
    b: npt.ArrayLike, c: npt.ArrayLike, missing: npt.ArrayLike, threshold_log: npt.ArrayLike
) -> tuple[tuple[int, ...], FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the common shape of the arguments, and each as a vector."""
    aligned(b=b, c=c, missing=missing, threshold_log=threshold_log)
    need = np.asarray(threshold_log, dtype=np.float64)
    if np.isnan(need).any():
        raise ValueError("threshold_log must not be NaN; use infinity for a pair that cannot be decided")
    wins, losses, rest, need = np.broadcast_arrays(*(_counts(b=b), _counts(c=c), _counts(missing=missing)), need)
    return wins.shape, wins.ravel(), losses.ravel(), rest.ravel(), need.ravel()


def _counts(**named: npt.ArrayLike) -> FloatArray:
    """Return integers of 32 or 64 bits unchanged (for speed), anything else as checked float64."""
    ((name, value),) = named.items()
    if isinstance(value, np.ndarray) and value.dtype in (np.int32, np.int64):
        if value.size and value.min() < 0:
            raise ValueError(f"{name} must be non-negative, got {value.min()}")
        return value
    (array,) = non_negative(**named)
    return array

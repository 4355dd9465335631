"""Mixture e-processes for graded scores: bets 1 + lambda D on differences D in [-1, 1].

With fixed bets lambda_k of equal weight, E = mean_k prod_i (1 + lambda_k D_i) is a test martingale whenever D has mean 0
given the past. The bets come in mirrored pairs: positive lambdas make e+ (A is better), negative ones e-, and
e = (e+ + e-) / 2. For D in {-1, 0, 1} and lambda = 2 theta - 1 this is `stats.log_e_value` of a discrete mixture.

The state is one number per bet, its log capital, in fixed point: whole multiples of 2^-40 nats, each increment rounded
down. Adding integers is associative, so no chunking, order or merge of the items can change a value, and rounding down
keeps the e-value from ever being overstated (by less than 1e-12 nats an item).
"""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray, between, finite

LAMBDAS: tuple[float, ...] = (0.002, 0.005, 0.01, *(k / 50 for k in range(1, 50)))
"""Default bets, each used with both signs: those of ``grid98`` and three small ones for gaps below a point."""

FIXED_POINT = 2.0**40
"""The number that one nat of log capital is."""
_HALF = 2**21
MAX_ITEMS = 2**21 - 1
"""Items a state holds at most: the smallest increment, ln(1 - .98) = -3.9, must not overflow 63 bits."""


def initial_capital(shape: tuple[int, ...] = (), lambdas: npt.ArrayLike = LAMBDAS) -> IntArray:
    """Return the state before the first item: zeros of shape ``(*shape, 2, L)``, positive then negative bets.

    Examples
    --------
    >>> initial_capital((3,)).shape
    (3, 2, 52)
    """
    return np.zeros((*shape, 2, _bets(lambdas).size), dtype=np.int64)


def log_increments(values: npt.ArrayLike, lambdas: npt.ArrayLike = LAMBDAS) -> IntArray:
    """Return ln(1 +- lambda D) of each value, in fixed point.

    Parameters
    ----------
    values : array_like, shape S
        Differences D in [-1, 1].
    lambdas : array_like, shape (L,)
        Bets in (0, 1).

    Examples
    --------
    >>> log_increments([0.5, 0.0], [0.25]).shape
    (2, 2, 1)
    """
    (differences,) = between(-1, 1, values=values)
    bets = _bets(lambdas)
    return np.floor(FIXED_POINT * np.log1p(differences[..., None, None] * np.stack([bets, -bets]))).astype(np.int64)


def update_capital(capital: IntArray, differences: npt.ArrayLike, lambdas: npt.ArrayLike = LAMBDAS) -> IntArray:
    """Return the state after more items.

    Parameters
    ----------
    capital : ndarray of int64, shape (*P, 2, L)
        State of each pair.
    differences : array_like, shape (*P, T)
        The next T differences of each pair, each in [-1, 1].
    lambdas : array_like, shape (L,)
        The bets the state was made with.

    Returns
    -------
    ndarray of int64, shape (*P, 2, L)
        A new state; the old one is not changed. States of disjoint sets of items merge by addition.

    Examples
    --------
    >>> state = update_capital(initial_capital(), [0.5, -0.25, 1.0])
    >>> bool((state == update_capital(update_capital(initial_capital(), [0.5]), [-0.25, 1.0])).all())
    True
    """
    (steps,) = finite(differences=differences)
    bets = _bets(lambdas)
    if capital.shape[-2:] != (2, bets.size) or steps.shape[:-1] != capital.shape[:-2]:
        raise ValueError(
            f"capital of shape {capital.shape} must be (*P, 2, L) for differences (*P, T) and L lambdas: "
            f"got {steps.shape} and {bets.size}"
        )
    out = capital.copy()
    rows = max(1, 1_000_000 // max(capital.size, 1))
    for start in range(0, steps.shape[-1], rows):
        out += log_increments(steps[..., start : start + rows], lambdas).sum(axis=-3)
    return out


def histogram_capital(values: npt.ArrayLike, counts: npt.ArrayLike, lambdas: npt.ArrayLike = LAMBDAS) -> IntArray:
    """Return the state of each pair from how often each difference occurred: exact products, in any order.

    Parameters
    ----------
    values : array_like, shape (V,)
        The distinct differences, in [-1, 1].
    counts : array_like of int, shape (*P, V)
        Items of each pair with each difference, at most `MAX_ITEMS` in all.
    lambdas : array_like, shape (L,)
        Bets in (0, 1).

    Returns
    -------
    ndarray of int64, shape (*P, 2, L)
        Identical to `update_capital` over the same items.

    Examples
    --------
    >>> state = histogram_capital([-1, 0, 1], [[10, 70, 20], [0, 100, 0]])
    >>> graded_log_e(state).round(3).tolist()
    [0.146, 0.0]
    """
    (numbers,) = finite(counts=counts)
    if (numbers < 0).any() or (numbers != np.floor(numbers)).any():
        raise ValueError("counts must be non-negative whole numbers of items")
    if (numbers.sum(axis=-1) > MAX_ITEMS).any():
        raise ValueError(f"counts must add up to at most {MAX_ITEMS} items a pair")
    increments = log_increments(values, lambdas)
    if increments.ndim != 3 or numbers.shape[-1:] != increments.shape[:1]:
        raise ValueError(
            f"counts must have one column per value: {numbers.shape[-1:]} against {increments.shape[:1]} values"
        )
    # Two products of floats, each exact below 2^53 (2^21 items times 22 bits), where integers would have no fast one.
    high, low = np.divmod(increments.reshape(increments.shape[0], -1), _HALF)
    capital = (numbers @ high.astype(np.float64)).astype(np.int64) * _HALF + (numbers @ low.astype(np.float64)).astype(
        np.int64
    )
    return capital.reshape(*numbers.shape[:-1], *increments.shape[1:])


def graded_log_e_halves(capital: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the logarithms of the directional e-values ``(e+, e-)`` of each state, shape P.

    Examples
    --------
    >>> d = [0.5, -0.25, 1, 0, 0.3, -1, 0.75, 0.2, 0.2, -0.1]
    >>> bets = [k / 50 for k in range(1, 50)]
    >>> plus, minus = graded_log_e_halves(update_capital(initial_capital((), bets), d, bets))
    >>> round(float(np.exp(plus)), 9), round(float(np.exp(minus)), 9)
    (1.179199044, 0.358977272)
    """
    logs = capital / FIXED_POINT
    peak = logs.max(axis=-1, keepdims=True)
    logs -= peak
    np.exp(logs, out=logs)
    halves = peak[..., 0] + np.log(logs.mean(axis=-1))
    return halves[..., 0], halves[..., 1]


def graded_log_e(capital: IntArray) -> FloatArray:
    """Return the logarithm of the two-sided e-value (e+ + e-) / 2 of each state, shape P.

    Examples
    --------
    >>> round(float(graded_log_e(update_capital(initial_capital(), [1.0] * 8))), 4)
    3.2652
    """
    plus, minus = graded_log_e_halves(capital)
    return np.asarray(np.logaddexp(plus, minus) - np.log(2))


def graded_completion_bound(
    capital: IntArray, missing: npt.ArrayLike, lambdas: npt.ArrayLike = LAMBDAS
) -> tuple[FloatArray, FloatArray]:
    """Return lower bounds on the final ln(e+ / 2) and ln(e- / 2), with each missing item as bad as possible.

    Either bounds ln e of the complete benchmark from below, and never falls as items come.

    Parameters
    ----------
    capital : ndarray of int64, shape (*P, 2, L)
        State of each pair.
    missing : array_like of int, shape P
        Items still to come; with those in the state at most `MAX_ITEMS`.
    lambdas : array_like, shape (L,)
        The bets the state was made with.

    Examples
    --------
    >>> state = update_capital(initial_capital(), [1.0] * 12)
    >>> [round(float(graded_completion_bound(state, missing)[0]), 3) for missing in (0, 2)]
    [5.648, 2.444]
    """
    worst = log_increments(-1.0, lambdas)[..., 0, :]
    left = np.asarray(missing, dtype=np.int64)[..., None, None]
    return graded_bound(capital + left * worst)


def graded_bound(capital: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return ln(e+ / 2) and ln(e- / 2) of states that missing items have entered at their worst; see `graded_completion_bound`.

    Examples
    --------
    >>> round(float(graded_bound(update_capital(initial_capital(), [1.0] * 12))[0]), 3)
    5.648
    """
    plus, minus = graded_log_e_halves(capital)
    return plus - np.log(2), minus - np.log(2)


def _bets(lambdas: npt.ArrayLike) -> FloatArray:
    (bets,) = finite(lambdas=lambdas)
    if bets.ndim != 1 or bets.size == 0 or (bets <= 0).any() or (bets > 0.98).any():
        raise ValueError("lambdas must be a list of bets with 0 < lambda <= 0.98: each is used with both signs")
    return bets

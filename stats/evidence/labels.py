"""A comparison by a judge, corrected by labels of people.

A judge scores both models on all items, people label a part of them along a committed order. Of each item, J is the
difference of the judge's scores and H the difference of people's, in [-1, 1]; the claim is about H. Nothing is assumed of the
judge: with a good one the claim takes fewer labels, with a bad one about as many as without.

**Items of this kind.** For a coefficient c and each delta in [-c, c], a bet on c J - delta runs over the items without a
label and another on H - c J + delta over the labelled ones. If E[H] <= 0, their product is a supermartingale at
delta = c E[J], which nobody knows: the smallest product counts. c = 0 has the labels only, so that little can be lost.

**These items.** Along a permutation of N items, the mean of what is left is known for J, and for H if its total is 0, so
the bets are on H - c (J - mu_J) - mu_H.

References
----------
Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024; Angelopoulos et al., "Prediction-powered
inference", Science 2023.
"""

from collections.abc import Sequence
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray

LABEL_BETS: tuple[float, ...] = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.98)
"""The bets, equally weighted."""

COEFFICIENTS: tuple[float, ...] = (0.0, 0.5, 1.0)
"""How much of the judge is used, a third each."""

_BETS = np.array(LABEL_BETS)
_LARGEST_BET = 50.0
_GRID = 41
_REFINED = (
    4  # grids, each between the neighbours of the smallest value of the one before: delta to 10^-5, the value to 10^-9
)
_VALUES = 2_048  # distinct values at a time
_ONCE = 256  # the same of values that come once
_HALVINGS = 4
_FACTORS = (
    2**_HALVINGS
)  # below one logarithm: each is at most 101, and 0 or at least 10^-17, so no product leaves the range of a double


class LabelledGap(NamedTuple):
    """What people prefer of all items.

    Attributes
    ----------
    gap : float
        Estimate of the mean of H.
    se : float
        Its standard error.
    correlation : float
        Of H and J on the labelled items; nan where one of them does not vary.
    coefficient : float
        How much of the judge it uses.
    """

    gap: float
    se: float
    correlation: float
    coefficient: float


def labelled_log_e(
    judge: npt.ArrayLike,
    people: npt.ArrayLike,
    judge_labelled: npt.ArrayLike,
    coefficients: Sequence[float] = COEFFICIENTS,
    *,
    refined: bool = True,
) -> float:
    """Return ln e of the claim that people prefer A on items of this kind; turn all signs for B.

    Parameters
    ----------
    judge : array_like
        J of the items without a label.
    people, judge_labelled : array_like
        H and J of the labelled items.
    coefficients : sequence of float
        Of J, equally weighted, in [0, 1].
    refined : bool
        False: delta of the first grid alone, a quarter of the work. The smallest value of fewer delta is never below the
        refined one, so it shows which looks need that.

    Notes
    -----
    The mean over c of min over delta of

        mean_beta prod_unlabelled (1 + min(50, beta / (c + delta)) (c J - delta))
        x mean_beta prod_labelled (1 + beta / (1 + c - delta) (H - c J + delta)),

    its first factor 1 for c = 0. If E[H] <= 0, e reaches 1 / alpha at some time with probability alpha at most, while items
    come in an order that no score decides, and every r-th of them is labelled.

    Examples
    --------
    >>> judge = np.repeat([-1, 0, 1], [150, 1400, 250])
    >>> pairs = [(h, j) for h in (-1, 0, 1) for j in (-1, 0, 1)]
    >>> people, judged = np.repeat(pairs, [22, 6, 2, 4, 128, 8, 1, 5, 24], axis=0).T
    >>> [round(labelled_log_e(judge, people, judged, [c]), 6) for c in COEFFICIENTS]
    [-0.629839, -2.530254, -1.533745]
    >>> [round(labelled_log_e(-judge, -people, -judged, [c]), 6) for c in COEFFICIENTS]
    [-0.629839, -3.394309, -2.5948]
    >>> judge = np.repeat([-1, 0, 1], [110, 1340, 350])
    >>> people, judged = np.repeat(pairs, [22, 6, 2, 4, 114, 8, 1, 5, 38], axis=0).T
    >>> [round(labelled_log_e(judge, people, judged, [c]), 6) for c in COEFFICIENTS]
    [0.413727, 1.042153, 1.556806]
    """
    j, n_j = np.unique(_differences("judge", judge), return_counts=True)
    both = np.stack([_differences("people", people), _differences("judge_labelled", judge_labelled)])
    (h, of), n_h = np.unique(both, axis=1, return_counts=True)
    grids = _REFINED if refined else 1
    logs = [_smallest(j, n_j, h, of, n_h, c, grids) for c in coefficients]
    return float(np.logaddexp.reduce(logs) - np.log(len(logs)))


def _smallest(
    j: FloatArray, n_j: IntArray, h: FloatArray, of: FloatArray, n_h: IntArray, c: float, grids: int
) -> float:
    if c == 0:
        return float(_log_means(h, n_h, np.zeros(1), _BETS[:, None])[0])
    low, high = -c, c
    for _ in range(grids):
        delta = np.linspace(low, high, _GRID)
        with np.errstate(divide="ignore"):
            on_judge = np.minimum(_LARGEST_BET, _BETS[:, None] / (c + delta))
        values = _log_means(c * j, n_j, -delta, on_judge)
        values = values + _log_means(h - c * of, n_h, delta, _BETS[:, None] / (1 + c - delta))
        at = int(values.argmin())
        low, high = delta[max(at - 1, 0)], delta[min(at + 1, _GRID - 1)]
    return float(values[at])


def _log_means(values: FloatArray, counts: IntArray, shift: FloatArray, bets: FloatArray) -> FloatArray:
    """Return ln of the mean over bets of prod (1 + bet (value + shift)), a shift a column of bets."""
    total = np.zeros((_BETS.size, shift.size))
    # Scores between 0 and 1 seldom come twice: a logarithm of each would take most of the time.
    once = np.flatnonzero(counts == 1)
    once = once[: once.size // _FACTORS * _FACTORS]
    for start in range(0, once.size, _ONCE):
        product = bets[:, :, None] * (values[once[start : start + _ONCE]] + shift[:, None])
        product += 1
        for _ in range(_HALVINGS):
            half = product.shape[2] // 2
            product = product[:, :, :half] * product[:, :, half:]
        with np.errstate(divide="ignore"):
            total += np.log(product).sum(axis=2)
    often, counts = np.delete(values, once), np.delete(counts, once)
    for start in range(0, often.size, _VALUES):
        some = slice(start, start + _VALUES)
        total += np.log1p(bets[:, :, None] * (often[some] + shift[:, None])) @ counts[some]
    return np.asarray(np.logaddexp.reduce(total) - np.log(_BETS.size))


def labelled_settled_log_e(
    people: npt.ArrayLike,
    judge: npt.ArrayLike,
    judge_total: float,
    items: int,
    coefficients: Sequence[float] = COEFFICIENTS,
) -> FloatArray:
    """Return ln e, after each label, of the claim that people prefer A on these N items; turn all signs for B.

    Parameters
    ----------
    people, judge : array_like
        H and J of the labelled items, in the order of a permutation of all items that nobody chose.
    judge_total : float
        Sum of J over all items.
    items : int
        All items, N.

    Returns
    -------
    ndarray
        Infinite from the label on at which the claim is certain.

    Notes
    -----
    With R = N - t + 1 items left, mu_H = -(sum of H so far) / R and mu_J = (judge_total - sum of J so far) / R, a label
    multiplies the capital of each c and beta by 1 + beta / (1 + abs(mu_H) + c (1 + abs(mu_J))) (H - c (J - mu_J) - mu_H).

    Examples
    --------
    >>> people = np.array([1, 0, 1, -1, 0, 1, 1, 0, 0, 1, 1, 0])
    >>> judge = np.array([1, 0, 1, -1, 0, 1, 0, 0, 0, 1, 1, 1])
    >>> [round(float(labelled_settled_log_e(people, judge, 5, 40, c)[-1]), 6) for c in ([0], [1], COEFFICIENTS)]
    [1.386954, 0.239917, 0.919597]
    >>> [round(float(labelled_settled_log_e(-people, -judge, -5, 40, c)[-1]), 6) for c in ([0], [1], COEFFICIENTS)]
    [-0.753521, -0.243582, -0.471332]
    """
    h, j = _differences("people", people), _differences("judge", judge)
    if h.shape != j.shape or h.size > items:
        raise ValueError(
            f"people and judge must have one value for each label, of at most {items} items: got {h.size} and {j.size}"
        )
    left = items - np.arange(h.size)
    sums = np.cumsum(h)
    mu_h = -(sums - h) / left
    mu_j = (judge_total - (np.cumsum(j) - j)) / left
    c = np.asarray(coefficients, np.float64)[:, None, None]
    bets = _BETS[:, None] / (1 + abs(mu_h) + c * (1 + abs(mu_j)))
    capital = np.cumsum(np.log1p(bets * (h - c * (j - mu_j) - mu_h)), axis=2)
    bettors = capital.shape[0] * capital.shape[1]
    log_e = np.logaddexp.reduce(capital.reshape(bettors, h.size)) - np.log(bettors)
    certain = np.maximum.accumulate(sums > left - 1 + 1e-9) if h.size else np.zeros(0, bool)
    return np.where(certain, inf, log_e)


def labelled_gap(judge: npt.ArrayLike, people: npt.ArrayLike, judge_labelled: npt.ArrayLike) -> LabelledGap:
    """Return what people prefer of all items, estimated from their labels and the judge.

    Parameters
    ----------
    judge : array_like
        J of all items, labelled or not.
    people, judge_labelled : array_like
        H and J of the labelled items, at least one.

    Notes
    -----
    c mean(J) + mean(H - c J), with the c in [0, 1] of the smallest variance. No verdict rests on it.

    Examples
    --------
    >>> found = labelled_gap([1, 0, 1, 0, 0, -1, 1, 0], [1, 0, 0, 0], [1, 0, 1, 0])
    >>> [round(value, 4) for value in found]
    [0.125, 0.1976, 0.5774, 0.5]
    """
    every, h, j = (
        _differences(name, values)
        for name, values in (("judge", judge), ("people", people), ("judge_labelled", judge_labelled))
    )
    if not h.size or h.shape != j.shape or every.size < h.size:
        raise ValueError("people and judge_labelled must have one value for each of at least one labelled item of all")
    both = float(((h - h.mean()) * (j - j.mean())).mean())
    of_h, of_j = float(h.var()), float(j.var())
    correlation = both / sqrt(of_h * of_j) if of_h > 0 and of_j > 0 else np.nan
    c = min(max(both / of_j, 0.0), 1.0) if of_j > 0 else 0.0
    rest = h - c * j
    share = max(1 / h.size - 1 / every.size, 0.0)
    return LabelledGap(
        c * float(every.mean()) + float(rest.mean()),
        sqrt(share * float(rest.var()) + of_h / every.size),
        correlation,
        c,
    )


def _differences(name: str, values: npt.ArrayLike) -> FloatArray:
    found = np.atleast_1d(np.asarray(values, np.float64))
    if found.ndim != 1 or not np.all(abs(found) <= 1):
        raise ValueError(f"{name} must be a list of differences in [-1, 1]")
    return found

"""Averages over strata (categories, or the members of a suite): each stratum counts by its weight, not by its number of items.

The gap of a pair is sum w_k gap_k, gap_k the mean of D in stratum k and sum w_k = 1. Two views on it:

- at a planned n, the stratified paired test: Var = sum w_k^2 s_k^2 / n_k, with Welch-Satterthwaite degrees of freedom; asymptotic;
- anytime, bets on u_i D_i, u_i = v_i / max v and v_i = w_k N / N_k of an item of stratum k, one of N_k of N items: their mean over the
  items is the gap, divided by max v. They lie in [-1, 1], so the bets of `stats.evidence.graded` apply.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, finite, level, non_negative
from stats.numerics.special import ndtri, stdtr


def normalised(weights: npt.ArrayLike) -> FloatArray:
    """Return positive weights divided by their sum.

    Examples
    --------
    >>> normalised([2, 1, 1]).tolist()
    [0.5, 0.25, 0.25]
    """
    (w,) = finite(weights=weights)
    if w.ndim != 1 or w.size == 0 or (w <= 0).any():
        raise ValueError("weights must be a list of positive numbers")
    return np.asarray(w / w.sum())


def bet_scales(weights: npt.ArrayLike, sizes: npt.ArrayLike) -> tuple[FloatArray, float]:
    """Return u_k, by which a difference of an item of stratum k enters the bets, and max v, which turns their mean into the gap.

    Parameters
    ----------
    weights : array_like, shape (K,)
        Weights of the strata; they are normalised.
    sizes : array_like, shape (K,)
        Items of each stratum, at least 1.

    Examples
    --------
    >>> scales, largest = bet_scales([1, 1], [30, 10])
    >>> scales.round(4).tolist(), largest
    ([0.3333, 1.0], 2.0)
    """
    w, (number,) = normalised(weights), non_negative(sizes=sizes)
    if number.shape != w.shape or (number < 1).any():
        raise ValueError("sizes must be one number of items from 1 for each weight")
    v = w * number.sum() / number
    return np.asarray(v / v.max()), float(v.max())


class Stratified(NamedTuple):
    """The weighted gap of pairs, shape P each; nan where a stratum has no shared item, the variance also where one has a single item."""

    gap: FloatArray
    variance: FloatArray
    """Estimated variance of the gap."""
    degrees: FloatArray
    """Welch-Satterthwaite degrees of freedom; infinite where no stratum varies."""
    same: FloatArray
    """Chance at most that D is the same on every item of each stratum if either sign is as likely on every item."""


def stratified_moments(n: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike, weights: npt.ArrayLike) -> Stratified:
    """Return the weighted gap, its variance and degrees of freedom.

    Parameters
    ----------
    n : array_like, shape (*P, K)
        Shared items of each pair by stratum.
    s1, s2 : array_like, shape (*P, K)
        Sums of D and of D^2 over them.
    weights : array_like, shape (K,)
        Weights of the strata; they are normalised.

    Examples
    --------
    >>> moments = stratified_moments([[4, 2]], [[2, -1]], [[2, 1]], [1, 1])
    >>> [round(float(x[0]), 4) for x in moments]
    [0.0, 0.0833, 1.7143, 0.0625]
    """
    aligned(n=n, s1=s1, s2=s2, weights=weights)
    (items, squares), (total,), w = non_negative(n=n, s2=s2), finite(s1=s1), normalised(weights)
    if items.shape[-1:] != w.shape:
        raise ValueError(f"n must have one column for each of the {w.size} weights, got shape {items.shape}")
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / items
        spread = squares - total * mean
        # As a difference of sums it carries rounding noise where D is the same on every item.
        spread = np.where(spread > 1e-9 * squares, spread, 0.0)
        part = np.where(items > 1, w**2 * spread / (items * (items - 1)), np.nan)
        variance = part.sum(axis=-1)
        degrees = variance**2 / (part**2 / (items - 1)).sum(axis=-1)
    one_way = np.where(mean != 0, items - 1, 0)  # the sign of the first item of a stratum is free
    same = np.exp2(-one_way.sum(axis=-1))
    return Stratified((w * mean).sum(axis=-1), variance, np.where(variance == 0, np.inf, degrees), same)


def stratified_p(moments: Stratified) -> FloatArray:
    """Return the two-sided p-value of a weighted gap of 0: asymptotic, for one look at a planned number of items.

    It is 1 where a stratum has fewer than two shared items, since its variance is unknown, and where all gaps are 0. Where D is the same on
    every item of each stratum, and the weighted gap is not 0, it is the chance of that: 1/8 for a stratum of four such items.

    Examples
    --------
    >>> float(stratified_p(stratified_moments([[50, 20]], [[10, 4]], [[30, 10]], [1, 1])).round(5)[0])
    0.04072
    """
    gap, variance, degrees, same = moments
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(gap == 0, 0.0, gap / np.sqrt(variance))
    known = np.isfinite(variance)
    some = np.where(known & np.isfinite(degrees), degrees, 1e12)
    p = np.where(known, 2 * stdtr(some, -np.abs(np.where(known, t, 0.0))), 1.0)
    return np.where(np.isinf(t), same, p)


def weighted_mean_interval(
    n: npt.ArrayLike, s1: npt.ArrayLike, s2: npt.ArrayLike, weights: npt.ArrayLike, alpha: npt.ArrayLike = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the normal interval for a weighted mean of scores in [0, 1], cut at 0 and 1; nan where a stratum has fewer than two items.

    A stratum whose scores are all equal would add nothing: its variance is taken at a mean that is half an item away from them.

    Parameters
    ----------
    n, s1, s2 : array_like, shape (*P, K)
        Scored items of each model by stratum, and the sums of their scores and squared scores.
    weights : array_like, shape (K,)

    Examples
    --------
    >>> low, high = weighted_mean_interval([[50, 50]], [[40, 25]], [[40, 25]], [1, 1])
    >>> float(low.round(4)[0]), float(high.round(4)[0])
    (0.5604, 0.7396)
    """
    (items, squares), (total,), (a,) = non_negative(n=n, s2=s2), finite(s1=s1), level(alpha=alpha)
    w = normalised(weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = total / items
        near = (total + 0.5) / (items + 1)
        spread = np.maximum((squares - total * mean) / (items - 1), 0.0)
        spread = np.where(spread > 1e-9, spread, near * (1 - near) / (items + 1))
        variance = np.where(items > 1, w**2 * spread / items, np.nan).sum(axis=-1)
    centre, half = (w * mean).sum(axis=-1), -ndtri(a / 2) * np.sqrt(variance)
    return np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1)

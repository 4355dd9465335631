"""The score test and interval for a difference of paired proportions (Tango, 1998)."""

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, aligned, between, level, paired_counts
from stats.numerics.rootfind import bracketed_root
from stats.numerics.special import ndtri


def score_z(n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, gap: npt.ArrayLike = 0.0) -> FloatArray:
    """Return the score statistic against a hypothesised gap: approximately standard normal if it is the true one, valid for one look.

    Parameters
    ----------
    gap : array_like
        Hypothesised difference of the two accuracies, in [-1, 1].

    Returns
    -------
    ndarray
        Positive where the observed gap exceeds ``gap``; 0 where both models agree on every item and ``gap`` is 0.

    Notes
    -----
    (b - c - n gap) / sqrt(n (2 q + gap (1 - gap))), q the likeliest probability under ``gap`` that B alone is right. At gap 0 it is
    (b - c) / sqrt(b + c): the McNemar test without continuity correction.

    Examples
    --------
    >>> round(float(score_z(100, 12, 5)), 4), round(float(score_z(100, 12, 5, 0.1)), 4)
    (1.6977, -0.7191)
    """
    aligned(n=n, b=b, c=c, gap=gap)
    items, wins, losses = paired_counts(n, b, c)
    (hypothesis,) = between(-1, 1, gap=gap)
    return _score_z(*np.broadcast_arrays(items, wins, losses, hypothesis))


def score_interval(
    n: npt.ArrayLike, b: npt.ArrayLike, c: npt.ArrayLike, alpha: npt.ArrayLike = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return the score interval for the gap: the hypotheses that `score_z` does not reject at ``alpha``, two-sided; for one look.

    Returns
    -------
    low, high : ndarray
        Bounds in [-1, 1]; (-1, 1) without items.

    Examples
    --------
    >>> low, high = score_interval(100, 12, 5)
    >>> round(float(low), 4), round(float(high), 4)
    (-0.0119, 0.1574)
    """
    aligned(n=n, b=b, c=c, alpha=alpha)
    items, wins, losses = paired_counts(n, b, c)
    (a,) = level(alpha=alpha)
    items, wins, losses, a = np.broadcast_arrays(items, wins, losses, a)
    return score_low(items, wins, losses, a), np.asarray(-score_low(items, losses, wins, a))


def score_low(items: FloatArray, wins: FloatArray, losses: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return the lower bound of `score_interval` of checked arrays of one shape; the upper one is that of exchanged models, negated."""
    shape = items.shape
    items, wins, losses = (x.ravel() for x in (items, wins, losses))
    z = -ndtri(alpha.ravel() / 2)

    def excess(gap: FloatArray) -> FloatArray:
        return _score_z(items, wins, losses, gap) - z

    observed = (wins - losses) / np.maximum(items, 1)
    low = bracketed_root(excess, np.full(observed.shape, -1.0), observed, tolerance=1e-12)
    return np.where((items > 0) & (observed > -1), low, -1.0).reshape(shape)


def corrected_low(items: FloatArray, wins: FloatArray, losses: FloatArray, alpha: FloatArray) -> FloatArray:
    """Return the lower end of the wider one of the score interval and of that of the likelihood ratio, with continuity correction.

    Each statistic alone errs in one tail: with few losses the likelihood ratio, near a gap of 1 the score, by 79 times alpha on 50 items
    at alpha = .05/406. Half a win counts as a tie, since counts move in whole steps.
    """
    shape = items.shape
    items, wins, losses = (x.ravel() for x in (items, wins, losses))
    wins = np.maximum(wins - 0.5, 0)
    z = -ndtri(alpha.ravel() / 2)
    fitted = _log_likelihood(items, wins, losses, *(x / np.maximum(items, 1) for x in (wins, losses)))

    def excess(gap: FloatArray) -> FloatArray:
        q = likeliest_loss_rate(items, wins, losses, gap)
        root = np.sqrt(np.maximum(2 * (fitted - _log_likelihood(items, wins, losses, q + gap, q)), 0))
        likelihood_ratio = np.copysign(root, wins - losses - items * gap)
        return np.minimum(likelihood_ratio, _standardised(items, wins, losses, gap, q)) - z

    observed = (wins - losses) / np.maximum(items, 1)
    low = bracketed_root(excess, np.full(observed.shape, -1.0), observed, tolerance=1e-12)
    return np.where((items > 0) & (observed > -1), low, -1.0).reshape(shape)


def _score_z(items: FloatArray, wins: FloatArray, losses: FloatArray, gap: FloatArray) -> FloatArray:
    return _standardised(items, wins, losses, gap, likeliest_loss_rate(items, wins, losses, gap))


def likeliest_loss_rate(items: FloatArray, wins: FloatArray, losses: FloatArray, gap: FloatArray) -> FloatArray:
    """Return the likeliest probability under a gap that B alone is right."""
    # 2 n q^2 + linear q - constant = 0, in the form without cancellation for either sign of the linear term.
    linear = (2 * items - wins + losses) * gap - (wins + losses)
    constant = losses * gap * (1 - gap)
    root = np.sqrt(np.maximum(linear**2 + 8 * items * constant, 0))
    count = np.maximum(items, 1)
    return np.where(linear > 0, 2 * constant / np.maximum(linear + root, 1e-300), (root - linear) / (4 * count))


def _standardised(
    items: FloatArray, wins: FloatArray, losses: FloatArray, gap: FloatArray, q: FloatArray
) -> FloatArray:
    variance = items * np.maximum(2 * q + gap * (1 - gap), 0)
    distance = wins - losses - items * gap
    # Without variance the hypothesis allows one outcome: it is certain, or impossible.
    impossible = np.where(np.abs(distance) > 1e-9 * np.maximum(items, 1), np.copysign(np.inf, distance), 0.0)
    return np.where(variance > 0, distance / np.sqrt(np.where(variance > 0, variance, 1)), impossible)


def _log_likelihood(
    items: FloatArray, wins: FloatArray, losses: FloatArray, right: FloatArray, wrong: FloatArray
) -> FloatArray:
    counts, chances = (wins, losses, items - wins - losses), (right, wrong, 1 - right - wrong)
    return np.asarray(sum(k * np.log(np.maximum(p, 1e-300)) for k, p in zip(counts, chances, strict=True)))

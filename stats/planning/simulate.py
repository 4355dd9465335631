"""Simulated paired scores with a known truth, for calibration and planning.

Every generator takes a `numpy.random.Generator`: the same seed gives the same scores.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtr, ndtri, roots_legendre

from stats.fixed_n.resolution import admissible_rho
from stats.numerics.checks import FloatArray, aligned, between, level

Scores = NDArray[np.int8]


def bernoulli_joint(p_a: ArrayLike, p_b: ArrayLike, rho: ArrayLike) -> FloatArray:
    """Return the cell probabilities of two right-or-wrong scores with correlation (phi coefficient) rho.

    Returns
    -------
    ndarray, shape (..., 4)
        P(both right), P(only A), P(only B), P(both wrong).

    Examples
    --------
    >>> bernoulli_joint(0.65, 0.60, 0.30).round(4).tolist()
    [0.4601, 0.1899, 0.1399, 0.2101]
    """
    aligned(p_a=p_a, p_b=p_b, rho=rho)
    (a,), (b,) = level(p_a=p_a), level(p_b=p_b)
    (r,) = admissible_rho(a, b, rho)
    both = a * b + r * np.sqrt(a * (1 - a) * b * (1 - b))
    cells: FloatArray = np.stack(np.broadcast_arrays(both, a - both, b - both, 1 - a - b + both), axis=-1)
    return np.maximum(cells, 0.0)


def latent_joint(p_a: ArrayLike, p_b: ArrayLike, rho: ArrayLike) -> FloatArray:
    """Return the cell probabilities of two scores that are right when correlated standard normals fall below their quantiles.

    The bivariate normal probability is Plackett's integral over the correlation, with r = sin(angle).

    Parameters
    ----------
    p_a, p_b
        accuracies in (0, 1).
    rho
        correlation of the latent normals in [-1, 1]; that of the scores is smaller in size.

    Returns
    -------
    ndarray, shape (..., 4)
        P(both right), P(only A), P(only B), P(both wrong).

    References
    ----------
    Plackett, Biometrika 41 (1954), 351-360.

    Examples
    --------
    >>> latent_joint(0.5, 0.5, 0.5).round(6).tolist()  # 1/4 + arcsin(1/2) / (2 pi) = 1/3
    [0.333333, 0.166667, 0.166667, 0.333333]
    """
    aligned(p_a=p_a, p_b=p_b, rho=rho)
    (a,), (b,), (r,) = level(p_a=p_a), level(p_b=p_b), between(-1, 1, rho=rho)
    a, b, r = np.broadcast_arrays(a, b, r)
    x, y, top = ndtri(a)[..., None], ndtri(b)[..., None], np.arcsin(r)[..., None]
    nodes, weights = roots_legendre(64)
    angle = top * (nodes + 1) / 2
    # At angle -> +-pi/2 the density has its mass where the exponent is 0 only; elsewhere exp(-inf) is the limit 0.
    exponent = -(x * x + y * y - 2 * x * y * np.sin(angle)) / np.maximum(2 * np.cos(angle) ** 2, 1e-300)
    both = a * b + (np.exp(exponent) * weights).sum(-1) * top[..., 0] / (4 * np.pi)
    both = np.clip(both, np.maximum(a + b - 1, 0), np.minimum(a, b))
    return np.stack([both, a - both, b - both, 1 - a - b + both], axis=-1)


def paired_bernoulli(
    p_a: float, p_b: float, rho: float, size: int, rng: "np.random.Generator"
) -> tuple[Scores, Scores]:
    """Draw right-or-wrong scores of two models with exactly these accuracies and this correlation.

    Returns
    -------
    x_a, x_b
        0/1 arrays of shape (size,).

    Examples
    --------
    >>> x_a, x_b = paired_bernoulli(0.65, 0.60, 0.30, 100_000, np.random.default_rng(1))
    >>> round(float(x_a.mean()), 2), round(float(x_b.mean()), 2), round(float(np.corrcoef(x_a, x_b)[0, 1]), 2)
    (0.65, 0.6, 0.3)
    """
    edges = np.cumsum(bernoulli_joint(p_a, p_b, rho))[:3]
    cell = np.searchsorted(edges, rng.random(size), side="right")
    return (cell < 2).astype(np.int8), (cell % 2 == 0).astype(np.int8)


def latent_gaussian(p_a: float, p_b: float, rho: float, size: int, rng: "np.random.Generator") -> tuple[Scores, Scores]:
    """Draw right-or-wrong scores from a Gaussian copula with latent correlation rho; their law is `latent_joint`.

    Returns
    -------
    x_a, x_b
        0/1 arrays of shape (size,).

    Examples
    --------
    >>> x_a, x_b = latent_gaussian(0.5, 0.5, 0.5, 100_000, np.random.default_rng(1))
    >>> round(float((x_a & x_b).mean()), 2)
    0.33
    """
    (a,), (b,), (r,) = level(p_a=p_a), level(p_b=p_b), between(-1, 1, rho=rho)
    z_a, z_b = _correlated_normals(float(r), size, rng)
    return (z_a < ndtri(a)).astype(np.int8), (z_b < ndtri(b)).astype(np.int8)


def graded_beta(
    gap: float, rho: float, size: int, rng: "np.random.Generator", shape: tuple[float, float] = (4.0, 2.0)
) -> tuple[FloatArray, FloatArray]:
    """Draw graded scores in [0, 1] with Beta marginals, joined by a Gaussian copula with latent correlation rho.

    B's scores are Beta(a, b); A's are Beta with the same a + b and a mean larger by exactly `gap`.

    Returns
    -------
    x_a, x_b
        arrays of shape (size,).

    Examples
    --------
    >>> x_a, x_b = graded_beta(0.05, 0.5, 100_000, np.random.default_rng(1))
    >>> round(float((x_a - x_b).mean()), 2)
    0.05
    """
    a, b = shape
    if min(a, b) <= 0:
        raise ValueError(f"shape must be two positive Beta parameters: got {shape}")
    mean = a / (a + b) + gap
    if not 0 < mean < 1:
        raise ValueError(f"gap must keep A's mean {a / (a + b):.3f} + gap inside (0, 1): got {gap}")
    (r,) = between(-1, 1, rho=rho)
    z_a, z_b = _correlated_normals(float(r), size, rng)
    x_a = betaincinv(mean * (a + b), (1 - mean) * (a + b), ndtr(z_a))
    return np.asarray(x_a), np.asarray(betaincinv(a, b, ndtr(z_b)))


def equal_models(models: int, p: ArrayLike, rho: float, size: int, rng: "np.random.Generator") -> Scores:
    """Draw scores of models that are equally good on every item: the null of every pair at once.

    Each item is easy or hard for all alike (one latent normal factor with share rho of the variance).

    Parameters
    ----------
    models
        number of models.
    p
        accuracy, one for all items or one per item, shape (size,).
    rho
        latent correlation between any two models, in [0, 1].

    Returns
    -------
    ndarray, shape (models, size)
        0/1 scores.

    Examples
    --------
    >>> equal_models(10, 0.7, 0.5, 20_000, np.random.default_rng(1)).mean().round(2)
    np.float64(0.7)
    """
    (accuracy,), (r,) = level(p=p), between(0, 1, rho=rho)
    if models < 1:
        raise ValueError(f"models must be at least 1: got {models}")
    z = np.sqrt(r) * rng.standard_normal(size) + np.sqrt(1 - r) * rng.standard_normal((models, size))
    return (z < ndtri(accuracy)).astype(np.int8)


def _correlated_normals(rho: float, size: int, rng: "np.random.Generator") -> tuple[FloatArray, FloatArray]:
    """Draw two standard normal samples of correlation rho."""
    first, other = rng.standard_normal((2, size))
    return first, rho * first + np.sqrt(1 - rho * rho) * other

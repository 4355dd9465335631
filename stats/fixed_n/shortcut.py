"""The unpaired shortcut, for comparison: Cohen's h with a (1 - rho) correction halves the required N.

With n_h = (1 - rho) K / h^2, the ratio n_h / N* is 1/2 up to C(p, rho) delta^2 (paper, lemma shortcut): the correction
is applied to the variance of one arm, while the paired difference carries both.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.fixed_n.resolution import admissible_rho, difference_variance, required_n_paired, z_sum
from stats.numerics.checks import FloatArray, aligned, between, finite, level


def cohens_h(p1: npt.ArrayLike, p2: npt.ArrayLike) -> FloatArray:
    """Return Cohen's effect size for two proportions, 2 arcsin sqrt(p1) - 2 arcsin sqrt(p2).

    Examples
    --------
    >>> round(float(cohens_h(0.65, 0.60)), 6)
    0.103335
    """
    first, second = between(0, 1, p1=p1, p2=p2)
    return np.asarray(2 * np.arcsin(np.sqrt(first)) - 2 * np.arcsin(np.sqrt(second)))


def shortcut_n(
    p_a: npt.ArrayLike,
    p_b: npt.ArrayLike,
    rho: npt.ArrayLike = 0.0,
    alpha: npt.ArrayLike = 0.05,
    power: npt.ArrayLike = 0.8,
) -> FloatArray:
    """Return the shortcut n_h = (1 - rho) K / h^2 (paper, eq. reqn_h); infinite where the proportions are equal.

    Examples
    --------
    >>> round(float(shortcut_n(0.65, 0.60, 0.30)))
    515
    """
    aligned(p_a=p_a, p_b=p_b, rho=rho, alpha=alpha, power=power)
    (r,), (first, second) = between(-1, 1, rho=rho), between(0, 1, p_a=p_a, p_b=p_b)
    h = cohens_h(first, second)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(h == 0, np.inf, (1 - r) * z_sum(alpha, power) ** 2 / h**2)


def shortcut_constant(p: npt.ArrayLike, rho: npt.ArrayLike) -> FloatArray:
    """Return C(p, rho): abs(n_h / N* - 1/2) is C delta^2 to leading order around the mean accuracy p (paper, eq. Cprho).

    Examples
    --------
    >>> round(float(shortcut_constant(0.65, 0.0)), 5), round(float(shortcut_constant(0.8, 0.5)), 5)
    (0.31196, 0.79753)
    """
    aligned(p=p, rho=rho)
    (accuracy,), (r,) = level(p=p), between(-1, 1, rho=rho)
    if (r == 1).any():
        raise ValueError("rho must be below 1: at 1 the paired difference has no variance")
    u = accuracy * (1 - accuracy)
    return np.asarray(np.abs((1 + r) * (1 - 2 * accuracy) ** 2 / (16 * (1 - r) * u**2) - 1 / (6 * u)) / 2)


def admissible_delta(p: npt.ArrayLike, rho: npt.ArrayLike, epsilon: npt.ArrayLike = 0.05) -> FloatArray:
    """Return the gap delta* = sqrt(epsilon / C) up to which n_h stays within epsilon N* of N* / 2 (paper, cor. underest).

    Examples
    --------
    >>> round(float(admissible_delta(0.65, 0.3, 0.05)), 5)
    0.43406
    """
    aligned(p=p, rho=rho, epsilon=epsilon)
    (tolerance,) = level(epsilon=epsilon)
    with np.errstate(divide="ignore"):
        return np.sqrt(tolerance / shortcut_constant(p, rho))


def unpaired_required_n(
    p_a: npt.ArrayLike, p_b: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8
) -> FloatArray:
    """Return the items per model when the two are scored on different items: K (p_a q_a + p_b q_b) / gap^2.

    Examples
    --------
    >>> round(float(unpaired_required_n(0.65, 0.60)), 1)
    1467.7
    """
    aligned(p_a=p_a, p_b=p_b, alpha=alpha, power=power)
    first, second = between(0, 1, p_a=p_a, p_b=p_b)
    return required_n_paired(first - second, np.sqrt(difference_variance(first, second, 0.0)), alpha, power)


class Calculator(NamedTuple):
    """One row of the calculator table: the result of a convention, and the same times (1 - rho)."""

    convention: str
    formula: str
    per_arm: float
    times_one_minus_rho: float


def calculator_table(
    p_a: float, p_b: float, rho: float, alpha: float = 0.05, power: float = 0.8
) -> tuple[Calculator, ...]:
    """Compare the required N by the usual conventions with the paired N* (paper, table misuse).

    ``per_arm`` of the last row is N* itself, which already accounts for the pairing.

    Examples
    --------
    >>> table = calculator_table(0.65, 0.60, 0.30)
    >>> [(row.formula, round(row.per_arm), round(row.times_one_minus_rho)) for row in table]
    [('K / h^2', 735, 515), ('2 K / h^2', 1470, 1029), ('K Var(D) / gap^2', 1028, 1028)]
    """
    finite(p_a=p_a, p_b=p_b)
    admissible_rho(p_a, p_b, rho)
    one_arm = float(shortcut_n(p_a, p_b, 0.0, alpha, power))
    paired = float(required_n_paired(p_a - p_b, np.sqrt(difference_variance(p_a, p_b, rho)), alpha, power))
    return (
        Calculator("one-sample: Cohen 1988, eq. 6.3.2", "K / h^2", one_arm, (1 - rho) * one_arm),
        Calculator("two-sample: pwr.2p.test, NormalIndPower", "2 K / h^2", 2 * one_arm, 2 * (1 - rho) * one_arm),
        Calculator("paired difference: McNemar, Connor", "K Var(D) / gap^2", paired, paired),
    )

"""The seven functions of the paper's API appendix, under its names.

Numbers of items are returned unrounded; round up to print them.
"""

import numpy as np
import numpy.typing as npt

from stats.fixed_n.bootstrap import bootstrap_power, paired_bootstrap_delta
from stats.fixed_n.resolution import difference_variance, required_n, required_n_paired
from stats.fixed_n.shortcut import cohens_h, shortcut_n
from stats.numerics.checks import FloatArray

__all__ = [
    "ANYTIME_INFLATION",
    "bootstrap_power",
    "cohens_h",
    "paired_bootstrap_delta",
    "parametric_required_n_paired",
    "parametric_required_n_paired_binary",
    "parametric_required_n_proportions",
    "required_n_mcnemar",
]

ANYTIME_INFLATION = 2.15
"""The paper's single factor for anytime-valid N*; its own mixture gives 1.94 to 2.61 depending on the pair."""


def parametric_required_n_proportions(
    p1: npt.ArrayLike,
    p2: npt.ArrayLike,
    paired: bool = False,  # noqa: FBT001, FBT002
    rho: npt.ArrayLike = 0.0,
    alpha: npt.ArrayLike = 0.05,
    power: npt.ArrayLike = 0.8,
) -> FloatArray:
    """Return Cohen's K / h^2; with ``paired`` times (1 - rho), the shortcut, which gives half of what is needed.

    Examples
    --------
    >>> round(float(parametric_required_n_proportions(0.65, 0.60, True, 0.30)))
    515
    """
    return shortcut_n(p1, p2, rho if paired else 0.0, alpha, power)


def parametric_required_n_paired_binary(
    p1: npt.ArrayLike, p2: npt.ArrayLike, rho: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8
) -> FloatArray:
    """Return N* of 0/1 scores from accuracies and their correlation (paper, eq. reqn_exact).

    Examples
    --------
    >>> round(float(parametric_required_n_paired_binary(0.65, 0.60, 0.30)))
    1028
    """
    sd = np.sqrt(difference_variance(p1, p2, rho))
    return required_n_paired(np.subtract(p1, p2), sd, alpha, power)


def required_n_mcnemar(
    n_ab: npt.ArrayLike,
    n_ba: npt.ArrayLike,
    n_observed: npt.ArrayLike,
    alpha: npt.ArrayLike = 0.05,
    power: npt.ArrayLike = 0.8,
) -> FloatArray:
    """Return N* from the discordant counts observed on ``n_observed`` items.

    Examples
    --------
    >>> round(float(required_n_mcnemar(295, 249, 10042)))
    20255
    """
    return required_n(n_observed, n_ab, n_ba, alpha, power)


def parametric_required_n_paired(
    mean_diff: npt.ArrayLike, sd_diff: npt.ArrayLike, alpha: npt.ArrayLike = 0.05, power: npt.ArrayLike = 0.8
) -> FloatArray:
    """Return N* of graded scores from the mean and standard deviation of their difference (paper, eq. nstar).

    Examples
    --------
    >>> round(float(parametric_required_n_paired(0.05, 0.5)), 2)
    784.89
    """
    return required_n_paired(mean_diff, sd_diff, alpha, power)

"""Where the variance of a score comes from: the items, or the repeats of each item.

Repeat r of item i scores mu + item effect + repeat effect. The mean of n items with R repeats each then has the variance

    item variance / n + repeat variance / (n R),

so more repeats help only down to the first term, and more items help both.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray


class NoiseSplit(NamedTuple):
    """The components of variance of one model's scores, or of the differences of two.

    Attributes
    ----------
    items : int
        Items with a score.
    repeats : float
        Harmonic mean of the repeats an item.
    item_variance, repeat_variance : float
        Of one item's true score, and of one repeat around it; the first is 0 where the estimate is negative.
    """

    items: int
    repeats: float
    item_variance: float
    repeat_variance: float

    def variance(self, items: float, repeats: float) -> float:
        """Return the predicted variance of the mean of so many new items with so many repeats each."""
        return (self.item_variance + self.repeat_variance / repeats) / items

    @property
    def repeat_share(self) -> float:
        """Return the share of the variance of the mean that comes from repeats, at the present numbers; 0 without variance."""
        whole = self.variance(1, self.repeats)
        return self.repeat_variance / self.repeats / whole if whole > 0 else 0.0

    def gain_of_repeats(self, factor: float = 2) -> float:
        """Return the variance with `factor` times the repeats, as a share of the present one; with as many more items it is 1 / factor."""
        whole = self.variance(1, self.repeats)
        return self.variance(1, factor * self.repeats) / whole if whole > 0 else 1.0


def noise_split(scores: npt.ArrayLike) -> NoiseSplit:
    """Split the variance of scores into items and repeats, by the analysis of variance.

    Parameters
    ----------
    scores : array_like, shape (items, repeats)
        nan where a repeat has no score. Numbers of repeats may differ, as long as they do not depend on the scores.

    Examples
    --------
    >>> split = noise_split([[1, 1], [0, 0], [1, 0], [1, 1], [0, 1], [0, 0]])
    >>> round(split.item_variance, 4), round(split.repeat_variance, 4), round(split.repeat_share, 2)
    (0.1167, 0.1667, 0.42)
    """
    values, present, count = _table(scores=scores)
    if count.size < 2 or count.max() < 2:
        raise ValueError(
            "scores must hold at least 2 items, and an item with 2 repeats: one repeat does not show its noise"
        )
    total, n = count.sum(), count.size
    mean = values.sum(axis=1) / count
    within = float((np.where(present, values - mean[:, None], 0.0) ** 2).sum() / (total - n))
    grand = values.sum() / total
    between = float((count * (mean - grand) ** 2).sum() / (n - 1))
    size = (total - (count**2).sum() / total) / (n - 1)
    return NoiseSplit(n, float(n / (1 / count).sum()), max(0.0, float((between - within) / size)), within)


def rerun_p(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the two-sided p-value that two runs of one model differ no more than its repeats do.

    Parameters
    ----------
    first, second : array_like, shape (items, repeats)
        Scores of the same items in both runs; nan where there is none.

    Returns
    -------
    float
        Of the difference of the two means against the noise of the repeats alone: the items are the same. 1 without any noise and
        difference, 0 with a difference and no noise.

    Notes
    -----
    With one repeat in each run the noise of an item is half of its squared difference. Normal approximation, for 30 items or more.

    Examples
    --------
    >>> rerun_p([[1], [0], [1], [1]] * 20, [[1], [1], [0], [1]] * 20)
    1.0
    >>> round(rerun_p([[1], [0], [1], [1]] * 20, [[0], [0], [1], [1]] * 20), 6)
    8e-06
    """
    from stats.numerics.special import ndtr  # noqa: PLC0415 - start-up: a split alone does not need it

    (x, in_x, n_x), (y, in_y, n_y) = _table(first=first, keep=True), _table(second=second, keep=True)
    if x.shape[0] != y.shape[0]:
        raise ValueError(
            f"arrays of unequal length: first {x.shape[0]} and second {y.shape[0]} must hold the same items"
        )
    both = (n_x > 0) & (n_y > 0)
    x, in_x, n_x, y, in_y, n_y = x[both], in_x[both], n_x[both], y[both], in_y[both], n_y[both]
    d = x.sum(axis=1) / n_x - y.sum(axis=1) / n_y
    # Both runs together are one sample of the item's repeats if they do not differ.
    pooled = (x.sum(axis=1) + y.sum(axis=1)) / (n_x + n_y)
    squares = (np.where(in_x, x - pooled[:, None], 0) ** 2).sum(axis=1) + (
        np.where(in_y, y - pooled[:, None], 0) ** 2
    ).sum(axis=1)
    noise = squares / (n_x + n_y - 1)
    variance = float((noise * (1 / n_x + 1 / n_y)).sum())
    if variance == 0:
        return 1.0 if not d.any() else 0.0
    return float(2 * ndtr(-abs(d.sum()) / np.sqrt(variance)))


def _table(*, keep: bool = False, **named: npt.ArrayLike) -> tuple[FloatArray, npt.NDArray[np.bool_], FloatArray]:
    """Return scores with 0 for absent ones, which are present, and the repeats of each item; items without a score only with `keep`."""
    ((name, given),) = named.items()
    scores = np.asarray(given, dtype=np.float64)
    if scores.ndim != 2:
        raise ValueError(f"{name} must be of shape (items, repeats), got shape {scores.shape}")
    present = ~np.isnan(scores)
    if not np.isfinite(scores[present]).all():
        raise ValueError(f"{name} must be finite, or nan where there is no score")
    some = np.ones(scores.shape[0], bool) if keep else present.any(axis=1)
    values = np.where(present, scores, 0.0)[some]
    return values, present[some], present[some].sum(axis=1).astype(np.float64)

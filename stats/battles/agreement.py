"""Agreement of judges who judged the same units, each judge any number of them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stats.numerics.checks import FloatArray, IntArray


class Agreement(NamedTuple):
    """How far judges agree.

    Attributes
    ----------
    alpha : float
        Krippendorff's alpha for names: 1 for full agreement, 0 for that of chance; NaN where no unit has two judges.
    units : ndarray of int, shape (judges,)
        Units of each judge that another one judged too.
    share : ndarray, shape (judges,)
        Mean share of the other judges of a unit that gave the same label; NaN without such a unit.
    """

    alpha: float
    units: IntArray
    share: FloatArray


def agreement(unit: npt.ArrayLike, judge: npt.ArrayLike, label: npt.ArrayLike) -> Agreement:
    """Return the agreement of judges; each gives a unit one label.

    Parameters
    ----------
    unit, judge, label : array_like of int, shape (judgements,)
        Numbers from 0; no judge has two judgements of one unit.

    Examples
    --------
    >>> found = agreement([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [1, 1, 0, 1, 1])
    >>> round(found.alpha, 3), found.units.tolist(), found.share.tolist()
    (0.0, [2, 2], [0.5, 0.5])
    """
    units, judges, labels = (np.asarray(each, np.int64) for each in (unit, judge, label))
    people = int(judges.max(initial=-1)) + 1
    kinds = int(labels.max(initial=-1)) + 1
    _, place = np.unique(units, return_inverse=True)
    counts = np.zeros((int(place.max(initial=-1)) + 1, max(kinds, 1)))
    np.add.at(counts, (place, labels), 1.0)
    size = counts.sum(axis=1)
    shared = size[place] > 1
    others = (counts[place, labels] - 1)[shared] / (size[place] - 1)[shared]
    of = np.bincount(judges[shared], minlength=people)
    with np.errstate(invalid="ignore"):
        share = np.bincount(judges[shared], others, people) / of
    paired = counts[size > 1]
    total = paired.sum()
    if not total:
        return Agreement(float("nan"), of.astype(np.int64), share)
    margin = paired.sum(axis=0)
    expected = total * total - (margin * margin).sum()
    pairs = paired.sum(axis=1)
    differing = ((pairs * pairs - (paired * paired).sum(axis=1)) / (pairs - 1)).sum()
    alpha = 1.0 if expected == 0 else float(1 - (total - 1) * differing / expected)
    return Agreement(alpha, of.astype(np.int64), share)

"""How many labels of people a comparison by a judge takes, by simulation."""

from bisect import bisect_left
from collections.abc import Callable
from math import ceil, log
from typing import NamedTuple

import numpy as np

from stats.evidence.labels import COEFFICIENTS, labelled_log_e, labelled_settled_log_e
from stats.numerics.checks import FloatArray

_Find = Callable[[FloatArray, FloatArray, int], float]
_STEP = 1.1
_SEED = 17


class LabelPlan(NamedTuple):
    """Labels that find a gap; None where labels of all items do not.

    Attributes
    ----------
    corrected : int or None
        On items of this kind, with the judge.
    alone : int or None
        The same without the judge.
    settled : int or None
        On these items, with the judge.
    """

    corrected: int | None
    alone: int | None
    settled: int | None


def plan_labels(
    gap: float,
    discordance: float,
    correlation: float,
    items: int,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    boards: int = 100,
) -> LabelPlan:
    """Return how many labels find a gap between two models in a share `power` of boards.

    Parameters
    ----------
    gap : float
        Mean of H, the difference by people, in (0, discordance].
    discordance : float
        Share of items that people find different, in (0, 1].
    correlation : float
        Of H with J, the difference by the judge, in [0, 1].
    items : int
        Items that the judge scores; n of them have a label, every floor(items / n)-th one.
    boards : int
        Boards to simulate.

    Notes
    -----
    J is H with the probability `correlation`, and of another item else, so the judge has no bias. One look at n labels, of either side. The
    answer is one of a sequence that grows by a tenth.

    Examples
    --------
    >>> plan_labels(0.2, 0.3, 0.9, 400, boards=20)
    LabelPlan(corrected=77, alone=104, settled=70)
    """
    if not (0 < gap <= discordance <= 1 and 0 <= correlation <= 1 and items >= 1 and boards >= 1):
        raise ValueError("a plan of labels takes 0 < gap <= discordance <= 1, a correlation in [0, 1] and items >= 1")
    rng, need = np.random.default_rng(_SEED), -log(alpha)
    better = (discordance + gap) / 2
    made = []
    for _ in range(boards):
        drawn = rng.random((2, items))
        people, other = np.where(drawn < better, 1.0, np.where(drawn < discordance, -1.0, 0.0))
        made.append((people, np.where(rng.random(items) < correlation, people, other)))
    sizes = _sizes(items)

    def smallest(find: _Find) -> int | None:
        def finds(n: int) -> bool:
            return sum(find(*board, n) - log(2) >= need for board in made) >= power * boards

        at = bisect_left(range(len(sizes)), True, key=lambda k: finds(sizes[k]))
        return sizes[at] if at < len(sizes) else None

    def kind(people: FloatArray, judge: FloatArray, n: int, coefficients: tuple[float, ...] = COEFFICIENTS) -> float:
        every = items // n
        h, j = people[: n * every], judge[: n * every]
        unlabelled = np.delete(j, np.s_[::every])
        return labelled_log_e(unlabelled, h[::every], j[::every], coefficients)

    return LabelPlan(
        smallest(kind), smallest(lambda people, judge, n: kind(people, judge, n, (0.0,))), smallest(_largest)
    )


def _largest(people: FloatArray, judge: FloatArray, n: int) -> float:
    return float(labelled_settled_log_e(people[:n], judge[:n], float(judge.sum()), people.size).max())


def _sizes(items: int) -> list[int]:
    sizes = [min(10, items)]
    while sizes[-1] < items:
        sizes.append(min(items, ceil(_STEP * sizes[-1])))
    return sizes

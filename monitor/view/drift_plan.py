"""Which drops a sentinel would find, from the noise of its items: how soon, with how much history, at which cost."""

from collections.abc import Mapping, Sequence
from itertools import product
from math import sqrt
from typing import Final, NamedTuple

import numpy as np

from monitor.view.drift import HORIZON, item_variances, median_delay
from schemas.results.drift import DriftPlan, PlannedDrop, PlannedWatch
from stats.drift.power import least_history

_LEAST_RUNS: Final = 2
_FOR_SHOCKS: Final = 20  # from so many runs on, their means show what whole runs share


class Noise(NamedTuple):
    """How much scores vary between runs of one model while nothing changes."""

    variance: float  # mean variance of an item
    shocks: float = 0.0  # standard deviation that whole runs share

    def spread(self, items: int) -> float:
        """Return the standard deviation of the mean of a run of so many items."""
        return max(sqrt(self.variance / items + self.shocks**2), 1e-6)


def noise_of(runs: Sequence[Mapping[str, float]]) -> Noise:
    """Return the noise of runs, each with its score of every item; raise ValueError if no item is in two of them."""
    items = sorted({item for run in runs for item in run})
    rows = np.array([[run.get(item, np.nan) for item in items] for run in runs], float)
    variances = item_variances(rows) if len(runs) >= _LEAST_RUNS and items else np.zeros(0)
    if not variances.size:
        raise ValueError("no item is in two runs, so their noise is not known")
    variance, shared = float(variances.mean()), 0.0
    if len(runs) >= _FOR_SHOCKS:
        shared = float(np.nanmean(rows, axis=1).var(ddof=1)) - variance / len(items)
    return Noise(variance, sqrt(max(shared, 0.0)))


def planned(
    noise: Noise,
    items: Sequence[int],
    histories: Sequence[int],
    drops: Sequence[float],
    *,
    years: float,
    runs_a_year: float,
    monitors: int,
    price: float | None = None,
    source: tuple[str, str] | None = None,
) -> DriftPlan:
    """Return what each number of items and each history finds."""
    limit = years * runs_a_year * monitors
    watches = []
    for count, history in product(items, histories):
        spread = noise.spread(count)
        found = []
        for drop in drops:
            least = least_history(drop, spread, limit)
            median = None if history < least else median_delay(drop, spread, history, limit)
            found.append(PlannedDrop(drop=drop, median=median, horizon=HORIZON, least_history=least))
        watches.append(
            PlannedWatch(
                items=count,
                history=history,
                spread=spread,
                cost_a_year=None if price is None else price * count * runs_a_year,
                drops=tuple(found),
            )
        )
    benchmark, model = source or (None, None)
    return DriftPlan(
        variance=noise.variance,
        shocks=noise.shocks,
        benchmark=benchmark,
        model=model,
        false_alarm_runs=limit,
        years=years,
        runs_a_year=runs_a_year,
        watches=tuple(watches),
    )

"""The repeats of a model as a table, and what they show: the noise of a comparison, and of two runs of one model."""

import numpy as np

from monitor.view.board import BoardView, Floats
from schemas.records.scores import SCORE_UNIT, ZERO
from stats.clusters.noise import NoiseSplit, noise_split, rerun_p


def repeat_table(benchmark: BoardView, model: str, items: dict[str, int]) -> Floats:
    """Return the scores of a model's newest epoch by item and repeat, in the order of the rows; nan where there is none."""
    contestant = benchmark.newest(model)
    cells, rows = benchmark.cells(), benchmark.row_keys
    codes = cells.codes[:, contestant]
    scored = np.flatnonzero(codes >= ZERO)
    item = np.array([items[rows[row].item] for row in scored.tolist()], np.int64)
    order = np.argsort(item, kind="stable")
    item, codes = item[order], codes[scored[order]]
    place = np.arange(item.size) - np.searchsorted(item, item)
    table = np.full((len(items), int(place.max(initial=0)) + 1), np.nan)
    table[item, place] = cells.values[codes] / SCORE_UNIT
    return table


def rerun_difference(benchmark: BoardView, first: str, second: str) -> float:
    """Return the p-value that two runs of one model differ no more than their repeats do."""
    items = _items(benchmark)
    return rerun_p(repeat_table(benchmark, first, items), repeat_table(benchmark, second, items))


def noise_of_pair(benchmark: BoardView, one: str, other: str) -> NoiseSplit | None:
    """Return the components of the variance of the gap of two models; None where no item has repeats of both."""
    # The noise of a repeat comes from both models; the spread of the items comes from their difference.
    if benchmark.spec.units is not None:  # its items are no repeats, and not independent
        return None
    items = _items(benchmark)
    x, y = (repeat_table(benchmark, model, items) for model in (one, other))
    both = ~(np.isnan(x).all(axis=1) | np.isnan(y).all(axis=1))
    x, y = x[both], y[both]
    if x.shape[0] < 2 or min(x.shape[1], y.shape[1]) < 2:
        return None
    if not ((~np.isnan(x)).sum(axis=1) > 1).any() or not ((~np.isnan(y)).sum(axis=1) > 1).any():
        return None
    a, b = noise_split(x), noise_split(y)
    within = a.repeat_variance / a.repeats + b.repeat_variance / b.repeats
    d = np.nanmean(x, axis=1) - np.nanmean(y, axis=1)
    repeats = 2 / (1 / a.repeats + 1 / b.repeats)
    return NoiseSplit(d.size, repeats, max(0.0, float(d.var(ddof=1)) - within), within * repeats)


def _items(benchmark: BoardView) -> dict[str, int]:
    return {item: k for k, item in enumerate(dict.fromkeys(row.item for row in benchmark.row_keys))}
